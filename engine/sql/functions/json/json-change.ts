// SQL functions that modify or combine JSON (PostgreSQL's jsonb_set(), jsonb_insert(), `||`, `-`, json_strip_nulls(),
// jsonb_pretty() and the like), or build it from lists (json_object(), array_to_json()). Functions named jsonb_.. format
// their results as jsonb: a blank after `:` and `,`, members sorted by the length of their names; jsonb_pretty() breaks
// lines instead. Those named json_.. keep the order of members. For a string that is not JSON, the functions that modify
// JSON return NULL.

import { SqlError } from '../../../base/errors.js'
import { type DataType, dataType, textKinds } from '../../../types/column-types.js'
import { displayText } from '../../../types/convert.js'
import { elementsOf } from '../../../types/text-lists.js'
import type { Value } from '../../../types/value.js'
import type { CallSite, ScalarFunction, TypePattern } from '../function-types.js'
import { type JsonTree, treeOfJson } from './json-extract.js'

type Members = ReadonlyMap<string, JsonTree>

const isArray = (tree: JsonTree): tree is readonly JsonTree[] => Array.isArray(tree)
const isObject = (tree: JsonTree): tree is Members => tree instanceof Map

const jsonbType = (): DataType => dataType('STRING', textKinds.jsonb)
const jsonTypeOf = (name: string): (() => DataType) => {
  return name.startsWith('jsonb') ? jsonbType : () => dataType('STRING', textKinds.json)
}

// Formatting --------------------------------------------------------------------------------------------------------

const byName = ([left]: readonly [string, JsonTree], [right]: readonly [string, JsonTree]): number => {
  const [shorter, longer] = [Buffer.byteLength(left), Buffer.byteLength(right)]
  return shorter - longer || Buffer.compare(Buffer.from(left), Buffer.from(right))
}

interface Form {
  readonly comma: string
  readonly colon: string
  readonly sorted: boolean
}

const jsonbForm: Form = { comma: ', ', colon: ': ', sorted: true }
const shortForm: Form = { comma: ',', colon: ':', sorted: false }

function printed(tree: JsonTree, form: Form): string {
  if (isArray(tree)) return `[${tree.map((element) => printed(element, form)).join(form.comma)}]`
  if (!isObject(tree)) return tree
  const members = form.sorted ? [...tree].sort(byName) : [...tree]
  const strings = members.map(([name, value]) => `${JSON.stringify(name)}${form.colon}${printed(value, form)}`)
  return `{${strings.join(form.comma)}}`
}

/** JSON formatted as jsonb; a string that is not JSON is returned unchanged. */
export function jsonbText(text: string): string {
  const tree = treeOfJson(text)
  return tree === null ? text : printed(tree, jsonbForm)
}

function pretty(tree: JsonTree, indent: string): string {
  const inner = `${indent}    `
  const lines = (strings: readonly string[]): string => strings.map((text) => `${inner}${text}`).join(',\n')
  if (isArray(tree)) return block('[', lines(tree.map((element) => pretty(element, inner))), `${indent}]`)
  if (!isObject(tree)) return tree
  const members = [...tree].sort(byName).map(([name, value]) => `${JSON.stringify(name)}: ${pretty(value, inner)}`)
  return block('{', lines(members), `${indent}}`)
}

function block(open: string, lines: string, close: string): string {
  return lines === '' ? `${open}\n${close}` : `${open}\n${lines}\n${close}`
}

function withoutNulls(tree: JsonTree): JsonTree {
  if (isArray(tree)) return tree.map(withoutNulls)
  if (!isObject(tree)) return tree
  const retained = [...tree].filter(([, value]) => value !== 'null')
  return new Map(retained.map(([name, value]) => [name, withoutNulls(value)]))
}

// Changes at a path -------------------------------------------------------------------------------------------------

/** How the array or object at the end of a path is changed. */
interface Change {
  readonly ofArray: (elements: JsonTree[], index: number) => JsonTree[]
  readonly ofObject: (members: Map<string, JsonTree>, name: string) => Map<string, JsonTree>
}

function changed(tree: JsonTree, path: readonly (string | null)[], change: Change, depth = 0): JsonTree {
  const step = path[depth]
  if (step === undefined || step === null) return tree
  const isLast = depth === path.length - 1
  if (isArray(tree)) {
    const index = placeOf(step, tree.length, depth)
    if (isLast) return change.ofArray([...tree], index)
    return tree.map((element, place) => (place === index ? changed(element, path, change, depth + 1) : element))
  }
  if (!isObject(tree)) return tree
  if (isLast) return change.ofObject(new Map(tree), step)
  const inner = tree.get(step)
  return inner === undefined ? tree : new Map(tree).set(step, changed(inner, path, change, depth + 1))
}

/** Index of an array step, where -1 is the last element; negative if it is before the start. */
function placeOf(step: string, count: number, depth: number): number {
  if (!/^\s*[+-]?\d+\s*$/.test(step))
    throw new SqlError(`path element at position ${depth + 1} is not an integer: "${step}"`, 0)
  const index = Number(step)
  return index < 0 ? count + index : index
}

function setting(value: JsonTree, creates: boolean): Change {
  return {
    ofArray: (elements, index) => {
      if (index >= 0 && index < elements.length) return elements.with(index, value)
      if (!creates) return elements
      return index < 0 ? [value, ...elements] : [...elements, value]
    },
    ofObject: (members, name) => (creates || members.has(name) ? members.set(name, value) : members),
  }
}

function inserting(value: JsonTree, after: boolean): Change {
  return {
    ofArray: (elements, index) => elements.toSpliced(index < 0 ? 0 : index + (after ? 1 : 0), 0, value),
    ofObject: (members, name) => {
      if (members.has(name)) throw new SqlError('cannot replace existing key', 0)
      return members.set(name, value)
    },
  }
}

const removing: Change = {
  ofArray: (elements, index) => (index < 0 ? elements : elements.toSpliced(index, 1)),
  ofObject: (members, name) => {
    members.delete(name)
    return members
  },
}

function changedText(whole: Value | undefined, path: Value | undefined, change: Change, what: string): Value {
  const tree = treeOfJson(String(whole))
  if (tree === null) return null
  if (typeof tree === 'string') throw new SqlError(`cannot ${what} path in scalar`, 0)
  return printed(changed(tree, elementsOf(path), change), jsonbForm)
}

/** The JSON tree of an argument that is JSON or a string. */
function treeOfValue(value: Value | undefined): JsonTree | null {
  return value === null || value === undefined ? 'null' : treeOfJson(String(value))
}

function set([whole, path, value, creates = true]: readonly Value[]): Value {
  const tree = treeOfValue(value)
  return tree === null ? null : changedText(whole, path, setting(tree, creates === true), 'set')
}

/** jsonb_set_lax(): `null_value_treatment` says what a NULL value does. */
function setLax([whole, path, value, creates, treatment]: readonly Value[]): Value {
  if (whole === null || path === null) return null
  if (value !== null || treatment === undefined || treatment === 'use_json_null')
    return set([whole as Value, path as Value, value as Value, creates ?? true])
  if (treatment === 'return_target') return jsonbText(String(whole))
  if (treatment === 'delete_key') return changedText(whole, path, removing, 'set')
  throw new SqlError(
    treatment === 'raise_exception'
      ? 'JSON value must not be null'
      : 'null_value_treatment must be "delete_key", "return_target", "use_json_null", or "raise_exception"',
    0,
  )
}

function insert([whole, path, value, after = false]: readonly Value[]): Value {
  const tree = treeOfValue(value)
  return tree === null ? null : changedText(whole, path, inserting(tree, after === true), 'set')
}

// Joining and removing ----------------------------------------------------------------------------------------------

function joined(left: JsonTree, right: JsonTree): JsonTree {
  if (isObject(left) && isObject(right)) return new Map([...left, ...right])
  return [...(isArray(left) ? left : [left]), ...(isArray(right) ? right : [right])]
}

function without(text: Value | undefined, names: readonly (string | null)[]): Value {
  const tree = treeOfJson(String(text))
  if (tree === null) return null
  if (typeof tree === 'string') throw new SqlError('cannot delete from scalar', 0)
  if (isObject(tree)) return printed(new Map([...tree].filter(([name]) => !names.includes(name))), jsonbForm)
  const retained = tree.filter(
    (element) => !(typeof element === 'string' && element.startsWith('"') && names.includes(JSON.parse(element))),
  )
  return printed(retained, jsonbForm)
}

function withoutElement(text: Value | undefined, index: number): Value {
  const tree = treeOfJson(String(text))
  if (tree === null) return null
  if (!isArray(tree)) throw new SqlError('cannot delete from object using integer index', 0)
  return printed(removing.ofArray([...tree], index < 0 ? tree.length + index : index), jsonbForm)
}

// Objects from lists ------------------------------------------------------------------------------------------------

function objectOfPairs(names: readonly (string | null)[], values: readonly (string | null)[], form: string): string {
  if (names.length !== values.length) throw new SqlError('mismatched array dimensions', 0)
  const members = names.map((name, index) => {
    if (name === null) throw new SqlError('null value not allowed for object key', 0)
    const value = values[index] ?? null
    return `${JSON.stringify(name)}${form}${value === null ? 'null' : JSON.stringify(value)}`
  })
  return `{${members.join(', ')}}`
}

function objectOfList(list: readonly (string | null)[], form: string): string {
  if (list.length % 2 === 1) throw new SqlError('array must have even number of elements', 0)
  return objectOfPairs(
    list.filter((_, index) => index % 2 === 0),
    list.filter((_, index) => index % 2 === 1),
    form,
  )
}

/** Formats an array of doubles; whole numbers have no decimals. */
function arrayText([value = null]: readonly Value[], { argTypes }: CallSite): Value {
  const [type] = argTypes
  if (value === null || type === undefined) return null
  if (type.name === 'ARRAY')
    return displayText(value, type)
      .replaceAll('NaN', 'null')
      .replace(/\.0(?!\d)/g, '')
  return listAsJson(elementsOf(value), type)
}

/** Numbers and booleans without quotes, other elements as strings. */
export function listAsJson(elements: readonly (string | null)[], type: DataType): string {
  const isPlain = [textKinds.ints, textKinds.longs, textKinds.bools].some((kind) => kind === type.a)
  const shown = (element: string | null): string =>
    element === null ? 'null' : isPlain ? element : JSON.stringify(element)
  return `[${elements.map(shown).join(',')}]`
}

// Functions ---------------------------------------------------------------------------------------------------------

/** The function with and without its last argument. */
function withOption(row: ScalarFunction, option: TypePattern): ScalarFunction[] {
  return [row, { ...row, takes: [...row.takes, option], example: null }]
}

/** Functions that change JSON, which is given as JSON or as a string. */
const changers: readonly ScalarFunction[] = [
  ...withOption(
    {
      name: 'jsonb_set',
      takes: ['TEXT', 'TEXT', 'TEXT'],
      gives: jsonbType,
      description: 'Sets the value at a path of JSON. A missing member is added unless the last argument is false.',
      example: ["jsonb_set('{\"a\":{\"b\":1}}', '{a,b}', '2')", '{"a": {"b": 2}}'],
      eval: set,
    },
    'BOOLEAN',
  ),
  ...[
    ['TEXT', 'TEXT', 'TEXT'],
    ['TEXT', 'TEXT', 'TEXT', 'BOOLEAN'],
    ['TEXT', 'TEXT', 'TEXT', 'BOOLEAN', 'TEXT'],
  ].map(
    (takes, index): ScalarFunction => ({
      name: 'jsonb_set_lax',
      takes: takes as TypePattern[],
      gives: jsonbType,
      description:
        'Like jsonb_set, but a NULL value becomes JSON null, or is treated as the last argument says: delete_key, return_target, raise_exception.',
      example: index === 0 ? ["jsonb_set_lax('{\"a\":1}', '{a}', null)", '{"a": null}'] : null,
      seesNull: true,
      eval: setLax,
    }),
  ),
  ...withOption(
    {
      name: 'jsonb_insert',
      takes: ['TEXT', 'TEXT', 'TEXT'],
      gives: jsonbType,
      description:
        'Inserts a value at a path of JSON; in an array before the element at the index, or after it if the last argument is true.',
      example: ["jsonb_insert('{\"a\":[1,2]}', '{a,1}', '9')", '{"a": [1, 9, 2]}'],
      eval: insert,
    },
    'BOOLEAN',
  ),
  {
    name: 'jsonb_concat',
    takes: ['TEXT', 'TEXT'],
    gives: jsonbType,
    description: 'Two JSON objects as one, or two arrays, or values as an array: written `json || other`.',
    example: ['jsonb_concat(\'{"a":1}\', \'{"b":2}\')', '{"a": 1, "b": 2}'],
    eval: ([left, right]) => {
      const [first, second] = [treeOfValue(left), treeOfValue(right)]
      return first === null || second === null ? null : printed(joined(first, second), jsonbForm)
    },
  },
  {
    name: 'jsonb_delete',
    takes: ['TEXT', 'TEXT'],
    gives: jsonbType,
    description:
      'Removes a member, or those of a list, from a JSON object, or such strings from an array; written `json - name`.',
    example: ['jsonb_delete(\'{"a":1,"b":2}\', \'a\')', '{"b": 2}'],
    eval: ([text, names], { argTypes }) => {
      const isNames = argTypes[1]?.name === 'STRING' && argTypes[1].a === textKinds.strings
      return without(text, isNames ? elementsOf(names) : [String(names)])
    },
  },
  {
    name: 'jsonb_delete',
    takes: ['TEXT', 'LONG'],
    gives: jsonbType,
    description: 'Removes an element of a JSON array, counted from 0, or backwards from -1; written `json - index`.',
    example: ["jsonb_delete('[1,2,3]', -1)", '[1, 2]'],
    eval: ([text, index]) => withoutElement(text, Number(index)),
  },
  {
    name: 'jsonb_delete_path',
    takes: ['TEXT', 'TEXT'],
    gives: jsonbType,
    description: 'Removes the value at a path of JSON; written `json #- path`.',
    example: ['jsonb_delete_path(\'{"a":{"b":1,"c":2}}\', \'{a,b}\')', '{"a": {"c": 2}}'],
    eval: ([text, path]) => changedText(text, path, removing, 'delete'),
  },
  {
    name: 'jsonb_pretty',
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'JSON on several lines.',
    example: ["jsonb_pretty('[]')", '[\n]'],
    eval: ([text]) => {
      const tree = treeOfJson(String(text))
      return tree === null ? null : pretty(tree, '')
    },
  },
]

const stripping = (['json', 'jsonb'] as const).map(
  (kind): ScalarFunction => ({
    name: `${kind}_strip_nulls`,
    takes: ['TEXT'],
    gives: jsonTypeOf(kind),
    description: 'Removes object members that are null.',
    example: [`${kind}_strip_nulls('{"a":1,"b":null}')`, kind === 'json' ? '{"a":1}' : '{"a": 1}'],
    eval: ([text]) => {
      const tree = treeOfJson(String(text))
      return tree === null ? null : printed(withoutNulls(tree), kind === 'json' ? shortForm : jsonbForm)
    },
  }),
)

const objects = (['json', 'jsonb'] as const).flatMap((kind): ScalarFunction[] => {
  const colon = kind === 'json' ? ' : ' : ': '
  const shown = (text: string): string => (kind === 'json' ? text : jsonbText(text))
  const row = { name: `${kind}_object`, gives: jsonTypeOf(kind) }
  return [
    {
      ...row,
      takes: ['TEXT'],
      description: 'A JSON object from a list of alternating names and values; all values are strings.',
      example: [`${kind}_object('{a,1,b,2}')`, `{"a"${colon}"1", "b"${colon}"2"}`],
      eval: ([list]) => shown(objectOfList(elementsOf(list), colon)),
    },
    {
      ...row,
      takes: ['TEXT', 'TEXT'],
      description: 'A JSON object from a list of names and a list of values; all values are strings.',
      example: [`${kind}_object('{a,b}', '{1,2}')`, `{"a"${colon}"1", "b"${colon}"2"}`],
      eval: ([names, values]) => shown(objectOfPairs(elementsOf(names), elementsOf(values), colon)),
    },
  ]
})

export const jsonChange: readonly ScalarFunction[] = [
  ...changers,
  ...stripping,
  ...objects,
  {
    name: 'array_to_json',
    takes: ['ANY'],
    gives: jsonTypeOf('json'),
    description: 'A list or an array as a JSON array.',
    example: ["array_to_json(ARRAY['a', 'b'])", '["a","b"]'],
    eval: arrayText,
  },
]
