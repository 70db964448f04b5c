// An object store in a folder, for `file:///path`: an object is a file. It serves for mounted shares, and for tests
// without an S3 service.
//
//   <folder>/<key>                                  an object
//   <folder>/<key>.<id>.tmp                         one that is being written; renamed to the key when it is durable
//   <folder>/.locks/<hash of key>.<until>.<owner>   a lock: an empty file, valid until the time in ms since the epoch
//
// Other programs see whole objects or none. The condition of a write is checked, and the object is replaced or removed,
// under a lock: a process creates a lock file, and then looks for those of others. If there is a valid one, it gives up
// its own. So two processes may both give up, but never hold locks of a key at the same time. The etag is the checksum and
// the size of the content.
//
// Invariants:
//   1. No name of a lock is used twice. Removing a lock that has expired, or one's own, never removes another one.
//   2. A process that was held up replaces nothing after its lock has expired. Between this check and the renaming, it may
//      be held up for `spareMs`, less the difference of the machines' clocks.

import { createHash, randomUUID } from 'node:crypto'
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
/** Time before the end of a lock from which it is not relied on. */
const spareMs = 10_000
const locksFolder = '.locks'
const blockBytes = 1024 * 1024
/** Write ids that are remembered, for reading back. */
const writesMax = 1000
/** Locks of earlier versions lay beside the objects. */
const ownNames = /\.(lock|tmp)$/

export class FolderDriver implements ObjectDriver {
  readonly url: string
  readonly multipartBytes = Number.POSITIVE_INFINITY
  readonly #options: FolderOptions
  /** What this process wrote last, by key. */
  readonly #writes = new Map<string, { readonly etag: string; readonly writeId: string }>()

  constructor(options: FolderOptions) {
    this.#options = options
    this.url = `file://${options.folder}`
  }

  async put(request: PutRequest): Promise<ObjectInfo> {
    const { key, condition, writeId, body, checksum } = request
    const { files } = this.#options
    const path = this.#path(key)
    return attempt(key, () => {
      files.makeDirectory(directoryOf(path))
      // Otherwise the object would be written in vain.
      this.#check(key, condition)
      const temporary = this.#write(path, request)
      try {
        this.#locked(key, (requireLock) => {
          this.#check(key, condition)
          requireLock()
          files.rename(temporary, path)
          files.syncDirectory(directoryOf(path))
        })
      } catch (error) {
        removeIfThere(files, temporary)
        throw error
      }
      const etag = etagOf(checksum, body.bytes)
      this.#remember(key, { etag, writeId })
      return { key, bytes: body.bytes, etag }
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
          if (!isRelated || isOwn(key)) continue
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
      this.#locked(key, (requireLock) => {
        if (!files.exists(path)) return
        requireLock()
        files.remove(path)
        files.syncDirectory(directoryOf(path))
      })
    })
  }

  async close(): Promise<void> {}

  #path(key: string): string {
    if (isOwn(key))
      throw new StoreError('rejected', `keys must not begin with .locks or end in .lock or .tmp [key=${key}]`)
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

  /** Returns the path of the written file. */
  #write(path: string, { key, body, checksum }: PutRequest): string {
    const { files } = this.#options
    const temporary = `${path}.${randomUUID()}.tmp`
    const file = files.open(temporary, 'create')
    try {
      for (let offset = 0; offset < body.bytes; offset += blockBytes) {
        const content = body.read(offset, Math.min(blockBytes, body.bytes - offset))
        file.write([content], offset)
        body.sent?.(content)
      }
      file.sync()
      const written = contentOf(file)
      if (written.bytes !== body.bytes || written.checksum !== checksum) {
        throw new StoreError('damaged', `an object changed while it was written [key=${key}]`)
      }
      return temporary
    } catch (error) {
      removeIfThere(files, temporary)
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

  /**
   * Throws 'unavailable' if another process writes or removes the object. The operation calls `requireLock` just before
   * it changes something: it throws if the lock may have expired.
   */
  #locked(key: string, operation: (requireLock: () => void) => void): void {
    const { files, folder } = this.#options
    const locks = `${folder}/${locksFolder}`
    const keyPrefix = `${createHash('sha256').update(key).digest('hex')}.`
    const untilMs = Math.ceil(this.#nowMs()) + lockMs
    const own = `${keyPrefix}${untilMs}.${randomUUID()}`
    files.makeDirectory(locks)
    files.open(`${locks}/${own}`, 'create').close()
    try {
      const others = files.list(locks).filter((name) => name.startsWith(keyPrefix) && name !== own)
      for (const name of others) {
        if (Number(name.split('.')[1]) > this.#nowMs())
          throw new StoreError('unavailable', `the object is being written [key=${key}]`)
        removeIfThere(files, `${locks}/${name}`)
      }
      operation(() => {
        if (this.#nowMs() > untilMs - spareMs)
          throw new StoreError('unavailable', `the folder was too slow while the object was locked [key=${key}]`)
      })
    } finally {
      removeIfThere(files, `${locks}/${own}`)
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

/** Whether the key, or a folder on the way to one, is not an object but the driver's. */
function isOwn(key: string): boolean {
  return ownNames.test(key) || key === locksFolder || key.startsWith(`${locksFolder}/`)
}

/** Another process may remove it, too. */
function removeIfThere(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    if (!(error instanceof FileError && error.code === 'ENOENT')) throw error
  }
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
