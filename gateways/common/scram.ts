// Implements the server side of SCRAM-SHA-256 (RFC 5802, RFC 7677) and of SCRAM-SHA-256-PLUS, which is bound to the
// TLS connection (channel-binding.ts). The messages are strings:
//
//   client first   n,,n=<user>,r=<client nonce>           the user name is that of the startup message; PLUS starts
//                                                         with p=tls-server-end-point,,
//   server first   r=<both nonces>,s=<salt>,i=<iterations>
//   client final   c=biws,r=<both nonces>,p=<proof>       biws is `n,,` in base64; for PLUS its prefix and the hash
//   server final   v=<signature>
//
// An unknown user gets a made-up verifier, so that the exchange fails only at the end, like a wrong password.

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { NetworkError } from '../../engine/base/errors.js'
import type { PasswordVerifier } from '../../engine/base/password.js'

export const scramMechanism = 'SCRAM-SHA-256'
export const boundMechanism = 'SCRAM-SHA-256-PLUS'

/** `endPoint`: the hash that the client may bind to, null without TLS. `chosen`: the client chose PLUS. */
interface ChannelBinding {
  readonly endPoint: Buffer | null
  readonly chosen: boolean
}

const unbound: ChannelBinding = { endPoint: null, chosen: false }

const nonceBytes = 18

export interface ScramChallenge {
  /** The server's first message. */
  readonly message: string
  /**
   * Takes the client's final message; returns the server's, or null when the proof is wrong. Throws NetworkError.
   *
   */
  readonly finish: (clientFinal: string) => string | null
}

/** Throws NetworkError when the client's first message is malformed. */
export function challenge(verifier: PasswordVerifier, clientFirst: string, binding = unbound): ScramChallenge {
  const parts = /^((n|y|p=tls-server-end-point),(?:a=[^,]*)?,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/s.exec(
    clientFirst,
  )
  if (parts === null) throw new NetworkError('malformed SCRAM message')
  const [, header = '', flag = '', bare = '', clientNonce = ''] = parts
  checkFlag(flag, binding)
  const nonce = clientNonce + randomBytes(nonceBytes).toString('base64')
  const message = `r=${nonce},s=${verifier.salt.toString('base64')},i=${verifier.iterations}`
  return {
    message,
    finish: (clientFinal) =>
      finish(
        verifier,
        { header, endPoint: binding.chosen ? binding.endPoint : null, bare, nonce, message },
        clientFinal,
      ),
  }
}

/** Detects a man in the middle who hides the server's support for channel binding: the client then sends `y`. */
function checkFlag(flag: string, { endPoint, chosen }: ChannelBinding): void {
  if (chosen !== flag.startsWith('p=')) throw new NetworkError('malformed SCRAM message')
  if (flag === 'y' && endPoint !== null)
    throw new NetworkError('the client assumes that the server does not support SCRAM channel binding, but it does')
}

interface Conversation {
  readonly header: string
  readonly endPoint: Buffer | null
  readonly bare: string
  readonly nonce: string
  readonly message: string
}

function finish(verifier: PasswordVerifier, begun: Conversation, clientFinal: string): string | null {
  const parts = /^(c=([^,]*),r=([^,]*)(?:,.*)?),p=([^,]*)$/s.exec(clientFinal)
  if (parts === null) throw new NetworkError('malformed SCRAM message')
  const [, withoutProof = '', binding = '', nonce = '', proofText = ''] = parts
  const bound = Buffer.concat([Buffer.from(begun.header), begun.endPoint ?? Buffer.alloc(0)])
  if (binding !== bound.toString('base64')) throw new NetworkError('wrong SCRAM channel binding')
  if (nonce !== begun.nonce) throw new NetworkError('wrong SCRAM nonce')
  const authMessage = `${begun.bare},${begun.message},${withoutProof}`
  const proof = Buffer.from(proofText, 'base64')
  const signature = createHmac('sha256', verifier.storedKey).update(authMessage).digest()
  if (proof.length !== signature.length) return null
  const clientKey = signature.map((byte, index) => byte ^ proof[index]!)
  const storedKey = createHash('sha256').update(clientKey).digest()
  if (!timingSafeEqual(storedKey, verifier.storedKey)) return null
  return `v=${createHmac('sha256', verifier.serverKey).update(authMessage).digest('base64')}`
}
