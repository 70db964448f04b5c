// Executes a part of a plan (fragment) on several threads. The coordinator (CoordinatorRun) runs on the thread of the
// query. It works on the chunks of the input, which usually consist of several morsels, and merges their results in the
// order of the chunks. Other query threads (worker-run.ts) may join and leave at any time; the coordinator can finish
// without them.
//
// The chunks depend on the query, the table snapshot and the settings, but not on the number of threads. The result of
// a chunk depends only on the chunk. So a query over the same snapshot returns the same bits with any number of
// threads.

import { assert } from '../../base/assert.js'
import { isShortage } from '../../base/errors.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Plan, Query } from '../../sql/plan/plan.js'
import type { BucketGrid } from '../aggregate/buckets.js'
import type { BuiltJoin } from '../join/join-built.js'
import type { MorselList } from '../scan/morsel-list.js'
import { rowCount } from '../scan/morsels.js'
import type { CountedChunks } from '../scan/scan-progress.js'
import { initWorkQueue, WorkQueue, workQueueBytes } from './work-queue.js'

/**
 * What a worker cannot derive from the plan and the snapshot: the lists of morsels and dictionary sizes of the
 * coordinator, since memtables and dictionaries grow meanwhile, and state of the operator.
 */
export interface FragmentDetails {
  readonly morsels: MorselList
  /** Morsels in a chunk. */
  readonly chunkMorsels: number
  /** Number of values of each key, for dense groups; null when the operator returns rows, or groups by hash tables. */
  readonly counts: readonly number[] | null
  /** Time buckets that are dense groups. */
  readonly grid?: BucketGrid | null
  /** For a table scan in timestamp order. */
  readonly table?: TableCut
  /** The first timestamp of each chunk, and the last timestamp of the last chunk. */
  readonly times?: BigInt64Array
  /** For sorted rows of the coordinator, which workers encode. */
  readonly sorted?: SortedDetails
  /** Hash tables of the joins in the plan, from the top down. */
  readonly joins?: readonly BuiltJoin[]
  /** For partitioned grouping: chunks are partitions, or rows to be partitioned. */
  readonly partitions?: PartitionDetails
}

export interface TableCut {
  /** The first row number of each chunk, and the end. */
  readonly cuts: Float64Array
  /** Chunks are whole pages, so a thread need not keep a decoded page for others. */
  readonly wholePages: boolean
  /** Maximal rows of a batch. */
  readonly stepRows: number
}

export interface SortedDetails {
  /** Address of u32 row numbers. */
  readonly order: number
  /** The range of the order that is cut into chunks. */
  readonly first: number
  readonly end: number
  readonly chunkRows: number
  /** Columns over all rows. */
  readonly columns: readonly { readonly address: number; readonly dictionary: number }[]
}

/** Partitions from `first` to before `end`. */
export interface PartitionRange {
  readonly first: number
  readonly end: number
}

export interface PartitionDetails {
  /** The partitions of this pass; rows of other partitions are skipped. */
  readonly partitions: PartitionRange
  /** Number of the table's rows before these morsels. */
  readonly firstRow: number
  /**
   * Addresses of the partitioned rows of each chunk, when the chunks of this step are partitions; null when rows are to
   * be partitioned.
   */
  readonly spread: readonly number[] | null
  /** Address of the groups found so far in each partition of the pass, 0 = none. */
  readonly before: readonly number[]
}

/** What a query thread offers to its queries for parallel execution. */
export interface Parallelism {
  readonly threadId: number
  /** Number of other query threads. */
  readonly workers: number
  /** Minimal rows of a chunk, approximately: each chunk has a fixed cost. */
  readonly chunkRowsMin: number
  /** Limit of rows that are partitioned at a time; if absent, available memory decides. */
  readonly spreadRowsMax?: number
  /** A fragment invites workers after this much work, .. */
  readonly inviteAfterMs: number
  /** .. and only if at least this much is estimated to be left: joining costs time on three threads. */
  readonly inviteForMs: number
  /** Whether workers were invited, which may read the coordinator's memory until the query ends. */
  readonly invited: boolean
  nowMs(): number
  wake(threadId: number): void
  /** Allocates a work queue, which lives until no worker uses it. */
  queue(bytes: number): number
  invite(plan: Plan, queue: number, details: FragmentDetails): void
}

export const chunkRowsUsual = 131_072
export const chunksMax = 32

/** Morsels in a chunk; depends on the morsels alone. */
export function morselsPerChunk(
  parallelism: Pick<Parallelism, 'chunkRowsMin'>,
  morsels: readonly { readonly rows: number }[],
  chunks = chunksMax,
): number {
  const rows = rowCount(morsels)
  const usual = Math.ceil((parallelism.chunkRowsMin * morsels.length) / Math.max(1, rows))
  return Math.max(1, usual, Math.ceil(morsels.length / chunks))
}

/** A thread's work on chunks. Its results are in shared memory until they are recycled. */
export interface ChunkWorker {
  /** Results that a worker holds for the coordinator before it pauses; unlimited if absent. */
  readonly heldMax?: number
  /** Whether memory suffices for work ahead of the next chunk to be merged; a worker pauses while it does not. */
  readonly hasRoom?: () => boolean
  /** `again`: out of order, possibly after later chunks. */
  begin(chunk: number, again: boolean): void
  /**
   * Processes one morsel; false when the chunk has no more, 'waiting' while the morsel is fetched from the object
   * store.
   */
  step(): boolean | 'waiting'
  /** Ends the chunk; returns the address of its result, aligned to 64. */
  result(): number
  recycle(result: number): void
  /** Discards the chunk in progress, when memory does not suffice. */
  readonly drop?: () => void
  /** Part of the current chunk has been sent to the client, so it cannot be discarded. */
  readonly inPart?: boolean
}

export interface CoordinatorWork {
  readonly plan: Plan
  readonly worker: ChunkWorker
  readonly chunks: number
  readonly details: () => FragmentDetails
  /** Called in the order of the chunks. */
  readonly merge: (result: number) => void
  /** The rows that the chunks read; absent if they are not counted. */
  readonly counted?: CountedChunks | undefined
  /** Results are kept until letGo() or close(). */
  readonly retained?: boolean
}

/** How long the coordinator waits for a chunk of another thread, in addition to the time of its own longest chunk. */
const timeoutMs = 20
/** How long other threads may take to free their memory; a terminated thread never does. */
const giveBackMs = 1000

export class CoordinatorRun {
  readonly #parallelism: Parallelism
  readonly #work: CoordinatorWork
  readonly #queue: WorkQueue
  readonly #address: number
  readonly #own = new Set<number>()
  #current = -1
  #merged = 0
  /** Result of the chunk that was merged last; it is valid until the next step. */
  #taken = 0
  #invited: boolean
  #startedMs = -1
  #begun = 0
  #chunkStartedMs = 0
  #longestMs = 0
  #waitingSinceMs = -1
  #overtook = false
  /** Memory is short: a chunk is started only when it is the next to be merged. */
  #short = false
  /** Since when workers must hold nothing because memory is short; -1: workers are allowed. */
  #aloneSinceMs = -1
  /** No worker holds memory of the fragment any more. */
  #alone: boolean
  /** The client has stopped reading, and step() has not been called since. */
  #idle = false

  constructor(memory: SharedMemory, parallelism: Parallelism, work: CoordinatorWork) {
    this.#parallelism = parallelism
    this.#work = work
    this.#address = parallelism.queue(workQueueBytes(work.chunks))
    initWorkQueue(memory, this.#address, work.chunks, parallelism.threadId)
    this.#queue = new WorkQueue(memory, this.#address, parallelism.threadId)
    this.#invited = parallelism.workers === 0 || work.chunks < 2
    this.#alone = parallelism.workers === 0
  }

  step(): 'working' | 'waiting' | 'done' {
    if (this.#idle) this.#goOn()
    this.#letGo()
    if (this.#current >= 0) return this.#morsel(this.#current)
    if (this.#merged === this.#work.chunks) {
      if (this.#work.retained !== true) this.#queue.close()
      return 'done'
    }
    if (this.#mergeNext()) return 'working'
    // A chunk that was given up blocks all later ones.
    if (this.#merged < this.#queue.begun && this.#takeOver(false)) {
      this.#begin(this.#merged, true)
      return 'working'
    }
    const chunk = this.#short ? -1 : this.#queue.next()
    if (chunk >= 0) this.#begin(chunk, false)
    else if (this.#takeOver(this.#isOverdue())) this.#begin(this.#merged, true)
    else return this.#queue.resultOf(this.#merged) === 0 ? 'waiting' : 'working'
    return 'working'
  }

  /**
   * The client has stopped reading: discards results that are not merged yet, those of workers too; they are computed
   * again later. `last` says what becomes of the chunk that was merged last: 'written' it is no longer needed, 'again'
   * it will be computed again, 'kept' it stays. The chunk in progress is kept only if it is the next to be merged.
   */
  goIdle(last: 'written' | 'again' | 'kept'): void {
    if (last === 'again') {
      this.#taken = 0
      this.#withdraw(--this.#merged)
      this.#countChunk(-1)
    } else if (last === 'written') this.#letGo()
    if (this.#current >= 0 && this.#current !== this.#merged && this.#work.worker.drop !== undefined) {
      this.#work.worker.drop()
      this.#queue.giveUp(this.#current)
      this.#current = -1
    }
    // This must precede the withdrawal: workers that see it publish no further results.
    this.#queue.goIdle(true)
    this.#idle = true
    this.#withdrawAll()
  }

  #withdrawAll(): void {
    for (let chunk = this.#merged; chunk < this.#queue.begun; chunk++) this.#withdraw(chunk)
    this.#wakeWorkers()
  }

  #withdraw(chunk: number): void {
    const result = this.#queue.withdraw(chunk)
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
  }

  #goOn(): void {
    this.#idle = false
    this.#queue.goIdle(this.#aloneSinceMs >= 0)
    this.#wakeWorkers()
  }

  #wakeWorkers(): void {
    this.#queue.wakeWaiting(this.#parallelism.wake.bind(this.#parallelism))
  }

  /** A chunk was taken over from a thread that may still work on it, so the memory that chunks read must stay valid. */
  get overtook(): boolean {
    return this.#overtook
  }

  /** The result of a chunk is no longer needed. */
  letGo(chunk: number): void {
    const result = this.#queue.resultOf(chunk)
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
    this.#queue.setMerged(chunk)
  }

  /** No result is needed any more. */
  close(): void {
    for (const result of this.#own) this.#work.worker.recycle(result)
    this.#own.clear()
    this.#queue.close()
  }

  #takeOver(force: boolean): boolean {
    if (this.#queue.takeOver(this.#merged, false)) return true
    if (!force || !this.#queue.takeOver(this.#merged, true)) return false
    this.#overtook = true
    return true
  }

  #begin(chunk: number, again: boolean): void {
    this.#chunkStartedMs = this.#parallelism.nowMs()
    if (this.#startedMs < 0) this.#startedMs = this.#chunkStartedMs
    this.#waitingSinceMs = -1
    this.#begun++
    this.#current = chunk
    try {
      this.#work.worker.begin(chunk, again)
    } catch (error) {
      this.#dropFor(error, chunk)
    }
  }

  #morsel(chunk: number): 'working' | 'waiting' {
    const { worker } = this.#work
    const isSent = worker.inPart === true
    const result = this.#workAt(chunk)
    if (result === 'waiting') return result
    if (!this.#invited) this.#invite()
    if (result === 0) return 'working'
    this.#current = -1
    this.#longestMs = Math.max(this.#longestMs, this.#parallelism.nowMs() - this.#chunkStartedMs)
    if (this.#queue.finish(chunk, result)) this.#own.add(result)
    else worker.recycle(result)
    if (isSent) {
      // Its rows are on their way to the client: it must not be withdrawn and computed again.
      const isMerged = this.#mergeNext()
      assert(isMerged, 'Q3: a chunk that has been sent is the next to be merged')
    }
    return 'working'
  }

  /** The result of the chunk, or 0 when it is not finished. */
  #workAt(chunk: number): number | 'waiting' {
    const { worker } = this.#work
    try {
      const more = worker.step()
      if (more === 'waiting') return more
      return more ? 0 : worker.result()
    } catch (error) {
      this.#dropFor(error, chunk)
      return 0
    }
  }

  /** Discards the current chunk if memory was short and may become available; rethrows other errors. */
  #dropFor(error: unknown, chunk: number): void {
    const { worker } = this.#work
    if (worker.drop === undefined || worker.inPart === true || !isShortage(error)) throw error
    if (chunk === this.#merged && !this.#mayGoOnAlone()) throw error
    worker.drop()
    this.#queue.giveUp(chunk)
    this.#current = -1
    this.#short = true
  }

  /**
   * Memory does not suffice for the chunk that is to be merged next. Tells workers to free their memory and to stop
   * working. Returns false if the chunk was already tried without them.
   */
  #mayGoOnAlone(): boolean {
    if (this.#alone) return false
    const now = this.#parallelism.nowMs()
    if (this.#aloneSinceMs < 0) {
      this.#aloneSinceMs = now
      this.#queue.goIdle(true)
      this.#withdrawAll()
    }
    this.#alone = !this.#queue.isHeld || now - this.#aloneSinceMs >= giveBackMs
    return true
  }

  #invite(): void {
    const { inviteAfterMs, inviteForMs } = this.#parallelism
    const { chunks, plan, details } = this.#work
    const workedMs = this.#parallelism.nowMs() - this.#startedMs
    // A lower bound, since the current chunk is not finished.
    const leftMs = (workedMs / this.#begun) * (chunks - this.#begun)
    if (workedMs < inviteAfterMs || leftMs < inviteForMs) return
    this.#invited = true
    if (chunks > this.#begun) this.#parallelism.invite(plan, this.#address, details())
  }

  #mergeNext(): boolean {
    const result = this.#queue.resultOf(this.#merged)
    if (result === 0) return false
    this.#work.merge(result)
    if (this.#work.retained !== true) this.#taken = result
    this.#merged++
    this.#countChunk(1)
    this.#waitingSinceMs = -1
    return true
  }

  #countChunk(change: 1 | -1): void {
    const { counted, chunks } = this.#work
    if (counted !== undefined) counted.count.read += (change * counted.rows) / chunks
  }

  /** A result stays valid until the next step, because output may still be written from it. */
  #letGo(): void {
    const result = this.#taken
    if (result === 0) return
    this.#taken = 0
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
    this.#queue.setMerged(this.#merged - 1)
    this.#wakeWorkers()
  }

  #isOverdue(): boolean {
    const now = this.#parallelism.nowMs()
    if (this.#waitingSinceMs < 0) this.#waitingSinceMs = now
    return now - this.#waitingSinceMs > timeoutMs + this.#longestMs
  }
}

/** The plan nodes of a query in an order that all threads share: sub-queries first, each node before its inputs. */
export function planNumbers({ plan, subqueries }: Pick<Query, 'plan' | 'subqueries'>): Plan[] {
  const found: Plan[] = []
  const visit = (at: Plan): void => {
    found.push(at)
    if ('input' in at) visit(at.input)
    if ('left' in at) {
      visit(at.left)
      visit(at.right)
    }
  }
  for (const subquery of subqueries) visit(subquery.plan)
  visit(plan)
  return found
}
