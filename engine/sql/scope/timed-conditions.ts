// Handles the conditions of ASOF and LT JOIN other than equal keys. There are four kinds:
//
//   compares both timestamps   says whether an earlier or a later row is searched, and whether an equal time counts
//   right side only            becomes a filter of the right side
//   left side only             becomes a join key that is compared with `true`
//   both sides                 the join looks for the nearest row that satisfies it

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression, Plan } from '../plan/plan.js'
import { allOf, columnsOf, remapColumns } from '../typing/walk-expression.js'
import type { Relation } from './scope.js'

type Towards = Pick<Extract<Plan, { kind: 'join' }>, 'direction'>

interface Keys {
  readonly left: Expression
  readonly right: Expression
}

const mirrored: Readonly<Record<string, string>> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' }

/** The join as a comparison of the timestamps or DIRECTION defines it. The last such comparison is left out. */
export function directed(
  { kind, direction }: ast.Join,
  left: Relation,
  right: Relation,
  conditions: readonly Expression[],
): { readonly kind: ast.JoinKind; readonly direction: Towards; readonly conditions: readonly Expression[] } {
  const width = left.plan.columns.length
  const operators = conditions.map((condition) =>
    timeComparison(condition, left.timestampIndex, width + right.timestampIndex),
  )
  const index = operators.findIndex((operator) => operator !== null)
  const operator = operators[index]
  if (operator === undefined || operator === null)
    return { kind, direction: towardsOf(direction?.towards ?? 'backward'), conditions }
  if (direction !== undefined)
    throw new SqlError('DIRECTION cannot be combined with a comparison of the timestamps in ON', direction.position)
  return {
    kind: operator === '<' || operator === '>' ? 'lt' : kind,
    direction: towardsOf(operator.startsWith('<') ? 'forward' : 'backward'),
    conditions: conditions.filter((_, at) => at !== index),
  }
}

function towardsOf(direction: ast.Direction): Towards {
  return direction === 'backward' ? {} : { direction }
}

/** The operator of `left.ts >= right.ts` and its like, with the left side first; null for other conditions. */
function timeComparison(condition: Expression, left: number, right: number): string | null {
  if (condition.kind !== 'call' || mirrored[condition.name] === undefined) return null
  const [first, second] = condition.args.map(timeColumn)
  if (first === left && second === right) return condition.name
  return first === right && second === left ? (mirrored[condition.name] ?? null) : null
}

/** The column of a timestamp, which may be converted to the unit of the other one. */
function timeColumn(expression: Expression): number {
  if (expression.kind === 'column') return expression.index
  const [converted, ...more] = expression.kind === 'call' ? expression.args : []
  const isTime = expression.type.name === 'TIMESTAMP_NS' || expression.type.name === 'TIMESTAMP'
  return isTime && converted?.kind === 'column' && converted.type.name === 'TIMESTAMP' && more.length === 0
    ? converted.index
    : -1
}

const always: Expression = { kind: 'constant', type: dataType('BOOLEAN'), value: true, position: 0 }

/** Conditions on one side are carried out there. `width`: the columns of the left side. */
export function separated(
  right: Relation,
  width: number,
  conditions: readonly Expression[],
): { readonly right: Relation; readonly pairs: readonly Keys[]; readonly rest: readonly Expression[] } {
  const [own, other, rest]: [Expression[], Expression[], Expression[]] = [[], [], []]
  for (const condition of conditions) {
    const columns = [...columnsOf(condition)]
    if (columns.every((index) => index >= width)) other.push(remapColumns(condition, (index) => index - width))
    else if (columns.every((index) => index < width)) own.push(condition)
    else rest.push(condition)
  }
  const predicate = allOf(other)
  const { plan } = right
  const filtered: Plan = predicate === null ? plan : { kind: 'filter', columns: plan.columns, input: plan, predicate }
  return { right: { ...right, plan: filtered }, pairs: own.map((left) => ({ left, right: always })), rest }
}
