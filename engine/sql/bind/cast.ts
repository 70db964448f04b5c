// Casts: `a::int` and cast(a as int). Constants are cast at once.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, sameType } from '../../types/column-types.js'
import { parseUuid } from '../../types/text.js'
import { typeName } from '../functions/compare.js'
import { castValue, isText, isTime } from '../functions/convert.js'
import type * as ast from '../parse/ast.js'
import type { Expression } from '../plan/plan.js'
import { relationOid } from '../statements/pg-rows.js'
import type { BindContext } from './bind-context.js'
import { bindExpression, type ExpressionScope } from './expression.js'
import { isConstant } from './make-call.js'
import { castTo, constantOf, typeOfName } from './types.js'

export function bindCast(expression: ast.CastExpression, scope: ExpressionScope): Expression {
  const value = bindExpression(expression.operand, scope)
  if (expression.type.name === 'regclass') return castToRelation(value, scope.context)
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

/** `'pg_class'::regclass`: the oid of a relation. What is no constant is an oid already. */
function castToRelation(value: Expression, context: BindContext): Expression {
  const type = dataType('INT')
  if (!isConstant(value)) return sameType(value.type, type) ? value : castTo(value, type)
  if (!isText(value.type) || value.value === null || /^\d+$/.test(String(value.value)))
    return constantOf(castValue(value.value, value.type, type), type, value.position)
  const oid = relationOid(String(value.value), context)
  if (oid === undefined) throw SqlError.tableMissing(String(value.value), value.position)
  context.cacheable = false
  return constantOf(oid, type, value.position)
}

/** `x::float` means DOUBLE, as in PostgreSQL; cast(x as float) means FLOAT. */
function castType({ type, position }: ast.CastExpression, sql: string): DataType {
  if (type.name === 'float' && type.dimensions === 0 && sql.startsWith('::', position)) return dataType('DOUBLE')
  const found = typeOfName(type)
  if (found === undefined) throw new SqlError(`invalid constant: ${type.name}`, type.position)
  return found
}

/** Literals of one character convert or are an error; so do UUIDs. */
function checkTextCast(text: string, value: Expression, type: DataType): void {
  if (type.name === 'UUID' && parseUuid(text) === null) throw new SqlError('invalid UUID constant', value.position)
  const needsDigit = ['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE'].includes(type.name) || isTime(type)
  if (value.type.name === 'CHAR' && needsDigit && !/^\d$/.test(text)) {
    throw new SqlError(`inconvertible value: ${text} [CHAR -> ${type.name}]`, value.position)
  }
}
