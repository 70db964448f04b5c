// Accumulators for variance, covariance and regression: they update means and sums of squared deviations in one pass
// over the values (Welford's algorithm), and merge the states of two sets of values (Chan's algorithm).

import { type NumberRows, overNumbers } from '../function-types.js'

export interface Moments {
  readonly count: number
  readonly meanX: number
  readonly meanY: number
  readonly squaresX: number
  readonly squaresY: number
  readonly products: number
}

/** Offsets of the doubles in a state. Those of y are absent if there is one variable. */
const places = { count: 0, meanX: 1, squaresX: 2, products: 3, meanY: 4, squaresY: 5 } as const

function momentsAt(cells: Float64Array, at: number, words: number): Moments {
  const read = (place: keyof typeof places): number => (places[place] < words ? cells[at + places[place]]! : 0)
  return {
    count: read('count'),
    meanX: read('meanX'),
    meanY: read('meanY'),
    squaresX: read('squaresX'),
    squaresY: read('squaresY'),
    products: read('products'),
  }
}

function addOne(cells: Float64Array, at: number, x: number): void {
  const count = cells[at]! + 1
  const mean = cells[at + places.meanX]!
  const delta = x - mean
  const moved = mean + delta / count
  cells[at] = count
  cells[at + places.meanX] = moved
  cells[at + places.squaresX] = cells[at + places.squaresX]! + delta * (x - moved)
}

function addPair(cells: Float64Array, at: number, x: number, y: number): void {
  const delta = x - cells[at + places.meanX]!
  addOne(cells, at, x)
  const mean = cells[at + places.meanY]!
  const deltaY = y - mean
  const moved = mean + deltaY / cells[at]!
  cells[at + places.meanY] = moved
  cells[at + places.squaresY] = cells[at + places.squaresY]! + deltaY * (y - moved)
  cells[at + places.products] = cells[at + places.products]! + delta * (y - moved)
}

/** addOne for many rows. */
function addOnes(cells: Float64Array, first: number, { count: rows, numbers, x, groups, ids }: NumberRows): void {
  for (let row = 0; row < rows; row++) {
    const value = numbers[x + row]!
    if (Number.isNaN(value)) continue
    const at = ids === 0 ? first : first + groups[ids + row]! * 4
    const count = cells[at]! + 1
    const mean = cells[at + 1]!
    const delta = value - mean
    const moved = mean + delta / count
    cells[at] = count
    cells[at + 1] = moved
    cells[at + 2] = cells[at + 2]! + delta * (value - moved)
  }
}

/** addPair for many rows. */
function addPairs(cells: Float64Array, first: number, { count: rows, numbers, x, y, groups, ids }: NumberRows): void {
  for (let row = 0; row < rows; row++) {
    const left = numbers[x + row]!
    const right = numbers[y + row]!
    if (Number.isNaN(left) || Number.isNaN(right)) continue
    const at = ids === 0 ? first : first + groups[ids + row]! * 6
    const count = cells[at]! + 1
    const meanX = cells[at + 1]!
    const meanY = cells[at + 4]!
    const deltaX = left - meanX
    const deltaY = right - meanY
    const movedX = meanX + deltaX / count
    const movedY = meanY + deltaY / count
    const restY = right - movedY
    cells[at] = count
    cells[at + 1] = movedX
    cells[at + 2] = cells[at + 2]! + deltaX * (left - movedX)
    cells[at + 3] = cells[at + 3]! + deltaX * restY
    cells[at + 4] = movedY
    cells[at + 5] = cells[at + 5]! + deltaY * restY
  }
}

export const noMoments: Moments = { count: 0, meanX: 0, meanY: 0, squaresX: 0, squaresY: 0, products: 0 }

/** The moments of both groups together (Chan). */
export function merged(a: Moments, b: Moments): Moments {
  if (b.count === 0) return a
  if (a.count === 0) return b
  const count = a.count + b.count
  const [deltaX, deltaY] = [b.meanX - a.meanX, b.meanY - a.meanY]
  const weight = (a.count * b.count) / count
  return {
    count,
    meanX: a.meanX + (deltaX * b.count) / count,
    meanY: a.meanY + (deltaY * b.count) / count,
    squaresX: a.squaresX + b.squaresX + deltaX * deltaX * weight,
    squaresY: a.squaresY + b.squaresY + deltaY * deltaY * weight,
    products: a.products + b.products + deltaX * deltaY * weight,
  }
}

const allPlaces = ['count', 'meanX', 'squaresX', 'products', 'meanY', 'squaresY'] as const

function mergeMoments(words: number) {
  return (cells: Float64Array, at: number, others: Float64Array, from: number): void => {
    if (others[from + places.count] === 0) return
    const both = merged(momentsAt(cells, at, words), momentsAt(others, from, words))
    for (const place of allPlaces) if (places[place] < words) cells[at + places[place]] = both[place]
  }
}

export function moments(words: 4 | 6, finish: (state: Moments) => number | null): ReturnType<typeof overNumbers> {
  return overNumbers({
    words,
    add: words === 4 ? addOne : addPair,
    addRows: words === 4 ? addOnes : addPairs,
    merge: mergeMoments(words),
    result: (cells, at) => finish(momentsAt(cells, at, words)),
  })
}
