// Rewrites comparisons of a name column of pg_catalog or information_schema with a string, so that the string matches a
// name as stored or in lower case. PostgreSQL folds unquoted names to lower case, so after `create table Readings` a
// driver looks for `readings`, while the catalog here keeps `Readings`. The match is unambiguous, since two names never
// differ by case alone.

import type * as ast from '../ast/ast.js'
import { callOf } from '../rewrite/make-query.js'
import type { Scope } from './scope.js'

/** Columns of the catalog that hold names of tables or columns. */
export const nameColumns: ReadonlySet<string> = new Set([
  ...['relname', 'attname', 'tablename', 'viewname', 'sequencename'],
  ...['table_name', 'column_name', 'sequence_name'],
])

const compared: ReadonlySet<ast.BinaryOperator> = new Set(['=', '<>', 'like', 'not like', '~', '!~'])
const negated: ReadonlySet<ast.BinaryOperator> = new Set(['<>', 'not like', '!~'])

/** `relname = 'a'` rewritten to match either spelling; null for any other comparison. */
export function nameComparison(expression: ast.BinaryExpression, columns: Scope): ast.BinaryExpression | null {
  const { left, right, operator, position } = expression
  if (!compared.has(operator) || !isName(left, columns) || !isText(right)) return null
  return {
    kind: 'binary',
    position,
    operator: negated.has(operator) ? 'and' : 'or',
    left: { ...expression, left: plain(left) },
    right: { ...expression, left: folded(left) },
  }
}

/** `relname in ('a', 'b')` rewritten to match either spelling; null for any other list. */
export function nameMembership(expression: ast.InExpression, columns: Scope): ast.BinaryExpression | null {
  const { operand, set, position } = expression
  if (!isName(operand, columns) || !('length' in set) || !set.every(isText)) return null
  return {
    kind: 'binary',
    position,
    operator: expression.negated ? 'and' : 'or',
    left: { ...expression, operand: plain(operand) },
    right: { ...expression, operand: folded(operand) },
  }
}

function isName(expression: ast.Expression, columns: Scope): boolean {
  if (expression.kind !== 'column') return false
  const { path } = expression
  const [name = '', source] = [...path].reverse().map((word) => word.toLowerCase())
  if (!nameColumns.has(name)) return false
  const isMeant = (written: string | null): boolean => source === undefined || written?.toLowerCase() === source
  return columns.some(
    (column) => column.ofNames === true && column.name.toLowerCase() === name && isMeant(column.source),
  )
}

function isText(expression: ast.Expression): boolean {
  if (expression.kind === 'cast') return expression.type.dimensions === 0 && isText(expression.operand)
  return expression.kind === 'string' || expression.kind === 'parameter'
}

// Both wrap the column in a call, so the rewritten comparison is not matched again and rewriting terminates.

function plain(operand: ast.Expression): ast.Expression {
  const { position } = operand
  const type = { position, name: 'varchar', text: 'varchar', parameters: [], unit: null, dimensions: 0 } as const
  return { kind: 'cast', position, operand, type }
}

function folded(operand: ast.Expression): ast.Expression {
  return callOf('lower', [operand], operand.position)
}
