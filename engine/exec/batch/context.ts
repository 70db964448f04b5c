// ExecContext: what all operators of one query share on a thread: memory, WebAssembly kernels and the compiler that
// generates kernels for this query, table snapshots, and callbacks that check for cancellation and release resources
// when the query ends.

import type { Jit } from '../../kernels/jit/jit.js'
import type { Kernels } from '../../kernels/load.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Evaluation } from '../../sql/functions/registry/evaluate.js'
import type { PartAccess } from '../../storage/part/part-access.js'
import type { TemporaryFiles } from '../../storage/part/temporary-files.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { Parallelism } from '../parallel/coordinator.js'
import type { Profile } from '../run/profile.js'
import type { NewestInMemtables } from '../scan/newest-in-memtable.js'
import type { ScanProgress } from '../scan/scan-progress.js'
import type { QueryArena } from './query-arena.js'
import type { QueryState } from './query-state.js'
import type { SymbolStrings, Symbols } from './symbols.js'
import type { Operator } from './vector.js'

/**
 * Rows that a plan of kind 'working' reads: those of the previous round of WITH RECURSIVE, or of a partition in a
 * temporary file.
 */
export interface WorkingRows {
  readonly rows: number
  /** The order of the rows does not matter. */
  readonly unordered: boolean
  /** Absent unless a file holds these rows and no others. */
  readonly stored?: StoredRows | undefined
  isAscending(index: number): boolean
  /** Reads the rows from the first on. */
  read(context: ExecContext): Operator
}

/** Rows in a file. */
interface StoredRows {
  readonly bytes: number
  /** The rows from number `from` on and before `to`. */
  between(from: number, to: number): WorkingRows
}

export interface ExecContext {
  readonly memory: SharedMemory
  readonly arena: QueryArena
  /** Shared by all operators of the query on this thread. */
  readonly state: QueryState
  readonly kernels: Kernels
  readonly partAccess: PartAccess
  /** What the thread remembers of memtables; if absent, their rows are read. */
  readonly newest?: NewestInMemtables | undefined
  /** Table snapshots, in the order of Query.tables. */
  readonly snapshots: readonly TableSnapshot[]
  readonly evaluation: Evaluation
  readonly strings: SymbolStrings
  readonly symbols: Symbols
  /** Compiles kernels for this query; null when the query runs without generated kernels. */
  readonly jit: Jit | null
  /** Maximal rows of a batch where the input is known to be short; batchRowsMax if absent. */
  readonly rowsMax?: number | undefined
  /** Maximal rows of a batch of a scan whose rows go straight to the client; batchRowsMax if absent. */
  readonly streamRows?: number | undefined
  /** Maximal rows of a batch that a join returns: smaller for nested joins; batchRowsMax if absent. */
  readonly joinRows?: number | undefined
  /** By the id of the plan that reads them. */
  readonly working?: ReadonlyMap<number, WorkingRows> | undefined
  /** Within a partition of an operator that has spilled: how often its rows were partitioned; 0 if absent. */
  readonly spillLevel?: number | undefined
  /**
   * Within an operator that begins again with temporary files when memory is short, also when it has returned rows: its
   * rows come in the order that they have then, the order of their first rows in the input.
   */
  readonly keepsOrder?: boolean | undefined
  /** Of that operator. */
  readonly order?: InputOrder | undefined
  /** Collects the statistics of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined
  /** Counts the rows that scans read; absent where the caller counts them, or nobody asks. */
  readonly progress?: ScanProgress | undefined
  /** Files for spilling; if absent, the query cannot spill. */
  readonly temporary?: TemporaryFiles | undefined
  /** Access to other query threads that can run fragments of the plan; if absent, the query runs on one thread. */
  readonly parallelism?: Parallelism | undefined
  /** Throws when the query is cancelled or past its deadline. Called within work that may take long for one batch. */
  alive(): void
  /** Registers a function that is called once when the query ends, for whatever reason. */
  onEnd(release: () => void): void
}

/** Whether the rows of an operator's inputs come in another order than with more memory, or with less. */
export class InputOrder {
  readonly #outer: InputOrder | undefined
  isChanged = false

  /** `outer`: that of the operator whose input this operator belongs to. */
  constructor(outer: InputOrder | undefined) {
    this.#outer = outer
  }

  change(): void {
    this.isChanged = true
    this.#outer?.change()
  }
}
