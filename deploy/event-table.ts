// A table of the server's own: rows are gathered in memory, bounded, and stored once a second as one transaction. What
// the queue or the engine cannot take is dropped and counted, never waited for.

import type { Log } from '../engine/base/log.js'
import { type Engine, internalSession, type PackedColumn, type PackedRows, type TableShape } from '../engine/engine.js'
import { dataType } from '../engine/types/column-types.js'

export type EventValue = string | number

export interface EventTableOptions {
  readonly name: string
  /** The first one is the designated timestamp; values are microseconds. */
  readonly columns: readonly (readonly [name: string, type: 'TIMESTAMP' | 'SYMBOL' | 'VARCHAR' | 'LONG'])[]
  /** `4 WEEKS`; null keeps everything. */
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
  #complained = false

  constructor(engine: Engine, options: EventTableOptions) {
    this.#engine = engine
    this.#options = options
  }

  /** Values in the order of the columns. */
  note(row: readonly EventValue[]): void {
    if (this.#rows.length < this.#options.capacity) this.#rows.push(row)
    else this.dropped++
  }

  /** Stores what waits; never rejects. */
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
      this.#complained = false
    } catch (thrown) {
      this.dropped += rows.length
      this.#complain(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }

  /** Once for each run of failures. */
  #complain(reason: string): void {
    if (!this.#complained) this.#options.log('W', 'events', `rows of ${this.#options.name} are dropped: ${reason}`)
    this.#complained = true
  }

  /** Somebody may have dropped it. */
  async #table(): Promise<TableShape> {
    const { name, columns, keep } = this.#options
    const known = this.#engine.table(name)
    if (known !== undefined) return known
    const list = columns.map(([column, type]) => `${column} ${type}`).join(', ')
    const ttl = keep === null ? '' : ` TTL ${keep}`
    await this.#run(`CREATE TABLE IF NOT EXISTS ${name} (${list}) TIMESTAMP(${columns[0]?.[0]}) PARTITION BY DAY${ttl}`)
    const made = this.#engine.table(name)
    if (made === undefined) throw new Error('the table was not made')
    return made
  }

  /** The table of an earlier start keeps its rows as long as the settings say now. */
  async adopt(): Promise<void> {
    const { name, keep } = this.#options
    if (this.#engine.table(name) === undefined || this.#engine.figures().writesRefused !== null) return
    try {
      await this.#run(`ALTER TABLE ${name} SET TTL ${keep ?? '0 HOURS'}`)
    } catch (thrown) {
      // A disk that takes nothing keeps nobody from reading: the next start says it again.
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
    const texts = values.map((value) => Buffer.from(String(value)))
    return { kind: 'texts', lengths: Int32Array.from(texts, ({ length }) => length), bytes: Buffer.concat(texts) }
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
  const texts = [...known.keys()].flatMap((text) => {
    const bytes = Buffer.from(text)
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    return [length, bytes]
  })
  return { kind: 'symbols', ids, texts: Buffer.concat(texts), count: known.size }
}
