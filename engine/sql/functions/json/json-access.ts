// SQL functions behind PostgreSQL's operators on JSON and on lists (arrays whose elements are not doubles, represented
// as strings): `->`, `->>`, `#>`, `#>>`, `@>`, `<@`, `?`, `?|`, `?&`, `&&`. The parser maps the operators to these
// functions. Also json_array_length(), json_typeof() and json_extract_path() with their variants. The result for a
// string that is not JSON is NULL.

import { type DataType, dataType, isList, textKinds } from '../../../types/column-types.js'
import { elementsOf, textArray } from '../../../types/text-lists.js'
import type { Value } from '../../../types/value.js'
import type { CallSite, ScalarFunction } from '../function-types.js'
import { findValue, type Step, textOfJson } from './json-extract.js'

const jsonType = (): DataType => dataType('STRING', textKinds.jsonb)

function member(text: Value | undefined, step: Step): string | null {
  return findValue(String(text), [step])
}

/** Follows a list of steps: in an array a number is an index, in an object any step is a name. */
function atPath(text: Value | undefined, path: Value | undefined): string | null {
  let found: string | null = String(text)
  for (const step of elementsOf(path)) {
    if (found === null || step === null) return null
    const isIndex = /^\s*\[/.test(found) && /^-?\d+$/.test(step)
    found = findValue(found, [isIndex ? Number(step) : step])
  }
  return found === null ? null : findValue(found, [])
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** undefined if the string is not JSON. A constant is parsed once. */
function parsed(text: Value | undefined, { memo }: CallSite, side: string): Json | undefined {
  const known = memo.get(side) as { readonly text: string; readonly value: Json | undefined } | undefined
  if (known?.text === text) return known?.value
  const value = jsonOf(String(text))
  memo.set(side, { text, value })
  return value
}

function jsonOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined
    throw thrown
  }
}

function isObject(value: Json): value is { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function contains(whole: Json, part: Json): boolean {
  if (Array.isArray(whole)) {
    const elements = whole as readonly Json[]
    const wanted: readonly Json[] = Array.isArray(part) ? part : [part]
    return wanted.every((one) => elements.some((other) => isEqualOrInside(other, one)))
  }
  return isEqualOrInside(whole, part)
}

function isEqualOrInside(whole: Json, part: Json): boolean {
  if (isObject(whole) && isObject(part))
    return Object.entries(part).every(([name, value]) => {
      const other = Object.hasOwn(whole, name) ? whole[name] : undefined
      return other !== undefined && isEqualOrInside(other, value)
    })
  if (Array.isArray(whole)) return Array.isArray(part) && contains(whole, part)
  return whole === part
}

function containsText([whole, part]: readonly Value[], site: CallSite): Value {
  if (site.argTypes.some(isList)) {
    const elements = new Set(elementsOf(whole))
    return elementsOf(part).every((element) => element !== null && elements.has(element))
  }
  const [left, right] = [parsed(whole, site, 'whole'), parsed(part, site, 'part')]
  return left === undefined || right === undefined ? null : contains(left, right)
}

/** Whether an object has the member, or an array this string as an element. */
function has(json: Json, name: string | null): boolean {
  if (name === null) return false
  if (Array.isArray(json)) return json.includes(name)
  return isObject(json) ? Object.hasOwn(json, name) : json === name
}

function having(
  name: string,
  description: string,
  example: readonly [string, string],
  test: (names: readonly (string | null)[], has: (name: string | null) => boolean) => boolean,
  single = false,
): ScalarFunction {
  return {
    name,
    takes: ['TEXT', 'TEXT'],
    gives: 'BOOLEAN',
    description,
    example,
    eval: ([text, names], site) => {
      const json = parsed(text, site, 'whole')
      if (json === undefined) return null
      return test(single ? [String(names)] : elementsOf(names), (one) => has(json, one))
    },
  }
}

const ofJson: readonly ScalarFunction[] = [
  {
    name: 'json_get',
    takes: ['TEXT', 'TEXT'],
    gives: jsonType,
    description: 'A member of a JSON object, as JSON; written `json -> name`.',
    example: ['json_get(\'{"a":{"b":1}}\', \'a\')', '{"b":1}'],
    eval: ([text, name]) => member(text, String(name)),
  },
  {
    name: 'json_get',
    takes: ['TEXT', 'LONG'],
    gives: jsonType,
    description: 'An element of a JSON array, counted from 0, or backwards from -1, as JSON; written `json -> index`.',
    example: ["json_get('[1,2,3]', -1)", '3'],
    eval: ([text, index]) => member(text, Number(index)),
  },
  {
    name: 'json_get_text',
    takes: ['TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'A member of a JSON object, as text: written `json ->> name`.',
    example: ['json_get_text(\'{"a":"b"}\', \'a\')', 'b'],
    eval: ([text, name]) => textOfJson(member(text, String(name))),
  },
  {
    name: 'json_get_text',
    takes: ['TEXT', 'LONG'],
    gives: 'STRING',
    description: 'An element of a JSON array, as text: written `json ->> index`.',
    example: ["json_get_text('[1,2,3]', 0)", '1'],
    eval: ([text, index]) => textOfJson(member(text, Number(index))),
  },
  {
    name: 'json_get_path',
    takes: ['TEXT', 'TEXT'],
    gives: jsonType,
    description: 'The value at a path of names and indexes, as JSON; written `json #> path`.',
    example: ['json_get_path(\'{"a":[{"b":1}]}\', \'{a,0}\')', '{"b":1}'],
    eval: ([text, path]) => atPath(text, path),
  },
  {
    name: 'json_get_path_text',
    takes: ['TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'The value at a path of names and indexes, as text; written `json #>> path`.',
    example: ['json_get_path_text(\'{"a":["b"]}\', \'{a,0}\')', 'b'],
    eval: ([text, path]) => textOfJson(atPath(text, path)),
  },
  having(
    'json_has',
    'Whether a JSON object has the member, or an array the string; written `json ? name`.',
    ["json_has('{\"a\":1}', 'a')", 'true'],
    ([name = null], test) => test(name),
    true,
  ),
  having(
    'json_has_any',
    'Whether a JSON object has one of the members of a list: written `json ?| names`.',
    ["json_has_any('{\"a\":1}', '{a,b}')", 'true'],
    (names, test) => names.some(test),
  ),
  having(
    'json_has_all',
    'Whether a JSON object has all members of a list: written `json ?& names`.',
    ["json_has_all('{\"a\":1}', '{a,b}')", 'false'],
    (names, test) => names.every(test),
  ),
]

function typeNameOf(json: Json): string {
  return json === null ? 'null' : Array.isArray(json) ? 'array' : typeof json
}

/** Functions that PostgreSQL defines for both json and jsonb. */
const namedOfJson = ['json', 'jsonb'].flatMap((kind): ScalarFunction[] => [
  {
    name: `${kind}_array_length`,
    takes: ['TEXT'],
    gives: 'INT',
    description: 'Number of elements of a JSON array; NULL for other JSON.',
    example: [`${kind}_array_length('[1,[2,3]]')`, '2'],
    eval: ([text], site) => {
      const json = parsed(text, site, 'whole')
      return Array.isArray(json) ? json.length : null
    },
  },
  {
    name: `${kind}_typeof`,
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'Type of a JSON value: object, array, string, number, boolean or null.',
    example: [`${kind}_typeof('[1]')`, 'array'],
    eval: ([text], site) => {
      const json = parsed(text, site, 'whole')
      return json === undefined ? null : typeNameOf(json)
    },
  },
  {
    name: `${kind}_extract_path`,
    takes: ['TEXT', 'TEXT'],
    more: 'TEXT',
    gives: jsonType,
    description: 'The value at a path of names and indexes, as JSON.',
    example: [`${kind}_extract_path('{"a":[{"b":1}]}', 'a', '0')`, '{"b":1}'],
    eval: ([text, ...path]) => atPath(text, textArray(path.map(String))),
  },
  {
    name: `${kind}_extract_path_text`,
    takes: ['TEXT', 'TEXT'],
    more: 'TEXT',
    gives: 'STRING',
    description: 'The same as text.',
    example: [`${kind}_extract_path_text('{"a":["b"]}', 'a', '0')`, 'b'],
    eval: ([text, ...path]) => textOfJson(atPath(text, textArray(path.map(String)))),
  },
])

/** All operators and functions of this file, for JSON and lists. */
export const jsonAccess: readonly ScalarFunction[] = [
  ...ofJson,
  ...namedOfJson,
  {
    name: 'contains',
    takes: ['TEXT', 'TEXT'],
    gives: 'BOOLEAN',
    description:
      'Whether JSON contains other JSON, or a list all elements of another; written `whole @> part` or `part <@ whole`.',
    example: ['contains(\'{"a":1,"b":2}\', \'{"a":1}\')', 'true'],
    eval: containsText,
  },
  {
    name: 'lists_overlap',
    takes: ['TEXT', 'TEXT'],
    gives: 'BOOLEAN',
    description: 'Whether two lists share an element: written `list && other`.',
    example: ["lists_overlap('{a,b}', '{b,c}')", 'true'],
    eval: ([list, other]) => {
      const elements = new Set(elementsOf(list))
      return elementsOf(other).some((element) => element !== null && elements.has(element))
    },
  },
]
