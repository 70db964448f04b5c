// Overload resolution: chooses among the functions of one name by the types of the arguments. Each argument has a
// distance to the parameter type: 0 if they are equal, otherwise the place of the parameter type in a list of the
// implicit conversions of the argument's type, nearest first. The overload with the smallest sum of distances is
// chosen; among equals, the first in the table.

import { type ColumnType, type DataType, dataType } from '../../../types/column-types.js'
import { integerDigits, isText, isTime } from '../../../types/convert.js'
import type { TypePattern } from '../function-types.js'

/** Types as which constant strings are parsed. */
const fromText: readonly ColumnType[] = [
  'CHAR',
  'DOUBLE',
  'LONG',
  'INT',
  'FLOAT',
  'SHORT',
  'BYTE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
  'DATE',
  'SYMBOL',
  'IPv4',
  'UUID',
]

/** Implicit conversions of each type, nearest first. */
const widenings: Partial<Record<ColumnType, readonly ColumnType[]>> = {
  BYTE: ['SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL'],
  SHORT: ['INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL'],
  CHAR: ['STRING', 'VARCHAR', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'],
  INT: ['LONG', 'FLOAT', 'DOUBLE', 'DECIMAL', 'TIMESTAMP', 'DATE'],
  LONG: ['DOUBLE', 'DECIMAL', 'TIMESTAMP', 'TIMESTAMP_NS', 'DATE'],
  DATE: ['TIMESTAMP', 'LONG', 'DOUBLE'],
  TIMESTAMP: ['TIMESTAMP_NS', 'LONG', 'DATE', 'DOUBLE'],
  TIMESTAMP_NS: ['LONG', 'TIMESTAMP', 'DATE', 'DOUBLE'],
  FLOAT: ['DOUBLE'],
  DECIMAL: ['DOUBLE'],
  STRING: ['VARCHAR', ...fromText],
  SYMBOL: ['STRING', 'VARCHAR'],
  VARCHAR: ['STRING', ...fromText],
  UUID: ['STRING'],
  IPv4: ['STRING', 'VARCHAR'],
  LONG256: ['STRING'],
}

/** The properties of an argument on which resolution depends. */
export interface ResolvedArgument {
  readonly type: DataType
  /** An untyped NULL matches every type. */
  readonly isNull: boolean
  readonly isConstant: boolean
}

/** null: not convertible. 0: no conversion. */
export function distance({ type, isNull, isConstant }: ResolvedArgument, pattern: TypePattern): number | null {
  if (pattern === 'ANY') return 0
  if (isNull) return hasNoNull(pattern) ? 1 : 0
  if (pattern === 'TEXT') return isText(type) ? 0 : type.name === 'UUID' || type.name === 'IPv4' ? 20 : null
  if (pattern === 'TIME') return timeDistance(type, isConstant)
  if (type.name === pattern) return 0
  const index = widenings[type.name]?.indexOf(pattern) ?? -1
  if (index < 0) return null
  // String columns do not convert to numbers or timestamps, because one row that fails to parse would end the query.
  if (!isConstant && isText(type) && type.name !== 'CHAR' && !isTextName(pattern)) return null
  return pattern === 'DECIMAL' ? decimalDistance : index + 1
}

/** Larger than the distance between any other number types, so that integers prefer those to DECIMAL. */
const decimalDistance = 6

/** Types without NULL, for which an untyped NULL would become zero. */
function hasNoNull(pattern: TypePattern): boolean {
  return pattern === 'BYTE' || pattern === 'SHORT' || pattern === 'BOOLEAN'
}

function timeDistance(type: DataType, isConstant: boolean): number | null {
  if (isTime(type)) return 0
  if (type.name === 'DATE') return 1
  if (type.name === 'INT' || type.name === 'LONG') return 5
  return isText(type) && type.name !== 'CHAR' && isConstant ? 9 : null
}

function isTextName(name: ColumnType): boolean {
  return isText(dataType(name))
}

interface Row {
  readonly takes: readonly TypePattern[]
  readonly more?: TypePattern
  readonly typedOnly?: true
}

/** Cache of results by overloads and arguments, because long lists resolve the same call repeatedly. */
const chosen = new WeakMap<readonly Row[], Map<string, Row | undefined>>()
/** Few overloads are resolved as fast; calls with many arguments rarely repeat. */
const chosenRowsMin = 4
const chosenArgumentsMax = 4
const choicesMax = 1024

/** The best overload; undefined if none matches. */
export function bestOverload<R extends Row>(rows: readonly R[], args: readonly ResolvedArgument[]): R | undefined {
  if (rows.length < chosenRowsMin || args.length > chosenArgumentsMax) return nearestRow(rows, args)
  const choices = (chosen.get(rows) ?? new Map<string, R | undefined>()) as Map<string, R | undefined>
  if (choices.size === 0) chosen.set(rows, choices)
  const key = args.map(choiceKey).join()
  const known = choices.get(key)
  if (known !== undefined || choices.has(key)) return known
  const best = nearestRow(rows, args)
  if (choices.size >= choicesMax) choices.clear()
  choices.set(key, best)
  return best
}

function choiceKey({ type, isNull, isConstant }: ResolvedArgument): string {
  return `${type.name}${isNull ? '0' : ''}${isConstant ? '=' : ''}`
}

function nearestRow<R extends Row>(rows: readonly R[], args: readonly ResolvedArgument[]): R | undefined {
  let best: R | undefined
  let bestScore = Number.POSITIVE_INFINITY
  for (const row of rows) {
    const score = scoreOf(row, args)
    if (score !== null && score < bestScore) {
      best = row
      bestScore = score
    }
  }
  return best
}

function scoreOf(row: Row, args: readonly ResolvedArgument[]): number | null {
  if (args.length < row.takes.length || (args.length > row.takes.length && row.more === undefined)) return null
  if (row.typedOnly && args.some(({ isNull }) => isNull)) return null
  let score = 0
  for (const [index, argument] of args.entries()) {
    const step = distance(argument, patternAt(row, index))
    if (step === null) return null
    score += step
  }
  return score
}

export function patternAt(row: Row, index: number): TypePattern {
  return row.takes[index] ?? row.more ?? 'ANY'
}

/** The type to which an argument is converted for a parameter; null if it is not converted. */
export function targetType({ type, isNull }: ResolvedArgument, pattern: TypePattern): DataType | null {
  if (pattern === 'ANY') return null
  if (pattern === 'TEXT') return isText(type) ? null : dataType('STRING')
  if (pattern === 'TIME') return isTime(type) && !isNull ? null : dataType('TIMESTAMP')
  if (type.name === pattern && !isNull) return null
  if (pattern === 'DECIMAL' && isNull) return dataType('DECIMAL', 1)
  if (pattern === 'DECIMAL') return dataType('DECIMAL', integerDigits(type))
  if (pattern === 'GEOHASH') return type.name === 'GEOHASH' ? null : dataType('GEOHASH', 60)
  if (pattern === 'ARRAY') return type.name === 'ARRAY' ? null : dataType('ARRAY', 1)
  return dataType(pattern)
}
