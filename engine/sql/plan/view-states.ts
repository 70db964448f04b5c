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
//   distinct count         the distinct values (types/value-states.ts)
//   percentile, median     the numbers and their frequencies
//   mean of DECIMAL        sum and count
//   count_if, bool_or,     the result itself
//   bit_and, .., min, max
//   of texts, BOOLEAN, IPv4
//   first, last of texts   the result itself and the timestamp of its row
//   and DECIMAL
//
// A state that the query returns as a column is not stored twice. New views have the first rule that stores all their
// states: rule 4 has all, rule 3 none of distinct counts and below, rule 2 also none of the mean of LONG and of DECIMAL,
// and rule 1, which applies only to queries that read all rows of one table, none of first, last, count and below.
//
// States of values have a limit of 64 KiB. Larger ones are NULL, and the record of stored buckets lists the buckets that
// have such (StoredBuckets.unkept), which are then computed from the table where the state would be needed. The name of
// such a column says what its bytes mean, so that they are not used any more if the column of the table gets a type with
// other bytes.
//
// The view's query and the types of the table's columns determine the hidden columns. If the type of a column changes,
// other hidden columns may be needed than the view has: then refreshes store NULL in those of the view, and queries do
// not read them. A change of the rule needs a new format number of the manifest (the file that lists the parts of all
// tables), because existing views would have to be created again.

import { dataType } from '../../types/column-types.js'
import { formName } from '../../types/value-states.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from './plan.js'
import {
  aggregatePlace,
  foldOf,
  isEnd,
  isSameCall,
  isValuesState,
  ordinal,
  type SampleColumns,
  sampleColumns,
  statesOf,
  viewColumns,
} from './view-columns.js'
import { inputsOf } from './walk-plan.js'

type StateRule = 1 | 2 | 3 | 4
const newestStateRule = 4

/** The first rule that gives the query all its states. */
export function stateRuleOf(query: Plan): StateRule {
  const widthOf = (rule: StateRule): number => withStates(query, rule).columns.length
  const all = widthOf(newestStateRule)
  return ([1, 2, 3] as const).find((rule) => widthOf(rule) === all) ?? newestStateRule
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
  const added = calls.map((call, index): PlanColumn => ({ name: `~${index}_${stateName(call)}`, type: call.type }))
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
  if (states !== undefined) {
    if (states.kind === 'values' && hasJoin(sample.input)) return []
    return rule < firstRule[states.kind] ? [] : states.calls
  }
  if (rule === 1 || (rule !== 4 && !isOfEarlierRules(call, rule))) return []
  const time = timeOf(call, sample)
  if (time !== undefined) return [call, time]
  return foldOf(call) === undefined ? [] : [call]
}

const firstRule = { sum: 1, mean: 1, moments: 1, 'exact mean': 3, 'decimal mean': 4, values: 4 } as const
const earlierNames: ReadonlySet<string> = new Set(['count', 'sum', 'min', 'max', 'first', 'last', 'regr_count'])

/** Whether rule 2 or 3 has states for an aggregate for which rule 4 has some. */
function isOfEarlierRules({ name, type }: AggregateCall, rule: 2 | 3): boolean {
  if (type.name === 'DECIMAL') return rule === 3 && (name === 'sum' || name === 'min' || name === 'max')
  const isOfType = name === 'min' || name === 'max' || name === 'first' || name === 'last'
  return earlierNames.has(name) && (!isOfType || ordinal.has(type.name))
}

function stateName({ name, args: [value] }: AggregateCall): string {
  return name === 'distinct_values' && value !== undefined ? `${name}_${formName(value.type)}` : name
}

/** Buckets of joined rows are always computed, so that their states are not worth their size. */
function hasJoin(plan: Plan): boolean {
  return plan.kind === 'join' || inputsOf(plan).some(hasJoin)
}

/** The view's query with states of any size, for buckets that are not stored. */
export function withWholeStates(query: Plan): Plan {
  if (query.kind === 'project') return { ...query, input: withWholeStates(query.input) }
  if (query.kind !== 'sample') return query
  const aggregates = query.aggregates.map((call) =>
    isValuesState(call) ? { ...call, args: call.args.slice(0, 1) } : call,
  )
  return { ...query, aggregates }
}

/** Of first() and last(): the aggregate with the timestamp of their row. */
export function timeOf(call: AggregateCall, sample: SampleColumns['sample']): AggregateCall | undefined {
  if (!isEnd(call)) return undefined
  const { name, position } = call
  const { timestampIndex, input } = sample
  const of = input.columns[timestampIndex]?.type ?? dataType('TIMESTAMP')
  const column: Expression = { kind: 'column', index: timestampIndex, type: of, position }
  return { name: name === 'first' ? 'min' : 'max', args: [column], type: of, position }
}
