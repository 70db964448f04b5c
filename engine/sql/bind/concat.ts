// Binds `||`, which concatenates strings, JSON, arrays of doubles, or lists (other arrays of PostgreSQL, represented as
// strings), depending on the types of the operands. Also binds `json - key`, which removes members from JSON.

import {
  arrayElementType,
  type DataType,
  dataType,
  isJson,
  isJsonb,
  isList,
  textKinds,
} from '../../types/column-types.js'
import { isNumber } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { treeOfJson } from '../functions/json/json-extract.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { arrayAsList } from '../typing/lists.js'
import { scalarCall, textOf } from '../typing/make-call.js'
import { convertTo, isUntypedNull } from '../typing/types.js'
import { withElements } from './array.js'
import { shownArguments } from './catalog-calls.js'
import { bindExpression, type ExpressionScope } from './expression.js'

const textType = dataType('STRING')

export function bindConcat(expression: ast.BinaryExpression, scope: ExpressionScope): Expression {
  const { context } = scope
  const { position } = expression
  const written: ast.Expression[] = []
  let left: ast.Expression = expression
  while (left.kind === 'binary' && left.operator === '||') {
    written.push(left.right)
    left = left.left
  }
  written.push(left)
  const operands = written.reverse().map((operand) => bindExpression(operand, scope))
  if (areJson(operands))
    return operands.reduce((joined, operand) => scalarCall('jsonb_concat', [joined, operand], position, context))
  if (operands.some(({ type }) => isList(type)))
    return operands.reduce((list, operand) => joinedLists(list, operand, position, context))
  if (areNumbers(operands)) return operands.reduce((array, operand) => joinedArrays(array, operand, position, context))
  return scalarCall('concat', shownArguments(operands, context), position, context)
}

/** Whether the operands are arrays and numbers. Beside strings an array is formatted as text. */
function areNumbers(operands: readonly Expression[]): boolean {
  const hasArray = operands.some(({ type }) => type.name === 'ARRAY')
  return hasArray && operands.every(({ type }) => isVector(type) || isNumber(type))
}

function isVector({ name, a }: DataType): boolean {
  return name === 'ARRAY' && a === 1
}

function joinedArrays(left: Expression, right: Expression, position: number, context: BindContext): Expression {
  const name = !isVector(left.type) ? 'array_prepend' : isVector(right.type) ? 'array_cat' : 'array_append'
  const elements = [left, right].map(({ type }) => (isVector(type) ? arrayElementType(type) : type))
  return withElements(scalarCall(name, [left, right], position, context), elements, context)
}

/** Whether one operand is jsonb and the others are JSON or strings. */
function areJson(operands: readonly Expression[]): boolean {
  return (
    operands.some(({ type }) => isJsonb(type)) && operands.every((operand) => isJson(operand.type) || isText(operand))
  )
}

function isText(operand: Expression): boolean {
  const text = textOf(operand)
  return text !== undefined && treeOfJson(text) !== null
}

function joinedLists(left: Expression, right: Expression, position: number, context: BindContext): Expression {
  if (isUntypedNull(left) || isUntypedNull(right)) return isUntypedNull(left) ? right : left
  const { type } = isList(left.type) ? left : right
  const isArray = [left, right].some((operand) => operand.type.name === 'ARRAY')
  if (isArray) {
    const [one, other] = [left, right].map((side) =>
      side.type.name === 'ARRAY' ? arrayAsList(side, type, context) : side,
    )
    return scalarCall('array_cat', [one as Expression, other as Expression], position, context)
  }
  const lists = [left, right].map(isListed)
  if (lists[0] && lists[1]) return scalarCall('array_cat', [left, right], position, context)
  if (lists[0]) return scalarCall('array_append', [left, convertTo(right, textType)], position, context)
  if (lists[1]) return scalarCall('array_prepend', [convertTo(left, textType), right], position, context)
  return scalarCall('concat', [left, right], position, context)
}

function isListed(operand: Expression): boolean {
  return isList(operand.type) || textOf(operand)?.startsWith('{') === true
}

/** `json - 'name'`, `json - 2`, `json - '{a,b}'::text[]`; null for any other difference. */
export function withoutParts(
  json: Expression,
  parts: Expression,
  position: number,
  context: BindContext,
): Expression | null {
  if (!isJsonb(json.type)) return null
  const part = isNumber(parts.type) || isNames(parts.type) ? parts : convertTo(parts, textType)
  return scalarCall('jsonb_delete', [json, part], position, context)
}

function isNames({ name, a }: DataType): boolean {
  return name === 'STRING' && a === textKinds.strings
}
