// SQL functions on lists: arrays of PostgreSQL whose elements are not doubles. They have no column type but are strings
// of the form `{a,"b c",NULL}`. Also the quoting functions quote_literal() and the like.

import { dataType, isList, textKinds } from '../../types/column-types.js'
import { displayText } from '../../types/convert.js'
import { nameParts } from '../../types/identifier.js'
import { arrayElement, elementsOf, textArray } from '../../types/text-lists.js'
import type { Value } from '../../types/value.js'
import type { CallSite, ScalarFunction, TypePattern } from './function-types.js'

function row(
  name: string,
  takes: readonly TypePattern[],
  gives: ScalarFunction['gives'],
  description: string,
  rest: Omit<ScalarFunction, 'name' | 'takes' | 'gives' | 'description'>,
): ScalarFunction {
  return { name, takes, gives, description, ...rest }
}

const textType = dataType('STRING')

/** The type of a list of strings. */
export const textArrayType = dataType('STRING', textKinds.strings)
const strings: ScalarFunction['gives'] = () => textArrayType
/** The type of the argument that is a list. */
const sameList: ScalarFunction['gives'] = (args) => args.find(({ type }) => isList(type))?.type ?? textArrayType

/** Index of the first element: vectors of the catalog count from 0. */
function firstIndex(list: Value | undefined): number {
  return String(list).startsWith('{') ? 1 : 0
}

function splitText(text: Value | undefined, separator: Value | undefined, missing: Value = null): Value {
  if (text === null || text === undefined) return null
  const whole = String(text)
  const parts = separator === null ? [...whole] : separator === '' ? [whole] : whole.split(String(separator))
  return textArray(whole === '' ? [] : parts.map((part) => (part === missing ? null : part)))
}

/** The parsed list of a call site. It is parsed once as long as consecutive rows have the same list. */
function knownElements(list: Value | undefined, { memo }: CallSite): readonly (string | null)[] {
  const text = String(list)
  const known = memo.get('list') as { readonly text: string; readonly elements: readonly (string | null)[] } | undefined
  if (known?.text === text) return known.elements
  const elements = elementsOf(text)
  memo.set('list', { text, elements })
  return elements
}

export const textListFunctions: readonly ScalarFunction[] = [
  {
    name: 'text_list',
    takes: ['ANY'],
    more: 'ANY',
    gives: strings,
    description: "A list of strings; written `ARRAY['a', 'b']`.",
    example: ["ARRAY['a', 'b c']", '{a,"b c"}'],
    seesNull: true,
    eval: (args, { argTypes }) =>
      textArray(args.map((value, index) => (value === null ? null : displayText(value, argTypes[index] ?? textType)))),
  },
  row('list_text', ['ANY'], 'STRING', 'A value as an element of a list.', {
    example: ["list_text('b c')", '"b c"'],
    eval: ([value = null], { argTypes }) =>
      value === null ? null : arrayElement(displayText(value, argTypes[0] ?? textType)),
  }),
  row('quote_literal', ['ANY'], 'STRING', 'A value as an SQL string literal.', {
    example: ["quote_literal('it''s')", "'it''s'"],
    eval: ([value = null], { argTypes }) =>
      value === null ? null : `'${displayText(value, argTypes[0] ?? textType).replaceAll("'", "''")}'`,
  }),
  row('current_schemas', ['BOOLEAN'], strings, 'The schemas of the search path; with true, including the catalog.', {
    example: ['current_schemas(true)', '{pg_catalog,public}'],
    eval: ([implicit]) => textArray(implicit === true ? ['pg_catalog', 'public'] : ['public']),
  }),
  row(
    'string_to_array',
    ['TEXT', 'TEXT'],
    strings,
    'The parts of a string between separators, as a list; single characters if the separator is NULL.',
    {
      example: ["string_to_array('a,b', ',')", '{a,b}'],
      seesNull: true,
      eval: ([text, separator]) => splitText(text, separator),
    },
  ),
  row(
    'string_to_array',
    ['TEXT', 'TEXT', 'TEXT'],
    strings,
    'The same, with NULL for parts that equal the last argument.',
    {
      example: ["string_to_array('a,-,b', ',', '-')", '{a,NULL,b}'],
      seesNull: true,
      eval: ([text, separator, missing]) => splitText(text, separator, missing),
    },
  ),
  row('array_to_string', ['TEXT', 'TEXT'], 'STRING', 'The elements of a list with a separator between them.', {
    example: ["array_to_string('{a,b}', '-')", 'a-b'],
    eval: ([list, separator]) =>
      elementsOf(list)
        .filter((element) => element !== null)
        .join(String(separator)),
  }),
  row('array_to_string', ['TEXT', 'TEXT', 'TEXT'], 'STRING', 'The same, with a string in place of NULL elements.', {
    example: ["array_to_string('{a,NULL}', '-', '?')", 'a-?'],
    seesNull: true,
    eval: ([list, separator, missing]) =>
      list === null || separator === null
        ? null
        : elementsOf(list)
            .map((element) => element ?? missing)
            .filter((element) => element !== null)
            .join(String(separator)),
  }),
  row('array_lower', ['TEXT', 'INT'], 'INT', 'First index of a list.', {
    example: ["array_lower('{a,b}', 1)", '1'],
    eval: ([list]) => (elementsOf(list).length > 0 ? firstIndex(list) : null),
  }),
  row('array_upper', ['TEXT', 'INT'], 'INT', 'Last index of a list.', {
    example: ["array_upper('{a,b}', 1)", '2'],
    eval: ([list]) => {
      const { length } = elementsOf(list)
      return length > 0 ? firstIndex(list) + length - 1 : null
    },
  }),
  row('array_length', ['TEXT', 'INT'], 'INT', 'Number of elements of a list.', {
    example: ["array_length('{a,b}', 1)", '2'],
    eval: ([list]) => elementsOf(list).length || null,
  }),
  row('list_element', ['TEXT', 'INT'], 'STRING', 'An element of a list; implements `list[index]`.', {
    example: ["list_element('{a,b}', 2)", 'b'],
    eval: ([list, index], site) => knownElements(list, site)[Number(index) - 1] ?? null,
  }),
  row('list_slice', ['TEXT', 'INT', 'INT'], sameList, 'A slice of a list, bounds included; implements `list[2:3]`.', {
    example: ["list_slice('{a,b,c}', 2, 3)", '{b,c}'],
    eval: ([list, low, high]) =>
      textArray(elementsOf(list).slice(Math.max(Number(low), 1) - 1, Math.max(Number(high), 0))),
  }),
  row('list_has', ['TEXT', 'TEXT'], 'BOOLEAN', 'Whether a list contains an element; implements `= any(list)`.', {
    example: ["list_has('{a,b}', 'b')", 'true'],
    eval: ([list, element]) => elementsOf(list).includes(String(element)),
  }),
  row('parse_ident', ['TEXT'], strings, 'The parts of a name, as a list.', {
    example: [`parse_ident('a."B c"')`, '{a,"B c"}'],
    eval: ([name]) => textArray(nameParts(String(name))),
  }),
  row('cardinality', ['TEXT'], 'INT', 'Number of elements of a list.', {
    example: ["cardinality('{a,b}')", '2'],
    eval: ([list]) => elementsOf(list).length,
  }),
  row('array_ndims', ['TEXT'], 'INT', 'Number of dimensions of a list: 1, or NULL for an empty list.', {
    example: ["array_ndims('{a,b}')", '1'],
    eval: ([list]) => (elementsOf(list).length > 0 ? 1 : null),
  }),
  row('array_position', ['TEXT', 'TEXT'], 'INT', 'Index of the first equal element of a list.', {
    example: ["array_position('{a,b}', 'b')", '2'],
    eval: ([list, element]) => elementsOf(list).indexOf(String(element)) + 1 || null,
  }),
  row('array_position', ['TEXT', 'LONG'], 'INT', 'The same for a number; vectors such as `indkey` count from 0.', {
    example: ["array_position('3 5 7', 5)", '1'],
    eval: ([list, element]) => {
      const index = elementsOf(list).indexOf(String(element))
      return index < 0 ? null : index + firstIndex(list)
    },
  }),
  row('array_remove', ['TEXT', 'TEXT'], sameList, 'Removes the elements that equal a string.', {
    example: ["array_remove('{a,b,a}', 'a')", '{b}'],
    eval: ([list, element]) => textArray(elementsOf(list).filter((other) => other !== element)),
  }),
  row('array_replace', ['TEXT', 'TEXT', 'TEXT'], sameList, 'Replaces the elements that equal a string.', {
    example: ["array_replace('{a,b}', 'a', 'c')", '{c,b}'],
    eval: ([list, element, other]) =>
      textArray(elementsOf(list).map((text) => (text === element ? String(other) : text))),
  }),
  row('array_append', ['TEXT', 'TEXT'], sameList, 'Appends an element to a list.', {
    example: ["array_append('{a}', 'b')", '{a,b}'],
    eval: ([list, element]) => textArray([...elementsOf(list), String(element)]),
  }),
  row('array_prepend', ['TEXT', 'TEXT'], sameList, 'Prepends an element to a list.', {
    example: ["array_prepend('a', '{b}')", '{a,b}'],
    eval: ([element, list]) => textArray([String(element), ...elementsOf(list)]),
  }),
  row('array_cat', ['TEXT', 'TEXT'], sameList, 'Concatenates two lists.', {
    example: ["array_cat('{a}', '{b}')", '{a,b}'],
    eval: ([list, other]) => textArray([...elementsOf(list), ...elementsOf(other)]),
  }),
  row('list_pair', ['INT', 'TEXT'], 'STRING', 'The row `(element,index)` of `_pg_expandarray`.', {
    example: ["list_pair(2, '{a,b}')", '(b,2)'],
    eval: ([place, list]) => `(${elementsOf(list)[Number(place) - 1] ?? ''},${String(place)})`,
  }),
  row('list_pair_part', ['STRING', 'INT'], 'STRING', 'A field of `(element,index)`.', {
    example: ["list_pair_part('(b,2)', 1)", 'b'],
    eval: ([pair, part]) => /^\((.*),(\d+)\)$/.exec(String(pair))?.[Number(part)] ?? null,
  }),
]
