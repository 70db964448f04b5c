// Computes min() and max() over moving window frames, if neither bound of the frame ever moves backwards. It uses a
// monotonic queue, which holds the rows of the frame that can still become the extreme. Returns, for each row, the
// number of the row that has the extreme value.

import { noRow } from '../../kernels/join.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import type { Frames } from './window-frames.js'
import type { WindowOrder, Working } from './window-order.js'
import type { WindowResult } from './window-result.js'
import type { OrderedValues } from './window-values.js'

/** Positions [head, tail) of the queue, and the number of rows that have been added. */
interface Queue {
  head: number
  tail: number
  taken: number
}

export function* extremeResult(
  order: WindowOrder,
  call: WindowCall,
  slot: number,
  values: OrderedValues,
  frames: Frames,
): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const address = arena.take(order.rows.rows * 4)
  const area = arena.take(order.rows.rows * 4)
  const shape: ExtremeShape = {
    lo: frames.lo >>> 2,
    hi: frames.hi >>> 2,
    rows: order.order >>> 2,
    out: address >>> 2,
    values: values.address >>> 3,
    queue: area >>> 2,
    turn: call.name === 'min' ? 1 : -1,
  }
  let queue: Queue = { head: 0, tail: 0, taken: 0 }
  yield* order.each((start, _end, from, to) => {
    if (from === start) queue = { head: start, tail: start, taken: start }
    slide(memory.u32, memory.f64, shape, queue, from, to)
  })
  arena.give(area)
  return { kind: 'rows', address, slot, fallback: -1 }
}

/** Indexes into the typed arrays; `turn` is -1 for max. */
interface ExtremeShape {
  readonly lo: number
  readonly hi: number
  readonly rows: number
  readonly out: number
  readonly values: number
  readonly queue: number
  readonly turn: 1 | -1
}

function slide(u32: Uint32Array, f64: Float64Array, shape: ExtremeShape, queue: Queue, from: number, to: number): void {
  const { values, turn } = shape
  const places = shape.queue
  let { head, tail, taken } = queue
  for (let p = from; p < to; p++) {
    const lo = u32[shape.lo + p]!
    const hi = u32[shape.hi + p]!
    for (; taken < hi; taken++) {
      const value = f64[values + taken]! * turn
      if (Number.isNaN(value)) continue
      // A row that is not smaller than a later row is never the smallest again.
      while (tail > head && f64[values + u32[places + tail - 1]!]! * turn >= value) tail--
      u32[places + tail++] = taken
    }
    while (head < tail && u32[places + head]! < lo) head++
    // An infinite extreme is NULL, as in GROUP BY.
    const isNone = head === tail || Math.abs(f64[values + u32[places + head]!]!) === Infinity
    u32[shape.out + u32[shape.rows + p]!] = isNone ? noRow : u32[shape.rows + u32[places + head]!]!
  }
  queue.head = head
  queue.tail = tail
  queue.taken = taken
}
