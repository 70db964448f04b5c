// Operator: window functions. Each call computes a result column; rows are returned in input order with these columns
// added. The work is divided among these files:
//
//   window-calls.ts     chooses the implementation of each call over buffered rows
//   window-stream.ts    calls that look back a bounded number of rows: only these rows are buffered
//   window-rows.ts      the row buffer, with columns for arguments and partitions
//   window-order.ts     sort order, partitions, peers
//   window-frames.ts    frames by position
//   window-rank.ts, window-pick.ts, window-sums.ts, window-extremes.ts, window-any.ts      the functions
//   window-values.ts, window-result.ts    arguments as numbers; results as vectors
//   window-ordered.ts   calls over rows sorted on disk, of which few are in memory: window-blocks.ts,
//                       window-running.ts, window-groups.ts, window-place.ts

import type { Plan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import { isBatch, type Operator } from '../batch/vector.js'
import { operatorOf, type Steps } from '../join/join-build.js'
import { computed, type Prepared } from './window-calls.js'
import { orderKeys } from './window-order.js'
import { emitted } from './window-result.js'
import { WindowRows } from './window-rows.js'
import { streamedBlocks, streamedCalls } from './window-stream.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>

export function windowOperator(context: ExecContext, input: Operator, plan: WindowPlan): Operator {
  return operatorOf(windowSteps(context, input, plan))
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
  const streamed = streamedCalls(prepared)
  if (streamed !== null) {
    yield* streamedBlocks(rows, input, streamed)
    return
  }
  for (;;) {
    const batch = input.pull()
    if (batch === null) break
    if (isBatch(batch)) rows.append(batch)
    yield batch === 'waiting' ? batch : 'working'
  }
  if (rows.rows === 0) return
  rows.complete()
  const { results } = yield* computed(rows, prepared)
  yield* emitted(rows, results, 0)
}
