// MorselFormat: the interface of output formats that several query threads can encode in parallel. A format encodes the
// rows of a morsel (a range of the result's rows) to blocks of bytes, and returns with them what has to be known to
// finish the output, such as the row group's description in a Parquet footer.
//
// The coordinator, which writes the blocks in order, is parallel-encode.ts.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import type { Parallelism } from '../parallel/coordinator.js'
import type { DivisibleRows, MorselSource } from './morsel-source.js'

/** Bytes in shared memory. */
export interface EncodedBlock {
  readonly address: number
  readonly bytes: number
  /** Rows that end in this block. */
  readonly rows: number
}

export interface EncodedMorsel {
  readonly blocks: readonly EncodedBlock[]
  /** What the end of the output must know, as JSON; empty if nothing. */
  readonly note: string
}

/** Encodes one morsel. */
export interface MorselEncoder {
  /** Rows encoded so far. */
  readonly rows: number
  /** True when no batch is partly encoded, so that the source may free what it can read again. */
  readonly betweenBatches: boolean
  /** Encodes some rows; false when the morsel has no more. */
  step(source: MorselSource): boolean | 'waiting'
  end(): EncodedMorsel
}

interface MorselArenas {
  /** A context whose arena lives as long as the morsel is encoded. */
  readonly work: ExecContext
  /** An arena that lives until the blocks are written. */
  readonly retained: QueryArena
}

/** What the coordinator has measured before it cuts the rows. */
export interface Measured {
  readonly parallelism: Parallelism
  /** Rows encoded before the cut (0 if none), and their bytes. */
  readonly headRows: number
  readonly headBytes: number
  /** Time to produce these rows, without encoding them. */
  readonly headMs: number
  /** Fraction of the source's rows that pass the filter; 1 if it was not measured. */
  readonly selectivity: number
}

export interface MorselFormat {
  /** Encoded morsels that a worker holds until the coordinator takes them. */
  readonly heldMax: number
  readonly cut: 'evenly' | 'at pages'
  /**
   * What is measured before the cut: 'head' encodes the first rows, which are sent at once; 'selectivity' samples the
   * filter.
   */
  readonly measures: 'head' | 'selectivity'
  /** Whether a partly written morsel can be encoded again without its first rows. */
  readonly resumes: boolean
  /** Whether copying stored pages pays off even without other threads. */
  readonly takesStored: boolean
  /** Whether there are enough rows to divide. */
  divides(rows: DivisibleRows, parallelism: Parallelism): boolean
  /** Rows of the source in a morsel; null: the rows stay on this thread. */
  morselRows(rows: DivisibleRows, measured: Measured): number | null
  open(arenas: MorselArenas, columns: readonly PlanColumn[], skippedRows: number): MorselEncoder
}

/** Where the coordinator writes its output. */
export interface MorselSink {
  /** An encoder that writes directly to the output; null: the format needs whole morsels. */
  readonly direct: ((skippedRows: number) => MorselEncoder) | null
  /** Bytes written for rows so far. */
  readonly bytes: () => number
  readonly certain: () => void
  /** Called once for each morsel, before its blocks. */
  readonly note: (note: string) => void
  /** Called for the blocks in order, one at a time. */
  readonly block: (block: EncodedBlock) => void
}
