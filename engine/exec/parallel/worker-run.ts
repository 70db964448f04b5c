// A worker's side of a part of a plan that several threads execute (coordinator.ts): a query thread that has joined takes
// chunks and publishes their results. It frees a result when the coordinator has merged it, and pauses while memory is
// short.

import type { ChunkWorker, Parallelism } from './coordinator.js'
import type { WorkQueue } from './work-queue.js'

/** The worker's side: takes chunks until none are left, and holds its results until the coordinator has merged them. */
export class WorkerRun {
  readonly #parallelism: Pick<Parallelism, 'wake'>
  readonly #worker: ChunkWorker
  readonly #queue: WorkQueue
  /** Result by chunk. */
  readonly #results = new Map<number, number>()
  #current = -1
  #holds = false

  constructor(parallelism: Pick<Parallelism, 'wake'>, queue: WorkQueue, worker: ChunkWorker) {
    this.#parallelism = parallelism
    this.#queue = queue
    this.#worker = worker
  }

  /** 'waiting': its results may still be needed. 'idle': it holds no results, and its resources may be freed. */
  step(): 'working' | 'waiting' | 'idle' | 'done' {
    if (this.#queue.closed) return 'done'
    if (this.#queue.idle) return this.#goIdle()
    if (this.#current < 0) {
      if (this.#holdsEnough() || this.#lacksRoom()) return 'waiting'
      this.#current = this.#queue.next()
      if (this.#current < 0) return 'waiting'
      this.#setHolds(true)
      this.#worker.begin(this.#current, false)
    }
    const more = this.#worker.step()
    if (more !== false) return more === true ? 'working' : more
    const result = this.#worker.result()
    if (this.#queue.finish(this.#current, result)) this.#results.set(this.#current, result)
    else this.#worker.recycle(result)
    this.#current = -1
    this.#parallelism.wake(this.#queue.coordinatorThreadId)
    return 'working'
  }

  /** The coordinator may have missed results that were published just before; they are kept until it withdraws them. */
  #goIdle(): 'waiting' | 'idle' {
    this.#worker.drop?.()
    this.giveUp()
    return this.freeMerged() ? 'idle' : 'waiting'
  }

  /** Gives the current chunk up because of an error, and frees its memory. */
  fail(): void {
    this.#worker.drop?.()
    this.giveUp()
    this.freeMerged()
  }

  /** Frees results that are not needed any more, and requests to be woken at the next merge; whether none is left. */
  freeMerged(): boolean {
    this.#queue.awaitMerge()
    this.#reclaim()
    const isFree = this.#results.size === 0
    if (isFree) this.#setHolds(false)
    return isFree
  }

  #lacksRoom(): boolean {
    if (this.#worker.hasRoom?.() !== false) return false
    this.freeMerged()
    return this.#worker.hasRoom() === false
  }

  #setHolds(holds: boolean): void {
    if (holds !== this.#holds) this.#queue.countHolder(holds ? 1 : -1)
    this.#holds = holds
  }

  /** Gives the current chunk up, for another thread. */
  giveUp(): void {
    if (this.#current < 0) return
    this.#queue.giveUp(this.#current)
    this.#current = -1
    this.#parallelism.wake(this.#queue.coordinatorThreadId)
  }

  /**
   * Frees results that were merged or withdrawn. If enough results are left, requests to be woken at the next merge and
   * returns true.
   */
  #holdsEnough(): boolean {
    this.#reclaim()
    const { heldMax } = this.#worker
    if (heldMax === undefined || this.#results.size < heldMax) return false
    this.#queue.awaitMerge()
    this.#reclaim()
    return this.#results.size >= heldMax
  }

  #reclaim(): void {
    for (const [chunk, result] of this.#results) {
      if (this.#queue.resultOf(chunk) === result) continue
      this.#results.delete(chunk)
      this.#worker.recycle(result)
    }
  }
}
