// SQL functions: comparison operators, IN, BETWEEN, membership in time intervals, and boolean logic. BOOLEAN has no
// NULL, so comparisons are two-valued: NULL equals NULL, NULL is neither less nor greater than anything, and `<>` is
// the negation of `=`. The binder brings both sides to one type; string types may be mixed.

import type { DataType } from '../../types/column-types.js'
import { compareValues, equalValues, keyText } from '../../types/compare.js'
import { isText, isTime } from '../../types/convert.js'
import { contains } from '../../types/interval.js'
import type { Range } from '../../types/tick.js'
import type { IntervalValue, Value } from '../../types/value.js'
import { equalityColumn, orderColumn } from './column/comparisons.js'
import { inColumn } from './column/members.js'
import { andColumn, notColumn, orColumn } from './column/numbers.js'
import type { CallSite, ScalarFunction } from './function-types.js'

function comparison(
  name: string,
  description: string,
  example: readonly [string, string],
  holds: (a: Value, b: Value) => boolean,
): ScalarFunction {
  return {
    name,
    takes: ['ANY', 'ANY'],
    gives: 'BOOLEAN',
    description,
    example,
    seesNull: true,
    total: true,
    eval: ([a = null, b = null]) => holds(a, b),
    column: name === '=' || name === '<>' ? equalityColumn : orderColumn,
  }
}

/** The NULL of CHAR, '', counts as a value. */
function present(value: Value): boolean {
  return value !== null
}

const comparisonRows: ScalarFunction[] = [
  comparison('=', 'Equality; NULL equals NULL.', ['null = null', 'true'], equalValues),
  comparison('<>', 'The negation of `=`.', ['1 <> null', 'true'], (a, b) => !equalValues(a, b)),
  comparison(
    '<',
    'Less; false for NULL.',
    ['1 < 2', 'true'],
    (a, b) => present(a) && present(b) && compareValues(a, b) < 0,
  ),
  comparison(
    '>',
    'Greater; false for NULL.',
    ['1 > 2', 'false'],
    (a, b) => present(a) && present(b) && compareValues(a, b) > 0,
  ),
  comparison(
    '<=',
    'Less or equal; for NULL true only if both are NULL.',
    ['1 <= 1', 'true'],
    (a, b) => present(a) === present(b) && compareValues(a, b) <= 0,
  ),
  comparison(
    '>=',
    'Greater or equal; for NULL true only if both are NULL.',
    ['1 >= 2', 'false'],
    (a, b) => present(a) === present(b) && compareValues(a, b) >= 0,
  ),
]

const logicRows: ScalarFunction[] = [
  {
    name: 'and',
    takes: ['BOOLEAN', 'BOOLEAN'],
    gives: 'BOOLEAN',
    description: 'Whether both are true.',
    example: ['true and false', 'false'],
    seesNull: true,
    total: true,
    lazy: true,
    eval: ([a, b]) => a === true && b === true,
    column: andColumn,
  },
  {
    name: 'or',
    takes: ['BOOLEAN', 'BOOLEAN'],
    gives: 'BOOLEAN',
    description: 'Whether at least one is true.',
    example: ['true or false', 'true'],
    seesNull: true,
    total: true,
    lazy: true,
    eval: ([a, b]) => a === true || b === true,
    column: orColumn,
  },
  {
    name: 'not',
    takes: ['BOOLEAN'],
    gives: 'BOOLEAN',
    description: 'Negation.',
    example: ['not true', 'false'],
    seesNull: true,
    total: true,
    eval: ([a]) => a !== true,
    column: notColumn,
  },
]

/** Keys of the constant members, computed at the first row. */
function memberKeys(args: readonly Value[], site: CallSite): ReadonlySet<string> {
  const known = site.memo.get('members')
  if (known instanceof Set) return known
  const keys = new Set(args.slice(1).map(keyText))
  site.memo.set('members', keys)
  return keys
}

const membershipRows: ScalarFunction[] = [
  {
    name: 'in',
    takes: ['ANY'],
    more: 'ANY',
    gives: 'BOOLEAN',
    description: 'Whether the first value equals one of the others, which are constants.',
    example: ["'a' in ('a', 'b')", 'true'],
    seesNull: true,
    total: true,
    column: inColumn,
    eval: (args, site) => memberKeys(args, site).has(keyText(args[0] ?? null)),
  },
  {
    name: 'in_values',
    takes: ['ANY'],
    more: 'ANY',
    gives: 'BOOLEAN',
    description: 'Like `in`, for members that are not constant.',
    example: null,
    seesNull: true,
    eval: (args) => args.slice(1).some((member) => equalValues(args[0] ?? null, member)),
  },
  {
    name: 'between',
    takes: ['ANY', 'ANY', 'ANY'],
    gives: 'BOOLEAN',
    description: 'Whether the first value is between the others (inclusive). Timestamp bounds may be in either order.',
    example: ['1 between 0 and 2', 'true'],
    seesNull: true,
    total: true,
    eval: ([value = null, a = null, b = null], { argTypes: [type] }) => {
      if (value === null || a === null || b === null) return false
      const [low, high] = isTimestamp(type) && compareValues(a, b) > 0 ? [b, a] : [a, b]
      return compareValues(value, low) >= 0 && compareValues(value, high) <= 0
    },
  },
  {
    name: 'in_ranges',
    takes: ['TIME'],
    more: 'TIME',
    gives: 'BOOLEAN',
    description: 'Whether a timestamp is in one of the ranges, given as pairs of constant bounds, sorted and disjoint.',
    example: null,
    eval: ([value, ...bounds], site) => contains(rangesOf(bounds, site), value as bigint),
  },
  {
    name: 'in_interval',
    takes: ['TIME', 'INTERVAL'],
    gives: 'BOOLEAN',
    description: 'Whether a timestamp is in an interval.',
    example: ["'2024-01-01'::timestamp in interval('2024-01-01', '2024-01-02')", 'true'],
    eval: ([value, interval]: readonly [bigint, IntervalValue], site) => {
      const { lo, hi } = interval
      const scale = site.argTypes[0]?.name === 'TIMESTAMP_NS' ? 1000n : 1n
      return value >= lo * scale && value < (hi + 1n) * scale
    },
  },
]

function isTimestamp(type: DataType | undefined): boolean {
  return type !== undefined && (isTime(type) || type.name === 'DATE')
}

function rangesOf(bounds: readonly Value[], site: CallSite): readonly Range[] {
  const known = site.memo.get('ranges') as readonly Range[] | undefined
  if (known !== undefined) return known
  const ranges: Range[] = []
  for (let index = 0; index + 1 < bounds.length; index += 2) {
    ranges.push({ lo: bounds[index] as bigint, hi: bounds[index + 1] as bigint })
  }
  site.memo.set('ranges', ranges)
  return ranges
}

/** Whether values of the two types are compared without a cast. */
export function comparableAsIs(left: CallSite['type'], right: CallSite['type']): boolean {
  if (isText(left) && isText(right)) return true
  return (
    left.name === right.name &&
    (left.name !== 'DECIMAL' || left.b === right.b) &&
    (left.name !== 'GEOHASH' || left.a === right.a)
  )
}

export const comparisonFunctions: readonly ScalarFunction[] = [...comparisonRows, ...logicRows, ...membershipRows]
