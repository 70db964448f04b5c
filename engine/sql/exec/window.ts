// Operator: window functions. All rows are kept, ordered once for each different OVER clause, and every call computes a
// column by row number; rows leave in the order in which they came. Where the rows come in the wanted order and calls
// look only backwards, nothing is kept: window-stream.ts.
//
//   window-rows.ts      the rows and the values of arguments and partitions
//   window-order.ts     positions, partitions, peers
//   window-frames.ts    frames by position
//   window-rank.ts, window-pick.ts, window-sums.ts, window-extremes.ts, window-any.ts      the functions

import { assert } from '../../base/assert.js'
import type { Plan, WindowCall } from '../plan/plan.js'
import type { ExecContext } from './context.js'
import { operatorOf, type Steps } from './join-build.js'
import { isBatch, type Operator } from './vector.js'
import { anyResult } from './window-any.js'
import { extremeResult } from './window-extremes.js'
import { type Frames, framesOf } from './window-frames.js'
import { type OrderKeys, orderKeys, WindowOrder, type Working } from './window-order.js'
import { pickNames, pickResult } from './window-pick.js'
import { rankNames, rankResult } from './window-rank.js'
import { ResultReader, type WindowResult } from './window-result.js'
import { expressionKey, WindowRows } from './window-rows.js'
import { sumNames, sumResult } from './window-sums.js'
import { isNumeric, orderedPresence, orderedValues } from './window-values.js'

export type WindowPlan = Extract<Plan, { kind: 'window' }>

export function windowOperator(context: ExecContext, input: Operator, plan: WindowPlan): Operator {
  return operatorOf(windowSteps(context, input, plan))
}

/** One call before its rows are there. */
interface Prepared {
  readonly call: WindowCall
  readonly keys: OrderKeys
  /** Columns of the arguments. */
  readonly slots: readonly number[]
}

function* windowSteps(context: ExecContext, input: Operator, plan: WindowPlan): Steps {
  const rows = new WindowRows(context, plan.input.columns)
  const prepared = plan.calls.map(
    (call): Prepared => ({
      call,
      keys: orderKeys(rows, plan, call),
      slots: call.args.map((argument) => rows.slotOf(argument)),
    }),
  )
  for (;;) {
    const batch = input.pull()
    if (batch === null) break
    if (isBatch(batch)) rows.append(batch)
    yield batch === 'waiting' ? batch : 'working'
  }
  if (rows.rows === 0) return
  const results = yield* computed(rows, prepared)
  for (let from = 0; ; ) {
    const batch = rows.batchAt(from)
    if (batch === null) return
    yield { rows: batch.rows, vectors: [...batch.vectors, ...results.map((result) => result.vector(from, batch.rows))] }
    from += batch.rows
  }
}

function* computed(rows: WindowRows, prepared: readonly Prepared[]): Working<ResultReader[]> {
  const orders = new Map<string, WindowOrder>()
  const frames = new Map<string, Frames>()
  const results: ResultReader[] = []
  for (const { call, keys, slots } of prepared) {
    const orderKey = expressionKey(keys)
    const order = orders.get(orderKey) ?? (yield* WindowOrder.make(rows, keys))
    orders.set(orderKey, order)
    const frameKey = `${orderKey} ${expressionKey(call.frame)}`
    const known = hasFrame(call) ? (frames.get(frameKey) ?? (yield* framesOf(order, call))) : null
    if (known !== null) frames.set(frameKey, known)
    results.push(new ResultReader(rows, call.type, yield* callResult(order, call, slots, known)))
  }
  return results
}

function hasFrame({ name }: WindowCall): boolean {
  return !rankNames.has(name) && name !== 'lag' && name !== 'lead'
}

function* callResult(
  order: WindowOrder,
  call: WindowCall,
  slots: readonly number[],
  frames: Frames | null,
): Working<WindowResult> {
  const [slot = -1] = slots
  if (rankNames.has(call.name)) return yield* rankResult(order, call, slot)
  if (pickNames.has(call.name)) return yield* pickResult(order, call, slots, frames)
  assert(frames !== null, 'an aggregate has a frame')
  if (frames.exclude === 'none') {
    const fast = yield* numberResult(order, call, slot, frames)
    if (fast !== null) return fast
  }
  return yield* anyResult(order, call, slots, frames)
}

/** The aggregates that everybody uses, over numbers; null for all others. */
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
    return values.exact ? yield* sumResult(order, call, values, frames) : null
  }
  if ((call.name === 'min' || call.name === 'max') && call.type.name === argument.type.name) {
    const values = yield* orderedValues(order, slot, true)
    return values.exact ? yield* extremeResult(order, call, slot, values, frames) : null
  }
  return null
}
