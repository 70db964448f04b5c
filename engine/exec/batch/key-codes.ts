// Maps the values of a key column to 32-bit numbers (codes), so that two values have the same code if and only if they
// are equal; grouping and joins compare the codes. A value of a type that is narrow enough is its own code. Wider
// values and strings get consecutive ids from a hash table (key-table.ts).

import { AssertionError } from '../../base/errors.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import type { ExecContext } from './context.js'
import { KeyTable, type KeyWidth } from './key-table.js'
import { batchRowsMax, type Vector } from './vector.js'

/** Writes the codes of the rows to `out` (u32). */
export type Coder = (vector: Vector, mask: number, rows: number, out: number) => void

export function keyCoder(context: ExecContext, type: DataType): Coder {
  return keyNumbers(context, type).code
}

export interface KeyNumbers {
  readonly code: Coder
  /** Codes given so far are below this; null: they may be any. */
  readonly count: (() => number) | null
}

export function keyNumbers(context: ExecContext, type: DataType): KeyNumbers {
  const { arena } = context
  const numbered = (width: KeyWidth, code: (table: KeyTable) => Coder): KeyNumbers => {
    const table = new KeyTable(context, width)
    return { code: code(table), count: () => table.count }
  }
  switch (storageOf(type)) {
    case 'f64':
      return numbered(8, (table) => ({ address }, mask, rows, out) => {
        const plain = arena.scratch()
        plainDoubles(context, address, rows, plain)
        table.number(plain, mask, rows, out)
      })
    case 'i64':
      return numbered(
        8,
        (table) =>
          ({ address }, mask, rows, out) =>
            table.number(address, mask, rows, out),
      )
    case 'b16':
      return numbered(
        16,
        (table) =>
          ({ address }, mask, rows, out) =>
            table.number(address, mask, rows, out),
      )
    case 'entry':
      return numbered(0, (table) => (vector, mask, rows, out) => table.internStrings(vector, mask, rows, out))
    default:
      return { code: plainCoder(context, type), count: null }
  }
}

function plainCoder(context: ExecContext, type: DataType): Coder {
  const { memory } = context
  switch (storageOf(type)) {
    case 'i8':
      return smallCoder(context, ({ address }, row) => memory.i8[address + row]!)
    case 'i16':
      return smallCoder(context, ({ address }, row) => memory.i16[(address >>> 1) + row]!)
    case 'u16':
      return smallCoder(context, ({ address }, row) => memory.u16[(address >>> 1) + row]!)
    case 'i32':
      return type.name === 'SYMBOL' ? symbolCoder(context) : copyCoder(context)
    case 'f32':
      return smallCoder(context, ({ address }, row) => {
        const value = memory.f32[(address >>> 2) + row]!
        return value === 0 ? 0 : Number.isNaN(value) ? 0x7fc0_0000 : memory.i32[(address >>> 2) + row]!
      })
    case 'b32':
      return wideCoder(context)
    default:
      throw new AssertionError(`B2: a table numbers values of this type [type=${type.name}]`)
  }
}

/** Normalises doubles: one bit pattern for zero and one for NaN. */
export function plainDoubles({ memory }: ExecContext, address: number, rows: number, out: number): void {
  const { f64 } = memory
  for (let row = 0; row < rows; row++) {
    const value = f64[(address >>> 3) + row]!
    f64[(out >>> 3) + row] = value === 0 ? 0 : Number.isNaN(value) ? Number.NaN : value
  }
}

function smallCoder({ memory }: ExecContext, read: (vector: Vector, row: number) => number): Coder {
  const { i32 } = memory
  return (vector, _mask, rows, out) => {
    for (let row = 0; row < rows; row++) i32[(out >>> 2) + row] = read(vector, row)
  }
}

function copyCoder({ memory }: ExecContext): Coder {
  return ({ address }, _mask, rows, out) => {
    memory.u8.copyWithin(out, address, address + rows * 4)
  }
}

/** Values of 32 bytes: both halves get ids, and then the pairs of these ids. */
function wideCoder(context: ExecContext): Coder {
  const { arena } = context
  const halves = new KeyTable(context, 16)
  const pairs = new KeyTable(context, 8)
  return ({ address }, _mask, rows, out) => {
    const numbers = arena.scratch()
    // A mask has one byte for each row, not for each half: so the halves of all rows get ids.
    const step = batchRowsMax / 2
    for (let from = 0; from < rows; from += step) {
      const count = Math.min(step, rows - from)
      halves.number(address + from * 32, 0, count * 2, numbers)
      pairs.number(numbers, 0, count, out + from * 4)
    }
  }
}

const foreign = 0x4000_0000

/**
 * Codes are the ids of the first dictionary seen. Symbols of other dictionaries are translated by their string; those
 * that the first one lacks get codes above all its ids.
 */
function symbolCoder(context: ExecContext): Coder {
  const { memory, symbols, strings } = context
  const copy = copyCoder(context)
  const mapped = new Map<number, Map<number, number>>()
  let first = -1
  let known: Map<string, number> | null = null
  const codeOf = (dictionary: number, id: number): number => {
    if (known === null) {
      const textOf = strings.of(first)
      known = new Map()
      for (let entry = 0; entry < dictionaryCount(memory, first); entry++) known.set(textOf(entry), entry)
    }
    const text = strings.of(dictionary)(id)
    return known.get(text) ?? foreign + symbols.intern(text)
  }
  return (vector, mask, rows, out) => {
    const { dictionary, address } = vector
    if (first < 0) first = dictionary
    if (dictionary === first) return copy(vector, mask, rows, out)
    const codes = mapped.get(dictionary) ?? new Map<number, number>()
    mapped.set(dictionary, codes)
    for (let row = 0; row < rows; row++) {
      const id = memory.i32[(address >>> 2) + row]!
      let code = id < 0 ? id : codes.get(id)
      if (code === undefined) {
        code = codeOf(dictionary, id)
        codes.set(id, code)
      }
      memory.i32[(out >>> 2) + row] = code
    }
  }
}
