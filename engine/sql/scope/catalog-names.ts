// Names of tables and columns in the catalog are found as they are, and also as PostgreSQL would have folded them: a statement
// that makes Readings without quotes makes what its drivers then look for as `readings`. There is never one of each, since
// names differ by more than case here.

import type * as ast from '../ast/ast.js'
import type { Scope } from './scope.js'

/** Columns of pg_catalog and information_schema whose values are such names. */
export const nameColumns: ReadonlySet<string> = new Set([
  ...['relname', 'attname', 'tablename', 'viewname', 'sequencename'],
  ...['table_name', 'column_name', 'sequence_name'],
])

const compared: ReadonlySet<ast.BinaryOperator> = new Set(['=', '<>', 'like', 'not like', '~', '!~'])
const negated: ReadonlySet<ast.BinaryOperator> = new Set(['<>', 'not like', '!~'])

/** The comparison of a name with a text in both ways; null for any other. */
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

/** `relname in ('a', 'b')` in both ways. */
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

// Neither is a column, so that what is made of them is not looked at again: rewriting ends.

function plain(operand: ast.Expression): ast.Expression {
  const { position } = operand
  const type = { position, name: 'varchar', text: 'varchar', parameters: [], unit: null, dimensions: 0 } as const
  return { kind: 'cast', position, operand, type }
}

function folded(operand: ast.Expression): ast.Expression {
  const { position } = operand
  const rest = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  return { kind: 'call', position, schema: null, name: 'lower', args: [operand], ...rest }
}
