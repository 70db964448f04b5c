// Implements the database that runs within a user's Node.js process: the engine of the server, with methods in the
// place of network protocols. Line protocol passes through the same stages in pipeline/ as in the server, statements
// through Engine.execute, and columns of values through a transaction of the engine.

import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { assert } from '../../engine/base/assert.js'
import {
  AccessError,
  CancelledError,
  CorruptionError,
  FileError,
  ResourceError,
  RowError,
  SqlError,
  TimeoutError,
  whenReady,
} from '../../engine/base/errors.js'
import { ingestBlockBytesMax } from '../../engine/base/limits.js'
import { allRights } from '../../engine/base/rights.js'
import {
  type Engine,
  type LinePrecision,
  nativeDialect,
  openEngine,
  type ParsedStatement,
  type Receipt,
  type RowsResult,
  type RowTransaction,
  type Session,
  type StatementResult,
} from '../../engine/engine.js'
import { columnTypes, typeText } from '../../engine/types/column-types.js'
import { ByteBudget, ingestLineBody, ingestLineStream, refusalOf } from '../../pipeline/ingest.js'
import { type Server, startServer } from '../main.js'
import { type OpenedRoot, openRoot } from '../opened-root.js'
import type {
  Batch,
  ColumnInfo,
  Database,
  Done,
  InputValue,
  LineOptions,
  OpenOptions,
  Precision,
  Result,
  Row,
  StatementOptions,
} from './api.js'
import { DatabaseError, type ErrorCode } from './errors.js'
import { batchOf, type Parameter, packedColumns, typedValue } from './values.js'

/** The interfaces of the network, off unless the caller's settings turn them on. */
const interfaces = ['http.enabled', 'http.min.enabled', 'line.tcp.enabled', 'pg.enabled']
/** Bytes of a transaction that wait in memory before they are moved into parts that nobody sees yet. */
const transactionBytesMax = 8 * 1024 * 1024

const precisions: Readonly<Record<Precision, LinePrecision>> = { ns: 'n', us: 'u', ms: 'ms', s: 's' }

export async function openDatabase(folder: string, { settings = {} }: OpenOptions): Promise<Database> {
  try {
    const version = packageVersion()
    const off = interfaces.map((key) => `${key}=false`)
    const given = Object.entries(settings).map(([key, value]) => `${key}=${value}`)
    const purpose = 'a process that has it embedded'
    return await openIn(
      await openRoot({ root: folder, version, assignments: [...off, ...given], terminal: null, purpose }),
      version,
    )
  } catch (error) {
    throw wrapped(error, 'RESOURCE')
  }
}

async function openIn({ path, lock, live, logging }: OpenedRoot, version: string): Promise<Database> {
  const { log, flush } = logging
  let failed: Error | null = null
  const fatal = (error: Error): void => {
    failed ??= error
    log('C', 'server', `the engine cannot continue: ${error.stack ?? error.message}`)
    flush()
  }
  const leave = (): void => {
    flush()
    lock.release()
  }
  lock.onLost(fatal)
  try {
    const server = await startServer({ root: path, version, live, log, fatal, openEngine })
    const close = async (): Promise<void> => {
      await server.close()
      log('I', 'server', 'closed')
      leave()
    }
    return new EmbeddedDatabase(server, close, () => failed)
  } catch (error) {
    leave()
    throw error
  }
}

/** The compiled file is dist/deploy/embedded/index.js. */
function packageVersion(): string {
  const file = new URL('../../../package.json', import.meta.url)
  const { version }: { readonly version: string } = JSON.parse(readFileSync(file, 'utf8'))
  return version
}

class EmbeddedDatabase implements Database {
  readonly #engine: Engine
  readonly #close: () => Promise<void>
  /** What has ended the engine; null while it works. */
  readonly #failed: () => Error | null
  readonly #session: Session = {
    user: 'embedded',
    protocol: 'http',
    dialect: nativeDialect,
    readOnly: false,
    rights: allRights,
    settings: new Map(),
  }
  #closing: Promise<void> | null = null
  readonly #budget = new ByteBudget(Number.MAX_SAFE_INTEGER)

  constructor({ engine }: Server, close: () => Promise<void>, failed: () => Error | null) {
    this.#engine = engine
    this.#close = close
    this.#failed = failed
  }

  async query(sql: string, parameters: readonly InputValue[] = [], options: StatementOptions = {}): Promise<Result> {
    const run = new AbortController()
    const result = await this.#run(sql, parameters, options, run, true)
    assert(result.kind === 'rows', 'B4: statements without rows are refused')
    return new QueryResult(result, run)
  }

  async execute(sql: string, parameters: readonly InputValue[] = [], options: StatementOptions = {}): Promise<Done> {
    const run = new AbortController()
    const result = await this.#run(sql, parameters, options, run)
    if (result.kind === 'done') return { command: result.tag, rows: result.rows, notices: result.notes ?? [] }
    if (result.kind === 'plan') return { command: 'EXPLAIN', rows: 0, notices: [] }
    let rows = 0
    for await (const batch of new QueryResult(result, run).batches()) rows += batch.rows
    const command = result.changed ?? (result.inserted === undefined ? 'SELECT' : 'INSERT')
    return { command, rows: command === 'SELECT' ? 0 : rows, notices: [] }
  }

  #run(
    sql: string,
    parameters: readonly InputValue[],
    { signal, timeoutSeconds = 0 }: StatementOptions,
    run: AbortController,
    rowsOnly = false,
  ): Promise<StatementResult> {
    return this.#attempt(async () => {
      if (!(timeoutSeconds >= 0))
        throw new DatabaseError('SQL', `a timeout is a number of seconds [value=${timeoutSeconds}]`)
      const parsed = this.#parse(sql)
      const typed = parameters.map((value, index) => typedValue(value, `parameter $${index + 1}`))
      // A query has rows for certain: others are planned once more to see whether they have.
      if (rowsOnly && parsed.statement.kind !== 'query' && !(await this.#hasRows(parsed, typed)))
        throw new SqlError('the statement has no rows; use execute()', 0)
      return this.#engine.execute(sql, {
        parsed,
        session: this.#session,
        encoding: { kind: 'columns' },
        parameters: typed,
        skip: 0,
        rowsMax: Number.POSITIVE_INFINITY,
        countAll: false,
        columns: null,
        timeoutMs: timeoutSeconds * 1000,
        signal: signal === undefined ? run.signal : AbortSignal.any([signal, run.signal]),
        explain: false,
      })
    })
  }

  async #hasRows(parsed: ParsedStatement, parameters: readonly Parameter[]): Promise<boolean> {
    const oids = parameters.map(({ value, type }) => (value === null ? 0 : columnTypes[type.name].pgOid))
    const describe = (planning?: object) => this.#engine.describe(parsed, { ...this.#session, planning }, oids)
    return (await whenReady(describe)).columns !== null
  }

  #parse(sql: string): ParsedStatement {
    const [statement, second] = this.#engine.parse(sql)
    if (statement === undefined) throw new SqlError('there is no statement', 0)
    if (second !== undefined) throw new SqlError('only one statement is allowed', second.start)
    return statement
  }

  async ingestLines(
    lines: string | Uint8Array | AsyncIterable<string | Uint8Array>,
    { precision = 'ns', signal = new AbortController().signal }: LineOptions = {},
  ): Promise<number> {
    return this.#attempt(async () => {
      const unit = precisions[precision]
      if (unit === undefined) throw new DatabaseError('SQL', `no such precision [value=${precision}]`)
      const isWhole = typeof lines === 'string' || lines instanceof Uint8Array
      return isWhole ? this.#oneBody(lines, unit, signal) : this.#stream(lines, unit, signal)
    })
  }

  async #oneBody(lines: string | Uint8Array, precision: LinePrecision, signal: AbortSignal): Promise<number> {
    const bytes = bufferOf(lines)
    const receipt = await ingestLineBody(Readable.from([bytes], { objectMode: false }), {
      engine: this.#engine,
      ...{ connectionId: 0, precision, gzip: false, headers: {}, partial: false },
      ...{ contentLength: bytes.length, bodyBytesMax: Number.POSITIVE_INFINITY, blockBytesMax: ingestBlockBytesMax },
      ...{ budget: this.#budget, signal },
    })
    if (receipt === null) return 0
    const reason = refusalOf(receipt)
    if (reason !== null) throw reason
    return receipt.rows
  }

  async #stream(
    lines: AsyncIterable<string | Uint8Array>,
    precision: LinePrecision,
    signal: AbortSignal,
  ): Promise<number> {
    let rows = 0
    const onReceipt = (receipt: Receipt): void => {
      rows += receipt.rows
    }
    const source = Readable.from(bytesOf(lines), { objectMode: false })
    const options = { engine: this.#engine, connectionId: 0, precision, badLine: 'close', onReceipt } as const
    await ingestLineStream(source, options, signal)
    return rows
  }

  async ingestColumns(table: string, columns: Readonly<Record<string, ArrayLike<InputValue>>>): Promise<number> {
    return this.#attempt(async () => {
      const shape = this.#engine.table(table, this.#session)
      if (shape === undefined) throw SqlError.tableMissing(table, 0)
      const transaction = this.#engine.begin()
      try {
        let rows = 0
        for (const { packed, bytes } of packedColumns(shape, columns)) {
          await addRows(transaction, shape.id, packed, bytes)
          rows += packed.rows
        }
        await transaction.commit()
        return rows
      } catch (error) {
        transaction.clear()
        throw error
      }
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #attempt<T>(act: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw new DatabaseError('CLOSED', 'the database is closed')
    const failure = this.#failed()
    if (failure !== null) throw wrapped(failure)
    try {
      return await act()
    } catch (error) {
      throw wrapped(error)
    }
  }
}

async function addRows(
  transaction: RowTransaction,
  tableId: number,
  packed: Parameters<RowTransaction['add']>[1],
  bytes: number,
): Promise<void> {
  transaction.add(tableId, packed, bytes)
  if (transaction.bytes >= transactionBytesMax) await transaction.spill()
}

function bufferOf(lines: string | Uint8Array): Buffer {
  return typeof lines === 'string' ? Buffer.from(lines) : Buffer.from(lines.buffer, lines.byteOffset, lines.length)
}

async function* bytesOf(lines: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  for await (const part of lines) yield bufferOf(part)
}

class QueryResult implements Result {
  readonly columns: readonly ColumnInfo[]
  readonly #result: RowsResult
  readonly #run: AbortController
  #isTaken = false

  constructor(result: RowsResult, run: AbortController) {
    this.#result = result
    this.#run = run
    this.columns = result.columns.map(({ name, type }) => ({ name, type: typeText(type) }))
    result.summary.catch(() => {})
  }

  async *batches(): AsyncGenerator<Batch> {
    if (this.#isTaken) throw new DatabaseError('SQL', 'the rows of a result can be read only once')
    this.#isTaken = true
    const names = this.columns.map(({ name }) => name)
    try {
      for await (const { packed } of this.#result.packed) yield batchOf(names, packed)
      await this.#result.summary
    } catch (error) {
      throw wrapped(error)
    } finally {
      this.#run.abort('the result was closed')
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Row> {
    for await (const { rows, columns } of this.batches()) {
      for (let row = 0; row < rows; row++)
        yield Object.fromEntries(columns.map((column) => [column.name, column.get(row)]))
    }
  }

  async rows(): Promise<Row[]> {
    const all: Row[] = []
    for await (const row of this) all.push(row)
    return all
  }

  async close(): Promise<void> {
    this.#isTaken = true
    this.#run.abort('the result was closed')
    await this.#result.summary.catch(() => {})
  }
}

const codes: readonly (readonly [new (...args: never[]) => Error, ErrorCode])[] = [
  [SqlError, 'SQL'],
  [AccessError, 'SQL'],
  [RowError, 'ROW'],
  [ResourceError, 'RESOURCE'],
  [FileError, 'RESOURCE'],
  [TimeoutError, 'TIMEOUT'],
  [CancelledError, 'CANCELLED'],
  [CorruptionError, 'CORRUPTION'],
]

function wrapped(thrown: unknown, otherwise: ErrorCode = 'INTERNAL'): DatabaseError {
  if (thrown instanceof DatabaseError) return thrown
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const code =
    codes.find(([kind]) => error instanceof kind)?.[1] ?? (error.name === 'AbortError' ? 'CANCELLED' : otherwise)
  const position = error instanceof SqlError ? error.position : error instanceof RowError ? error.line : undefined
  return new DatabaseError(code, error.message, position, { cause: error })
}
