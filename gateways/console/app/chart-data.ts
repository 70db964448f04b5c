// Converts result rows to the data of a chart: one series for each numeric column, or for each value of a text column.
// A missing interval in the time of a series becomes a gap in its line.
//
// All series share their x values. In the data of a series, a number is a point, null is a gap, and undefined marks an
// x value at which only other series have a point; the line of this series continues across it.

import { type Column, isNumeric, isText, isTime, millisOf, type Row } from './values.js'

export interface ChartChoice {
  /** Index of the column of the horizontal axis. */
  readonly x: number
  /** Index of the text column whose values separate the series; -1: none. */
  readonly by: number
  /** Indexes of the columns that are drawn. */
  readonly values: readonly number[]
}

export interface Series {
  readonly label: string
  /** Index of the column that has its values. */
  readonly column: number
  readonly points: (number | null | undefined)[]
  readonly max: number
  readonly min: number
  readonly count: number
}

export interface ChartData {
  /** Seconds since 1970, or numbers. */
  readonly x: number[]
  readonly series: Series[]
  readonly isTime: boolean
}

/** A distance of more than this many usual steps is a gap. */
const gapSteps = 1.6
/** The same for points that have no usual step, as a multiple of a long distance among them. */
const irregularGap = 6
/** Distances within this share of the usual step count as the same. */
const regularTolerance = 0.25

/** What to draw at first; null if the rows cannot be drawn. */
export function firstChoice(columns: readonly Column[]): ChartChoice | null {
  const time = columns.findIndex(({ type }) => isTime(type))
  const x = time >= 0 ? time : columns.findIndex(({ type }) => isNumeric(type))
  if (x < 0) return null
  const values = columns.flatMap(({ type }, index) => (isNumeric(type) && index !== x ? [index] : []))
  if (values.length === 0) return null
  return { x, by: columns.findIndex(({ type }) => isText(type)), values }
}

export function chartData(columns: readonly Column[], rows: readonly Row[], choice: ChartChoice): ChartData {
  const timed = isTime(columns[choice.x]?.type ?? '')
  const lines = linesOf(columns, rows, choice, timed)
  const gaps = new Map<string, number[]>()
  const all = new Set<number>()
  for (const [label, { xs, ys }] of lines) {
    sortLine(xs, ys)
    const holes = timed ? gapsOf(xs) : []
    gaps.set(label, holes)
    for (const at of xs) all.add(at)
    for (const at of holes) all.add(at)
  }
  const x = [...all].sort((a, b) => a - b)
  const place = new Map(x.map((at, index) => [at, index]))
  const series = [...lines].map(([label, { column, xs, ys }]) => {
    const points = new Array<number | null | undefined>(x.length).fill(undefined)
    let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const at of gaps.get(label) ?? []) points[place.get(at) ?? 0] = null
    xs.forEach((at, index) => {
      const value = ys[index] ?? null
      points[place.get(at) ?? 0] = value
      if (value === null) return
      min = Math.min(min, value)
      max = Math.max(max, value)
    })
    widenGaps(points)
    return { label, column, points, min, max, count: xs.length }
  })
  return { x, series, isTime: timed }
}

/** A gap extends from one point of its series to the next, over the points of other series. */
function widenGaps(points: (number | null | undefined)[]): void {
  const spread = (from: number, end: number, step: number): void => {
    for (let index = from; index !== end; index += step) {
      if (points[index] === undefined && points[index - step] === null) points[index] = null
    }
  }
  spread(1, points.length, 1)
  spread(points.length - 2, -1, -1)
}

interface Line {
  readonly column: number
  readonly xs: number[]
  readonly ys: (number | null)[]
}

function linesOf(
  columns: readonly Column[],
  rows: readonly Row[],
  choice: ChartChoice,
  timed: boolean,
): Map<string, Line> {
  const { x, by, values } = choice
  const lines = new Map<string, Line>()
  for (const row of rows) {
    const raw = row[x]
    if (raw === null || raw === undefined) continue
    const at = timed ? millisOf(String(raw)) / 1000 : Number(raw)
    if (Number.isNaN(at)) continue
    const group = by < 0 ? null : String(row[by] ?? 'NULL')
    for (const column of values) {
      const name = columns[column]?.name ?? ''
      const label = group === null ? name : values.length === 1 ? group : `${group} ${name}`
      let line = lines.get(label)
      if (line === undefined) {
        line = { column, xs: [], ys: [] }
        lines.set(label, line)
      }
      const value = row[column]
      line.xs.push(at)
      line.ys.push(value === null || value === undefined ? null : Number(value))
    }
  }
  return lines
}

/** Sorts both lists by x, unless they are in order. */
function sortLine(xs: number[], ys: (number | null)[]): void {
  if (xs.every((at, index) => index === 0 || at >= (xs[index - 1] ?? at))) return
  const order = xs.map((_, index) => index).sort((a, b) => (xs[a] ?? 0) - (xs[b] ?? 0))
  const [sortedX, sortedY] = [order.map((index) => xs[index] ?? 0), order.map((index) => ys[index] ?? null)]
  xs.splice(0, xs.length, ...sortedX)
  ys.splice(0, ys.length, ...sortedY)
}

/** Places in holes between points that are further apart than the others. */
export function gapsOf(xs: readonly number[]): number[] {
  const distances = xs.slice(1).map((at, index) => at - (xs[index] ?? at))
  const positive = distances.filter((distance) => distance > 0).sort((a, b) => a - b)
  if (positive.length < 2) return []
  const limit = gapLimit(positive)
  return distances.flatMap((distance, index) => (distance > limit ? [(xs[index] ?? 0) + distance / 2] : []))
}

/** Samples at regular times have one usual distance; other points have none, and only a much longer one is a gap. */
function gapLimit(sorted: readonly number[]): number {
  const usual = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0
  const regular = sorted.filter((distance) => Math.abs(distance - usual) <= usual * regularTolerance).length
  if (regular >= sorted.length * 0.6) return usual * gapSteps
  return (sorted[Math.floor((sorted.length - 1) * 0.9)] ?? usual) * irregularGap
}

/**
 * Sums each series onto those below it, for a stacked chart. In a gap, before its begin and behind its end a series
 * adds nothing.
 */
export function stacked(series: readonly Series[], length: number): (number | null)[][] {
  const sums = new Array<number>(length).fill(0)
  return series.map(({ points }) => {
    const end = points.findLastIndex((value) => typeof value === 'number')
    let last: number | null | undefined
    return points.map((value, index) => {
      // Between two points of its own a series keeps its last value, so that the sums do not jump.
      if (value !== undefined) last = value
      const shown = index > end ? null : value === undefined ? (last ?? null) : value
      sums[index] = (sums[index] ?? 0) + (shown ?? 0)
      return shown === null ? null : (sums[index] ?? 0)
    })
  })
}

/** Which series to draw when there are too many: those with the largest values. */
export function largest(series: readonly Series[], count: number): Set<string> {
  const size = ({ min, max }: Series): number => Math.max(Math.abs(min), Math.abs(max))
  const ranked = [...series].filter((one) => Number.isFinite(one.max)).sort((a, b) => size(b) - size(a))
  return new Set(ranked.slice(0, count).map(({ label }) => label))
}

/** Columns whose values are far from those of the first one get the right axis. */
export function rightColumns(series: readonly Series[]): Set<number> {
  const sizes = new Map<number, number>()
  for (const { column, min, max } of series) {
    if (!Number.isFinite(max)) continue
    sizes.set(column, Math.max(sizes.get(column) ?? 0, Math.abs(min), Math.abs(max)))
  }
  const [first] = sizes.values()
  if (first === undefined || first === 0) return new Set()
  return new Set([...sizes].flatMap(([column, size]) => (size > first * 8 || size * 8 < first ? [column] : [])))
}
