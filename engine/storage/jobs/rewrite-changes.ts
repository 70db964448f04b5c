// The rows of one part (Parquet file) that an UPDATE, DELETE or change of a column's type changes: ascending row
// numbers, the new values of the assigned columns, and the values for RETURNING. The statement's query appends them
// batch by batch; then the job that writes the new version of the part reads them. Apart from the values for RETURNING
// they are in the job's memory.
//
// An UPDATE with a join may find a row more than once. Then the values found first are used.

import { assert } from '../../base/assert.js'
import { ResourceError } from '../../base/errors.js'
import { dictionaryCount, dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Scratch } from '../part/part-scratch.js'

export interface AssignedColumn {
  readonly id: number
  readonly type: DataType
}

/** New values of one column in a batch. `dictionary` is the one that SYMBOL ids refer to. */
export interface BatchValues {
  readonly address: number
  readonly dictionary: number
}

/** Limit for RETURNING, because the returned rows are sent through the writer. */
const returnedRowsMax = 250_000

export function requireReturnable(rows: number): void {
  if (rows > returnedRowsMax)
    throw new ResourceError(`the statement changes too many rows for RETURNING [max=${returnedRowsMax}]`)
}

const heapBytes = 256 * 1024
const roomFirst = 4096

export class ChangeList {
  readonly columns: readonly AssignedColumn[]
  /** Number of rows so far; after finish() each row is counted once. */
  count = 0
  private readonly scratch: Scratch
  private readonly memory: SharedMemory
  private readonly symbols: ReadonlyMap<number, SymbolIds>
  private capacity = 0
  private sorted = true
  private heaps = 0
  private heapNext = 0
  private heapEnd = 0
  /** The values for RETURNING by row number. */
  private readonly returned = new Map<number, readonly Value[]>()

  constructor(scratch: Scratch, columns: readonly AssignedColumn[], symbols: ReadonlyMap<number, SymbolIds>) {
    this.scratch = scratch
    this.memory = scratch.memory
    this.columns = columns
    this.symbols = symbols
    for (const ids of symbols.values()) ids.begin()
  }

  /** Address of the row numbers (u32). */
  get rows(): number {
    return this.scratch.room('changedRows', this.capacity * 4, this.count * 4)
  }

  /** Address of a column's new values in memory layout. */
  values(column: number): number {
    const { type } = this.columns[column] as AssignedColumn
    return this.scratch.room(`changed ${column}`, this.capacity * widthOf(type), this.count * widthOf(type))
  }

  /** Appends a batch. `numbers` is the address of its row numbers (i64). */
  append(rows: number, numbers: number, values: readonly BatchValues[]): void {
    if (this.count + rows > this.capacity) this.capacity = Math.max(roomFirst, this.count + rows, this.capacity * 2)
    const { u32 } = this.memory
    const target = (this.rows >>> 2) + this.count
    for (let row = 0; row < rows; row++) {
      const number = u32[(numbers >>> 2) + row * 2]!
      if (this.count + row > 0 && number <= u32[target + row - 1]!) this.sorted = false
      u32[target + row] = number
    }
    assert(values.length >= this.columns.length, 'R1: every assigned column has values')
    this.columns.forEach((_, index) => {
      this.copy(index, rows, values[index] as BatchValues)
    })
    this.count += rows
  }

  /** Records the values for RETURNING of the rows of a batch. */
  appendReturned(rows: number, numbers: number, readers: readonly ((row: number) => Value)[]): void {
    const { u32 } = this.memory
    for (let row = 0; row < rows; row++) {
      const number = u32[(numbers >>> 2) + row * 2]!
      if (this.returned.has(number)) continue
      requireReturnable(this.returned.size + 1)
      this.returned.set(
        number,
        readers.map((read) => read(row)),
      )
    }
  }

  /** After finish(): the rows of RETURNING in row order. */
  returnedRows(): (readonly Value[])[] {
    if (this.returned.size === 0) return []
    const first = this.rows >>> 2
    const { u32 } = this.memory
    return Array.from({ length: this.count }, (_, at) => this.returned.get(u32[first + at]!) ?? [])
  }

  private copy(index: number, rows: number, { address, dictionary }: BatchValues): void {
    const { id, type } = this.columns[index] as AssignedColumn
    const width = widthOf(type)
    const target = this.values(index) + this.count * width
    this.memory.u8.copyWithin(target, address, address + rows * width)
    const symbols = this.symbols.get(id)
    if (symbols !== undefined) symbols.translate(dictionary, target, rows)
    else if (isVariable(type)) this.ownStrings(target, rows)
  }

  private ownStrings(entries: number, rows: number): void {
    const { u8, u32, i32 } = this.memory
    for (let word = entries >>> 2; word < (entries >>> 2) + rows * 2; word += 2) {
      const bytes = i32[word + 1]!
      if (bytes <= 0) continue
      const source = u32[word]!
      const address = this.reserve(bytes)
      u8.copyWithin(address, source, source + bytes)
      u32[word] = address
    }
  }

  /** Strings keep their address: each heap is a buffer of its own and never grows. */
  private reserve(bytes: number): number {
    const span = (bytes + 7) & ~7
    if (this.heapNext + span > this.heapEnd) {
      const size = Math.max(heapBytes, span)
      this.heapNext = this.scratch.room(`changed texts ${this.heaps++}`, size)
      this.heapEnd = this.heapNext + size
    }
    const address = this.heapNext
    this.heapNext += span
    return address
  }

  /** Sorts the rows and removes duplicates and the rows in `skip`. */
  finish(skip: ReadonlySet<number>): void {
    if (this.count === 0 || (this.sorted && skip.size === 0)) return
    const { u32 } = this.memory
    const first = this.rows >>> 2
    const order = new Float64Array(this.count)
    for (let at = 0; at < this.count; at++) order[at] = u32[first + at]! * 2 ** 21 + at
    const places = this.count < 2 ** 21 ? order.sort().map((key) => key % 2 ** 21) : this.stableOrder(first)
    const retained: number[] = []
    let last = -1
    for (const place of places) {
      const row = u32[first + place]!
      if (row === last || skip.has(row)) continue
      last = row
      retained.push(place)
    }
    this.permute(retained)
  }

  private stableOrder(first: number): Float64Array {
    const { u32 } = this.memory
    const order = Float64Array.from({ length: this.count }, (_, at) => at)
    return order.sort((x, y) => u32[first + x]! - u32[first + y]! || x - y)
  }

  private permute(retained: readonly number[]): void {
    const { u8 } = this.memory
    const move = (address: number, width: number): void => {
      const old = u8.slice(address, address + this.count * width)
      retained.forEach((place, at) => {
        u8.set(old.subarray(place * width, place * width + width), address + at * width)
      })
    }
    move(this.rows, 4)
    this.columns.forEach(({ type }, index) => {
      move(this.values(index), widthOf(type))
    })
    assert(retained.length <= this.count, 'R4: a row is changed once')
    this.count = retained.length
  }
}

/** Translates symbols of any dictionary to ids of a table's symbol column. Collects strings that have no id there. */
export class SymbolIds {
  readonly missing = new Set<string>()
  private readonly memory: SharedMemory
  private readonly dictionary: number
  private known: Map<string, number> | undefined
  private readonly translated = new Map<number, Map<number, number>>()

  constructor(memory: SharedMemory, dictionary: number) {
    this.memory = memory
    this.dictionary = dictionary
  }

  /** Starts another run of the program, whose dictionaries may have the addresses of earlier ones. */
  begin(): void {
    this.translated.clear()
  }

  /** Replaces ids of the other dictionary by ids of the table's, in place. A missing string becomes NULL. */
  translate(dictionary: number, address: number, rows: number): void {
    if (dictionary === this.dictionary) return
    const { i32 } = this.memory
    const ids = this.translated.get(dictionary) ?? new Map<number, number>()
    this.translated.set(dictionary, ids)
    for (let at = address >>> 2; at < (address >>> 2) + rows; at++) {
      const id = i32[at]!
      if (id < 0) continue
      const mine = ids.get(id) ?? this.find(textOf(this.memory, dictionary, id))
      ids.set(id, mine)
      i32[at] = mine
    }
  }

  private find(text: string): number {
    this.known ??= this.readAll()
    const id = this.known.get(text)
    if (id === undefined) this.missing.add(text)
    return id ?? -1
  }

  private readAll(): Map<string, number> {
    const known = new Map<string, number>()
    const count = dictionaryCount(this.memory, this.dictionary)
    for (let id = 0; id < count; id++) known.set(textOf(this.memory, this.dictionary, id), id)
    return known
  }
}

function textOf(memory: SharedMemory, dictionary: number, id: number): string {
  const entry = dictionaryEntry(memory, dictionary, id) >>> 2
  const [address, bytes] = [memory.u32[entry]!, memory.u32[entry + 1]!]
  return Buffer.from(memory.memory.buffer, address, bytes).toString('utf8')
}
