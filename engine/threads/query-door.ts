// Queries on their way through the query threads: picks a thread, hands result blocks to whoever reads them, one at a
// time, and gives each back when the next is asked for. Jobs of the writer go through here as well.
//
// When a query's lead calls for help, every other thread hears of it. At the query's end they are dismissed; until all of
// them have answered (or died) what they may look at stays: the query's snapshot and the lead's boards.

import { assert } from '../base/assert.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { type ErrorRecord, errorFromRecord, errorRecord } from '../base/errors.js'
import type { CsvShape } from '../csv/shape.js'
import type { CsvDecoding, CsvLoad, LoadOptions, ReadyRows } from '../engine.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { FromQueryThread, RunQuery, ShareFragment } from '../sql/exec/messages.js'
import type { NodeProfile } from '../sql/exec/profile.js'
import type { Job, JobResult, StageWork } from '../storage/messages.js'
import type { Value } from '../types/value.js'
import { CsvDoor } from './csv-door.js'
import type { LoadServices } from './load-door.js'
import type { FromQueryHost, ToQueryHost } from './messages.js'
import type { Thread } from './thread.js'

export interface QuerySummary {
  readonly rows: number
  readonly cut: boolean
  readonly executeMs: number
  readonly profile?: readonly NodeProfile[]
}

/** A query under way, as its reader sees it. */
export interface RunningQuery {
  readonly queryId: number
  readonly blocks: AsyncIterable<Uint8Array>
  readonly values: AsyncIterable<readonly (readonly Value[])[]>
  readonly summary: Promise<QuerySummary>
  /** The whole result, where it is there already. */
  readonly ready: ReadyRows | null
  cancel(reason: string): void
}

/** Who helps a query, and what waits until they are gone. */
interface Helped {
  readonly lead: Thread<ToQueryHost>
  readonly request: RunQuery
  readonly helpers: Set<Thread<ToQueryHost>>
  called: boolean
  ended: (() => void) | null
}

interface Worker {
  readonly thread: Thread<ToQueryHost>
  readonly queries: Set<Running>
  readonly jobs: Set<number>
}

export interface QueryDoorOptions {
  readonly memory: SharedMemory
  readonly jobDone: (jobId: number, result: JobResult) => void
  readonly jobFailed: (jobId: number, error: ErrorRecord) => void
}

export class QueryDoor {
  readonly #options: QueryDoorOptions
  readonly #workers = new Map<number, Worker>()
  readonly #running = new Map<number, Running>()
  /** By query id, until the last helper is gone. */
  readonly #helped = new Map<number, Helped>()
  readonly #csv = new CsvDoor()
  /** Jobs of imports, by their ids. */
  readonly #stages = new Map<number, Deferred<JobResult>>()
  #nextStageId = -1
  /** Of the query that is run next. */
  nextQueryId = 1

  constructor(options: QueryDoorOptions) {
    this.#options = options
  }

  addThread(thread: Thread<ToQueryHost>): void {
    this.#workers.set(thread.threadId, { thread, queries: new Set(), jobs: new Set() })
  }

  /** A thread died: its queries fail, its jobs are reported failed. */
  threadEnded(threadId: number, error: Error): void {
    const worker = this.#workers.get(threadId)
    if (worker === undefined) return
    this.#workers.delete(threadId)
    const record = errorRecord(error)
    for (const running of worker.queries)
      this.#finish(running, { kind: 'error', queryId: running.queryId, error: record })
    this.#csv.threadEnded(worker.thread, record)
    for (const jobId of worker.jobs) this.#jobFailed(jobId, record)
    for (const queryId of [...this.#helped.keys()]) this.#helperGone(queryId, worker.thread)
  }

  /** `ended` is called once, behind the last block or the error. */
  run(request: Omit<RunQuery, 'kind' | 'queryId'>, ended: () => void): RunningQuery {
    const worker = this.#leastBusy()
    const queryId = this.nextQueryId++
    const message: RunQuery = { kind: 'run', queryId, ...request }
    const helped: Helped = { lead: worker.thread, request: message, helpers: new Set(), called: false, ended: null }
    const post = (note: ToQueryHost): void => worker.thread.post(note)
    const running = new Running(queryId, this.#options.memory, post, () => this.#dismiss(queryId, helped, ended))
    this.#running.set(queryId, running)
    this.#helped.set(queryId, helped)
    worker.queries.add(running)
    worker.thread.post(message)
    return running
  }

  /** False when no such query runs. */
  cancel(queryId: number, reason: string): boolean {
    const running = this.#running.get(queryId)
    running?.cancel(reason)
    return running !== undefined
  }

  runJob(jobId: number, job: Job): void {
    const worker = this.#leastBusy()
    worker.jobs.add(jobId)
    worker.thread.post({ kind: 'job', jobId, job })
  }

  receive(threadId: number, message: FromQueryHost): void {
    switch (message.kind) {
      case 'jobDone':
        this.#workers.get(threadId)?.jobs.delete(message.jobId)
        if (message.jobId < 0) this.#stageDone(message.jobId).resolve(message.result)
        else this.#options.jobDone(message.jobId, message.result)
        return
      case 'jobFailed':
        this.#workers.get(threadId)?.jobs.delete(message.jobId)
        this.#jobFailed(message.jobId, message.error)
        return
      case 'csvBatches':
      case 'csvFailed':
      case 'csvLent':
      case 'csvTaken':
      case 'csvGeneration':
      case 'csvClosed':
        this.#csv.receive(message)
        return
      case 'share':
        this.#share(message)
        return
      case 'dismissed': {
        const thread = this.#workers.get(threadId)?.thread
        if (thread !== undefined) this.#helperGone(message.queryId, thread)
        return
      }
      default:
        this.#deliver(message)
    }
  }

  /** All other threads hear of the fragment; who is busy comes late or never. */
  #share({ queryId, kind: _kind, ...fragment }: ShareFragment): void {
    const helped = this.#helped.get(queryId)
    if (helped === undefined) return
    helped.called = true
    if (!this.#running.has(queryId)) return
    for (const { thread } of this.#workers.values()) {
      if (thread === helped.lead) continue
      helped.helpers.add(thread)
      thread.post({ kind: 'help', request: helped.request, ...fragment })
    }
  }

  #dismiss(queryId: number, helped: Helped, ended: () => void): void {
    helped.ended = ended
    for (const thread of helped.helpers) thread.post({ kind: 'dismiss', queryId })
    if (helped.helpers.size === 0) this.#unshare(queryId, helped)
  }

  #helperGone(queryId: number, thread: Thread<ToQueryHost>): void {
    const helped = this.#helped.get(queryId)
    if (helped?.helpers.delete(thread) !== true) return
    if (helped.helpers.size === 0 && helped.ended !== null) this.#unshare(queryId, helped)
  }

  #unshare(queryId: number, { lead, called, ended }: Helped): void {
    this.#helped.delete(queryId)
    if (called) lead.post({ kind: 'unshared', queryId })
    ended?.()
  }

  #jobFailed(jobId: number, error: ErrorRecord): void {
    if (jobId < 0) this.#stageDone(jobId).reject(errorFromRecord(error))
    else this.#options.jobFailed(jobId, error)
  }

  #stageDone(jobId: number): Deferred<JobResult> {
    const done = this.#stages.get(jobId)
    assert(done !== undefined, 'a job of an import is known until it is done')
    this.#stages.delete(jobId)
    return done
  }

  /** Jobs of imports have negative ids. */
  #runStage(work: StageWork, decoder: Thread<ToQueryHost>): Promise<JobResult> {
    const worker = this.#leastBusy(decoder)
    const jobId = this.#nextStageId--
    const done = deferred<JobResult>()
    this.#stages.set(jobId, done)
    worker.jobs.add(jobId)
    worker.thread.post({ kind: 'job', jobId, job: work })
    return done.promise
  }

  load(services: Pick<LoadServices, 'request' | 'postWriter' | 'ended'>, options: LoadOptions): CsvLoad {
    const { thread } = this.#leastBusy()
    const { memory } = this.#options
    const runStage: LoadServices['runStage'] = (work, decoder) => this.#runStage(work, decoder)
    return this.#csv.load({ ...services, memory, thread, runStage }, options)
  }

  csv(shape: CsvShape): CsvDecoding {
    const { thread } = this.#leastBusy()
    return this.#csv.open(thread, shape)
  }

  #deliver(message: Answer): void {
    const running = this.#running.get(message.queryId)
    if (running === undefined) return
    if (message.kind === 'end' || message.kind === 'error') this.#finish(running, message)
    else running.deliver(message)
  }

  #finish(running: Running, message: Extract<Answer, { kind: 'end' | 'error' }>): void {
    this.#running.delete(running.queryId)
    for (const { queries } of this.#workers.values()) queries.delete(running)
    running.deliver(message)
  }

  /** Another one than `but`, where there is one. */
  #leastBusy(but: Thread<ToQueryHost> | null = null): Worker {
    let best: Worker | undefined
    for (const worker of this.#workers.values()) {
      if (worker.thread === but && this.#workers.size > 1) continue
      if (best === undefined || load(worker) < load(best)) best = worker
    }
    assert(best !== undefined, 'there is a query thread')
    return best
  }
}

function load(worker: Worker): number {
  return worker.queries.size + worker.jobs.size
}

/** What a lead tells a query's reader. */
type Answer = Exclude<FromQueryThread, { kind: 'share' | 'dismissed' }>
type Delivered = Extract<FromQueryThread, { kind: 'block' | 'rows' }>

class Running implements RunningQuery {
  readonly queryId: number
  readonly ready = null
  readonly summary: Promise<QuerySummary>
  readonly #memory: SharedMemory
  readonly #post: (message: ToQueryHost) => void
  readonly #ended: () => void
  readonly #waiting: Delivered[] = []
  readonly #settle = deferred<QuerySummary>()
  #over: 'no' | 'yes' | Error = 'no'
  #news: (() => void) | null = null
  /** Address of the block that the reader looks at, 0 = none. */
  #lent = 0

  constructor(queryId: number, memory: SharedMemory, post: (message: ToQueryHost) => void, ended: () => void) {
    this.queryId = queryId
    this.#memory = memory
    this.#post = post
    this.#ended = ended
    this.summary = this.#settle.promise
    this.summary.catch(() => {})
  }

  deliver(message: Answer): void {
    switch (message.kind) {
      case 'block':
      case 'rows':
        this.#waiting.push(message)
        break
      case 'end':
        this.#over = 'yes'
        this.#settle.resolve(message)
        break
      case 'error':
        this.#over = errorFromRecord(message.error)
        this.#settle.reject(this.#over)
        break
    }
    if (this.#over !== 'no') this.#ended()
    this.#news?.()
  }

  cancel(reason: string): void {
    if (this.#over === 'no') this.#post({ kind: 'cancel', queryId: this.queryId, reason })
  }

  get blocks(): AsyncIterable<Uint8Array> {
    return this.#iterate((message) => {
      assert(message.kind === 'block', 'this encoding sends blocks')
      this.#lent = message.address
      return this.#memory.u8.subarray(message.address, message.address + message.bytes)
    })
  }

  get values(): AsyncIterable<readonly (readonly Value[])[]> {
    return this.#iterate((message) => {
      assert(message.kind === 'rows', 'this encoding sends values')
      return message.rows as readonly (readonly Value[])[]
    })
  }

  /** A reader that leaves early cancels the query; blocks that nobody will read are given back. */
  async *#iterate<T>(open: (message: Delivered) => T): AsyncGenerator<T> {
    try {
      for (;;) {
        const message = await this.#next()
        if (message === null) return
        yield open(message)
        this.#giveBack()
      }
    } finally {
      this.#giveBack()
      this.cancel('the reader went away')
      this.#drain()
    }
  }

  async #next(): Promise<Delivered | null> {
    for (;;) {
      const message = this.#waiting.shift()
      if (message !== undefined) return message
      if (this.#over === 'yes') return null
      if (this.#over !== 'no') throw this.#over
      await new Promise<void>((resolve) => {
        this.#news = resolve
      })
      this.#news = null
    }
  }

  #giveBack(): void {
    if (this.#lent === 0) return
    this.#post({ kind: 'release', queryId: this.queryId, address: this.#lent })
    this.#lent = 0
  }

  #drain(): void {
    for (const message of this.#waiting.splice(0)) {
      if (message.kind === 'block') this.#post({ kind: 'release', queryId: this.queryId, address: message.address })
    }
    if (this.#over === 'no') this.#news = () => this.#drain()
  }
}
