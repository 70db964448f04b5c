// SQL functions that slice arrays (`a[2:4]`, `a[2:, 1]`) and shift their elements. Bounds count from 1, and the upper
// bound is excluded; negative bounds count from the end of the array. A dimension that is given as a slice remains in
// the result; one that is given as a single index does not.

import { nonNull } from '../../base/assert.js'
import { dataType } from '../../types/column-types.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type { ScalarFunction } from './function-types.js'

/** Marks a dimension with an index instead of a slice, in place of the slice's end. */
export const sliceIndexMark = -2_147_483_647
/** The end of `a[2:]`. */
export const sliceOpenEnd = 2_147_483_647

interface Range {
  readonly start: number
  readonly count: number
  readonly retained: boolean
}

function slice({ shape, data }: ArrayValue, bounds: readonly number[]): Value {
  const ranges: Range[] = []
  for (const [dimension, length] of shape.entries()) {
    const range = rangeOf(length, bounds[dimension * 2], bounds[dimension * 2 + 1])
    if (range === null) return null
    ranges.push(range)
  }
  const retained = ranges.filter((range) => range.retained).map(({ count }) => count)
  const result = new Float64Array(ranges.reduce((product, { count }) => product * count, 1))
  copy(data, shape, ranges, result)
  return retained.length === 0 ? (result[0] ?? null) : { shape: retained, data: result }
}

function rangeOf(length: number, low: number | undefined, high: number | undefined): Range | null {
  if (low === undefined || high === undefined) return { start: 0, count: length, retained: true }
  const at = (bound: number): number => (bound < 0 ? length + bound : bound - 1)
  const start = Math.max(0, at(low))
  if (high === sliceIndexMark) return start < length && low !== 0 ? { start, count: 1, retained: false } : null
  const end = high === sliceOpenEnd ? length : Math.min(length, at(high))
  return { start: Math.min(start, length), count: Math.max(0, end - start), retained: true }
}

function copy(data: Float64Array, shape: readonly number[], ranges: readonly Range[], target: Float64Array): void {
  for (let index = 0; index < target.length; index++) {
    let rest = index
    let source = 0
    let step = 1
    for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
      const { start, count } = nonNull(ranges[dimension])
      source += (start + (rest % count)) * step
      rest = Math.floor(rest / count)
      step *= nonNull(shape[dimension])
    }
    target[index] = data[source]!
  }
}

function shift({ shape, data }: ArrayValue, distance: number, filler: number): ArrayValue {
  const width = shape[shape.length - 1] ?? 0
  const shifted = data.map((_, index) => {
    const column = (index % width) - distance
    return !(column >= 0 && column < width) ? filler : data[index - distance]!
  })
  return { shape, data: shifted }
}

/** An unknown distance shifts out all elements. */
function shiftOrNull(array: Value | undefined, distance: Value | undefined, filler: Value | undefined): Value {
  if (array === null) return null
  return shift(array as ArrayValue, (distance ?? Number.NaN) as number, (filler ?? Number.NaN) as number)
}

export const sliceFunctions: readonly ScalarFunction[] = [
  {
    name: 'array_slice',
    takes: ['ARRAY'],
    more: 'INT',
    gives: ([array, ...bounds]) => {
      const dropped = bounds.filter(({ constant }) => constant === sliceIndexMark).length
      const left = (array?.type.a ?? 1) - dropped
      return left > 0 ? dataType('ARRAY', left, array?.type.b) : dataType('DOUBLE')
    },
    description: 'A slice of an array; written `a[1:3]`, without the end.',
    example: ['ARRAY[1.0, 2.0, 3.0][2:]', '[2.0,3.0]'],
    eval: ([array, ...bounds]) => slice(array as ArrayValue, bounds as number[]),
  },
  {
    name: 'shift',
    takes: ['ARRAY', 'INT'],
    gives: 'FIRST',
    description: 'Shifts elements along the last dimension; vacated positions are NULL.',
    example: ['shift(ARRAY[1.0, 2.0], 1)', '[null,1.0]'],
    seesNull: true,
    eval: ([array, distance]) => shiftOrNull(array, distance, null),
  },
  {
    name: 'shift',
    takes: ['ARRAY', 'INT', 'DOUBLE'],
    gives: 'FIRST',
    description: 'Shifts elements along the last dimension; vacated positions get the value.',
    example: ['shift(ARRAY[1.0, 2.0], -1, 9.0)', '[2.0,9.0]'],
    seesNull: true,
    eval: ([array, distance, filler]) => shiftOrNull(array, distance, filler),
  },
]
