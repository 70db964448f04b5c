// Computes sum(), avg() and count() over moving window frames, if neither bound of the frame ever moves backwards. The
// rows of a frame are divided at a position `mid`: for each row before it, the sum from this row to mid is stored; the
// rows after it are in one running sum. Together they give the sum of any frame (a queue made of two stacks). Values
// are never subtracted, so a large value that has left the frame leaves no rounding error, and each row is added at
// most twice.

import type { WindowCall } from '../../sql/plan/plan.js'
import { finite } from '../batch/values.js'
import type { Frames } from './window-frames.js'
import type { WindowOrder, Working } from './window-order.js'
import { putLong, type WindowResult } from './window-result.js'
import type { OrderedValues } from './window-values.js'

/** Rows processed in a step. */
const stepRows = 65_536

export const sumNames: ReadonlySet<string> = new Set(['sum', 'avg', 'count'])

/** The queue of one partition. */
interface Queue {
  /** Rows [lo, mid) have suffix sums; rows [mid, taken) are in the running sum. */
  mid: number
  taken: number
  sum: number
  count: number
}

/** `values` is null for count(*). */
export function* sumResult(
  order: WindowOrder,
  call: WindowCall,
  values: OrderedValues | null,
  frames: Frames,
): Working<Extract<WindowResult, { kind: 'values' }>> {
  const { memory, arena } = order.rows.context
  const address = arena.take(order.rows.rows * 8)
  const shape: SumShape = {
    lo: frames.lo >>> 2,
    hi: frames.hi >>> 2,
    rows: order.order >>> 2,
    out: address >>> 3,
    values: (values?.address ?? 0) >>> 3,
    sums: values === null ? 0 : arena.take(order.rows.rows * 8) >>> 3,
    counts: values === null ? 0 : arena.take(order.rows.rows * 8) >>> 3,
  }
  const { u32, i32, f64 } = memory
  let queue: Queue = { mid: 0, taken: 0, sum: 0, count: 0 }
  yield* order.each((start, _end, from, to) => {
    if (from === start) queue = { mid: start, taken: start, sum: 0, count: 0 }
    if (values === null) countRows(u32, i32, shape, from, to)
    else slide(call.name, u32, i32, f64, shape, queue, from, to)
  })
  if (values !== null) {
    arena.give(shape.sums * 8)
    arena.give(shape.counts * 8)
  }
  return { kind: 'values', address, dictionary: 0 }
}

/** Values are divided at this bit, so that the sums of each part of a hundred million values are exact. */
const divisor = 2 ** 26

/** Sums and averages of integers whose sums may not be exact as doubles: those of their upper and lower bits, added. */
export function* wideSumResult(
  order: WindowOrder,
  call: WindowCall,
  values: OrderedValues,
  frames: Frames,
): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const { f64, i32 } = memory
  const { rows } = order.rows
  const parts = { ...values, address: arena.take(rows * 8) }
  const at = (address: number, row: number): number => f64[(address >>> 3) + row]!
  const sumOf = function* (part: (value: number) => number): Working<number> {
    yield* order.each((_start, _end, from, to) => {
      for (let p = from; p < to; p++) f64[(parts.address >>> 3) + p] = part(at(values.address, p))
    })
    return (yield* sumResult(order, { ...call, name: 'sum' }, parts, frames)).address
  }
  const highs = yield* sumOf((value) => Math.floor(value / divisor))
  const lows = yield* sumOf((value) => value - Math.floor(value / divisor) * divisor)
  const counts = call.name === 'sum' ? 0 : (yield* sumResult(order, { ...call, name: 'count' }, values, frames)).address
  for (let row = 0; row < rows; row++) {
    const sum = at(highs, row) * divisor + at(lows, row)
    f64[(highs >>> 3) + row] = counts === 0 ? sum : sum / i32[(counts >>> 2) + row * 2]!
    if (row % stepRows === stepRows - 1) yield 'working'
  }
  return { kind: 'values', address: highs, dictionary: 0 }
}

/** Indexes into the typed arrays. */
interface SumShape {
  readonly lo: number
  readonly hi: number
  readonly rows: number
  readonly out: number
  readonly values: number
  readonly sums: number
  readonly counts: number
}

function countRows(u32: Uint32Array, i32: Int32Array, shape: SumShape, from: number, to: number): void {
  for (let p = from; p < to; p++) {
    const count = u32[shape.hi + p]! - u32[shape.lo + p]!
    putLong(i32, (shape.out + u32[shape.rows + p]!) * 2, count)
  }
}

function slide(
  name: string,
  u32: Uint32Array,
  i32: Int32Array,
  f64: Float64Array,
  shape: SumShape,
  queue: Queue,
  from: number,
  to: number,
): void {
  const { sums, counts, values } = shape
  let { taken, sum, count, mid } = queue
  for (let p = from; p < to; p++) {
    const lo = u32[shape.lo + p]!
    const hi = u32[shape.hi + p]!
    for (; taken < hi; taken++) {
      const value = f64[values + taken]!
      if (Number.isNaN(value)) continue
      sum += value
      count++
    }
    if (lo > mid) {
      turn(f64, shape, lo, taken)
      mid = taken
      sum = 0
      count = 0
    }
    // At lo = mid the first stack is empty. If lo is after all rows taken, the frame is empty, too.
    const total = lo < mid ? f64[sums + lo]! + sum : sum
    const present = lo < mid ? f64[counts + lo]! + count : count
    const row = shape.out + u32[shape.rows + p]!
    if (name === 'count') putLong(i32, row * 2, present)
    else f64[row] = present === 0 ? Number.NaN : finite(name === 'sum' ? total : total / present)
  }
  queue.taken = taken
  queue.sum = sum
  queue.count = count
  queue.mid = mid
}

/** Computes the suffix sums: from each row of [lo, taken) to the last. */
function turn(f64: Float64Array, { sums, counts, values }: SumShape, lo: number, taken: number): void {
  let sum = 0
  let count = 0
  for (let p = taken - 1; p >= lo; p--) {
    const value = f64[values + p]!
    if (!Number.isNaN(value)) {
      sum += value
      count++
    }
    f64[sums + p] = sum
    f64[counts + p] = count
  }
}
