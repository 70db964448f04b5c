// Sources of morsels: results whose rows several query threads can produce, morsel by morsel, for one ordered output.
//
// A source shape (`SourceShape`) recognises the plans that it can divide. The coordinator opens the plan and cuts it into
// morsels; each worker attaches to the cut and produces the rows of any morsel on its own. A morsel's rows depend on the
// snapshot and the cut alone, never on the thread, so a morsel can be produced again.
//
// A new shape implements `SourceShape` and is listed in parallel-encode.ts.

import type { Plan } from '../../sql/plan/plan.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import type { ExecContext } from '../batch/context.js'
import type { Operator, Pull, Vector } from '../batch/vector.js'
import type { FragmentDetails } from '../parallel/coordinator.js'
import type { RowWindow } from './encoder.js'

/** The rows of a divided result as one thread reads them. */
export interface MorselSource {
  readonly morsels: number
  /** Rows that a text format encodes between two looks at the query's state. */
  readonly stepRows: number
  seek(morsel: number): void
  /** The next batch of the morsel; null after the last one. */
  take(): Pull
  /** The next rows as a whole stored piece, if they are one of at most `rowsMax` rows; null: take() them. */
  stored?(rowsMax: number): StoredRows | null
  /** Frees what the last batch was read from. */
  release(): void
  /** Between two batches of a morsel: frees what can be read again. */
  rest?(): void
}

/** A piece of a part whose pages a format may copy instead of decoding them. */
export interface StoredRows {
  readonly rows: number
  column(index: number): StoredColumn
  /** All columns were taken: the source goes on behind the piece. */
  passed(): void
}

export interface StoredColumn {
  /** undefined: the page has to be decoded. */
  readonly page: StoredPage | undefined
  /** Address of the table's symbol dictionary. */
  readonly dictionary: number
  readonly vector: () => Vector
}

/** The cut of a source, for this thread and for workers. */
export interface MorselCut {
  readonly source: MorselSource
  readonly details: () => FragmentDetails
}

/** An opened result that the coordinator may divide. */
export interface DivisibleRows {
  /** Rows of the source, before filters. */
  readonly rows: number
  /** Some of them are stored pieces worth copying as they are. */
  readonly hasStoredPages: boolean
  /** Fewer morsels would leave threads without work; 1: the format decides alone. */
  readonly morselsWanted: number
  /** Filters and expressions run over the rows; null: a morsel has exactly the rows it was cut for. */
  readonly computed: ComputedRows | null
  /** About how many rows of the source head() reads. */
  readonly headRows: number
  /** The first rows, which the coordinator encodes before it divides the others. */
  head(): Operator
  /** Cuts the rows that head() has not read into morsels of about `rows`; undefined: only computed rows, see undivided(). */
  divide(rows: number, cut: 'evenly' | 'at pages'): MorselCut | undefined
}

export interface ComputedRows {
  /** Samples the source in steps: the share of rows that pass, null while it is not known. */
  selectivity(): number | null
  /** The rows that head() has not read, on this thread alone. */
  undivided(): Operator
}

/** Called once the rows are ready to be divided; undefined: the format does not divide them. */
type Divide = (rows: DivisibleRows) => Operator | undefined

interface OpenOptions {
  readonly context: ExecContext
  readonly plan: Plan
  readonly window: RowWindow
  /** Called when only damage can come between now and the first row, perhaps before parts are opened. */
  readonly certain: () => void
  /** Rows beyond these are worth dividing. */
  readonly smallRows: number
}

export interface SourceShape {
  /** On the coordinator; undefined: the plan has another shape, or its rows are not divided. */
  open(options: OpenOptions, divide: Divide): Operator | undefined
  /** On a worker; undefined: the details belong to another shape, or this thread cannot help. */
  attach(context: ExecContext, plan: Plan, details: FragmentDetails): MorselSource | undefined
}
