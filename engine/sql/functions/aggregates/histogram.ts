// The aggregate histogram(value, min, max, buckets). Returns an array with the number of values below the minimum, then
// the number in each of the buckets of equal width, then the number at or above the maximum: the same order as in
// TimescaleDB.

import { SqlError } from '../../../base/errors.js'
import { histogramBucketsMax } from '../../../base/limits.js'
import { type AggregateFunction, accumulator, type BoundArgument, isNullConstant } from '../function-types.js'

interface Histogram {
  /** Null without values. */
  counts: Float64Array | null
}

export const histogramAggregates: readonly AggregateFunction[] = [
  {
    name: 'histogram',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'INT'],
    gives: () => ({ name: 'ARRAY', a: 1, b: 0 }),
    description:
      'Numbers of values: below the minimum, in each of the buckets into which minimum and maximum are divided, and from the maximum on.',
    example: ['histogram(x, 2, 5, 3)', '[1.0,1.0,1.0,1.0,1.0]'],
    check: checkBounds,
    accumulator: accumulator<Histogram>({
      init: () => ({ counts: null }),
      add: (state, [value, min, max, buckets]) => {
        if (typeof value !== 'number') return
        const [low, high, count] = [Number(min), Number(max), Number(buckets)]
        state.counts ??= new Float64Array(count + 2)
        const place = value < low ? -1 : value >= high ? count : Math.floor(((value - low) / (high - low)) * count)
        const index = Math.min(place, value < high ? count - 1 : count) + 1
        state.counts[index] = (state.counts[index] ?? 0) + 1
      },
      merge: (state, { counts }) => {
        if (counts === null) return
        const own = state.counts
        if (own === null) state.counts = counts.slice()
        else for (const [index, count] of counts.entries()) own[index] = (own[index] ?? 0) + count
      },
      result: ({ counts }) => (counts === null ? null : { shape: [counts.length], data: counts }),
    }),
  },
]

function checkBounds([, min, max, buckets]: readonly BoundArgument[]): void {
  for (const [name, argument] of [
    ['minimum', min],
    ['maximum', max],
    ['number of buckets', buckets],
  ] as const) {
    if (argument?.constant === undefined || isNullConstant(argument))
      throw new SqlError(`the ${name} of histogram() must be a constant`, argument?.position ?? 0)
  }
  if ([min, max, buckets].some((argument) => argument?.described === true)) return
  if (!(Number(min?.constant) < Number(max?.constant)))
    throw new SqlError('the minimum of histogram() must be less than its maximum', min?.position ?? 0)
  const count = Number(buckets?.constant)
  if (!(count >= 1 && count <= histogramBucketsMax))
    throw new SqlError(`histogram() needs 1 to ${histogramBucketsMax} buckets`, buckets?.position ?? 0)
}
