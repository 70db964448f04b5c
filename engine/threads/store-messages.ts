// Messages between the main thread and the object store's thread: one reply for each request.

import type { BlockCacheOptions, BlocksRequest } from '../object-store/block-cache.js'
import type {
  ByteRange,
  ObjectHead,
  ObjectInfo,
  PutCondition,
  StoreCapabilities,
  StoreErrorKind,
} from '../object-store/object-store.js'
import type { ObjectStoreOptions } from '../object-store/open-store.js'
import type { TransferredFile } from '../object-store/transfer.js'
import type { RemoteCopy } from '../storage/schema/schema.js'

/** The first message to the thread. */
export interface StoreThreadOptions extends ObjectStoreOptions {
  /** Where rows of remote parts are cached. */
  readonly blocks: BlockCacheOptions
}

/** `bucket`: another one with the same endpoint and keys; empty: the configured place. */
export type StoreRequest =
  | { readonly kind: 'put'; readonly key: string; readonly content: Uint8Array; readonly condition: PutCondition }
  | { readonly kind: 'get'; readonly key: string; readonly range: ByteRange | null }
  | { readonly kind: 'head'; readonly key: string }
  | { readonly kind: 'list'; readonly prefix: string }
  | { readonly kind: 'delete'; readonly key: string }
  | { readonly kind: 'probe' }
  | { readonly kind: 'upload'; readonly path: string; readonly key: string }
  /** Appends to a spooled file, which the first call creates. */
  | { readonly kind: 'append'; readonly path: string; readonly content: Uint8Array }
  /** Reads the footer of a spooled Parquet file. */
  | { readonly kind: 'parquetFooter'; readonly path: string }
  | { readonly kind: 'uploadSpooled'; readonly path: string; readonly key: string }
  /** Ends a spooled file, if there is one. */
  | { readonly kind: 'discard'; readonly path: string }
  | { readonly kind: 'fetch'; readonly key: string; readonly path: string }
  /** Brings blocks of an object into the local cache. */
  | { readonly kind: 'fetchBlocks'; readonly request: BlocksRequest }
  | { readonly kind: 'blocksUsed'; readonly names: readonly string[] }
  /** Compares the object with what was uploaded, and writes the sidecar of the local part at `path`. */
  | { readonly kind: 'sidecar'; readonly path: string; readonly target: string; readonly copy: RemoteCopy }
  | { readonly kind: 'close' }

export type StoreReply =
  | { readonly kind: 'object'; readonly info: ObjectInfo | null }
  | { readonly kind: 'content'; readonly content: Uint8Array }
  | { readonly kind: 'head'; readonly head: ObjectHead | null }
  | { readonly kind: 'list'; readonly objects: readonly ObjectInfo[] }
  | { readonly kind: 'capabilities'; readonly capabilities: StoreCapabilities }
  | { readonly kind: 'file'; readonly file: TransferredFile }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: StoreErrorKind | null; readonly message: string }

export interface ToStoreThread {
  readonly id: number
  readonly bucket: string
  readonly request: StoreRequest
}

export interface FromStoreThread {
  readonly id: number
  readonly reply: StoreReply
}
