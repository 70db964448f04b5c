// Reads TLS certificates and keys from files. The only module that uses jks-js.
//
//   PEM       certificates, the server's first, and its key: in one file, in two files `cert.pem,key.pem`, or in a
//             folder that holds tls.crt and tls.key, fullchain.pem and privkey.pem, or cert.pem and key.pem
//   PKCS12    .p12, .pfx; also with the old ciphers that OpenSSL 3 rejects
//   JKS       Java key store

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { NetworkError } from '../../engine/base/errors.js'

/** Plain data, so that it can be sent to another thread. */
export interface TlsMaterial {
  readonly pfx?: Buffer
  readonly cert?: string
  readonly key?: string
  readonly passphrase?: string
}

const folderNames = [
  ['tls.crt', 'tls.key'],
  ['fullchain.pem', 'privkey.pem'],
  ['cert.pem', 'key.pem'],
] as const

const jksMagic = 0xfeedfeed
const derSequence = 0x30

type Entries = ReturnType<typeof import('jks-js').toPem>

/** Loads jks-js on demand: it is large and few servers need it. */
function toPem(store: Buffer, password: string): Entries {
  const jks = createRequire(import.meta.url)('jks-js') as typeof import('jks-js')
  return jks.toPem(store, password)
}

/** Lists the files that a setting's path refers to. */
export function keyStoreFiles(path: string): string[] {
  const listed = path.split(',').map((part) => part.trim())
  const [first = ''] = listed
  if (listed.length > 1 || !isFolder(first)) return listed
  const pair = folderNames.find((names) => names.every((name) => exists(join(first, name))))
  if (pair === undefined) throw new NetworkError(`the folder contains no tls.crt and tls.key [path=${path}]`)
  return pair.map((name) => join(first, name))
}

/** Throws NetworkError with the reason when the key store cannot be used. */
export function readKeyStore(path: string, password: string): TlsMaterial {
  const files = keyStoreFiles(path)
  const contents = files.map((file) => readFile(file))
  const [first = Buffer.alloc(0)] = contents
  try {
    const material = materialOf(first, contents, password)
    createSecureContext(material)
    return material
  } catch (error) {
    throw new NetworkError(`the key store cannot be used: ${reasonText(error)} [path=${path}]`, { cause: error })
  }
}

/** Returns the server's certificate; null for PKCS12, which is not opened here. */
export function certificateOf({ cert }: TlsMaterial): X509Certificate | null {
  return cert === undefined ? null : new X509Certificate(cert)
}

function materialOf(first: Buffer, contents: readonly Buffer[], password: string): TlsMaterial {
  if (first.length >= 4 && first.readUInt32BE(0) === jksMagic) return fromEntries(toPem(first, password))
  if (first[0] === derSequence) return pkcs12(first, password)
  const text = contents.map((content) => content.toString('latin1')).join('\n')
  const cert = blocks(text, /CERTIFICATE/)
  const key = blocks(text, /PRIVATE KEY/)
  if (cert === '') throw new Error('it contains no certificate')
  if (key === '') throw new Error('it contains no private key')
  const privateKey = createPrivateKey({ key, passphrase: password })
  if (!new X509Certificate(cert).checkPrivateKey(privateKey)) throw new Error('its key belongs to another certificate')
  return { cert, key, passphrase: password }
}

/** Tries OpenSSL first, then jks-js for ciphers that OpenSSL rejects as too old. */
function pkcs12(pfx: Buffer, password: string): TlsMaterial {
  const material = { pfx, passphrase: password }
  try {
    createSecureContext(material)
    return material
  } catch (error) {
    if (!/unsupported/i.test(reasonText(error))) throw error
    return fromEntries(oldPkcs12(pfx, password))
  }
}

/** jks-js fails on entries without a friendly name. */
function oldPkcs12(pfx: Buffer, password: string): Entries {
  try {
    return toPem(pfx, password)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new Error('it uses old ciphers and an entry has no name: export it again with a name or newer ciphers', {
      cause: error,
    })
  }
}

/** Uses the first entry that has a key. */
function fromEntries(entries: Entries): TlsMaterial {
  const entry = Object.values(entries).find(({ cert, key }) => cert !== undefined && key !== undefined)
  if (entry?.cert === undefined || entry.key === undefined) throw new Error('it contains no private key')
  return { cert: entry.cert, key: entry.key }
}

function blocks(text: string, kind: RegExp): string {
  const all = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g) ?? []
  return all.filter((block) => kind.test(block.slice(0, block.indexOf('-----', 11)))).join('\n')
}

function reasonText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (
    /mac verify failure|bad decrypt|bad password|password (is|was) incorrect|password verification|keystore was tampered/i.test(
      text,
    )
  ) {
    return 'its password is another one'
  }
  return text
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new NetworkError(`the key store cannot be read [path=${path}]`, { cause: error })
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined
}
