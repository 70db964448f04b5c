// Collects the rows that one transaction inserts, column by column, until the commit sends them to the writer: for any
// number of tables, in arrival order. A mark remembers how many rows there are, so that ROLLBACK TO SAVEPOINT or a
// failed statement can remove the later ones.

import { assert, nonNull } from '../base/assert.js'
import type { PackedRows } from '../storage/jobs/messages.js'
import { ownedColumn } from '../storage/memtable/owned-column.js'
import { type AppenderColumn, ColumnAppender } from './column-appender.js'

const batchRowsMax = 16_384
/** Limit of memory that an idle session keeps. */
const spareBytesMax = 512 * 1024

/** Rows of a table that set the same columns. */
export interface RowBatch {
  readonly tableId: number
  /** The columns for which it was created. */
  readonly made: readonly AppenderColumn[]
  readonly columns: readonly ColumnAppender[]
  rows: number
}

interface Entry {
  readonly tableId: number
  /** Identifies the columns. */
  readonly key: string
  batch: RowBatch | null
  packed: PackedRows | null
  rows: number
  bytes: number
}

/** The rows of one table. */
export interface TakenRows {
  readonly tableId: number
  readonly packed: readonly PackedRows[]
  readonly rows: number
}

export interface Mark {
  /** How often rows were taken before. */
  readonly taken: number
  readonly entries: number
  /** Rows of the last entry. */
  readonly rows: number
}

export class RowCollector {
  #entries: Entry[] = []
  #packedBytes = 0
  #rows = 0
  #taken = 0
  /** A batch kept for reuse, since inserts into a table usually repeat. */
  #spare: RowBatch | null = null

  get rows(): number {
    return this.#rows + (this.#open?.rows ?? 0)
  }

  get bytes(): number {
    const open = this.#open
    return open === null ? this.#packedBytes : this.#packedBytes + bytesOf(open)
  }

  get tableIds(): number[] {
    return [...new Set(this.#entries.map(({ tableId }) => tableId))]
  }

  get isEmpty(): boolean {
    return this.rows === 0
  }

  /** The batch for the next row of the table with these columns. The caller increments `rows` after each row. */
  batch(tableId: number, key: string, columns: readonly AppenderColumn[]): RowBatch {
    const last = this.#entries.at(-1)
    if (last?.batch != null && last.key === key && last.tableId === tableId && last.batch.rows < batchRowsMax) {
      return last.batch
    }
    this.#seal()
    const batch = this.#fresh(tableId, columns)
    this.#entries.push({ tableId, key, batch, packed: null, rows: 0, bytes: 0 })
    return batch
  }

  #fresh(tableId: number, made: readonly AppenderColumn[]): RowBatch {
    const spare = this.#spare
    this.#spare = null
    if (spare?.made !== made)
      return { tableId, made, columns: made.map((column) => new ColumnAppender(column)), rows: 0 }
    for (const column of spare.columns) column.reset()
    spare.rows = 0
    return spare
  }

  /** Adds rows in columnar form. */
  add(tableId: number, packed: PackedRows, bytes: number): void {
    this.#seal()
    this.#entries.push({ tableId, key: '', batch: null, packed, rows: packed.rows, bytes })
    this.#rows += packed.rows
    this.#packedBytes += bytes
  }

  mark(): Mark {
    const last = this.#entries.at(-1)
    return { taken: this.#taken, entries: this.#entries.length, rows: last?.batch?.rows ?? last?.rows ?? 0 }
  }

  /** Whether nothing was taken or cleared since the mark. */
  isAfter({ taken }: Mark): boolean {
    return taken === this.#taken
  }

  /** Rolls back to the mark. A batch that was packed since is truncated in its columns. */
  backTo({ taken, entries, rows }: Mark): void {
    if (taken !== this.#taken) {
      this.clear()
      return
    }
    assert(entries <= this.#entries.length, 'R4: a mark names what was there when it was made')
    for (const gone of this.#entries.splice(entries)) this.#forget(gone)
    const last = this.#entries.at(-1)
    if (last?.batch == null) return
    this.#forget(last)
    assert(rows <= last.batch.rows, 'R4: going back only takes rows away')
    for (const column of last.batch.columns) column.truncate(rows)
    last.batch.rows = rows
    last.packed = null
    last.rows = 0
    last.bytes = 0
  }

  /** Takes all rows, grouped by table, in order. */
  take(): TakenRows[] {
    this.#seal()
    return this.#byTable()
  }

  /** Like `take`, but valid only until the next row: for callers that copy at once. */
  takeBorrowed(): TakenRows[] {
    this.#seal(true)
    return this.#byTable()
  }

  #byTable(): TakenRows[] {
    const tables = new Map<number, { tableId: number; packed: PackedRows[]; rows: number }>()
    for (const { tableId, packed, rows } of this.#entries) {
      if (packed === null || rows === 0) continue
      const table = tables.get(tableId) ?? { tableId, packed: [], rows: 0 }
      table.packed.push(packed)
      table.rows += rows
      tables.set(tableId, table)
    }
    this.clear()
    return [...tables.values()]
  }

  /** Moves the rows of another collector into this one. */
  join(other: RowCollector): void {
    assert(other !== this, 'R4: a transaction takes the rows of another one')
    other.#seal()
    for (const { tableId, packed, bytes } of other.#entries) if (packed !== null) this.add(tableId, packed, bytes)
    other.clear()
    // Its columns still contain the rows that were moved.
    other.#spare = null
  }

  /** Returns the rows of a table so far without taking them. */
  of(tableId: number): PackedRows[] {
    return this.#entries.flatMap((entry) => {
      if (entry.tableId !== tableId) return []
      if (entry.packed !== null) return [entry.packed]
      return entry.batch === null || entry.batch.rows === 0 ? [] : [packedOf(entry.batch)]
    })
  }

  /** Returns all rows by table so far without taking them. */
  gathered(): (TakenRows & { readonly bytes: number })[] {
    this.#seal()
    return this.tableIds.map((tableId) => {
      const entries = this.#entries.filter((entry) => entry.tableId === tableId && entry.packed !== null)
      return {
        tableId,
        packed: entries.map(({ packed }) => packed as PackedRows),
        rows: entries.reduce((sum, { rows }) => sum + rows, 0),
        bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
      }
    })
  }

  clear(): void {
    this.#taken++
    const last = this.#entries.at(-1)?.batch ?? null
    if (last !== null && bytesOf(last) <= spareBytesMax) this.#spare = last
    this.#entries = []
    this.#packedBytes = 0
    this.#rows = 0
  }

  get #open(): RowBatch | null {
    const last = this.#entries.at(-1)
    return last?.packed === null ? last.batch : null
  }

  /** Packs the last batch. Its appenders stay, for a mark within it. */
  #seal(borrowed = false): void {
    const last = this.#entries.at(-1)
    if (last === undefined || last.packed !== null || last.batch === null) return
    const { rows } = last.batch
    last.packed = packedOf(last.batch, borrowed)
    last.rows = rows
    last.bytes = bytesOf(last.batch)
    this.#rows += rows
    this.#packedBytes += last.bytes
  }

  #forget({ packed, rows, bytes }: Entry): void {
    if (packed === null) return
    assert(rows <= this.#rows, 'R4: only rows that are counted are forgotten')
    this.#rows -= rows
    this.#packedBytes -= bytes
  }
}

/** Called after each row. */
function bytesOf({ columns }: RowBatch): number {
  let bytes = 0
  for (let index = 0; index < columns.length; index++) bytes += nonNull(columns[index]).bytes
  return bytes
}

function packedOf({ columns, rows }: RowBatch, borrowed = false): PackedRows {
  for (const column of columns) assert(column.rows === rows, 'R1: every column of a batch has a value for each row')
  return {
    rows,
    columns: columns.map((appender) => ({
      columnId: appender.column.columnId,
      type: appender.column.type,
      values: borrowed ? appender.borrowed() : appender.packed(),
    })),
  }
}

/** Copies columns that may be borrowed. */
export function ownedRows({ rows, columns }: PackedRows): PackedRows {
  return { rows, columns: columns.map((column) => ({ ...column, values: ownedColumn(column.values) })) }
}
