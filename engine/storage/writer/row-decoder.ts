// The interface by which the writer uses the decoders of line protocol and QWP (columnar protocol over WebSocket), the
// formats whose requests come through the ring buffer in shared memory. For each request the writer calls, in this
// order:
//
//   begin() block()* then result(), and release() when the rows are stored or discarded
//   block() may pause: the rows must then be stored and released before goOn() decodes the rest of the block

import type { ErrorRecord } from '../../base/errors.js'
import type { LineReject } from '../jobs/messages.js'
import type { RowChunk } from './writer-batch.js'
import type { WriterTable } from './writer-table.js'

export interface RowRequest {
  readonly connectionId: number
  /** Whether the request is stored as a whole or not at all. */
  readonly atomic: boolean
  readonly skipBadLines: boolean
  /** For an atomic request that skips bad rows: store the others together and report the bad ones. */
  readonly partial: boolean
  /** Unit of timestamps that have none of their own. */
  readonly unitNanos: bigint
  /** All timestamps have the suffix n whatever their precision, so a new table uses microseconds. */
  readonly allNanos: boolean
  readonly nowMicros: number
}

/** A staged row that an enforced key refuses. */
export interface RefusedRow {
  readonly table: WriterTable
  /** Number of the row among the staged rows of its table. */
  readonly row: number
  readonly message: string
}

export interface RowDecoder {
  readonly atomic: boolean
  /** The block is not decoded to its end. */
  readonly paused: boolean
  /** Rows since begin() that are not committed yet. */
  readonly rows: number
  readonly rejects: readonly LineReject[]
  /** Includes rows beyond the limit of the list. */
  readonly rejected: number
  readonly error: ErrorRecord | null
  /** Whether receipts name the tables and their transactions. */
  readonly namesTables: boolean
  begin(request: RowRequest): void
  /** The bytes must stay until the rows are stored, or until own() has copied what they refer to. */
  block(address: number, bytes: number): void
  /** Reads over a block of a request that was rejected. */
  skip(address: number, bytes: number): void
  goOn(): void
  /** Tables with rows, in the order in which the request names them. */
  result(): readonly { readonly table: WriterTable; readonly chunks: readonly RowChunk[] }[]
  /**
   * Reports the rows as bad ones. A request that is stored as a whole then has an error; otherwise the rows are
   * removed. False if their places in the request are not known any more; nothing has happened then.
   */
  refuse(refused: readonly RefusedRow[]): boolean
  own(): void
  release(): void
  /** Drops the state of a dropped table. */
  forget(table: WriterTable): void
}
