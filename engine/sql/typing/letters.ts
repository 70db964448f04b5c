// A letter that is written beside a parameter: a text, as the values of the parameter are.
//
// Alone it is a CHAR. The value of a parameter is not known when a statement is prepared: were the choice a CHAR then, a
// client would be told so, and its text would not fit. A NULL among the values would be the letter that says nothing.

import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { constantOf } from './types.js'

/** `bound` of `written`, among which CASE, coalesce(), VALUES and the like choose. */
export function besideParameters(
  written: readonly (ast.Expression | undefined)[],
  bound: readonly Expression[],
): readonly Expression[] {
  if (!bound.some(isLetter) || !written.some(namesParameter)) return bound
  return bound.map((value) => (isLetter(value) ? constantOf(value.value, dataType('STRING'), value.position) : value))
}

function isLetter(value: Expression): value is Extract<Expression, { kind: 'constant' }> {
  return (
    value.kind === 'constant' && value.type.name === 'CHAR' && typeof value.value === 'string' && value.value !== ''
  )
}

/** Also within a call, as `nullif($1, '')`; what a sub-query gives has its type from there. */
function namesParameter(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  if (Array.isArray(node)) return node.some(namesParameter)
  if ('kind' in node && node.kind === 'parameter') return true
  if ('kind' in node && (node.kind === 'subquery' || node.kind === 'exists')) return false
  return Object.values(node).some(namesParameter)
}
