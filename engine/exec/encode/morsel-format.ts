// Output formats whose morsels several query threads can encode: a format turns the rows of a morsel into blocks of bytes
// and a note of what the end of the output must know of them.
//
// A new format implements `MorselFormat`; the coordinator is parallel-encode.ts.

import type { PlanColumn } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import type { Parallelism } from '../parallel/coordinator.js'
import type { DivisibleRows, MorselSource } from './morsel-source.js'

/** Bytes in shared memory. */
export interface EncodedBlock {
  readonly address: number
  readonly bytes: number
  /** Rows that are complete with this block. */
  readonly rows: number
}

export interface EncodedMorsel {
  readonly blocks: readonly EncodedBlock[]
  /** What the end of the output must know, as JSON; empty: nothing. */
  readonly note: string
}

/** Encodes one morsel. */
export interface MorselEncoder {
  /** Rows encoded so far. */
  readonly rows: number
  /** No batch is half encoded: the source may free what it can read again. */
  readonly betweenBatches: boolean
  /** Encodes some rows; false: the morsel has no more. */
  step(source: MorselSource): boolean
  end(): EncodedMorsel
}

interface MorselSpaces {
  /** Its space lives as long as the morsel is encoded. */
  readonly work: ExecContext
  /** Lives until the blocks are written. */
  readonly kept: QuerySpace
}

/** What the coordinator knows when it cuts. */
export interface Measured {
  readonly parallelism: Parallelism
  /** Rows of the result encoded before the cut, 0 when there were none, and how many bytes they became. */
  readonly headRows: number
  readonly headBytes: number
  /** Time spent on producing these rows, without encoding them. */
  readonly headMs: number
  /** The share of the source's rows that pass; 1 where it was not asked for. */
  readonly selectivity: number
}

export interface MorselFormat {
  /** Encoded morsels that a worker holds until the coordinator takes them. */
  readonly heldMax: number
  readonly cut: 'evenly' | 'at pages'
  /** What is measured before the cut: the first rows, which leave at once, or the share of rows that pass. */
  readonly measures: 'head' | 'selectivity'
  /** A morsel that was written in part can be encoded again without its first rows. */
  readonly resumes: boolean
  /** Stored pieces are worth taking even without other threads. */
  readonly takesStored: boolean
  /** Whether rows are worth dividing. */
  divides(rows: DivisibleRows, parallelism: Parallelism): boolean
  /** Rows of the source in a morsel; null: they stay on this thread. */
  morselRows(rows: DivisibleRows, measured: Measured): number | null
  open(spaces: MorselSpaces, columns: readonly PlanColumn[], skippedRows: number): MorselEncoder
}

/** Where the coordinator's output goes. */
export interface MorselSink {
  /** An encoder that writes where the next bytes belong; null: the format needs whole morsels. */
  readonly direct: ((skippedRows: number) => MorselEncoder) | null
  /** Bytes written by rows so far, by whichever way. */
  readonly bytes: () => number
  readonly certain: () => void
  /** Called once a morsel, before its blocks. */
  readonly note: (note: string) => void
  /** Blocks come in order, one at a time. */
  readonly block: (block: EncodedBlock) => void
}
