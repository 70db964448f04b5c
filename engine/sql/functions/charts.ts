// SQL functions that return a chart as a line of text: bar() draws a horizontal bar for one value, and the aggregate
// sparkline() a block character for each value of a group, or for means of neighbouring values if a width is given.

import { SqlError } from '../../base/errors.js'
import { valueBytesMax } from '../../base/limits.js'
import { type AggregateFunction, accumulator, type ScalarFunction } from './function-types.js'

/** From an eighth of a character to a whole one. */
const horizontal = '▏▎▍▌▋▊▉█'
const vertical = '▁▂▃▄▅▆▇█'
const bytesPerBlock = 3

export const chartFunctions: readonly ScalarFunction[] = [
  {
    name: 'bar',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'INT'],
    gives: 'VARCHAR',
    description:
      'A bar whose length shows a value between a minimum (no bar) and a maximum (as many characters as the width).',
    example: ['bar(2.5, 0, 10, 8)', '██'],
    eval: ([value, min, max, width], { position }) => {
      if (Number(min) >= Number(max)) return null
      if (Number(width) < 0) throw new SqlError('width must not be negative', position)
      if (Number(width) * bytesPerBlock > valueBytesMax) throw new SqlError('the bar is too long', position)
      const share = Math.min(Math.max((Number(value) - Number(min)) / (Number(max) - Number(min)), 0), 1)
      const eighths = Math.round(share * Number(width) * 8)
      const rest = eighths % 8
      return horizontal.slice(-1).repeat((eighths - rest) / 8) + (rest === 0 ? '' : horizontal.charAt(rest - 1))
    },
  },
]

/** Values of a group in the order of its rows, and bounds and width as of its last row. */
interface Sparkline {
  hasRows: boolean
  readonly values: number[]
  min: number | null
  max: number | null
  width: number | null
}

const sparkline = accumulator<Sparkline>({
  init: () => ({ hasRows: false, values: [], min: null, max: null, width: null }),
  add: (state, [value, min = null, max = null, width = null]) => {
    state.hasRows = true
    state.min = min === null ? null : Number(min)
    state.max = max === null ? null : Number(max)
    state.width = width === null ? null : Number(width)
    if (value === null || value === undefined) return
    if (state.values.push(Number(value)) * bytesPerBlock > valueBytesMax)
      throw new SqlError('sparkline() has too many values: give a shorter range', 0)
  },
  merge: (state, other) => {
    for (const value of other.values) state.values.push(value)
    if (!other.hasRows) return
    state.hasRows = true
    state.min = other.min
    state.max = other.max
    state.width = other.width
  },
  result: ({ values, min, max, width }) => {
    if (values.length === 0) return null
    const shown = width !== null && width < values.length ? means(values, width) : values
    const low = min ?? smallest(shown)
    const high = max ?? largest(shown)
    return shown.map((value) => blockOf(value, low, high)).join('')
  },
})

function blockOf(value: number, low: number, high: number): string {
  if (low >= high) return vertical.slice(-1)
  const share = Math.min(Math.max((value - low) / (high - low), 0), 1)
  return vertical.charAt(Math.round(share * (vertical.length - 1)))
}

/** Splits the values into `count` runs of nearly equal length, and averages each. */
function means(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, index) => {
    const from = Math.floor((index * values.length) / count)
    const to = Math.floor(((index + 1) * values.length) / count)
    return values.slice(from, to).reduce((sum, value) => sum + value, 0) / (to - from)
  })
}

const smallest = (values: readonly number[]): number => values.reduce((left, right) => Math.min(left, right))
const largest = (values: readonly number[]): number => values.reduce((left, right) => Math.max(left, right))

const sparklineRow: Omit<AggregateFunction, 'takes' | 'example'> = {
  name: 'sparkline',
  gives: 'VARCHAR',
  description:
    'A block for each value, in the order of the rows. Optional: minimum and maximum of the scale (NULL: of the values), and a width, to which values are averaged.',
  ordered: true,
  accumulator: sparkline,
}

export const chartAggregates: readonly AggregateFunction[] = [
  { ...sparklineRow, takes: ['DOUBLE'], example: ['sparkline(x)', '▁▃▅▆█'] },
  {
    ...sparklineRow,
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'INT'],
    example: ['sparkline(x, 0, null, 5)', '▂▄▅▇█'],
    check: ([, , , width]) => {
      const value = width?.constant
      if (value === undefined) throw new SqlError('width must be constant', width?.position ?? 0)
      if (value !== null && Number(value) <= 0)
        throw new SqlError('width must be a positive integer', width?.position ?? 0)
    },
  },
]
