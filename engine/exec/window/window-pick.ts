// Window functions that return the value of one other row of the window: lag, lead, first_value, last_value and
// nth_value. With IGNORE NULLS, rows whose value is NULL are not counted.

import { noRow } from '../../kernels/join.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import { type Frames, type RangesAt, rangesOf } from './window-frames.js'
import type { WindowOrder, Working } from './window-order.js'
import type { WindowResult } from './window-result.js'
import { nullReader, numberReader } from './window-values.js'

export const pickNames: ReadonlySet<string> = new Set(['lag', 'lead', 'first_value', 'last_value', 'nth_value'])

/** Counts the rows of an order that are eligible: all, or those with a value. */
interface Present {
  /** Position of the eligible row number `index`. */
  readonly at: (index: number) => number
  /** Number of eligible rows before a position. */
  readonly before: (p: number) => number
}

const everyRow: Present = { at: (index) => index, before: (p) => p }

/** `slots`: columns of the arguments. */
export function* pickResult(
  order: WindowOrder,
  call: WindowCall,
  slots: readonly number[],
  frames: Frames | null,
): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const { u32 } = memory
  const [slot = 0, second = -1, fallback = -1] = slots
  const address = arena.take(order.rows.rows * 4)
  const rows = order.order >>> 2
  const present = call.ignoreNulls ? yield* presentRows(order, slot) : everyRow
  const offset = second < 0 ? null : numberReader(memory, order.rows.column(second), order.rows.rows, false)
  const offsetAt = (p: number): number => (offset === null ? 1 : offset(u32[rows + p]!) || 0)
  const pick =
    call.name === 'lag' || call.name === 'lead'
      ? neighbour(present, call.name === 'lag' ? -1 : 1, offsetAt)
      : inFrame(call.name, present, yield* rangesOf(order, frames as Frames), offsetAt)
  yield* order.each((start, end, from, to) => {
    for (let p = from; p < to; p++) {
      const found = pick(p, start, end)
      u32[(address >>> 2) + u32[rows + p]!] = found < 0 ? noRow : u32[rows + found]!
    }
  })
  return { kind: 'rows', address, slot, fallback: call.name === 'lag' || call.name === 'lead' ? fallback : -1 }
}

/** Returns the position of the row, or -1. */
type Pick = (p: number, start: number, end: number) => number

/** lag and lead. An offset of 0 is the current row, even if its value is NULL. */
function neighbour({ at, before }: Present, turn: 1 | -1, distanceAt: (p: number) => number): Pick {
  return (p, start, end) => {
    const distance = distanceAt(p) * turn
    if (distance === 0) return p
    const index = distance < 0 ? before(p) + distance : before(p + 1) + distance - 1
    if (index < before(start) || index >= before(end)) return -1
    return at(index)
  }
}

function inFrame(name: string, present: Present, ranges: RangesAt, nthAt: (p: number) => number): Pick {
  const found = new Uint32Array(6)
  const countOf = (range: number): number => present.before(found[range * 2 + 1]!) - present.before(found[range * 2]!)
  const nth = (count: number, wanted: number): number => {
    let left = wanted - 1
    for (let range = 0; left >= 0 && range < count; range++) {
      const rows = countOf(range)
      if (left < rows) return present.at(present.before(found[range * 2]!) + left)
      left -= rows
    }
    return -1
  }
  if (name === 'first_value') return (p) => nth(ranges(p, found), 1)
  if (name === 'nth_value') return (p) => nth(ranges(p, found), nthAt(p))
  return (p) => {
    for (let range = ranges(p, found) - 1; range >= 0; range--) {
      if (countOf(range) > 0) return present.at(present.before(found[range * 2 + 1]!) - 1)
    }
    return -1
  }
}

function* presentRows(order: WindowOrder, slot: number): Working<Present> {
  const { memory, arena } = order.rows.context
  const { u32 } = memory
  const { rows } = order.rows
  const before = arena.take((rows + 1) * 4) >>> 2
  const places = arena.take(rows * 4) >>> 2
  const isNull = nullReader(memory, order.rows.column(slot))
  let count = 0
  yield* order.each((_start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      u32[before + p] = count
      if (!isNull(u32[(order.order >>> 2) + p]!)) u32[places + count++] = p
    }
  })
  u32[before + rows] = count
  return { at: (index) => u32[places + index]!, before: (p) => u32[before + p]! }
}
