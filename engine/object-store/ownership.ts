// Ownership of a root folder's objects in the object store: only the owner may remove objects and commit to Iceberg
// tables. A copy of a root folder has the same root id, so its server would remove objects that the original still
// needs.
//
// The object <root id>/owner contains a random token. Each start of a server replaces the token by a conditional write,
// and stores the new one in a file of the root folder, together with a fingerprint of the folder, which a copy does not
// have. If two servers have the same file and fingerprint (a cloned disk), the one that was started last becomes the
// owner; the other one finds an unknown token and is no longer the owner.
//
//   file   fingerprint, then tokens, a line each
//
// Invariants:
//   1. The file lists a token before the object contains it, so a crash between the two does not lose the ownership.
//   2. A root whose file has another fingerprint, or does not list the object's token, never becomes the owner. An
//      administrator decides that by removing the object.

import { randomUUID } from 'node:crypto'
import type { Files } from '../base/files.js'
import { bodyOf, type ObjectStore, StoreError } from './object-store.js'

type OwnedStore = Pick<ObjectStore, 'get' | 'head' | 'putIfAbsent' | 'putIfMatch'>

export interface OwnershipOptions {
  readonly store: OwnedStore
  readonly rootId: string
  readonly files: Files
  /** The file of the root with its tokens. */
  readonly path: string
  /** Differs between a root and its copies. */
  readonly fingerprint: string
  readonly randomToken?: () => string
}

const attemptsMax = 3
/** In the file. */
const tokensMax = 50

export function notOwner(key: string): StoreError {
  return new StoreError(
    'conflict',
    `another server owns the objects of this root: see docs/object-storage.md [object=${key}]`,
  )
}

export class Ownership {
  readonly #options: OwnershipOptions
  readonly #key: string
  /** Null: not claimed. */
  #token: string | null = null
  #claiming: Promise<boolean> | null = null

  constructor(options: OwnershipOptions) {
    this.#options = options
    this.#key = `${options.rootId}/owner`
  }

  get key(): string {
    return this.#key
  }

  /** Whether this root is the owner now; claims the ownership at the first call. Rejects with StoreError. */
  async isOwner(): Promise<boolean> {
    if (this.#token !== null) return (await this.#stored())?.token === this.#token
    this.#claiming ??= this.#claim().finally(() => {
      this.#claiming = null
    })
    return this.#claiming
  }

  async #claim(): Promise<boolean> {
    const { store, randomToken = randomUUID } = this.#options
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const stored = await this.#stored()
      const known = this.#known()
      if (stored !== null && !known.includes(stored.token)) return false
      const token = randomToken()
      // Tokens of earlier attempts stay: the response to one of them may have been lost.
      this.#note([...known.slice(-tokensMax), token])
      const body = bodyOf(Buffer.from(token))
      const written =
        stored === null
          ? await store.putIfAbsent(this.#key, body)
          : await store.putIfMatch(this.#key, body, stored.etag)
      // Otherwise another server was faster.
      if (written === null) continue
      this.#note([token])
      this.#token = token
      return true
    }
    return false
  }

  async #stored(): Promise<{ readonly token: string; readonly etag: string } | null> {
    const { store } = this.#options
    const head = await store.head(this.#key)
    if (head === null) return null
    try {
      return { token: Buffer.from(await store.get(this.#key)).toString('utf8'), etag: head.etag }
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'missing') return null
      throw error
    }
  }

  #known(): readonly string[] {
    const { files, path, fingerprint } = this.#options
    if (!files.exists(path)) return []
    const file = files.open(path, 'read')
    try {
      const content = new Uint8Array(file.size())
      file.read(content, 0)
      const [first, ...tokens] = Buffer.from(content).toString('utf8').split('\n')
      return first === fingerprint ? tokens.filter((token) => token !== '') : []
    } finally {
      file.close()
    }
  }

  /** Durable when it returns. */
  #note(tokens: readonly string[]): void {
    const { files, path, fingerprint } = this.#options
    const next = `${path}.new`
    if (files.exists(next)) files.remove(next)
    const file = files.open(next, 'create')
    try {
      file.write([Buffer.from(`${[fingerprint, ...tokens].join('\n')}\n`)], 0)
      file.sync()
    } finally {
      file.close()
    }
    files.rename(next, path)
    files.syncDirectory(path.slice(0, path.lastIndexOf('/')))
  }
}
