// Runs all roles of the engine in one thread for the deterministic simulation, over one simulated disk, in an order
// drawn from a seed: the writer, the log thread, two query threads that run background jobs, and the main thread's part
// (which versions of the tables are in use, responses to requests).
//
// Messages are queued, first in first out between each two roles as between threads; which queue or role runs next is
// drawn. Each turn takes a millisecond of simulated time. After the disk has simulated a crash no role runs any more,
// even if one has caught the exception.

import { AnchoredClock } from '../../../engine/base/clock.js'
import type { Files } from '../../../engine/base/files.js'
import { type Kernels, loadKernels } from '../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { type Allocator, budgets } from '../../../engine/memory/budgets.js'
import { heapBase } from '../../../engine/memory/layout.js'
import { metricOf } from '../../../engine/memory/metrics.js'
import { initializeRing, type RingHeader, ringWrite } from '../../../engine/memory/ring.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import { CatalogView } from '../../../engine/session/catalog-view.js'
import { ChunkCache } from '../../../engine/storage/cache/chunk-cache.js'
import { createChunkCache } from '../../../engine/storage/cache/chunk-slots.js'
import type { FromWriter, Receipt, ToWriter } from '../../../engine/storage/jobs/messages.js'
import type { PartAccess } from '../../../engine/storage/part/part-access.js'
import { createPartAccess } from '../../../engine/storage/part/part-reader.js'
import type { WriterSettings } from '../../../engine/storage/writer/writer-state.js'
import { WriterLoop } from '../../../engine/storage/writer-loop.js'
import { JobRunner } from '../../../engine/threads/job-runner.js'
import { createLogLoop, type LogLoop } from '../../../engine/wal/log-loop.js'
import type { CommitMode, LogReport, LogRequest } from '../../../engine/wal/types.js'
import type { Random } from '../random.js'
import { SimulatedCrash } from './faulty-files.js'

const KIB = 1024
const MIB = 1024 * KIB
const memoryBytes = 48 * MIB
const ringBytes = 64 * KIB
const cacheBytes = 2 * MIB
const startWallMs = 1_700_000_000_000
/** The part of the heap that lives use: filled with rubbish before each, since contents of memory are undefined. */
const rubbish = new Uint8Array(MIB).fill(0xa5)

/** Made once and used by every life: a memory of its own for each would take longer than the life. */
export interface SimMemory {
  readonly memory: SharedMemory
  readonly kernels: Kernels
  /** That of the latest life. */
  catalog?: CatalogView
}

export function createSimMemory(): SimMemory {
  const memory = createSharedMemory(memoryBytes)
  return { memory, kernels: loadKernels(memory) }
}

export interface SimHostOptions {
  readonly sim: SimMemory
  readonly files: Files
  readonly random: Random
  /** The machine has stopped. */
  readonly stopped: () => boolean
  readonly startMs: number
  /** How far the machine's wall clock is set from where it was at the first start. */
  readonly wallShiftMs: number
  readonly commitMode: CommitMode
  readonly settings: Partial<WriterSettings>
  readonly memtableBytes: number
  readonly walBytesMax: number
  readonly walSegmentBytes: number
  readonly trace: (text: string) => void
}

export class SimHost {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly catalog: CatalogView
  readonly parts: PartAccess
  /** In the order in which they came; the owner takes them out. */
  readonly receipts: Receipt[] = []
  ms: number
  /** How far the machine's wall clock is set from where it was. */
  wallShiftMs: number
  jobsDone = { flush: 0, merge: 0, rewrite: 0 }
  private readonly options: SimHostOptions
  private readonly writer: WriterLoop
  private readonly logLoop: LogLoop
  private readonly runners: JobRunner[]
  /** Runners that have work: settle() must not end because none of them had a turn for long. */
  private readonly atWork = new Set<number>()
  private readonly blocks: { readonly header: RingHeader; readonly payload: Uint8Array }[] = []
  private readonly toWriter: ToWriter[] = []
  private readonly fromWriter: FromWriter[] = []
  private readonly toLog: LogRequest[] = []
  private readonly reports: LogReport[] = []
  private readonly clock: AnchoredClock

  /** Recovers the directory; throws what the start throws. */
  constructor(options: SimHostOptions) {
    this.options = options
    const { memory, kernels } = options.sim
    this.memory = memory
    this.ms = options.startMs
    this.wallShiftMs = options.wallShiftMs
    this.clock = this.createClock()
    memory.u8.set(rubbish, heapBase)
    initializeHeap(memory, { limits: [8 * MIB, options.memtableBytes, cacheBytes + 2 * MIB, MIB, 12 * MIB] })
    this.allocator = createAllocator(memory, 1)
    initializeRing(memory, this.allocator.allocateOrThrow(ringBytes, budgets.ingest), ringBytes)
    const cacheAddress = createChunkCache(memory, this.allocator, cacheBytes)
    const reader = (threadId: number) => this.createReader(cacheAddress, threadId)
    this.catalog = new CatalogView(memory, (message) => this.toWriter.push(message), this.clock)
    // Snapshots that the life before lost in its crash must not be released into the memory of this one.
    options.sim.catalog?.close()
    options.sim.catalog = this.catalog
    this.parts = reader(0)
    this.logLoop = createLogLoop({
      files: options.files,
      take: () => this.toLog.shift(),
      report: (report) => this.reports.push(report),
    })
    this.runners = [2, 3].map((threadId) => this.createRunner(kernels, reader(threadId), threadId))
    this.writer = this.createWriter(kernels, reader(1))
    this.endIfStopped()
    if (metricOf(memory, 'logLosses') > 0) throw new Error('false alarm: the start found a piece of the log lost')
    this.deliverAll()
  }

  private createClock(): AnchoredClock {
    const wallMs = (): number => startWallMs + this.ms + this.wallShiftMs
    return new AnchoredClock({ wallMs, monotonicMs: () => this.ms, guessMicros: () => wallMs() * 1000 })
  }

  private createReader(cacheAddress: number, threadId: number): PartAccess {
    const { files, sim } = this.options
    const allocator = createAllocator(sim.memory, threadId)
    const cache = new ChunkCache(sim.memory, allocator, cacheAddress, threadId)
    const { memory } = sim
    return createPartAccess({ files, directory: '/db', memory, allocator, kernels: sim.kernels, cache })
  }

  private createRunner(kernels: Kernels, parts: PartAccess, threadId: number): JobRunner {
    const { files, sim } = this.options
    const allocator = createAllocator(sim.memory, threadId)
    const tools = { files, directory: '/db', memory: sim.memory, allocator, kernels, codec: 'lz4_raw', parts } as const
    return new JobRunner(tools, (message) => {
      if (message.kind !== 'jobDone' && message.kind !== 'jobFailed') return
      this.options.trace(`    ${message.kind} ${message.jobId}`)
      this.toWriter.push(message)
    })
  }

  private createWriter(kernels: Kernels, partAccess: PartAccess): WriterLoop {
    const { files, commitMode, settings, walBytesMax, walSegmentBytes, trace } = this.options
    return new WriterLoop({
      ...{ memory: this.memory, allocator: this.allocator, kernels, files, directory: '/db', commitMode, settings },
      ...{ walBytesMax, walSegmentBytes, walLogId: new Uint8Array(8).fill(7), manifestBytesMin: 32 * KIB },
      reserveFileBytes: 160 * KIB,
      clock: this.clock,
      log: (level, logger, message) => trace(`  ${level} ${logger} ${message}`),
      post: (message) => this.fromWriter.push(message),
      sendLog: (request) => this.toLog.push(request),
      partAccess,
    })
  }

  /** The blocks of one line-protocol request, for the ring. */
  sendLines(blocks: readonly { readonly header: RingHeader; readonly payload: Uint8Array }[]): void {
    this.blocks.push(...blocks)
  }

  send(message: ToWriter): void {
    this.toWriter.push(message)
  }

  get closed(): boolean {
    return this.writer.closed
  }

  get metrics() {
    return this.writer.metrics
  }

  /** Something that somebody has to do is waiting. */
  private get messagesWait(): boolean {
    const { blocks, toWriter, fromWriter, toLog, reports } = this
    return blocks.length + toWriter.length + fromWriter.length + toLog.length + reports.length + this.atWork.size > 0
  }

  /** One role or queue has its turn. Answers whether anything happened. */
  turn(): boolean {
    this.ms++
    const worked = this.act(this.options.random.below(16))
    this.endIfStopped()
    return worked
  }

  private act(choice: number): boolean {
    if (choice < 5) return this.writer.step() === 'worked'
    if (choice < 7) return this.logLoop.step() === 'worked'
    if (choice < 9) return this.deliver(this.reports, (report) => this.writer.report(report))
    if (choice < 11) return this.deliver(this.fromWriter, (message) => this.take(message))
    if (choice < 13) return this.deliver(this.toWriter, (message) => this.writer.receive(message))
    if (choice < 14) return this.writeBlock()
    const worked = this.runners[choice - 14]?.step() === 'worked'
    if (worked) this.atWork.add(choice - 14)
    else this.atWork.delete(choice - 14)
    return worked
  }

  private deliver<T>(queue: T[], to: (message: T) => void): boolean {
    const message = queue.shift()
    if (message === undefined) return false
    to(message)
    return true
  }

  private writeBlock(): boolean {
    const [block] = this.blocks
    if (block === undefined || !ringWrite(this.memory, block.header, block.payload)) return false
    this.blocks.shift()
    return true
  }

  /** The main thread hears everything that was said to it. */
  deliverAll(): void {
    while (this.fromWriter.length > 0) this.deliver(this.fromWriter, (message) => this.take(message))
  }

  private take(message: FromWriter): void {
    if (message.kind === 'ready') this.catalog.publish(message.versions, [])
    else if (message.kind === 'published') {
      this.catalog.publish(message.versions, message.dropped, message.visible)
      this.receipts.push(...message.receipts)
    } else if (message.kind === 'job') {
      this.jobsDone[message.job.kind]++
      this.options.trace(`    ${describeJob(message)}`)
      const runner = this.options.random.below(this.runners.length)
      this.runners[runner]?.add(message.jobId, message.job)
      this.atWork.add(runner)
    } else if (message.kind === 'fatal') throw new Error(`the writer gave up: ${message.error.message}`)
  }

  /** Turns until nothing has happened for a while; so much time at most. */
  settle(turnsMax = 4000): void {
    for (let idle = 0, turns = 0; idle < 60 && turns < turnsMax; turns++) {
      idle = this.turn() || this.messagesWait ? 0 : idle + 1
    }
  }

  /** Time passes without work. */
  pass(ms: number): void {
    this.ms += ms
  }

  private endIfStopped(): void {
    if (this.options.stopped()) throw new SimulatedCrash()
  }
}

function describeJob({ jobId, job }: Extract<FromWriter, { kind: 'job' }>): string {
  const { id, name } = job.version.schema
  let what = ''
  if (job.kind === 'flush') {
    what = `rows=${job.rows}, transactions=${job.minTxn}-${job.maxTxn}, parts from ${job.firstPartId}`
  } else what = `parts ${job.parts.map((part) => `${part.file} ${part.minTxn}-${part.maxTxn}`).join()}`
  return `job ${jobId} ${job.kind} [table=${name}, id=${id}, ${what}]`
}
