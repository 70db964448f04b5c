// Maps the key columns of both sides of a join to one 32-bit number (code) for each row. Equal keys have equal codes
// (NULL equals NULL), and codes are so small that they can index arrays. For symbols, the codes are the ids of one
// dictionary; an id of another dictionary is translated by its string, once. Other types get their codes from
// key-codes.ts. With several key columns, the codes of the first two columns are mapped to one code, then that code and
// the code of the third column to another one, and so on.

import { dictionaryCount, dictionaryEntry } from '../../memory/column-layout.js'
import { type DataType, dataType, storageOf } from '../../types/column-types.js'
import { keyText } from '../../types/compare.js'
import type { ExecContext } from '../batch/context.js'
import { keyNumbers } from '../batch/key-codes.js'
import { KeyTable } from '../batch/key-table.js'
import { StringHeap } from '../batch/string-heap.js'
import { valueReader } from '../batch/values.js'
import { batchRowsMax, type Vector } from '../batch/vector.js'

/** Writes the codes of at most batchRowsMax rows to `out` (u32). */
export type JoinCoder = (vector: Vector, rows: number, out: number) => void

interface KeyCodes {
  readonly code: JoinCoder
  /** All codes are below this; Infinity: any 32 bits. */
  readonly size: () => number
}

export class JoinKeys {
  readonly #context: ExecContext
  readonly #keys: readonly KeyCodes[]
  /** A table of pairs for each key but the first; or a table for a single key whose codes are not dense. */
  readonly #tables: readonly KeyTable[]
  readonly #codes: number
  readonly #pairs: number

  /** `base`: for a single symbol key, the dictionary whose ids are codes; 0 = the first one seen. */
  constructor(context: ExecContext, left: readonly DataType[], right: readonly DataType[], base = 0) {
    const { arena } = context
    this.#context = context
    this.#keys = left.map((type, index) => keyCodes(context, type, right[index] as DataType, base))
    const sparse = this.#keys.length === 1 && this.#keys[0]?.size() === Number.POSITIVE_INFINITY
    this.#tables = this.#keys.slice(sparse ? 0 : 1).map(() => new KeyTable(context, 8))
    this.#codes = this.#keys.length > 1 ? arena.take(batchRowsMax * 4) : 0
    this.#pairs = this.#tables.length > 0 ? arena.scratch() : 0
  }

  /** All codes assigned so far are below this. */
  get size(): number {
    const last = this.#tables[this.#tables.length - 1]
    return last?.count ?? this.#keys[0]?.size() ?? 1
  }

  /** Writes a code for each row; without keys all rows have the same code. */
  number(keys: readonly Vector[], rows: number, out: number): void {
    const { memory, kernels } = this.#context
    const [first, ...more] = keys
    if (first === undefined) {
      memory.u32.fill(0, out >>> 2, (out >>> 2) + rows)
      return
    }
    this.#keys[0]?.code(first, rows, out)
    if (this.#tables.length > 0 && more.length === 0) {
      kernels.join.pairWords(out, 0, rows, this.#pairs)
      this.#tables[0]?.number(this.#pairs, 0, rows, out)
    }
    more.forEach((vector, index) => {
      this.#keys[index + 1]?.code(vector, rows, this.#codes)
      kernels.join.pairWords(out, this.#codes, rows, this.#pairs)
      this.#tables[index]?.number(this.#pairs, 0, rows, out)
    })
  }
}

function keyCodes(context: ExecContext, left: DataType, right: DataType, base: number): KeyCodes {
  if (left.name === 'SYMBOL' && right.name === 'SYMBOL') return symbolCodes(context, base)
  if (isText(left) && isText(right)) return textCodes(context)
  const sparse = { size: () => Number.POSITIVE_INFINITY }
  if (storageOf(left) !== storageOf(right)) return { ...sparse, code: valueCoder(context) }
  const { code, count } = keyNumbers(context, left)
  return { size: count ?? sparse.size, code: (vector, rows, out) => code(vector, 0, rows, out) }
}

export function isText({ name }: DataType): boolean {
  return name === 'STRING' || name === 'VARCHAR' || name === 'SYMBOL' || name === 'CHAR'
}

const unknown = 0xffff_ffff

/**
 * Codes of symbols: 0 is NULL, then the ids of the base dictionary (plus one), then numbers for strings that it lacks.
 * `known`: the base dictionary; 0 = the first one seen.
 */
export function symbolCodes(context: ExecContext, known = 0): KeyCodes {
  const { memory, strings, symbols, kernels } = context
  const { join } = kernels
  const maps = new Map<number, { address: number; rows: number }>()
  let base = -1
  let baseCount = 0
  let byText: Map<string, number> | null = null
  let next = 0
  const begin = (dictionary: number): void => {
    // The query's own dictionary still grows, so it cannot be the base.
    base = dictionary === symbols.dictionary ? 0 : dictionary
    baseCount = base === 0 ? 0 : dictionaryCount(memory, dictionary)
    next = baseCount
  }
  const numberOf = (text: string): number => {
    byText ??= new Map(Array.from({ length: baseCount }, (_, id) => [strings.of(base)(id), id] as const))
    const known = byText.get(text)
    if (known !== undefined) return known
    byText.set(text, next)
    return next++
  }
  if (known !== 0) begin(known)
  const code: JoinCoder = ({ dictionary, address }, rows, out) => {
    if (base < 0) begin(dictionary)
    if (dictionary === base) {
      join.mapIds(address, rows, 0, 0, out)
      return
    }
    let map = maps.get(dictionary) ?? { address: 0, rows: 0 }
    for (let done = 0; done < rows; ) {
      if (map.rows > 0) done += join.mapIds(address + done * 4, rows - done, map.address, map.rows, out + done * 4)
      if (done >= rows) break
      const id = memory.i32[(address >>> 2) + done]!
      if (map.rows === 0 || id >= map.rows)
        map = grownMap(context, map, Math.max(id + 1, dictionaryCount(memory, dictionary)))
      maps.set(dictionary, map)
      if (id >= 0) memory.u32[(map.address >>> 2) + id] = numberOf(strings.of(dictionary)(id))
    }
  }
  return { code, size: () => next + 1 }
}

function grownMap(
  { memory, arena }: ExecContext,
  map: { readonly address: number; readonly rows: number },
  needed: number,
): { address: number; rows: number } {
  const rows = Math.max(needed, map.rows * 2, 64)
  const address = arena.take(rows * 4)
  memory.u32.fill(unknown, address >>> 2, (address >>> 2) + rows)
  if (map.rows > 0) {
    memory.u8.copyWithin(address, map.address, map.address + map.rows * 4)
    arena.give(map.address)
  }
  return { address, rows }
}

function textCodes(context: ExecContext): KeyCodes {
  const table = new KeyTable(context, 0)
  const entriesOf = textEntries(context)
  const code: JoinCoder = (vector, rows, out) => table.number(entriesOf(vector, rows), 0, rows, out)
  return { code, size: () => table.count }
}

/** String entries for a column of any string type: their address, valid until the next call. */
export function textEntries(context: ExecContext): (vector: Vector, rows: number) => number {
  const { memory, arena } = context
  const heap = new StringHeap(arena)
  let entries = 0
  return (vector, rows) => {
    const { type, address } = vector
    if (type.name === 'STRING' || type.name === 'VARCHAR') return address
    if (entries === 0) entries = arena.take(batchRowsMax * 8)
    if (type.name === 'SYMBOL') symbolEntries(context, vector, rows, entries)
    else {
      heap.reset()
      for (let row = 0; row < rows; row++) {
        const unit = memory.u16[(address >>> 1) + row]!
        const bytes = Buffer.from(unit === 0 ? '' : String.fromCharCode(unit), 'utf8')
        memory.u32[(entries >>> 2) + row * 2] = heap.put(bytes)
        memory.i32[(entries >>> 2) + row * 2 + 1] = bytes.length
      }
    }
    return entries
  }
}

function symbolEntries({ memory }: ExecContext, { address, dictionary }: Vector, rows: number, out: number): void {
  const { u32, i32 } = memory
  for (let row = 0, word = out >>> 2; row < rows; row++, word += 2) {
    const id = i32[(address >>> 2) + row]!
    const entry = id < 0 ? 0 : dictionaryEntry(memory, dictionary, id) >>> 2
    u32[word] = id < 0 ? 0 : u32[entry]!
    i32[word + 1] = id < 0 ? -1 : i32[entry + 1]!
  }
}

/**
 * Codes for equal values that are stored differently, such as decimals of different precision: compares value by value.
 */
export function valueCoder({ memory, strings }: ExecContext): JoinCoder {
  const numbers = new Map<string, number>()
  return (vector, rows, out) => {
    const read = valueReader(memory, strings, vector)
    for (let row = 0; row < rows; row++) {
      const key = keyText(read(row))
      const number = numbers.get(key) ?? numbers.size
      numbers.set(key, number)
      memory.u32[(out >>> 2) + row] = number
    }
  }
}

/** Type of the code column that is appended to an input's columns. */
export const codeType = dataType('INT')
