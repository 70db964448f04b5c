// RowBuffer: a growing buffer of rows that an operator has to store, as in sorts and joins. It stores columns in shared
// memory and copies the strings. Symbols that come from different dictionaries are translated to one dictionary of the
// query.

import type { Kernels } from '../../kernels/load.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, isVariable, widthOf } from '../../types/column-types.js'
import type { QueryArena } from './query-arena.js'
import { StringHeap } from './string-heap.js'
import type { Symbols } from './symbols.js'
import { type Batch, batchRowsMax, type Vector } from './vector.js'

/**
 * Capacities are a power of two minus this many rows, so that an allocation with its overhead fits a size class of the
 * allocator.
 */
const spareRows = 16
const rowsFirst = 256 - spareRows

/** The parts of a query's context that a row buffer needs. */
interface Home {
  readonly memory: SharedMemory
  readonly arena: QueryArena
  readonly kernels: Kernels
  readonly symbols: Symbols
}

export class RowBuffer {
  rows = 0
  readonly #context: Home
  readonly #types: readonly DataType[]
  readonly #addresses: number[]
  readonly #dictionaries: number[]
  #heap: StringHeap
  #capacity = 0

  constructor(context: Home, types: readonly DataType[]) {
    this.#context = context
    this.#types = types
    this.#addresses = types.map(() => 0)
    this.#dictionaries = types.map(() => 0)
    this.#heap = new StringHeap(context.arena)
  }

  append(batch: Batch): void {
    this.reserve(this.rows + batch.rows)
    this.#types.forEach((type, column) => {
      this.#appendColumn(type, column, batch.vectors[column] as Vector, batch.rows)
    })
    this.rows += batch.rows
  }

  /** Bytes allocated, including strings and spare capacity. */
  get bytes(): number {
    return this.#rowBytes * this.#capacity + this.#heap.bytes
  }

  /** Bytes of the rows, including strings. */
  get bytesHeld(): number {
    return this.#rowBytes * this.rows + this.#heap.bytes
  }

  get #rowBytes(): number {
    return this.#types.reduce((sum, type) => sum + widthOf(type), 0)
  }

  /** Addresses of the areas that hold the bytes of strings. */
  get heapAreas(): number[] {
    return this.#heap.areas
  }

  /** The column as one vector over all rows. */
  column(index: number): Vector {
    return {
      type: this.#types[index] as DataType,
      address: this.#addresses[index] as number,
      dictionary: this.#dictionaries[index] as number,
    }
  }

  /** The first `count` columns, each as one vector over all rows. */
  columns(count = this.#types.length): Vector[] {
    return Array.from({ length: count }, (_, index) => this.column(index))
  }

  /** A batch of rows from `from` to `to`, as many as fit a batch; null when there are none. Not copied. */
  batchAt(from: number, to: number): Batch | null {
    const rows = Math.min(batchRowsMax, Math.min(to, this.rows) - from)
    if (rows <= 0) return null
    const vectors = this.#types.map((type, index) => {
      const vector = this.column(index)
      return { ...vector, address: vector.address + from * widthOf(type) }
    })
    return { rows, vectors }
  }

  /** Discards all rows but the last `count`. */
  keepLast(count: number): void {
    const from = this.rows - count
    const { u8 } = this.#context.memory
    this.#types.forEach((type, index) => {
      const address = this.#addresses[index] as number
      u8.copyWithin(address, address + from * widthOf(type), address + this.rows * widthOf(type))
    })
    this.rows = count
    this.#compactHeap()
  }

  /** Keeps only the rows whose u32 numbers are at address `index`, in that order. */
  keepGathered(index: number, count: number): void {
    const { kernels, arena } = this.#context
    this.#types.forEach((type, column) => {
      const width = widthOf(type)
      const fresh = arena.take(this.#capacity * width)
      kernels.sort.gather(width, this.#addresses[column] as number, index, count, fresh)
      arena.give(this.#addresses[column] as number)
      this.#addresses[column] = fresh
    })
    this.rows = count
    this.#compactHeap()
  }

  free(): void {
    for (const address of this.#addresses) this.#context.arena.give(address)
    this.#addresses.fill(0)
    this.#heap.free()
    this.#capacity = 0
    this.rows = 0
  }

  /** Ensures capacity for this many rows. */
  reserve(rows: number): void {
    if (rows <= this.#capacity) return
    const { arena, memory } = this.#context
    const capacity = Math.max(rows, rowsFirst, 2 ** Math.ceil(Math.log2(rows + spareRows)) - spareRows)
    this.#types.forEach((type, index) => {
      const width = widthOf(type)
      const fresh = arena.take(capacity * width)
      const old = this.#addresses[index] as number
      if (old !== 0) {
        memory.u8.copyWithin(fresh, old, old + this.rows * width)
        arena.give(old)
      }
      this.#addresses[index] = fresh
    })
    this.#capacity = capacity
  }

  #appendColumn(type: DataType, column: number, vector: Vector, rows: number): void {
    const { memory } = this.#context
    const width = widthOf(type)
    const target = (this.#addresses[column] as number) + this.rows * width
    memory.u8.copyWithin(target, vector.address, vector.address + rows * width)
    if (isVariable(type)) copyStrings(this.#context, this.#heap, target, rows)
    if (type.name === 'SYMBOL') this.#uniteSymbols(column, vector.dictionary, target, rows)
  }

  /**
   * All rows of a symbol column share a dictionary: that of the first rows, or the query's own as soon as two
   * dictionaries meet.
   */
  #uniteSymbols(column: number, dictionary: number, target: number, rows: number): void {
    const { symbols } = this.#context
    const known = this.#dictionaries[column] as number
    if (this.rows === 0 && known !== symbols.dictionary) {
      this.#dictionaries[column] = dictionary
      return
    }
    if (known === dictionary) return
    this.#dictionaries[column] = symbols.dictionary
    this.#translate(this.#addresses[column] as number, this.rows, known)
    this.#translate(target, rows, dictionary)
  }

  #translate(address: number, rows: number, dictionary: number): void {
    const { memory, symbols } = this.#context
    const first = address >>> 2
    for (let at = first; at < first + rows; at++) {
      memory.i32[at] = symbols.translate(dictionary, memory.i32[at]!)
    }
  }

  /** Copies the strings of the remaining rows to a new heap and frees the old one. */
  #compactHeap(): void {
    const variable = this.#types.flatMap((type, index) => (isVariable(type) ? [index] : []))
    if (variable.length === 0) return
    const heap = new StringHeap(this.#context.arena)
    for (const index of variable) copyStrings(this.#context, heap, this.#addresses[index] as number, this.rows)
    this.#heap.free()
    this.#heap = heap
  }
}

/** Strings are copied in steps of this many rows, or fewer rows where they are long. */
const copiedRows = 1024
const copiedBytesMax = 16 * 1024 * 1024

/** Copies the bytes that entries point at to the heap, and makes the entries point at the copies. */
export function copyStrings({ kernels }: Pick<Home, 'kernels'>, heap: StringHeap, address: number, rows: number): void {
  const { text } = kernels
  for (let row = 0, step = copiedRows; row < rows; ) {
    const entries = address + row * 8
    const count = Math.min(step, rows - row)
    const bytes = text.movedBytes(entries, count)
    if (bytes > copiedBytesMax && count > 1) {
      step = Math.ceil(count / 2)
      continue
    }
    if (bytes > 0) text.moveStrings(entries, count, heap.reserve(bytes), 0)
    row += count
  }
}
