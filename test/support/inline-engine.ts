// Runs the whole engine in the test's own thread, over real or simulated files: main-thread part, writer, log thread,
// and one query thread that also runs background jobs. Messages between them are cloned as between threads; each of
// them runs a step at a time whenever the test waits for a result.

import type { Clock } from '../../engine/base/clock.js'
import type { ErrorRecord } from '../../engine/base/errors.js'
import type { Files } from '../../engine/base/files.js'
import { inlineArenaBytes } from '../../engine/base/limits.js'
import type { Log } from '../../engine/base/log.js'
import type { Receipt } from '../../engine/engine.js'
import { InlineExecutor, readyChunks } from '../../engine/exec/run/inline-executor.js'
import { QueryLoop } from '../../engine/exec/run/query-loop.js'
import { loadKernels } from '../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../engine/memory/allocator.js'
import { type Allocator, budgets } from '../../engine/memory/budgets.js'
import { initializeRing } from '../../engine/memory/ring.js'
import { createSharedMemory, type SharedMemory } from '../../engine/memory/shared-memory.js'
import { CatalogView } from '../../engine/session/catalog-view.js'
import { InlineExecution } from '../../engine/session/inline-execution.js'
import { LocalEngine } from '../../engine/session/local-engine.js'
import { type EngineObjectStore, type StoreWork, startStoreWork } from '../../engine/session/store-work.js'
import { ChunkCache } from '../../engine/storage/cache/chunk-cache.js'
import { createChunkCache } from '../../engine/storage/cache/chunk-slots.js'
import { chooseCompaction } from '../../engine/storage/jobs/compaction.js'
import type { FromWriter, ToWriter } from '../../engine/storage/jobs/messages.js'
import type { PartAccess } from '../../engine/storage/part/part-access.js'
import { createPartAccess } from '../../engine/storage/part/part-reader.js'
import { RemoteBlocks } from '../../engine/storage/part/remote-blocks.js'
import type { WriterSettings } from '../../engine/storage/writer/writer-state.js'
import { WriterLoop } from '../../engine/storage/writer-loop.js'
import { JobRunner } from '../../engine/threads/job-runner.js'
import type { FromQueryHost, ToQueryHost } from '../../engine/threads/messages.js'
import { QueryPool } from '../../engine/threads/query-pool.js'
import type { Value } from '../../engine/types/value.js'
import { createLogLoop, type LogLoop } from '../../engine/wal/log-loop.js'
import type { LogReport, LogRequest } from '../../engine/wal/types.js'
import { createFaultyDisk } from './simulator/faulty-files.js'
import { executeOptions } from './test-engine.js'

const MIB = 1024 * 1024
const cacheBytes = 16 * MIB
const directory = '/db'

export interface InlineOptions {
  readonly files: Files
  readonly settings?: Partial<WriterSettings>
  readonly memtableBytes?: number
  readonly walBytesMax?: number
  readonly walSegmentBytes?: number
  /** Parts are never joined. */
  readonly noCompactions?: boolean
  readonly startMicros?: number
  /** Small queries are not handed over. */
  readonly inline?: boolean
  /** Whether statements that differ only in constants share plans; yes, when missing. */
  readonly sharesPlans?: boolean
  /** Whether queries have generated code; yes, when missing. */
  readonly jit?: boolean
  /** Storage policies and the lake work in it by timers. */
  readonly objectStore?: EngineObjectStore
  /** As the work with the object store sees the disk. */
  readonly storeFiles?: Files
  /** Called at the begin of each turn. */
  readonly turning?: () => void
}

export class InlineEngine {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly view: CatalogView
  readonly engine: LocalEngine
  readonly logged: string[] = []
  /** While false, jobs rest. */
  jobsRun = true
  ms = 0
  readonly #writer: WriterLoop
  readonly #logLoop: LogLoop
  readonly #jobs: JobRunner
  readonly #queries: QueryLoop
  readonly #toWriter: ToWriter[] = []
  readonly #fromWriter: FromWriter[] = []
  readonly #toQueries: ToQueryHost[] = []
  readonly #fromQueries: FromQueryHost[] = []
  readonly #toLog: LogRequest[] = []
  readonly #reports: LogReport[] = []
  /** Told by the writer. */
  readonly logFailures: ErrorRecord[] = []
  readonly jobKinds: string[] = []

  constructor(options: InlineOptions) {
    this.memory = preparedMemory(options)
    this.allocator = createAllocator(this.memory, 1)
    initializeRing(this.memory, this.allocator.allocateOrThrow(MIB, budgets.ingest), MIB)
    const kernels = loadKernels(this.memory)
    const cacheAddress = createChunkCache(this.memory, this.allocator, cacheBytes)
    const { memory } = this
    const { files } = options
    const startMicros = options.startMicros ?? 1_700_000_000_000_000
    const clock = { nowMicros: () => startMicros + this.ms * 1000, monotonicMs: () => this.ms }
    const log: Log = (level, _logger, message) => {
      if (level !== 'I') this.logged.push(message)
    }
    this.view = new CatalogView(memory, (message) => void this.#toWriter.push(message), clock)
    this.#logLoop = createLogLoop({
      files,
      take: () => this.#toLog.shift(),
      report: (report) => this.#reports.push(report),
    })
    const allocator = createAllocator(memory, 3)
    const cache = new ChunkCache(memory, allocator, cacheAddress, 3)
    const post = (message: FromQueryHost): number => this.#fromQueries.push(message)
    const blocks = options.objectStore?.blocks ?? ''
    const remote = new RemoteBlocks({ files, directory: blocks, post, nowMs: () => this.ms })
    this.#remote = remote
    const parts = createPartAccess({ files, directory, memory, allocator, kernels, cache, remote })
    this.#parts = parts
    this.#jobs = new JobRunner({ files, directory, memory, allocator, kernels, codec: 'lz4_raw', parts }, post)
    this.#queries = new QueryLoop({ memory, allocator, kernels, partAccess: parts, clock, post })
    const queries = this.#startPool(options)
    this.#queryPool = queries
    this.engine = new LocalEngine({
      ...{
        memory,
        view: this.view,
        queries,
        clock,
        log,
        jit: options.jit ?? true,
        sharesPlans: options.sharesPlans ?? true,
        cacheAddress,
        durable: true,
        inline: options.inline === true ? this.#inlineExecution(files, clock, cacheAddress) : null,
      },
      postWriter: (message) => this.#toWriter.push(structuredClone(message)),
      wakeWriter: () => {},
      endThreads: async () => {},
      parameters: () => [],
      configuredUsers: [],
    })
    this.#writer = new WriterLoop({
      ...{ memory, allocator: this.allocator, kernels, files, directory, clock, log, commitMode: 'sync' },
      post: (message) => this.#fromWriter.push(structuredClone(message)),
      sendLog: (request) => this.#toLog.push(request),
      walBytesMax: options.walBytesMax ?? 8 * MIB,
      walSegmentBytes: options.walSegmentBytes ?? 256 * 1024,
      settings: options.settings ?? {},
      partAccess: parts,
      chooseCompaction: options.noCompactions === true ? () => undefined : chooseCompaction,
    })
    this.#turning = options.turning ?? (() => {})
    this.turn()
    this.#storeWork = this.#startStoreWork(options, { clock, log })
    if (this.#storeWork !== null) this.engine.lake = this.#storeWork.lake
  }

  readonly #turning: () => void
  readonly #storeWork: StoreWork | null
  readonly #remote: RemoteBlocks
  readonly #parts: PartAccess
  readonly #queryPool: QueryPool

  #startPool({ objectStore }: InlineOptions): QueryPool {
    const queries = new QueryPool({
      memory: this.memory,
      jobDone: (jobId, result) => this.#toWriter.push({ kind: 'jobDone', jobId, result }),
      jobFailed: (jobId, error) => this.#toWriter.push({ kind: 'jobFailed', jobId, error }),
      blocks: objectStore?.store ?? null,
    })
    queries.addThread({
      threadId: 3,
      post: (message) => this.#toQueries.push(structuredClone(message)),
      terminate: async () => {},
    })
    return queries
  }

  #startStoreWork(
    { objectStore, files, storeFiles = files }: InlineOptions,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
  ): StoreWork | null {
    if (objectStore === undefined) return null
    const { view, memory, engine } = this
    return startStoreWork(objectStore, {
      ...{ view, memory, files: storeFiles, directory, clock, log },
      post: (message) => this.#toWriter.push(structuredClone(message)),
      flush: (tableId) => engine.flush(tableId),
      execute: (sql, requested) => engine.execute(sql, requested),
      lines: (request) => engine.lines(request),
      positions: (connector) => engine.positions(connector),
    })
  }

  #inlineExecution(files: Files, clock: Clock, cacheAddress: number): InlineExecution {
    const { memory, view } = this
    const kernels = loadKernels(memory)
    const allocator = createAllocator(memory, 0)
    const cache = readyChunks(new ChunkCache(memory, allocator, cacheAddress, 0))
    const partAccess = createPartAccess({ files, directory, memory, allocator, kernels, cache })
    const arena = allocator.allocateOrThrow(inlineArenaBytes, budgets.queries)
    const inline = new InlineExecutor({ memory, clock, kernels, partAccess, arena })
    return new InlineExecution({ inline, memory: this.memory, view, queries: this.#queryPool })
  }

  /** Everybody has a turn; answers whether anything happened. */
  turn(): boolean {
    this.ms++
    this.#turning()
    let worked = false
    for (let message = this.#toWriter.shift(); message !== undefined; message = this.#toWriter.shift()) {
      this.#writer.receive(message)
      worked = true
    }
    worked = this.#writer.step() === 'worked' || worked
    worked = this.#logLoop.step() === 'worked' || worked
    for (let report = this.#reports.shift(); report !== undefined; report = this.#reports.shift()) {
      this.#writer.report(report)
      worked = true
    }
    for (let message = this.#fromWriter.shift(); message !== undefined; message = this.#fromWriter.shift()) {
      this.#hear(message)
      worked = true
    }
    for (let message = this.#toQueries.shift(); message !== undefined; message = this.#toQueries.shift()) {
      if (message.kind === 'job') this.#jobs.add(message.jobId, message.job)
      else if (message.kind === 'run' || message.kind === 'cancel') this.#queries.receive(message)
      else if (message.kind === 'fetched') this.#remote.fetched(message.requestId, message.error)
      else if (message.kind === 'release' || message.kind === 'taken') this.#queries.receive(message)
      worked = true
    }
    worked = this.#queries.step() === 'worked' || worked
    if (this.jobsRun) worked = this.#jobs.step() === 'worked' || worked
    if (!worked) this.#parts.goIdle()
    for (let message = this.#fromQueries.shift(); message !== undefined; message = this.#fromQueries.shift()) {
      this.#queryPool.receive(3, structuredClone(message))
      worked = true
    }
    return worked
  }

  #hear(message: FromWriter): void {
    if (message.kind === 'logFailed') this.logFailures.push(message.error)
    if (message.kind === 'job') this.jobKinds.push(message.job.kind)
    if (message.kind === 'ready') this.view.publish(message.versions, [])
    this.engine.receive(message)
  }

  /** Steps everybody until the promise settles. */
  async until<T>(promise: Promise<T>, turns = 200_000): Promise<T> {
    let settled = false
    const done = (): void => {
      settled = true
    }
    promise.then(done, done)
    for (let turn = 0; !settled; turn++) {
      if (turn > turns) throw new Error(`nothing came of it [log=${this.logged.join('; ')}]`)
      this.turn()
      for (let tick = 0; tick < 4; tick++) await Promise.resolve()
    }
    return promise
  }

  /** Runs until nothing happens. */
  async settle(turns = 20_000): Promise<void> {
    for (let idle = 0, count = 0; idle < 5 && count < turns; count++) {
      idle = this.turn() ? 0 : idle + 1
      await Promise.resolve()
    }
  }

  /** The writer ends in order. */
  async close(): Promise<void> {
    this.#storeWork?.close()
    this.#toWriter.push({ kind: 'close', requestId: 0 })
    for (let turn = 0; !this.#writer.closed; turn++) {
      if (turn > 20_000) throw new Error('the writer does not close')
      this.turn()
      await Promise.resolve()
    }
  }

  /** Rows of a query, or none; `affected` of other statements. */
  async run(sql: string): Promise<{ rows: (readonly Value[])[]; affected: number }> {
    const result = await this.until(this.engine.execute(sql, executeOptions))
    if (result.kind === 'done') return { rows: [], affected: result.rows }
    if (result.kind === 'plan') throw new Error('no plan was asked for')
    const rows: (readonly Value[])[] = []
    const all = (async () => {
      for await (const some of result.values) rows.push(...some)
    })()
    await this.until(all)
    return { rows, affected: 0 }
  }

  async rows(sql: string): Promise<(readonly Value[])[]> {
    return (await this.run(sql)).rows
  }

  async lines(text: string): Promise<Receipt> {
    const blocks = [new TextEncoder().encode(text)]
    const ticket = this.engine.lines({ blocks, precision: 'n', atomic: true, skipBadLines: false, connectionId: 1 })
    return this.until(ticket.receipt)
  }
}

function preparedMemory({ memtableBytes = 32 * MIB }: InlineOptions): SharedMemory {
  const memory = createSharedMemory(128 * MIB)
  initializeHeap(memory, { limits: [12 * MIB, memtableBytes, cacheBytes + 2 * MIB, 32 * MIB, 24 * MIB] })
  return memory
}

/** An engine without tables, on a disk of its own. */
export async function emptyEngine(options: Omit<InlineOptions, 'files'> = {}): Promise<InlineEngine> {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const engine = new InlineEngine({ ...options, files })
  await engine.settle()
  return engine
}
