// SQL functions and aggregates that build JSON from values: json_build_object(), to_json(), json_agg() and the like.
// The result is a STRING whose type is marked as JSON, so that the functions nest it in other JSON as it is instead of
// quoting it as a string. Calls with a whole row (`row_to_json(t)`) are rewritten to calls with names and values in
// bind/whole-row.ts.

import { SqlError } from '../../../base/errors.js'
import { valueBytesMax } from '../../../base/limits.js'
import { type DataType, dataType, isJson, isList, isSpan, textKinds } from '../../../types/column-types.js'
import { displayText, isNumber } from '../../../types/convert.js'
import { textElements } from '../../../types/text-lists.js'
import type { Value } from '../../../types/value.js'
import { type AggregateFunction, accumulator, type CallSite, type ScalarFunction } from '../function-types.js'
import { jsonbText, listAsJson } from './json-change.js'

const textOf = (value: Value | undefined, type: DataType | undefined): string =>
  value === null || value === undefined || type === undefined ? '' : displayText(value, type)

function json(value: Value, type: DataType | undefined): string {
  if (value === null) return 'null'
  const text = textOf(value, type)
  if (type !== undefined && (isJson(type) || type.name === 'ARRAY')) return text.replaceAll('NaN', 'null')
  const elements = type !== undefined && isList(type) ? textElements(text) : null
  if (type !== undefined && elements !== null) return listAsJson(elements, type)
  const isPlain = type !== undefined && !isSpan(type) && (isNumber(type) || type.name === 'BOOLEAN')
  return isPlain ? text : JSON.stringify(text)
}

function members(values: readonly Value[], { argTypes, position }: CallSite, colon: string): string[] {
  if (values.length % 2 === 1) throw new SqlError('names and values must come in pairs', position)
  const found: string[] = []
  for (let index = 0; index < values.length; index += 2) {
    const name = JSON.stringify(textOf(values[index], argTypes[index]))
    found.push(`${name}${colon}${json(values[index + 1] ?? null, argTypes[index + 1])}`)
  }
  return found
}

const jsonType = (name: string): (() => DataType) => {
  const type = dataType('STRING', name.includes('jsonb') ? textKinds.jsonb : textKinds.json)
  return () => type
}

/** Formats as jsonb if the function returns jsonb. */
const shownAs = (name: string, text: string): string => (name.includes('jsonb') ? jsonbText(text) : text)

/** The function's name, and its counterpart for jsonb. */
const withJsonb = (name: string): string[] => [name, name.replace('json', 'jsonb')]

export const jsonMakers: readonly ScalarFunction[] = [
  ...withJsonb('json_build_object').map(
    (name): ScalarFunction => ({
      name,
      takes: ['ANY', 'ANY'],
      more: 'ANY',
      gives: jsonType(name),
      description: 'A JSON object from names and values.',
      example: [`${name}('a', 1, 'b', 'x')`, shownAs(name, '{"a" : 1, "b" : "x"}')],
      seesNull: true,
      eval: (values, site) => shownAs(name, `{${members(values, site, ' : ').join(', ')}}`),
    }),
  ),
  ...withJsonb('json_build_object').map(
    (name): ScalarFunction => ({
      name,
      takes: [],
      gives: jsonType(name),
      description: 'An empty JSON object.',
      example: [`${name}()`, '{}'],
      eval: () => '{}',
    }),
  ),
  ...withJsonb('json_build_array').map(
    (name): ScalarFunction => ({
      name,
      takes: [],
      gives: jsonType(name),
      description: 'An empty JSON array.',
      example: [`${name}()`, '[]'],
      eval: () => '[]',
    }),
  ),
  ...withJsonb('json_build_array').map(
    (name): ScalarFunction => ({
      name,
      takes: ['ANY'],
      more: 'ANY',
      gives: jsonType(name),
      description: 'A JSON array from values.',
      example: [`${name}(1, 'x')`, '[1, "x"]'],
      seesNull: true,
      eval: (args, { argTypes }) =>
        shownAs(name, `[${args.map((value, index) => json(value, argTypes[index])).join(', ')}]`),
    }),
  ),
  ...withJsonb('to_json').map(
    (name): ScalarFunction => ({
      name,
      takes: ['ANY'],
      gives: jsonType(name),
      description: 'A value as JSON; a whole row as an object.',
      example: [`${name}('a')`, '"a"'],
      eval: ([value], { argTypes }) => shownAs(name, json(value ?? null, argTypes[0])),
    }),
  ),
  {
    name: 'row_to_json',
    takes: ['ANY', 'ANY'],
    more: 'ANY',
    gives: jsonType('json'),
    description: 'A row as a JSON object: `row_to_json(t)` of a table or sub-query t.',
    example: null,
    seesNull: true,
    eval: (values, site) => `{${members(values, site, ':').join(',')}}`,
  },
]

interface Elements {
  /** A set for DISTINCT. */
  strings: string[] | Set<string>
  bytes: number
}

function addTo(state: Elements, text: string): void {
  if (state.strings instanceof Set) {
    if (state.strings.has(text)) return
    state.strings.add(text)
  } else state.strings.push(text)
  state.bytes += text.length
}

/** An aggregate that joins elements, which `element` makes of a row. Without rows the result is NULL. */
function collecting(
  [open, close]: readonly [string, string],
  element: (args: readonly Value[], site: CallSite) => string,
  name: string,
  distinct = false,
): AggregateFunction['accumulator'] {
  return accumulator<Elements>({
    init: () => ({ strings: distinct ? new Set<string>() : [], bytes: 0 }),
    add: (state, args, site) => {
      addTo(state, element(args, site))
      if (state.bytes > valueBytesMax) throw new SqlError('aggregated text is too long', 0)
    },
    merge: (state, other) => {
      for (const text of other.strings) addTo(state, text)
    },
    result: ({ strings }) => {
      const retained = [...strings]
      return retained.length === 0 ? null : shownAs(name, `${open}${retained.join(', ')}${close}`)
    },
  })
}

export const jsonAggregates: readonly AggregateFunction[] = [
  ...withJsonb('json_agg').map(
    (name): AggregateFunction => ({
      name,
      takes: ['ANY'],
      gives: jsonType(name),
      description: 'All values as a JSON array, NULL included; whole rows as objects.',
      example: [`${name}(x)`, '[1, 2, 3, 4, 5]'],
      ordered: true,
      accumulator: collecting(['[', ']'], ([value = null], { argTypes }) => json(value, argTypes[0]), name),
    }),
  ),
  ...withJsonb('json_distinct_agg').map(
    (name): AggregateFunction => ({
      name,
      takes: ['ANY'],
      gives: jsonType(name),
      description: 'All different values as a JSON array: what `json_agg(distinct x)` means.',
      example: [`${name}(x % 2)`, '[1, 0]'],
      ordered: true,
      accumulator: collecting(['[', ']'], ([value = null], { argTypes }) => json(value, argTypes[0]), name, true),
    }),
  ),
  ...withJsonb('json_object_agg').map(
    (name): AggregateFunction => ({
      name,
      takes: ['ANY', 'ANY'],
      gives: jsonType(name),
      description: 'All names and values as a JSON object.',
      example: [`${name}(x, x * x)`, shownAs(name, '{ "1" : 1, "2" : 4, "3" : 9, "4" : 16, "5" : 25 }')],
      ordered: true,
      accumulator: collecting(['{ ', ' }'], (args, site) => members(args, site, ' : ').join(), name),
    }),
  ),
]
