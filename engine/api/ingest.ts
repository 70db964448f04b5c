// Types of the engine's API for ingestion: requests that contain line protocol or QWP, a table's schema as those who
// send rows see it, the decoding of CSV files, and bulk loads.

import type { CsvBatch, CsvReject, CsvShape } from '../csv/shape.js'
import type { LoadedParts, PackedRows, Receipt } from '../storage/jobs/messages.js'
import type { Enumeration, PartitionUnit } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { KafkaPosition } from '../wal/source-position.js'

/** Unit of the timestamps of a line-protocol request; auto: that of each timestamp is guessed from its size. */
export type LinePrecision = 'n' | 'u' | 'ms' | 's' | 'm' | 'h' | 'auto'

/**
 * Source position of a request's lines, for a sender that can send them again. It is stored in the log frame of their
 * rows, so that a crash preserves both or neither, and it is kept when the log is trimmed. A request is stored only
 * if `previous` equals the stream's stored offset (-1: none); otherwise nothing is stored and the receipt has
 * `existed`. A request without rows advances the offset, too. Engine.positions() returns the stored offsets.
 *
 * Path: packSourcePosition (storage/manifest/source-positions.ts) before the lines in the ingest ring,
 * LineProgress.sourcePosition on the writer, commitRows, wal/source-position.ts in the frame, SourcePositions during
 * replay, a manifest record when the log is trimmed.
 */
export interface LineSourcePosition extends KafkaPosition {
  readonly previous: number
}

export interface LineRequest {
  /**
   * Whole lines; the last one may lack its newline. Or QWP messages, one a block. Blocks are copied before `taken`
   * resolves.
   */
  readonly blocks: readonly Uint8Array[]
  /** Default: lines. QWP requests are atomic; their messages refer to symbols of earlier ones of the connection. */
  readonly format?: 'lines' | 'qwp'
  readonly precision: LinePrecision
  /**
   * true: one bad line rejects the whole request. false: rows before a bad line are stored, or bad lines are
   * skipped.
   */
  readonly atomic: boolean
  /** Continue after a bad line; with `atomic`, to report all of them in the receipt. */
  readonly skipBadLines: boolean
  /** Only with `atomic` and `skipBadLines`: skips bad lines and stores the others together. */
  readonly partial?: boolean
  /** Shown in sys.connections and sys.rejects. */
  readonly connectionId: number
  /** Only with `atomic`. */
  readonly sourcePosition?: LineSourcePosition
}

export interface LineTicket {
  /**
   * Resolves when the writer has accepted the bytes: the only flow control. Rejects when the server cannot accept
   * more.
   */
  readonly taken: Promise<void>
  /** Resolves when the rows are as durable as the commit mode requires. A rejected request sets Receipt.error. */
  readonly receipt: Promise<Receipt>
}

/** A table's schema as producers of rows see it. */
export interface TableShape {
  readonly id: number
  readonly name: string
  /** `filled`: the column has a default. */
  readonly columns: readonly {
    readonly id: number
    readonly name: string
    readonly type: DataType
    /** The type that PostgreSQL clients see, where it is more specific. */
    readonly wanted: DataType
    /** The only strings that the column accepts. */
    readonly enumeration?: Enumeration | undefined
    readonly filled: boolean
    /** Sequence name of an auto-increment column, for nextval(). */
    readonly counter: string | null
  }[]
  /** Set if it is a view, which takes no rows. */
  readonly view: 'materialized view' | 'live view' | null
  /** Name of the designated timestamp; null: none. */
  readonly timestamp: string | null
  readonly partitionBy: PartitionUnit
  /** Rows with the same keys replace each other. */
  readonly dedup: boolean
  /** New rows are compared with stored ones (DEDUP, PRIMARY KEY .. ENFORCED): they all pass through the writer. */
  readonly comparesRows: boolean
  /** Names of the declared keys. */
  readonly keys: readonly string[]
}

/** Decodes one CSV file on a query thread, block by block. */
export interface CsvDecoding {
  /** One call at a time. */
  decode(block: Uint8Array, last: boolean): Promise<readonly CsvBatch[]>
  /** Call once, at the end. */
  close(): void
}

/** Writes a file of any size as parts of a table; its rows are invisible until commit. */
export interface CsvLoad {
  /** Copies the bytes; resolves when there is room for more. Rejects with the error that ended the load. */
  write(chunk: Uint8Array): Promise<void>
  /** Adds decoded rows instead of chunks. */
  rows(rows: PackedRows): Promise<void>
  /** Ends the input; resolves when all rows are in parts. */
  end(): Promise<void>
  /** Adds the rows to the table as one transaction, which is durable when this resolves. */
  commit(): Promise<Receipt>
  /** The parts with the rows, instead of `commit`. From then on they belong to the writer, whatever the outcome. */
  handOver(): LoadedParts
  /** Releases all resources; call at the end, after success or failure. */
  close(): Promise<void>
}

export interface LoadOptions {
  readonly tableId: number
  readonly shape: CsvShape
  /** Column ids of the table, by field. */
  readonly columnIds: readonly number[]
  readonly blockBytes: number
  /** Called with the content of each block, in file order; throwing ends the load. */
  readonly onDecoded: (rows: number, rejects: readonly CsvReject[]) => void
}
