// A set of 64-bit integers, for IN with a sub-query: a hash table with open addressing, in plain arrays of shared
// memory so that several threads can read it. Low and high halves of the numbers are in separate arrays. If the range
// of the numbers is small, a bit map can be built from the set.

import { ResourceError } from '../../../base/errors.js'
import { listValuesMax } from '../../../base/limits.js'
import type { Value } from '../../../types/value.js'

export interface WholeNumbers {
  readonly size: number
  /** Whether NULL is in the set; it is stored apart from the numbers. */
  readonly hasNull: boolean
  /** Right shift of a 32-bit hash that gives a slot. */
  readonly shift: number
  readonly lows: Int32Array
  readonly highs: Int32Array
  readonly used: Uint8Array
}

const bitsFirst = 10

export function noNumbers(bits = bitsFirst): WholeNumbers {
  const slots = 2 ** bits
  return {
    size: 0,
    hasNull: false,
    shift: 32 - bits,
    lows: new Int32Array(new SharedArrayBuffer(slots * 4)),
    highs: new Int32Array(new SharedArrayBuffer(slots * 4)),
    used: new Uint8Array(new SharedArrayBuffer(slots)),
  }
}

/**
 * The set with the values of a column added. Elements have 8 or 4 bytes, the smallest value is NULL. Invalidates the
 * old set.
 */
export function withColumn(set: WholeNumbers, column: Int32Array, wide: boolean): WholeNumbers {
  const rows = wide ? column.length / 2 : column.length
  const next = roomFor(set, rows)
  let { size, hasNull } = next
  for (let row = 0; row < rows; row++) {
    const low = column[wide ? row * 2 : row]!
    const high = wide ? column[row * 2 + 1]! : low >> 31
    if (isNullOf(low, high, wide)) hasNull = true
    else size += add(next, low, high)
  }
  return { ...next, size, hasNull }
}

/** Whether a value of the column is NULL. */
export function isNullOf(low: number, high: number, wide: boolean): boolean {
  return wide ? low === 0 && high === -0x8000_0000 : low === -0x8000_0000
}

export function hasNumber({ shift, lows, highs, used }: WholeNumbers, low: number, high: number): boolean {
  let slot = hashed(low, high) >>> shift
  for (; used[slot] === 1; slot = (slot + 1) & (used.length - 1)) {
    if (lows[slot] === low && highs[slot] === high) return true
  }
  return false
}

/** A bit map of integers in a small range: bit i is set if `min` + i is in the set. */
export interface NumberBits {
  readonly min: number
  /** Bit index of the largest number. */
  readonly last: number
  readonly words: Int32Array
}

const noBits: NumberBits = { min: 0, last: -1, words: new Int32Array(1) }
/** Maximum bits per slot of the set. A bit map of less than 2^20 bits is always built. */
const bitsPerSlot = 128
const bitsMin = 2 ** 20

/**
 * The set as a bit map, which needs one access per row; undefined if the range is too large or a number exceeds 32
 * bits.
 */
export function numberBits({ lows, highs, used, size }: WholeNumbers): NumberBits | undefined {
  if (size === 0) return noBits
  let [min, max] = [2 ** 31, -(2 ** 31)]
  for (let slot = 0; slot < used.length; slot++) {
    if (used[slot] === 0) continue
    const low = lows[slot]!
    if (highs[slot] !== low >> 31) return undefined
    if (low < min) min = low
    if (low > max) max = low
  }
  const last = max - min
  if (last >= Math.max(bitsMin, used.length * bitsPerSlot)) return undefined
  const words = new Int32Array((last >>> 5) + 1)
  for (let slot = 0; slot < used.length; slot++) {
    const bit = lows[slot]! - min
    if (used[slot] === 1) words[bit >>> 5] = words[bit >>> 5]! | (1 << (bit & 31))
  }
  return { min, last, words }
}

/** Membership of a value of any type. */
export function hasValue(set: WholeNumbers, value: Value): boolean {
  if (value === null) return set.hasNull
  const whole = typeof value === 'bigint' ? value : Number.isSafeInteger(value) ? BigInt(value as number) : null
  return whole !== null && hasNumber(set, Number(BigInt.asIntN(32, whole)), Number(BigInt.asIntN(32, whole >> 32n)))
}

function roomFor(set: WholeNumbers, more: number): WholeNumbers {
  if (set.size > listValuesMax)
    throw new ResourceError(`the list of a sub-query has more than ${listValuesMax} different values: use a join`)
  let bits = 32 - set.shift
  while (2 ** bits < (set.size + more) * 2) bits++
  if (bits === 32 - set.shift) return set
  const larger = noNumbers(bits)
  set.used.forEach((used, slot) => {
    if (used === 1) add(larger, set.lows[slot]!, set.highs[slot]!)
  })
  return { ...larger, size: set.size, hasNull: set.hasNull }
}

/** Returns 1 if the number was added, 0 if it was present. */
function add({ shift, lows, highs, used }: WholeNumbers, low: number, high: number): number {
  let slot = hashed(low, high) >>> shift
  for (; used[slot] === 1; slot = (slot + 1) & (used.length - 1))
    if (lows[slot] === low && highs[slot] === high) return 0
  lows[slot] = low
  highs[slot] = high
  used[slot] = 1
  return 1
}

function hashed(low: number, high: number): number {
  const mixed = Math.imul(low ^ Math.imul(high, 0x85eb_ca6b), 0x9e37_79b1)
  return Math.imul(mixed ^ (mixed >>> 15), 0x2c1b_3c6d)
}
