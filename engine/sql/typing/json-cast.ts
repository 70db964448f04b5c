// Casts values extracted from JSON, by json_extract() or UNNEST(.. COLUMNS ..), to SQL types. A JSON number may become
// an integer, which drops its fraction, and a timestamp may be a JSON string or a number.

import { type DataType, dataType, sameType } from '../../types/column-types.js'
import { castValue, isTime } from '../../types/convert.js'
import type { Expression } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { isConstant, scalarCall } from './make-call.js'
import { castTo, constantOf } from './types.js'

export const wholeTypes: readonly string[] = ['BYTE', 'SHORT', 'INT', 'LONG']

/** Casts a JSON number to an integer, dropping the fraction, or to a timestamp; null for other types. */
export function castOfJson(json: Expression, type: DataType, context: BindContext): Expression | null {
  const through = (source: Expression, to: DataType): Expression =>
    isConstant(source) ? constantOf(castValue(source.value, source.type, to), to, json.position) : castTo(source, to)
  const firstOf = (...parts: readonly Expression[]): Expression => scalarCall('coalesce', parts, json.position, context)
  const integer = (to: DataType): Expression =>
    firstOf(through(json, to), through(through(json, dataType('DOUBLE')), to))
  if (isTime(type) || type.name === 'DATE') {
    return firstOf(through(json, type), through(integer(dataType('LONG')), type))
  }
  if (!wholeTypes.includes(type.name)) return null
  const wide = integer(dataType(type.name === 'LONG' ? 'LONG' : 'INT'))
  return sameType(wide.type, type) ? wide : through(wide, type)
}
