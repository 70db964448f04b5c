// Dispatches queries to query threads: chooses a thread, passes the blocks of the result to the reader one at a time,
// and returns each block to the thread when the reader requests the next one. Also dispatches the writer's storage
// jobs.
//
// A query whose reader has received nothing yet is run again later, with the same id and snapshot but perhaps on
// another thread, if it failed for one of two reasons: memory that other queries hold (memory-queue.ts), or rows that
// are only in the object store and must be fetched first. A job that lacks such rows is run again, too.
//
// The thread that runs a query, its coordinator, may offer part of the plan for parallel execution; then all other
// query threads are notified and may execute fragments of it (workers). When the query ends, the pool asks these
// workers to leave it. Until each has confirmed that or died, everything that it may read is kept: the query's
// snapshot, and the memory of all threads that worked on the query.

import type { CsvDecoding, CsvLoad, LoadOptions } from '../api/ingest.js'
import { assert } from '../base/assert.js'
import { type Deferred, deferred } from '../base/deferred.js'
import {
  CancelledError,
  type ErrorRecord,
  errorFromRecord,
  errorRecord,
  ResourceError,
  SqlError,
  TimeoutError,
} from '../base/errors.js'
import type { CsvShape } from '../csv/shape.js'
import type { OfferFragment, RunQuery } from '../exec/run/messages.js'
import type { RowsRead } from '../exec/scan/scan-progress.js'
import { createAllocator } from '../memory/allocator.js'
import { clearCancelFlag, setCancelFlag } from '../memory/cancel-flags.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Job, JobResult, StageWork } from '../storage/jobs/messages.js'
import { withViewSides } from '../views/view-sides.js'
import { CsvClient } from './csv-client.js'
import type { LoadServices } from './load-client.js'
import { MemoryQueue, type QueuedQuery } from './memory-queue.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'
import { OrphanedMemory, type Settled } from './orphaned-memory.js'
import type { ParallelAttempt, PostedJob, Task, Worker } from './query-attempts.js'
import { type QueryReply, type QuerySummary, Running, type RunningQuery } from './query-reader.js'
import type { Overdue } from './query-watch.js'
import { type BlockSource, RemoteFetches } from './remote-fetches.js'
import { type Thread, tooDeepText } from './thread.js'
import { threadIds } from './wake.js'

export type { QuerySummary, RunningQuery }

/** Maximum number of turns of a query that fails for lack of memory. */
const turnsMax = 5
/** A job that this many threads have died with, or that missed fetched rows so often, fails. */
const jobDeathsMax = 3
/** Maximum number of times that a query is run again because it missed rows of the object store. */
const fetchesMax = 1000

export interface QueryPoolOptions {
  readonly memory: SharedMemory
  /** Called when queries or files arrive, so that all threads are needed. */
  readonly used?: () => void
  readonly jobDone: (jobId: number, result: JobResult) => void
  readonly jobFailed: (jobId: number, error: ErrorRecord) => void
  /** Called when nothing uses the memory of a terminated thread any more. */
  readonly threadSettled?: Settled
  /** Where blocks of remote parts are fetched; null or absent: nowhere. */
  readonly blocks?: BlockSource | null
}

export class QueryPool {
  readonly #options: QueryPoolOptions
  readonly #workers = new Map<number, Worker>()
  readonly #running = new Map<number, Task>()
  /** By query id, until the last worker is gone. */
  readonly #parallel = new Map<number, ParallelAttempt>()
  readonly #csv = new CsvClient()
  /** Jobs of imports, by id. */
  readonly #stages = new Map<number, Deferred<JobResult>>()
  readonly #orphans: OrphanedMemory
  readonly #starved: MemoryQueue
  readonly #fetches: RemoteFetches
  /** Whether a query without a memory limit was running when the last turn began: it may have taken memory since. */
  #besideUnbounded = false
  /** Number of attempts so far. */
  #attempts = 0
  #nextStageId = -1
  /** Id of the next query. */
  nextQueryId = 1

  constructor(options: QueryPoolOptions) {
    this.#options = options
    const free = (addresses: readonly number[]): void => this.#leastBusy().thread.post({ kind: 'free', addresses })
    this.#orphans = new OrphanedMemory(options.memory, free, options.threadSettled ?? (() => {}))
    this.#fetches = new RemoteFetches(options.blocks ?? null)
    this.#starved = new MemoryQueue(createAllocator(options.memory, threadIds.main))
  }

  addThread(thread: Thread<ToQueryHost>): void {
    this.#workers.set(thread.threadId, { thread, queries: new Set(), readers: new Set(), jobs: new Map() })
  }

  /**
   * A thread died, or was terminated because of the query `stuck`: its queries fail, its jobs are run again on other
   * threads. `ledger`: the list of its allocations. A replacement has already been started.
   */
  threadEnded(threadId: number, error: Error, stuck = 0, ledger = 0): void {
    const worker = this.#workers.get(threadId)
    if (worker === undefined) return
    this.#workers.delete(threadId)
    const record = errorRecord(stuck === 0 ? error : lostByStuckQuery())
    const concerned = [...this.#parallel].filter(
      ([, { coordinator, fragmentWorkers }]) => coordinator === worker.thread || fragmentWorkers.has(worker.thread),
    )
    const borrowedBlocks = [...worker.readers].flatMap((running) => running.held)
    for (const running of worker.queries) {
      const own = running.queryId === stuck ? errorRecord(this.#overdueError(running)) : record
      this.#finish({ kind: 'error', queryId: running.queryId, error: own })
    }
    this.#csv.threadEnded(worker.thread, record)
    for (const posted of worker.jobs.values()) this.#runAgain(posted, stuck === 0, record)
    for (const queryId of [...this.#parallel.keys()]) this.#workerGone(queryId, worker.thread)
    const waitsFor = concerned.map(([queryId]) => queryId).filter((queryId) => this.#parallel.has(queryId))
    this.#orphans.add(threadId, ledger, waitsFor, borrowedBlocks)
  }

  /** A message that was too deeply nested is lost. It may belong to any query of the thread, so all of them fail. */
  messageLost(threadId: number): void {
    const worker = this.#workers.get(threadId)
    if (worker === undefined) return
    const error = errorRecord(new SqlError(tooDeepText, 0))
    for (const { queryId } of worker.queries) worker.thread.post({ kind: 'fail', queryId, error })
  }

  /** Queries that should have ended more than `graceMs` ago, with the threads that may still run them. */
  overdue(graceMs: number): Overdue[] {
    const now = performance.now()
    const found: Overdue[] = []
    for (const [queryId, { coordinator, fragmentWorkers, request, startedMs, endedMs, ended }] of this.#parallel) {
      if (ended !== null) {
        if (now - endedMs > graceMs) for (const { threadId } of fragmentWorkers) found.push({ threadId, queryId })
        continue
      }
      const cancelledMs = this.#running.get(queryId)?.running.cancelled?.atMs ?? Number.POSITIVE_INFINITY
      const deadlineMs = request.timeoutMs > 0 ? startedMs + request.timeoutMs : Number.POSITIVE_INFINITY
      if (now - Math.min(cancelledMs, deadlineMs) > graceMs) found.push({ threadId: coordinator.threadId, queryId })
    }
    return found
  }

  #overdueError({ queryId, cancelled }: Running): Error {
    if (cancelled !== null) return new CancelledError(cancelled.reason)
    return new TimeoutError(this.#parallel.get(queryId)?.request.timeoutMs ?? 0)
  }

  /** Runs a query when `ready` resolves. `ended` is called once, after the last block or the error. */
  run(
    requested: Omit<RunQuery, 'kind' | 'queryId'>,
    ended: () => void,
    ready: Promise<void> | null = null,
  ): RunningQuery {
    this.#options.used?.()
    const { query, snapshots, profile } = requested
    // EXPLAIN ANALYZE reports on the nodes of the plan as it is.
    const sides = withViewSides(query, snapshots, this.#options.memory, profile === undefined)
    const request = { ...requested, ...sides }
    const queryId = this.nextQueryId++
    const startedMs = performance.now()
    const post = (note: ToQueryHost): void => this.#postCoordinator(task, note)
    const running = new Running(queryId, this.#options.memory, post, () => this.#over(task))
    const starved: QueuedQuery = {
      turns: 0,
      deadlineMs: request.timeoutMs > 0 ? startedMs + request.timeoutMs : Number.POSITIVE_INFINITY,
      start: () => this.#turn(task),
      expire: () => this.#failed(task, new TimeoutError(request.timeoutMs)),
    }
    const task: Task = { running, request, ended, startedMs, starved, rowsRead: null, fetches: 0, worker: null }
    this.#running.set(queryId, task)
    if (ready === null) this.#begin(task)
    else
      ready.then(
        () => this.#begin(task),
        (error) => this.#failed(task, error),
      )
    return running
  }

  #begin(task: Task): void {
    // The query may have been cancelled while it waited.
    if (!this.#running.has(task.running.queryId)) return
    const memoryMax = this.#starved.share
    this.#attempt(task, memoryMax === undefined ? {} : { memoryMax })
  }

  #attempt(task: Task, bounds: Pick<RunQuery, 'spentMs' | 'memoryMax'>): void {
    const { running, request, startedMs } = task
    const { queryId } = running
    const worker = this.#leastBusy()
    const message: RunQuery = { kind: 'run', queryId, ...request, ...bounds }
    const ranWithOthers = this.#parallel.size > 0
    this.#parallel.set(queryId, {
      ...{ ranWithOthers, attempt: ++this.#attempts },
      ...{
        coordinator: worker.thread,
        request: message,
        fragmentWorkers: new Set(),
        notified: new Set(),
        called: false,
      },
      ...{ startedMs, endedMs: 0, ended: null },
    })
    task.worker = worker
    task.rowsRead = null
    worker.queries.add(running)
    worker.readers.add(running)
    try {
      worker.thread.post(message)
    } catch (error) {
      // The caller must get the query's id before its error.
      queueMicrotask(() => this.#finish({ kind: 'error', queryId, error: errorRecord(error) }))
    }
  }

  /** The query has ended for its reader: dismisses its workers. */
  #over(task: Task): void {
    const { queryId } = task.running
    const parallel = this.#parallel.get(queryId)
    if (task.worker !== null && parallel !== undefined) this.#dismiss(queryId, parallel, () => this.#end(task))
    // Otherwise it is between two attempts, and workers of the last one may still be there.
    else if (parallel === undefined) this.#end(task)
  }

  /** Nothing uses the query's resources any more. */
  #end({ starved, ended }: Task): void {
    this.#starved.leave(starved)
    ended()
  }

  /** Whether a failed query is run again, because others may free the memory that it needs. */
  #mayRestart({ running, starved: { turns } }: Task, error: ErrorRecord): boolean {
    const parallel = this.#parallel.get(running.queryId)
    if (error.detail !== 'memory' || running.begun || running.cancelled !== null || parallel === undefined) return false
    if (parallel.request.memoryMax !== undefined) return true
    const jobs = [...this.#workers.values()].reduce((sum, worker) => sum + worker.jobs.size, 0)
    const others = this.#parallel.size - 1 + jobs
    // Others may have ended in the meantime, and their messages may have arrived first.
    if (turns === 0) return others > 0 || parallel.ranWithOthers || parallel.attempt !== this.#attempts
    return turns < turnsMax && (this.#besideUnbounded || this.#starved.crowdedBy(others))
  }

  /** Whether a failed query is run again when the rows that it missed have been fetched. */
  #mayFetch({ running, fetches }: Task, error: ErrorRecord): boolean {
    const { begun, cancelled, queryId } = running
    return (
      error.detail === 'remote' && !begun && cancelled === null && fetches < fetchesMax && this.#parallel.has(queryId)
    )
  }

  #whenFetched(task: Task, threadId: number): void {
    task.fetches++
    const { queryId } = task.running
    void this.#fetches.settled(threadId).then(() => {
      if (this.#running.has(queryId)) this.#turn(task)
    })
  }

  /** Ends an attempt; \`next\` is called when nothing works for it any more, unless the query was cancelled. */
  #pause(task: Task, worker: Worker, next: () => void): void {
    const { running, starved } = task
    const parallel = this.#parallel.get(running.queryId)
    assert(parallel !== undefined, 'M2: an attempt is known until its end')
    worker.queries.delete(running)
    worker.readers.delete(running)
    task.worker = null
    this.#starved.leave(starved)
    this.#dismiss(running.queryId, parallel, () => {
      if (this.#running.has(running.queryId)) next()
      else this.#end(task)
    })
  }

  #turn(task: Task): void {
    this.#besideUnbounded = [...this.#parallel.values()].some(({ request }) => request.memoryMax === undefined)
    clearCancelFlag(this.#options.memory, task.running.queryId)
    this.#attempt(task, { spentMs: performance.now() - task.startedMs })
  }

  #failed({ running }: Task, error: Error): void {
    this.#finish({ kind: 'error', queryId: running.queryId, error: errorRecord(error) })
  }

  /** Posts to the query's thread. If that thread has ended, another one frees the block. */
  #postCoordinator(task: Task, note: ToQueryHost): void {
    const { worker, running } = task
    if (worker === null) {
      if (note.kind === 'cancel') this.#failed(task, new CancelledError(note.reason))
      return
    }
    if (running.settled) worker.readers.delete(running)
    if (this.#workers.get(worker.thread.threadId) === worker) worker.thread.post(note)
    else if (note.kind === 'release') this.#leastBusy().thread.post({ kind: 'free', addresses: [note.address] })
  }

  /** Returns false if no such query is running. */
  cancel(queryId: number, reason: string): boolean {
    const task = this.#running.get(queryId)
    task?.running.cancel(reason)
    return task !== undefined
  }

  /** How many rows the query has read, and has to read; null while that is not known. */
  rowsRead(queryId: number): RowsRead | null {
    return this.#running.get(queryId)?.rowsRead ?? null
  }

  runJob(jobId: number, job: Job): void {
    this.#postJob(this.#leastBusy(), { jobId, job, deaths: 0 })
  }

  #postJob({ jobs, thread }: Worker, posted: PostedJob): void {
    const { jobId, job } = posted
    jobs.set(jobId, posted)
    thread.post({ kind: 'job', jobId, job })
  }

  /** Runs a job again on any thread: its inputs exist until it is done, and its output files are written again. */
  #runAgain(posted: PostedJob, died: boolean, error: ErrorRecord): void {
    const deaths = posted.deaths + (died ? 1 : 0)
    if (deaths >= jobDeathsMax) this.#jobFailed(posted.jobId, error)
    else this.#postJob(this.#leastBusy(), { ...posted, deaths })
  }

  receive(threadId: number, message: FromQueryHost): void {
    switch (message.kind) {
      case 'jobDone':
        this.#workers.get(threadId)?.jobs.delete(message.jobId)
        if (message.jobId < 0) this.#stageDone(message.jobId).resolve(message.result)
        else this.#options.jobDone(message.jobId, message.result)
        return
      case 'jobFailed': {
        const posted = this.#workers.get(threadId)?.jobs.get(message.jobId)
        this.#workers.get(threadId)?.jobs.delete(message.jobId)
        if (posted === undefined || message.error.detail !== 'remote') this.#jobFailed(message.jobId, message.error)
        else void this.#fetches.settled(threadId).then(() => this.#runAgain(posted, true, message.error))
        return
      }
      case 'fetchBlocks':
      case 'blocksUsed': {
        const thread = this.#workers.get(threadId)?.thread
        if (thread !== undefined) this.#fetches.receive(thread, message)
        return
      }
      case 'csvBatches':
      case 'csvFailed':
      case 'csvLent':
      case 'csvTaken':
      case 'csvMemtable':
      case 'csvClosed':
        this.#csv.receive(message)
        return
      case 'offerFragment':
        this.#offer(message)
        return
      case 'progress': {
        const task = this.#running.get(message.queryId)
        if (task !== undefined) task.rowsRead = message
        return
      }
      case 'dismissed': {
        const thread = this.#workers.get(threadId)?.thread
        if (thread !== undefined) this.#workerGone(message.queryId, thread)
        return
      }
      default:
        this.#deliver(message)
    }
  }

  /** Notifies all other threads of a fragment. Busy ones may join late or never. */
  #offer({ queryId, kind: _kind, ...fragment }: OfferFragment): void {
    const parallel = this.#parallel.get(queryId)
    if (parallel === undefined) return
    parallel.called = true
    if (!this.#running.has(queryId)) return
    for (const { thread } of this.#workers.values()) {
      if (thread === parallel.coordinator) continue
      try {
        thread.post({ kind: 'joinFragment', request: parallel.request, ...fragment })
      } catch {
        // The coordinator then runs the fragment alone.
        return
      }
      parallel.fragmentWorkers.add(thread)
      parallel.notified.add(thread)
    }
  }

  #dismiss(queryId: number, parallel: ParallelAttempt, ended: () => void): void {
    parallel.ended = ended
    parallel.endedMs = performance.now()
    if (parallel.fragmentWorkers.size > 0) setCancelFlag(this.#options.memory, queryId)
    for (const thread of parallel.fragmentWorkers) thread.post({ kind: 'dismiss', queryId })
    if (parallel.fragmentWorkers.size === 0) this.#closeFragments(queryId, parallel)
  }

  #workerGone(queryId: number, thread: Thread<ToQueryHost>): void {
    const parallel = this.#parallel.get(queryId)
    if (parallel?.fragmentWorkers.delete(thread) !== true) return
    if (parallel.fragmentWorkers.size === 0 && parallel.ended !== null) this.#closeFragments(queryId, parallel)
  }

  #closeFragments(queryId: number, { coordinator, called, notified, ended }: ParallelAttempt): void {
    this.#parallel.delete(queryId)
    if (called) for (const thread of [coordinator, ...notified]) thread.post({ kind: 'fragmentsClosed', queryId })
    this.#orphans.queryOver(queryId)
    ended?.()
  }

  #jobFailed(jobId: number, error: ErrorRecord): void {
    if (jobId < 0) this.#stageDone(jobId).reject(errorFromRecord(error))
    else this.#options.jobFailed(jobId, error)
  }

  #stageDone(jobId: number): Deferred<JobResult> {
    const done = this.#stages.get(jobId)
    assert(done !== undefined, 'M2: a job of an import is known until it is done')
    this.#stages.delete(jobId)
    return done
  }

  /** Jobs of imports have negative ids. */
  #runStage(work: StageWork, decoder: Thread<ToQueryHost>): Promise<JobResult> {
    const worker = this.#leastBusy(decoder)
    const jobId = this.#nextStageId--
    const done = deferred<JobResult>()
    this.#stages.set(jobId, done)
    this.#postJob(worker, { jobId, job: work, deaths: 0 })
    return done.promise
  }

  load(services: Pick<LoadServices, 'request' | 'postWriter' | 'ended'>, options: LoadOptions): CsvLoad {
    this.#options.used?.()
    const { thread } = this.#leastBusy()
    const { memory } = this.#options
    const runStage: LoadServices['runStage'] = (work, decoder) => this.#runStage(work, decoder)
    return this.#csv.load({ ...services, memory, thread, runStage }, options)
  }

  csv(shape: CsvShape): CsvDecoding {
    this.#options.used?.()
    const { thread } = this.#leastBusy()
    return this.#csv.open(thread, shape)
  }

  #deliver(message: QueryReply): void {
    const task = this.#running.get(message.queryId)
    if (task === undefined) return
    const { running, worker } = task
    if (message.kind === 'error' && worker !== null && this.#mayRestart(task, message.error)) {
      this.#pause(task, worker, () => this.#starved.join(task.starved))
    } else if (message.kind === 'error' && worker !== null && this.#mayFetch(task, message.error)) {
      this.#pause(task, worker, () => this.#whenFetched(task, worker.thread.threadId))
    } else if (message.kind === 'end' || message.kind === 'error') this.#finish(message)
    else running.deliver(message)
  }

  #finish(message: Extract<QueryReply, { kind: 'end' | 'error' }>): void {
    const running = this.#running.get(message.queryId)?.running
    if (running === undefined) return
    this.#running.delete(running.queryId)
    for (const { queries } of this.#workers.values()) queries.delete(running)
    running.deliver(message)
    for (const { readers } of this.#workers.values()) if (running.settled) readers.delete(running)
  }

  /** The least busy thread, if possible not `but`. */
  #leastBusy(but: Thread<ToQueryHost> | null = null): Worker {
    let best: Worker | undefined
    for (const worker of this.#workers.values()) {
      if (worker.thread === but && this.#workers.size > 1) continue
      if (best === undefined || load(worker) < load(best)) best = worker
    }
    assert(best !== undefined, 'M2: there is a query thread')
    return best
  }
}

function lostByStuckQuery(): Error {
  return new ResourceError('the query thread was ended because another query did not stop; run the statement again')
}

function load(worker: Worker): number {
  return worker.queries.size + worker.jobs.size
}
