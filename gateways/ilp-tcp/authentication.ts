// The challenge of line protocol over TCP: before its first line a sender proves that it has the private key of an EC
// key on the curve P-256.
//
//   sender   <key id>\n
//   server   512 printable characters, \n
//   sender   base64 of the signature (ECDSA with SHA-256, DER or r and s one after the other) of the 512, \n
//
// Then lines follow, or the server closes the connection. Who has no key is challenged like everybody else, unless what
// came first is a row: that sender knows nothing of keys.

import { type KeyObject, randomBytes, verify } from 'node:crypto'
import type { Socket } from 'node:net'
import { hasRight } from '../../engine/base/rights.js'
import { readLine } from '../common/first-bytes.js'
import type { LineKeys } from '../common/line-keys.js'
import type { Principal } from '../common/users.js'

const challengeBytes = 512
const keyIdBytesMax = 512
const signatureBytesMax = 512
const answerMs = 10_000
/** Of r and s. */
const plainSignatureBytes = 64
const firstPrintable = 0x20
const printableCount = 0x5f

/** Who it is, or why this sender must not come in. */
export async function challengeSender(
  socket: Socket,
  keys: LineKeys,
): Promise<Principal | { readonly refused: string }> {
  const keyId = await readLine(socket, keyIdBytesMax, answerMs)
  if (keyId === null) return refused('no key was named')
  const known = keys.find(Buffer.from(keyId, 'latin1').toString())
  if (known === undefined && rowText.test(keyId)) return refused('the sender began with a row')
  const challenge = randomBytes(challengeBytes).map((byte) => firstPrintable + (byte % printableCount))
  socket.write(Buffer.concat([challenge, Buffer.from('\n')]))
  const signature = await readLine(socket, signatureBytesMax, answerMs)
  if (signature === null) return refused('the challenge was not answered')
  if (known === undefined || !isSigned(known.key, challenge, Buffer.from(signature, 'base64')))
    return refused('the key or its signature is wrong')
  if (!hasRight({ ...known.principal, readOnly: false }, 'write'))
    return refused(`the right is missing [user=${known.principal.user}, right=write]`)
  return known.principal
}

/** `table,symbol=value column=value`: no name of a key. */
const rowText = /^\S+ \S*=/

function refused(why: string): { readonly refused: string } {
  return { refused: `authentication failed: ${why} [setting=line.tcp.auth.required]` }
}

function isSigned(key: KeyObject, challenge: Uint8Array, signature: Buffer): boolean {
  const encodings = signature.length === plainSignatureBytes ? (['ieee-p1363', 'der'] as const) : (['der'] as const)
  return encodings.some((dsaEncoding) => {
    try {
      return verify('sha256', challenge, { key, dsaEncoding }, signature)
    } catch {
      return false
    }
  })
}
