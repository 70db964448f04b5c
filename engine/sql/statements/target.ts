// Rows on their way into columns of a table: conversions to the columns' types, with the errors of INSERT.

import { SqlError } from '../../base/errors.js'
import { type DataType, sameType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Relation } from '../bind/scope.js'
import { castTo, constantOf, isUntypedNull, learnType } from '../bind/types.js'
import { typeName } from '../functions/compare.js'
import {
  convertValue,
  displayText,
  inconvertibleText,
  isAssignable,
  isNumber,
  isText,
  nullOf,
} from '../functions/convert.js'
import type { Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { TargetColumn } from './planned.js'

/** A query's columns, in order, as the target's. `positions`: where to report each, or one place for all. */
export function targetProjection(
  { plan }: Relation,
  targets: readonly TargetColumn[],
  positions: readonly number[],
): Plan {
  const columns: PlanColumn[] = targets.map(({ name, type }) => ({ name, type }))
  if (plan.columns.every(({ type }, index) => sameType(type, targets[index]?.type ?? type))) return plan
  const expressions = plan.columns.map(({ type, name }, index): Expression => {
    const target = targets[index]
    const position = positions[index] ?? positions[0] ?? 0
    const column: Expression = { kind: 'column', index, type, position }
    if (target === undefined || sameType(type, target.type)) return column
    if (isNullConstant(plan, index, target.type)) return constantOf(nullOf(target.type), target.type, position)
    const fits = isAssignable(type, target.type) && (type.name !== 'SYMBOL' || isText(target.type))
    if (!fits) throw inconvertibleTypes(type, target.type, name, target.name, position)
    const checked = (isText(type) && !isText(target.type)) || (isNumber(type) && isNumber(target.type))
    return checked ? ({ ...castTo(column, target.type), name: 'convert' } as Expression) : castTo(column, target.type)
  })
  return { kind: 'project', columns, input: plan, expressions }
}

/** A parameter in its place learns the type. */
function isNullConstant(plan: Plan, index: number, type: DataType): boolean {
  const made = plan.kind === 'project' ? plan.expressions[index] : undefined
  if (made === undefined || !isUntypedNull(made)) return false
  learnType(made, type)
  return true
}

export function inconvertibleTypes(
  from: DataType,
  to: DataType,
  shown: string,
  column: string,
  position: number,
): SqlError {
  return new SqlError(
    `inconvertible types: ${typeName(from)} -> ${typeName(to)} [from=${shown}, to=${column}]`,
    position,
  )
}

/** One constant as a value of a column. */
export function columnValue(
  value: Value,
  from: DataType,
  target: TargetColumn,
  position: number,
  tuple: number,
): Value {
  if (value === null) return nullOf(target.type)
  if (sameType(from, target.type)) return value
  if (!isAssignable(from, target.type))
    throw inconvertibleTypes(from, target.type, displayText(value, from), target.name, position)
  const converted = convertValue(value, from, target.type)
  if (converted !== undefined) return converted
  const suffix = target.type.name === 'TIMESTAMP' || target.type.name === 'TIMESTAMP_NS' ? ` tuple: ${tuple}` : ''
  throw new SqlError(inconvertibleText(value, from, target.type) + suffix, position)
}
