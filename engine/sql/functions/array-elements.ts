// Combines several arrays of doubles element by element, for functions such as array_elem_sum(), which exist as scalar
// functions and as aggregates. If the arrays differ in shape, the result has the largest size of each dimension.

import { nonNull } from '../../base/assert.js'
import type { ArrayValue, Value } from '../../types/value.js'

export interface Elements {
  shape: number[]
  values: Float64Array
  counts: Float64Array
}

type Combine = (sum: number, value: number) => number

/** Adds an array to the state. Missing and NULL elements do not count. */
export function addElements(
  state: Elements,
  shape: readonly number[],
  values: Float64Array,
  counts: Float64Array | null,
  combine: Combine,
): void {
  if (shape.length === 0) return
  widen(state, shape)
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!
    const count = counts === null ? (Number.isNaN(value) ? 0 : 1) : counts[index]!
    if (count === 0) continue
    const at = placeOf(index, shape, state.shape)
    const known = state.counts[at]!
    state.values[at] = known === 0 ? value : combine(state.values[at]!, value)
    state.counts[at] = known + count
  }
}

function widen(state: Elements, shape: readonly number[]): void {
  const wider = shape.map((length, index) => Math.max(length, state.shape[index] ?? 0))
  if (wider.length === state.shape.length && wider.every((length, index) => length === state.shape[index])) return
  const size = wider.reduce((product, length) => product * length, 1)
  const values = new Float64Array(size)
  const counts = new Float64Array(size)
  for (let index = 0; index < state.values.length; index++) {
    const at = placeOf(index, state.shape, wider)
    values[at] = state.values[index]!
    counts[at] = state.counts[index]!
  }
  state.shape = wider
  state.values = values
  state.counts = counts
}

/** The index of an element in an array of another shape. */
function placeOf(index: number, from: readonly number[], to: readonly number[]): number {
  let rest = index
  let place = 0
  let step = 1
  for (let dimension = from.length - 1; dimension >= 0; dimension--) {
    const length = nonNull(from[dimension])
    place += (rest % length) * step
    rest = Math.floor(rest / length)
    step *= nonNull(to[dimension])
  }
  return place
}

export const elementWise: Readonly<Record<string, { readonly description: string; readonly combine: Combine }>> = {
  array_elem_sum: {
    description: 'Sums of the elements at each place of arrays.',
    combine: (sum, value) => sum + value,
  },
  array_elem_avg: {
    description: 'Means of the elements at each place of arrays.',
    combine: (sum, value) => sum + value,
  },
  array_elem_min: { description: 'Smallest elements at each place of arrays.', combine: Math.min },
  array_elem_max: { description: 'Largest elements at each place of arrays.', combine: Math.max },
}

export function newElements(): Elements {
  return { shape: [], values: new Float64Array(0), counts: new Float64Array(0) }
}

export function elementsResult(name: string, { shape, values, counts }: Elements): Value {
  if (shape.length === 0) return null
  const isMean = name === 'array_elem_avg'
  const data = values.map((value, index) => {
    const count = counts[index]!
    return count === 0 ? Number.NaN : isMean ? value / count : value
  })
  return { shape, data }
}

/** Combines the arguments of a scalar call. */
export function combineElements(name: string, arrays: readonly Value[]): Value {
  const state = newElements()
  const combine = elementWise[name]?.combine ?? Math.max
  for (const array of arrays) {
    if (array === null) continue
    const { shape, data } = array as ArrayValue
    addElements(state, shape, data, null, combine)
  }
  return elementsResult(name, state)
}
