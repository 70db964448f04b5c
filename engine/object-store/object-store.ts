// Object storage as the engine sees it: immutable objects under keys, in a bucket of an S3-compatible service or in a
// folder. Asynchronous, so it is used from threads with an event loop and never from a worker loop.
//
// There are two interfaces. An ObjectDriver makes one attempt at an operation and returns its result or error. An
// ObjectStore adds retries, and finds out whether a write with a lost or unclear response succeeded
// (reliable-store.ts). All other code uses an ObjectStore.
//
// Invariants:
//   1. The service decides whether the condition of a write holds; the condition is never checked here beforehand.
//   2. Each write has a random write id, which a service stores with the object; for a folder, the process keeps it.
//      After a lost response, a 409 or a 412 to a conditional write, the store reads the object back: if it has the
//      same write id, the write succeeded.
//   3. A service stores the CRC-32 of the content with each object. An object that is read whole is compared with it.
//   4. Keys are relative to the configured prefix. They consist of non-empty segments without `.` and `..`.

import { crc32 } from '../base/checksum.js'

/** An object's content: bytes in memory, or a file that is read as it is sent. */
export interface ObjectBody {
  readonly bytes: number
  /** CRC-32 of the whole content, if the caller knows it. */
  readonly checksum?: number
  /** The content from the offset on, exactly so many bytes. */
  read(offset: number, bytes: number): Uint8Array
  /** Takes back what read() has returned, so that its memory is used again. */
  sent?(content: Uint8Array): void
}

export interface ObjectInfo {
  readonly key: string
  readonly bytes: number
  /** Identifies this version of the object for putIfMatch(); opaque. */
  readonly etag: string
}

export interface ByteRange {
  readonly offset: number
  readonly bytes: number
}

/** What the service honours, as the probe found it (probe.ts). */
export interface StoreCapabilities {
  /** Conditional writes are safe: what relies on them is permitted. */
  readonly putIfAbsent: boolean
  /** Large objects can be written conditionally in several parts; otherwise they are sent in one request. */
  readonly multipartIfAbsent: boolean
  /** Why something is not honoured; empty if all is. */
  readonly reason: string
}

export interface ObjectStore {
  /** The configured URL, for messages. Holds no credentials. */
  readonly url: string
  /** Writes or replaces the object. */
  put(key: string, body: ObjectBody): Promise<ObjectInfo>
  /** Null if another object has the key: nothing was written. */
  putIfAbsent(key: string, body: ObjectBody): Promise<ObjectInfo | null>
  /**
   * Replaces the version with this etag. Null if the current version is another one, or none: nothing was written, or
   * (after a lost response only) what was written has been replaced since.
   */
  putIfMatch(key: string, body: ObjectBody, etag: string): Promise<ObjectInfo | null>
  /** The content, or exactly the range of it. Rejects with StoreError 'missing' if there is no such object. */
  get(key: string, range?: ByteRange): Promise<Uint8Array>
  /** Null if there is no such object. */
  head(key: string): Promise<ObjectHead | null>
  /** All objects whose keys begin with the prefix, in the order of their keys. */
  list(prefix: string): AsyncIterable<ObjectInfo>
  /** Succeeds if there is no such object. */
  delete(key: string): Promise<void>
  /** Learns what the service honours. Rejects while the service cannot be reached. */
  probe(): Promise<StoreCapabilities>
  close(): Promise<void>
}

export interface ObjectHead extends ObjectInfo {
  /** CRC-32 of the content; null if somebody else wrote the object. */
  readonly checksum: number | null
  /** Of the write that made this version; null if it is not known. */
  readonly writeId: string | null
}

/** Under which condition a write applies. */
export type PutCondition =
  | { readonly kind: 'always' }
  | { readonly kind: 'absent' }
  | { readonly kind: 'match'; readonly etag: string }

export interface PutRequest {
  readonly key: string
  readonly body: ObjectBody
  readonly condition: PutCondition
  readonly checksum: number
  readonly writeId: string
  /** Whether the body may be sent in parts. */
  readonly multipart: boolean
}

export interface ListPage {
  readonly objects: readonly ObjectInfo[]
  /** Where the next page begins; null after the last page. */
  readonly next: string | null
}

/** One attempt at each operation. Rejects with StoreError. */
export interface ObjectDriver {
  readonly url: string
  /** Bodies above this size are sent in parts, where the request permits it; Infinity: never. */
  readonly multipartBytes: number
  put(request: PutRequest): Promise<ObjectInfo>
  get(key: string, range: ByteRange | null): Promise<{ readonly content: Uint8Array; readonly checksum: number | null }>
  head(key: string): Promise<ObjectHead | null>
  list(prefix: string, from: string | null): Promise<ListPage>
  delete(key: string): Promise<void>
  close(): Promise<void>
}

/**
 *   missing       no object has the key
 *   conflict      the condition of a write did not hold, or seems not to have held
 *   denied        the credentials do not permit it, or there are none
 *   unavailable   the service cannot be reached, is overloaded, or did not respond in time: it may have applied a write
 *   unsupported   the service does not know what was asked of it
 *   damaged       the content is not what was written
 *   rejected      anything else that the service refuses; retrying is useless
 */
export type StoreErrorKind =
  | ('missing' | 'conflict' | 'denied' | 'unavailable')
  | ('unsupported' | 'damaged' | 'rejected')

export class StoreError extends Error {
  readonly kind: StoreErrorKind

  constructor(kind: StoreErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

const checksumBlockBytes = 1024 * 1024

export function bodyOf(content: Uint8Array): ObjectBody {
  return { bytes: content.length, read: (offset, bytes) => content.subarray(offset, offset + bytes) }
}

/** CRC-32 of the whole content. */
export function bodyChecksum(body: ObjectBody): number {
  if (body.checksum !== undefined) return body.checksum
  let checksum = 0
  for (let offset = 0; offset < body.bytes; offset += checksumBlockBytes) {
    const content = body.read(offset, Math.min(checksumBlockBytes, body.bytes - offset))
    checksum = crc32(content, checksum)
    body.sent?.(content)
  }
  return checksum
}

/** Throws StoreError for keys that are no keys (invariant 4). */
export function checkKey(key: string): void {
  const segments = key.split('/')
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || key.includes('\0')) {
    throw new StoreError('rejected', `invalid object key [key=${key}]`)
  }
}
