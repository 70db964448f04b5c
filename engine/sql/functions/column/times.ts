// Vectorised dateadd() with a constant unit of fixed length: adds 64-bit integers as pairs of 32-bit words, and leaves
// sums out of range to `eval`, which reports them.

import type { DataType } from '../../../types/column-types.js'
import { intMin } from '../../../types/number.js'
import { isTimeUnit, ticksPerUnit } from '../../../types/timestamp-floor.js'
import type { Value } from '../../../types/value.js'
import type { ColumnFunction } from './column-function.js'
import { isNullOf } from './whole-numbers.js'

const wordValues = 2 ** 32
/** Ticks are multiplied in parts of 20 bits, so that the products of a part and an INT are exact as doubles. */
const partValues = 2 ** 20

export const dateaddColumn: ColumnFunction = ({ args: [unit, count, time] }, { memory: { i32 }, rowsMax }) => {
  if (unit?.kind !== 'constant' || count === undefined || time === undefined) return undefined
  const ticks = ticksOf(unit.value, time.type)
  if (ticks === null || count.type.name !== 'INT') return undefined
  const lowPart = ticks % partValues
  const middlePart = Math.floor(ticks / partValues) % partValues
  const highPart = Math.floor(ticks / partValues / partValues)
  const beyond = new Uint8Array(rowsMax)
  return {
    args: [count, time],
    run: (rows, [counts = 0, times = 0], out) => {
      const [numbers, from, to] = [counts >>> 2, times >>> 2, out >>> 2]
      let left = 0
      for (let row = 0; row < rows; row++) {
        const number = i32[numbers + row]!
        const timeLow = i32[from + row * 2]!
        const timeHigh = i32[from + row * 2 + 1]!
        beyond[row] = 0
        if (number === intMin || isNullOf(timeLow, timeHigh, true)) {
          i32[to + row * 2] = 0
          i32[to + row * 2 + 1] = intMin
          continue
        }
        const low = number * lowPart
        const middle = number * middlePart
        const [lowWords, middleWords] = [Math.floor(low / wordValues), Math.floor(middle / 4096)]
        const words = low - lowWords * wordValues + (middle - middleWords * 4096) * partValues + (timeLow >>> 0)
        const carry = Math.floor(words / wordValues)
        const high = timeHigh + number * highPart * 256 + middleWords + lowWords + carry
        i32[to + row * 2] = words - carry * wordValues
        i32[to + row * 2 + 1] = high
        if (high === i32[to + row * 2 + 1] && !isNullOf(i32[to + row * 2]!, high, true)) continue
        beyond[row] = 1
        left++
      }
      return left
    },
    isLeft: (_, row) => beyond[row] === 1,
  }
}

/** Ticks of a unit; null if it varies, or is less than a tick. */
function ticksOf(unit: Value, { name }: DataType): number | null {
  const letter = unit === 'u' ? 'U' : unit === 'H' ? 'h' : unit
  if (typeof letter !== 'string' || !isTimeUnit(letter) || (name !== 'TIMESTAMP' && name !== 'TIMESTAMP_NS'))
    return null
  if (letter === 'n' && name === 'TIMESTAMP') return null
  const ticks = ticksPerUnit(letter, name)
  return ticks === null ? null : Number(ticks)
}
