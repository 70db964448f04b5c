// SourceShape and MorselSource: the interfaces for dividing a query result into morsels (ranges of its rows), whose
// rows several threads produce in parallel and the coordinator writes in order.
//
// There is one SourceShape for each kind of plan that can be divided: rows in stored order (source-table.ts), rows that
// are filtered or merged by time (source-time.ts), and sorted rows (source-sorted.ts). The coordinator opens the plan
// and cuts the result into morsels; each worker thread opens the same cut, and can produce the rows of any morsel. The
// rows of a morsel depend only on the snapshot and the cut, so any thread can produce them again.
//
// A new SourceShape must be listed in parallel-encode.ts.

import type { Plan } from '../../sql/plan/plan.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { ExecContext } from '../batch/context.js'
import type { Operator, Pull, Vector } from '../batch/vector.js'
import type { FragmentDetails } from '../parallel/coordinator.js'
import type { RowWindow } from './encoder.js'

/** The rows of a divided result, as read by one thread. */
export interface MorselSource {
  readonly morsels: number
  /** Rows that a text format encodes before the query's state is checked again. */
  readonly stepRows: number
  seek(morsel: number): void
  /** The next batch of the morsel; null after the last one. */
  take(): Pull
  /** The next rows as a stored page of a part, if there is one with at most `rowsMax` rows; null: use take(). */
  stored?(rowsMax: number): StoredRows | null
  /** Frees what the last batch was read from. */
  release(): void
  /** Between two batches of a morsel: frees what can be read again. */
  goIdle?(): void
}

/** A page of a part that a format may copy instead of decoding it. */
export interface StoredRows {
  readonly rows: number
  column(index: number): StoredColumn
  /** All columns were taken: the source continues after the page. */
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
  /** The table that the source scans; null: its rows were read before. */
  readonly scanned: TableSnapshot | null
  /** Whether some rows are stored pages worth copying. */
  readonly hasStoredPages: boolean
  /** Minimal number of morsels that keeps all threads busy; 1: the format decides alone. */
  readonly morselsWanted: number
  /** Set when filters and expressions are applied to the rows; null: a morsel has exactly the rows it was cut for. */
  readonly computed: ComputedRows | null
  /** Approximate number of rows of the source that head() reads. */
  readonly headRows: number
  /** The first rows, which the coordinator encodes before it divides the others. */
  head(): Operator
  /**
   * Cuts the rows that head() has not read into morsels of about `rows`. undefined is possible for computed rows only:
   * use undivided().
   */
  divide(rows: number, cut: 'evenly' | 'at pages'): MorselCut | undefined
}

export interface ComputedRows {
  /** Samples the source in steps: the fraction of rows that pass, once it is known. */
  selectivity(): number | 'working' | 'waiting'
  /** The rows that head() has not read, on this thread alone. */
  undivided(): Operator
}

/** Called when the rows are ready to be divided; returns undefined when the format does not divide them. */
type Divide = (rows: DivisibleRows) => Operator | undefined

interface OpenOptions {
  readonly context: ExecContext
  readonly plan: Plan
  readonly window: RowWindow
  /** Called as soon as only an error could precede the first row, possibly before parts are opened. */
  readonly certain: () => void
  /** Fewer rows are not worth dividing. */
  readonly smallRows: number
}

export interface SourceShape {
  /** On the coordinator; undefined when the plan has another shape, or its rows are not divided. */
  open(options: OpenOptions, divide: Divide): Operator | undefined
  /** On a worker; undefined when the details belong to another shape, or this thread cannot help. */
  attach(context: ExecContext, plan: Plan, details: FragmentDetails): MorselSource | undefined
}
