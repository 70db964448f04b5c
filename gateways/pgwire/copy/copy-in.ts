// Runs COPY .. FROM STDIN: decodes CopyData messages into columns of the session's transaction. Text and CSV are
// decoded on a query thread. Large inputs are written as parts (Parquet files) that stay invisible until the
// transaction commits, so a COPY of any size is atomic. Tables with DEDUP, arrays or BINARY cannot take parts: without
// BEGIN, a COPY into them that is too large for one log frame is stored in pieces. A transaction with rows of such a
// table stays in memory, so that one log frame has all of it. The binary format is decoded here.
//
//   CopyData => 'd' length bytes (cut anywhere)      CopyDone => 'c'      CopyFail => 'f' reason

import { RowError } from '../../../engine/base/errors.js'
import type { CsvBatch, CsvDecoding, CsvShape, ParsedStatement, TableShape } from '../../../engine/engine.js'
import type { PgSession } from '../context.js'
import { copyResponse } from '../protocol/messages.js'
import { MessageReader } from '../protocol/reader.js'
import { PgError } from '../protocol/sqlstate.js'
import { hasDraft } from '../transaction/deferred-state.js'
import { declaredTimeout } from '../transaction/run-engine.js'
import { boundRows } from '../transaction/transaction.js'
import { type CsvForm, CsvToText } from './copy-csv.js'
import { type CopyOptions, chosenColumns, copyOptions } from './copy-options.js'

type Copy = Extract<ParsedStatement['statement'], { kind: 'copy' }>

const blockBytes = 512 * 1024
/** Smaller inputs go through the write-ahead log. */
const loadBytesMin = 16 * 1024 * 1024
const endMarks = ['\\', '\\.', '\\.\r', '\\.\n', '\\.\r\n']
const wholeEndMark = /^\\\.(?:\r\n|\r|\n)?$/
const endMarkBytesMax = 4
const lf = 10
const codes = { data: 100, done: 99, fail: 102, flush: 72, sync: 83 } as const

/** Accepts chunks of any size; `end` returns the number of rows. */
interface Sink {
  /** Null when there is nothing to wait for. */
  take(chunk: Buffer): Promise<void> | null
  end(): Promise<number>
  close(): void
}

/** Returns the command tag. Throws the error to report; the caller then skips the remaining input. */
export async function copyIn(pg: PgSession, statement: Copy): Promise<string> {
  const options = copyOptions(statement, pg.out.encoding)
  const table = tableOf(pg, statement)
  const columns = columnsOf(statement, table)
  const sink = options.format === 'binary' ? binarySink(pg, table, columns) : textSink(pg, table, columns, options)
  const mark = pg.transaction.mark()
  pg.out.put(copyResponse('in', options.format === 'binary', columns.length))
  await pg.out.flush()
  try {
    await receive(pg, sink)
    const rows = await sink.end()
    pg.connection.rowsReceived += rows
    pg.counters.queries.insert++
    return `COPY ${rows}`
  } catch (error) {
    pg.transaction.backTo(mark)
    throw error
  } finally {
    sink.close()
  }
}

function tableOf({ engine, session }: PgSession, { source }: Copy): TableShape {
  if (source.kind !== 'table') throw new PgError('42601', 'COPY FROM needs a table', source.position)
  const { name, position } = source.table
  const table = engine.table(name, session)
  if (table === undefined) throw new PgError('42P01', `table does not exist [table=${name}]`, position)
  if (table.view !== null) throw new PgError('42809', `cannot modify ${table.view} [view=${name}]`, position)
  return table
}

type Column = TableShape['columns'][number]

function columnsOf({ columns }: Copy, table: TableShape): readonly Column[] {
  const chosen =
    columns.length === 0
      ? table.columns
      : columns.map(({ name, position }) => {
          const found = table.columns.find((column) => column.name.toLowerCase() === name.toLowerCase())
          if (found === undefined) throw new PgError('42703', `Invalid column: ${name}`, position)
          return found
        })
  for (const [index, { position }] of columns.entries()) {
    const column = chosen[index] as Column
    if (chosen.indexOf(column) < index)
      throw new PgError('42701', `column "${column.name}" specified more than once`, position)
  }
  const isFilled = table.columns.some(({ name, filled }) => filled && name === table.timestamp)
  if (table.timestamp !== null && !isFilled && !chosen.some(({ name }) => name === table.timestamp)) {
    throw new PgError('23502', 'COPY must populate the designated timestamp')
  }
  return chosen
}

/** Receives until the client completes the copy or it is aborted; the session then skips the remaining input. */
async function receive(pg: PgSession, sink: Sink): Promise<void> {
  const stopped: { error: PgError | null } = { error: null }
  const stop = (reason: string): void => {
    stopped.error = new PgError('57014', reason)
    pg.inbound.nudge()
  }
  pg.running = { abort: (reason = 'canceling statement due to user request') => stop(reason) }
  // The server's query deadline does not apply: a COPY lasts as long as its client sends.
  const timeoutMs = declaredTimeout(pg) ?? 0
  const timer = timeoutMs > 0 ? setTimeout(stop, timeoutMs, 'canceling statement due to statement timeout') : null
  try {
    await receiveUntil(pg, sink, () => stopped.error)
  } finally {
    if (timer !== null) clearTimeout(timer)
    pg.running = null
  }
}

async function receiveUntil({ inbound, out }: PgSession, sink: Sink, stopped: () => PgError | null): Promise<void> {
  let failure: { readonly error: unknown } | null = null
  for (;;) {
    const message = inbound.next()
    const error = stopped()
    if (error !== null) throw error
    if (message === null) {
      if (inbound.ended) throw new PgError('08006', 'the connection ended during COPY')
      await inbound.wait()
      continue
    }
    if (message.type === codes.done) break
    if (message.type === codes.fail) throw failed(new MessageReader(message, out.encoding))
    if (message.type === codes.flush || message.type === codes.sync) continue
    if (message.type !== codes.data) throw new PgError('08P01', 'unexpected message during COPY')
    if (failure !== null) continue
    try {
      const taken = sink.take(message.bytes.subarray(message.start, message.end))
      if (taken !== null) await taken
    } catch (error) {
      failure = { error }
    }
  }
  if (failure !== null) throw failure.error
}

function failed(reader: MessageReader): PgError {
  return new PgError('57014', `COPY from stdin failed: ${reader.text()}`)
}

// TEXT AND CSV ------------------------------------------------------------------------------------------------------

function textSink(pg: PgSession, table: TableShape, columns: readonly Column[], options: CopyOptions): Sink {
  const form = formOf(options, columns)
  const shape: CsvShape = {
    delimiter: form === null ? options.delimiter.charCodeAt(0) : 9,
    columns: columns.map(({ name, wanted: type, enumeration }) => ({ name, type, pattern: null, enumeration })),
    timestamp: columns.findIndex(({ name }) => name === table.timestamp),
    header: options.header && !options.matches,
    copyText: options.format === 'text' || form !== null,
    nullText: form === null ? options.nullText : '\\N',
    copied: true,
  }
  return adapted(options, form, shape, rowSink(pg, table, columns, shape))
}

/**
 * Null: the engine decodes the input directly. The engine skips empty lines, which are rows of a single-column
 * COPY.
 */
function formOf(options: CopyOptions, columns: readonly Column[]): CsvForm | null {
  const { format, delimiter, quote, quoteEscape, nullText, matches } = options
  const forceNull = chosenColumns(options.forceNull, columns)
  const forceNotNull = chosenColumns(options.forceNotNull, columns)
  const isForced = forceNull.includes(true) || forceNotNull.includes(true)
  const isUsual = quote === '"' && quoteEscape === '"' && !isForced && !matches && columns.length > 1
  if (format !== 'csv' || isUsual) return null
  return { delimiter, quote, quoteEscape, nullText, forceNull, forceNotNull }
}

function rowSink(pg: PgSession, table: TableShape, columns: readonly Column[], shape: CsvShape): Sink {
  // Parts cannot replace rows (DEDUP), arrays are not decoded into them, and the input lacks columns with defaults.
  const isFilled = table.columns.some(({ id, filled }) => filled && !columns.some((column) => column.id === id))
  if (isFilled || hasDraft(pg) || table.comparesRows || columns.some(({ type }) => type.name === 'ARRAY'))
    return blockSink(pg, table, columns, shape)
  const inMemory = (): Sink => blockSink(pg, table, columns, shape)
  return new GrowingSink(inMemory, () => (pg.transaction.spillable ? loadSink(pg, table, columns, shape) : inMemory()))
}

/**
 * Chains converters that bring the input to the expected shape: UTF-8, text format, and no header that must match.
 */
function adapted({ encoding, matches, format }: CopyOptions, form: CsvForm | null, shape: CsvShape, sink: Sink): Sink {
  const reader = encoding?.reader() ?? null
  const rows = form === null ? null : new CsvToText(form)
  const header = matches ? new HeaderMatch(shape) : null
  const mark = format === 'csv' && form === null ? new EndMark() : null
  if (reader === null && rows === null && header === null && mark === null) return sink
  const pass = (chunk: Buffer | null): Buffer => {
    const read = reader === null ? (chunk ?? noBytes) : reader(chunk)
    const strings = mark === null ? read : mark.pass(read, chunk === null)
    const lines = rows === null ? strings : rows.push(strings)
    const whole = rows === null || chunk !== null ? lines : Buffer.concat([lines, rows.end()])
    return header === null ? whole : header.pass(whole, chunk === null)
  }
  const take = (chunk: Buffer | null): Promise<void> | null => {
    const bytes = pass(chunk)
    return bytes.length === 0 ? null : sink.take(bytes)
  }
  return {
    take,
    end: async () => {
      await take(null)
      return sink.end()
    },
    close: () => sink.close(),
  }
}

const noBytes = Buffer.alloc(0)

/** Buffers the input until its size decides which sink to use. */
class GrowingSink implements Sink {
  readonly #small: () => Sink
  readonly #large: () => Sink
  #sink: Sink | null = null
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(small: () => Sink, large: () => Sink) {
    this.#small = small
    this.#large = large
  }

  take(chunk: Buffer): Promise<void> | null {
    if (this.#sink !== null) return this.#sink.take(chunk)
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes < loadBytesMin ? null : this.#pass(this.#large())
  }

  async end(): Promise<number> {
    if (this.#sink === null) await this.#pass(this.#small())
    return (this.#sink as unknown as Sink).end()
  }

  close(): void {
    this.#sink?.close()
  }

  async #pass(sink: Sink): Promise<void> {
    this.#sink = sink
    for (const chunk of this.#chunks.splice(0)) await sink.take(chunk)
  }
}

/** Adds decoded rows to the session's transaction. */
function blockSink(pg: PgSession, table: TableShape, columns: readonly Column[], shape: CsvShape): Sink {
  const decoding = pg.engine.csv(shape)
  const blocks = new TextBlocks(decoding, async (batch) => {
    keep(pg, table, columns, batch)
    await boundRows(pg)
  })
  return { take: (chunk) => blocks.take(chunk), end: () => blocks.end(), close: () => decoding.close() }
}

/** Writes decoded rows as parts. */
function loadSink(pg: PgSession, table: TableShape, columns: readonly Column[], shape: CsvShape): Sink {
  let rows = 0
  let registered = false
  const load = pg.engine.load({
    ...{ tableId: table.id, shape, columnIds: columns.map(({ id }) => id), blockBytes },
    onDecoded: (decoded, rejects) => {
      refuse(rejects)
      rows += decoded
    },
  })
  return {
    take: (chunk) => load.write(chunk),
    end: async () => {
      await load.end()
      if (rows > 0) pg.transaction.register(load, rows)
      registered = rows > 0
      return rows
    },
    close: () => {
      if (!registered) load.close().catch(() => {})
    },
  }
}

function refuse([reject]: CsvBatch['rejects']): void {
  if (reject !== undefined) throw new RowError(`${reject.reason} [line=${reject.line}]`, reject.line)
}

function keep(
  pg: PgSession,
  table: TableShape,
  columns: readonly Column[],
  { rows, columns: values, rejects }: CsvBatch,
): void {
  refuse(rejects)
  if (rows === 0) return
  const packed = {
    rows,
    columns: columns.map(({ id, type }, index) => ({
      columnId: id,
      type,
      values: values[index] as CsvBatch['columns'][number],
    })),
  }
  pg.transaction.add(table.id, packed, bytesOf(values))
}

function bytesOf(columns: CsvBatch['columns']): number {
  let bytes = 0
  for (const column of columns) {
    if (column.kind === 'fixed') bytes += column.bytes.length
    else if (column.kind === 'strings') bytes += column.lengths.length * 8 + column.bytes.length
    else bytes += column.ids.length * 4 + column.strings.length
  }
  return bytes
}

/** Collects chunks into blocks; one block is decoded while the next one arrives. */
class TextBlocks {
  readonly #decoding: CsvDecoding
  readonly #keep: (batch: CsvBatch) => Promise<void>
  #chunks: Buffer[] = []
  #bytes = 0
  #rows = 0
  #inProgress: Promise<void> | null = null

  constructor(decoding: CsvDecoding, keepBatch: (batch: CsvBatch) => Promise<void>) {
    this.#decoding = decoding
    this.#keep = keepBatch
  }

  take(chunk: Buffer): Promise<void> | null {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return this.#bytes >= blockBytes ? this.#begin(false) : null
  }

  async end(): Promise<number> {
    await this.#begin(true)
    await this.#inProgress
    return this.#rows
  }

  async #begin(last: boolean): Promise<void> {
    const block = Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#bytes = 0
    await this.#inProgress
    this.#inProgress = this.#decode(block, last)
    // The failure is reported to the caller that awaits this promise later.
    this.#inProgress.catch(() => {})
  }

  async #decode(block: Buffer, last: boolean): Promise<void> {
    for (const batch of await this.#decoding.decode(block, last)) {
      await this.#keep(batch)
      this.#rows += batch.rows
    }
  }
}

// BINARY ------------------------------------------------------------------------------------------------------------

function binarySink(pg: PgSession, table: TableShape, columns: readonly Column[]): Sink {
  const rows = pg.transaction.binaryRows(table.id, columns, table.timestamp)
  return {
    take: (chunk) => {
      rows.push(chunk)
      return boundRows(pg)
    },
    end: async () => rows.end(),
    close: () => {},
  }
}

// HEADER MATCH of COPY FROM: the first line, in text format, must list the columns in their order.

const lineBytesMax = 1024 * 1024
const unescaped: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', v: '\v' }

class HeaderMatch {
  readonly #shape: CsvShape
  #line: Buffer | null = Buffer.alloc(0)

  constructor(shape: CsvShape) {
    this.#shape = shape
  }

  /** Returns the bytes after the header. */
  pass(bytes: Buffer, last: boolean): Buffer {
    if (this.#line === null) return bytes
    const line = Buffer.concat([this.#line, bytes])
    const end = line.indexOf(10)
    this.#line = line
    if (end < 0 && line.length > lineBytesMax) throw new PgError('22P04', 'the header line is too long')
    if (end < 0 && (!last || line.length === 0)) return line.subarray(line.length)
    this.#compare(line.toString('utf8', 0, end < 0 ? line.length : end).replace(/\r$/, ''))
    this.#line = null
    return line.subarray(end < 0 ? line.length : end + 1)
  }

  #compare(line: string): void {
    const { delimiter, columns } = this.#shape
    const fields = line.split(String.fromCharCode(delimiter))
    if (fields.length !== columns.length) {
      const counts = `got ${fields.length}, expected ${columns.length}`
      throw new PgError('22P04', `wrong number of fields in header line: ${counts}`)
    }
    for (const [index, { name }] of columns.entries()) {
      const field = (fields[index] ?? '').replace(/\\(.)/g, (_, letter: string) => unescaped[letter] ?? letter)
      if (field === name) continue
      const words = `got "${field}", expected "${name}"`
      throw new PgError('22P04', `column name mismatch in header line field ${index + 1}: ${words}`)
    }
  }
}

/**
 * Drops the end-of-data marker of old clients (psql 15 and earlier): a final line `\\.` after the rows of a CSV.
 * Anywhere else such a line is an ordinary row.
 */
class EndMark {
  /** Bytes that may be the marker or its beginning. */
  #held: Buffer = noBytes
  #isLineStart = true

  /** Returns the bytes that cannot be part of the marker; `last`: nothing follows. */
  pass(chunk: Buffer, last: boolean): Buffer {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const end = bytes.length - this.#markBytes(bytes)
    this.#held = Buffer.from(bytes.subarray(end))
    if (end > 0) this.#isLineStart = bytes[end - 1] === lf
    return last && !wholeEndMark.test(this.#held.toString('latin1')) ? bytes : bytes.subarray(0, end)
  }

  /** Size of the marker, or of its beginning, at the end of the bytes. */
  #markBytes(bytes: Buffer): number {
    for (let count = Math.min(endMarkBytesMax, bytes.length); count > 0; count--) {
      const start = bytes.length - count
      if (start === 0 ? !this.#isLineStart : bytes[start - 1] !== lf) continue
      if (endMarks.includes(bytes.toString('latin1', start))) return count
    }
    return 0
  }
}
