// Types of the messages between the main thread and query threads, which travel over a MessagePort. Result bytes stay
// in blocks of shared memory: the main thread owns a block from the message that announces it until it sends 'release'.
// If the last block of a result is short, it is copied into the final message, which saves its 'release': a message
// costs more than the copy, because it has to wake the other thread. Rows for this process (values, or packed for an
// insert) are not encoded as bytes: they travel in the messages themselves.

import type { ErrorRecord } from '../../base/errors.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Query } from '../../sql/plan/plan.js'
import type { PackedRows } from '../../storage/jobs/messages.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { QwpEncoding } from '../encode/encode-qwp.js'
import type { ParquetEncoding } from '../encode/parquet-encoding.js'
import type { FragmentDetails } from '../parallel/coordinator.js'
import type { RowsRead } from '../scan/scan-progress.js'
import type { NodeProfile, ProfileMode } from './profile.js'

/** DataRow messages of the PostgreSQL wire protocol. */
export interface PgEncoding {
  readonly kind: 'pg'
  /** Binary instead of text format: for each column; a single entry applies to all columns, none means text. */
  readonly binary: readonly boolean[]
  /** Intervals as text in ISO 8601. */
  readonly isoSpans?: boolean
}

/** CopyData messages of the PostgreSQL wire protocol, one for each row. Binary rows have no header or trailer. */
export interface PgCopyEncoding {
  readonly kind: 'pgCopy'
  readonly format: 'text' | 'csv' | 'binary'
  readonly delimiter: string
  readonly nullText: string
  /** A first row with the column names. */
  readonly header: boolean
  /** The quote character of csv, and the character that escapes a quote within a value. */
  readonly quote: string
  readonly quoteEscape: string
  /** Columns of csv whose values are always quoted. */
  readonly force: { readonly all: boolean; readonly names: readonly string[] }
}

/** Columns for the writer thread: messages carry packed rows instead of blocks of bytes. */
export interface PackedEncoding {
  readonly kind: 'packed'
  /** In the order of the query's columns, with their types. */
  readonly columns: readonly { readonly columnId: number; readonly type: DataType }[]
  /** The designated timestamp; -1 without one. */
  readonly timestampId: number
  /** Minimal rows of a batch before it is sent. */
  readonly batchRows: number
}

/** How rows are encoded. The gateway frames them: blocks of json have no envelope, header line or footer. */
export type Encoding =
  /** `[..],[..]`: rows of /exec, separated by commas, also between blocks. */
  | { readonly kind: 'json'; readonly quoteLargeNumbers: boolean; readonly geohashAsText: boolean }
  /** RFC 4180 rows ended by CRLF; `header` writes the column names first. */
  | { readonly kind: 'csv'; readonly delimiter: number; readonly header: boolean }
  /** One JSON object a line. */
  | { readonly kind: 'ndjson' }
  /** An Arrow IPC stream. */
  | { readonly kind: 'arrow' }
  /** Batches of QWP. */
  | QwpEncoding
  /** A Parquet file. */
  | ParquetEncoding
  | PgEncoding
  | PgCopyEncoding
  | PackedEncoding
  /** Only counts the rows. */
  | { readonly kind: 'count' }
  /** JavaScript values as structured clones, for internal callers: messages carry rows instead of blocks of bytes. */
  | { readonly kind: 'values' }

export interface RunQuery {
  readonly kind: 'run'
  readonly queryId: number
  readonly query: Query
  readonly snapshots: readonly TableSnapshot[]
  readonly encoding: Encoding
  /** Rows to skip, then rows to send. Counting continues after these only with `countAll`. */
  readonly skip: number
  readonly rowsMax: number
  readonly countAll: boolean
  /** The statement's start: now() has this value on every thread and at every attempt. */
  readonly nowMicros: number
  /** Milliseconds from receipt; 0 = none. */
  readonly timeoutMs: number
  /** Milliseconds that passed before this attempt, if it is not the first. */
  readonly spentMs?: number
  /** Limit of the query's memory on a thread while others wait for memory; beyond it, this query waits as well. */
  readonly memoryMax?: number
  /** Operators that can spill use temporary files from the beginning. */
  readonly spills?: boolean
  readonly jit: boolean
  /** For EXPLAIN. */
  readonly profile?: ProfileMode | undefined
  /** The backpressure window: maximal bytes sent and not yet released. */
  readonly windowBytes: number
}

/** A thread shares a fragment of its query with others. */
export interface OfferFragment {
  readonly kind: 'offerFragment'
  readonly queryId: number
  /** Number of the fragment's plan node (planNumbers in coordinator.ts). */
  readonly node: number
  /** Address of the work queue. */
  readonly queue: number
  readonly details: FragmentDetails
  readonly subqueries: readonly SubqueryResult[]
  readonly nowMicros: bigint
}

export interface JoinFragment extends Omit<OfferFragment, 'kind' | 'queryId'> {
  readonly kind: 'joinFragment'
  readonly request: RunQuery
}

export type ToQueryThread =
  | RunQuery
  | JoinFragment
  /** The query has ended: stop its fragments, then reply 'dismissed'. */
  | { readonly kind: 'dismiss'; readonly queryId: number }
  /** No worker uses the query's work queues or results any more, so they can be freed. */
  | { readonly kind: 'fragmentsClosed'; readonly queryId: number }
  | { readonly kind: 'cancel'; readonly queryId: number; readonly reason: string }
  /** A message to or from the query was lost: it ends with this error, even if the thread does not know it. */
  | { readonly kind: 'fail'; readonly queryId: number; readonly error: ErrorRecord }
  | { readonly kind: 'release'; readonly queryId: number; readonly address: number }
  /** The client has taken rows of values, or bytes of packed rows. */
  | { readonly kind: 'taken'; readonly queryId: number; readonly rows: number; readonly bytes: number }
  /** Memory left behind by a thread that has ended. */
  | { readonly kind: 'free'; readonly addresses: readonly number[] }

export type FromQueryThread =
  | {
      readonly kind: 'block'
      readonly queryId: number
      readonly address: number
      readonly bytes: number
      readonly rows: number
    }
  | { readonly kind: 'rows'; readonly queryId: number; readonly rows: readonly (readonly unknown[])[] }
  | { readonly kind: 'packed'; readonly queryId: number; readonly packed: PackedRows; readonly bytes: number }
  | {
      readonly kind: 'end'
      readonly queryId: number
      /** Rows sent; with countAll, all rows of the result. */
      readonly rows: number
      /** Whether rowsMax cut the result. */
      readonly cut: boolean
      readonly executeMs: number
      readonly profile?: readonly NodeProfile[] | undefined
      /** The bytes after the last block, as a copy that needs no release. */
      readonly tail?: Uint8Array | undefined
    }
  | { readonly kind: 'error'; readonly queryId: number; readonly error: ErrorRecord }
  /** Rows that the scans have read so far, and have to read; at most once a second. */
  | ({ readonly kind: 'progress'; readonly queryId: number } & RowsRead)
  | OfferFragment
  | { readonly kind: 'dismissed'; readonly queryId: number }
