// Messages between the main thread and the object store's thread: one reply for each request.

import type {
  ByteRange,
  ObjectHead,
  ObjectInfo,
  PutCondition,
  StoreCapabilities,
  StoreErrorKind,
} from '../object-store/object-store.js'
import type { TransferredFile } from '../object-store/transfer.js'

/** `bucket`: another one with the same endpoint and keys; empty: the configured place. */
export type StoreRequest =
  | { readonly kind: 'put'; readonly key: string; readonly content: Uint8Array; readonly condition: PutCondition }
  | { readonly kind: 'get'; readonly key: string; readonly range: ByteRange | null }
  | { readonly kind: 'head'; readonly key: string }
  | { readonly kind: 'list'; readonly prefix: string }
  | { readonly kind: 'delete'; readonly key: string }
  | { readonly kind: 'probe' }
  | { readonly kind: 'upload'; readonly path: string; readonly key: string }
  | { readonly kind: 'fetch'; readonly key: string; readonly path: string }
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
