// Aggregates that return the value of one of the rows: min, max, first, last, any_value, and arg_min(a, b) and
// arg_max(a, b), which return the value of a in the row where b is smallest or largest.

import { type ColumnType, type DataType, dataType, isVariable, widthOf } from '../../../types/column-types.js'
import { compareValues } from '../../../types/compare.js'
import type { Value } from '../../../types/value.js'
import {
  type Accumulator,
  type AggregateFunction,
  accumulator,
  type BoundArgument,
  type Extreme,
} from '../function-types.js'

interface Retained {
  value: Value
  seen: boolean
}

function keeping(replaces: (state: Retained, value: Value) => boolean): Accumulator<unknown> {
  const offer = (state: Retained, value: Value): void => {
    if (replaces(state, value)) state.value = value
    state.seen = true
  }
  return accumulator<Retained>({
    init: () => ({ value: null, seen: false }),
    add: (state, [value = null]) => offer(state, value),
    merge: (state, other) => {
      if (other.seen) offer(state, other.value)
    },
    result: (state) => state.value,
  })
}

const smallest = keeping(
  (state, value) => value !== null && (state.value === null || compareValues(value, state.value) < 0),
)
const largest = keeping(
  (state, value) => value !== null && (state.value === null || compareValues(value, state.value) > 0),
)
const first = keeping((state) => !state.seen)
const last = keeping(() => true)
const firstPresent = keeping((state, value) => value !== null && state.value === null)
const lastPresent = keeping((_state, value) => value !== null)

/** In the order in which an untyped NULL is matched. */
const orderedTypes = [
  'BOOLEAN',
  'STRING',
  'CHAR',
  'INT',
  'LONG',
  'DATE',
  'FLOAT',
  'DOUBLE',
  'VARCHAR',
  'IPv4',
  'DECIMAL',
  'TIME',
] as const

function extremes(best: Extreme, description: string, parts: Accumulator<unknown>): AggregateFunction[] {
  return orderedTypes.map(
    (type): AggregateFunction => ({
      name: best,
      takes: [type],
      gives: 'FIRST',
      description,
      example: type === 'LONG' ? [`${best}(x)`, best === 'min' ? '1' : '5'] : null,
      accumulator: parts,
      ...extremeColumn(type, best),
    }),
  )
}

function extremeColumn(type: (typeof orderedTypes)[number], best: Extreme): Pick<AggregateFunction, 'column'> {
  switch (type) {
    case 'STRING':
    case 'VARCHAR':
      return { column: { kind: 'string-extreme', best } }
    case 'BOOLEAN':
    case 'CHAR':
    case 'IPv4':
    case 'DECIMAL':
      return {}
    default:
      return { column: { kind: 'extreme', best } }
  }
}

function keeper(
  name: string,
  description: string,
  shown: string,
  parts: Accumulator<unknown>,
  gives: AggregateFunction['gives'] = 'FIRST',
): AggregateFunction {
  return { name, takes: ['ANY'], gives, description, example: [`${name}(x)`, shown], ordered: true, accumulator: parts }
}

/** Whether values have a fixed size of at most 8 bytes. */
function isPlain(type: DataType | undefined): boolean {
  return type !== undefined && !isVariable(type) && type.name !== 'SYMBOL' && widthOf(type) <= 8
}

const retained: AggregateFunction[] = [
  ...extremes('min', 'Smallest value.', smallest),
  ...extremes('max', 'Largest value.', largest),
  {
    ...keeper('first', 'Value of the first row.', '1', first),
    column: { kind: 'end', end: 'first' },
    columnTypes: ([type]) => isPlain(type),
  },
  {
    ...keeper('last', 'Value of the last row.', '5', last),
    column: { kind: 'end', end: 'last' },
    columnTypes: ([type]) => isPlain(type),
  },
  keeper('any_value', 'Any value of the group that is not NULL: the first one.', '1', firstPresent, presentType),
  keeper('first_not_null', 'First value that is not NULL.', '1', firstPresent, presentType),
  keeper('last_not_null', 'Last value that is not NULL.', '5', lastPresent, presentType),
]

/** A type without NULL becomes one that has it, since there may be no value. */
function presentType([first]: readonly BoundArgument[]): DataType {
  const type = first?.type ?? dataType('INT')
  return type.name === 'BYTE' || type.name === 'SHORT' ? dataType('INT') : type
}

/** Small integers become LONG, an untyped NULL becomes DOUBLE. */
function widenedFirst([first]: readonly BoundArgument[]): DataType {
  const type = first?.type ?? dataType('DOUBLE')
  if (type.name === 'BYTE' || type.name === 'SHORT' || type.name === 'INT') return dataType('LONG')
  return type
}

/** The value in the row where another value is smallest or largest. */
function argument(sign: 1 | -1): Accumulator<unknown> {
  interface Best {
    value: Value
    by: Value
  }
  const offer = (state: Best, value: Value, by: Value): void => {
    if (by === null || (state.by !== null && compareValues(by, state.by) * sign <= 0)) return
    state.value = value
    state.by = by
  }
  return accumulator<Best>({
    init: () => ({ value: null, by: null }),
    add: (state, [value = null, by = null]) => offer(state, value, by),
    merge: (state, other) => offer(state, other.value, other.by),
    result: (state) => state.value,
  })
}

/** Whether the vectorised accumulator supports the types. An empty CHAR, its NULL, would count as a value. */
export function isChoosable([value, by]: readonly DataType[]): boolean {
  return value?.name !== 'CHAR' && by !== undefined && choosingTypes.has(by.name)
}

const choosingTypes: ReadonlySet<ColumnType> = new Set(['INT', 'LONG', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

const arguments_: AggregateFunction[] = ['arg_min', 'min_by', 'arg_max', 'max_by'].map((name) => ({
  name,
  takes: ['ANY', 'ANY'],
  gives: widenedFirst,
  description: name.includes('min')
    ? 'The first argument in the row where the second is smallest.'
    : 'The first argument in the row where the second is largest.',
  example: [`${name}(x, x)`, name.includes('min') ? '1' : '5'],
  ordered: true,
  accumulator: argument(name.includes('min') ? -1 : 1),
  column: { kind: 'chosen', best: name.includes('min') ? 'min' : 'max' },
  columnTypes: isChoosable,
}))

export const rowAggregates: readonly AggregateFunction[] = [...retained, ...arguments_]
