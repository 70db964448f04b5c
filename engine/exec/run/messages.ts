// What the main thread and a query thread say to each other. Messages travel over a MessagePort; result bytes stay in
// the shared memory: a block belongs to the main thread from its message on until 'release' names it. The end of a result
// that is short travels with its last message instead, because each message wakes a thread.

import type { ErrorRecord } from '../../base/errors.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Query } from '../../sql/plan/plan.js'
import type { PackedRows } from '../../storage/jobs/messages.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { ParquetEncoding } from '../encode/parquet-encoding.js'
import type { FragmentDetails } from '../parallel/coordinator.js'
import type { NodeProfile, ProfileMode } from './profile.js'

/** DataRow messages of the PostgreSQL wire protocol. */
export interface PgEncoding {
  readonly kind: 'pg'
  /** Binary instead of text: of each column, of all when there is one, of none when there are none. */
  readonly binary: readonly boolean[]
  /** Texts of intervals are those of ISO 8601. */
  readonly isoSpans?: boolean
}

/** CopyData messages of the PostgreSQL wire protocol, one a row. Binary rows are without header and trailer. */
export interface PgCopyEncoding {
  readonly kind: 'pgCopy'
  readonly format: 'text' | 'csv' | 'binary'
  readonly delimiter: string
  readonly nullText: string
  /** A first row with the names. */
  readonly header: boolean
  /** Of csv: around a value, and before a quote within it. */
  readonly quote: string
  readonly quoteEscape: string
  /** Columns of csv whose values stand in quotes always. */
  readonly force: { readonly all: boolean; readonly names: readonly string[] }
}

/** Columns for the writer: each message is a piece of rows instead of bytes. */
export interface PackedEncoding {
  readonly kind: 'packed'
  /** In the order of the query's columns, which are of these types. */
  readonly columns: readonly { readonly columnId: number; readonly type: DataType }[]
  /** The designated timestamp; -1 without one. */
  readonly timestampId: number
  /** Pieces end behind each so many rows, at least. */
  readonly batchRows: number
}

/** How rows become bytes. The gateway frames them: no envelope, header line or footer is in the blocks of json. */
export type Encoding =
  /** `[..],[..]`: rows of /exec, divided by commas also between blocks. */
  | { readonly kind: 'json'; readonly quoteLargeNumbers: boolean; readonly geohashAsText: boolean }
  /** RFC 4180 rows ended by CRLF; `header` writes the names first. */
  | { readonly kind: 'csv'; readonly delimiter: number; readonly header: boolean }
  /** One JSON object a line. */
  | { readonly kind: 'ndjson' }
  /** An Arrow IPC stream. */
  | { readonly kind: 'arrow' }
  /** A whole Parquet file. */
  | ParquetEncoding
  | PgEncoding
  | PgCopyEncoding
  | PackedEncoding
  /** Nothing but the count. */
  | { readonly kind: 'count' }
  /** Values as structured clones, for internal callers: each block is a message of rows instead of bytes. */
  | { readonly kind: 'values' }

export interface RunQuery {
  readonly kind: 'run'
  readonly queryId: number
  readonly query: Query
  readonly snapshots: readonly TableSnapshot[]
  readonly encoding: Encoding
  /** Rows to skip, then rows to send; the count goes on after that only when `countAll`. */
  readonly skip: number
  readonly rowsMax: number
  readonly countAll: boolean
  /** The statement's time: what now() is on every thread and at every attempt. */
  readonly nowMicros: number
  /** Milliseconds from receipt; 0 = none. */
  readonly timeoutMs: number
  /** Milliseconds that went by before this attempt: it is not the first one. */
  readonly spentMs?: number
  /** Bytes that the query may hold on a thread while others wait for memory; it waits, too, when it wants more. */
  readonly memoryMax?: number
  readonly jit: boolean
  /** For EXPLAIN. */
  readonly profile?: ProfileMode | undefined
  /** Bound of encoded bytes that may wait unreleased. */
  readonly windowBytes: number
}

/** Another thread shares a fragment of its query. */
export interface OfferFragment {
  readonly kind: 'offerFragment'
  readonly queryId: number
  /** Of the fragment's plan (coordinator.ts numbers plans). */
  readonly node: number
  /** Address of the board. */
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
  /** The query is over: forget its fragments, then answer 'dismissed'. */
  | { readonly kind: 'dismiss'; readonly queryId: number }
  /** No helper looks at the query's boards, or at what others have made for it, any more. */
  | { readonly kind: 'fragmentsClosed'; readonly queryId: number }
  | { readonly kind: 'cancel'; readonly queryId: number; readonly reason: string }
  /** A message of the query was lost, or one of another: it ends with this error, even when the thread knows nothing of it. */
  | { readonly kind: 'fail'; readonly queryId: number; readonly error: ErrorRecord }
  | { readonly kind: 'release'; readonly queryId: number; readonly address: number }
  /** So many rows of values or bytes of pieces were taken. */
  | { readonly kind: 'taken'; readonly queryId: number; readonly rows: number; readonly bytes: number }
  /** What a thread held that has ended. */
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
      /** Rows sent; with countAll all rows of the result. */
      readonly rows: number
      /** True when rowsMax cut the result. */
      readonly cut: boolean
      readonly executeMs: number
      readonly profile?: readonly NodeProfile[] | undefined
      /** Bytes behind the last block: a copy, which nobody gives back. */
      readonly tail?: Uint8Array | undefined
    }
  | { readonly kind: 'error'; readonly queryId: number; readonly error: ErrorRecord }
  | OfferFragment
  | { readonly kind: 'dismissed'; readonly queryId: number }
