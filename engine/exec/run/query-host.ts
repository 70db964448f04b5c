// What a query thread gives its queries, and the context that the operators of one query share.

import type { Clock } from '../../base/clock.js'
import { TimeoutError } from '../../base/errors.js'
import type { Jit } from '../../kernels/jit/jit.js'
import type { Kernels } from '../../kernels/load.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { createRandom } from '../../sql/functions/random-generator.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { PartAccess } from '../../storage/part/part-access.js'
import type { TemporaryFiles } from '../../storage/part/temporary-files.js'
import type { ExecContext } from '../batch/context.js'
import { QuerySpace } from '../batch/query-space.js'
import { newQueryState } from '../batch/query-state.js'
import { Symbols, SymbolTexts } from '../batch/symbols.js'
import type { FromQueryThread, RunQuery } from './messages.js'
import { Profile } from './profile.js'

/** The other query threads, as far as a query can have them help. */
interface PeerThreads {
  readonly threadId: number
  /** How many there are besides this one. */
  readonly workers: number
  /** For tests; the same on all threads. */
  readonly chunkRowsMin?: number
  /** As well. */
  readonly spreadRowsMax?: number
  /** Milliseconds of work after which a fragment calls for help. */
  readonly inviteAfterMs: number
  /** With less work than this before it a fragment goes on alone. */
  readonly inviteForMs: number
  readonly wake: (threadId: number) => void
}

export interface QueryHost {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly kernels: Kernels
  readonly partAccess: PartAccess
  readonly jit: Jit
  readonly clock: Clock
  readonly post: (message: FromQueryThread) => void
  /** Hears the number of the query before every slice of work at it, and 0 behind it. */
  readonly working?: (queryId: number) => void
  /** Throws when the query is to end: asked in the middle of a slice. */
  readonly check?: (queryId: number) => void
  /** Whether values that queries keep fill the thread's heap of JavaScript; asked between slices of work. */
  readonly heapIsFull?: () => boolean
  /** Missing: what outgrows the memory of queries is an error. */
  readonly temporary?: TemporaryFiles
  /** Missing: every query runs on its thread alone. */
  readonly threads?: PeerThreads
}

/** Rows of a batch of a query that only reads, filters and computes: few are left of one when its reader stops. */
const streamRows = 4096

function isStream({ encoding, query }: RunQuery): boolean {
  if (encoding.kind === 'packed' || encoding.kind === 'count' || query.subqueries.length > 0) return false
  let { plan } = query
  while (plan.kind === 'filter' || plan.kind === 'project' || plan.kind === 'limit') plan = plan.input
  return plan.kind === 'scan'
}

/** The clock within a statement: where it was set back meanwhile, it waits. */
function neverBack(clock: Clock, fromMicros: bigint): () => bigint {
  let last = fromMicros
  return () => {
    const now = BigInt(clock.nowMicros())
    if (now > last) last = now
    return last
  }
}

/** Who made it may let it share. */
export type OwnContext = Omit<ExecContext, 'parallelism'> & { parallelism: ExecContext['parallelism'] }

/**
 * A context that shares nothing yet. All its members are there from the beginning, since operators copy it with other
 * values: a member that a copied object did not have costs V8 a microsecond and more, a known one nothing.
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
  const space = new QuerySpace(memory, host.allocator, memoryMax)
  const deadlineMs = timeoutMs > 0 ? clock.monotonicMs() + timeoutMs - spentMs : Number.POSITIVE_INFINITY
  const alive = (): void => {
    host.check?.(queryId)
    if (timeoutMs > 0 && clock.monotonicMs() > deadlineMs) throw new TimeoutError(timeoutMs)
  }
  const profile = request.profile === undefined ? undefined : new Profile(request.profile, request.query)
  return {
    memory,
    space,
    state: newQueryState(space),
    kernels: host.kernels,
    partAccess: host.partAccess,
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
    texts: new SymbolTexts(memory),
    symbols: new Symbols(space),
    jit: request.jit ? (profile?.jit(host.jit) ?? host.jit) : null,
    rowsMax: undefined,
    streamRows: isStream(request) ? streamRows : undefined,
    joinRows: undefined,
    working: undefined,
    profile,
    temporary: host.temporary,
    parallelism: undefined,
    onEnd,
  }
}
