// Chooses the type of a one-character literal beside a parameter, as in `coalesce($1, 'x')`: STRING rather than CHAR.
//
// Alone, such a literal is a CHAR. In `coalesce($1, 'x')`, however, the parameter is unknown while the statement is
// prepared. If the result were described as CHAR, the client's string would not fit it, and NULL values would become
// the empty character, which is the NULL of CHAR.

import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Expression } from '../plan/plan.js'
import { partsOf } from './deferred-values.js'
import { constantOf } from './types.js'

/**
 * The bound expressions with CHAR constants as STRING, if one of the written expressions contains a parameter. Used for
 * the alternatives of CASE, coalesce(), VALUES and the like.
 */
export function charactersAsStrings(
  written: readonly (ast.Expression | undefined)[],
  bound: readonly Expression[],
): readonly Expression[] {
  if (!bound.some(isCharacter) || !written.some(namesParameter)) return bound
  return bound.map((value) =>
    isCharacter(value) ? constantOf(value.value, dataType('STRING'), value.position) : value,
  )
}

function isCharacter(value: Expression): value is Extract<Expression, { kind: 'constant' }> {
  return (
    value.kind === 'constant' && value.type.name === 'CHAR' && typeof value.value === 'string' && value.value !== ''
  )
}

/** Whether the syntax contains a parameter, at any depth but not in a sub-query, which has a type of its own. */
function namesParameter(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  if (Array.isArray(node)) return node.some(namesParameter)
  if ('kind' in node && node.kind === 'parameter') return true
  if ('kind' in node && (node.kind === 'subquery' || node.kind === 'exists')) return false
  return partsOf(node).some(namesParameter)
}
