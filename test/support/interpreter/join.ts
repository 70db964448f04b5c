// Joins of the plan interpreter (plan.ts, the oracle of the executor's tests), as simple nested loops.

import { compileExpression, type Evaluation, type Row } from '../../../engine/sql/functions/registry/evaluate.js'
import type { Plan } from '../../../engine/sql/plan/plan.js'
import { compareValues } from '../../../engine/types/compare.js'
import { nullOf } from '../../../engine/types/convert.js'
import type { Value } from '../../../engine/types/value.js'

type Join = Extract<Plan, { kind: 'join' }>

export function joinRows(plan: Join, left: readonly Row[], right: readonly Row[], evaluation: Evaluation): Row[] {
  const residual = plan.residual === null ? null : compileExpression(plan.residual, evaluation)
  const matches = (a: Row, b: Row): boolean =>
    sameKeys(plan, a, b) && (residual === null || residual([...a, ...b]) === true)
  switch (plan.join) {
    case 'inner':
    case 'cross':
      return left.flatMap((a) => right.filter((b) => matches(a, b)).map((b) => [...a, ...b]))
    case 'left':
      return left.flatMap((a) =>
        padded(
          plan,
          a,
          right.filter((b) => matches(a, b)),
        ),
      )
    case 'right':
      return right.flatMap((b) => {
        const found = left.filter((a) => matches(a, b))
        return found.length === 0 ? [[...emptyLeft(plan), ...b]] : found.map((a) => [...a, ...b])
      })
    case 'full': {
      const rows = left.flatMap((a) =>
        padded(
          plan,
          a,
          right.filter((b) => matches(a, b)),
        ),
      )
      const unmatched = right.filter((b) => !left.some((a) => matches(a, b)))
      return [...rows, ...unmatched.map((b) => [...emptyLeft(plan), ...b])]
    }
    case 'asof':
    case 'lt':
      return left.map((a) => [...a, ...(lastBefore(plan, a, right) ?? emptyRight(plan))])
    case 'splice':
      return spliceRows(plan, left, right)
  }
}

function sameKeys({ leftKeys, rightKeys }: Join, a: Row, b: Row): boolean {
  return leftKeys.every((index, at) => compareValues(a[index] ?? null, b[rightKeys[at] ?? 0] ?? null) === 0)
}

function emptyRight({ right }: Join): Value[] {
  return right.columns.map(({ type }) => nullOf(type))
}

function emptyLeft({ left }: Join): Value[] {
  return left.columns.map(({ type }) => nullOf(type))
}

function padded(plan: Join, a: Row, found: readonly Row[]): Row[] {
  return found.length === 0 ? [[...a, ...emptyRight(plan)]] : found.map((b) => [...a, ...b])
}

/** The last right row of the same keys at or before (asof) or before (lt) the left row's time. */
function lastBefore(plan: Join, a: Row, right: readonly Row[]): Row | undefined {
  const ts = a[plan.leftTimestamp]
  if (typeof ts !== 'bigint') return undefined
  return right.findLast((b) => {
    const other = b[plan.rightTimestamp]
    if (typeof other !== 'bigint' || !sameKeys(plan, a, b)) return false
    const near = plan.tolerance === null || ts - other <= plan.tolerance
    return near && (plan.join === 'lt' ? other < ts : other <= ts)
  })
}

/**
 * Every row of both sides with the prevailing row of the other; one that stands beside a row of its time is no other
 * row.
 */
function spliceRows(plan: Join, left: readonly Row[], right: readonly Row[]): Row[] {
  const time = (row: Row, index: number): bigint => (row[index] as bigint | null) ?? 0n
  const both = [
    ...left.map((row) => ({ at: time(row, plan.leftTimestamp), left: row, right: null as Row | null })),
    ...right.map((row) => ({ at: time(row, plan.rightTimestamp), left: null as Row | null, right: row })),
  ].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
  const prevailing = (rows: readonly Row[], index: number, at: bigint, same: (row: Row) => boolean): Row | undefined =>
    rows.findLast((row) => time(row, index) <= at && same(row))
  return both.flatMap(({ at, left: a, right: b }) => {
    if (a !== null)
      return [
        [...a, ...(prevailing(right, plan.rightTimestamp, at, (row) => sameKeys(plan, a, row)) ?? emptyRight(plan))],
      ]
    const own = b ?? []
    const other = prevailing(left, plan.leftTimestamp, at, (row) => sameKeys(plan, row, own))
    const isBeside = other !== undefined && time(other, plan.leftTimestamp) === at
    const last = prevailing(right, plan.rightTimestamp, at, (row) => other !== undefined && sameKeys(plan, other, row))
    return isBeside && last === own ? [] : [[...(other ?? emptyLeft(plan)), ...own]]
  })
}
