// Rows on their way in: lines, and files of comma-separated values.

import type { CsvBatch, CsvReject, CsvShape } from '../csv/shape.js'
import type { PackedRows, Receipt } from '../storage/jobs/messages.js'
import type { Enumeration, PartitionUnit } from '../storage/schema/schema.js'
import type { DataType } from '../types/column-types.js'
import type { KafkaOrigin as KafkaPosition } from '../wal/origin.js'

/** Unit of the timestamps of a line-protocol request. */
export type LinePrecision = 'n' | 'u' | 'ms' | 's' | 'm' | 'h'

/**
 * Where the lines of a request come from, for a sender that can send them again. It is stored in the log frame of their
 * rows, so both survive a crash or neither does, and it is kept when the log is trimmed. The request is stored only when
 * `previous` is the stream's stored offset (-1: nothing is stored of it yet); otherwise nothing is, and the receipt says
 * `existed`. A request without rows moves the offset, too. Engine.positions() tells what is stored.
 *
 * On its way: packOrigin (storage/manifest/origins.ts) before the lines in the ingest ring, LineProgress.origin on the writer,
 * commitRows, wal/origin.ts in the frame, Origins at replay, a manifest record at the log's trim.
 */
export interface LineOrigin extends KafkaPosition {
  readonly previous: number
}

export interface LineRequest {
  /** Whole lines; the last one may lack its newline. Blocks are copied before the call's `taken` resolves. */
  readonly blocks: readonly Uint8Array[]
  readonly precision: LinePrecision
  /** true: one bad line and nothing is stored. false: rows before the bad line stay, or bad lines are skipped. */
  readonly atomic: boolean
  /** Go on behind a bad line; with atomic, to name all of them in the receipt. */
  readonly skipBadLines: boolean
  /** Only with `atomic` and `skipBadLines`: bad lines are left out, and the others are stored together. */
  readonly partial?: boolean
  /** Shown in sys.connections and sys.rejects. */
  readonly connectionId: number
  /** Only with `atomic`. */
  readonly origin?: LineOrigin
}

export interface LineTicket {
  /** Resolves when the writer had room for the bytes: the only flow control. Rejects when the server cannot take more. */
  readonly taken: Promise<void>
  /** Resolves when the rows are as durable as the commit mode says. Receipt.error tells of a refused request. */
  readonly receipt: Promise<Receipt>
}

/** A table as those who bring rows to it see it. */
export interface TableShape {
  readonly id: number
  readonly name: string
  /** `filled`: it has a default. */
  readonly columns: readonly {
    readonly id: number
    readonly name: string
    readonly type: DataType
    /** What clients of PostgreSQL know it by, where that is more. */
    readonly wanted: DataType
    /** The only texts that it takes. */
    readonly enumeration?: Enumeration | undefined
    readonly filled: boolean
    /** Of a counted column, as nextval() names it. */
    readonly counter: string | null
  }[]
  /** Name of the designated timestamp; null without one. */
  readonly timestamp: string | null
  readonly partitionBy: PartitionUnit
  /** Rows with the same keys replace each other. */
  readonly dedup: boolean
  /** Names of those that were declared. */
  readonly keys: readonly string[]
}

/** Decodes one CSV file on a query thread, block by block. */
export interface CsvDecoding {
  /** One call at a time. */
  decode(block: Uint8Array, last: boolean): Promise<readonly CsvBatch[]>
  /** Call once, at the end. */
  close(): void
}

/** A file that becomes parts of a table, however large it is. Nothing of it is in the table before it is committed. */
export interface CsvLoad {
  /** The bytes are copied; resolves when there is room for more. Rejects with what ended the load. */
  write(chunk: Uint8Array): Promise<void>
  /** Rows that need no decoding, instead of chunks. */
  rows(rows: PackedRows): Promise<void>
  /** Nothing follows; resolves when all rows are in parts. */
  end(): Promise<void>
  /** The rows become the table's, as one transaction that is durable when this resolves. */
  commit(): Promise<Receipt>
  /** Gives everything back; call at the end, whatever it was. */
  close(): Promise<void>
}

export interface LoadOptions {
  readonly tableId: number
  readonly shape: CsvShape
  /** Of the table, by field. */
  readonly columnIds: readonly number[]
  readonly blockBytes: number
  /** What a block held, in the order of the file; an error that it throws ends the load. */
  readonly onDecoded: (rows: number, rejects: readonly CsvReject[]) => void
}
