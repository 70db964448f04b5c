// Statistical aggregates: variance, covariance, correlation, regression, weighted and geometric means, mode, quantiles.

import { SqlError } from '../../../base/errors.js'
import { type DataType, dataType } from '../../../types/column-types.js'
import { keyText } from '../../../types/compare.js'
import { castValue } from '../../../types/convert.js'
import type { Value } from '../../../types/value.js'
import {
  type Accumulator,
  type AggregateFunction,
  accumulator,
  type BoundArgument,
  type CollectedNumbers,
  overNumbers,
} from '../function-types.js'
import { isChoosable } from './aggregates-rows.js'
import { finishOfOne, finishOfTwo, mergingAggregates } from './finished-moments.js'
import { type Moments, moments } from './moments.js'
import { numbersExample, overStates, stateAggregates } from './value-states.js'

/** Below this size a sort is as fast. */
const sortedBelow = 32

/**
 * The smallest number such that at least the given fraction of all numbers is not larger (percentile_disc). Reorders
 * the numbers.
 */
export function discreteQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = Math.ceil(share * numbers.length) - 1
  return numberAt(numbers, Math.min(numbers.length - 1, Math.max(0, place)))
}

/** Interpolates linearly between two numbers, as percentile_cont does. Reorders the numbers. */
export function continuousQuantile(numbers: Float64Array, share: number): number | null {
  if (numbers.length === 0) return null
  const place = share * (numbers.length - 1)
  const low = Math.floor(place)
  const below = numberAt(numbers, low)
  if (low === place) return below
  // All numbers after the index are at least as large.
  let above = numbers[low + 1]!
  for (let at = low + 2; at < numbers.length; at++) if (numbers[at]! < above) above = numbers[at]!
  if (above === below) return below
  const part = place - low
  // The difference of two large numbers may not be finite.
  const overflows = !Number.isFinite(above - below) && Number.isFinite(above) && Number.isFinite(below)
  return overflows ? below * (1 - part) + above * part : below + (above - below) * part
}

/**
 * The number at an index of the sorted order, in linear time on average (quickselect; C. A. R. Hoare, Algorithm 65:
 * FIND). Afterwards smaller numbers are before it and larger ones after it. None may be NaN.
 */
function numberAt(numbers: Float64Array, place: number): number {
  let [low, high] = [0, numbers.length - 1]
  // Bounds the number of rounds, since bad pivots would make it quadratic; then a sort takes over.
  let rounds = 2 * Math.ceil(Math.log2(numbers.length + 1))
  while (high - low >= sortedBelow && rounds-- > 0) {
    const pivot = median(numbers, low, (low + high) >>> 1, high)
    let [left, right] = [low, high]
    while (left <= right) {
      while (numbers[left]! < pivot) left++
      while (numbers[right]! > pivot) right--
      if (left > right) break
      const retained = numbers[left]!
      numbers[left++] = numbers[right]!
      numbers[right--] = retained
    }
    if (place <= right) high = right
    else if (place >= left) low = left
    else return numbers[place]!
  }
  numbers.subarray(low, high + 1).sort()
  return numbers[place]!
}

function median(numbers: Float64Array, first: number, second: number, third: number): number {
  const [a, b, c] = [numbers[first]!, numbers[second]!, numbers[third]!]
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c))
}

// Moments of one or two variables ----------------------------------------------------------------------------------

function oneVariable(
  name: string,
  description: string,
  example: readonly [string, string] | null,
  finish: (state: Moments) => number | null,
): AggregateFunction {
  return { name, takes: ['DOUBLE'], gives: 'DOUBLE', description, example, ...moments(4, finish) }
}

function twoVariables(
  name: string,
  description: string,
  example: readonly [string, string] | null,
  finish: (state: Moments) => number | null,
): AggregateFunction {
  return { name, takes: ['DOUBLE', 'DOUBLE'], gives: 'DOUBLE', description, example, ...moments(6, finish) }
}

const spread: AggregateFunction[] = [
  ...(['variance', 'var_samp'] as const).map((name) =>
    oneVariable(name, 'Sample variance.', [`${name}(x)`, '2.5'], finishOfOne[name]),
  ),
  oneVariable('var_pop', 'Population variance.', ['var_pop(x)', '2.0'], finishOfOne.var_pop),
  ...(['stddev', 'stddev_samp'] as const).map((name) =>
    oneVariable(name, 'Sample standard deviation.', [`${name}(x)`, '1.5811388300841898'], finishOfOne[name]),
  ),
  oneVariable(
    'stddev_pop',
    'Population standard deviation.',
    ['stddev_pop(x)', '1.4142135623730951'],
    finishOfOne.stddev_pop,
  ),
  ...(
    [
      ['covar_samp', 'Sample covariance.', '2.5'],
      ['covar_pop', 'Population covariance.', '2.0'],
      ['corr', 'Correlation coefficient.', '1.0'],
      ['regr_slope', 'Slope of the regression line of the first argument on the second.', '1.0'],
      ['regr_intercept', 'Intercept of the regression line.', '0.0'],
      ['regr_r2', 'Coefficient of determination of the regression, 0 to 1.', '1.0'],
      ['regr_avgx', 'Mean of the second, where both have values.', '3.0'],
      ['regr_avgy', 'Mean of the first, where both have values.', '3.0'],
      ['regr_sxx', 'Sum of the squared deviations of the second.', '10.0'],
      ['regr_syy', 'Sum of the squared deviations of the first.', '10.0'],
      ['regr_sxy', 'Sum of the products of the deviations.', '10.0'],
    ] as const
  ).map(([name, description, shown]) => twoVariables(name, description, [`${name}(x, x)`, shown], finishOfTwo[name])),
  {
    name: 'regr_count',
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'LONG',
    description: 'Number of rows where both have values.',
    example: ['regr_count(x, x)', '5'],
    accumulator: accumulator<{ count: bigint }>({
      small: true,
      init: () => ({ count: 0n }),
      add: (state, [y, x]) => {
        if (typeof y === 'number' && typeof x === 'number') state.count++
      },
      merge: (state, other) => {
        state.count += other.count
      },
      result: ({ count }) => count,
    }),
  },
]

// Weighted means ----------------------------------------------------------------------------------------------------

function addCells(words: number) {
  return (cells: Float64Array, at: number, others: Float64Array, from: number): void => {
    for (let word = 0; word < words; word++) cells[at + word] = cells[at + word]! + others[from + word]!
  }
}

/** State: {weights, weighted sum} */
function weightedMean(counts: (weight: number) => boolean): ReturnType<typeof overNumbers> {
  return overNumbers({
    words: 2,
    add: (cells, at, value, weight) => {
      if (!counts(weight)) return
      cells[at] = cells[at]! + weight
      cells[at + 1] = cells[at + 1]! + value * weight
    },
    merge: addCells(2),
    result: (cells, at) => (cells[at] === 0 ? null : cells[at + 1]! / cells[at]!),
  })
}

/** State: {number of values, sum of logarithms, number of values without logarithm, 0} */
const geometricMean = overNumbers({
  words: 4,
  add: (cells, at, value) => {
    cells[at] = cells[at]! + 1
    cells[at + 1] = cells[at + 1]! + Math.log(value)
    if (value <= 0) cells[at + 2] = cells[at + 2]! + 1
  },
  merge: addCells(4),
  result: (cells, at) => (cells[at] === 0 || cells[at + 2] !== 0 ? null : Math.exp(cells[at + 1]! / cells[at]!)),
})

const means: AggregateFunction[] = [
  {
    name: 'weighted_avg',
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description: 'Mean of the first argument weighted by the second.',
    example: ['weighted_avg(x, 1)', '3.0'],
    ...weightedMean(() => true),
  },
  {
    name: 'vwap',
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description: 'Mean of a price weighted by volume; volumes that are not positive are ignored.',
    example: ['vwap(x, 1)', '3.0'],
    ...weightedMean((volume) => volume > 0),
  },
  {
    name: 'geomean',
    takes: ['DOUBLE'],
    gives: 'DOUBLE',
    description: 'Geometric mean of positive numbers.',
    example: null,
    ...geometricMean,
  },
  {
    name: 'mode',
    takes: ['ANY'],
    gives: modeType,
    description: 'The most frequent value; the first one if there are several.',
    example: null,
    ordered: true,
    accumulator: accumulator<{ counts: Map<string, { value: Value; count: number }> }>({
      init: () => ({ counts: new Map() }),
      add: (state, [value = null]) => {
        if (value !== null) tally(state.counts, value, 1)
      },
      merge: (state, other) => {
        for (const entry of other.counts.values()) tally(state.counts, entry.value, entry.count)
      },
      result: (state, { type, argTypes }) => {
        let best: { value: Value; count: number } = { value: null, count: 0 }
        for (const entry of state.counts.values()) if (entry.count > best.count) best = entry
        return castValue(best.value, argTypes[0] ?? type, type)
      },
    }),
  },
]

const counted: AggregateFunction = {
  name: 'most_frequent',
  takes: ['ANY', 'LONG'],
  gives: modeType,
  description: 'The first non-NULL value with the largest count; implements `mode` over counted values.',
  example: ['most_frequent(x, 9 - x)', '1'],
  ordered: true,
  column: { kind: 'chosen', best: 'max', present: true },
  columnTypes: isChoosable,
  accumulator: accumulator<{ value: Value; count: bigint }>({
    init: () => ({ value: null, count: 0n }),
    add: (state, [value = null, count]) => {
      if (value !== null && typeof count === 'bigint' && (state.value === null || count > state.count))
        Object.assign(state, { value, count })
    },
    merge: (state, other) => {
      if (state.value === null || (other.value !== null && other.count > state.count)) Object.assign(state, other)
    },
    result: ({ value }, { type, argTypes }) => castValue(value, argTypes[0] ?? type, type),
  }),
}

/** Result type: integers become LONG, FLOAT becomes DOUBLE, characters become strings. */
function modeType([first]: readonly BoundArgument[]): DataType {
  const type = first?.type ?? dataType('STRING')
  if (type.name === 'BYTE' || type.name === 'SHORT' || type.name === 'INT') return dataType('LONG')
  return type.name === 'FLOAT' ? dataType('DOUBLE') : type.name === 'CHAR' ? dataType('STRING') : type
}

function tally(counts: Map<string, { value: Value; count: number }>, value: Value, count: number): void {
  const key = keyText(value)
  const entry = counts.get(key)
  if (entry === undefined) counts.set(key, { value, count })
  else entry.count += count
}

// Quantiles ---------------------------------------------------------------------------------------------------------

interface Collected {
  values: number[]
  quantile: number
}

const collected = {
  init: (): Collected => ({ values: [], quantile: 0.5 }),
  add: (state: Collected, [value, at]: readonly Value[]): void => {
    if (typeof at === 'number') state.quantile = at
    if (typeof value === 'number') state.values.push(value)
    if (typeof value === 'bigint') state.values.push(Number(value))
  },
  merge: (state: Collected, other: Collected): void => {
    for (const value of other.values) state.values.push(value)
    state.quantile = other.quantile
  },
}

/** The exact implementation of an aggregate over all numbers of a group. */
function overCollected(value: CollectedNumbers): Accumulator<unknown> {
  return accumulator<Collected>({
    ...collected,
    result: (state) => value(Float64Array.from(state.values), state.quantile),
  })
}

const quantile = overCollected(discreteQuantile)
const continuous = overCollected(continuousQuantile)
const middleOf: CollectedNumbers = (numbers) => discreteQuantile(numbers, 0.5)
const betweenOf: CollectedNumbers = (numbers) => continuousQuantile(numbers, 0.5)

/** The second argument of approx_median is a precision, which is ignored. */
const middle: Accumulator<unknown> = {
  ...quantile,
  add: (state, [value = null], site) => quantile.add(state, [value], site),
}

function checkPercentile(args: readonly BoundArgument[], position: number): void {
  const [, share, ...precision] = args
  checkPrecision(precision)
  if (share?.constant === undefined)
    throw new SqlError('percentile must be a constant or runtime constant', share?.position ?? position)
  const value = share.constant
  if (typeof value !== 'number' || !(value >= 0 && value <= 1))
    throw new SqlError('percentile must be between 0.0 and 1.0', position)
}

function checkMedian([, ...precision]: readonly BoundArgument[]): void {
  checkPrecision(precision)
}

function checkPrecision([precision]: readonly BoundArgument[]): void {
  if (precision === undefined) return
  const value = precision.constant
  if (typeof value !== 'number' || value < 0 || value > 5)
    throw new SqlError('precision must be between 0 and 5', precision.position)
}

const exactDescription = 'The value at a percentile (0 to 1). It is exact; the precision (0 to 5) is ignored.'
const quantileSays = {
  approx_percentile: exactDescription,
  approx_median: exactDescription,
  median: 'The middle value; of an even number of values, the mean of the two in the middle.',
  percentile_disc:
    'The value below which a share of the values lies; also `percentile_disc(share) within group (order by value)`.',
  percentile_cont:
    'The same, in proportion between two values; also `percentile_cont(share) within group (order by value)`.',
}
const quantileExamples = {
  approx_percentile: null,
  approx_median: null,
  median: ['median(x)', '3.0'],
  percentile_disc: ['percentile_disc(x, 0.5)', '3.0'],
  percentile_cont: ['percentile_cont(x, 0.1)', '1.4'],
} as const

const ofNumbers = (accumulator: Accumulator<unknown>, value: CollectedNumbers) =>
  ({ accumulator, column: { kind: 'numbers', value } }) as const
const quantileForms = {
  approx_percentile: ofNumbers(quantile, discreteQuantile),
  approx_median: ofNumbers(middle, middleOf),
  median: ofNumbers(continuous, betweenOf),
  percentile_disc: ofNumbers(quantile, discreteQuantile),
  percentile_cont: ofNumbers(continuous, continuousQuantile),
}

const quantiles: AggregateFunction[] = (['LONG', 'DOUBLE'] as const).flatMap((type) =>
  (
    [
      ['approx_percentile', [type, 'DOUBLE']],
      ['approx_percentile', [type, 'DOUBLE', 'INT']],
      ['approx_median', [type]],
      ['approx_median', [type, 'INT']],
      ['median', [type]],
      ['percentile_disc', [type, 'DOUBLE']],
      ['percentile_cont', [type, 'DOUBLE']],
    ] as const
  ).map(
    ([name, takes]): AggregateFunction => ({
      name,
      takes,
      gives: 'DOUBLE',
      description: quantileSays[name],
      example: type === 'LONG' ? quantileExamples[name] : null,
      check: name.endsWith('median') ? checkMedian : checkPercentile,
      ...quantileForms[name],
    }),
  ),
)

/** The percentile over the numbers of several groups. */
const mergedQuantiles = (
  [
    ['merged_percentile_disc', 'percentile_disc', discreteQuantile],
    ['merged_percentile_cont', 'percentile_cont', continuousQuantile],
  ] as const
).map(
  ([name, of, value]): AggregateFunction => ({
    ...{ name, takes: ['BINARY', 'DOUBLE'], gives: 'DOUBLE', check: checkPercentile },
    example: [`${name}(${numbersExample}, 0.5)`, '3.0'],
    description: `\`${of}\` over all rows of groups with these sorted_numbers(); NULL if one of them has none.`,
    accumulator: overStates(value),
    column: { kind: 'merged-numbers', value },
  }),
)

export const statisticAggregates: readonly AggregateFunction[] = [
  ...spread,
  ...mergingAggregates,
  ...means,
  counted,
  ...quantiles,
  ...stateAggregates,
  ...mergedQuantiles,
]
