// Imports a SQLite dump (`sqlite3 data.db .dump`) into tables. Entry point of the connector.
//
//   bytes ──> worker: statements, rows, columns ──> batches ──> transactions of one staging table each ──> rename
//
// No table is visible before the whole dump has been read: its rows go to a staging table, which is renamed at the
// end (or copied into the existing table). An import that fails before then leaves no tables, and a crash neither.

import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { compiledModule } from '../../engine/base/module-url.js'
import type { Engine, PackedRows, Session, TableShape } from '../../engine/engine.js'
import { typeText } from '../../engine/types/column-types.js'
import { dropTable, finishStaging, ImportError, runStatement, stagingName } from '../../pipeline/ingest.js'
import { takesType } from './columns.js'
import type { DumpWorkerData } from './dump-worker.js'
import type {
  DumpEvent,
  DumpOptions,
  DumpReport,
  FromDumpWorker,
  ProposedTable,
  ResolvedTable,
  ToDumpWorker,
} from './messages.js'
import { columnNameOf } from './names.js'

export type { DumpReport } from './messages.js'

export interface DumpImportOptions extends DumpOptions {
  readonly engine: Pick<Engine, 'execute' | 'rejects' | 'rows' | 'table'>
  readonly session: Session
  readonly connectionId: number
  /** Replace existing tables instead of appending to them. */
  readonly overwrite: boolean
}

export interface ImportedTable {
  readonly source: string
  readonly name: string
  readonly rowsImported: number
  readonly timestamp: string | null
  readonly partitionBy: string
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

export interface DumpImportResult {
  readonly tables: readonly ImportedTable[]
  readonly views: readonly string[]
  readonly rowsImported: number
  readonly rowsRejected: number
  /** The first reports. */
  readonly reports: readonly DumpReport[]
  readonly reportCount: number
}

const reportsShown = 1000
const blockBytes = 1024 * 1024
/** Rows collected for one transaction. */
const transactionBytes = 8 * 1024 * 1024

interface Target {
  readonly proposal: ProposedTable
  readonly staging: string
  readonly tableId: number
  readonly refused: boolean
  held: PackedRows[]
  heldBytes: number
  rows: number
}

/** Imports one dump: call write() repeatedly, end() once, and close() always. */
export class DumpImport {
  readonly #options: DumpImportOptions
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #news = new Int32Array(new SharedArrayBuffer(4))
  readonly #targets: Target[] = []
  readonly #views: Extract<DumpEvent, { kind: 'view' }>[] = []
  readonly #indexes: Extract<DumpEvent, { kind: 'index' }>[] = []
  readonly #reports: DumpReport[] = []
  #reportCount = 0
  #rejected = 0
  #chunks: Buffer[] = []
  #chunkBytes = 0
  #sending: Promise<unknown> = Promise.resolve()
  /** The block that the worker is decoding. */
  #reading: Promise<readonly DumpEvent[]> | null = null
  #answer: { resolve(events: readonly DumpEvent[]): void; reject(error: Error): void } | null = null

  constructor(options: DumpImportOptions) {
    this.#options = options
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    const { tables, timestamps, partitionBy, unit, types, skipRows } = options
    const own: DumpOptions = { tables, timestamps, partitionBy, unit, types, skipRows }
    const data: DumpWorkerData = { port: port2, news: this.#news, options: own }
    this.#worker = new Worker(compiledModule(import.meta.url, './dump-worker.js'), {
      execArgv: [],
      workerData: data,
      transferList: [port2],
    })
    this.#port.on('message', (message: FromDumpWorker) => this.#receive(message))
    this.#worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#worker.on('exit', () => this.#ended())
  }

  async write(chunk: Buffer): Promise<void> {
    this.#chunks.push(chunk)
    this.#chunkBytes += chunk.length
    if (this.#chunkBytes >= blockBytes) await this.#pass(false)
  }

  /** Rejects with ImportError or an error of the engine; nothing is stored then. */
  async end(): Promise<DumpImportResult> {
    await this.#pass(true)
    await this.#drain()
    for (const target of this.#targets) await this.#flush(target)
    await this.#sending
    const tables = this.#targets.filter(({ refused }) => !refused)
    for (const { staging, proposal } of tables) {
      await finishStaging({ ...this.#options, name: proposal.name }, staging, proposal.columns)
    }
    for (const index of this.#indexes) await this.#makeIndex(index)
    const views: string[] = []
    for (const view of this.#views) if (await this.#makeView(view)) views.push(view.name)
    return {
      tables: tables.map((target) => this.#imported(target)),
      views,
      rowsImported: tables.reduce((sum, { rows }) => sum + rows, 0),
      rowsRejected: this.#rejected,
      reports: this.#reports,
      reportCount: this.#reportCount,
    }
  }

  /** Releases all resources; call once at the end, after success or failure. */
  async close(): Promise<void> {
    this.#answer = null
    this.#port.close()
    await this.#worker.terminate()
    await this.#sending.catch(() => {})
    for (const { staging, refused } of this.#targets) if (!refused) await dropTable(this.#options, staging)
  }

  /** Sends the collected bytes to the worker and meanwhile stores what it decoded from the previous ones. */
  async #pass(last: boolean): Promise<void> {
    const bytes = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#chunkBytes = 0
    const before = this.#reading
    const events = before === null ? [] : await before
    this.#reading = new Promise((resolve, reject) => {
      this.#answer = { resolve, reject }
    })
    this.#reading.catch(() => {})
    this.#send({ kind: 'block', bytes, last })
    await this.#store(events)
  }

  async #drain(): Promise<void> {
    const events = this.#reading === null ? [] : await this.#reading
    this.#reading = null
    await this.#store(events)
  }

  #send(message: ToDumpWorker): void {
    this.#port.postMessage(message)
    Atomics.add(this.#news, 0, 1)
    Atomics.notify(this.#news, 0)
  }

  #receive(message: FromDumpWorker): void {
    switch (message.kind) {
      case 'events':
        this.#answer?.resolve(message.events)
        this.#answer = null
        return
      case 'failed':
        this.#fail(message.internal ? new Error(message.message) : new ImportError(message.message))
        return
      case 'resolve':
        void this.#resolve(message.proposal).then(
          (table) => this.#send({ kind: 'resolved', table }),
          (error: unknown) => this.#fail(error instanceof Error ? error : new Error(String(error))),
        )
    }
  }

  /** The worker's last message may still be queued. */
  #ended(): void {
    for (let left = receiveMessageOnPort(this.#port); left !== undefined; left = receiveMessageOnPort(this.#port))
      this.#receive(left.message as FromDumpWorker)
    this.#fail(new Error('the reader of the dump ended'))
  }

  #fail(error: Error): void {
    this.#answer?.reject(error)
    this.#answer = null
  }

  /** Creates the staging table for a table of the dump. */
  async #resolve(proposal: ProposedTable): Promise<ResolvedTable> {
    const { engine, overwrite } = this.#options
    const existing = overwrite ? undefined : engine.table(proposal.name)
    const shape = existing === undefined ? proposal : likeExisting(proposal, existing)
    if ('refused' in shape) return this.#refuse(proposal, shape.refused)
    const foreign = shape.columns.find(({ type }) => !takesType(type))
    if (foreign !== undefined) {
      return this.#refuse(
        proposal,
        `values of SQLite cannot be converted to ${typeText(foreign.type)} [column=${foreign.name}]`,
      )
    }
    const staging = stagingName()
    await runStatement(this.#options, createStatement(staging, shape))
    const table = engine.table(staging)
    if (table === undefined) throw new Error('the staging table was dropped')
    this.#targets.push({ proposal: shape, staging, tableId: table.id, refused: false, held: [], heldBytes: 0, rows: 0 })
    return {
      columns: table.columns.map(({ id, type }) => ({ columnId: id, type })),
      timestamp: shape.columns.findIndex(({ name }) => name === shape.timestamp),
    }
  }

  #refuse(proposal: ProposedTable, refused: string): ResolvedTable {
    this.#targets.push({ proposal, staging: '', tableId: -1, refused: true, held: [], heldBytes: 0, rows: 0 })
    return { refused }
  }

  async #store(events: readonly DumpEvent[]): Promise<void> {
    for (const event of events) {
      if (event.kind === 'rows') await this.#hold(event)
      else if (event.kind === 'view') this.#views.push(event)
      else if (event.kind === 'index') this.#indexes.push(event)
      else this.#note(event.report, event.rows)
    }
  }

  #note(report: DumpReport, rows: number): void {
    this.#rejected += rows
    if (report.reason === '') return
    this.#reportCount++
    if (this.#reports.length < reportsShown) this.#reports.push(report)
    const { line, table, reason: message } = report
    if (rows > 0) this.#options.engine.rejects(this.#options.connectionId, [{ line, message, table }], true)
  }

  async #hold({ table, rows }: Extract<DumpEvent, { kind: 'rows' }>): Promise<void> {
    const target = this.#targets[table]
    if (target === undefined || target.refused) throw new Error('rows of a table that was not created')
    target.held.push(rows)
    target.heldBytes += bytesOf(rows)
    target.rows += rows.rows
    if (target.heldBytes >= transactionBytes) await this.#flush(target)
  }

  /** Stores one transaction after the previous one. */
  async #flush(target: Target): Promise<void> {
    if (target.held.length === 0) return
    const rows = target.held
    target.held = []
    target.heldBytes = 0
    await this.#sending
    this.#sending = this.#options.engine.rows(target.tableId, rows)
    this.#sending.catch(() => {})
  }

  /** Only SYMBOL columns can have an index. */
  async #makeIndex({ line, table, column }: Extract<DumpEvent, { kind: 'index' }>): Promise<void> {
    const target = this.#targets[table]
    const wanted = columnNameOf(column, new Set()).toLowerCase()
    const found = target?.proposal.columns.find(({ name }) => name.toLowerCase() === wanted)
    if (target === undefined || found?.type.name !== 'SYMBOL') return
    const { name } = target.proposal
    await this.#attempt(line, name, `ALTER TABLE "${name}" ALTER COLUMN "${found.name}" ADD INDEX`)
  }

  #makeView({ line, name, query }: Extract<DumpEvent, { kind: 'view' }>): Promise<boolean> {
    return this.#attempt(line, name, `CREATE VIEW "${name}" AS (${query})`)
  }

  async #attempt(line: number, table: string, sql: string): Promise<boolean> {
    try {
      await runStatement(this.#options, sql)
      return true
    } catch (error) {
      this.#note({ line, table, reason: `rejected: ${error instanceof Error ? error.message : String(error)}` }, 0)
      return false
    }
  }

  #imported({ proposal, rows }: Target): ImportedTable {
    const { source, name, timestamp, partitionBy, columns } = proposal
    const typed = columns.map((column) => ({ name: column.name, type: typeText(column.type) }))
    return { source, name, rowsImported: rows, timestamp, partitionBy, columns: typed }
  }
}

function likeExisting(proposal: ProposedTable, table: TableShape): ProposedTable | { readonly refused: string } {
  const columns: { name: string; type: TableShape['columns'][number]['type'] }[] = []
  for (const { name } of proposal.columns) {
    const known = table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
    if (known === undefined) return { refused: `column does not exist [column=${name}, table=${table.name}]` }
    columns.push({ name: known.name, type: known.type })
  }
  const { timestamp, partitionBy } = table
  if (timestamp !== null && !columns.some(({ name }) => name === timestamp)) {
    return { refused: `the dump lacks the designated timestamp [column=${timestamp}, table=${table.name}]` }
  }
  return { ...proposal, columns, timestamp, partitionBy }
}

function createStatement(name: string, { columns, timestamp, partitionBy }: ProposedTable): string {
  const list = columns.map((column) => `"${column.name}" ${typeText(column.type)}`).join(', ')
  const tail = timestamp === null ? '' : ` TIMESTAMP("${timestamp}") PARTITION BY ${partitionBy}`
  return `CREATE TABLE "${name}" (${list})${tail}`
}

function bytesOf({ columns }: PackedRows): number {
  let bytes = 0
  for (const { values } of columns) {
    if (values.kind === 'fixed') bytes += values.bytes.length
    else if (values.kind === 'strings') bytes += values.lengths.length * 8 + values.bytes.length
    else bytes += values.ids.length * 4 + values.strings.length
  }
  return bytes
}
