// Determines properties of expressions that decide how they are compiled: their size, the columns that they read,
// whether equal inputs always give equal results, and whether they can fail.

import { formOf } from '../../sql/functions/registry/evaluate.js'
import type { Expression } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import { equivalent } from './fragments.js'

/** Number of calls, columns and constants of an expression. Counting stops soon after `max`. */
export function partsOf(expression: Expression, max: number): number {
  let parts = 1
  if (expression.kind === 'call')
    for (const argument of expression.args) {
      if (parts > max) break
      parts += partsOf(argument, max - parts)
    }
  return parts
}

/** Number of calls of an expression. Counting stops soon after `max`. */
export function callsOf(expression: Expression, max: number): number {
  if (expression.kind !== 'call') return 0
  let calls = 1
  for (const argument of expression.args) {
    if (calls > max) break
    calls += callsOf(argument, max - calls)
  }
  return calls
}

export function readsColumns(expression: Expression): boolean {
  return expression.kind === 'column' || (expression.kind === 'call' && expression.args.some(readsColumns))
}

/** Indexes of the columns that an expression reads, ascending. */
export function columnsOf(expression: Expression): number[] {
  const found = new Set<number>()
  const visit = (part: Expression): void => {
    if (part.kind === 'column') found.add(part.index)
    if (part.kind === 'call') part.args.forEach(visit)
  }
  visit(expression)
  return [...found].sort((a, b) => a - b)
}

/** Whether all its functions return the same result for the same arguments. */
export function isPure(expression: Expression): boolean {
  if (expression.kind !== 'call') return true
  return expression.args.every(isPure) && (formOf(expression)?.volatility ?? 'pure') !== 'row'
}

/** Whether the expression has a value for any input, and so can never fail. */
export function isTotal(expression: Expression): boolean {
  if (expression.kind !== 'call') return true
  return expression.args.every(isTotal) && (formOf(expression)?.total === true || equivalent(expression) !== undefined)
}

/** Whether vectors of the type consist of string entries. */
export function isText({ name }: DataType): boolean {
  return name === 'VARCHAR' || name === 'STRING'
}
