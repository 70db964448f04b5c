// Loads the public keys that authenticate senders of line protocol over TCP: from users created by SQL, and from a
// file in the format of other servers of this protocol:
//
//   # comment
//   <key id> ec-p-256-sha256 <x> <y>          coordinates in base64url
//
// A changed file is read again. Senders that the file lists may write and nothing else.

import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { NetworkError } from '../../engine/base/errors.js'
import type { Log } from '../../engine/base/log.js'
import { noRights } from '../../engine/base/rights.js'
import type { UserDirectory } from '../../engine/engine.js'
import type { Principal } from './users.js'

interface LineKey {
  readonly principal: Principal
  readonly key: KeyObject
}

export interface LineKeys {
  find(keyId: string): LineKey | undefined
}

const keyType = 'ec-p-256-sha256'
const writer = { ...noRights, write: true }

/** `path` null: only users. Throws NetworkError when the file cannot be used. */
export function lineKeys(path: string | null, users: UserDirectory, log: Log): LineKeys {
  const file = path === null ? null : new KeyFile(path, log)
  return {
    find: (keyId) => {
      const known = file?.find(keyId)
      if (known !== undefined) return known
      const stored = users.byLineKey(keyId)
      return stored === undefined ? undefined : { principal: stored.user, key: stored.key }
    },
  }
}

class KeyFile {
  readonly #path: string
  readonly #log: Log
  #keys: ReadonlyMap<string, LineKey>
  #seen: string

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
    this.#seen = fingerprint(path)
    this.#keys = readKeys(path)
  }

  find(keyId: string): LineKey | undefined {
    const now = fingerprint(this.#path)
    if (now !== this.#seen) this.#reload(now)
    return this.#keys.get(keyId)
  }

  #reload(now: string): void {
    this.#seen = now
    try {
      this.#keys = readKeys(this.#path)
      this.#log('I', 'ilp', `the keys were reloaded [path=${this.#path}]`)
    } catch (error) {
      this.#log('E', 'ilp', `the old keys remain in use: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

function readKeys(path: string): Map<string, LineKey> {
  const keys = new Map<string, LineKey>()
  for (const [index, line] of readText(path).split(/\r?\n/).entries()) {
    const words = line.trim().split(/\s+/)
    const [keyId = '', type, x = '', y = ''] = words
    if (keyId === '' || keyId.startsWith('#')) continue
    if (words.length !== 4 || type !== keyType) {
      throw new NetworkError(`expected <key id> ${keyType} <x> <y> [file=${path}, line=${index + 1}]`)
    }
    keys.set(keyId, { principal: { user: keyId, rights: writer }, key: publicKey(x, y, path, index + 1) })
  }
  return keys
}

function publicKey(x: string, y: string, path: string, line: number): KeyObject {
  try {
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } catch (error) {
    throw new NetworkError(`not a key on the curve P-256 [file=${path}, line=${line}]`, { cause: error })
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new NetworkError(`the keys of line protocol cannot be read [path=${path}]`, { cause: error })
  }
}

function fingerprint(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? '' : `${stats.size} ${stats.mtimeMs} ${stats.ino}`
}
