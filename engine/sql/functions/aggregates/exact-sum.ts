// The aggregate ksum(): compensated summation, which adds up the rounding errors separately (A. Neumaier,
// Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen, 1974).

import { overNumbers } from '../function-types.js'

/** Adds a value, and the rounding error of the addition to `lost`. State: {total, lost, values, 0}. */
function addExact(cells: Float64Array, at: number, value: number): void {
  const total = cells[at]!
  const next = total + value
  const lost = Math.abs(total) >= Math.abs(value) ? total - next + value : value - next + total
  cells[at] = next
  cells[at + 1] = cells[at + 1]! + lost
}

const exactWords = 4

export const exactSum = overNumbers({
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
