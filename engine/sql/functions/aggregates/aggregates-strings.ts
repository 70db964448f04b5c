// Aggregates that collect values: string_agg() joins strings, array_agg() and list_agg() make arrays and lists.

import { SqlError } from '../../../base/errors.js'
import { listValuesMax, valueBytesMax } from '../../../base/limits.js'
import { type DataType, dataType, listTypeOf } from '../../../types/column-types.js'
import { displayText } from '../../../types/convert.js'
import { textArray } from '../../../types/text-lists.js'
import { type Accumulator, type AggregateFunction, accumulator, type BoundArgument } from '../function-types.js'
import { singleRows } from '../single-row.js'
import { textArrayType } from '../text-lists.js'

/**
 * Collected strings; a set for DISTINCT. Their length is counted, so that the limit is enforced before a result is
 * built.
 */
interface Strings<Text = string> {
  readonly values: Text[] | Set<Text>
  characters: number
}

interface JoinedStrings extends Strings {
  /** null until a row has provided one. */
  delimiter: string | null
}

const noStrings = <Text>(distinct: boolean): Strings<Text> => ({ values: distinct ? new Set() : [], characters: 0 })

function keep<Text extends string | null>(state: Strings<Text>, text: Text): void {
  const { values } = state
  if (values instanceof Set) {
    if (values.has(text)) return
    values.add(text)
  } else values.push(text)
  state.characters += (text?.length ?? 0) + 1
  if (state.characters > valueBytesMax) throw new SqlError('aggregated text is too long', 0)
}

function collecting(distinct: boolean): Accumulator<unknown> {
  return accumulator<JoinedStrings>({
    init: () => ({ ...noStrings(distinct), delimiter: null }),
    add: (state, [value, delimiter]) => {
      if (typeof delimiter === 'string') state.delimiter = delimiter
      if (typeof value === 'string') keep(state, value)
    },
    merge: (state, other) => {
      for (const value of other.values) keep(state, value)
      state.delimiter = other.delimiter ?? state.delimiter
    },
    result: ({ values, delimiter }) => {
      const strings = [...values]
      if (strings.length === 0) return null
      const text = strings.join(delimiter ?? ',')
      if (text.length > valueBytesMax) throw new SqlError('aggregated text is too long', 0)
      return text
    },
  })
}

function checkCount(values: number): void {
  if (values > listValuesMax) throw new SqlError(`array is too long [max=${listValuesMax}]`, 0)
}

const joinedText = ([first]: readonly BoundArgument[]): DataType =>
  dataType(first?.type.name === 'VARCHAR' ? 'VARCHAR' : 'STRING')

const strings: AggregateFunction[] = [
  {
    name: 'string_agg',
    takes: ['TEXT', 'TEXT'],
    gives: joinedText,
    description: 'All strings joined by a delimiter.',
    example: ["string_agg(x::string, ',')", '1,2,3,4,5'],
    ordered: true,
    accumulator: collecting(false),
  },
  {
    name: 'string_distinct_agg',
    takes: ['TEXT', 'TEXT'],
    gives: joinedText,
    description: 'All distinct strings joined by a delimiter.',
    example: ["string_distinct_agg(x::string, ',')", '1,2,3,4,5'],
    ordered: true,
    accumulator: collecting(true),
  },
  {
    name: 'array_agg',
    takes: ['DOUBLE'],
    gives: () => ({ name: 'ARRAY', a: 1, b: 0 }),
    description: 'All values as an array.',
    example: null,
    ordered: true,
    accumulator: accumulator<{ values: number[] }>({
      init: () => ({ values: [] }),
      add: (state, [value]) => {
        state.values.push(typeof value === 'number' ? value : Number.NaN)
        checkCount(state.values.length)
      },
      merge: (state, other) => {
        for (const value of other.values) state.values.push(value)
        checkCount(state.values.length)
      },
      result: (state) =>
        state.values.length === 0 ? null : { shape: [state.values.length], data: Float64Array.from(state.values) },
    }),
  },
]

/** The numbers of all arrays as one array. */
const joinedArrays: AggregateFunction = {
  name: 'array_agg',
  takes: ['ARRAY'],
  gives: () => ({ name: 'ARRAY', a: 1, b: 0 }),
  description: 'The numbers of all arrays, one array after the other, as an array of one dimension.',
  example: ['array_agg(array[x, 0.5])', '[1.0,0.5,2.0,0.5,3.0,0.5,4.0,0.5,5.0,0.5]'],
  ordered: true,
  accumulator: accumulator<{ arrays: Float64Array[]; count: number }>({
    init: () => ({ arrays: [], count: 0 }),
    add: (state, [value]) => {
      if (value !== null && typeof value === 'object' && 'data' in value) keepArray(state, value.data)
    },
    merge: (state, { arrays }) => {
      for (const numbers of arrays) keepArray(state, numbers)
    },
    result: ({ arrays, count }) => {
      if (count === 0) return null
      const data = new Float64Array(count)
      let end = 0
      for (const numbers of arrays) {
        data.set(numbers, end)
        end += numbers.length
      }
      return { shape: [count], data }
    },
  }),
}

function keepArray(state: { readonly arrays: Float64Array[]; count: number }, numbers: Float64Array): void {
  state.count += numbers.length
  checkCount(state.count)
  // A copy: the row's memory is reused.
  state.arrays.push(numbers.slice())
}

/** In ascending order, as in PostgreSQL. */
const distinctArray: AggregateFunction = {
  name: 'array_distinct_agg',
  takes: ['DOUBLE'],
  gives: () => ({ name: 'ARRAY', a: 1, b: 0 }),
  description: 'All distinct numbers as an array in ascending order; implements `array_agg(distinct x)`.',
  example: null,
  accumulator: accumulator<Set<number>>({
    init: () => new Set(),
    add: (state, [value]) => {
      state.add(typeof value === 'number' ? value : Number.NaN)
      checkCount(state.size)
    },
    merge: (state, other) => {
      for (const value of other) state.add(value)
    },
    result: (state) => (state.size === 0 ? null : { shape: [state.size], data: Float64Array.from(state).sort() }),
  }),
}

/** Collects values of other types as a list of strings. */
function listing(distinct: boolean): Accumulator<unknown> {
  return accumulator<Strings<string | null>>({
    init: () => noStrings(distinct),
    add: (state, [value = null], { argTypes }) => {
      keep(state, value === null ? null : displayText(value, argTypes[0] ?? dataType('STRING')))
    },
    merge: (state, other) => {
      for (const value of other.values) keep(state, value)
    },
    result: ({ values }) => {
      const strings = [...values]
      return strings.length === 0 ? null : textArray(strings)
    },
  })
}

/** Clients of PostgreSQL get a list of the values' type. */
const listOf = ([first]: readonly BoundArgument[]): DataType =>
  first === undefined ? textArrayType : listTypeOf(first.type)

const lists: AggregateFunction[] = (['TEXT', 'TIME', 'DATE', 'BOOLEAN'] as const).flatMap((type) =>
  [false, true].map(
    (distinct): AggregateFunction => ({
      name: distinct ? 'array_distinct_agg' : 'array_agg',
      takes: [type],
      gives: listOf,
      description: distinct ? 'All distinct values as a list.' : 'All values as a list.',
      example: type === 'TEXT' ? [`array${distinct ? '_distinct' : ''}_agg(x::string)`, '{1,2,3,4,5}'] : null,
      ordered: true,
      accumulator: listing(distinct),
    }),
  ),
)

/** list_agg() for any type. */
const listOfAny: AggregateFunction = {
  name: 'list_agg',
  takes: ['ANY'],
  gives: listOf,
  description: 'All values as a list, NULLs included; implements `array(select x ..)`.',
  example: ['list_agg(x)', '{1,2,3,4,5}'],
  ordered: true,
  accumulator: listing(false),
}

/**
 * The variant with a condition, for aggregates that do not ignore NULL: FILTER cannot replace the argument by NULL
 * there.
 */
export function filtered(row: AggregateFunction): AggregateFunction {
  const { add } = row.accumulator
  return {
    name: `${row.name}_where`,
    takes: [...row.takes, 'BOOLEAN'],
    gives: row.gives,
    description: `What \`${row.name}(..) filter (where ..)\` means.`,
    example: null,
    ...(row.ordered === true ? { ordered: true } : {}),
    accumulator: {
      ...row.accumulator,
      add: (state, args, site) => {
        if (args.at(-1) === true) add(state, args.slice(0, -1), site)
      },
    },
  }
}

export const collectingAggregates: readonly AggregateFunction[] = [
  ...strings,
  joinedArrays,
  distinctArray,
  ...lists,
  listOfAny,
  ...[...strings, joinedArrays, distinctArray, ...lists].filter(({ name }) => name.startsWith('array_')).map(filtered),
  filtered(listOfAny),
  ...singleRows.map(filtered),
]
