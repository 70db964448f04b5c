// What a statement is before its parameters have values: each stands in it as a NULL that learns the type that is wanted.

import type { Description, ParsedStatement, Validation } from '../../api/statements.js'
import { SqlError } from '../../base/errors.js'
import { parametersMax } from '../../base/limits.js'
import { type DataType, dataType, isLabels, pgOidOf, textKinds } from '../../types/column-types.js'
import { isNumber, isText } from '../../types/convert.js'
import { arrayOidOf, typeOfOid, oids as wireOids } from '../../types/pg-oids.js'
import type { Parameter } from '../catalog.js'
import { advance, openCursor, tokenText } from '../parse/cursor.js'
import type { ParameterSlot } from '../plan/plan.js'

/** `oids` of $1, $2, ...; 0 where nobody has said. What nothing is wanted of is text. */
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
    const found = asked(type ?? dataType('STRING'))
    const wanted = isList === true ? arrayOidOf(found) : (oid ?? pgOidOf(found))
    const read = wanted === wireOids.oid ? (typeOfOid(wanted) ?? found) : found
    return { type: isList === true ? dataType('STRING') : read, oid: oids[index] || wanted }
  })
  return { ...validation, parameters }
}

/** Lists of labels are handed over as those of texts, which every client knows. */
function asked(type: DataType): DataType {
  return isLabels(type) ? dataType('STRING', textKinds.texts) : type
}

/** Where a NULL cannot stand, as in long_sequence($1): with numbers, then with texts in place of what is not known. */
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

/** The highest number of a parameter in the statement. */
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
