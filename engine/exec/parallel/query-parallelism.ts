// QueryParallelism: gives a query access to other query threads (the interface Parallelism). It allocates the work
// queues in shared memory, which may outlive the query, and asks the main thread to invite other threads to the work.

import { assert } from '../../base/assert.js'
import { budgets } from '../../memory/budgets.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Plan } from '../../sql/plan/plan.js'
import type { QueryArena } from '../batch/query-arena.js'
import type { RunQuery } from '../run/messages.js'
import type { QueryHost } from '../run/query-host.js'
import { chunkRowsUsual, type FragmentDetails, type Parallelism, planNumbers } from './coordinator.js'

export interface ParallelQuery {
  readonly request: RunQuery
  /** Results of the sub-queries that have run. */
  readonly subqueries: readonly SubqueryResult[]
  readonly nowMicros: bigint
  readonly arena: QueryArena
}

export class QueryParallelism implements Parallelism {
  readonly threadId: number
  readonly workers: number
  readonly chunkRowsMin: number
  readonly inviteAfterMs: number
  readonly inviteForMs: number
  readonly spreadRowsMax?: number
  /** Addresses of work queues that workers may still read. */
  readonly queues: number[] = []
  readonly #host: QueryHost
  readonly #query: ParallelQuery

  constructor(host: QueryHost, query: ParallelQuery) {
    this.#host = host
    this.#query = query
    this.threadId = host.threads?.threadId ?? 0
    this.workers = host.threads?.workers ?? 0
    this.chunkRowsMin = host.threads?.chunkRowsMin ?? chunkRowsUsual
    if (host.threads?.spreadRowsMax !== undefined) this.spreadRowsMax = host.threads.spreadRowsMax
    this.inviteAfterMs = host.threads?.inviteAfterMs ?? 0
    this.inviteForMs = host.threads?.inviteForMs ?? 0
  }

  nowMs(): number {
    return this.#host.clock.monotonicMs()
  }

  wake(threadId: number): void {
    this.#host.threads?.wake(threadId)
  }

  queue(bytes: number): number {
    if (this.workers === 0) return this.#query.arena.keep(bytes)
    const address = this.#host.allocator.allocateOrThrow(bytes, budgets.queries)
    this.queues.push(address)
    return address
  }

  invite(plan: Plan, queue: number, details: FragmentDetails): void {
    const { request, subqueries, nowMicros } = this.#query
    const node = planNumbers(request.query).indexOf(plan)
    assert(node >= 0, 'Q3: a shared plan is part of its query')
    const { queryId } = request
    this.invited = true
    this.#host.post({ kind: 'offerFragment', queryId, node, queue, details, subqueries: [...subqueries], nowMicros })
  }

  /** Whether workers were invited. If so, the main thread tells when the work queues can be freed. */
  invited = false
}
