// Expressions: names become columns, operators and functions become calls with the casts that they need. What needs no
// row is computed at once.

import { unreachable } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { dataType, sameType } from '../../types/column-types.js'
import { parseUuid } from '../../types/text.js'
import { typeName } from '../functions/compare.js'
import { castValue, isText, isTime } from '../functions/convert.js'
import type * as ast from '../parse/ast.js'
import type { AggregateCall, Expression, WindowCall } from '../plan/plan.js'
import type { BindContext } from './bind-context.js'
import { bindCall } from './call.js'
import { bindBetween, bindComparison, bindIn, bindQuantified } from './comparison.js'
import { bindLiteral, bindParameter } from './literal.js'
import { isConstant, scalarCall } from './make-call.js'
import { columnMissing, findInScope, type Scope } from './scope.js'
import { bindSubquery } from './subquery.js'
import { castTo, constantOf, convertTo, isUntypedNull, typeOfName, unify } from './types.js'

/** Where an expression stands, and what it may use there. */
export interface ExpressionScope {
  readonly context: BindContext
  readonly columns: Scope
  /** Names of select items that come before: `select price p, p * 2`. */
  readonly aliases?: ReadonlyMap<string, Expression>
  /** Collects aggregate calls; null where they are not allowed. */
  readonly aggregates: AggregateCall[] | null
  readonly windows: WindowCall[] | null
  readonly namedWindows?: ReadonlyMap<string, ast.WindowSpecification>
}

/** Calls of these names stand for an entry of the scope's collections until the select list is put together. */
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
      return bindLiteral(expression)
    case 'parameter':
      return bindParameter(expression, scope.context)
    case 'variable':
      throw SqlError.columnMissing(`@${expression.name}`, expression.position)
    case 'unary':
      return bindUnary(expression, scope)
    case 'binary':
      return bindBinary(expression, scope)
    case 'in':
      return bindIn(expression, scope)
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
      return bindSubquery(expression.query, 'scalar', scope.context)
    case 'exists':
      return scalarCall(
        'exists',
        [bindSubquery(expression.query, 'exists', scope.context)],
        expression.position,
        scope.context,
      )
    case 'star':
      throw new SqlError("'*' is not expected here", expression.position)
    case 'field':
      throw SqlError.columnMissing(expression.name, expression.position)
    case 'list':
      throw new SqlError('a list of values is not expected here', expression.position)
    default:
      return unreachable(expression)
  }
}

function bindColumn(column: ast.ColumnName, scope: ExpressionScope): Expression {
  const found = findInScope(scope.columns, column)
  if (found !== undefined) return { kind: 'column', index: found.index, type: found.type, position: column.position }
  const alias = column.path.length === 1 ? scope.aliases?.get((column.path[0] ?? '').toLowerCase()) : undefined
  if (alias !== undefined) return { ...alias, position: column.position }
  if (!column.quoted && column.path.length === 1 && column.path[0]?.toLowerCase() === 'current_timestamp') {
    return scalarCall('now', [], column.position, scope.context)
  }
  throw columnMissing(column)
}

function bindUnary({ operator, operand, position }: ast.UnaryExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(operand, scope)
  switch (operator) {
    case '+':
      return value
    case '-':
      return scalarCall('negate', [value], position, scope.context, '-')
    case '~':
      return scalarCall('~', [value], position, scope.context)
    case 'not': {
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

function bindBinary(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const { operator, position } = expression
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
    default:
      return scalarCall(
        operator,
        [bindExpression(expression.left, scope), bindExpression(expression.right, scope)],
        position,
        scope.context,
      )
  }
}

function negated(operator: string, expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const inner = bindBinary({ ...expression, operator: operator as ast.BinaryOperator }, scope)
  return scalarCall('not', [inner], expression.position, scope.context)
}

/** A chain of one operator becomes one list, so that a thousand of them need no thousand levels. */
function bindLogic(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const operands: ast.Expression[] = []
  let left: ast.Expression = expression
  while (left.kind === 'binary' && left.operator === expression.operator) {
    operands.push(left.right)
    left = left.left
  }
  operands.push(left)
  const bound = operands.reverse().map((operand) => booleanOperand(bindExpression(operand, scope)))
  return bound
    .slice(1)
    .reduce(
      (sum, next) => scalarCall(expression.operator, [sum, next], expression.position, scope.context),
      bound[0] as Expression,
    )
}

function booleanOperand(value: Expression): Expression {
  if (value.type.name === 'BOOLEAN') return value
  if (isUntypedNull(value)) return constantOf(false, dataType('BOOLEAN'), value.position)
  throw new SqlError(`expression type mismatch, expected: BOOLEAN, actual: ${typeName(value.type)}`, value.position)
}

function bindConcat(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const operands: ast.Expression[] = []
  let left: ast.Expression = expression
  while (left.kind === 'binary' && left.operator === '||') {
    operands.push(left.right)
    left = left.left
  }
  operands.push(left)
  return scalarCall(
    'concat',
    operands.reverse().map((operand) => bindExpression(operand, scope)),
    expression.position,
    scope.context,
  )
}

function bindWithin({ left, right, position }: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(left, scope)
  if (value.type.name !== 'GEOHASH') {
    throw new SqlError(`expression type mismatch, expected: GEOHASH, actual: ${typeName(value.type)}`, value.position)
  }
  const areas = right.kind === 'list' ? right.elements : [right]
  return scalarCall('within', [value, ...areas.map((area) => bindExpression(area, scope))], position, scope.context)
}

function bindIsNull(
  { operand, negated: isNegated, position }: ast.IsNullExpression,
  scope: ExpressionScope,
): Expression {
  const value = bindExpression(operand, scope)
  const missing = constantOf(null, dataType('STRING'), position)
  return bindComparison(isNegated ? '<>' : '=', value, missing, position, scope.context)
}

function bindCase({ operand, branches, otherwise, position }: ast.CaseExpression, scope: ExpressionScope): Expression {
  const subject = operand === null ? null : bindExpression(operand, scope)
  const conditions = branches.map(({ when }) => {
    const condition = bindExpression(when, scope)
    if (subject !== null) return bindComparison('=', subject, condition, when.position, scope.context)
    return booleanOperand(condition)
  })
  const values = branches.map(({ result }) => bindExpression(result, scope))
  const rest = otherwise === null ? null : bindExpression(otherwise, scope)
  const type = unify(rest === null ? values : [...values, rest], '')
  const args = conditions.flatMap((condition, index) => [condition, convertTo(values[index] as Expression, type)])
  if (rest !== null) args.push(convertTo(rest, type))
  return scalarCall('case', args, position, scope.context)
}

function bindCast(expression: ast.CastExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(expression.operand, scope)
  const type = castType(expression, scope.context.sql)
  if (value.kind === 'constant' && typeof value.value === 'string') checkTextCast(value.value, value, type)
  if (value.type.name === 'GEOHASH' && type.name === 'GEOHASH' && value.type.a < type.a && value.kind !== 'constant') {
    throw new SqlError(
      `there is no matching function \`cast\` with the argument types: (${typeName(value.type)})`,
      expression.position,
    )
  }
  if (isConstant(value)) return constantOf(castValue(value.value, value.type, type), type, value.position)
  return sameType(value.type, type) ? value : castTo(value, type)
}

/** `x::float` means DOUBLE, as in PostgreSQL; cast(x as float) means FLOAT. */
function castType({ type, position }: ast.CastExpression, sql: string): ReturnType<typeof dataType> {
  if (type.name === 'float' && type.dimensions === 0 && sql.startsWith('::', position)) return dataType('DOUBLE')
  const found = typeOfName(type)
  if (found === undefined) throw new SqlError(`invalid constant: ${type.name}`, type.position)
  return found
}

/** Literals of one character convert or are an error; so do UUIDs. */
function checkTextCast(text: string, value: Expression, type: ReturnType<typeof dataType>): void {
  if (type.name === 'UUID' && parseUuid(text) === null) throw new SqlError('invalid UUID constant', value.position)
  const needsDigit = ['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE'].includes(type.name) || isTime(type)
  if (value.type.name === 'CHAR' && needsDigit && !/^\d$/.test(text)) {
    throw new SqlError(`inconvertible value: ${text} [CHAR -> ${type.name}]`, value.position)
  }
}

function bindArray({ elements, position }: ast.ArrayLiteral, scope: ExpressionScope): Expression {
  const bound = elements.map((element) => bindExpression(element, scope))
  const numbers = bound.some((element) => element.type.name === 'ARRAY')
    ? bound
    : bound.map((element) => convertTo(element, dataType('DOUBLE')))
  if (numbers.some((element) => isText(element.type))) throw new SqlError('array elements must be numbers', position)
  return scalarCall('array', numbers, position, scope.context)
}

function bindSubscript({ operand, indexes, position }: ast.Subscript, scope: ExpressionScope): Expression {
  const value = bindExpression(operand, scope)
  if (value.type.name !== 'ARRAY')
    throw new SqlError('there is no matching function `[]` with the argument types: not an array', position)
  const bound = indexes.map((index) => {
    if (index.kind === 'slice') throw new SqlError('array slices are not supported', index.position)
    return convertTo(bindExpression(index, scope), dataType('INT'))
  })
  if (bound.length > value.type.a) throw new SqlError('too many array access arguments', position)
  return scalarCall('array_element', [value, ...bound], position, scope.context)
}

/** A condition of WHERE, ON or HAVING. */
export function bindCondition(expression: ast.Expression, scope: ExpressionScope): Expression {
  const condition = bindExpression(expression, scope)
  if (condition.type.name === 'BOOLEAN') return condition
  if (isUntypedNull(condition)) return constantOf(false, dataType('BOOLEAN'), condition.position)
  throw new SqlError('boolean expression expected', condition.position)
}
