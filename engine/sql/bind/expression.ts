// Binds expressions of the syntax tree to typed expressions of the plan: names become column references, operators and
// functions become calls with the casts that they need. Constant sub-expressions are evaluated at once.

import { unreachable } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import type * as ast from '../ast/ast.js'
import { scalarsNamed } from '../functions/registry/all.js'
import { valuesOfRow } from '../parse/row-value.js'
import type { Expression, WindowCall } from '../plan/plan.js'
import type { AggregateList } from '../scope/aggregate-list.js'
import { gatherAlternatives } from '../scope/alternatives.js'
import type { BindContext } from '../scope/bind-context.js'
import { nameComparison, nameMembership } from '../scope/catalog-names.js'
import { comparedSpan, currentDate, currentTime, shiftedTime } from '../scope/interval-shift.js'
import { columnMissing, findInScope, type Scope } from '../scope/scope.js'
import { withoutNot } from '../scope/without-not.js'
import { dayArithmetic } from '../typing/days.js'
import { bindLiteral, bindParameter } from '../typing/literal.js'
import { scalarCall, textOf } from '../typing/make-call.js'
import { spanArithmetic, timestampDifference } from '../typing/span.js'
import { constantOf, isUntypedNull, nullAs } from '../typing/types.js'
import { bindArray, bindField, bindSubscript } from './array.js'
import { bindCall } from './call.js'
import { bindCase } from './case.js'
import { bindCast } from './cast.js'
import { bindBetween, bindComparison } from './comparison.js'
import { bindConcat, withoutParts } from './concat.js'
import { bindExists, bindScalarQuery, type CorrelatedRows } from './correlated.js'
import { bindIn, bindQuantified } from './members.js'

/** What an expression may refer to. */
export interface ExpressionScope {
  readonly context: BindContext
  readonly columns: Scope
  /** Aliases of earlier select items, as in `select price p, p * 2`. */
  readonly aliases?: ReadonlyMap<string, Expression>
  /** Collects aggregate calls; null where they are not allowed. */
  readonly aggregates: AggregateList | null
  readonly windows: WindowCall[] | null
  readonly namedWindows?: ReadonlyMap<string, ast.WindowSpecification>
  /** Number of the copy, where set-returning functions of the select list replicate the rows. */
  readonly ordinal?: Expression | undefined
  /**
   * The rows that the columns belong to. Correlated sub-queries are joined to them; absent where these are not allowed.
   */
  readonly rows?: CorrelatedRows
}

/** The scope of expressions without rows. */
export function rowlessScope(context: BindContext): ExpressionScope {
  return { context, columns: [], aggregates: null, windows: null }
}

/** Placeholder calls that refer to an entry of the scope's collections until the select list is complete. */
export const aggregateMark = '$aggregate'
export const windowMark = '$window'

export function bindExpression(expression: ast.Expression, scope: ExpressionScope): Expression {
  switch (expression.kind) {
    case 'column':
      return bindColumn(expression, scope)
    case 'null':
    case 'boolean':
    case 'integer':
    case 'float':
    case 'decimal':
    case 'hex':
    case 'string':
    case 'geohash':
    case 'interval':
      return bindLiteral(expression, scope.context)
    case 'parameter':
      return bindParameter(expression, scope.context)
    case 'variable':
      throw SqlError.columnMissing(`@${expression.name}`, expression.position)
    case 'unary':
      return bindUnary(expression, scope)
    case 'binary':
      return bindBinary(expression, scope)
    case 'in': {
      const rows = rowsIn(expression)
      return rows === null ? bindMembership(expression, scope) : bindExpression(rows, scope)
    }
    case 'between':
      return bindBetween(expression, scope)
    case 'is null':
      return bindIsNull(expression, scope)
    default:
      return bindComposite(expression, scope)
  }
}

type Composite = Extract<
  ast.Expression,
  {
    kind:
      | 'quantified'
      | 'case'
      | 'cast'
      | 'call'
      | 'array'
      | 'subscript'
      | 'field'
      | 'list'
      | 'subquery'
      | 'exists'
      | 'star'
  }
>

function bindComposite(expression: Composite, scope: ExpressionScope): Expression {
  switch (expression.kind) {
    case 'quantified':
      return bindQuantified(expression, scope)
    case 'case':
      return bindCase(expression, scope)
    case 'cast':
      return bindCast(expression, scope)
    case 'call':
      return bindCall(expression, scope)
    case 'array':
      return bindArray(expression, scope)
    case 'subscript':
      return bindSubscript(expression, scope)
    case 'subquery':
      return bindScalarQuery(expression.query, scope)
    case 'exists':
      return bindExists(expression, scope)
    case 'star':
      throw new SqlError("'*' is not expected here", expression.position)
    case 'field':
      return bindField(expression, scope)
    case 'list':
      throw new SqlError('a list of values is not expected here', expression.position)
    default:
      return unreachable(expression)
  }
}

function bindColumn(column: ast.ColumnName, scope: ExpressionScope): Expression {
  const found = findInScope(scope.columns, column, scope.context)
  if (found !== undefined) return { kind: 'column', index: found.index, type: found.type, position: column.position }
  const alias = column.path.length === 1 ? scope.aliases?.get((column.path[0] ?? '').toLowerCase()) : undefined
  if (alias !== undefined) return { ...alias, position: column.position }
  const call = column.quoted || column.path.length > 1 ? undefined : wordCall(column.path[0] ?? '')
  if (call !== undefined) return scalarCall(call, [], column.position, scope.context)
  const clock = column.quoted || column.path.length > 1 ? undefined : clockWord(column.path[0] ?? '')
  if (clock !== undefined) return bindClock(clock, column, scope)
  throw columnMissing(column, scope.columns)
}

/** current_date and the like, as a whole day for clients of PostgreSQL. */
function bindClock(
  clock: (position: number) => ast.Expression,
  { position }: ast.ColumnName,
  scope: ExpressionScope,
): Expression {
  const timestamp = clock(position)
  return clock === currentDate && scope.context.dialect.dateIsDay
    ? bindExpression(castToDate(timestamp), scope)
    : bindExpression(timestamp, scope)
}

function castToDate(operand: ast.Expression): ast.Expression {
  const { position } = operand
  const type = { position, name: 'date', text: 'date', parameters: [], unit: null, dimensions: 0 }
  return { kind: 'cast', position, operand, type }
}

/** The function that a word without parentheses calls if no column has that name: `select now, version`. */
function wordCall(word: string): string | undefined {
  const name = word.toLowerCase()
  return wordCalls[name] ?? (scalarsNamed(name).some(({ takes }) => takes.length === 0) ? name : undefined)
}

/** Standard keywords for the current time that are not functions here. */
function clockWord(word: string): ((position: number) => ast.Expression) | undefined {
  switch (word.toLowerCase()) {
    case 'current_date':
      return currentDate
    case 'current_time':
    case 'localtime':
      return currentTime
    default:
      return undefined
  }
}

/** Standard functions that are called without parentheses. */
const wordCalls: Readonly<Record<string, string>> = {
  current_timestamp: 'now',
  localtimestamp: 'now',
  current_user: 'current_user',
  current_role: 'current_user',
  session_user: 'session_user',
  user: 'current_user',
  current_catalog: 'current_catalog',
  current_schema: 'current_schema',
}

function bindUnary({ operator, operand, position }: ast.UnaryExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(operand, scope)
  switch (operator) {
    case '+':
      return value
    case '-':
      return withSign(scalarCall('negate', [value], position, scope.context, '-'), value)
    case '~':
      return scalarCall('~', [value], position, scope.context)
    case 'not': {
      if (isUntypedNull(value)) {
        return scalarCall('not', [nullAs(value, dataType('BOOLEAN'), false)], position, scope.context)
      }
      if (value.type.name !== 'BOOLEAN') {
        throw new SqlError(
          `argument type mismatch for function \`not\` at #1 expected: BOOLEAN, actual: ${typeName(value.type)}`,
          value.position,
        )
      }
      return scalarCall('not', [value], position, scope.context)
    }
  }
}

/** The negative of a literal keeps the digits that were written. */
function withSign(negative: Expression, value: Expression): Expression {
  const isWritten = negative.kind === 'constant' && value.kind === 'constant' && value.digits !== undefined
  return isWritten ? { ...negative, digits: `-${value.digits}` } : negative
}

function bindMembership(expression: ast.InExpression, scope: ExpressionScope): Expression {
  const names = nameMembership(expression, scope.columns)
  return names === null ? bindIn(expression, scope) : bindLogic(names, scope)
}

function bindBinary(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const { operator, position } = expression
  const pairs = comparedRows(expression)
  if (pairs !== null) return bindLogic(pairs, scope)
  const { parameters } = scope.context
  const shifted =
    nameComparison(expression, scope.columns) ??
    shiftedTime(expression, parameters) ??
    comparedSpan(expression, parameters)
  if (shifted !== null) return bindExpression(shifted, scope)
  switch (operator) {
    case 'and':
    case 'or':
      return bindLogic(expression, scope)
    case '=':
    case '<>':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return bindComparison(
        operator,
        bindExpression(expression.left, scope),
        bindExpression(expression.right, scope),
        position,
        scope.context,
      )
    case '||':
      return bindConcat(expression, scope)
    case 'not like':
    case 'not ilike':
    case '!~':
    case 'not within':
      return negated(operator === '!~' ? '~' : operator.slice(4), expression, scope)
    case 'within':
      return bindWithin(expression, scope)
    default: {
      const [left, right] = [bindExpression(expression.left, scope), bindExpression(expression.right, scope)]
      const rest = operator === '-' ? withoutParts(left, right, position, scope.context) : null
      const days = rest ?? dayArithmetic(operator, left, right, position, scope.context)
      const difference = operator === '-' ? (days ?? timestampDifference(left, right, position, scope.context)) : days
      const combined = difference ?? spanArithmetic(operator, left, right, position, scope.context)
      return combined ?? scalarCall(operator, [left, right], position, scope.context)
    }
  }
}

/** `(a, b) = (c, d)` as `a = c and b = d`; null for anything but row values. */
export function comparedRows({ operator, left, right, position }: ast.BinaryExpression): ast.BinaryExpression | null {
  if (left.kind !== 'list' && right.kind !== 'list') return null
  const [these, those] = [valuesOfRow(left), valuesOfRow(right)]
  if (these === null || those === null) return null
  if (operator !== '=' && operator !== '<>') return orderedRows(these, those, operator, position)
  const [first, ...rest] = these.map((side, index): ast.BinaryExpression => {
    const other = those[index]
    if (other === undefined || these.length !== those.length)
      throw new SqlError('rows of different lengths cannot be compared', position)
    return { kind: 'binary', operator, left: side, right: other, position }
  })
  if (first === undefined || rest.length === 0) return null
  const joined = operator === '=' ? 'and' : 'or'
  return rest.reduce((sum, next) => ({ kind: 'binary', operator: joined, left: sum, right: next, position }), first)
}

/** `(a, b) < (c, d)` as `a < c or (a = c and b < d)`. */
function orderedRows(
  left: readonly ast.Expression[],
  right: readonly ast.Expression[],
  operator: ast.BinaryOperator,
  position: number,
): ast.BinaryExpression | null {
  if (!['<', '<=', '>', '>='].includes(operator) || left.length < 2) return null
  if (left.length !== right.length) throw new SqlError('rows of different lengths cannot be compared', position)
  const strict = operator.charAt(0) as '<' | '>'
  const pair = (index: number, by: ast.BinaryOperator): ast.BinaryExpression => ({
    ...{ kind: 'binary', operator: by, position },
    ...{ left: left[index] as ast.Expression, right: right[index] as ast.Expression },
  })
  let sum = pair(left.length - 1, operator)
  for (let index = left.length - 2; index >= 0; index--) {
    const after: ast.BinaryExpression = {
      kind: 'binary',
      operator: 'and',
      left: pair(index, '='),
      right: sum,
      position,
    }
    sum = { kind: 'binary', operator: 'or', left: pair(index, strict), right: after, position }
  }
  return sum
}

/** `(a, b) in ((1, 2), (3, 4))` as `(a, b) = (1, 2) or (a, b) = (3, 4)`; null for anything else. */
function rowsIn({ operand, set, negated: isNegated, position }: ast.InExpression): ast.Expression | null {
  if (operand.kind !== 'list' || 'kind' in set || !set.every(({ kind }) => kind === 'list')) return null
  const [first, ...rest] = set.map(
    (right): ast.BinaryExpression => ({
      ...{ kind: 'binary', operator: isNegated ? '<>' : '=', left: operand, right, position },
    }),
  )
  const operator = isNegated ? 'and' : 'or'
  if (first === undefined) return null
  return rest.reduce<ast.Expression>((left, right) => ({ kind: 'binary', operator, left, right, position }), first)
}

function negated(operator: string, expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  if (operator === '~') return notMatching(expression, scope)
  const inner = bindBinary({ ...expression, operator: operator as ast.BinaryOperator }, scope)
  return scalarCall('not', [inner], expression.position, scope.context)
}

/** `!~` with a NULL pattern is false, as `~` is. */
function notMatching({ left, right, position }: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const sides = [left, right].map((side) => bindExpression(side, scope))
  const matches = scalarCall('~', sides, position, scope.context, '!~')
  if (sides[1] !== undefined && isUntypedNull(sides[1])) return matches
  return scalarCall('not', [matches], position, scope.context)
}

/** A chain of one operator is bound as a list, so that a thousand operands need no recursion. */
function bindLogic(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const values = chained(expression, expression.operator).map((operand) => bindExpression(operand, scope))
  if (isUnknown(expression.operator, values) && !startsMissing(values))
    return constantOf(null, dataType('STRING'), expression.position)
  const bound = values.map(booleanOperand)
  return joined(expression, expression.operator === 'or' ? gatherAlternatives(bound) : bound, scope)
}

/** The operands of a chain from left to right, however it is nested. */
function chained(expression: ast.Expression, operator: ast.BinaryOperator): ast.Expression[] {
  const operands: ast.Expression[] = []
  const open = [expression]
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (part.kind === 'binary' && part.operator === operator) open.push(part.right, part.left)
    else operands.push(part)
  }
  return operands
}

/** Long chains become balanced trees, so that code that recurses over them does not overflow the stack. */
function joined(chain: ast.BinaryExpression, values: readonly Expression[], scope: ExpressionScope): Expression {
  const join = (left: Expression, right: Expression): Expression =>
    scalarCall(chain.operator, [left, right], chain.position, scope.context)
  if (values.length <= 8) return values.slice(1).reduce(join, values[0] as Expression)
  const middle = values.length >>> 1
  return join(joined(chain, values.slice(0, middle), scope), joined(chain, values.slice(middle), scope))
}

/**
 * Whether the result is NULL because of a NULL literal among constants that do not decide, as in `true and null`. Two
 * NULLs make AND false.
 */
function isUnknown(operator: ast.BinaryOperator, values: readonly Expression[]): boolean {
  const missing = values.filter(isUntypedNull).length
  if (missing === 0 || (missing > 1 && operator === 'and')) return false
  return values.every(
    (value) => isUntypedNull(value) || (value.kind === 'constant' && value.value === (operator === 'and')),
  )
}

/** `null and true`: a NULL in front counts as false. */
function startsMissing([first, ...rest]: readonly Expression[]): boolean {
  return first !== undefined && isUntypedNull(first) && !rest.some(isUntypedNull)
}

export function booleanOperand(value: Expression): Expression {
  if (value.type.name === 'BOOLEAN') return value
  if (isUntypedNull(value)) return nullAs(value, dataType('BOOLEAN'), false)
  throw new SqlError(`expression type mismatch, expected: BOOLEAN, actual: ${typeName(value.type)}`, value.position)
}

function bindWithin({ left, right, position }: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(left, scope)
  if (value.type.name !== 'GEOHASH') {
    throw new SqlError(`expression type mismatch, expected: GEOHASH, actual: ${typeName(value.type)}`, value.position)
  }
  const areas = right.kind === 'list' ? right.elements : [right]
  const bound = areas.map((area) => bindExpression(area, scope))
  const other = bound.find(({ type }) => type.name !== 'GEOHASH')
  if (other !== undefined)
    throw new SqlError(`cannot compare GEOHASH with type ${typeName(other.type)}`, other.position)
  return scalarCall('within', [value, ...bound], position, scope.context)
}

function bindIsNull(
  { operand, negated: isNegated, position }: ast.IsNullExpression,
  scope: ExpressionScope,
): Expression {
  const value = bindExpression(operand, scope)
  const missing = constantOf(null, dataType('STRING'), position)
  return bindComparison(isNegated ? '<>' : '=', value, missing, position, scope.context)
}

/** Binds a condition of WHERE, ON or HAVING. */
export function bindCondition(expression: ast.Expression, scope: ExpressionScope): Expression {
  if (expression.kind === 'null') throw new SqlError('boolean expression expected', expression.position)
  const condition = bindExpression(withoutNot(expression), scope)
  if (condition.type.name === 'BOOLEAN') return condition
  if (isUntypedNull(condition)) return nullAs(condition, dataType('BOOLEAN'), false)
  // `on ('true')`, as Hasura writes it.
  const written = textOf(condition)
  if (written === 'true' || written === 'false')
    return constantOf(written === 'true', dataType('BOOLEAN'), condition.position)
  throw new SqlError('boolean expression expected', condition.position)
}
