// Reads the values of a column as doubles, in the sort order of a window; NaN represents NULL. LONG values can be read
// as differences from a base value, which are exact below 2^53. Also adds integers: their sums are exact above it, too.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, storageOf } from '../../types/column-types.js'
import type { Vector } from '../batch/vector.js'
import type { WindowOrder, Working } from './window-order.js'

export interface OrderedValues {
  /** f64 by position. */
  readonly address: number
  /** False: a LONG is too far from the base to be exact. */
  readonly exact: boolean
  /** Of the absolute values. */
  readonly largest: number
}

const two32 = 0x1_0000_0000
/** Lower halves that add up to more are carried. */
const carryMin = 2 ** 52
export const exactMax = 2 ** 53

/** Whether values of the type can be compared as numbers. */
export function isNumeric({ name }: DataType): boolean {
  return numericTypes.has(name)
}

const numericTypes: ReadonlySet<string> = new Set([
  ...['BOOLEAN', 'BYTE', 'SHORT', 'CHAR', 'INT', 'IPv4', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'],
  ...['FLOAT', 'DOUBLE'],
])

/** `relative`: subtracts the first LONG value, so that timestamps are exact, too. */
export function* orderedValues(order: WindowOrder, slot: number, relative: boolean): Working<OrderedValues> {
  const { memory, arena } = order.rows.context
  const address = arena.take(order.rows.rows * 8)
  const read = numberReader(memory, order.rows.column(slot), order.rows.rows, relative)
  const { f64, u32 } = memory
  const [rows, out] = [order.order >>> 2, address >>> 3]
  let [least, most] = [0, 0]
  yield* order.each((_start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      const value = read(u32[rows + p]!)
      f64[out + p] = value
      if (value > most) most = value
      if (value < least) least = value
    }
  })
  const largest = Math.max(most, -least)
  return { address, exact: largest < exactMax || storageOf(order.rows.column(slot).type) !== 'i64', largest }
}

/** 1 for a value, NaN for NULL, by position. */
export function* orderedPresence(order: WindowOrder, slot: number): Working<OrderedValues> {
  const { memory, arena } = order.rows.context
  const address = arena.take(order.rows.rows * 8)
  const missing = nullReader(memory, order.rows.column(slot))
  const { f64, u32 } = memory
  yield* order.each((_start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      f64[(address >>> 3) + p] = missing(u32[(order.order >>> 2) + p]!) ? Number.NaN : 1
    }
  })
  return { address, exact: true, largest: 1 }
}

type NumberAt = (row: number) => number

/** Whether values of a numeric type are integers, whose sums are exact. */
export function isInteger(type: DataType): boolean {
  const storage = storageOf(type)
  return storage !== 'f64' && storage !== 'f32'
}

/** Integers as `high` * 2^32 + `low`; NULL: `low` is NaN. */
export interface Halves {
  readonly high: NumberAt
  readonly low: NumberAt
}

export function halvesReader(memory: SharedMemory, vector: Vector, rows: number): Halves {
  if (storageOf(vector.type) !== 'i64') return { high: () => 0, low: numberReader(memory, vector, rows, false) }
  const { i32 } = memory
  const first = vector.address >>> 2
  return {
    high: (row) => i32[first + row * 2 + 1]!,
    low: (row) => {
      const low = i32[first + row * 2]!
      return low === 0 && i32[first + row * 2 + 1] === -0x8000_0000 ? Number.NaN : low >>> 0
    },
  }
}

/**
 * Sums of integers, one for each key: exact below 2^84, which takes a million of the largest LONGs. The result is rounded
 * once.
 */
export class IntegerSums {
  #highs = new Float64Array(1)
  #lows = new Float64Array(1)

  /** Makes room for the keys before `size`. */
  reserve(size: number): void {
    if (size <= this.#highs.length) return
    const capacity = Math.max(size, this.#highs.length * 2)
    const [highs, lows] = [new Float64Array(capacity), new Float64Array(capacity)]
    highs.set(this.#highs)
    lows.set(this.#lows)
    this.#highs = highs
    this.#lows = lows
  }

  reset(key: number): void {
    this.#highs[key] = 0
    this.#lows[key] = 0
  }

  add(key: number, high: number, low: number): void {
    const sum = this.#lows[key]! + low
    const carry = sum >= carryMin || sum <= -carryMin ? Math.trunc(sum / two32) : 0
    this.#lows[key] = sum - carry * two32
    this.#highs[key] = this.#highs[key]! + high + carry
  }

  value(key: number): number {
    return this.#highs[key]! * two32 + this.#lows[key]!
  }
}

/** Reads a column's numbers by row. */
export function numberReader(memory: SharedMemory, vector: Vector, rows: number, relative: boolean): NumberAt {
  const { address, type } = vector
  switch (storageOf(type)) {
    case 'f64':
      return (row) => memory.f64[(address >>> 3) + row]!
    case 'f32':
      return (row) => memory.f32[(address >>> 2) + row]!
    case 'i8':
      return (row) => memory.i8[address + row]!
    case 'i16':
      return (row) => memory.i16[(address >>> 1) + row]!
    case 'u16':
      return (row) => memory.u16[(address >>> 1) + row]!
    case 'i32':
      if (type.name === 'IPv4') return (row) => memory.u32[(address >>> 2) + row]! || Number.NaN
      return (row) => {
        const value = memory.i32[(address >>> 2) + row]!
        return value === -0x8000_0000 ? Number.NaN : value
      }
    default:
      return longReader(memory.i32, address >>> 2, rows, relative)
  }
}

function longReader(i32: Int32Array, first: number, rows: number, relative: boolean): NumberAt {
  const isNull = (row: number): boolean => i32[first + row * 2] === 0 && i32[first + row * 2 + 1] === -0x8000_0000
  let base = 0
  while (relative && base < rows - 1 && isNull(base)) base++
  const low = relative && rows > 0 ? i32[first + base * 2]! >>> 0 : 0
  const high = relative && rows > 0 ? i32[first + base * 2 + 1]! : 0
  return (row) => {
    if (isNull(row)) return Number.NaN
    return (i32[first + row * 2 + 1]! - high) * two32 + ((i32[first + row * 2]! >>> 0) - low)
  }
}

/** Tests whether a row of the column is NULL. */
export function nullReader(memory: SharedMemory, { address, type }: Vector): (row: number) => boolean {
  const { i32, i16, i8, f64, f32 } = memory
  const isHash = type.name === 'GEOHASH'
  const kind = storageOf(type)
  switch (kind) {
    case 'i8':
      return isHash ? (row) => i8[address + row] === -1 : () => false
    case 'i16':
    case 'u16':
      return isHash ? (row) => i16[(address >>> 1) + row] === -1 : () => false
    case 'i32': {
      const missing = isHash || type.name === 'SYMBOL' ? -1 : type.name === 'IPv4' ? 0 : -0x8000_0000
      return (row) => i32[(address >>> 2) + row] === missing
    }
    case 'f32':
      return (row) => Number.isNaN(f32[(address >>> 2) + row]!)
    case 'f64':
      return (row) => Number.isNaN(f64[(address >>> 3) + row]!)
    case 'entry':
      return (row) => i32[(address >>> 2) + row * 2 + 1]! < 0
    default:
      return wideNulls(i32, address >>> 2, kind === 'i64' ? 2 : kind === 'b16' ? 4 : 8, type)
  }
}

/**
 * NULL of wide types: GEOHASH all bits set; UUID and LONG256 the smallest integer in every word; INTERVAL in the first;
 * others the smallest number.
 */
function wideNulls(i32: Int32Array, first: number, words: number, { name }: DataType): (row: number) => boolean {
  const eachWord = name === 'UUID' || name === 'LONG256'
  const checked = name === 'INTERVAL' ? 2 : words
  return (row) => {
    for (let word = 0; word < checked; word++) {
      const top = word % 2 === 1 && (eachWord || word === checked - 1) ? -0x8000_0000 : 0
      if (i32[first + row * words + word] !== (name === 'GEOHASH' ? -1 : top)) return false
    }
    return true
  }
}
