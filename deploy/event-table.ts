// A table in which the server stores its own events, such as starts and traced statements (telemetry.ts). Rows are
// buffered in memory, up to a limit; each call of store() stores them as one transaction. Rows that exceed the buffer
// or cannot be stored are dropped and counted, so callers never wait.

import type { Log } from '../engine/base/log.js'
import { type Engine, internalSession, type PackedColumn, type PackedRows, type TableShape } from '../engine/engine.js'
import { dataType } from '../engine/types/column-types.js'

export type EventValue = string | number

export interface EventTableOptions {
  readonly name: string
  /** The first column is the designated timestamp; its values are microseconds. */
  readonly columns: readonly (readonly [name: string, type: 'TIMESTAMP' | 'SYMBOL' | 'VARCHAR' | 'LONG'])[]
  /** TTL, such as `4 WEEKS`; null keeps everything. */
  readonly keep: string | null
  readonly capacity: number
  readonly log: Log
}

const ownSession = internalSession('system')

export class EventTable {
  dropped = 0
  readonly #options: EventTableOptions
  readonly #engine: Engine
  #rows: (readonly EventValue[])[] = []
  #storing: Promise<void> = Promise.resolve()
  #hasLogged = false

  constructor(engine: Engine, options: EventTableOptions) {
    this.#engine = engine
    this.#options = options
  }

  /** Adds a row; values in the order of the columns. */
  note(row: readonly EventValue[]): void {
    if (this.#rows.length < this.#options.capacity) this.#rows.push(row)
    else this.dropped++
  }

  /** Stores the buffered rows; never rejects. */
  store(): Promise<void> {
    if (this.#rows.length > 0) this.#storing = this.#storing.then(() => this.#store())
    return this.#storing
  }

  async #store(): Promise<void> {
    const rows = this.#rows
    this.#rows = []
    if (rows.length === 0) return
    try {
      const { id, packed } = this.#pack(await this.#table(), rows)
      const { error } = await this.#engine.rows(id, [packed])
      if (error !== null) throw new Error(error.message)
      this.#hasLogged = false
    } catch (thrown) {
      this.dropped += rows.length
      this.#logOnce(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }

  /** Logs a failure, once for consecutive failures. */
  #logOnce(reason: string): void {
    if (!this.#hasLogged) this.#options.log('W', 'events', `rows of ${this.#options.name} are dropped: ${reason}`)
    this.#hasLogged = true
  }

  /** The table, which is created if it does not exist or was dropped. */
  async #table(): Promise<TableShape> {
    const { name, columns, keep } = this.#options
    const known = this.#engine.table(name)
    if (known !== undefined) return known
    const list = columns.map(([column, type]) => `${column} ${type}`).join(', ')
    const ttl = keep === null ? '' : ` TTL ${keep}`
    await this.#run(`CREATE TABLE IF NOT EXISTS ${name} (${list}) TIMESTAMP(${columns[0]?.[0]}) PARTITION BY DAY${ttl}`)
    const made = this.#engine.table(name)
    if (made === undefined) throw new Error('the table was not created')
    return made
  }

  /** Applies the current TTL to the table of an earlier start. */
  async continueTable(): Promise<void> {
    const { name, keep } = this.#options
    if (this.#engine.table(name) === undefined || this.#engine.metrics().writesRefused !== null) return
    try {
      await this.#run(`ALTER TABLE ${name} SET TTL ${keep ?? '0 HOURS'}`)
    } catch (thrown) {
      // On a full disk the server must start nevertheless. The next start tries again.
      this.#options.log('W', 'events', `the TTL of ${name} was not set: ${String(thrown)}`)
    }
  }

  async #run(sql: string): Promise<void> {
    await this.#engine.execute(sql, {
      ...{ session: ownSession, encoding: { kind: 'values' }, parameters: [], skip: 0, rowsMax: 0, countAll: false },
      ...{ columns: null, timeoutMs: 0, signal: null, explain: false },
    })
  }

  #pack(table: TableShape, rows: readonly (readonly EventValue[])[]): { id: number; packed: PackedRows } {
    const columns = this.#options.columns.map(([name, type], index) => {
      const column = table.columns.find((candidate) => candidate.name === name)
      if (column?.type.name !== type) throw new Error(`the table has no column ${name} ${type}`)
      const values = rows.map((row) => row[index] as EventValue)
      return { columnId: column.id, type: dataType(type), values: packColumn(type, values) }
    })
    return { id: table.id, packed: { rows: rows.length, columns } }
  }
}

function packColumn(type: EventTableOptions['columns'][number][1], values: readonly EventValue[]): PackedColumn {
  if (type === 'SYMBOL') return packSymbols(values.map(String))
  if (type === 'VARCHAR') {
    const strings = values.map((value) => Buffer.from(String(value)))
    return { kind: 'strings', lengths: Int32Array.from(strings, ({ length }) => length), bytes: Buffer.concat(strings) }
  }
  const numbers = BigInt64Array.from(values, (value) => BigInt(Math.round(Number(value))))
  return { kind: 'fixed', bytes: new Uint8Array(numbers.buffer) }
}

function packSymbols(values: readonly string[]): PackedColumn {
  const known = new Map<string, number>()
  const ids = Int32Array.from(values, (value) => {
    const id = known.get(value) ?? known.size
    known.set(value, id)
    return id
  })
  const strings = [...known.keys()].flatMap((text) => {
    const bytes = Buffer.from(text)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    return [length, bytes]
  })
  return { kind: 'symbols', ids, strings: Buffer.concat(strings), count: known.size }
}
