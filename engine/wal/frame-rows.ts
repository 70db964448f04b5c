// The payload of a rows or carry frame: one transaction, its schema changes and its rows, over any number of tables.
// (interface first; the codec follows)

import type { DataType } from '../types/column-types.js'

/** Where the rows came from; on disk: never renumber. */
export const originKinds = { none: 0, kafka: 1, idempotencyKey: 2 } as const

export interface Origin {
  readonly kind: number
  /** Kafka: see encodeKafkaOrigin. Idempotency key: UTF-8. Empty for none. */
  readonly bytes: Uint8Array
}

/** Values of one column. A column that a table does not name reads null in all rows. */
export type ColumnValues =
  /** Fixed width: the values as they lie in memory, in one or more pieces. */
  | { readonly kind: 'fixed'; readonly pieces: readonly Uint8Array[] }
  /** Variable width in memory: entries {address u32, length i32} and the memory that they point into. */
  | { readonly kind: 'entries'; readonly pieces: readonly Uint8Array[]; readonly memory: Uint8Array }
  /** Variable width as in the frame: i32 lengths (-1 null), and the bytes one after the other. What decoding yields. */
  | { readonly kind: 'packed'; readonly lengths: Uint8Array; readonly bytes: Uint8Array }

export interface RowsColumn {
  readonly id: number
  readonly type: DataType
  readonly values: ColumnValues
}

/** Symbol texts that the transaction adds: ids firstId, firstId + 1, ... */
export interface NewSymbols {
  readonly columnId: number
  readonly firstId: number
  /** i32 lengths and the UTF-8 texts one after the other. */
  readonly count: number
  readonly lengths: Uint8Array
  readonly bytes: Uint8Array
}

export interface TableRows {
  readonly tableId: number
  /** Transaction number of the table, below 2^53. */
  readonly transaction: number
  readonly structureVersion: number
  readonly rowCount: number
  /** Of the designated timestamp, in its unit; 0 without one. */
  readonly minTimestamp: bigint
  readonly maxTimestamp: bigint
  readonly symbols: readonly NewSymbols[]
  readonly columns: readonly RowsColumn[]
}

export interface RowsTransaction {
  readonly origin: Origin
  /** Schema changes that come before the rows, as plain JSON objects. */
  readonly ddl: readonly object[]
  readonly tables: readonly TableRows[]
}

/** Chunks of a payload for Wal.append. Fixed columns are not copied: the chunks are views of them. */
export type EncodeRows = (transaction: RowsTransaction) => Uint8Array[]
/** Views of the payload; throws RangeError-free CorruptionError when it does not parse. */
export type DecodeRows = (payload: Uint8Array) => RowsTransaction
