// What the operators of one query share: memory, kernels, snapshots, and what to do at its end.

import type { Jit } from '../../kernels/jit/jit.js'
import type { Kernels } from '../../kernels/load.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Evaluation } from '../../sql/functions/registry/evaluate.js'
import type { PartAccess } from '../../storage/part/part-access.js'
import type { TemporaryFiles } from '../../storage/part/temporary-files.js'
import type { TableSnapshot } from '../../storage/schema/schema.js'
import type { Sharing } from '../parallel/share.js'
import type { Profile } from '../run/profile.js'
import type { QuerySpace } from './query-space.js'
import type { QueryState } from './query-state.js'
import type { RowStore } from './row-store.js'
import type { Symbols, SymbolTexts } from './symbols.js'

export interface ExecContext {
  readonly memory: SharedMemory
  readonly space: QuerySpace
  /** The same one for all operators of the query on this thread. */
  readonly state: QueryState
  readonly kernels: Kernels
  readonly partAccess: PartAccess
  /** One per entry of Query.tables. */
  readonly snapshots: readonly TableSnapshot[]
  readonly evaluation: Evaluation
  readonly texts: SymbolTexts
  readonly symbols: Symbols
  /** Generated kernels; null when the query must go without. */
  readonly jit: Jit | null
  /** Rows of a batch at most, where the input is known to be short; else batchRowsMax. */
  readonly rowsMax?: number | undefined
  /** Rows of a batch of a scan whose rows go straight to a reader; else batchRowsMax. */
  readonly streamRows?: number | undefined
  /** Rows of a batch that a join gives at most: fewer where many joins stand on each other; else batchRowsMax. */
  readonly joinRows?: number | undefined
  /** Within a WITH RECURSIVE: rows of the round before, by the plan's number. */
  readonly working?: ReadonlyMap<number, RowStore> | undefined
  /** Of EXPLAIN. */
  readonly profile?: Profile | undefined
  /** For what outgrows the memory; none where it is missing. */
  readonly temporary?: TemporaryFiles | undefined
  /** Other threads that may help; none where it is missing. */
  readonly sharing?: Sharing | undefined
  /** Throws when the query is over; asked within what may take long for a single batch. */
  alive(): void
  /** Called once when the query ends, however it ends. */
  onEnd(release: () => void): void
}
