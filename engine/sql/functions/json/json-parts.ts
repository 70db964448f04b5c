// SQL functions that count the elements or members of a JSON text and return the n-th. The binder implements the
// set-returning functions jsonb_array_elements(), jsonb_each() and the like by calling them with n = 1, 2, ..
// (bind/set-returning.ts). Consecutive calls with the same text parse it only once.

import { type DataType, dataType, textKinds } from '../../../types/column-types.js'
import type { Value } from '../../../types/value.js'
import type { CallSite, ScalarFunction } from '../function-types.js'
import { elementsOfJson, membersOfJson, textOfJson } from './json-extract.js'

const jsonType = (): DataType => dataType('STRING', textKinds.jsonb)

type Member = readonly [name: string, value: string]

interface Known<Part> {
  readonly text: string
  readonly parts: readonly Part[] | null
}

function partsOf<Part>(
  text: Value | undefined,
  { memo }: CallSite,
  split: (text: string) => Part[] | null,
): readonly Part[] | null {
  const written = String(text)
  const known = memo.get('parts') as Known<Part> | undefined
  if (known?.text === written) return known.parts
  const parts = split(written)
  memo.set('parts', { text: written, parts })
  return parts
}

/** Of several members of one name the last, at the position of the first. */
function membersOnce(text: string): Member[] | null {
  const members = membersOfJson(text)
  return members === null ? null : [...new Map(members)]
}

export const jsonParts: readonly ScalarFunction[] = [
  {
    name: 'json_element_count',
    takes: ['TEXT'],
    gives: 'INT',
    description: 'Number of elements of a JSON array; NULL for other strings.',
    example: ["json_element_count('[1,[2,3]]')", '2'],
    eval: ([text], site) => partsOf(text, site, elementsOfJson)?.length ?? null,
  },
  {
    name: 'json_element',
    takes: ['TEXT', 'INT'],
    gives: jsonType,
    description: 'An element of a JSON array by its index from 1; implements `jsonb_array_elements`.',
    example: ["json_element('[1,[2,3]]', 2)", '[2,3]'],
    eval: ([text, place], site) => partsOf(text, site, elementsOfJson)?.[Number(place) - 1] ?? null,
  },
  {
    name: 'json_element_member',
    takes: ['TEXT', 'INT', 'TEXT', 'BOOLEAN'],
    gives: 'VARCHAR',
    description:
      'A member, as text, of an object that is an element of a JSON array, by index from 1 and name; if the last argument is true, an element that is no object is returned itself. Implements `unnest(json COLUMNS ..)`.',
    example: ["json_element_member('[{\"a\":1},2]', 1, 'a', true)", '1'],
    eval: ([text, place, name, alone], site) => {
      const element = partsOf(text, site, elementsOfJson)?.[Number(place) - 1] ?? null
      if (element === null) return null
      if (!element.startsWith('{')) return alone === true ? textOfJson(element) : null
      return textOfJson(new Map(membersOfJson(element)).get(String(name)) ?? null)
    },
  },
  {
    name: 'json_member_count',
    takes: ['TEXT'],
    gives: 'INT',
    description: 'Number of members of a JSON object; NULL for other strings.',
    example: ['json_member_count(\'{"a":1,"b":2}\')', '2'],
    eval: ([text], site) => partsOf(text, site, membersOnce)?.length ?? null,
  },
  {
    name: 'json_member_name',
    takes: ['TEXT', 'INT'],
    gives: 'STRING',
    description: 'Name of a member of a JSON object by its index from 1; implements `jsonb_object_keys`.',
    example: ['json_member_name(\'{"a":1,"b":2}\', 2)', 'b'],
    eval: ([text, place], site) => partsOf(text, site, membersOnce)?.[Number(place) - 1]?.[0] ?? null,
  },
  {
    name: 'json_member',
    takes: ['TEXT', 'INT'],
    gives: jsonType,
    description: 'Value of a member of a JSON object by its index from 1; implements `jsonb_each`.',
    example: ['json_member(\'{"a":1,"b":2}\', 2)', '2'],
    eval: ([text, place], site) => partsOf(text, site, membersOnce)?.[Number(place) - 1]?.[1] ?? null,
  },
  {
    name: 'json_text',
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'The content of a JSON string; other JSON unchanged; NULL for null.',
    example: ['json_text(\'"a"\')', 'a'],
    eval: ([text]) => textOfJson(String(text)),
  },
]
