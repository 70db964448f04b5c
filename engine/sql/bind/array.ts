// Binds array constructors, subscripts and slices. Arrays of numbers are ARRAYs of doubles; other elements make a list,
// which is a string of the form `{a,b}`. Subscripts of JSON are bound here, too.

import { SqlError } from '../../base/errors.js'
import { arrayDimensionsMax } from '../../base/limits.js'
import {
  arrayElementType,
  arrayTypeOf,
  type DataType,
  dataType,
  elementType,
  isCatalogName,
  isDay,
  isJson,
  isVector,
  listTypeOf,
  textKinds,
} from '../../types/column-types.js'
import { displayText, isNumber, isText } from '../../types/convert.js'
import { textArray } from '../../types/text-lists.js'
import type * as ast from '../ast/ast.js'
import { sliceIndexMark, sliceOpenEnd } from '../functions/array-slice.js'
import { joinedArrays } from '../functions/arrays.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { isConstant, scalarCall } from '../typing/make-call.js'
import { noMatch } from '../typing/mismatch.js'
import { constantOf, convertTo, isUntypedNull } from '../typing/types.js'
import { asText } from './catalog-calls.js'
import { bindExpression, type ExpressionScope } from './expression.js'

const indexType: DataType = dataType('INT')

/** Types that cannot be an index. */
const noIndexes: ReadonlySet<string> = new Set(['FLOAT', 'DOUBLE', 'DECIMAL', 'BOOLEAN'])

export function bindArray({ elements, position }: ast.ArrayLiteral, scope: ExpressionScope): Expression {
  if (elements.length === 0)
    return constantOf({ shape: [0], data: new Float64Array(0) }, dataType('ARRAY', 1), position)
  const bound = elements.map((element) => bindExpression(element, scope))
  checkElements(elements, bound)
  const known = arrayOfConstants(bound, position)
  const types = bound.filter((element) => !isUntypedNull(element)).map(({ type }) => numberOf(type))
  if (known !== null) return withElements(known, types, scope.context)
  if (bound.some(({ type }) => type.name === 'ARRAY'))
    return withElements(scalarCall('array', bound, position, scope.context), types, scope.context)
  if (bound.some((element, index) => isListed(element) || isGivenText(element, elements[index])))
    return bindTextList(
      bound.map((element) => (isDay(element.type) ? asText(element, scope.context) : element)),
      position,
      scope,
      commonList(bound),
    )
  const numbers = bound.map((element) => convertTo(element, dataType('DOUBLE')))
  return withElements(scalarCall('array', numbers, position, scope.context), types, scope.context)
}

/** Marks an array of doubles with the element type that clients of PostgreSQL expect. */
export function withElements(array: Expression, elements: readonly DataType[], { dialect }: BindContext): Expression {
  if (!dialect.typedArrays || array.type.name !== 'ARRAY' || elements.length === 0) return array
  const types = elements.map((element) => arrayTypeOf(element, array.type.a))
  const isWhole = types.every(({ b }) => b > 0)
  const kind = types.reduce((most, { b }) => Math.max(most, b), 0)
  return isWhole ? { ...array, type: dataType('ARRAY', array.type.a, kind) } : array
}

/** The numeric type that an element contributes: its own, or the element type of a nested array. */
function numberOf(type: DataType): DataType {
  return type.name === 'ARRAY' ? arrayElementType(type) : type
}

/** An element of an array, in the element's type. */
export function elementOfArray(
  array: Expression,
  indexes: readonly Expression[],
  position: number,
  context: BindContext,
): Expression {
  const element = scalarCall('array_element', [array, ...indexes], position, context)
  return element.type.name === 'ARRAY' ? element : convertTo(element, arrayElementType(array.type))
}

/** The list type for the elements' common type, or a list of strings. */
function commonList(elements: readonly Expression[]): DataType {
  const [first, ...more] = elements.filter((element) => !isUntypedNull(element)).map(({ type }) => listTypeOf(type))
  const isCommon = first !== undefined && more.every(({ a }) => a === first.a)
  return isCommon ? first : dataType('STRING', textKinds.strings)
}

/**
 * An array of constant elements, built now. A call with hundreds of thousands of arguments would take a second to bind.
 * Null if an element is not constant.
 */
function arrayOfConstants(bound: readonly Expression[], position: number): Expression | null {
  const known = bound.filter(isKnown)
  const [first] = known
  if (first === undefined || known.length < bound.length) return null
  if (known.every(({ type, value }) => plainNumbers.has(type.name) && type.a === 0 && value !== null)) {
    const data = Float64Array.from(known, ({ value }) => Number(value))
    return constantOf({ shape: [data.length], data }, dataType('ARRAY', 1), position)
  }
  const joined = joinedArrays(known.map(({ value }) => value))
  if (joined === null || joined.shape.length > arrayDimensionsMax) return null
  return constantOf(joined, dataType('ARRAY', joined.shape.length), position)
}

/** Numeric types whose constants can be stored without conversion. */
const plainNumbers: ReadonlySet<string> = new Set(['INT', 'LONG', 'DOUBLE'])

type Constant = Extract<Expression, { kind: 'constant' }>

function isKnown(element: Expression): element is Constant {
  return element.kind === 'constant' && element.parameter === undefined && element.deferred === undefined
}

/** Whether the element is not numeric, so that the array becomes a list. */
function isListed(element: Expression): boolean {
  return !isUntypedNull(element) && !isNumber(element.type) && element.type.name !== 'LONG256'
}

/** Whether the element was cast to a string type, even if it is a parameter without a value. */
function isGivenText({ type }: Expression, written: ast.Expression | undefined): boolean {
  return written?.kind === 'cast' && isText(type)
}

/** Throws unless all elements are arrays of one shape, or none is an array. */
function checkElements(elements: readonly ast.Expression[], bound: readonly Expression[]): void {
  const [first] = bound
  const shape = shapeOf(elements[0])
  for (const [index, element] of bound.entries()) {
    if ((element.type.name === 'ARRAY') !== (first?.type.name === 'ARRAY'))
      throw new SqlError('mixed array and non-array elements', element.position)
    if (shapeOf(elements[index]) !== shape) throw new SqlError("array shapes don't match", element.position)
  }
}

/** The shape as written: `[[1, 2], [3, 4]]` has `2,2`. */
function shapeOf(element: ast.Expression | undefined): string {
  return element?.kind === 'array' ? `${element.elements.length},${shapeOf(element.elements[0])}` : ''
}

/** The elements as a list, in the form of a string. */
export function bindTextList(
  elements: readonly Expression[],
  position: number,
  { context }: ExpressionScope,
  type = dataType('STRING', textKinds.strings),
): Expression {
  if (elements.every(isConstant)) {
    const strings = elements.map(({ value, type }) => (value === null ? null : displayText(value, type)))
    return constantOf(textArray(strings), type, position)
  }
  return { ...scalarCall('text_list', elements, position, context), type }
}

export function bindSubscript({ operand, indexes, position }: ast.Subscript, scope: ExpressionScope): Expression {
  const value = bindExpression(operand, scope)
  if (isJson(value.type)) return bindMembers(value, indexes, position, scope)
  if (value.type.name !== 'ARRAY') return bindListElement(value, indexes, position, scope)
  const dimensions = value.type.a
  const further = indexes[dimensions - 1]
  if (indexes.length > dimensions && further !== undefined)
    throw new SqlError(
      `too many array access arguments [nDims=${dimensions}, nArgs=${indexes.length}]`,
      further.position,
    )
  if (indexes.some(({ kind }) => kind === 'slice')) return bindSlice(value, indexes, position, scope)
  const written = indexes.map((index) => bindExpression(index as ast.Expression, scope))
  if (written.some(({ type }) => noIndexes.has(type.name))) throw noMatch('[]', [value, ...written], position)
  const bound = written.map((index) => convertTo(index, indexType))
  bound.forEach((index, dimension) => {
    if (isConstant(index) && index.value === 0)
      throw new SqlError(`array index must be non-zero [dim=${dimension + 1}, index=0]`, index.position)
  })
  return elementOfArray(value, bound, position, scope.context)
}

/** `json['a'][0]` becomes `json -> 'a' -> 0`. */
function bindMembers(
  value: Expression,
  indexes: readonly (ast.Expression | ast.Slice)[],
  position: number,
  scope: ExpressionScope,
): Expression {
  return indexes.reduce<Expression>((found, index) => {
    if (index.kind === 'slice') throw new SqlError('jsonb subscript does not support slices', index.position)
    return scalarCall('json_get', [found, bindExpression(index, scope)], position, scope.context)
  }, value)
}

/** An element of a list. A catalog column that holds a single number instead of a list yields that number. */
function bindListElement(
  value: Expression,
  indexes: readonly (ast.Expression | ast.Slice)[],
  position: number,
  scope: ExpressionScope,
): Expression {
  const [index, ...more] = indexes
  if (index?.kind === 'slice' && more.length === 0 && isText(value.type)) {
    const bounds = sliceBounds(index, position, scope, (bound) => placeIn(value, bound, scope))
    return scalarCall('list_slice', [value, ...bounds], position, scope.context)
  }
  if (index === undefined || index.kind === 'slice' || more.length > 0)
    throw new SqlError('there is no matching function `[]` with the argument types: not an array', position)
  const bound = convertTo(bindExpression(index, scope), indexType)
  if (value.type.name === 'INT' || value.type.name === 'SHORT') return value
  if (!isText(value.type)) throw noMatch('[]', [value, bound], position)
  const element = scalarCall('list_element', [value, placeIn(value, bound, scope)], position, scope.context)
  const type = elementType(value.type)
  if (isCatalogName(type)) return { ...element, type }
  return isText(type) ? element : { kind: 'call', name: 'cast', args: [element], type, position }
}

/** The index counted from 1; vectors of the catalog (`1 2`) count from 0. */
function placeIn(list: Expression, index: Expression, { context }: ExpressionScope): Expression {
  const first = firstIndex(list, index.position, context)
  if (first === null) return index
  const one = constantOf(1, indexType, index.position)
  const after = scalarCall('-', [index, first], index.position, context)
  return convertTo(scalarCall('+', [after, one], index.position, context), indexType)
}

/** The index of the first element; null if it is 1. */
export function firstIndex(list: Expression, position: number, context: BindContext): Expression | null {
  if (!isVector(list.type)) return null
  return scalarCall('array_lower', [list, constantOf(1, indexType, position)], position, context)
}

/** Binds a slice. Each dimension has two bounds; for a plain index the second one is a marker. */
function bindSlice(
  value: Expression,
  indexes: readonly (ast.Expression | ast.Slice)[],
  position: number,
  scope: ExpressionScope,
): Expression {
  const bounds = indexes.flatMap((index) =>
    index.kind === 'slice'
      ? sliceBounds(index, position, scope)
      : [convertTo(bindExpression(index, scope), indexType), constantOf(sliceIndexMark, indexType, index.position)],
  )
  return scalarCall('array_slice', [value, ...bounds], position, scope.context)
}

function sliceBounds(
  { low, high }: ast.Slice,
  position: number,
  scope: ExpressionScope,
  placed = (bound: Expression): Expression => bound,
): [Expression, Expression] {
  const bound = (expression: ast.Expression | null, otherwise: number): Expression =>
    expression === null
      ? constantOf(otherwise, indexType, position)
      : placed(convertTo(bindExpression(expression, scope), indexType))
  return [bound(low, 1), bound(high, sliceOpenEnd)]
}

/** `(_pg_expandarray(i.indkey)).n`: a field of the composite of an element and its index. */
export function bindField({ operand, name, position }: ast.FieldAccess, scope: ExpressionScope): Expression {
  const value = bindExpression(operand, scope)
  const part = name.toLowerCase() === 'x' ? 1 : name.toLowerCase() === 'n' ? 2 : 0
  if (isText(value.type) && part > 0) {
    const pair = scalarCall(
      'list_pair_part',
      [convertTo(value, dataType('STRING')), constantOf(part, indexType, position)],
      position,
      scope.context,
    )
    return { kind: 'call', name: 'cast', args: [pair], type: indexType, position }
  }
  throw SqlError.columnMissing(name, position)
}
