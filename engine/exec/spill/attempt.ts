// Attempt: runs an operator with memory of its own, so that this memory can be freed before the query ends: when the
// operator has returned its last row, or when memory does not suffice for it. If other threads execute parts of the
// operator, they read this memory. So their work queues are closed first, and release() returns false until their
// current chunks of work have ended. If one takes longer than two seconds, the memory is freed when the query ends.

import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import type { Operator, Pull } from '../batch/vector.js'
import type { Parallelism } from '../parallel/coordinator.js'
import { WorkQueue } from '../parallel/work-queue.js'

/** How long threads may take to finish their chunks. A terminated thread never does. */
const finishMs = 2000

export class Attempt implements Operator {
  readonly #context: ExecContext
  readonly #arena: QueryArena
  readonly #parallelism: WatchedParallelism | undefined
  readonly #build: (context: ExecContext) => Operator
  #operator: Operator | null = null
  #endings: (() => void)[] = []
  #sinceMs = -1
  #over = false

  constructor(context: ExecContext, build: (context: ExecContext) => Operator) {
    const { parallelism } = context
    this.#context = context
    this.#build = build
    this.#arena = context.arena.child()
    this.#parallelism = parallelism === undefined ? undefined : new WatchedParallelism(parallelism)
    context.onEnd(() => this.#end())
  }

  /** Builds the operator; otherwise the first pull does. */
  begin(): void {
    this.#operator ??= this.#build({
      ...this.#context,
      arena: this.#arena,
      parallelism: this.#parallelism,
      onEnd: (ending) => void this.#endings.push(ending),
    })
  }

  pull(): Pull {
    this.begin()
    return this.#operator?.pull() ?? null
  }

  /** Whether its rows come in another order with temporary files. */
  get hasOwnOrder(): boolean {
    return this.#operator?.hasOwnOrder === true
  }

  /** Whether other threads may read its memory. */
  get isShared(): boolean {
    return this.#parallelism?.invited === true
  }

  /** False after release() if another thread did not stop reading the memory. */
  get isFreed(): boolean {
    return this.#over
  }

  /** Frees the operator's memory; false while other threads still read it. */
  release(): boolean {
    const shared = this.#parallelism
    if (this.#over || shared === undefined || !shared.invited) {
      this.#end()
      return true
    }
    const now = shared.nowMs()
    if (this.#sinceMs < 0) this.#sinceMs = now
    const { memory } = this.#context
    const sealed = shared.queues.map((address) => {
      const queue = new WorkQueue(memory, address, shared.threadId)
      const done = queue.seal()
      queue.wakeWaiting((threadId) => shared.wake(threadId))
      return done
    })
    if (sealed.every((done) => done)) this.#end()
    // The memory of a fragment that somebody may still work on is freed when the query ends.
    return this.#over || now - this.#sinceMs > finishMs
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#operator = null
    for (const ending of this.#endings.splice(0)) ending()
    this.#arena.freeAll()
  }
}

/** Notes the work queues of an operator. */
class WatchedParallelism implements Parallelism {
  readonly queues: number[] = []
  invited = false
  readonly threadId: number
  readonly workers: number
  readonly chunkRowsMin: number
  readonly spreadRowsMax?: number
  readonly inviteAfterMs: number
  readonly inviteForMs: number
  readonly #inner: Parallelism

  constructor(inner: Parallelism) {
    this.#inner = inner
    this.threadId = inner.threadId
    this.workers = inner.workers
    this.chunkRowsMin = inner.chunkRowsMin
    if (inner.spreadRowsMax !== undefined) this.spreadRowsMax = inner.spreadRowsMax
    this.inviteAfterMs = inner.inviteAfterMs
    this.inviteForMs = inner.inviteForMs
  }

  nowMs(): number {
    return this.#inner.nowMs()
  }

  wake(threadId: number): void {
    this.#inner.wake(threadId)
  }

  queue(bytes: number): number {
    const address = this.#inner.queue(bytes)
    this.queues.push(address)
    return address
  }

  invite(...[plan, queue, details]: Parameters<Parallelism['invite']>): void {
    this.invited = true
    this.#inner.invite(plan, queue, details)
  }
}
