// Planner rule: an equality between the sides of a cross or inner join becomes a join key, so that `from a, b where a.x
// = b.x` is a hash join. A side that is an expression is computed as a hidden column, which a projection above the join
// removes.

import { comparableAsIs } from '../functions/comparisons.js'
import { columnsOf, remapColumns } from '../typing/walk-expression.js'
import type { Expression, Plan, PlanColumn } from './plan.js'
import { isStable } from './volatile.js'

type Join = Extract<Plan, { kind: 'join' }>

/** The two sides of an equality, each over the columns of its own input. */
interface KeyPair {
  readonly left: Expression
  readonly right: Expression
}

/** The join with the keys found in the conditions, and the remaining conditions. */
export function withJoinKeys(
  join: Join,
  conditions: readonly Expression[],
): { readonly plan: Plan; readonly rest: readonly Expression[] } {
  if (join.join !== 'cross' && join.join !== 'inner') return { plan: join, rest: conditions }
  const width = join.left.columns.length
  const pairs: KeyPair[] = []
  const rest = conditions.filter((condition) => {
    const pair = keyPair(condition, width)
    if (pair !== null) pairs.push(pair)
    return pair === null
  })
  return pairs.length === 0 ? { plan: join, rest } : { plan: keyed(join, pairs), rest }
}

function keyPair(condition: Expression, width: number): KeyPair | null {
  if (condition.kind !== 'call' || condition.name !== '=' || !isStable(condition)) return null
  const [a, b] = condition.args
  if (a === undefined || b === undefined || !comparableAsIs(a.type, b.type)) return null
  const own = (side: Expression): Expression => remapColumns(side, (index) => index - width)
  if (isOf(a, 0, width) && isOf(b, width, Number.POSITIVE_INFINITY)) return { left: a, right: own(b) }
  if (isOf(b, 0, width) && isOf(a, width, Number.POSITIVE_INFINITY)) return { left: b, right: own(a) }
  return null
}

/** Whether the expression reads columns with indexes from `low` up to but excluding `high`, and no others. */
function isOf(expression: Expression, low: number, high: number): boolean {
  const columns = [...columnsOf(expression)]
  return columns.length > 0 && columns.every((index) => index >= low && index < high)
}

function keyed(join: Join, pairs: readonly KeyPair[]): Plan {
  const left = sideWithKeys(
    join.left,
    pairs.map((pair) => pair.left),
  )
  const right = sideWithKeys(
    join.right,
    pairs.map((pair) => pair.right),
  )
  const width = join.left.columns.length
  const shift = left.plan.columns.length - width
  const moved = (index: number): number => (index >= width ? index + shift : index)
  const columns = [...left.plan.columns, ...right.plan.columns]
  const plan: Join = {
    ...join,
    join: 'inner',
    columns,
    left: left.plan,
    right: right.plan,
    leftKeys: [...join.leftKeys, ...left.indexes],
    rightKeys: [...join.rightKeys, ...right.indexes],
    residual: join.residual === null ? null : remapColumns(join.residual, moved),
  }
  if (columns.length === join.columns.length) return plan
  const expressions = join.columns.map(
    ({ type }, index): Expression => ({ kind: 'column', index: moved(index), type, position: 0 }),
  )
  return { kind: 'project', columns: join.columns, input: plan, expressions }
}

function sideWithKeys(side: Plan, keys: readonly Expression[]): { readonly plan: Plan; readonly indexes: number[] } {
  const extra: Expression[] = []
  const indexes = keys.map((key) => (key.kind === 'column' ? key.index : side.columns.length + extra.push(key) - 1))
  if (extra.length === 0) return { plan: side, indexes }
  const added = extra.map(({ type }, index): PlanColumn => ({ name: `$key${index}`, type }))
  const own = side.columns.map(({ type }, index): Expression => ({ kind: 'column', index, type, position: 0 }))
  const plan: Plan = {
    kind: 'project',
    columns: [...side.columns, ...added],
    input: side,
    expressions: [...own, ...extra],
  }
  return { plan, indexes }
}
