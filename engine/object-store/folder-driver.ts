// An object store in a folder, for `file:///path`: an object is a file. It serves for mounted shares, and for tests
// without an S3 service.
//
//   <folder>/<key>            an object
//   <folder>/<key>.lock       held while the key is written or removed: {"owner", "until"}, in ms since the epoch
//   <folder>/<key>.<id>.tmp   an object that is being written; renamed to the key when it is durable
//
// Other programs see whole objects or none. A writer creates the lock file exclusively, so there is one writer of a key
// at a time. If a writer crashes, another one may replace its lock file after the time that is written there. The etag
// is the checksum and the size of the content.

import { randomUUID } from 'node:crypto'
import { crc32 } from '../base/checksum.js'
import { FileError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import {
  type ByteRange,
  type ListPage,
  type ObjectDriver,
  type ObjectHead,
  type ObjectInfo,
  type PutCondition,
  type PutRequest,
  StoreError,
} from './object-store.js'

export interface FolderOptions {
  readonly files: Files
  /** Absolute path. */
  readonly folder: string
  readonly clock: { nowMicros(): number }
}

const lockMs = 30_000
const blockBytes = 1024 * 1024
/** Write ids that are remembered, for reading back. */
const writesMax = 1000
const ownNames = /\.(lock|tmp)$/

export class FolderDriver implements ObjectDriver {
  readonly url: string
  readonly multipartBytes = Number.POSITIVE_INFINITY
  readonly #options: FolderOptions
  /** What this process wrote last, by key. */
  readonly #writes = new Map<string, { readonly etag: string; readonly writeId: string }>()
  /** Lock files without content, by when they were first seen. */
  readonly #emptyLocks = new Map<string, number>()

  constructor(options: FolderOptions) {
    this.#options = options
    this.url = `file://${options.folder}`
  }

  async put(request: PutRequest): Promise<ObjectInfo> {
    const { key, condition, writeId, body } = request
    const path = this.#path(key)
    return attempt(key, () => {
      this.#options.files.makeDirectory(directoryOf(path))
      const unlock = this.#lock(path, key)
      try {
        this.#check(key, condition)
        const etag = this.#write(path, request)
        this.#remember(key, { etag, writeId })
        return { key, bytes: body.bytes, etag }
      } finally {
        unlock()
      }
    })
  }

  async get(key: string, range: ByteRange | null): Promise<{ content: Uint8Array; checksum: null }> {
    return attempt(key, () =>
      this.#with(key, (file) => {
        const size = file.size()
        const offset = range?.offset ?? 0
        const target = new Uint8Array(Math.max(0, Math.min(range?.bytes ?? size, size - offset)))
        const read = file.read(target, offset)
        return { content: target.subarray(0, read), checksum: null }
      }),
    )
  }

  async head(key: string): Promise<ObjectHead | null> {
    return attempt(key, () => this.#head(key))
  }

  async list(prefix: string): Promise<ListPage> {
    const { folder, files } = this.#options
    return attempt(prefix, () => {
      const objects: ObjectInfo[] = []
      const visit = (below: string): void => {
        for (const name of entriesOf(files, below === '' ? folder : `${folder}/${below}`)) {
          const key = below === '' ? name : `${below}/${name}`
          const isRelated = key.startsWith(prefix) || prefix.startsWith(`${key}/`)
          if (!isRelated || ownNames.test(name)) continue
          if (isFolder(files, `${folder}/${key}`)) visit(key)
          else if (key.startsWith(prefix)) objects.push({ key, bytes: files.size(`${folder}/${key}`), etag: '' })
        }
      }
      visit('')
      return { objects: objects.sort((one, other) => (one.key < other.key ? -1 : 1)), next: null }
    })
  }

  async delete(key: string): Promise<void> {
    const { files } = this.#options
    const path = this.#path(key)
    attempt(key, () => {
      if (!files.exists(path)) return
      // A put with a condition relies on the object that it has checked.
      const unlock = this.#lock(path, key)
      try {
        if (!files.exists(path)) return
        files.remove(path)
        files.syncDirectory(directoryOf(path))
      } finally {
        unlock()
      }
    })
  }

  async close(): Promise<void> {}

  #path(key: string): string {
    if (ownNames.test(key)) throw new StoreError('rejected', `keys must not end in .lock or .tmp [key=${key}]`)
    return `${this.#options.folder}/${key}`
  }

  #with<T>(key: string, read: (file: File) => T): T {
    const file = this.#options.files.open(this.#path(key), 'read')
    try {
      return read(file)
    } finally {
      file.close()
    }
  }

  #head(key: string): ObjectHead | null {
    if (!this.#options.files.exists(this.#path(key))) return null
    const { bytes, checksum } = this.#with(key, contentOf)
    const etag = etagOf(checksum, bytes)
    const written = this.#writes.get(key)
    return { key, bytes, etag, checksum, writeId: written?.etag === etag ? written.writeId : null }
  }

  #check(key: string, condition: PutCondition): void {
    if (condition.kind === 'always') return
    const isAbsent = condition.kind === 'absent'
    const holds = isAbsent ? !this.#options.files.exists(this.#path(key)) : this.#head(key)?.etag === condition.etag
    if (!holds) throw new StoreError('conflict', `the condition of a write does not hold [key=${key}]`)
  }

  /** Returns the etag. */
  #write(path: string, { key, body, checksum }: PutRequest): string {
    const { files } = this.#options
    const temporary = `${path}.${randomUUID()}.tmp`
    const file = files.open(temporary, 'create')
    try {
      for (let offset = 0; offset < body.bytes; offset += blockBytes) {
        file.write([body.read(offset, Math.min(blockBytes, body.bytes - offset))], offset)
      }
      file.sync()
      const written = contentOf(file)
      if (written.bytes !== body.bytes || written.checksum !== checksum) {
        throw new StoreError('damaged', `an object changed while it was written [key=${key}]`)
      }
      files.rename(temporary, path)
      files.syncDirectory(directoryOf(path))
      return etagOf(checksum, body.bytes)
    } catch (error) {
      if (files.exists(temporary)) files.remove(temporary)
      throw error
    } finally {
      file.close()
    }
  }

  #remember(key: string, written: { readonly etag: string; readonly writeId: string }): void {
    this.#writes.delete(key)
    this.#writes.set(key, written)
    const [oldest] = this.#writes.keys()
    if (this.#writes.size > writesMax && oldest !== undefined) this.#writes.delete(oldest)
  }

  /** Returns what releases the lock. Throws 'unavailable' while another process holds it. */
  #lock(path: string, key: string): () => void {
    const { files } = this.#options
    const lock = `${path}.lock`
    const owner = randomUUID()
    try {
      this.#removeStale(lock, owner)
      const file = files.open(lock, 'create')
      file.write([new TextEncoder().encode(JSON.stringify({ owner, until: this.#nowMs() + lockMs }))], 0)
      file.close()
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      // EEXIST and ENOENT: another process was faster.
      const kind = error.code === 'EEXIST' || error.code === 'ENOENT' ? 'unavailable' : kindOf(error)
      throw new StoreError(kind, `the object is being written [key=${key}]`, { cause: error })
    }
    return () => files.remove(lock)
  }

  #removeStale(lock: string, owner: string): void {
    const { files } = this.#options
    if (!files.exists(lock)) {
      this.#emptyLocks.delete(lock)
      return
    }
    if (this.#lockedUntil(lock) > this.#nowMs()) throw new FileError(`locked [path=${lock}]`, 'EEXIST')
    // Only one of several processes can rename it.
    const stale = `${lock}.${owner}.tmp`
    files.rename(lock, stale)
    files.remove(stale)
  }

  /** In milliseconds since the epoch. Without content its owner is about to write it, or has crashed before that. */
  #lockedUntil(lock: string): number {
    const file = this.#options.files.open(lock, 'read')
    try {
      const content = new Uint8Array(Math.min(blockBytes, file.size()))
      file.read(content, 0)
      const text = new TextDecoder().decode(content)
      const [, until] = /"until":(\d+(?:\.\d+)?)\}$/.exec(text) ?? []
      if (until !== undefined) return Number(until)
      const seenMs = this.#emptyLocks.get(lock) ?? this.#nowMs()
      this.#emptyLocks.set(lock, seenMs)
      return seenMs + lockMs
    } finally {
      file.close()
    }
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000
  }
}

function contentOf(file: File): { readonly bytes: number; readonly checksum: number } {
  const block = new Uint8Array(blockBytes)
  let checksum = 0
  for (let bytes = 0; ; ) {
    const read = file.read(block, bytes)
    if (read === 0) return { bytes, checksum }
    checksum = crc32(block.subarray(0, read), checksum)
    bytes += read
  }
}

function etagOf(checksum: number, bytes: number): string {
  return `${checksum.toString(16).padStart(8, '0')}-${bytes}`
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}

function entriesOf(files: Files, folder: string): readonly string[] {
  try {
    return files.list(folder)
  } catch (error) {
    if (error instanceof FileError && error.code === 'ENOENT') return []
    throw error
  }
}

function isFolder(files: Files, path: string): boolean {
  try {
    files.list(path)
    return true
  } catch (error) {
    if (error instanceof FileError && error.code === 'ENOTDIR') return false
    throw error
  }
}

function attempt<T>(key: string, operation: () => T): T {
  try {
    return operation()
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    throw new StoreError(kindOf(error), `${error.message} [key=${key}]`, { cause: error })
  }
}

function kindOf({ code }: FileError): StoreError['kind'] {
  if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return 'missing'
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return 'denied'
  return 'unavailable'
}
