// Functions that make rows of a text: of the elements and members of JSON, of the pieces of a text, of the matches of a
// regular expression.

import { type DataType, dataType, textKinds } from '../../types/column-types.js'
import { isText } from '../functions/convert.js'
import { textsType } from '../functions/text-lists.js'
import type { Expression } from '../plan/plan.js'
import { asInt, type ExpandedColumn, type Expander, elementOf, lengthOf } from './expanders.js'
import { scalarCall } from './make-call.js'
import { noMatch } from './mismatch.js'
import { isUntypedNull } from './types.js'

/** A column of a function of functions/json-parts.ts: `asText` is what its JSON says. */
interface JsonColumn {
  readonly name: string
  readonly part: string
  readonly type: DataType | null
  readonly asText?: true
  /** A function that gives one column without a name calls it by itself. */
  readonly unnamed?: true
}

function ofJson(count: string, parts: readonly JsonColumn[]): Expander {
  return (args, call, context) => {
    const [text, ...more] = args
    if (text === undefined || more.length > 0 || !(isText(text.type) || isUntypedNull(text)))
      throw noMatch(call.name, args, call.position)
    const valueAt =
      ({ part, type, asText }: JsonColumn) =>
      (place: Expression): Expression => {
        const value = scalarCall(part, [text, asInt(place)], call.position, context)
        if (asText) return scalarCall('json_text', [value], call.position, context)
        return type === null ? value : { ...value, type }
      }
    const columns = parts.map((part): ExpandedColumn => {
      const column = { name: part.name, value: valueAt(part) }
      return part.unnamed ? column : { ...column, keepsName: true }
    })
    return { count: scalarCall(count, [text], call.position, context), columns }
  }
}

function jsonExpanders(kind: 'json' | 'jsonb'): Readonly<Record<string, Expander>> {
  const type = dataType('STRING', textKinds[kind])
  const element = { name: 'value', part: 'json_element', type }
  const key = { name: 'key', part: 'json_member_name', type: null }
  const value = { name: 'value', part: 'json_member', type }
  const keys = `${kind}_object_keys`
  return {
    [`${kind}_array_elements`]: ofJson('json_element_count', [element]),
    [`${kind}_array_elements_text`]: ofJson('json_element_count', [{ ...element, asText: true }]),
    [`${kind}_each`]: ofJson('json_member_count', [key, value]),
    [`${kind}_each_text`]: ofJson('json_member_count', [key, { ...value, asText: true }]),
    [keys]: ofJson('json_member_count', [{ ...key, name: keys, unnamed: true }]),
  }
}

/** Rows of the list that a function makes of the arguments; of lists in it, where `type` says so. */
function ofList(list: string, type: DataType | null = null): Expander {
  return (args, call, context) => {
    const made = scalarCall(list, args, call.position, context)
    const value = (place: Expression): Expression => {
      const element = elementOf(made, place, context)
      return type === null ? element : { ...element, type }
    }
    return { count: lengthOf(made, call, context), columns: [{ name: call.name, value }] }
  }
}

export const textExpanders: Readonly<Record<string, Expander>> = {
  ...jsonExpanders('json'),
  ...jsonExpanders('jsonb'),
  string_to_table: ofList('string_to_array'),
  regexp_split_to_table: ofList('regexp_split_to_array'),
  regexp_matches: ofList('regexp_matches_list', textsType),
}
