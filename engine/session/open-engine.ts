// Starts the engine: creates the shared memory, starts the log thread and the writer thread, and waits until the writer
// has recovered the data directory. Then it starts one query thread, and the others when there is a table or a query.
//
// When a query thread dies, its queries fail and a new thread replaces it. When the writer or the log thread dies, the
// process must end: everything acknowledged is in the log, and the next start recovers it.

import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { SharedClock } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import { errorFromRecord } from '../base/errors.js'
import { nodeFiles } from '../base/files.js'
import { inlineArenaBytes } from '../base/limits.js'
import type { Log } from '../base/log.js'
import { breakAllocatorLock, createAllocator, initializeHeap } from '../memory/allocator.js'
import { budgets } from '../memory/budgets.js'
import { threadsMax } from '../memory/layout.js'
import { ledgerBytes } from '../memory/ledger.js'
import { initializeRing } from '../memory/ring.js'
import { createSharedMemory, type SharedMemory } from '../memory/shared-memory.js'
import type { ServerParameter } from '../sql/catalog.js'
import { ChunkCache } from '../storage/cache/chunk-cache.js'
import { createChunkCache } from '../storage/cache/chunk-slots.js'
import type { FromWriter, ToWriter } from '../storage/jobs/messages.js'
import { removeLeftFiles } from '../storage/part/temporary-files.js'
import type { WriterSettings } from '../storage/writer/writer-state.js'
import type { LogThreadMessage } from '../threads/log-thread.js'
import type { FromQueryHost, ToQueryHost } from '../threads/messages.js'
import { QueryPool } from '../threads/query-pool.js'
import { type Overdue, QueryWatch } from '../threads/query-watch.js'
import { startThread, type Thread } from '../threads/thread.js'
import { type SentToQueryHost, SentVersions } from '../threads/version-delta.js'
import { threadIds, wake } from '../threads/wake.js'
import type { CommitMode } from '../wal/types.js'
import { CatalogView } from './catalog-view.js'
import { InlineExecution, openInlineExecutor } from './inline-execution.js'
import { LocalEngine } from './local-engine.js'
import type { EngineHooks } from './local-options.js'
import { type EngineObjectStore, type StoreWork, startStoreWork } from './store-work.js'
import type { ConfiguredName } from './user-catalog.js'

const MIB = 1024 * 1024
/** How long a thread may take to end by itself. */
const threadEndMs = 5000
/**
 * Ledgers in reserve for terminated query threads whose memory is not freed yet. Threads beyond these have no ledger,
 * and their memory is not recovered.
 */
const spareThreads = 4

export interface EngineOptions {
  /** The data directory; created if missing, and locked against a second server. */
  readonly directory: string
  /** An existing directory for spill files; if absent, queries that outgrow the memory fail. */
  readonly temporary?: string
  /** Limit of the bytes that one query may hold in temporary files; 0 or absent: none. */
  readonly spillBytesMax?: number
  /** Size of the shared memory. */
  readonly memoryBytes: number
  readonly queryThreads: number
  readonly commitMode: CommitMode
  /** For commit mode async. */
  readonly syncIntervalMs: number
  readonly walBytesMax: number
  /** Writer settings that differ from the defaults. */
  readonly writer: Partial<WriterSettings>
  readonly jit: boolean
  readonly viewRewrite?: 'on' | 'off' | 'exact'
  readonly viewRead?: 'fresh' | 'stored'
  readonly log: Log
  readonly clock: SharedClock
  /** The list of SHOW PARAMETERS. */
  readonly parameters: () => readonly ServerParameter[]
  readonly reload?: EngineHooks['reload']
  readonly systemTable?: EngineHooks['systemTable']
  readonly observer?: EngineHooks['observer']
  readonly backends?: EngineHooks['backends']
  readonly objectStore?: EngineObjectStore
  /** Users defined by settings: SQL cannot create users with these names. */
  readonly configuredUsers: readonly ConfiguredName[]
  /** Called when the log cannot be written; the engine rejects writes and keeps trying. */
  readonly logFailed?: (error: Error) => void
  /** Called when the engine cannot continue: the process should end within a second. */
  readonly fatal: (error: Error) => void
}

/** Options of a writer thread. */
export interface WriterThreadOptions {
  readonly directory: string
  readonly commitMode: CommitMode
  readonly syncIntervalMs: number
  readonly walBytesMax: number
  readonly writer: Partial<WriterSettings>
  /** Anchor of the process's clock. */
  readonly clockAnchor: SharedArrayBuffer
  /** Address of the chunk cache's structure. */
  readonly cacheAddress: number
}

export interface QueryThreadOptions {
  readonly directory: string
  readonly temporary?: string
  readonly spillBytesMax: number
  /** Anchor of the process's clock. */
  readonly clockAnchor: SharedArrayBuffer
  /** Address of the chunk cache's structure. */
  readonly cacheAddress: number
  /** Number of query threads, including this one. */
  readonly queryThreads: number
  /** Address of the ledger, which lists the memory that this thread holds; 0 = none. */
  readonly ledger: number
  /** Folder of the local copies of remote parts; empty: there is none. */
  readonly blocks: string
}

/** Fractions of the memory; the cache gets the rest. */
const shares = { memtables: 0.4, queries: 0.2 } as const
/** Limit, because the log bounds the rows that wait for a flush: more memory would not be used. */
const memtableBytesMax = 768 * MIB
/** Fraction of the memtables' memory for fragmentation between blocks. */
const fragmentShare = 0.15
/** Fraction of the memtables' memory that the cache may borrow while it is unused. */
const borrowedFraction = 0.75
const ringBytes = 32 * MIB
const ingestBytes = 96 * MIB
const flushBytes = 192 * MIB

interface Prepared {
  readonly memory: SharedMemory
  readonly cacheAddress: number
  /** Arena of the inline queries. */
  readonly arena: number
  readonly cache: ChunkCache
  /**
   * Ledgers for query threads. There are more than threads, because a terminated thread keeps its ledger for some time.
   */
  readonly ledgers: number[]
}

function prepareMemory(bytes: number, queryThreads: number): Prepared {
  const memory = createSharedMemory(bytes)
  const ledgerCount = queryThreads + spareThreads
  const permanentBytes = ringBytes + inlineArenaBytes + ledgerCount * ledgerBytes
  const rest = bytes - permanentBytes - ingestBytes - flushBytes
  const limits: number[] = []
  // What is never freed is no part of the memory of queries: a job that waits for all of that gets it when they end.
  limits[budgets.ingest] = permanentBytes + ingestBytes
  const memtables = Math.min(rest * shares.memtables, memtableBytesMax)
  limits[budgets.memtables] = memtables
  limits[budgets.queries] = rest * shares.queries
  limits[budgets.cache] = rest * (1 - shares.queries) - memtables * (1 + fragmentShare)
  limits[budgets.flush] = flushBytes
  limits[budgets.lent] = memtables * borrowedFraction
  // Long-lived pages of cache and memtables are spread over the heap, so budgets that need large areas have regions of
  // their own.
  initializeHeap(memory, { limits, regions: [budgets.flush, budgets.queries, budgets.ingest, budgets.cache] })
  const allocator = createAllocator(memory, threadIds.main)
  initializeRing(memory, allocator.allocateOrThrow(ringBytes, budgets.ingest), ringBytes)
  // Its tables are sized for the cache's own memory, without borrowed memory: they are initialised at the start, and an
  // idle server pays for them.
  const cacheAddress = createChunkCache(memory, allocator, allocator.limit(budgets.cache))
  const arena = allocator.allocateOrThrow(inlineArenaBytes, budgets.ingest)
  // Allocated now, without contention for the allocator's lock.
  const ledgers = Array.from({ length: ledgerCount }, () => {
    const address = allocator.allocateOrThrow(ledgerBytes, budgets.ingest)
    memory.u8.fill(0, address, address + ledgerBytes)
    return address
  })
  return {
    memory,
    cacheAddress,
    arena,
    ledgers,
    cache: new ChunkCache(memory, allocator, cacheAddress, threadIds.main),
  }
}

function hooksOf({ reload, systemTable, observer, backends }: EngineOptions): EngineHooks {
  return {
    ...(reload === undefined ? {} : { reload }),
    ...(systemTable === undefined ? {} : { systemTable }),
    ...(observer === undefined ? {} : { observer }),
    ...(backends === undefined ? {} : { backends }),
  }
}

/** Resolves when statements can run. Rejects when the data directory cannot be opened. */
export async function openEngine(options: EngineOptions): Promise<LocalEngine> {
  if (options.temporary !== undefined) removeLeftFiles({ files: nodeFiles(), directory: options.temporary })
  const threads = new EngineThreads(prepareMemory(options.memoryBytes, options.queryThreads), options)
  await threads.ready
  return threads.engine
}

class EngineThreads {
  readonly engine: LocalEngine
  readonly ready: Promise<void>
  readonly #memory: SharedMemory
  readonly #cacheAddress: number
  readonly #options: EngineOptions
  readonly #view: CatalogView
  readonly #queries: QueryPool
  readonly #ready = deferred<void>()
  readonly #writer: Thread<ToWriter>
  readonly #log: Thread<LogThreadMessage>
  readonly #queryThreads = new Map<number, Thread<ToQueryHost>>()
  /** By thread id. */
  readonly #ledgers = new Map<number, number>()
  readonly #freeLedgers: number[]
  readonly #cache: ChunkCache
  readonly #watch: QueryWatch
  /** Threads that are being terminated because of a query: query id by thread id. */
  readonly #stuck = new Map<number, number>()
  #nextThreadId: number = threadIds.firstQuery - 1
  /** Resolves when the thread has ended. */
  readonly #ends = new Map<number, Deferred<void>>()
  readonly #storeWork: StoreWork | null
  #closing = false
  #allStarted = false

  constructor(prepared: Prepared, options: EngineOptions) {
    const { memory, cacheAddress } = prepared
    this.#memory = memory
    this.#cacheAddress = cacheAddress
    this.#cache = prepared.cache
    this.#freeLedgers = prepared.ledgers
    this.#options = options
    this.ready = this.#ready.promise
    this.#view = new CatalogView(memory, (message) => this.#writer.post(message), options.clock)
    this.#queries = new QueryPool({
      memory,
      used: () => this.#startAll(),
      jobDone: (jobId, result) => this.#writer.post({ kind: 'jobDone', jobId, result }),
      jobFailed: (jobId, error) => this.#writer.post({ kind: 'jobFailed', jobId, error }),
      threadSettled: (threadId, ledger) => {
        this.#cache.unpinThread(threadId)
        if (ledger !== 0) this.#freeLedgers.push(ledger)
      },
      blocks: options.objectStore?.store ?? null,
    })
    this.#watch = new QueryWatch({
      memory,
      overdue: (graceMs) => this.#queries.overdue(graceMs),
      end: (overdue) => this.#endStuck(overdue),
    })
    const { port1, port2 } = new MessageChannel()
    this.#log = startThread<null, LogThreadMessage, never>(
      memory,
      threadIds.log,
      'log-thread.js',
      null,
      this.#events('log', threadIds.log),
      port2,
    )
    this.#writer = this.#startWriter(port1)
    this.engine = new LocalEngine({
      memory,
      view: this.#view,
      queries: this.#queries,
      inline: new InlineExecution({
        inline: openInlineExecutor({ ...prepared, directory: options.directory, clock: options.clock }),
        memory,
        view: this.#view,
        queries: this.#queries,
      }),
      postWriter: (message) => this.#writer.post(message),
      wakeWriter: () => wake(memory, threadIds.writer),
      endThreads: () => this.#endThreads(),
      parameters: options.parameters,
      configuredUsers: options.configuredUsers,
      jit: options.jit,
      viewRewrite: options.viewRewrite ?? 'on',
      viewRead: options.viewRead ?? 'fresh',
      clock: options.clock,
      log: options.log,
      cacheAddress,
      durable: options.commitMode === 'sync',
      ...hooksOf(options),
    })
    this.#storeWork = options.objectStore === undefined ? null : this.#startStoreWork(options.objectStore)
  }

  #startStoreWork(objectStore: EngineObjectStore): StoreWork {
    const { directory, clock, log } = this.#options
    const { engine } = this
    const work = startStoreWork(objectStore, {
      ...{ view: this.#view, memory: this.#memory, files: nodeFiles(), directory, clock, log },
      post: (message) => this.#writer.post(message),
      flush: (tableId) => engine.flush(tableId),
      execute: (sql, requested) => engine.execute(sql, requested),
      lines: (request) => engine.lines(request),
      positions: (connector) => engine.positions(connector),
    })
    engine.lake = work.lake
    engine.relation(work.relation)
    return work
  }

  #startWriter(port: MessagePort): Thread<ToWriter> {
    const { directory, commitMode, syncIntervalMs, walBytesMax, writer } = this.#options
    const threadOptions: WriterThreadOptions = {
      ...{ directory, commitMode, syncIntervalMs, walBytesMax, writer },
      cacheAddress: this.#cacheAddress,
      clockAnchor: this.#options.clock.anchor,
    }
    const events = {
      ...this.#events('writer', threadIds.writer),
      onMessage: (message: FromWriter) => this.#fromWriter(message),
    }
    return startThread<WriterThreadOptions, ToWriter, FromWriter>(
      this.#memory,
      threadIds.writer,
      'writer-thread.js',
      threadOptions,
      events,
      port,
    )
  }

  /** Thread ids are not reused soon, because memory left behind by a dead thread is identified by its id. */
  #startQueryThread(): void {
    const { directory, queryThreads, temporary, spillBytesMax = 0 } = this.#options
    const threadId = this.#freeThreadId()
    const ledger = this.#freeLedgers.pop() ?? 0
    this.#ledgers.set(threadId, ledger)
    const threadOptions: QueryThreadOptions = {
      directory,
      queryThreads,
      spillBytesMax,
      ledger,
      blocks: this.#options.objectStore?.blocks ?? '',
      cacheAddress: this.#cacheAddress,
      clockAnchor: this.#options.clock.anchor,
      ...(temporary === undefined ? {} : { temporary }),
    }
    const sentVersions = new SentVersions()
    const started = startThread<QueryThreadOptions, SentToQueryHost, FromQueryHost>(
      this.#memory,
      threadId,
      'query-thread.js',
      threadOptions,
      {
        log: this.#options.log,
        onMessage: (message) => this.#queries.receive(threadId, message),
        onEnd: (error) => this.#queryThreadEnded(threadId, error),
        onLost: (error) => {
          this.#options.log('E', 'query', `a message was lost [thread=${threadId}]: ${error.message}`)
          sentVersions.forget()
          this.#queries.messageLost(threadId)
        },
      },
    )
    const post = (message: ToQueryHost): void => {
      try {
        started.post(sentVersions.sent(message))
      } catch (error) {
        sentVersions.forget()
        throw error
      }
    }
    const thread: Thread<ToQueryHost> = { ...started, post }
    this.#queryThreads.set(threadId, thread)
    this.#queries.addThread(thread)
  }

  #freeThreadId(): number {
    do {
      if (++this.#nextThreadId >= threadsMax) this.#nextThreadId = threadIds.firstQuery
    } while (this.#queryThreads.has(this.#nextThreadId))
    return this.#nextThreadId
  }

  #endStuck({ threadId, queryId }: Overdue): void {
    const thread = this.#queryThreads.get(threadId)
    if (thread === undefined || this.#stuck.has(threadId)) return
    this.#options.log(
      'W',
      'query',
      `a query does not stop: its thread is terminated [query=${queryId}, thread=${threadId}]`,
    )
    this.#stuck.set(threadId, queryId)
    void thread.terminate()
  }

  /** Event handlers for the threads that the engine cannot do without. */
  #events(name: string, threadId: number) {
    return {
      log: this.#options.log,
      onMessage: () => {},
      onLost: (error: Error) => this.#fatal(error),
      onEnd: (error: Error | null) => {
        this.#endOf(threadId).resolve()
        // The writer's reply to `close` and its end may arrive in the same turn: handle the reply first.
        setImmediate(() => {
          if (!this.#closing) this.#fatal(error ?? new Error(`the ${name} thread ended`))
        })
      },
    }
  }

  #fromWriter(message: FromWriter): void {
    if (message.kind === 'ready') {
      this.#view.publish(message.versions, [])
      this.engine.receive(message)
      this.#ready.resolve()
      // Started after the recovery, which the start waits for and which needs the processors.
      this.#startQueryThread()
    } else if (message.kind === 'fatal') {
      this.#fatal(errorFromRecord(message.error))
    } else if (message.kind === 'logFailed') {
      this.#options.logFailed?.(errorFromRecord(message.error))
    } else {
      this.engine.receive(message)
    }
    if (!this.#allStarted && this.#hasUserTable()) this.#startAll()
  }

  /** A server without data needs one query thread, for jobs; each thread takes 10 MB. */
  #startAll(): void {
    if (this.#allStarted || this.#closing) return
    this.#allStarted = true
    for (let count = this.#queryThreads.size; count < this.#options.queryThreads; count++) this.#startQueryThread()
  }

  #hasUserTable(): boolean {
    const { systemTable } = this.#options
    return this.#view.tables().some(({ schema }) => systemTable?.(schema.name.toLowerCase()) === undefined)
  }

  #fatal(error: Error): void {
    if (this.#closing) return
    this.#closing = true
    this.#ready.reject(error)
    this.engine.writerEnded()
    this.#options.log('C', 'engine', error.stack ?? error.message)
    this.#options.fatal(error)
  }

  #queryThreadEnded(threadId: number, error: Error | null): void {
    this.#endOf(threadId).resolve()
    this.#queryThreads.delete(threadId)
    if (this.#closing) return
    const failure = error ?? new Error('the query thread ended')
    const stuck = this.#stuck.get(threadId) ?? 0
    const ledger = this.#ledgers.get(threadId) ?? 0
    if (stuck === 0)
      this.#options.log('C', 'query', `a query thread died and is replaced: ${failure.stack ?? failure.message}`)
    this.#stuck.delete(threadId)
    this.#ledgers.delete(threadId)
    this.#ends.delete(threadId)
    breakAllocatorLock(this.#memory, threadId)
    this.#cache.endThread(threadId)
    this.#startQueryThread()
    this.#queries.threadEnded(threadId, failure, stuck, ledger)
  }

  async #endThreads(): Promise<void> {
    this.#closing = true
    this.#storeWork?.close()
    this.#watch.close()
    for (const thread of this.#queryThreads.values()) thread.post({ kind: 'close' })
    this.#log.post({ kind: 'close' })
    const all = [this.#writer, this.#log, ...this.#queryThreads.values()]
    await Promise.all(all.map((thread) => this.#end(thread)))
  }

  #endOf(threadId: number): Deferred<void> {
    const known = this.#ends.get(threadId)
    if (known !== undefined) return known
    const end = deferred<void>()
    this.#ends.set(threadId, end)
    return end
  }

  /** Waits until a thread has ended; terminates it after a time limit. */
  async #end(thread: Thread<never>): Promise<void> {
    const end = this.#endOf(thread.threadId)
    const timer = setTimeout(() => void thread.terminate().then(() => end.resolve()), threadEndMs)
    await end.promise
    clearTimeout(timer)
  }
}
