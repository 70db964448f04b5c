// Reads and writes the file of users and their credentials, users.pus in the database directory. A change always
// replaces the whole file.
//
// Layout: magic "PUS1" (4) | crc32 of the payload u32 | payload, JSON `{"users": [...]}`, to the end of the file.
//
// Invariants:
//   1. No secret can be read from the file: passwords are verifiers (base/password.ts), tokens are SHA-256 hashes of
//      random bytes, keys are public keys.
//   2. Names are unique without regard to case.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import { CorruptionError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Rights } from '../../base/rights.js'

interface TokenRecord {
  /** A public name, by which a token can be dropped without knowing it. */
  readonly id: string
  /** SHA-256 of the token, base64. */
  readonly hash: string
  /** Null: the token does not expire. */
  readonly expiresMicros: number | null
}

/** An EC key on the curve P-256, coordinates in base64url as JSON web keys have them. */
export interface PublicKey {
  readonly x: string
  readonly y: string
}

export interface UserRecord {
  readonly name: string
  readonly enabled: boolean
  readonly rights: Rights
  /** Verifier of the password; null: no password. */
  readonly password: string | null
  readonly tokens: readonly TokenRecord[]
  /** Key for line protocol over TCP. Its key id is the user's name. */
  readonly lineKey: PublicKey | null
}

const magic = 'PUS1'
const headerBytes = 8
const fileName = 'users.pus'
const wayBack = 'restore it from a backup, or start without users by `penstock user reset`'

export function encodeUsers(users: readonly UserRecord[]): Uint8Array {
  assert(new Set(users.map(({ name }) => name.toLowerCase())).size === users.length, 'S5: names of users are unique')
  const payload = Buffer.from(JSON.stringify({ users }))
  const header = Buffer.alloc(headerBytes)
  header.write(magic, 0, 'latin1')
  header.writeUInt32LE(crc32(payload), magic.length)
  return Buffer.concat([header, payload])
}

/** Throws CorruptionError. */
export function decodeUsers(bytes: Uint8Array, path: string): readonly UserRecord[] {
  const buffer = Buffer.from(bytes)
  const payload = buffer.subarray(headerBytes)
  const format = /^PUS([2-9])$/.exec(buffer.toString('latin1', 0, magic.length))?.[1]
  if (format !== undefined) throw CorruptionError.ofFormat(Number(format), 1, path, 0)
  if (buffer.toString('latin1', 0, magic.length) !== magic || buffer.readUInt32LE(magic.length) !== crc32(payload)) {
    throw new CorruptionError(`the file of users is damaged: ${wayBack}`, path, 0)
  }
  return (JSON.parse(payload.toString()) as { readonly users: readonly UserRecord[] }).users
}

/**
 * `exist`: whether the manifest says that users exist. Throws CorruptionError if the file is missing then, or damaged.
 */
export function readUsers(files: Files, directory: string, exist: boolean): readonly UserRecord[] {
  const path = `${directory}/${fileName}`
  if (!files.exists(path)) {
    if (!exist) return []
    throw new CorruptionError(`the file of users is missing: ${wayBack}`, path, 0)
  }
  const file = files.open(path, 'read')
  try {
    const bytes = new Uint8Array(file.size())
    file.read(bytes, 0)
    return decodeUsers(bytes, path)
  } finally {
    file.close()
  }
}

export function hasUsers(files: Files, directory: string): boolean {
  return files.exists(`${directory}/${fileName}`)
}

/**
 * Renames the file, so that it can be inspected, and creates one without users. Returns the new path of the old file.
 */
export function resetUsers(files: Files, directory: string, suffix: string): string | undefined {
  const path = `${directory}/${fileName}`
  const aside = files.exists(path) ? `${path}.${suffix}` : undefined
  if (aside !== undefined) files.rename(path, aside)
  writeUsers(files, directory, encodeUsers([]))
  return aside
}

/** The file is durable when this returns. Throws FileError. */
export function writeUsers(files: Files, directory: string, bytes: Uint8Array): void {
  const path = `${directory}/${fileName}`
  const aside = `${path}.new`
  if (files.exists(aside)) files.remove(aside)
  const file = files.open(aside, 'create')
  try {
    file.write([bytes], 0)
    file.sync()
  } finally {
    file.close()
  }
  files.rename(aside, path)
  files.syncDirectory(directory)
}
