// QueryLoop: the main loop of a query thread, which runs many queries in time slices. New queries run first, long ones
// take turns, and work on other threads' queries comes last. A query is not run while the result blocks that its client
// has not read reach a limit. If the client then reads nothing for some time, the query also frees the memory whose
// contents it can compute again.

import { errorFromRecord, errorRecord, ResourceError } from '../../base/errors.js'
import { createJit } from '../../kernels/jit/jit.js'
import { budgets } from '../../memory/budgets.js'
import { NewestInMemtables } from '../scan/newest-in-memtable.js'
import type { ToQueryThread } from './messages.js'
import type { QueryHost } from './query-host.js'
import { RunningQuery, type Windows } from './running-query.js'
import { WorkerTask } from './worker-task.js'

export type QueryLoopOptions = Omit<QueryHost, 'jit' | 'newest'>

/** A query that has worked no longer than this takes precedence. */
const freshMs = 5
/** Length of a time slice. */
const sliceMs = 2
/** Time slice of a streaming query while memory is scarce; the others free their buffers meanwhile. */
const streamTurnMs = 200
/** Memory is scarce when this fraction of the query memory is in use, */
const scarceShare = 1 / 2
/** and for some time afterwards, because streams that resume would use it up again. */
const scarceMs = 1000

export class QueryLoop {
  readonly #host: QueryHost
  readonly #queries = new Map<number, RunningQuery>()
  /** In the order of their turns. */
  #turns: RunningQuery[] = []
  /** Bytes of posted blocks by address, for each query id. A query may end before its blocks are released. */
  readonly #outstanding = new Map<number, Map<number, number>>()
  #workerTasks: WorkerTask[] = []
  /** Tasks that have stopped, but whose results other threads may still read. */
  #dismissed: WorkerTask[] = []
  /** Ended queries, until no worker uses what they have built. */
  readonly #ended = new Map<number, RunningQuery>()
  #waiting = false
  readonly #windows: Windows = { bytes: 0 }
  #scarceUntilMs = 0
  /** The streaming query that runs while memory is scarce, and its time of work when its slice began. */
  #stream: { readonly query: RunningQuery; readonly fromMs: number } | null = null

  constructor(options: QueryLoopOptions) {
    this.#host = { ...options, jit: createJit(options.memory), newest: new NewestInMemtables() }
  }

  /** Whether a query waits for other threads. The loop must check again soon, although nobody may wake it. */
  get waiting(): boolean {
    return this.#waiting
  }

  /** Whether a client may have stopped reading, so that the loop must check again soon. */
  get watching(): boolean {
    for (const query of this.#queries.values()) if (query.mayGoIdle) return true
    return false
  }

  /** Number of running queries. */
  get size(): number {
    return this.#queries.size
  }

  receive(message: ToQueryThread): void {
    switch (message.kind) {
      case 'run': {
        const outstanding = new Map<number, number>()
        this.#outstanding.set(message.queryId, outstanding)
        const query = new RunningQuery(this.#host, message, outstanding, this.#windows)
        this.#queries.set(message.queryId, query)
        this.#turns.push(query)
        return
      }
      case 'cancel':
        this.#queries.get(message.queryId)?.cancel(message.reason)
        return
      case 'fail':
        this.#failAs(message.queryId, errorFromRecord(message.error))
        return
      case 'release':
        this.#release(message.queryId, message.address)
        return
      case 'taken':
        this.#queries.get(message.queryId)?.taken(message.rows, message.bytes)
        return
      case 'free':
        for (const address of message.addresses) this.#host.allocator.free(address)
        return
      case 'joinFragment':
        this.#workerTasks.push(new WorkerTask(this.#host, message))
        return
      case 'dismiss':
        this.#dismiss(message.queryId)
        this.#host.post({ kind: 'dismissed', queryId: message.queryId })
        return
      case 'fragmentsClosed':
        this.#letGo(this.#ended.get(message.queryId))
        this.#ended.delete(message.queryId)
        for (const task of this.#dismissed) if (task.queryId === message.queryId) task.close()
        this.#dismissed = this.#dismissed.filter((task) => task.queryId !== message.queryId)
        return
    }
  }

  step(): 'worked' | 'idle' {
    this.#waiting = false
    const ready = this.#turns.filter((query) => !query.parked)
    const fresh = ready.findIndex((query) => query.usedMs < freshMs)
    if (fresh > 0) ready.unshift(...ready.splice(fresh, 1))
    this.#lookAtReaders()
    for (const query of this.#isScarce() ? this.#inTurn(ready) : ready) if (this.#run(query)) return 'worked'
    return this.#stepWorkerTask() ? 'worked' : 'idle'
  }

  #isScarce(): boolean {
    const { allocator, clock } = this.#host
    const now = clock.monotonicMs()
    if (allocator.used(budgets.queries) > allocator.limit(budgets.queries) * scarceShare)
      this.#scarceUntilMs = now + scarceMs
    return now < this.#scarceUntilMs
  }

  /** The ready queries, of streams only one; the other streams free what they can rebuild. */
  #inTurn(ready: readonly RunningQuery[]): RunningQuery[] {
    const streams = ready.filter((query) => query.yields)
    const turn = this.#stream
    const goesOn = turn !== null && streams.includes(turn.query) && turn.query.usedMs - turn.fromMs < streamTurnMs
    const next = goesOn ? turn.query : (streams.find((query) => query !== turn?.query) ?? streams[0])
    if (next === undefined) this.#stream = null
    else if (!goesOn) this.#stream = { query: next, fromMs: next.usedMs }
    for (const query of this.#queries.values())
      if (query.yields && query !== next) this.#tryTo(query, () => query.yieldMemory())
    return ready.filter((query) => query === next || !query.yields)
  }

  #lookAtReaders(): void {
    for (const query of this.#queries.values()) this.#tryTo(query, () => query.lookAtReader())
  }

  #tryTo(query: RunningQuery, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail(query, error)
    }
  }

  /** Ends everything without a response, because the thread is closing. */
  close(): void {
    for (const query of [...this.#queries.values(), ...this.#ended.values()]) query.close()
    for (const task of [...this.#workerTasks, ...this.#dismissed]) task.close()
    this.#queries.clear()
    this.#ended.clear()
    this.#turns = []
    this.#workerTasks = []
    this.#dismissed = []
  }

  /** Stops the tasks, but keeps their results: another worker may still read them. */
  #dismiss(queryId: number): void {
    const tasks = this.#workerTasks.filter((task) => task.queryId === queryId)
    for (const task of tasks) task.stop()
    this.#dismissed.push(...tasks)
    this.#workerTasks = this.#workerTasks.filter((task) => task.queryId !== queryId)
  }

  #release(queryId: number, address: number): void {
    const outstanding = this.#outstanding.get(queryId)
    const bytes = outstanding?.get(address)
    if (outstanding === undefined || bytes === undefined) return
    outstanding.delete(address)
    this.#host.allocator.free(address)
    this.#windows.bytes -= bytes
    this.#queries.get(queryId)?.released(bytes)
    if (outstanding.size === 0 && !this.#queries.has(queryId)) this.#outstanding.delete(queryId)
  }

  /** Runs a slice of a task; tasks take turns. */
  #stepWorkerTask(): boolean {
    const { clock, working } = this.#host
    const scarce = clock.monotonicMs() < this.#scarceUntilMs
    for (const task of this.#workerTasks) {
      if (scarce && !task.begun) continue
      working?.(task.queryId)
      const worked = task.step()
      for (const start = clock.monotonicMs(); worked && clock.monotonicMs() - start < sliceMs && task.step(); );
      working?.(0)
      if (!worked) continue
      this.#workerTasks = [...this.#workerTasks.filter((other) => other !== task), task]
      return true
    }
    return false
  }

  #letGo(query: RunningQuery | undefined): void {
    query?.close()
    for (const address of query?.parallelism.queues ?? []) this.#host.allocator.free(address)
  }

  /** False when the query only waits for another thread. */
  #run(query: RunningQuery): boolean {
    const { clock, working } = this.#host
    working?.(query.queryId)
    const start = clock.monotonicMs()
    let worked = false
    try {
      for (;;) {
        const progress = query.step()
        if (progress === 'ended') {
          this.#end(query)
          return true
        }
        if (progress === 'waiting') this.#waiting = true
        if (progress === 'waiting' || progress === 'parked') break
        worked = true
        if (clock.monotonicMs() - start >= sliceMs) break
      }
    } catch (error) {
      if (!this.#beginAgain(query, error)) this.#fail(query, error)
      return true
    } finally {
      working?.(0)
    }
    const now = clock.monotonicMs()
    query.usedMs += now - start
    query.report(now)
    this.#turns = [...this.#turns.filter((other) => other !== query), query]
    if (worked) this.#relieveHeap()
    return worked
  }

  /** Runs the query from the start with temporary files, if that may help after this error. */
  #beginAgain(query: RunningQuery, error: unknown): boolean {
    const request = query.againSpilling(error)
    const outstanding = this.#outstanding.get(query.queryId)
    if (request === undefined || outstanding === undefined) return false
    this.#letGo(query)
    const again = new RunningQuery(this.#host, request, outstanding, this.#windows)
    this.#queries.set(query.queryId, again)
    this.#turns = [...this.#turns.filter((other) => other !== query), again]
    return true
  }

  /**
   * If the heap is crowded, an operator of the query that has run longest uses temporary files instead; if the heap is
   * full and that is not possible, the query fails. Filling the heap with values takes time.
   */
  #relieveHeap(): void {
    const canSpill = (): boolean => this.#turns.some((query) => query.canSpillHeap)
    const state = this.#host.heapState?.(canSpill) ?? 'free'
    if (state === 'free') return
    const [longest] = this.#turns.toSorted((x, y) => y.usedMs - x.usedMs)
    if (longest !== undefined && !longest.spillHeap() && state === 'full')
      this.#fail(longest, new ResourceError('out of memory: the query keeps too many values [budget=heap]', 'memory'))
  }

  #failAs(queryId: number, error: Error): void {
    const query = this.#queries.get(queryId)
    if (query !== undefined) this.#fail(query, error)
    else this.#host.post({ kind: 'error', queryId, error: errorRecord(error) })
  }

  #fail(query: RunningQuery, error: unknown): void {
    this.#end(query)
    this.#host.post({ kind: 'error', queryId: query.queryId, error: errorRecord(error) })
  }

  #end(query: RunningQuery): void {
    // Workers may still read joins and rows that the query has built, even after it has ended.
    if (query.parallelism.invited) this.#ended.set(query.queryId, query)
    else this.#letGo(query)
    this.#queries.delete(query.queryId)
    this.#turns = this.#turns.filter((other) => other !== query)
    if (this.#outstanding.get(query.queryId)?.size === 0) this.#outstanding.delete(query.queryId)
  }
}
