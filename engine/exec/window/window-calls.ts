// Computes the calls of a window operator over buffered rows. Chooses the fastest implementation for each call's
// function, types and frame. Calls with the same OVER clause share sort order and frames.

import { assert } from '../../base/assert.js'
import type { WindowCall } from '../../sql/plan/plan.js'
import { anyResult } from './window-any.js'
import { extremeResult } from './window-extremes.js'
import { type Frames, framesOf } from './window-frames.js'
import { movingNames, movingResult } from './window-moving.js'
import { type OrderKeys, WindowOrder, type Working } from './window-order.js'
import { pickNames, pickResult } from './window-pick.js'
import { rankNames, rankResult } from './window-rank.js'
import { ResultReader, type WindowResult } from './window-result.js'
import { expressionKey, type WindowRows } from './window-rows.js'
import { sumNames, sumResult, wideSumResult } from './window-sums.js'
import { exactMax, isInteger, isNumeric, orderedPresence, orderedValues } from './window-values.js'

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
