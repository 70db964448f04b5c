// Aggregates by group. Sums, means, counts and extremes of numbers are kept in shared memory and fed by the kernels; all
// others run through the interpreter of sql/functions, value by value.

import { assert } from '../../base/assert.js'
import { aggregateOf, callSite } from '../../sql/functions/registry/evaluate.js'
import type { AggregateCall } from '../../sql/plan/plan.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { valueReader } from '../batch/values.js'
import { compileVector } from '../expression/expression.js'
import type { GroupStates } from './group-states.js'
import { kernelStates } from './kernel-states.js'

export function createStates(context: ExecContext, calls: readonly AggregateCall[]): GroupStates[] {
  return calls.map((call) => kernelStates(context, call) ?? interpretedStates(context, call))
}

function interpretedStates(context: ExecContext, call: AggregateCall): GroupStates {
  const row = aggregateOf(call.name, call.args)
  assert(row !== undefined, `no aggregate of that signature [name=${call.name}]`)
  const { init, add, result } = row.accumulator
  const site = callSite(call.type, call.args, call.position, context.evaluation)
  const args = call.args.map((argument) => compileVector(argument, context))
  const { memory, texts } = context
  let states: unknown[] = []
  const isFirst = call.name === 'first' && args.length === 1
  const isLast = call.name === 'last' && args.length === 1
  return {
    add: (batch, ids) => {
      const readers = args.map((evaluate) => valueReader(memory, texts, evaluate(batch)))
      const values: Value[] = []
      // Of rows without keys, only the last one matters to `last`; to `first`, only the first one of a group.
      for (let index = isLast && ids === 0 ? batch.rows - 1 : 0; index < batch.rows; index++) {
        const group = ids === 0 ? 0 : memory.u32[(ids >>> 2) + index]!
        if (isFirst && states[group] !== undefined) {
          if (ids === 0) return
          continue
        }
        states[group] ??= init()
        for (let at = 0; at < readers.length; at++) values[at] = (readers[at] as (row: number) => Value)(index)
        add(states[group], values, site)
      }
    },
    result: (group) => result(states[group] ?? init(), site),
    empty: () => result(init(), site),
    reset: () => {
      states = []
    },
  }
}
