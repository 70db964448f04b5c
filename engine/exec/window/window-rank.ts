// Ranking window functions: row_number, rank, dense_rank, percent_rank, cume_dist and ntile.

import { SqlError } from '../../base/errors.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import type { WindowOrder, Working } from './window-order.js'
import { putLong, type WindowResult } from './window-result.js'
import { numberReader } from './window-values.js'

export const rankNames: ReadonlySet<string> = new Set([
  'row_number',
  'rank',
  'dense_rank',
  'percent_rank',
  'cume_dist',
  'ntile',
])

/** `groups`: column of ntile's argument. */
export function* rankResult(order: WindowOrder, call: WindowCall, groups: number): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const { u32, i32, f64 } = memory
  const address = arena.take(order.rows.rows * 8)
  const rows = order.order >>> 2
  const needsPeers = call.name !== 'row_number' && call.name !== 'ntile'
  const peers = needsPeers ? yield* order.peers() : { starts: 0, ends: 0 }
  const [starts, ends] = [peers.starts >>> 2, peers.ends >>> 2]
  const long = (p: number, value: number): void => putLong(i32, (address >>> 2) + u32[rows + p]! * 2, value)
  const double = (p: number, value: number): void => {
    f64[(address >>> 3) + u32[rows + p]!] = value
  }
  const write = placeWriter(call.name)
  yield* order.each((start, end, from, to) => {
    for (let p = from; p < to; p++) write(p, start, end)
  })
  return { kind: 'values', address, dictionary: 0 }

  function placeWriter(name: string): (p: number, start: number, end: number) => void {
    switch (name) {
      case 'row_number':
        return (p, start) => long(p, p - start + 1)
      case 'rank':
        return (p, start) => long(p, u32[starts + p]! - start + 1)
      case 'dense_rank': {
        let rank = 0
        return (p, start) => {
          rank = p === start ? 1 : u32[starts + p] === p ? rank + 1 : rank
          long(p, rank)
        }
      }
      case 'percent_rank':
        return (p, start, end) => double(p, end - start === 1 ? 0 : (u32[starts + p]! - start) / (end - start - 1))
      case 'cume_dist':
        return (p, start, end) => double(p, (u32[ends + p]! - start) / (end - start))
      default: {
        const countAt = numberReader(memory, order.rows.column(groups), order.rows.rows, false)
        return (p, start, end) => {
          const count = countAt(u32[rows + p]!)
          if (!(count > 0)) throw new SqlError('ntile takes a positive number of groups', call.position)
          long(p, tileOf(p - start, end - start, count))
        }
      }
    }
  }
}

/** If the rows cannot be divided evenly, the first groups have one more row. */
export function tileOf(place: number, rows: number, groups: number): number {
  const size = Math.floor(rows / groups)
  const larger = rows % groups
  const inLarger = larger * (size + 1)
  if (place < inLarger) return Math.floor(place / (size + 1)) + 1
  return larger + Math.floor((place - inLarger) / Math.max(1, size)) + 1
}
