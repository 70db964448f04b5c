// How a fragment of a query is shared: the lead cuts it into chunks, works on them, and merges what they give in the order
// of the chunks; other query threads may join at any moment and leave at any moment. The lead needs none of them.
//
// The cut depends on the snapshot alone and a chunk's result on the chunk alone, so the same query over the same snapshot
// gives the same bits with any number of threads.

import { isShortage } from '../../base/errors.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Plan, Query } from '../../sql/plan/plan.js'
import type { BucketGrid } from '../aggregate/buckets.js'
import type { BuiltJoin } from '../join/join-built.js'
import { rowCount } from '../scan/pieces.js'
import type { PieceList } from '../scan/share-pieces.js'
import { boardBytes, initBoard, ShareBoard } from './share-board.js'

/** What a helper cannot know by itself: dictionaries and memtables grow, and the snapshot does not say all. */
export interface ShareDetails {
  readonly pieces: PieceList
  /** Pieces a chunk. */
  readonly chunkPieces: number
  /** Values that each key can have, of dense groups; null: rows, whatever the operator makes of them. */
  readonly counts: readonly number[] | null
  /** Buckets of time that are dense groups. */
  readonly grid?: BucketGrid | null
  /** Rows of a table in its order that are cut into chunks. */
  readonly table?: TableCut
  /** Where chunks begin in time, and the last time of the last one. */
  readonly times?: BigInt64Array
  /** Rows of the lead in an order of their own that is cut into chunks. */
  readonly sorted?: SortedDetails
  /** Built sides of the joins of the plan, from the top down. */
  readonly joins?: readonly BuiltJoin[]
  /** Of groups in partitions: chunks are partitions, or rows to be spread over them. */
  readonly partitions?: PartitionDetails
}

export interface TableCut {
  /** The row number where each chunk begins, and the end. */
  readonly cuts: Float64Array
  /** Each page is read by one thread alone, which need not keep it decoded for others. */
  readonly wholePages: boolean
  /** Rows of a batch at most. */
  readonly stepRows: number
}

export interface SortedDetails {
  /** u32 row numbers. */
  readonly order: number
  /** Of the order, what is cut into chunks. */
  readonly first: number
  readonly end: number
  readonly chunkRows: number
  /** Over all rows. */
  readonly columns: readonly { readonly address: number; readonly dictionary: number }[]
}

/** Partitions from `first` to before `end`. */
export interface PartitionRange {
  readonly first: number
  readonly end: number
}

export interface PartitionDetails {
  /** Those of the pass; rows of others are left out. */
  readonly partitions: PartitionRange
  /** How many rows the table has before the pieces. */
  readonly firstRow: number
  /** Rows that were spread, chunk by chunk: a chunk of this work is a partition; null: rows are to be spread. */
  readonly spread: readonly number[] | null
  /** What there is of each partition of the pass already, 0 = nothing. */
  readonly before: readonly number[]
}

/** What a query thread offers to the fragments of its queries. */
export interface Sharing {
  readonly threadId: number
  /** How many other threads there are. */
  readonly helpers: number
  /** Chunks have about so many rows at least: a chunk costs something, too. */
  readonly chunkRowsMin: number
  /** Rows that are spread over partitions at once, where it is not the memory that says it. */
  readonly spreadRowsMax?: number
  /** A fragment of a plan calls for help when it has worked so long, */
  readonly inviteAfterMs: number
  /** and has so much before it: to join costs time on three threads. */
  readonly inviteForMs: number
  nowMs(): number
  wake(threadId: number): void
  /** Memory for a board; it stays until no helper looks at it. */
  board(bytes: number): number
  invite(plan: Plan, board: number, details: ShareDetails): void
}

export const chunkRowsUsual = 131_072
export const chunksMax = 32

/** Pieces a chunk, by the pieces alone. */
export function piecesPerChunk(
  sharing: Pick<Sharing, 'chunkRowsMin'>,
  pieces: readonly { readonly rows: number }[],
  chunks = chunksMax,
): number {
  const rows = rowCount(pieces)
  const usual = Math.ceil((sharing.chunkRowsMin * pieces.length) / Math.max(1, rows))
  return Math.max(1, usual, Math.ceil(pieces.length / chunks))
}

/** Work on chunks as one thread does it. Results lie in shared memory until they are recycled. */
export interface ChunkWorker {
  /** Results that a helper keeps for the lead before it waits; as many as there are when missing. */
  readonly heldMax?: number
  /** `again`: out of order, after later chunks perhaps. */
  begin(chunk: number, again: boolean): void
  /** One morsel; false when there is no other in the chunk. */
  step(): boolean
  /** Ends the chunk: address of its result, 64-byte aligned. */
  result(): number
  recycle(result: number): void
  /** Drops the chunk under way, for which memory does not suffice. */
  readonly drop?: () => void
  /** Some of the chunk under way has reached the reader: it cannot be dropped. */
  readonly inPart?: boolean
}

export interface LeadWork {
  readonly plan: Plan
  readonly worker: ChunkWorker
  readonly chunks: number
  readonly details: () => ShareDetails
  /** Results come in the order of the chunks. */
  readonly merge: (result: number) => void
  /** Results stay until they are let go one by one, and the run is closed. */
  readonly kept?: boolean
}

/** How long the lead waits for a chunk that another thread has, beyond the time that its own longest chunk took. */
const patienceMs = 20
/** How long other threads may take to give back what they hold. */
const giveBackMs = 1000

export class LeadRun {
  readonly #sharing: Sharing
  readonly #work: LeadWork
  readonly #board: ShareBoard
  readonly #address: number
  readonly #own = new Set<number>()
  #current = -1
  #merged = 0
  /** Of the chunk that was merged last, until the next step. */
  #taken = 0
  #invited: boolean
  #startedMs = -1
  #begun = 0
  #chunkStartedMs = 0
  #longestMs = 0
  #waitingSinceMs = -1
  #overtook = false
  /** Memory is short: chunks are begun only when it is their turn to be merged. */
  #short = false
  /** Since when other threads are to hold nothing, because memory is short; -1: they may help. */
  #aloneSinceMs = -1
  /** The reader has stopped, and nothing was done since. */
  #resting = false

  constructor(memory: SharedMemory, sharing: Sharing, work: LeadWork) {
    this.#sharing = sharing
    this.#work = work
    this.#address = sharing.board(boardBytes(work.chunks))
    initBoard(memory, this.#address, work.chunks, sharing.threadId)
    this.#board = new ShareBoard(memory, this.#address, sharing.threadId)
    this.#invited = sharing.helpers === 0 || work.chunks < 2
  }

  step(): 'working' | 'waiting' | 'done' {
    if (this.#resting) this.#goOn()
    this.#letGo()
    if (this.#current >= 0) return this.#morsel(this.#current)
    if (this.#merged === this.#work.chunks) {
      if (this.#work.kept !== true) this.#board.close()
      return 'done'
    }
    if (this.#mergeNext()) return 'working'
    // What was given up stops all that follow it.
    if (this.#merged < this.#board.begun && this.#takeOver(false)) {
      this.#begin(this.#merged, true)
      return 'working'
    }
    const chunk = this.#short ? -1 : this.#board.next()
    if (chunk >= 0) this.#begin(chunk, false)
    else if (this.#takeOver(this.#outOfPatience())) this.#begin(this.#merged, true)
    else return this.#board.resultOf(this.#merged) === 0 ? 'waiting' : 'working'
    return 'working'
  }

  /**
   * The reader has stopped: results that wait for it are dropped, those of helpers too, and made again when it goes on. So
   * is the chunk that was merged last when it is wanted `again`; it stays when it is `kept`. The chunk under way stays only
   * if it is the next to be merged.
   */
  rest(last: 'written' | 'again' | 'kept'): void {
    if (last === 'again') {
      this.#taken = 0
      this.#withdraw(--this.#merged)
    } else if (last === 'written') this.#letGo()
    if (this.#current >= 0 && this.#current !== this.#merged && this.#work.worker.drop !== undefined) {
      this.#work.worker.drop()
      this.#board.giveUp(this.#current)
      this.#current = -1
    }
    // Before the results are withdrawn: whoever sees it publishes none any more.
    this.#board.rest(true)
    this.#resting = true
    this.#withdrawAll()
  }

  #withdrawAll(): void {
    for (let chunk = this.#merged; chunk < this.#board.begun; chunk++) this.#withdraw(chunk)
    this.#wakeHelpers()
  }

  #withdraw(chunk: number): void {
    const result = this.#board.withdraw(chunk)
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
  }

  #goOn(): void {
    this.#resting = false
    this.#board.rest(this.#aloneSinceMs >= 0)
    this.#wakeHelpers()
  }

  #wakeHelpers(): void {
    this.#board.wakeWaiting(this.#sharing.wake.bind(this.#sharing))
  }

  /** A chunk was taken from another thread, which may be in the middle of it still: what chunks read has to stay. */
  get overtook(): boolean {
    return this.#overtook
  }

  /** The result of a chunk is not needed any more. */
  letGo(chunk: number): void {
    const result = this.#board.resultOf(chunk)
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
    this.#board.setMerged(chunk)
  }

  /** No result is needed any more. */
  close(): void {
    for (const result of this.#own) this.#work.worker.recycle(result)
    this.#own.clear()
    this.#board.close()
  }

  #takeOver(force: boolean): boolean {
    if (this.#board.takeOver(this.#merged, false)) return true
    if (!force || !this.#board.takeOver(this.#merged, true)) return false
    this.#overtook = true
    return true
  }

  #begin(chunk: number, again: boolean): void {
    this.#chunkStartedMs = this.#sharing.nowMs()
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

  #morsel(chunk: number): 'working' {
    const { worker } = this.#work
    const result = this.#workAt(chunk)
    if (!this.#invited) this.#invite()
    if (result === 0) return 'working'
    this.#current = -1
    this.#longestMs = Math.max(this.#longestMs, this.#sharing.nowMs() - this.#chunkStartedMs)
    if (this.#board.finish(chunk, result)) this.#own.add(result)
    else worker.recycle(result)
    return 'working'
  }

  /** The result of the chunk, 0 while there is none. */
  #workAt(chunk: number): number {
    const { worker } = this.#work
    try {
      return worker.step() ? 0 : worker.result()
    } catch (error) {
      this.#dropFor(error, chunk)
      return 0
    }
  }

  /** Drops the chunk under way when it may succeed later; else throws the error. */
  #dropFor(error: unknown, chunk: number): void {
    const { worker } = this.#work
    if (worker.drop === undefined || worker.inPart === true || !isShortage(error)) throw error
    if (chunk === this.#merged && !this.#mayGoOnAlone()) throw error
    worker.drop()
    this.#board.giveUp(chunk)
    this.#current = -1
    this.#short = true
  }

  /**
   * Memory does not suffice for the chunk that is merged next: other threads give back what they hold and help no more.
   * False: they have had the time for it.
   */
  #mayGoOnAlone(): boolean {
    const now = this.#sharing.nowMs()
    if (this.#sharing.helpers === 0) return false
    if (this.#aloneSinceMs < 0) {
      this.#aloneSinceMs = now
      this.#board.rest(true)
      this.#withdrawAll()
    }
    return now - this.#aloneSinceMs < giveBackMs
  }

  #invite(): void {
    const { inviteAfterMs, inviteForMs } = this.#sharing
    const { chunks, plan, details } = this.#work
    const workedMs = this.#sharing.nowMs() - this.#startedMs
    // At least: the chunk under way has not taken all of its time yet.
    const leftMs = (workedMs / this.#begun) * (chunks - this.#begun)
    if (workedMs < inviteAfterMs || leftMs < inviteForMs) return
    this.#invited = true
    if (chunks > this.#begun) this.#sharing.invite(plan, this.#address, details())
  }

  #mergeNext(): boolean {
    const result = this.#board.resultOf(this.#merged)
    if (result === 0) return false
    this.#work.merge(result)
    if (this.#work.kept !== true) this.#taken = result
    this.#merged++
    this.#waitingSinceMs = -1
    return true
  }

  /** A result stays until the next step: what was merged may still be written from it. */
  #letGo(): void {
    const result = this.#taken
    if (result === 0) return
    this.#taken = 0
    if (this.#own.delete(result)) this.#work.worker.recycle(result)
    this.#board.setMerged(this.#merged - 1)
    this.#wakeHelpers()
  }

  #outOfPatience(): boolean {
    const now = this.#sharing.nowMs()
    if (this.#waitingSinceMs < 0) this.#waitingSinceMs = now
    return now - this.#waitingSinceMs > patienceMs + this.#longestMs
  }
}

/** The other side: takes chunks until there are none, and keeps its results until the lead has merged them. */
export class HelperRun {
  readonly #sharing: Pick<Sharing, 'wake'>
  readonly #worker: ChunkWorker
  readonly #board: ShareBoard
  /** Result by chunk. */
  readonly #results = new Map<number, number>()
  #current = -1

  constructor(sharing: Pick<Sharing, 'wake'>, board: ShareBoard, worker: ChunkWorker) {
    this.#sharing = sharing
    this.#board = board
    this.#worker = worker
  }

  /** 'waiting': its results are still needed, perhaps. 'resting': it has none, and what it works with may go. */
  step(): 'working' | 'waiting' | 'resting' | 'done' {
    if (this.#board.closed) return 'done'
    if (this.#board.resting) return this.#rest()
    if (this.#current < 0) {
      if (this.#holdsEnough()) return 'waiting'
      this.#current = this.#board.next()
      if (this.#current < 0) return 'waiting'
      this.#worker.begin(this.#current, false)
    }
    if (this.#worker.step()) return 'working'
    const result = this.#worker.result()
    if (this.#board.finish(this.#current, result)) this.#results.set(this.#current, result)
    else this.#worker.recycle(result)
    this.#current = -1
    this.#sharing.wake(this.#board.leadThreadId)
    return 'working'
  }

  /** Results that were published when the lead had looked already stay; it looks again. */
  #rest(): 'waiting' | 'resting' {
    this.#worker.drop?.()
    this.giveUp()
    this.#board.awaitMerge()
    this.#reclaim()
    return this.#results.size > 0 ? 'waiting' : 'resting'
  }

  /** Leaves the chunk under way to others. */
  giveUp(): void {
    if (this.#current < 0) return
    this.#board.giveUp(this.#current)
    this.#current = -1
    this.#sharing.wake(this.#board.leadThreadId)
  }

  /** Gives back what was merged or withdrawn; whoever still holds enough is woken at the next merge. */
  #holdsEnough(): boolean {
    this.#reclaim()
    const { heldMax } = this.#worker
    if (heldMax === undefined || this.#results.size < heldMax) return false
    this.#board.awaitMerge()
    this.#reclaim()
    return this.#results.size >= heldMax
  }

  #reclaim(): void {
    for (const [chunk, result] of this.#results) {
      if (this.#board.resultOf(chunk) === result) continue
      this.#results.delete(chunk)
      this.#worker.recycle(result)
    }
  }
}

/** Plans of a query by number, the same on every thread: those of sub-queries first, each before its inputs. */
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
