// Planner rule: moves conditions on the designated timestamp (the table's time column) from the filter to the scan, as
// exact time ranges. Scans use the ranges to skip partitions and rows.

import { assert } from '../../base/assert.js'
import type { TableVersion } from '../../storage/schema/schema.js'
import { isTime } from '../../types/convert.js'
import { allOfTime, complement, intersect, normalise, unite } from '../../types/interval.js'
import type { Range } from '../../types/tick.js'
import type { IntervalValue } from '../../types/value.js'
import { isDeferred } from '../typing/deferred-values.js'
import { allOf, conjuncts, visitExpression } from '../typing/walk-expression.js'
import type { DeferredRanges, Expression, Plan } from './plan.js'
import { mapInputs } from './walk-plan.js'

/** Version of a table by its index in the query. */
export type TablesOf = (table: number) => TableVersion | undefined

export function extractRanges(plan: Plan, tables: TablesOf): Plan {
  if (plan.kind !== 'scan') return mapInputs(plan, (input) => extractRanges(input, tables))
  const timestampId = tables(plan.table)?.schema.timestampId ?? -1
  const index = plan.columnIds.indexOf(timestampId)
  if (timestampId < 0 || index < 0 || plan.filter === null) return plan
  let ranges: readonly Range[] | null = plan.ranges
  const rest: Expression[] = []
  const deferred: Expression[] = []
  for (const condition of conjuncts(plan.filter)) {
    if (isDeferredRange(condition, index)) {
      deferred.push(condition)
      continue
    }
    const found = rangesOf(condition, index)
    if (found === null) rest.push(condition)
    else ranges = ranges === null ? found : intersect(ranges, found)
  }
  const filter = allOf(rest)
  return deferred.length === 0
    ? { ...plan, ranges, filter }
    : { ...plan, ranges, filter, deferredRanges: { index, conditions: deferred } }
}

/** The time ranges of a scan, when the values of its deferred constants are known. */
export function rangesWith(ranges: readonly Range[] | null, { index, conditions }: DeferredRanges): readonly Range[] {
  let all: readonly Range[] | null = ranges
  for (const condition of conditions) {
    const found = rangesOf(condition, index)
    assert(found !== null, 'B2: a condition with deferred values is about the timestamp alone')
    all = all === null ? found : intersect(all, found)
  }
  assert(all !== null, 'B2: deferred ranges have conditions')
  return all
}

/** Whether a condition with deferred constants will become ranges for any of their values. */
function isDeferredRange(condition: Expression, index: number): boolean {
  let deferred = false
  visitExpression(condition, (part) => {
    if (isDeferred(part)) deferred = true
  })
  return deferred && isAboutTime(condition, index)
}

function isAboutTime(condition: Expression, index: number): boolean {
  if (condition.kind !== 'call') return false
  const { name, args } = condition
  if (name === 'and' || name === 'or' || name === 'not') return args.every((part) => isAboutTime(part, index))
  const [first, second] = args
  if (first === undefined || second === undefined) return false
  if (isTimestamp(first, index)) return rangeNames.has(name) && args.slice(1).every(isTimeConstant)
  return mirror[name] !== undefined && isTimestamp(second, index) && isTimeConstant(first)
}

const rangeNames: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=', 'between', 'in', 'in_ranges'])

function isTimeConstant(expression: Expression): boolean {
  return expression.kind === 'constant' && isTime(expression.type)
}

/** The ranges that a condition selects; null if it depends on more than the timestamp. */
function rangesOf(condition: Expression, index: number): readonly Range[] | null {
  if (condition.kind === 'constant') return condition.value === true ? [allOfTime] : []
  if (condition.kind !== 'call') return null
  const { name, args } = condition
  const [first, second] = args
  if (first === undefined) return null
  if (name === 'not') {
    const inner = rangesOf(first, index)
    return inner === null ? null : complement(inner)
  }
  if (second === undefined) return null
  if (name === 'and' || name === 'or') return combined(name, first, second, index)
  if (isTimestamp(first, index)) return ranged(name, args.slice(1), first)
  const mirrored = mirror[name]
  return mirrored !== undefined && isTimestamp(second, index) ? ranged(mirrored, [first], second) : null
}

function combined(name: 'and' | 'or', left: Expression, right: Expression, index: number): readonly Range[] | null {
  const a = rangesOf(left, index)
  const b = a === null ? null : rangesOf(right, index)
  if (a === null || b === null) return null
  return name === 'and' ? intersect(a, b) : unite(a, b)
}

function isTimestamp(expression: Expression, index: number): boolean {
  return expression.kind === 'column' && expression.index === index
}

const mirror: Record<string, string> = { '=': '=', '<>': '<>', '<': '>', '>': '<', '<=': '>=', '>=': '<=' }

function ranged(name: string, args: readonly Expression[], column: Expression): readonly Range[] | null {
  const values: (bigint | null)[] = []
  for (const argument of args) {
    if (argument.kind !== 'constant') return null
    if (name === 'in_interval') return intervalRange(argument.value as IntervalValue | null, column)
    if (typeof argument.value !== 'bigint' && argument.value !== null) return null
    values.push(argument.value)
  }
  return valueRanges(name, values)
}

function intervalRange(interval: IntervalValue | null, column: Expression): readonly Range[] {
  if (interval === null) return []
  const scale = column.type.name === 'TIMESTAMP_NS' ? 1000n : 1n
  return normalise([{ lo: interval.lo * scale, hi: (interval.hi + 1n) * scale - 1n }])
}

/** The designated timestamp is never NULL. A comparison with NULL is false, `<>` is true. */
function valueRanges(name: string, values: readonly (bigint | null)[]): readonly Range[] | null {
  const [a = null, b = null] = values
  switch (name) {
    case '=':
      return a === null ? [] : [{ lo: a, hi: a }]
    case '<>':
      return a === null ? [allOfTime] : complement([{ lo: a, hi: a }])
    case '<':
      return a === null ? [] : normalise([{ lo: allOfTime.lo, hi: a - 1n }])
    case '<=':
      return a === null ? [] : normalise([{ lo: allOfTime.lo, hi: a }])
    case '>':
      return a === null ? [] : normalise([{ lo: a + 1n, hi: allOfTime.hi }])
    case '>=':
      return a === null ? [] : normalise([{ lo: a, hi: allOfTime.hi }])
    case 'between':
      if (a === null || b === null) return []
      return a <= b ? [{ lo: a, hi: b }] : [{ lo: b, hi: a }]
    case 'in':
      return normalise(values.filter((value) => value !== null).map((value) => ({ lo: value, hi: value })))
    case 'in_ranges':
      return normalise(pairs(values.filter((value) => value !== null)))
    default:
      return null
  }
}

function pairs(bounds: readonly bigint[]): Range[] {
  const ranges: Range[] = []
  for (let index = 0; index + 1 < bounds.length; index += 2)
    ranges.push({ lo: bounds[index] as bigint, hi: bounds[index + 1] as bigint })
  return ranges
}
