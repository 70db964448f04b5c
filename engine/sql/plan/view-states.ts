// States of aggregates: hidden columns that a materialized view stores in addition to the results of its query. The
// planner needs them to combine several time buckets to a larger one: the mean of a day, for example, does not follow
// from the means of its hours, but it follows from their sums and counts.
//
//   sum, mean              sum and count
//   variance               count, mean, sum of squared deviations
//   covariance, regression count; of both variables mean and sum of squared deviations; sum of products of deviations
//   first, last            the result itself and the timestamp of its row
//   count, min, max, ..    the result itself
//   mean of LONG           sums of x / 2^32 and of x % 2^32, which are always in range, and count
//   sum, min, max of       the result itself
//   DECIMAL
//
// A state that the query returns as a column is not stored twice. The last two lines belong to rule 3, which new views
// have if it makes a difference, and the two before them to rule 2. Views of earlier versions have rule 1, which applies
// only to queries that read all rows of one table.
//
// The view's query and the types of the table's columns determine the hidden columns. If the type of a column changes,
// other hidden columns may be needed than the view has: then refreshes store NULL in those of the view, and queries do
// not read them. A change of the rule needs a new format number of the manifest (the file that lists the parts of all
// tables), because existing views would have to be created again.

import { dataType } from '../../types/column-types.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import {
  aggregatePlace,
  isSameCall,
  ordinal,
  type SampleColumns,
  sampleColumns,
  statesOf,
  viewColumns,
} from './view-columns.js'

type StateRule = 1 | 2 | 3
const newestStateRule = 3

/** The first rule that gives the query all its states. */
export function stateRuleOf(query: Plan): StateRule {
  const widthOf = (rule: StateRule): number => withStates(query, rule).columns.length
  const all = widthOf(newestStateRule)
  return ([1, 2] as const).find((rule) => widthOf(rule) === all) ?? newestStateRule
}

/** The view's query with the states of its aggregates as last columns, apart from those that it returns anyway. */
export function withStates(query: Plan, rule: StateRule): Plan {
  const view = rule === 1 ? viewColumns(query) : sampleColumns(query)
  if (view === undefined) return query
  const { sample } = view
  const calls: AggregateCall[] = []
  for (const call of sample.aggregates.flatMap((own) => stateCalls(own, view, rule))) {
    if (aggregatePlace(view, call) < 0 && !calls.some((other) => isSameCall(other, call))) calls.push(call)
  }
  if (calls.length === 0) return query
  const added = calls.map(({ name, type }, index): PlanColumn => ({ name: `~${index}_${name}`, type }))
  const stated: Plan = {
    ...sample,
    columns: [...sample.columns, ...added],
    aggregates: [...sample.aggregates, ...calls],
    fills: [...sample.fills, ...calls.map(() => ({ kind: 'none' }) as const)],
  }
  if (query.kind !== 'project') return stated
  const first = sample.columns.length
  const read = added.map(({ type }, index): Expression => ({ kind: 'column', index: first + index, type, position: 0 }))
  return {
    ...query,
    columns: [...query.columns, ...added],
    input: stated,
    expressions: [...query.expressions, ...read],
  }
}

function stateCalls(call: AggregateCall, { sample }: SampleColumns, rule: StateRule): readonly AggregateCall[] {
  const states = statesOf(call)
  if (states !== undefined) return states.kind === 'exact mean' && rule < 3 ? [] : states.calls
  if (rule === 1) return []
  const time = timeOf(call, sample)
  if (time !== undefined) return [call, time]
  return isOwnState(call, rule) ? [call] : []
}

/** Whether the result for several buckets follows from those of each. */
function isOwnState({ name, args, type }: AggregateCall, rule: StateRule): boolean {
  const isDecimal = type.name === 'DECIMAL' && rule >= 3
  switch (name) {
    case 'count':
      return type.name === 'LONG' && args.length <= 1
    case 'sum':
      return type.name === 'LONG' || isDecimal
    case 'min':
    case 'max':
      return ordinal.has(type.name) || isDecimal
    default:
      return name === 'regr_count'
  }
}

/** Of first() and last(): the aggregate with the timestamp of their row. */
export function timeOf(
  { name, type, position }: AggregateCall,
  sample: SampleColumns['sample'],
): AggregateCall | undefined {
  if ((name !== 'first' && name !== 'last') || !ordinal.has(type.name)) return undefined
  const { timestampIndex, input } = sample
  const of = input.columns[timestampIndex]?.type ?? dataType('TIMESTAMP')
  const column: Expression = { kind: 'column', index: timestampIndex, type: of, position }
  return { name: name === 'first' ? 'min' : 'max', args: [column], type: of, position }
}
