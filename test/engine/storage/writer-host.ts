// Runs the writer thread's code in a test: writer and log thread take turns on one thread over simulated files. The
// host also acts as the main thread (sends requests, takes responses, reports which versions of the tables are in use),
// and as a query thread that runs the writer's jobs, with parts as lists of rows in memory.

import type { Clock } from '../../../engine/base/clock.js'
import type { ErrorRecord } from '../../../engine/base/errors.js'
import type { Files } from '../../../engine/base/files.js'
import { loadKernels } from '../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import type { Allocator } from '../../../engine/memory/budgets.js'
import { blockAt, blockColumn, blockCount } from '../../../engine/memory/column-layout.js'
import { initializeRing, lineFlags, ringKinds, ringWrite } from '../../../engine/memory/ring.js'
import { createSharedMemory, type SharedMemory } from '../../../engine/memory/shared-memory.js'
import { CatalogView } from '../../../engine/session/catalog-view.js'
import type {
  FromWriter,
  Job,
  LoadedParts,
  Receipt,
  RowsInput,
  SchemaChange,
  ToWriter,
} from '../../../engine/storage/jobs/messages.js'
import { partitionNamer } from '../../../engine/storage/schema/partition.js'
import {
  liveColumns,
  type PartDescriptor,
  type TableSchema,
  type TableSnapshot,
  type TableVersion,
} from '../../../engine/storage/schema/schema.js'
import type { WriterOptions, WriterSettings } from '../../../engine/storage/writer/writer-state.js'
import { WriterLoop } from '../../../engine/storage/writer-loop.js'
import { createLogLoop, type LogLoop } from '../../../engine/wal/log-loop.js'
import type { KafkaPosition } from '../../../engine/wal/source-position.js'
import type { CommitMode, LogReport, LogRequest } from '../../../engine/wal/types.js'
import { readValue } from '../lines/line-harness.js'

const MIB = 1024 * 1024

export type Row = Record<string, unknown>

/** Parts by file: rows by column id. They stand for what a query thread would have written. */
export type PartStore = Map<string, Map<number, unknown>[]>

export interface HostOptions {
  readonly files: Files
  readonly parts: PartStore
  readonly commitMode?: CommitMode
  readonly walBytesMax?: number
  readonly walSegmentBytes?: number
  readonly memtableBytes?: number
  readonly settings?: Partial<WriterSettings>
  /** Parts are joined by the real policy. */
  readonly merges?: boolean
}

export interface LinesOptions {
  readonly atomic?: boolean
  readonly skipBadLines?: boolean
  /** packSourcePosition */
  readonly sourcePosition?: Uint8Array
}

export class WriterHost {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly catalog: CatalogView
  readonly writer: WriterLoop
  readonly receipts = new Map<number, Receipt>()
  readonly jobs: { readonly jobId: number; readonly job: Job }[] = []
  readonly logged: string[] = []
  /** How far streams were stored when the writer was ready. */
  positions: readonly KafkaPosition[] = []
  /** While false, the log role rests: nothing becomes durable. */
  logRuns = true
  /** While false, jobs wait. */
  jobsRun = true
  /** While false, the main thread receives nothing. */
  hears = true
  /** Compactions fail with this error, if it is set. */
  mergeError: ErrorRecord | undefined
  ms = 0
  private readonly clock: Clock = { nowMicros: () => 1_000_000 + this.ms * 1000, monotonicMs: () => this.ms }
  private readonly logLoop: LogLoop
  private readonly toLog: LogRequest[] = []
  private readonly parts: PartStore
  private readonly files: Files
  private nextRequestId = 1

  constructor(options: HostOptions) {
    this.parts = options.parts
    this.files = options.files
    this.memory = createSharedMemory(64 * MIB)
    initializeHeap(this.memory, { limits: [16 * MIB, options.memtableBytes ?? 24 * MIB, MIB, MIB, 4 * MIB] })
    this.allocator = createAllocator(this.memory, 1)
    initializeRing(this.memory, this.allocator.allocateOrThrow(MIB, 0), MIB)
    this.catalog = new CatalogView(this.memory, (message) => this.send(message), this.clock)
    const reports: LogReport[] = []
    this.logLoop = createLogLoop({
      files: options.files,
      take: () => this.toLog.shift(),
      report: (report) => reports.push(report),
    })
    this.writer = this.start(options)
    this.reports = reports
  }

  private readonly reports: LogReport[]
  private readonly unsent: ToWriter[] = []
  private readonly unheard: FromWriter[] = []

  private start(options: HostOptions): WriterLoop {
    const writerOptions: WriterOptions = {
      memory: this.memory,
      allocator: this.allocator,
      kernels: loadKernels(this.memory),
      files: options.files,
      directory: '/db',
      clock: this.clock,
      log: (level, _logger, message) => {
        if (level !== 'I') this.logged.push(message)
      },
      post: (message) => this.fromWriter(message),
      sendLog: (request) => this.toLog.push(request),
      commitMode: options.commitMode ?? 'sync',
      ...(options.walBytesMax === undefined ? {} : { walBytesMax: options.walBytesMax }),
      ...(options.walSegmentBytes === undefined ? {} : { walSegmentBytes: options.walSegmentBytes }),
      settings: options.settings ?? {},
      ...(options.merges === true ? {} : { chooseCompaction: () => undefined }),
    }
    return new WriterLoop(writerOptions)
  }

  /** The main thread receives what has been sent to it. */
  hear(): void {
    for (const message of this.unheard.splice(0)) this.take(message)
  }

  private fromWriter(message: FromWriter): void {
    if (this.hears) this.take(message)
    else this.unheard.push(message)
  }

  private take(message: FromWriter): void {
    if (message.kind === 'ready') {
      this.catalog.publish(message.versions, [])
      this.positions = message.positions
    } else if (message.kind === 'published') {
      this.catalog.publish(message.versions, message.dropped, message.visible)
      for (const receipt of message.receipts) this.receipts.set(receipt.requestId, receipt)
    } else if (message.kind === 'job') this.jobs.push(message)
  }

  /** The catalog view speaks within the writer's post: such messages are delivered afterwards. */
  private send(message: ToWriter): void {
    this.unsent.push(message)
  }

  /** One turn of everybody; returns whether anything happened. */
  turn(): boolean {
    this.ms += 1
    let worked = false
    for (let message = this.unsent.shift(); message !== undefined; message = this.unsent.shift()) {
      this.writer.receive(message)
      worked = true
    }
    if (this.jobsRun) worked = this.runJob() || worked
    if (this.logRuns) worked = this.logLoop.step() === 'worked' || worked
    for (let report = this.reports.shift(); report !== undefined; report = this.reports.shift())
      this.writer.report(report)
    return this.writer.step() === 'worked' || worked
  }

  /** Runs until nothing happens. */
  settle(turns = 5000): void {
    for (let idle = 0, count = 0; idle < 3 && count < turns; count++) idle = this.turn() ? 0 : idle + 1
  }

  lines(
    text: string | readonly string[],
    { atomic = true, skipBadLines = false, sourcePosition }: LinesOptions = {},
  ): number {
    const blocks = typeof text === 'string' ? [text] : text
    const requestId = this.nextRequestId++
    blocks.forEach((block, index) => {
      const flags =
        (index === 0 ? lineFlags.first : 0) |
        (index === blocks.length - 1 ? lineFlags.last : 0) |
        (atomic ? lineFlags.atomic : 0) |
        (skipBadLines ? lineFlags.skipBadLines : 0)
      const header = { kind: ringKinds.lines, flags, precision: 0, requestId, connectionId: 1, nowMicros: 5_000_000 }
      const payload = new TextEncoder().encode(block)
      for (let tries = 0; !ringWrite(this.memory, header, payload, index === 0 ? sourcePosition : undefined); tries++) {
        if (tries > 1000) throw new Error('the ring stays full')
        this.turn()
      }
    })
    return requestId
  }

  /** Sends QWP messages as one request. */
  qwp(messages: readonly Uint8Array[], { connectionId = 1, partial = false } = {}): Receipt {
    const requestId = this.nextRequestId++
    messages.forEach((message, index) => {
      const flags =
        (index === 0 ? lineFlags.first : 0) |
        (index === messages.length - 1 ? lineFlags.last : 0) |
        (partial ? lineFlags.skipBadLines | lineFlags.partial : 0) |
        lineFlags.atomic
      const header = { kind: ringKinds.qwp, flags, precision: 0, requestId, connectionId, nowMicros: 5_000_000 }
      for (let tries = 0; !ringWrite(this.memory, header, message); tries++) {
        if (tries > 1000) throw new Error('the ring stays full')
        this.turn()
      }
    })
    return this.await(requestId)
  }

  /** Sends the lines and waits for what became of them. */
  write(text: string | readonly string[], options: LinesOptions = {}): Receipt {
    return this.await(this.lines(text, options))
  }

  change(change: SchemaChange): Receipt {
    const requestId = this.nextRequestId++
    this.writer.receive({ kind: 'change', requestId, change })
    return this.await(requestId)
  }

  insert(tables: readonly RowsInput[]): Receipt {
    const requestId = this.nextRequestId++
    this.writer.receive({ kind: 'rows', requestId, tables })
    return this.await(requestId)
  }

  /** Writes rows as parts, as a large COPY does. */
  stage(name: string, rows: readonly Row[]): LoadedParts {
    const requestId = this.nextRequestId++
    const columns = liveColumns(this.versionOf(name).schema)
    const tableId = this.tableId(name)
    const symbols = columns.flatMap(({ id, name: column, type }) =>
      type.name === 'SYMBOL' ? [[id, rows.map((row) => String(row[column]))] as const] : [],
    )
    this.writer.receive({ kind: 'stage', requestId, tableId, symbols })
    const { staged } = this.await(requestId)
    if (staged === undefined) throw new Error('the writer has refused to stage parts')
    const job = { kind: 'flush', ...staged, memtable: 0, rows: rows.length, minTxn: 0, maxTxn: 0 } as const
    const values = rows.map((row) => new Map(columns.map((column) => [column.id, row[column.name]])))
    return { tableId, columnIds: columns.map(({ id }) => id), parts: this.flushRows(job, values) }
  }

  register(loads: readonly LoadedParts[]): Receipt {
    const requestId = this.nextRequestId++
    this.writer.receive({ kind: 'registerParts', requestId, loads })
    return this.await(requestId)
  }

  checkpoint(): Receipt {
    const requestId = this.nextRequestId++
    this.writer.receive({ kind: 'checkpoint', requestId })
    return this.await(requestId)
  }

  close(): void {
    const requestId = this.nextRequestId++
    this.writer.receive({ kind: 'close', requestId })
    this.await(requestId)
  }

  await(requestId: number): Receipt {
    for (let turns = 0; turns < 5000; turns++) {
      const receipt = this.receipts.get(requestId)
      if (receipt !== undefined) return receipt
      this.turn()
    }
    throw new Error(`no receipt [request=${requestId}, log=${this.logged.join('; ')}]`)
  }

  tableId(name: string): number {
    return this.versionOf(name).schema.id
  }

  private versionOf(name: string): TableVersion {
    const version = this.catalog.table(name)
    if (version === undefined) throw new Error(`no table ${name}`)
    return version
  }

  /** All rows that a reader would see now, in commit order; superseded ones left out. */
  rows(name: string): Row[] {
    const version = this.versionOf(name)
    const held = this.catalog.hold([version.schema.id])
    try {
      const snapshot = held.snapshots[0] as TableSnapshot
      const { schema, parts } = snapshot.version
      const fromParts = parts.flatMap(({ file }) => this.parts.get(file) ?? [])
      return [...fromParts, ...this.memtableRows(snapshot)].map((row) => named(schema, row))
    } finally {
      held.release()
    }
  }

  private memtableRows(snapshot: TableSnapshot): Map<number, unknown>[] {
    return snapshot.version.memtables.flatMap(({ address }, index) =>
      this.rowsOfMemtable(snapshot.version, address, snapshot.visibleRows[index] as number),
    )
  }

  private rowsOfMemtable(version: TableSnapshot['version'], memtable: number, count: number): Map<number, unknown>[] {
    const { memory } = this
    const dictionaries = new Map(version.dictionaries)
    const lookup = { dictionary: (id: number) => ({ address: dictionaries.get(id) as number }) }
    const rows: Map<number, unknown>[] = []
    for (let index = 0; index < blockCount(memory, memtable); index++) {
      const block = blockAt(memory, memtable, index)
      const first = memory.u32[block >>> 2]!
      const superseded = memory.u32[(block + 36) >>> 2]!
      const used = Math.max(0, Math.min(memory.u32[(block + 8) >>> 2]!, count - first))
      for (let row = 0; row < used; row++) {
        const by = superseded === 0 ? 0 : memory.u32[(superseded >>> 2) + row]!
        if (by !== 0 && by <= count) continue
        const values = new Map<number, unknown>()
        for (const { id, type } of liveColumns(version.schema)) {
          const address = blockColumn(memory, block, id)
          if (address !== 0) values.set(id, readValue(memory, lookup, id, type, address, row))
        }
        rows.push(values)
      }
    }
    return rows
  }

  private runJob(): boolean {
    const next = this.jobs.shift()
    if (next === undefined) return false
    const { jobId, job } = next
    if (job.kind === 'rewrite') throw new Error('rewrites need real parts')
    if (job.kind === 'merge' && this.mergeError !== undefined) {
      this.writer.receive({ kind: 'jobFailed', jobId, error: this.mergeError })
      return true
    }
    const rows =
      job.kind === 'flush'
        ? this.rowsOfMemtable(job.version, job.memtable, job.rows)
        : job.parts.flatMap(({ file }) => this.parts.get(file) ?? [])
    const parts =
      job.kind === 'flush' ? this.flushRows(job, rows) : [this.writePart(job, job.parts[0]?.partition ?? '', 0, rows)]
    this.writer.receive({ kind: 'jobDone', jobId, result: { parts } })
    return true
  }

  private flushRows(job: Extract<Job, { kind: 'flush' }>, rows: Map<number, unknown>[]): PartDescriptor[] {
    const { schema } = job.version
    const nameOf = partitionNamer(schema)
    const partitions = new Map<string, Map<number, unknown>[]>()
    for (const row of rows) {
      const name = nameOf(row.get(schema.timestampId) as bigint)
      partitions.set(name, [...(partitions.get(name) ?? []), row])
    }
    for (const name of job.leaving ?? []) partitions.delete(name)
    return [...partitions].map(([name, some], index) => this.writePart(job, name, index, some))
  }

  private writePart(
    job: Exclude<Job, { kind: 'rewrite' }>,
    partition: string,
    index: number,
    rows: Map<number, unknown>[],
  ): PartDescriptor {
    const id = job.firstPartId + index
    const table = `${job.version.schema.id}`
    const file = `${table}/${partition}/${id}.parquet`
    this.parts.set(file, rows)
    this.files.makeDirectory(`/db/${table}/${partition}`)
    const handle = this.files.open(`/db/${file}`, 'create')
    handle.write([new Uint8Array(8)], 0)
    handle.sync()
    handle.close()
    for (const folder of [`/db/${table}/${partition}`, `/db/${table}`, '/db']) this.files.syncDirectory(folder)
    const minTxn = job.kind === 'flush' ? job.minTxn : (job.parts[0]?.minTxn ?? 0)
    const maxTxn = job.kind === 'flush' ? job.maxTxn : (job.parts.at(-1)?.maxTxn ?? 0)
    const shape = { partition, rows: rows.length, bytes: 8, minTs: 0n, maxTs: 0n, columnIds: [] }
    return { id, file, minTxn, maxTxn, ...shape }
  }
}

/** Values by column name; NULLs and missing values left out, so that old and new rows compare. */
function named(schema: TableSchema, row: Map<number, unknown>): Row {
  const shown: Row = {}
  for (const { id, name } of liveColumns(schema)) {
    const value = row.get(id)
    if (value === undefined || value === null || value === -(2n ** 63n) || Number.isNaN(value)) continue
    shown[name] = value
  }
  return shown
}
