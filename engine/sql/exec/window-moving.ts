// Moving averages that weigh the newest value most: avg(v, 'alpha', a), avg(v, 'period', n) and avg(v, 'hour', n), each also
// with a column of volumes. One running state per partition, in the order of the window.
//
//   moving_avg        value, share of the newest value, [volume]
//   moving_avg_time   value, time, span of time over which a value fades to 1/e, [volume]

import type { WindowCall } from '../plan/plan.js'
import type { WindowOrder, Working } from './window-order.js'
import type { WindowResult } from './window-result.js'
import { numberReader } from './window-values.js'

export const movingNames: ReadonlySet<string> = new Set(['moving_avg', 'moving_avg_time'])

/** A row without value or volume repeats the average before it; time goes on. */
export function* movingResult(order: WindowOrder, call: WindowCall, slots: readonly number[]): Working<WindowResult> {
  const { memory, space } = order.rows.context
  const { u32, f64 } = memory
  const address = space.take(order.rows.rows * 8)
  const readers = slots.map((slot) => numberReader(memory, order.rows.column(slot), order.rows.rows, false))
  const timed = call.name === 'moving_avg_time'
  const [value, , weight] = readers as [NumberAt, NumberAt, NumberAt]
  const volume = readers[timed ? 3 : 2]
  const share = timed ? fading(readers[1] as NumberAt, weight) : (readers[1] as NumberAt)
  const rows = order.order >>> 2
  let [sum, volumes, average] = [Number.NaN, 0, Number.NaN]
  yield* order.each((start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      const row = u32[rows + p] as number
      if (p === start) average = Number.NaN
      const newest = share(row, p === start)
      const [v, w] = [value(row), volume === undefined ? 1 : volume(row)]
      if (!Number.isNaN(v) && !Number.isNaN(w)) {
        const isFirst = Number.isNaN(average)
        sum = isFirst ? v * w : newest * v * w + (1 - newest) * sum
        volumes = isFirst ? w : newest * w + (1 - newest) * volumes
        average = sum / volumes
      }
      f64[(address >>> 3) + row] = average
    }
  })
  return { kind: 'values', address, dictionary: 0 }
}

type NumberAt = (row: number) => number

function fading(time: NumberAt, span: NumberAt): (row: number, isFirst: boolean) => number {
  let before = 0
  return (row, isFirst) => {
    const now = time(row)
    const passed = isFirst ? 0 : Math.abs(now - before)
    before = now
    return 1 - Math.exp(-passed / span(row))
  }
}
