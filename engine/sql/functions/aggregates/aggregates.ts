// Basic aggregates: sums, averages, counts, boolean and bitwise aggregates. They ignore NULL. Without values a count is
// 0, a boolean is false, and any other result is NULL.

import { SqlError } from '../../../base/errors.js'
import { type ColumnType, type DataType, dataType, typeText } from '../../../types/column-types.js'
import { keyText } from '../../../types/compare.js'
import type { Value } from '../../../types/value.js'
import { longSum } from '../../../types/wide-sum.js'
import {
  type Accumulator,
  type AggregateFunction,
  accumulator,
  type BoundArgument,
  type CallSite,
  type ColumnAccumulator,
  finiteOrNull,
  overNumbers,
} from '../function-types.js'
import { orderedRows } from '../ordered-rows.js'
import { singleRows } from '../single-row.js'
import { rowAggregates } from './aggregates-rows.js'
import { decimalMean } from './finished-moments.js'

/** Adds a value, and the rounding error of the addition to `lost`. State: {total, lost, values, 0}. */
function addExact(cells: Float64Array, at: number, value: number): void {
  const total = cells[at]!
  const next = total + value
  const lost = Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total
  cells[at] = next
  cells[at + 1] = cells[at + 1]! + lost
}

const exactWords = 4

/**
 * ksum(): compensated summation, which adds up the rounding errors separately (A. Neumaier, Rundungsfehleranalyse
 * einiger Verfahren zur Summation endlicher Summen, 1974).
 */
const exactSum = overNumbers({
  words: exactWords,
  add: (cells, at, value) => {
    addExact(cells, at, value)
    cells[at + 2] = cells[at + 2]! + 1
  },
  addRows: (cells, first, { count, numbers, x, groups, ids }) => {
    for (let row = 0; row < count; row++) {
      const value = numbers[x + row]!
      if (Number.isNaN(value)) continue
      const at = ids === 0 ? first : first + groups[ids + row]! * exactWords
      addExact(cells, at, value)
      cells[at + 2] = cells[at + 2]! + 1
    }
  },
  merge: (cells, at, others, from) => {
    addExact(cells, at, others[from]!)
    cells[at + 1] = cells[at + 1]! + others[from + 1]!
    cells[at + 2] = cells[at + 2]! + others[from + 2]!
  },
  result: (cells, at) => (cells[at + 2] === 0 ? null : cells[at]! + cells[at + 1]!),
})

interface Sum {
  total: number
  count: number
}

function doubleSum(finish: (state: Sum) => number | null): Accumulator<unknown> {
  return accumulator<Sum>({
    small: true,
    init: () => ({ total: 0, count: 0 }),
    add: (state, [value]) => {
      if (value === null || value === undefined) return
      state.total += Number(value)
      state.count++
    },
    merge: (state, other) => {
      state.total += other.total
      state.count += other.count
    },
    result: (state) => (state.count === 0 ? null : finiteOrNull(finish(state))),
  })
}

const plainSum = doubleSum((state) => state.total)
const average = doubleSum((state) => state.total / state.count)

const integerSum = accumulator<{ total: bigint; count: number }>({
  small: true,
  init: () => ({ total: 0n, count: 0 }),
  add: (state, [value]: readonly [number | bigint | null]) => {
    if (value === null || value === undefined) return
    state.total += BigInt(value)
    state.count++
  },
  merge: (state, other) => {
    state.total += other.total
    state.count += other.count
  },
  result: (state, site) => (state.count === 0 ? null : withinType(state.total, site)),
})

/** An overflow of the result type is an error. */
function withinType(total: bigint, { type, position }: CallSite): bigint {
  if (type.name === 'LONG') return longSum(total)
  const limit = type.name === 'DECIMAL' ? 10n ** BigInt(type.a) : 1n << 256n
  if (total < limit && total > -limit) return total
  throw new SqlError(`the sum is out of range of ${typeText(type)}`, position)
}

/** Average of integers: exact sum, then a division of doubles. */
const integerAverage = accumulator<{ total: bigint; count: number }>({
  ...(integerSum as Accumulator<{ total: bigint; count: number }>),
  result: (state) => (state.count === 0 ? null : Number(state.total) / state.count),
})

const decimalAverage = accumulator<{ total: bigint; count: number }>({
  ...(integerSum as Accumulator<{ total: bigint; count: number }>),
  result: ({ total, count }, site) => (count === 0 ? null : decimalMean(total, BigInt(count), site)),
})

function checkScale(argument: BoundArgument | undefined): void {
  const scale = argument?.constant
  if (typeof scale === 'number' && scale >= 0 && scale <= 76) return
  const message =
    typeof scale === 'number' && scale > 76
      ? `scale exceeds maximum of 76: ${scale}`
      : `non-negative scale required: ${scale === undefined ? 'it is no constant' : String(scale)}`
  throw new SqlError(message, argument?.position ?? 0)
}

function sumRow(
  type: ColumnType,
  gives: AggregateFunction['gives'],
  parts: Accumulator<unknown>,
): Omit<AggregateFunction, 'column'> {
  return {
    name: 'sum',
    takes: [type],
    gives,
    description: 'Sum of the values.',
    example: type === 'LONG' ? ['sum(x)', '15'] : null,
    accumulator: parts,
  }
}

const sumOf: ColumnAccumulator = { kind: 'sum', result: 'sum' }
const meanOf: ColumnAccumulator = { kind: 'sum', result: 'mean' }
const countOf: ColumnAccumulator = { kind: 'sum', result: 'count' }

/** The sum's type has more digits than that of the values, so that sums rarely overflow. */
export function roomySum(type: DataType | undefined): DataType {
  const digits = type?.a ?? 18
  return dataType('DECIMAL', digits <= 4 ? 18 : digits <= 18 ? 38 : 76, type?.b ?? 0)
}

const sums: AggregateFunction[] = [
  // An untyped NULL matches the first entry.
  { ...sumRow('DOUBLE', 'DOUBLE', plainSum), column: sumOf },
  { ...sumRow('SHORT', 'LONG', integerSum), column: sumOf },
  { ...sumRow('INT', 'LONG', integerSum), column: sumOf },
  { ...sumRow('LONG', 'LONG', integerSum), column: sumOf },
  { ...sumRow('FLOAT', 'FLOAT', plainSum), column: sumOf },
  sumRow('LONG256', 'LONG256', integerSum),
  sumRow('DECIMAL', ([first]) => roomySum(first?.type), integerSum),
  ...['ksum', 'nsum'].map(
    (name): AggregateFunction => ({
      name,
      takes: ['DOUBLE'],
      gives: 'DOUBLE',
      description: 'Compensated (Kahan) sum, which adds up rounding errors separately.',
      example: [`${name}(x)`, '15.0'],
      ...exactSum,
    }),
  ),
  ...(['SHORT', 'INT'] as const).map(
    (type): AggregateFunction => ({
      name: 'avg',
      takes: [type],
      gives: 'DOUBLE',
      description: 'Mean of the values.',
      example: null,
      accumulator: integerAverage,
      column: meanOf,
    }),
  ),
  {
    name: 'avg',
    takes: ['LONG'],
    gives: 'DOUBLE',
    description: 'Mean of the values.',
    example: ['avg(x)', '3.0'],
    accumulator: integerAverage,
    column: meanOf,
  },
  {
    name: 'avg',
    takes: ['BOOLEAN'],
    gives: 'DOUBLE',
    description: 'Fraction of true values.',
    example: ['avg(x > 2)', '0.6'],
    accumulator: average,
  },
  {
    name: 'avg',
    takes: ['DECIMAL'],
    gives: 'FIRST',
    description: 'Mean of DECIMALs, at their scale; over the PostgreSQL protocol with at least 18 decimal places.',
    example: null,
    accumulator: decimalAverage,
  },
  {
    name: 'avg',
    takes: ['DECIMAL', 'INT'],
    gives: ([first, scale]) => {
      const digits = Number(scale?.constant ?? 0)
      return dataType(
        'DECIMAL',
        Math.min(76, Math.max(1, (first?.type.a ?? 18) - (first?.type.b ?? 0) + digits)),
        digits,
      )
    },
    description: 'Mean of DECIMALs, at a given scale.',
    example: null,
    check: (args) => checkScale(args[1]),
    accumulator: decimalAverage,
  },
  {
    name: 'avg',
    takes: ['DOUBLE'],
    gives: 'DOUBLE',
    description: 'Mean of the values.',
    example: null,
    accumulator: average,
    column: meanOf,
  },
]

// Counts ------------------------------------------------------------------------------------------------------------

const counting = accumulator<{ count: bigint }>({
  small: true,
  init: () => ({ count: 0n }),
  add: (state, args) => {
    if (args.length === 0 || args[0] !== null) state.count++
  },
  merge: (state, other) => {
    state.count += other.count
  },
  result: (state) => state.count,
})

const countingDistinct = accumulator<{ keys: Set<string> }>({
  init: () => ({ keys: new Set() }),
  add: (state, [value]) => {
    if (value !== null && value !== undefined) state.keys.add(keyText(value))
  },
  merge: (state, other) => {
    for (const key of other.keys) state.keys.add(key)
  },
  result: (state) => BigInt(state.keys.size),
})

const counts: AggregateFunction[] = [
  {
    name: 'count',
    takes: [],
    gives: 'LONG',
    description: 'Number of rows.',
    example: ['count()', '5'],
    accumulator: counting,
    column: { kind: 'rows' },
  },
  {
    name: 'count',
    takes: ['ANY'],
    gives: 'LONG',
    description: 'Number of values that are not NULL.',
    example: ['count(x)', '5'],
    accumulator: counting,
    column: countOf,
    columnTypes: ([type]) => isNumeric(type),
  },
  {
    name: 'count_distinct',
    takes: ['ANY'],
    gives: 'LONG',
    description: 'Number of distinct values.',
    example: ['count_distinct(x)', '5'],
    accumulator: countingDistinct,
    column: { kind: 'distinct' },
  },
  ...(['INT', 'LONG', 'IPv4', 'SYMBOL'] as const).flatMap((type) =>
    ([[type], [type, 'INT']] as const).map(
      (takes): AggregateFunction => ({
        name: 'approx_count_distinct',
        takes,
        gives: 'LONG',
        description: 'Number of distinct values, counted exactly; the precision is ignored.',
        example: null,
        check: (args, position) => {
          const precision = args[1]?.constant
          if (args.length > 1 && (typeof precision !== 'number' || precision < 4 || precision > 18))
            throw new SqlError('precision must be between 4 and 18', position)
        },
        accumulator: countingDistinct,
        column: { kind: 'distinct' },
      }),
    ),
  ),
]

/** Numeric types whose NULL the kernels recognise. */
function isNumeric(type: DataType | undefined): boolean {
  return type !== undefined && numericTypes.has(type.name)
}

const numericTypes: ReadonlySet<ColumnType> = new Set([
  ...(['SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'] as const),
])

// Logic and bits ----------------------------------------------------------------------------------------------------

function bits(start: bigint, apply: (a: bigint, b: bigint) => bigint): Accumulator<unknown> {
  interface Bits {
    value: bigint
    seen: boolean
  }
  const offer = (state: Bits, value: bigint): void => {
    state.value = apply(state.value, value)
    state.seen = true
  }
  return accumulator<Bits>({
    init: () => ({ value: start, seen: false }),
    add: (state, [value]: readonly [number | bigint | boolean | null]) => {
      if (value !== null && value !== undefined) offer(state, BigInt(value))
    },
    merge: (state, other) => {
      if (other.seen) offer(state, other.value)
    },
    result: (state, { type }) => {
      if (!state.seen) return type.name === 'BOOLEAN' ? false : null
      return type.name === 'LONG'
        ? BigInt.asIntN(64, state.value)
        : type.name === 'BOOLEAN'
          ? state.value !== 0n
          : Number(state.value)
    },
  })
}

const countTrue = accumulator<{ count: number }>({
  init: () => ({ count: 0 }),
  add: (state, [value]) => {
    if (value === true) state.count++
  },
  merge: (state, other) => {
    state.count += other.count
  },
  result: ({ count }) => BigInt(count),
})

const logic: AggregateFunction[] = [
  ...['count_if', 'countif'].map(
    (name): AggregateFunction => ({
      name,
      takes: ['BOOLEAN'],
      gives: 'LONG',
      description: 'Number of rows for which the condition is true.',
      example: [`${name}(x > 3)`, '2'],
      accumulator: countTrue,
    }),
  ),
  ...['bool_and', 'every'].map(
    (name): AggregateFunction => ({
      name,
      takes: ['BOOLEAN'],
      gives: 'BOOLEAN',
      description: 'Whether all are true.',
      example: [`${name}(x > 0)`, 'true'],
      accumulator: bits(1n, (a, b) => a & b),
      column: { kind: 'bits', fold: 'and' },
    }),
  ),
  {
    name: 'bool_or',
    takes: ['BOOLEAN'],
    gives: 'BOOLEAN',
    description: 'Whether at least one is true.',
    example: ['bool_or(x > 4)', 'true'],
    accumulator: bits(0n, (a, b) => a | b),
    column: { kind: 'bits', fold: 'or' },
  },
  ...(['BYTE', 'SHORT', 'INT', 'LONG'] as const).flatMap((type) =>
    (
      [
        ['and', -1n, (a: bigint, b: bigint) => a & b],
        ['or', 0n, (a: bigint, b: bigint) => a | b],
        ['xor', 0n, (a: bigint, b: bigint) => a ^ b],
      ] as const
    ).map(
      ([fold, start, apply]): AggregateFunction => ({
        name: `bit_${fold}`,
        takes: [type],
        gives: 'FIRST',
        description: 'Bitwise operation over all values.',
        example: null,
        accumulator: bits(start, apply),
        column: { kind: 'bits', fold },
      }),
    ),
  ),
]

/** The variant over distinct values. */
function overDistinct({
  name,
  takes,
  gives,
  description,
  check,
  accumulator: parts,
}: AggregateFunction): AggregateFunction {
  return {
    name: `${name}_distinct`,
    takes,
    gives,
    description: `${description.slice(0, -1)}, each different one once: what \`${name}(distinct x)\` means.`,
    example: takes[0] === 'LONG' ? [`${name}_distinct(x % 2)`, name === 'sum' ? '1' : '0.5'] : null,
    ...(check === undefined ? {} : { check }),
    accumulator: accumulator<Map<string, Value>>({
      init: () => new Map(),
      add: (state, [value = null]) => {
        if (value !== null) state.set(keyText(value), value)
      },
      merge: (state, other) => {
        for (const [key, value] of other) state.set(key, value)
      },
      result: (state, site) => {
        const total = parts.init()
        for (const value of state.values()) parts.add(total, [value], site)
        return parts.result(total, site)
      },
    }),
  }
}

export const basicAggregates: readonly AggregateFunction[] = [
  ...sums,
  ...sums.filter(({ name, takes }) => /^(sum|avg)$/.test(name) && takes.length === 1).map(overDistinct),
  ...counts,
  ...rowAggregates,
  ...logic,
  orderedRows,
  ...singleRows,
]
