// Collects the result of the sub-query in `x IN (SELECT ..)`. If its values are integers, it becomes a set of integers,
// which is faster to search than the set of strings that serves other types.

import { wholeTypes } from '../../sql/functions/column/members.js'
import { noNumbers, withColumn } from '../../sql/functions/column/whole-numbers.js'
import type { SubqueryResult } from '../../sql/functions/registry/evaluate.js'
import type { Query } from '../../sql/plan/plan.js'
import { widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'

export interface NumberList {
  add(vector: Vector, rows: number): void
  result(): SubqueryResult
}

/** undefined when the values are not integers. */
export function numbersOf(
  { memory }: ExecContext,
  { mode, plan }: Query['subqueries'][number],
): NumberList | undefined {
  const type = plan.columns[0]?.type.name
  if (mode !== 'list' || type === undefined || !wholeTypes.has(type)) return undefined
  let numbers = noNumbers()
  const add = ({ type, address }: Vector, rows: number): void => {
    const wide = widthOf(type) === 8
    const words = memory.i32.subarray(address >>> 2, (address >>> 2) + (wide ? rows * 2 : rows))
    numbers = withColumn(numbers, words, wide)
  }
  return { add, result: () => ({ mode: 'list', keys: new Set(), numbers }) }
}
