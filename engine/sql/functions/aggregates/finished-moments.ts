// Computes variance, covariance and regression from their moments: the count, the means, and the sums of squared
// deviations and of products. Also defines the aggregates merged_moments(), merged_sum() and merged_mean(). From the
// moments, or the counts and sums, of several groups, they compute the result over all rows of these groups, without
// reading the rows. Materialized views store moments and sums of their time buckets for this purpose.
//
// A moment or a sum that is not finite is stored as NULL. If a group with values has such a NULL, the result is NULL.

import { SqlError } from '../../../base/errors.js'
import { divideHalfEven } from '../../../types/number.js'
import type { Value } from '../../../types/value.js'
import {
  type AggregateFunction,
  accumulator,
  type BoundArgument,
  type CallSite,
  finiteOrNull,
} from '../function-types.js'
import { type Moments, merged, noMoments } from './moments.js'

type Finish = (state: Moments) => number | null

const sample = (sum: number, count: number): number | null => (count < 2 ? null : sum / (count - 1))
const population = (sum: number, count: number): number | null => (count < 1 ? null : sum / count)
const root = (value: number | null): number | null => (value === null ? null : Math.sqrt(value))

const sampleVariance: Finish = ({ squaresX, count }) => sample(squaresX, count)
const sampleDeviation: Finish = (state) => root(sampleVariance(state))

/** Results of aggregates of one variable, x. */
export const finishOfOne = {
  variance: sampleVariance,
  var_samp: sampleVariance,
  var_pop: ({ squaresX, count }: Moments) => population(squaresX, count),
  stddev: sampleDeviation,
  stddev_samp: sampleDeviation,
  stddev_pop: ({ squaresX, count }: Moments) => root(population(squaresX, count)),
} satisfies Record<string, Finish>

/** Regression of the first argument (y) on the second (x). Note that x of the state is the first argument. */
function slope(state: Moments): number | null {
  if (state.count < 2 || state.squaresY === 0 || !Number.isFinite(state.squaresY)) return null
  return state.products / state.squaresY
}

const ifAny =
  (value: (state: Moments) => number): Finish =>
  (state) =>
    state.count < 1 ? null : value(state)

/** Results of aggregates of two variables. */
export const finishOfTwo = {
  covar_samp: ({ products, count }: Moments) => sample(products, count),
  covar_pop: ({ products, count }: Moments) => population(products, count),
  corr: ({ squaresX, squaresY, products, count }: Moments) => {
    const scale = Math.sqrt(squaresX * squaresY)
    return count < 1 || scale === 0 || !Number.isFinite(squaresX + squaresY) ? null : products / scale
  },
  regr_slope: slope,
  regr_intercept: (state: Moments) => {
    const value = slope(state)
    return value === null ? null : state.meanX - value * state.meanY
  },
  regr_r2: ({ squaresX, squaresY, products, count }: Moments) => {
    if (count < 1 || squaresY === 0 || !Number.isFinite(squaresX + squaresY)) return null
    return squaresX === 0 ? 1 : products ** 2 / (squaresX * squaresY)
  },
  regr_avgx: ifAny(({ meanY }) => meanY),
  regr_avgy: ifAny(({ meanX }) => meanX),
  regr_sxx: ifAny(({ squaresY }) => squaresY),
  regr_syy: ifAny(({ squaresX }) => squaresX),
  regr_sxy: ifAny(({ products }) => products),
} satisfies Record<string, Finish>

/** Also the members of the moments themselves, as the views store them. */
const oneVariable: ReadonlyMap<string, Finish> = new Map(
  Object.entries({
    ...finishOfOne,
    regr_avgx: ifAny(({ meanX }) => meanX),
    regr_sxx: ifAny(({ squaresX }) => squaresX),
  }),
)
const twoVariables: ReadonlyMap<string, Finish> = new Map(Object.entries(finishOfTwo))

/** Whether moments of this many variables have the aggregate's result. */
export function isOfMoments(name: string, variables: number): boolean {
  return (variables === 1 ? oneVariable : twoVariables).has(name)
}

function mergedFunction(
  takes: AggregateFunction['takes'],
  known: ReadonlyMap<string, Finish>,
  of: (numbers: readonly number[]) => Moments,
  example: AggregateFunction['example'],
): AggregateFunction {
  return {
    name: 'merged_moments',
    takes: ['STRING', ...takes],
    gives: 'DOUBLE',
    description:
      takes.length === 3
        ? 'The aggregate of that name over all rows of groups with these counts, means and sums of squared deviations.'
        : 'The same with two variables, the dependent one first: counts, both means, both sums of squares, sum of products.',
    example,
    check: ([name]: readonly BoundArgument[], position) => {
      if (typeof name?.constant === 'string' && known.has(name.constant)) return
      const names = [...known.keys()].join(', ')
      throw new SqlError(`the first argument must be the name of an aggregate: ${names}`, name?.position ?? position)
    },
    accumulator: accumulator<{ name: Value; moments: Moments }>({
      init: () => ({ name: null, moments: noMoments }),
      add: (state, [name = null, count, ...rest]) => {
        state.name = name
        if (typeof count !== 'bigint' || count < 1n) return
        const numbers = rest.map((value) => (typeof value === 'number' ? value : Number.NaN))
        state.moments = merged(state.moments, of([Number(count), ...numbers]))
      },
      merge: (state, other) => {
        state.name ??= other.name
        state.moments = merged(state.moments, other.moments)
      },
      result: ({ name, moments }) => finiteOrNull(known.get(String(name))?.(moments) ?? null),
    }),
  }
}

/** State: {sum, number of values}. The sum is NaN if that of a group is not finite. */
const sumWords = 2

const mergedSum: AggregateFunction = {
  name: 'merged_sum',
  takes: ['DOUBLE', 'DOUBLE'],
  gives: 'DOUBLE',
  description: 'The sum over all rows of groups with these counts and sums; NULL if a group with values has no sum.',
  example: ['merged_sum(1, x)', '15.0'],
  accumulator: accumulator<{ total: number; values: number }>({
    small: true,
    init: () => ({ total: 0, values: 0 }),
    add: (state, [count, sum]) => {
      if (typeof count !== 'number' || !(count > 0)) return
      state.total += typeof sum === 'number' ? sum : Number.NaN
      state.values += count
    },
    merge: (state, other) => {
      state.total += other.total
      state.values += other.values
    },
    result: ({ total, values }) => (values === 0 ? null : finiteOrNull(total)),
  }),
  column: {
    kind: 'doubles',
    words: sumWords,
    add: addSum,
    addRows: (cells, first, { count: rows, numbers, x, y, groups, ids }) => {
      for (let row = 0; row < rows; row++)
        addSum(cells, ids === 0 ? first : first + groups[ids + row]! * sumWords, numbers[x + row]!, numbers[y + row]!)
    },
    merge: (cells, at, others, from) => addSum(cells, at, others[from + 1]!, others[from]!),
    result: (cells, at) => (cells[at + 1] === 0 ? null : cells[at]!),
  },
}

/** NULL is NaN, as a count and as a sum. */
function addSum(cells: Float64Array, at: number, count: number, sum: number): void {
  if (!(count > 0)) return
  cells[at] = cells[at]! + sum
  cells[at + 1] = cells[at + 1]! + count
}

/** The total is exact; null if that of a group with values is not known. */
const mergedMean: AggregateFunction = {
  name: 'merged_mean',
  takes: ['LONG', 'LONG', 'LONG'],
  gives: 'DOUBLE',
  description: 'The mean of x over all rows of groups with these sums of x / 2^32 and of x % 2^32, and these counts.',
  example: ['merged_mean(0, x, 1)', '3.0'],
  accumulator: accumulator<{ total: bigint | null; values: bigint }>({
    small: true,
    init: () => ({ total: 0n, values: 0n }),
    add: (state, [high, low, count]) => {
      if (typeof count !== 'bigint' || count < 1n) return
      const isKnown = state.total !== null && typeof high === 'bigint' && typeof low === 'bigint'
      state.total = isKnown ? (state.total ?? 0n) + high * 2n ** 32n + low : null
      state.values += count
    },
    merge: (state, other) => {
      state.total = state.total === null || other.total === null ? null : state.total + other.total
      state.values += other.values
    },
    result: ({ total, values }) => (total === null || values === 0n ? null : Number(total) / Number(values)),
  }),
}

/** The exact sum is divided at the result's scale, rounding half to even. */
export function decimalMean(total: bigint, count: bigint, { type, argTypes }: CallSite): bigint {
  const shift = type.b - (argTypes[0]?.b ?? 0)
  const scaled = shift >= 0 ? total * 10n ** BigInt(shift) : total
  return divideHalfEven(scaled, count * (shift < 0 ? 10n ** BigInt(-shift) : 1n))
}

const mergedDecimalMean: AggregateFunction = {
  name: 'merged_mean',
  takes: ['DECIMAL', 'LONG'],
  gives: 'FIRST',
  description: 'The mean of DECIMALs over all rows of groups with these sums and counts.',
  example: null,
  accumulator: accumulator<{ total: bigint; values: bigint }>({
    small: true,
    init: () => ({ total: 0n, values: 0n }),
    add: (state, [sum, count]) => {
      if (typeof sum !== 'bigint' || typeof count !== 'bigint') return
      state.total += sum
      state.values += count
    },
    merge: (state, other) => {
      state.total += other.total
      state.values += other.values
    },
    result: ({ total, values }, site) => (values === 0n ? null : decimalMean(total, values, site)),
  }),
}

export const mergingAggregates: readonly AggregateFunction[] = [
  mergedSum,
  mergedMean,
  mergedDecimalMean,
  mergedFunction(
    ['LONG', 'DOUBLE', 'DOUBLE'],
    oneVariable,
    ([count = 0, meanX = 0, squaresX = 0]) => ({ ...noMoments, count, meanX, squaresX }),
    ["merged_moments('variance', 1, x, 0)", '2.5'],
  ),
  mergedFunction(
    ['LONG', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    twoVariables,
    ([count = 0, meanX = 0, meanY = 0, squaresX = 0, squaresY = 0, products = 0]) => ({
      ...{ count, meanX, meanY, squaresX, squaresY, products },
    }),
    ["merged_moments('corr', 1, x, x, 0, 0, 0)", '1.0'],
  ),
]
