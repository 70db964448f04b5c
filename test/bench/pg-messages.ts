// The messages of a PostgreSQL client for each kind of work, as bytes: rows of (ts timestamp, sym, price double, qty
// long, note). Parameters are encoded as Java drivers do: timestamps as text, numbers in binary.

/** What is written at once, and how often the server says that it is ready again. */
export interface Flight {
  readonly bytes: Buffer
  readonly readies: number
}

export interface WireJob {
  /** Sent before the clock starts, and the type of the message that ends its answer. */
  readonly before: Buffer | null
  readonly afterBefore: string
  readonly flights: readonly Flight[]
  /** Each flight is answered before the next one leaves. */
  readonly waits: boolean
}

const symbols = ['AAPL', 'MSFT', 'GOOG', 'AMZN', 'TSLA', 'NVDA', 'META', 'ORCL']
const firstMillis = Date.UTC(2024, 0, 1)
const flightBytes = 256 * 1024

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function message(type: string, ...fields: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(fields.map((field) => (typeof field === 'string' ? Buffer.from(field) : field)))
  return Buffer.concat([Buffer.from(type, 'latin1'), int32(body.length + 4), body])
}

const sync = message('S')
const executeOne = message('E', '\0', int32(1))
const executeAll = message('E', '\0', int32(0))

interface Row {
  readonly ts: string
  readonly symbol: string
  readonly price: number
  readonly quantity: number
  readonly note: string
}

/** Ten rows a second. */
function rowAt(index: number): Row {
  const ts = new Date(firstMillis + index * 100).toISOString().replace('T', ' ').replace('Z', '000')
  const price = Math.round((100 + ((index * 7919) % 9973) / 17) * 10000) / 10000
  return {
    ...{ ts, price, symbol: symbols[(index * 31) % symbols.length] as string },
    ...{ quantity: (index * 613) % 10_007, note: `note ${(index * 131) % 1000}` },
  }
}

function value(bytes: Buffer): Buffer {
  return Buffer.concat([int32(bytes.length), bytes])
}

function binaryRow({ ts, symbol, price, quantity, note }: Row): Buffer {
  const numbers = Buffer.alloc(24)
  numbers.writeInt32BE(8, 0)
  numbers.writeDoubleBE(price, 4)
  numbers.writeInt32BE(8, 12)
  numbers.writeBigInt64BE(BigInt(quantity), 16)
  return Buffer.concat([value(Buffer.from(ts)), value(Buffer.from(symbol)), numbers, value(Buffer.from(note))])
}

function insertText(table: string): string {
  return `INSERT INTO ${table} (ts, sym, price, qty, note) VALUES ($1, $2, $3, $4, $5)`
}

const parameterOids = Buffer.concat([int16(5), ...[1114, 25, 701, 20, 25].map(int32)])
const parameterFormats = Buffer.concat([int16(5), ...[0, 0, 1, 1, 0].map(int16), int16(5)])

/**
 * Bind and Execute of one prepared statement for each row, a Sync behind so many. Batches are awaited, single rows not.
 */
export function insertBatches(table: string, rows: number, batchRows: number): WireJob {
  const flights: { bytes: Buffer; readies: number }[] = []
  let parts: Buffer[] = []
  let bytes = 0
  let readies = 0
  const leave = (): void => {
    if (parts.length > 0) flights.push({ bytes: Buffer.concat(parts), readies })
    parts = []
    bytes = 0
    readies = 0
  }
  for (let row = 0; row < rows; row++) {
    const bind = message('B', '\0s\0', parameterFormats, binaryRow(rowAt(row)), int16(0))
    parts.push(bind, executeOne)
    bytes += bind.length + executeOne.length
    if ((row + 1) % batchRows !== 0 && row + 1 < rows) continue
    parts.push(sync)
    readies++
    if (batchRows > 1 || bytes > flightBytes) leave()
  }
  leave()
  const before = Buffer.concat([message('P', 's\0', `${insertText(table)}\0`, parameterOids), sync])
  return { before, afterBefore: 'Z', flights, waits: batchRows > 1 }
}

/**
 * Single rows within BEGIN .. COMMIT, each answered before the next one leaves: of a prepared statement, or as texts.
 */
export function transactions(table: string, rows: number, transactionRows: number, prepared: boolean): WireJob {
  const flights: Flight[] = []
  for (let row = 0; row < rows; row++) {
    if (row % transactionRows === 0) flights.push({ bytes: simpleQuery('BEGIN'), readies: 1 })
    const written = rowAt(row)
    const bytes = prepared
      ? Buffer.concat([message('B', '\0s\0', parameterFormats, binaryRow(written), int16(0)), executeOne, sync])
      : simpleQuery(`INSERT INTO ${table} (ts, sym, price, qty, note) VALUES (${tupleOf(written)})`)
    flights.push({ bytes, readies: 1 })
    if ((row + 1) % transactionRows === 0 || row + 1 === rows)
      flights.push({ bytes: simpleQuery('COMMIT'), readies: 1 })
  }
  const before = Buffer.concat([message('P', 's\0', `${insertText(table)}\0`, parameterOids), sync])
  return { before, afterBefore: 'Z', flights, waits: true }
}

function tupleOf({ ts, symbol, price, quantity, note }: Row): string {
  return `'${ts}', '${symbol}', ${price}, ${quantity}, '${note}'`
}

/** Simple queries of many tuples, each answered before the next one leaves. */
export function textInserts(table: string, rows: number, batchRows: number): WireJob {
  const flights: { bytes: Buffer; readies: number }[] = []
  for (let from = 0; from < rows; from += batchRows) {
    const tuples: string[] = []
    for (let row = from; row < Math.min(rows, from + batchRows); row++) {
      tuples.push(`(${tupleOf(rowAt(row))})`)
    }
    const text = `INSERT INTO ${table} (ts, sym, price, qty, note) VALUES ${tuples.join(', ')}\0`
    flights.push({ bytes: message('Q', text), readies: 1 })
  }
  return { before: null, afterBefore: 'Z', flights, waits: true }
}

/** COPY in text form: messages of 64 KiB, cut anywhere. */
export function copyBlocks(table: string, rows: number): WireJob {
  const lines: string[] = []
  for (let index = 0; index < rows; index++) {
    const { ts, symbol, price, quantity, note } = rowAt(index)
    lines.push(`${ts}\t${symbol}\t${price}\t${quantity}\t${note}\n`)
  }
  const data = Buffer.from(lines.join(''))
  const flights: { bytes: Buffer; readies: number }[] = []
  for (let at = 0; at < data.length; at += 65_536) {
    flights.push({ bytes: message('d', data.subarray(at, at + 65_536)), readies: 0 })
  }
  flights.push({ bytes: message('c'), readies: 1 })
  const before = message('Q', `COPY ${table} (ts, sym, price, qty, note) FROM STDIN\0`)
  return { before, afterBefore: 'G', flights, waits: false }
}

export function selection(table: string, binary: boolean): WireJob {
  const before = Buffer.concat([
    message('P', 's\0', `SELECT ts, sym, price, qty, note FROM ${table}\0`, int16(0)),
    sync,
  ])
  const bind = message('B', '\0s\0', int16(0), int16(0), int16(1), int16(binary ? 1 : 0))
  const bytes = Buffer.concat([bind, message('D', 'P\0'), executeAll, sync])
  return { before, afterBefore: 'Z', flights: [{ bytes, readies: 1 }], waits: true }
}

/** One row by its time, one question after the other. */
export function pointQueries(table: string, rows: number): WireJob {
  const text = `SELECT ts, sym, price, qty, note FROM ${table} WHERE ts = $1\0`
  const before = Buffer.concat([message('P', 's\0', text, int16(1), int32(1114)), sync])
  const flights = Array.from({ length: rows }, (_, index) => {
    const ts = value(Buffer.from(rowAt((index * 7919) % rows).ts))
    const bind = message('B', '\0s\0', int16(0), int16(1), ts, int16(1), int16(1))
    return { bytes: Buffer.concat([bind, executeAll, sync]), readies: 1 }
  })
  return { before, afterBefore: 'Z', flights, waits: true }
}

/** The text as a simple query. */
export function simpleQuery(text: string): Buffer {
  return message('Q', `${text}\0`)
}

/** Prepares the statement `s`; the server infers the types of its parameters. */
export function preparation(text: string): Buffer {
  return Buffer.concat([message('P', 's\0', `${text}\0`, int16(0)), sync])
}

/** Executes the statement `s` with parameters as text; its rows come in binary. */
export function execution(parameters: readonly string[]): Buffer {
  const values = parameters.map((text) => value(Buffer.from(text)))
  const bind = message('B', '\0s\0', int16(0), int16(parameters.length), ...values, int16(1), int16(1))
  return Buffer.concat([bind, executeAll, sync])
}
