// Describes a prepared statement: the types of its parameters and result columns. The statement is bound with NULL for
// each parameter, and binding records the type that it infers for each of them. A statement that rejects NULL is bound
// with sample values instead.

import type { Description, ParsedStatement, Validation } from '../../api/statements.js'
import { SqlError } from '../../base/errors.js'
import { parametersMax } from '../../base/limits.js'
import { type DataType, dataType, isLabels, pgOidOf, textKinds } from '../../types/column-types.js'
import { isNumber, isText } from '../../types/convert.js'
import { arrayOidOf, typeOfOid, oids as wireOids } from '../../types/pg-oids.js'
import type { Parameter } from '../catalog.js'
import { advance, openCursor, tokenText } from '../parse/cursor.js'
import type { ParameterSlot } from '../plan/plan.js'

/** `oids` are the declared types of $1, $2, ...; 0 if not declared. A parameter without an inferred type is text. */
export function describeStatement(
  parsed: ParsedStatement,
  oids: readonly number[],
  plan: (parameters: readonly Parameter[]) => Validation,
): Description {
  const count = Math.max(oids.length, parameterCount(parsed))
  const slots = Array.from({ length: count }, (_, index): ParameterSlot => {
    const oid = oids[index] ?? 0
    return { type: typeOfOid(oid), ...(oid === 0 ? {} : { oid }) }
  })
  const parameters = slots.map((slot): Parameter => ({ value: null, type: slot.type ?? dataType('STRING'), slot }))
  try {
    return described(plan(parameters), slots, oids)
  } catch (error) {
    return describedWithSamples(slots, oids, plan) ?? rethrow(error)
  }
}

function described(validation: Validation, slots: readonly ParameterSlot[], oids: readonly number[]): Description {
  const parameters = slots.map(({ type, isList, oid }, index) => {
    const found = requested(type ?? dataType('STRING'))
    const wanted = isList === true ? arrayOidOf(found) : (oid ?? pgOidOf(found))
    const read = wanted === wireOids.oid ? (typeOfOid(wanted) ?? found) : found
    return { type: isList === true ? dataType('STRING') : read, oid: oids[index] || wanted }
  })
  return { ...validation, parameters }
}

/** Lists of enumeration labels are described as lists of text, which all clients know. */
function requested(type: DataType): DataType {
  return isLabels(type) ? dataType('STRING', textKinds.strings) : type
}

/**
 * Fallback for statements that reject NULL, such as long_sequence($1): binds them with a number, then with a string,
 * for parameters of unknown type.
 */
function describedWithSamples(
  slots: readonly ParameterSlot[],
  oids: readonly number[],
  plan: (parameters: readonly Parameter[]) => Validation,
): Description | null {
  for (const sample of samples) {
    const parameters = slots.map(({ type }): Parameter => (type === null ? sample : sampleOf(type)))
    try {
      return described(plan(parameters), parameters, oids)
    } catch (error) {
      if (!(error instanceof SqlError)) throw error
    }
  }
  return null
}

function sampleOf(type: DataType): Parameter {
  const value = type.name === 'LONG' ? 1n : isNumber(type) && type.name !== 'DECIMAL' ? 1 : isText(type) ? '1' : null
  return { value, type }
}

const samples: readonly Parameter[] = [
  { value: 1n, type: dataType('LONG') },
  { value: '1', type: dataType('STRING') },
]

function rethrow(error: unknown): never {
  throw error
}

/** The highest parameter number in the statement. */
function parameterCount(parsed: ParsedStatement): number {
  const { text, start, end } = parsed
  const statement = text.slice(start, end)
  if (!/[$?]/.test(statement)) return 0
  const cursor = openCursor(statement)
  let count = 0
  let unnamed = 0
  for (; cursor.kind !== 'end'; advance(cursor)) {
    if (cursor.kind !== 'parameter') continue
    const token = tokenText(cursor)
    count = Math.max(count, token === '?' ? ++unnamed : Number(token.slice(1)) || 0)
    if (count > parametersMax)
      throw new SqlError(`too many parameters [max=${parametersMax}]`, parsed.start + cursor.start)
  }
  return count
}
