// ListAssembler: converts the lists of a Parquet file to ARRAY values. Parquet stores a list column as a sequence of
// elements with repetition and definition levels, which tell where lists begin and what is NULL. A row may continue in
// the next page. A missing element becomes NaN, the NULL of DOUBLE. Inner lists must have equal lengths.

import { nonNull } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import type { Scratch } from '../storage/part/part-scratch.js'
import { type ForeignColumn, physical } from './foreign-column.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'

export interface ListPage {
  /** Addresses of the levels, u32 each; 0 where the column has none. */
  readonly repetition: number
  readonly definition: number
  readonly levels: number
  /** Address of the values that are present, as wide as in the file. */
  readonly values: number
  readonly place: ForeignPlace
}

export interface ArrayRows {
  /** Address of the rows' entries. */
  readonly address: number
  readonly rows: number
}

export class ListAssembler {
  readonly #column: ForeignColumn
  readonly #file: ForeignFile
  readonly #scratch: Scratch
  /**
   * For each dimension of the current row: elements of the innermost open list, and the length of the lists before it.
   */
  readonly #counts: number[]
  readonly #sizes: number[]
  #data: number[] = []
  #state: 'none' | 'null' | 'open' = 'none'

  constructor(file: ForeignFile, column: ForeignColumn, scratch: Scratch) {
    this.#file = file
    this.#column = column
    this.#scratch = scratch
    this.#counts = column.lists.map(() => 0)
    this.#sizes = column.lists.map(() => -1)
  }

  /** The rows that end within the page. */
  add(page: ListPage): ArrayRows {
    const { memory } = this.#scratch
    const value = valueReader(memory, this.#column, page.values)
    const out = this.#output(page.levels)
    const [repetition, definition] = [page.repetition >>> 2, page.definition >>> 2]
    let next = 0
    for (let i = 0; i < page.levels; i++) {
      const from = memory.u32[repetition + i]!
      const level = memory.u32[definition + i]!
      if (from === 0) this.#endRow(out, page.place)
      else if (this.#state !== 'open') throw this.#file.error('a list element precedes the first row', page.place)
      this.#element(from, level, page.place)
      const { definition: whole, lists } = this.#column
      if (level === whole) this.#data.push(value(next++))
      else if (level >= (lists[lists.length - 1]?.filled ?? 0)) this.#data.push(Number.NaN)
    }
    return { address: out.entries, rows: out.rows }
  }

  /** The last row, at the end of a column chunk. */
  end(place: ForeignPlace): ArrayRows {
    const out = this.#output(0)
    this.#endRow(out, place)
    return { address: out.entries, rows: out.rows }
  }

  #element(from: number, level: number, place: ForeignPlace): void {
    const { lists } = this.#column
    for (let depth = lists.length - 1; depth >= Math.max(1, from); depth--)
      if (this.#state === 'open') this.#close(depth, place)
    if (from === 0) this.#state = level < (lists[0]?.exists ?? 0) ? 'null' : 'open'
    if (from > 0) this.#counts[from - 1] = (this.#counts[from - 1] ?? 0) + 1
    for (let depth = from; depth < lists.length && this.#state === 'open'; depth++) {
      const { exists, filled } = nonNull(lists[depth])
      if (level < exists) throw this.#file.error('an inner list is NULL', place)
      this.#counts[depth] = level < filled ? 0 : 1
      if (level >= filled) continue
      this.#closeBelow(depth)
      return
    }
  }

  /** The inner dimensions of an empty list are unknown. */
  #closeBelow(depth: number): void {
    for (let below = depth + 1; below < this.#counts.length; below++) this.#counts[below] = -1
  }

  #close(depth: number, place: ForeignPlace): void {
    const count = this.#counts[depth] ?? 0
    if (count < 0) return
    const size = this.#sizes[depth] ?? -1
    if (size >= 0 && size !== count) throw this.#file.error('inner lists have different lengths', place)
    this.#sizes[depth] = count
  }

  #endRow(out: ArrayOutput, place: ForeignPlace): void {
    const { memory } = this.#scratch
    const entry = (out.entries >>> 2) + out.rows * 2
    if (this.#state === 'none') return
    if (this.#state === 'null') {
      memory.u32[entry] = 0
      memory.i32[entry + 1] = -1
    } else {
      for (let depth = this.#counts.length - 1; depth >= 0; depth--) this.#close(depth, place)
      const header = headerBytes(this.#counts.length)
      memory.u8.fill(0, out.at, out.at + header)
      memory.u32[out.at >>> 2] = this.#counts.length
      memory.u32.set(
        this.#sizes.map((size) => Math.max(0, size)),
        (out.at >>> 2) + 1,
      )
      memory.f64.set(this.#data, (out.at + header) >>> 3)
      memory.u32[entry] = out.at
      memory.i32[entry + 1] = header + this.#data.length * 8
      out.at += header + this.#data.length * 8
    }
    out.rows++
    this.#state = 'none'
    this.#data = []
    this.#sizes.fill(-1)
    this.#counts.fill(0)
  }

  /** Allocates room for the current row and this many levels. */
  #output(levels: number): ArrayOutput {
    const header = headerBytes(this.#counts.length)
    const arrays = this.#scratch.room('arrays', (levels + 1) * (header + 8) + this.#data.length * 8)
    return { entries: this.#scratch.room('array rows', (levels + 1) * 8), at: arrays, rows: 0 }
  }
}

interface ArrayOutput {
  readonly entries: number
  at: number
  rows: number
}

function headerBytes(dimensions: number): number {
  return (4 + dimensions * 4 + 7) & ~7
}

function valueReader(
  memory: SharedMemory,
  { physical: kind, form }: ForeignColumn,
  address: number,
): (index: number) => number {
  const { i32, u32, i64, u64, f32, f64 } = memory
  switch (kind) {
    case physical.int32:
      return form === 'unsigned 32'
        ? (index) => u32[(address >>> 2) + index]!
        : (index) => i32[(address >>> 2) + index]!
    case physical.int64:
      return form === 'unsigned 64'
        ? (index) => Number(u64[(address >>> 3) + index])
        : (index) => Number(i64[(address >>> 3) + index])
    case physical.float:
      return (index) => f32[(address >>> 2) + index]!
    default:
      return (index) => f64[(address >>> 3) + index]!
  }
}
