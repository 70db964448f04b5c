// QueryHost: what a query thread provides to its queries, such as memory, WebAssembly kernels, clock and access to
// parts (Parquet files). queryContext() creates the ExecContext that the operators of one query share on this thread.

import type { Clock } from '../../base/clock.js'
import { TimeoutError } from '../../base/errors.js'
import type { Jit } from '../../kernels/jit/jit.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { createRandom } from '../../sql/functions/random-generator.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { PartAccess } from '../../storage/part/part-access.js'
import { filesOfQuery, type TemporaryFiles } from '../../storage/part/temporary-files.js'
import type { ExecContext } from '../batch/context.js'
import { QueryArena } from '../batch/query-arena.js'
import { newQueryState } from '../batch/query-state.js'
import { SymbolStrings, Symbols } from '../batch/symbols.js'
import type { NewestInMemtables } from '../scan/newest-in-memtable.js'
import type { FromQueryThread, RunQuery } from './messages.js'
import { Profile } from './profile.js'

/** The other query threads, as far as a query needs them. */
interface PeerThreads {
  readonly threadId: number
  /** Number of other query threads. */
  readonly workers: number
  /** For tests; must be the same on all threads. */
  readonly chunkRowsMin?: number
  /** For tests as well. */
  readonly spreadRowsMax?: number
  /** A fragment invites workers after this many milliseconds of work. */
  readonly inviteAfterMs: number
  /** A fragment with less than this much work left runs alone. */
  readonly inviteForMs: number
  readonly wake: (threadId: number) => void
}

export interface QueryHost {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
  readonly partAccess: PartAccess
  readonly jit: Jit
  readonly newest: NewestInMemtables
  readonly clock: Clock
  readonly post: (message: FromQueryThread) => void
  /** Messages cost nothing, since they reach the reader by a call. */
  readonly isInline?: boolean
  /** Called with the query's id before each slice of its work, and with 0 after it. */
  readonly working?: (queryId: number) => void
  /** Throws when the query is to end; called within a slice. */
  readonly check?: (queryId: number) => void
  /**
   * Whether values kept by queries fill the thread's JavaScript heap; called between slices. `canSpill`: whether a
   * query could keep fewer values if the heap is crowded.
   */
  readonly heapState?: (canSpill: () => boolean) => 'free' | 'crowded' | 'full'
  /** If absent, queries that outgrow their memory fail. */
  readonly temporary?: TemporaryFiles
  /** Limit of the bytes that one query may hold in temporary files; 0 or absent: none. */
  readonly spillBytesMax?: number
  /** If absent, every query runs on one thread. */
  readonly threads?: PeerThreads
}

/**
 * Rows of a batch of a query that only reads, filters and computes: small, so that little of a batch is left when its
 * client stops reading.
 */
const streamRows = 4096

function isStream({ encoding, query }: RunQuery): boolean {
  if (encoding.kind === 'packed' || encoding.kind === 'count' || query.subqueries.length > 0) return false
  let { plan } = query
  while (plan.kind === 'filter' || plan.kind === 'project' || plan.kind === 'limit') plan = plan.input
  return plan.kind === 'scan'
}

/** The clock within a statement; it stands still if the system clock is set back. */
function neverBack(clock: Clock, fromMicros: bigint): () => bigint {
  let last = fromMicros
  return () => {
    const now = BigInt(clock.nowMicros())
    if (now > last) last = now
    return last
  }
}

/** The creator of the context sets these later. */
type SetLater = 'parallelism' | 'progress'
export type OwnContext = Omit<ExecContext, SetLater> & { -readonly [Member in SetLater]: ExecContext[Member] }

/**
 * A context for a single thread. All members exist from the beginning, because operators copy the context with other
 * values: adding a member to a copy costs V8 a microsecond or more.
 */
export function queryContext(
  host: QueryHost,
  request: RunQuery,
  subqueries: readonly SubqueryResult[],
  nowMicros: bigint,
  onEnd: ExecContext['onEnd'],
): OwnContext {
  const { memory, clock } = host
  const { queryId, timeoutMs, spentMs = 0, memoryMax } = request
  const arena = new QueryArena(memory, host.allocator, memoryMax)
  const deadlineMs = timeoutMs > 0 ? clock.monotonicMs() + timeoutMs - spentMs : Number.POSITIVE_INFINITY
  const alive = (): void => {
    host.check?.(queryId)
    if (timeoutMs > 0 && clock.monotonicMs() > deadlineMs) throw new TimeoutError(timeoutMs)
  }
  const profile = request.profile === undefined ? undefined : new Profile(request.profile, request.query)
  return {
    memory,
    arena,
    state: newQueryState(arena, request.spills),
    kernels: host.kernels,
    partAccess: host.partAccess,
    newest: host.newest,
    snapshots: request.snapshots,
    evaluation: {
      nowMicros,
      clockMicros: neverBack(clock, nowMicros),
      random: createRandom(nowMicros, BigInt(request.queryId)),
      user: '',
      alive,
      subqueries,
    },
    alive,
    strings: new SymbolStrings(memory),
    symbols: new Symbols(arena),
    jit: request.jit ? (profile?.jit(host.jit) ?? host.jit) : null,
    rowsMax: undefined,
    streamRows: isStream(request) ? streamRows : undefined,
    joinRows: undefined,
    working: undefined,
    spillLevel: undefined,
    profile,
    temporary: host.temporary === undefined ? undefined : filesOfQuery(host.temporary, host.spillBytesMax ?? 0),
    parallelism: undefined,
    progress: undefined,
    onEnd,
  }
}
