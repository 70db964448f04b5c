// Aggregates over series: time-weighted averages, weighted standard deviations, travelled distance, element-wise
// aggregates of arrays.

import { nonNull } from '../../../base/assert.js'
import { dataType } from '../../../types/column-types.js'
import type { ArrayValue } from '../../../types/value.js'
import { addElements, type Elements, elementsResult, elementWise, newElements } from '../array-elements.js'
import { type AggregateFunction, accumulator } from '../function-types.js'
import { distanceMeters, earthRadiusMeters } from '../geography.js'

// Weighted deviations -----------------------------------------------------------------------------------------------

interface Weighted {
  weights: number
  squares: number
  mean: number
  deviations: number
}

function addWeighted(state: Weighted, value: number, weight: number, squares: number, deviations: number): void {
  if (weight === 0) return
  const delta = value - state.mean
  const weights = state.weights + weight
  state.deviations += deviations + (delta * delta * state.weights * weight) / weights
  state.mean += (delta * weight) / weights
  state.weights = weights
  state.squares += squares
}

function weightedDeviation(
  name: string,
  description: string,
  example: string,
  divisor: (state: Weighted) => number,
): AggregateFunction {
  return {
    name,
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description,
    example: [`${name}(x, 2)`, example],
    accumulator: accumulator<Weighted>({
      init: () => ({ weights: 0, squares: 0, mean: 0, deviations: 0 }),
      add: (state, [value, weight]) => {
        if (typeof value === 'number' && typeof weight === 'number')
          addWeighted(state, value, weight, weight * weight, 0)
      },
      merge: (state, other) => addWeighted(state, other.mean, other.weights, other.squares, other.deviations),
      result: (state) => {
        const by = state.weights === 0 ? 0 : divisor(state)
        return by > 0 ? Math.sqrt(state.deviations / by) : null
      },
    }),
  }
}

const reliability = ({ weights, squares }: Weighted): number => weights - squares / weights

const deviations: AggregateFunction[] = [
  weightedDeviation(
    'weighted_stddev',
    'Sample standard deviation, weighted by the reliability in the second argument.',
    '1.5811388300841898',
    reliability,
  ),
  weightedDeviation(
    'weighted_stddev_rel',
    'Sample standard deviation, weighted by the reliability in the second argument.',
    '1.5811388300841898',
    reliability,
  ),
  weightedDeviation(
    'weighted_stddev_freq',
    'Sample standard deviation, weighted by the frequency in the second argument.',
    '1.4907119849998598',
    ({ weights }) => weights - 1,
  ),
]

// Over time ---------------------------------------------------------------------------------------------------------

/**
 * All points with their timestamps. They are collected and sorted at the end, because partial results may be merged in
 * any order.
 */
interface Track<Point> {
  points: Point[]
}

interface Prices {
  readonly prices: number[]
  readonly times: bigint[]
}

interface PlacePoint {
  readonly at: bigint
  readonly latitude: number
  readonly longitude: number
}

function inTimeOrder<Point extends { readonly at: bigint }>(points: readonly Point[]): readonly Point[] {
  const ordered = points.every((point, index) => index === 0 || point.at >= nonNull(points[index - 1]).at)
  return ordered ? points : [...points].sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
}

/** Time-weighted average: each price holds until the next one. If all timestamps are equal, it is the plain mean. */
function timeWeighted(prices: Float64Array, times: Int32Array): number | null {
  const count = prices.length
  if (count === 0) return null
  const order = timeOrder(times, count)
  const at = (index: number): number => (order === null ? index : order[index]!)
  const span = timeBetween(times, at(0), at(count - 1))
  if (span === 0) return prices.reduce((sum, price) => sum + price, 0) / count
  let total = 0
  for (let index = 0, row = at(0); index < count - 1; index++) {
    const next = at(index + 1)
    total += prices[row]! * timeBetween(times, row, next)
    row = next
  }
  return total / span
}

function timeBetween(times: Int32Array, from: number, to: number): number {
  const high = times[to * 2 + 1]! - times[from * 2 + 1]!
  return high * 4_294_967_296 + (times[to * 2]! >>> 0) - (times[from * 2]! >>> 0)
}

/** A permutation that sorts by timestamp; null if they are sorted. */
function timeOrder(times: Int32Array, count: number): Uint32Array | null {
  let next = 1
  while (next < count && timeBetween(times, next - 1, next) >= 0) next++
  return next >= count
    ? null
    : Uint32Array.from({ length: count }, (_, row) => row).sort((a, b) => timeBetween(times, b, a))
}

/** Recorded behaviour: sums of distances use this radius, single distances the mean radius. */
const trackRadiusMeters = 6_371_088

function travelled(points: readonly PlacePoint[]): number | null {
  if (points.length === 0) return null
  const sorted = inTimeOrder(points)
  let meters = 0
  for (const [index, point] of sorted.entries()) {
    const before = sorted[index - 1]
    if (before !== undefined)
      meters += distanceMeters([before.latitude, before.longitude, point.latitude, point.longitude])
  }
  return ((meters / earthRadiusMeters) * trackRadiusMeters) / 1000
}

const tracks: AggregateFunction[] = [
  {
    name: 'twap',
    takes: ['DOUBLE', 'TIME'],
    gives: 'DOUBLE',
    description: 'Time-weighted average price.',
    example: ['twap(x, x::timestamp)', '2.5'],
    column: { kind: 'points', value: timeWeighted },
    accumulator: accumulator<Prices>({
      init: () => ({ prices: [], times: [] }),
      add: ({ prices, times }, [price, at]) => {
        if (typeof price !== 'number' || typeof at !== 'bigint') return
        prices.push(price)
        times.push(at)
      },
      merge: ({ prices, times }, other) => {
        for (const price of other.prices) prices.push(price)
        for (const at of other.times) times.push(at)
      },
      result: ({ prices, times }) =>
        timeWeighted(Float64Array.from(prices), new Int32Array(BigInt64Array.from(times).buffer)),
    }),
  },
  {
    name: 'haversine_dist_deg',
    takes: ['DOUBLE', 'DOUBLE', 'TIME'],
    gives: 'DOUBLE',
    description: 'Kilometres travelled through points (latitude, longitude) in time order.',
    example: ['haversine_dist_deg(0, 0, x::timestamp)', '0.0'],
    accumulator: accumulator<Track<PlacePoint>>({
      init: () => ({ points: [] }),
      add: ({ points }, [latitude, longitude, at]) => {
        if (typeof latitude === 'number' && typeof longitude === 'number' && typeof at === 'bigint')
          points.push({ at, latitude, longitude })
      },
      merge: ({ points }, other) => {
        for (const point of other.points) points.push(point)
      },
      result: ({ points }) => travelled(points),
    }),
  },
]

// Arrays element by element -----------------------------------------------------------------------------------------

const elements: AggregateFunction[] = Object.entries(elementWise).map(
  ([name, { description, combine }]): AggregateFunction => ({
    name,
    takes: ['ARRAY'],
    gives: ([array]) => array?.type ?? dataType('ARRAY', 1),
    description,
    example: name === 'array_elem_max' ? [`${name}(ARRAY[x, 1])`, '[5.0,1.0]'] : null,
    accumulator: accumulator<Elements>({
      init: newElements,
      add: (state, [array]: readonly [ArrayValue | null]) => {
        if (array === null || array === undefined) return
        const { shape, data } = array
        addElements(state, shape, data, null, combine)
      },
      merge: (state, other) => addElements(state, other.shape, other.values, other.counts, combine),
      result: (state) => elementsResult(name, state),
    }),
  }),
)

export const seriesAggregates: readonly AggregateFunction[] = [...deviations, ...tracks, ...elements]
