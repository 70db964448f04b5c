// Aggregates over states (types/value-states.ts), from which materialized views combine the groups of several time
// buckets: distinct_values() and sorted_numbers() return the state of a group, with a second argument only up to that
// size, else NULL. merged_distinct_values() and merged_sorted_numbers() return the state of the rows of several groups,
// merged_count_distinct() the number of their distinct values. Where one of the groups has no state, the result is NULL.

import { SqlError } from '../../../base/errors.js'
import { typeText } from '../../../types/column-types.js'
import {
  encodeNumbers,
  encodeValues,
  formOf,
  readNumbers,
  readValues,
  type SetValue,
  setKey,
  setValueOf,
  type ValueForm,
  valuesIn,
} from '../../../types/value-states.js'
import { type Accumulator, type AggregateFunction, accumulator, type BoundArgument } from '../function-types.js'

/** The size up to which states are wanted; without the argument, all. */
export function stateBytesMax(argument: unknown): number {
  return typeof argument === 'number' ? argument : Number.POSITIVE_INFINITY
}

function checkBytes(argument: BoundArgument | undefined): void {
  if (argument === undefined || argument.described === true) return
  if (typeof argument.constant !== 'number' || argument.constant < 0)
    throw new SqlError('the size of a state must be a constant that is not negative', argument.position)
}

// Distinct values ---------------------------------------------------------------------------------------------------

interface Distinct {
  readonly values: Map<bigint | string, SetValue>
  form: ValueForm | undefined
  bytesMax: number
  isMissing: boolean
}

const distinct = {
  init: (): Distinct => ({
    ...{ values: new Map(), form: undefined, bytesMax: Number.POSITIVE_INFINITY, isMissing: false },
  }),
  merge: (state: Distinct, other: Distinct): void => {
    for (const [key, value] of other.values) state.values.set(key, value)
    state.form ??= other.form
    state.bytesMax = Math.min(state.bytesMax, other.bytesMax)
    state.isMissing ||= other.isMissing
  },
}

function stateOf({ values, form, bytesMax, isMissing }: Distinct): Uint8Array | null {
  return form === undefined || isMissing ? null : encodeValues(form, values.values(), bytesMax)
}

const distinctValues = accumulator<Distinct>({
  ...distinct,
  add: (state, [value = null, bytesMax], { argTypes: [type] }) => {
    state.bytesMax = stateBytesMax(bytesMax)
    if (type === undefined || value === null) return
    const own = setValueOf(value, type)
    state.values.set(setKey(own), own)
  },
  result: (state, { argTypes: [type] }) => stateOf({ ...state, form: type === undefined ? undefined : formOf(type) }),
})

function merging(result: (state: Distinct) => bigint | Uint8Array | null): Accumulator<unknown> {
  return accumulator<Distinct>({
    ...distinct,
    add: (state, [bytes, bytesMax], { position }) => {
      state.bytesMax = stateBytesMax(bytesMax)
      if (!(bytes instanceof Uint8Array)) {
        state.isMissing = true
        return
      }
      const { form } = readValues(bytes)
      checkForm(state.form ?? form, form, position)
      state.form = form
      for (const value of valuesIn(bytes)) state.values.set(setKey(value), value)
    },
    result,
  })
}

export function checkForm(known: ValueForm, form: ValueForm, position: number): void {
  if (known !== form) throw new SqlError('the states are of values of different types', position)
}

// Numbers -----------------------------------------------------------------------------------------------------------

interface Numbers {
  values: number[]
  /** The constant second argument; infinite without one. */
  second: number
  isMissing: boolean
  isAny: boolean
}

const numbers = {
  init: (): Numbers => ({ values: [], second: Number.POSITIVE_INFINITY, isMissing: false, isAny: false }),
  merge: (state: Numbers, other: Numbers): void => {
    for (const value of other.values) state.values.push(value)
    state.second = Math.min(state.second, other.second)
    state.isMissing ||= other.isMissing
    state.isAny ||= other.isAny
  },
}

const sortedNumbers = accumulator<Numbers>({
  ...numbers,
  add: (state, [value, bytesMax]) => {
    state.second = stateBytesMax(bytesMax)
    if (typeof value === 'number' || typeof value === 'bigint') state.values.push(Number(value))
  },
  result: ({ values, second }) => encodeNumbers(Float64Array.from(values), second),
})

/** Over the numbers of all groups. */
export function overStates(
  result: (all: Float64Array, second: number) => number | Uint8Array | null,
): Accumulator<unknown> {
  return accumulator<Numbers>({
    ...numbers,
    add: (state, [bytes, second]) => {
      state.second = stateBytesMax(second)
      state.isAny = true
      if (bytes instanceof Uint8Array) eachNumber(bytes, (number) => state.values.push(number))
      else state.isMissing = true
    },
    result: ({ values, second, isMissing, isAny }) =>
      isMissing || !isAny ? null : result(Float64Array.from(values), second),
  })
}

function eachNumber(state: Uint8Array, each: (number: number) => void): void {
  const { numbers: all, frequencies } = readNumbers(state)
  for (let index = 0; index < all.length; index++)
    for (let left = frequencies?.[index] ?? 1; left > 0; left--) each(all[index]!)
}

// Functions ---------------------------------------------------------------------------------------------------------

const stateDescription = 'as materialized views keep them; with a second argument NULL if they need more bytes.'

/** The states of one value: 5, and 3.0. */
const valuesExample = "from_base64('AQEAAAEAAAAFAAAAAAAAAA==')"
export const numbersExample = "from_base64('AQUAAAEAAAAAAAAAAAAIQA==')"

export const stateAggregates: readonly AggregateFunction[] = [
  ...([['ANY'], ['ANY', 'INT']] as const).map(
    (takes): AggregateFunction => ({
      ...{ name: 'distinct_values', takes, gives: 'BINARY', accumulator: distinctValues },
      example: ['length(distinct_values(x))', '48'],
      description: `The distinct values, ${stateDescription}`,
      check: ([value, bytes], position) => {
        if (value !== undefined && formOf(value.type) === undefined)
          throw new SqlError(`there is no state of values of type ${typeText(value.type)}`, position)
        checkBytes(bytes)
      },
      column: { kind: 'distinct-values' },
    }),
  ),
  ...([['BINARY'], ['BINARY', 'INT']] as const).map(
    (takes): AggregateFunction => ({
      ...{ name: 'merged_distinct_values', takes, gives: 'BINARY', accumulator: merging(stateOf) },
      example: [`length(merged_distinct_values(${valuesExample}))`, '16'],
      description: 'The distinct values of groups with these distinct_values().',
      check: ([, bytes]) => checkBytes(bytes),
      column: { kind: 'merged-values', result: 'values' },
    }),
  ),
  {
    ...{ name: 'merged_count_distinct', takes: ['BINARY'], gives: 'LONG' },
    example: [`merged_count_distinct(${valuesExample})`, '1'],
    description: 'The number of distinct values over all rows of groups with these distinct_values().',
    accumulator: merging(({ values, isMissing }) => (isMissing ? null : BigInt(values.size))),
    column: { kind: 'merged-values', result: 'count' },
  },
  ...(['LONG', 'DOUBLE'] as const).flatMap((type) =>
    ([[type], [type, 'INT']] as const).map(
      (takes): AggregateFunction => ({
        ...{ name: 'sorted_numbers', takes, gives: 'BINARY', accumulator: sortedNumbers },
        example: ['length(sorted_numbers(x))', '48'],
        description: `The numbers and how often each occurs, ${stateDescription}`,
        check: ([, bytes]) => checkBytes(bytes),
        column: { kind: 'sorted-numbers' },
      }),
    ),
  ),
  ...([['BINARY'], ['BINARY', 'INT']] as const).map(
    (takes): AggregateFunction => ({
      ...{ name: 'merged_sorted_numbers', takes, gives: 'BINARY' },
      example: [`length(merged_sorted_numbers(${numbersExample}))`, '20'],
      description: 'The numbers of groups with these sorted_numbers().',
      accumulator: overStates((all, bytesMax) => encodeNumbers(all, bytesMax)),
      check: ([, bytes]) => checkBytes(bytes),
      column: { kind: 'merged-numbers', value: null },
    }),
  ),
]
