// Computes the calls of a window operator over buffered rows. Chooses the fastest implementation for each call's
// function, types and frame. Calls with the same OVER clause share sort order and frames. Exponential moving averages
// are implemented here, too.

import { assert } from '../../base/assert.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import { anyResult } from './window-any.js'
import { extremeResult } from './window-extremes.js'
import { type Frames, framesOf } from './window-frames.js'
import { type OrderKeys, WindowOrder, type Working } from './window-order.js'
import { pickNames, pickResult } from './window-pick.js'
import { rankNames, rankResult } from './window-rank.js'
import { ResultReader, type WindowResult } from './window-result.js'
import { expressionKey, type WindowRows } from './window-rows.js'
import { sumNames, sumResult, wideSumResult } from './window-sums.js'
import { exactMax, isInteger, isNumeric, numberReader, orderedPresence, orderedValues } from './window-values.js'

/** A call, prepared before rows arrive. */
export interface Prepared {
  readonly call: WindowCall
  readonly keys: OrderKeys
  /** Columns of the arguments. */
  readonly slots: readonly number[]
}

export interface Computed {
  readonly results: readonly ResultReader[]
  /** The order of each call. */
  readonly orders: readonly WindowOrder[]
}

/** Computes all calls over the buffered rows. */
export function* computed(rows: WindowRows, prepared: readonly Prepared[]): Working<Computed> {
  const orders = new Map<string, WindowOrder>()
  const frames = new Map<string, Frames>()
  const results: ResultReader[] = []
  const used: WindowOrder[] = []
  for (const { call, keys, slots } of prepared) {
    const orderKey = expressionKey(keys)
    const order = orders.get(orderKey) ?? (yield* WindowOrder.make(rows, keys))
    orders.set(orderKey, order)
    const frameKey = `${orderKey} ${expressionKey(call.frame)}`
    const known = hasFrame(call) ? (frames.get(frameKey) ?? (yield* framesOf(order, call))) : null
    if (known !== null) frames.set(frameKey, known)
    used.push(order)
    results.push(new ResultReader(rows, call.type, yield* callResult(order, call, slots, known)))
  }
  return { results, orders: used }
}

export function hasFrame({ name }: WindowCall): boolean {
  return !rankNames.has(name) && !movingNames.has(name) && name !== 'lag' && name !== 'lead'
}

export function* callResult(
  order: WindowOrder,
  call: WindowCall,
  slots: readonly number[],
  frames: Frames | null,
): Working<WindowResult> {
  const [slot = -1] = slots
  if (rankNames.has(call.name)) return yield* rankResult(order, call, slot)
  if (movingNames.has(call.name)) return yield* movingResult(order, call, slots)
  if (pickNames.has(call.name)) return yield* pickResult(order, call, slots, frames)
  assert(frames !== null, 'B2: an aggregate has a frame')
  if (frames.exclude === 'none') {
    const fast = yield* numberResult(order, call, slot, frames)
    if (fast !== null) return fast
  }
  return yield* anyResult(order, call, slots, frames)
}

/** count, sum, avg, min and max over numbers; null for all other aggregates. */
function* numberResult(
  order: WindowOrder,
  call: WindowCall,
  slot: number,
  frames: Frames,
): Working<WindowResult | null> {
  const [argument] = call.args
  if (call.args.length > 1) return null
  if (call.name === 'count') {
    if (argument === undefined) return yield* sumResult(order, call, null, frames)
    return yield* sumResult(order, call, yield* orderedPresence(order, slot), frames)
  }
  if (argument === undefined || !isNumeric(argument.type)) return null
  if (sumNames.has(call.name) && call.type.name === 'DOUBLE') {
    const values = yield* orderedValues(order, slot, false)
    if (!values.exact) return null
    const isWide = isInteger(argument.type) && values.largest * order.rows.rows >= exactMax
    return isWide ? yield* wideSumResult(order, call, values, frames) : yield* sumResult(order, call, values, frames)
  }
  if ((call.name === 'min' || call.name === 'max') && call.type.name === argument.type.name) {
    const values = yield* orderedValues(order, slot, true)
    return values.exact ? yield* extremeResult(order, call, slot, values, frames) : null
  }
  return null
}

// Exponential moving averages: avg(v, 'alpha', a), avg(v, 'period', n) and avg(v, 'hour', n), each also with a column
// of volumes. A running state for each partition, in the order of the window.
//
//   moving_avg        value, weight of the newest value, [volume]
//   moving_avg_time   value, time, time in which a value's weight falls to 1/e, [volume]

const movingNames: ReadonlySet<string> = new Set(['moving_avg', 'moving_avg_time'])

/** A row without value or volume repeats the previous average, but its time still counts. */
function* movingResult(order: WindowOrder, call: WindowCall, slots: readonly number[]): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const { u32, f64 } = memory
  const address = arena.take(order.rows.rows * 8)
  const readers = slots.map((slot) => numberReader(memory, order.rows.column(slot), order.rows.rows, false))
  const timed = call.name === 'moving_avg_time'
  const [value, , weight] = readers as [NumberAt, NumberAt, NumberAt]
  const volume = readers[timed ? 3 : 2]
  const share = timed ? fading(readers[1] as NumberAt, weight) : (readers[1] as NumberAt)
  const rows = order.order >>> 2
  let [sum, volumes, average] = [Number.NaN, 0, Number.NaN]
  yield* order.each((start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      const row = u32[rows + p]!
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
