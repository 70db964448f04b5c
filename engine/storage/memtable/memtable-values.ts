// Operations on ranges of fixed-width values in shared memory: fills them with the value that represents NULL in the
// column's type, and truncates values of DATE, which have milliseconds, to whole days.

import { assert, unreachable } from '../../base/assert.js'
import { int64Min } from '../../base/int64.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, storageOf } from '../../types/column-types.js'

/** Writes NULL (BOOLEAN false, BYTE, SHORT and CHAR 0) into rows `from` to `to` of the column at the address. */
export function fillNull(memory: SharedMemory, type: DataType, address: number, from: number, to: number): void {
  if (from >= to) return
  const kind = storageOf(type)
  switch (kind) {
    case 'i8':
      memory.i8.fill(type.name === 'GEOHASH' ? -1 : 0, address + from, address + to)
      return
    case 'i16':
    case 'u16':
      memory.i16.fill(type.name === 'GEOHASH' ? -1 : 0, (address >>> 1) + from, (address >>> 1) + to)
      return
    case 'i32':
      memory.i32.fill(null32(type), (address >>> 2) + from, (address >>> 2) + to)
      return
    case 'f32':
      memory.f32.fill(Number.NaN, (address >>> 2) + from, (address >>> 2) + to)
      return
    case 'f64':
      memory.f64.fill(Number.NaN, (address >>> 3) + from, (address >>> 3) + to)
      return
    case 'i64':
      memory.i64.fill(type.name === 'GEOHASH' ? -1n : int64Min, (address >>> 3) + from, (address >>> 3) + to)
      return
    case 'entry':
      // Address 0 and length -1; the length is the upper half.
      memory.i64.fill(-(2n ** 32n), (address >>> 3) + from, (address >>> 3) + to)
      return
    case 'b16':
    case 'b32':
      fillWide(memory, type, address, kind === 'b16' ? 2 : 4, from, to)
      return
    default:
      unreachable(kind)
  }
}

const millisPerDay = 86_400_000

/**
 * Truncates DATE values to whole days in place, except NULL. For columns that PostgreSQL clients declared as `date`.
 */
export function cutToDays({ i32, u32, i64 }: SharedMemory, address: number, rows: number): void {
  assert(address % 8 === 0, 'A1: a column is aligned')
  const word = address >>> 2
  for (let row = 0; row < rows; row++) {
    const low = u32[word + row * 2]!
    const high = i32[word + row * 2 + 1]!
    if (low === 0 && high === -0x8000_0000) continue
    const millis = high * 2 ** 32 + low
    if (millis % millisPerDay === 0) continue
    i64[(address >>> 3) + row] = BigInt(Math.floor(millis / millisPerDay) * millisPerDay)
  }
}

function null32(type: DataType): number {
  if (type.name === 'SYMBOL' || type.name === 'GEOHASH') return -1
  return type.name === 'IPv4' ? 0 : -0x8000_0000
}

/** UUID and LONG256: every word the minimum; DECIMAL: the minimum of the whole width. */
function fillWide(
  memory: SharedMemory,
  type: DataType,
  address: number,
  words: number,
  from: number,
  to: number,
): void {
  const first = (address >>> 3) + from * words
  const last = (address >>> 3) + to * words
  memory.i64.fill(type.name === 'DECIMAL' ? 0n : int64Min, first, last)
  if (type.name !== 'DECIMAL') return
  for (let at = first + words - 1; at < last; at += words) memory.i64[at] = int64Min
}
