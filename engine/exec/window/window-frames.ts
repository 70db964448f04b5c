// Computes the frame of each row for a window function call: two u32 columns [lo, hi) of positions in the sort order of
// the window. Within a partition neither bound ever decreases. EXCLUDE CURRENT ROW at an end of a ROWS frame adjusts
// the bound here. For other rows that EXCLUDE removes, rangesOf() later returns the frame in several ranges.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { WindowCall, WindowFrame } from '../../sql/plan/plan.js'
import type { WindowOrder, Working } from './window-order.js'
import { isNumeric, orderedValues } from './window-values.js'

export interface Frames {
  readonly lo: number
  readonly hi: number
  /** Rows that are additionally excluded from [lo, hi). */
  readonly exclude: WindowFrame['exclude']
}

type Peers = { readonly starts: number; readonly ends: number }

export function* framesOf(order: WindowOrder, call: WindowCall): Working<Frames> {
  const { arena } = order.rows.context
  const { rows } = order.rows
  const frame = movedEnds(call.frame)
  const areas = { lo: arena.take(rows * 4), hi: arena.take(rows * 4), exclude: frame.exclude }
  if (frame.unit === 'rows') yield* rowFrames(order, frame, areas)
  else if (!hasOffset(frame)) yield* peerFrames(order, frame, areas)
  else if (frame.unit === 'groups') yield* groupFrames(order, frame, areas)
  else yield* rangeFrames(order, call, areas)
  return areas
}

function hasOffset({ lo, hi }: WindowFrame): boolean {
  return (lo !== null && lo !== 0n) || (hi !== null && hi !== 0n)
}

/** EXCLUDE CURRENT ROW for ROWS frames that begin or end with the current row: adjusts the bound. */
function movedEnds(frame: WindowFrame): WindowFrame {
  if (frame.unit !== 'rows' || frame.exclude !== 'current') return frame
  if (frame.hi === 0n && (frame.lo === null || frame.lo <= 0n)) return { ...frame, hi: -1n, exclude: 'none' }
  if (frame.lo === 0n && (frame.hi === null || frame.hi >= 0n)) return { ...frame, lo: 1n, exclude: 'none' }
  return frame
}

function* rowFrames(order: WindowOrder, { lo, hi }: WindowFrame, out: Frames): Working {
  const { u32 } = order.rows.context.memory
  const [outLo, outHi] = [out.lo >>> 2, out.hi >>> 2]
  const first = lo === null ? Number.NEGATIVE_INFINITY : Number(lo)
  const last = hi === null ? Number.POSITIVE_INFINITY : Number(hi) + 1
  yield* order.each((start, end, from, to) => {
    for (let p = from; p < to; p++) {
      const low = Math.min(end, Math.max(start, p + first))
      u32[outLo + p] = low
      u32[outHi + p] = Math.max(low, Math.min(end, p + last))
    }
  })
}

/** RANGE and GROUPS frames without offsets: CURRENT ROW stands for all its peers. */
function* peerFrames(order: WindowOrder, { lo, hi }: WindowFrame, out: Frames): Working {
  const { u32 } = order.rows.context.memory
  const [outLo, outHi] = [out.lo >>> 2, out.hi >>> 2]
  if (lo === null && hi === null) {
    yield* order.each((start, end, from, to) => {
      u32.fill(start, outLo + from, outLo + to)
      u32.fill(end, outHi + from, outHi + to)
    })
    return
  }
  const peers = yield* order.peers()
  yield* order.each((start, end, from, to) => {
    for (let p = from; p < to; p++) {
      u32[outLo + p] = lo === null ? start : u32[(peers.starts >>> 2) + p]!
      u32[outHi + p] = hi === null ? end : u32[(peers.ends >>> 2) + p]!
    }
  })
}

/** GROUPS frames: offsets count groups of peers. */
function* groupFrames(order: WindowOrder, { lo, hi }: WindowFrame, out: Frames): Working {
  const { memory, arena } = order.rows.context
  const { u32 } = memory
  const peers = yield* order.peers()
  // The first positions of the partition's peer groups.
  const groups = arena.take((order.rows.rows + 1) * 4)
  const at = (group: number): number => u32[(groups >>> 2) + group]!
  let count = 0
  let group = 0
  yield* order.each((start, end, from, to) => {
    if (from === start) {
      count = listGroups(u32, peers, groups, start, end)
      group = 0
    }
    for (let p = from; p < to; p++) {
      if (p > start && u32[(peers.starts >>> 2) + p] === p) group++
      const first = lo === null ? 0 : group + Number(lo)
      const last = hi === null ? count : group + Number(hi) + 1
      const low = at(Math.min(count, Math.max(0, first)))
      u32[(out.lo >>> 2) + p] = low
      u32[(out.hi >>> 2) + p] = Math.max(low, at(Math.min(count, Math.max(0, last))))
    }
  })
  arena.give(groups)
}

function listGroups(u32: Uint32Array, peers: Peers, groups: number, start: number, end: number): number {
  let count = 0
  for (let p = start; p < end; p = u32[(peers.ends >>> 2) + p]!) u32[(groups >>> 2) + count++] = p
  u32[(groups >>> 2) + count] = end
  return count
}

/** RANGE frames with offsets: distances in the ORDER BY value. Rows whose value is NULL are at no distance from others. */
function* rangeFrames(order: WindowOrder, call: WindowCall, out: Frames): Working {
  const { memory, arena } = order.rows.context
  const { u32, f64 } = memory
  const [key, ...more] = order.keys.keys
  const type = call.orderBy[0]?.expression.type
  assert(key !== undefined && type !== undefined && more.length === 0, 'B1: distances are in the one ORDER BY value')
  if (!isNumeric(type)) throw new SqlError('RANGE with an offset needs ORDER BY a number or a timestamp', call.position)
  const { lo, hi } = call.frame
  const peers = yield* order.peers()
  const values = yield* orderedValues(order, key.index, true)
  const turn = key.descending ? -1 : 1
  const at = (p: number): number => f64[(values.address >>> 3) + p]! * turn
  const [first, last] = [lo === null ? 0 : Number(lo), hi === null ? 0 : Number(hi)]
  let bounds = { low: 0, high: 0, end: 0 }
  yield* order.each((start, end, from, to) => {
    if (from === start) bounds = valueBounds(at, start, end)
    for (let p = from; p < to; p++) {
      const own = at(p)
      let low = lo === null ? start : u32[(peers.starts >>> 2) + p]!
      let high = hi === null ? end : u32[(peers.ends >>> 2) + p]!
      if (!Number.isNaN(own)) {
        if (lo !== null && lo !== 0n) {
          while (bounds.low < bounds.end && at(bounds.low) - own < first) bounds.low++
          low = bounds.low
        }
        if (hi !== null && hi !== 0n) {
          while (bounds.high < bounds.end && at(bounds.high) - own <= last) bounds.high++
          high = bounds.high
        }
      }
      u32[(out.lo >>> 2) + p] = low
      u32[(out.hi >>> 2) + p] = Math.max(low, high)
    }
  })
  arena.give(values.address)
}

/** The range of positions with values that are not NULL. */
function valueBounds(
  at: (p: number) => number,
  start: number,
  end: number,
): { low: number; high: number; end: number } {
  let first = start
  while (first < end && Number.isNaN(at(first))) first++
  let last = end
  while (last > first && Number.isNaN(at(last - 1))) last--
  return { low: first, high: first, end: last }
}

/** Writes the frame of a position as ranges {from, to} without excluded rows; returns the number of ranges. */
export type RangesAt = (p: number, out: Uint32Array) => number

export function* rangesOf(order: WindowOrder, frames: Frames): Working<RangesAt> {
  const { u32 } = order.rows.context.memory
  const [lo, hi] = [frames.lo >>> 2, frames.hi >>> 2]
  const { exclude } = frames
  if (exclude === 'none') {
    return (p, out) => {
      out[0] = u32[lo + p]!
      out[1] = u32[hi + p]!
      return 1
    }
  }
  const peers = exclude === 'current' ? null : yield* order.peers()
  return (p, out) => {
    const low = u32[lo + p]!
    const high = u32[hi + p]!
    const from = peers === null ? p : u32[(peers.starts >>> 2) + p]!
    const to = peers === null ? p + 1 : u32[(peers.ends >>> 2) + p]!
    out[0] = low
    out[1] = Math.max(low, Math.min(high, from))
    // EXCLUDE TIES keeps the current row.
    const own = exclude === 'ties' && p >= low && p < high
    out[2] = p
    out[3] = own ? p + 1 : p
    out[4] = Math.min(high, Math.max(low, to))
    out[5] = high
    return 3
  }
}
