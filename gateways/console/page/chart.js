// Draws a result as lines over time (or any number): one line per numeric column, or per value of a text column.

import { byId, element, show } from './element.js'
import uPlot from './uplot.js'

const numeric = new Set(['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'])
const times = new Set(['TIMESTAMP', 'TIMESTAMP_NS', 'DATE'])
const strings = new Set(['SYMBOL', 'STRING', 'VARCHAR', 'CHAR'])
const colours = [
  '#1f8a80',
  '#d1602b',
  '#4f6bd6',
  '#b0397f',
  '#8a7a1f',
  '#3c9a3c',
  '#7a4fc0',
  '#c23b3b',
  '#3b87b8',
  '#777777',
]
const linesMax = 40

const target = byId('chart')
const xChoice = byId('chart-x')
const byChoice = byId('chart-by')
let plot = null
let shown = { columns: [], dataset: [] }

export function openChart() {
  for (const choice of [xChoice, byChoice]) choice.addEventListener('change', drawChart)
  new ResizeObserver(() => plot?.setSize(size())).observe(target)
}

/** Draws the rows; returns whether there is something to draw. */
export function chartRows(columns, dataset) {
  shown = { columns, dataset }
  plot?.destroy()
  plot = null
  const axes = columns.filter(({ type }) => times.has(type) || numeric.has(type))
  fill(
    xChoice,
    axes.map(({ name }) => name),
  )
  xChoice.value = (axes.find(({ type }) => times.has(type)) ?? axes[0])?.name ?? ''
  const groups = columns.filter(({ type }) => strings.has(type)).map(({ name }) => name)
  fill(byChoice, ['', ...groups])
  byChoice.value = groups[0] ?? ''
  show(byChoice.parentElement, groups.length > 0)
  return axes.length > 0 && columns.some(({ type }) => numeric.has(type))
}

export function drawChart() {
  plot?.destroy()
  plot = null
  target.replaceChildren()
  const { columns, dataset } = shown
  const x = columns.findIndex(({ name }) => name === xChoice.value)
  const by = columns.findIndex(({ name }) => name === byChoice.value)
  const values = columns
    .map((column, index) => ({ ...column, index }))
    .filter(({ type, index }) => numeric.has(type) && index !== x)
  if (x < 0 || values.length === 0 || dataset.length === 0) {
    target.append('A chart takes a time or a number, and another number, in some rows.')
    return
  }
  const { lines, data } = linesOf(dataset, x, by, values, times.has(columns[x].type))
  const series = lines.map((label, index) => ({
    label,
    stroke: colours[index % colours.length],
    width: 1.5,
    spanGaps: true,
    points: { show: dataset.length < 80 },
  }))
  const { color, borderColor } = { color: getComputedStyle(document.body).color, borderColor: '#8884' }
  const axis = { stroke: color, grid: { stroke: borderColor }, ticks: { stroke: borderColor } }
  plot = new uPlot(
    {
      ...size(),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      series: [{ label: columns[x].name }, ...series],
      axes: [axis, axis],
      scales: { x: { time: times.has(columns[x].type) } },
    },
    data,
    target,
  )
}

function size() {
  return { width: Math.max(200, target.clientWidth - 16), height: Math.max(120, target.clientHeight - 60) }
}

/** Groups rows by x, with one column of values per line. */
function linesOf(dataset, x, by, values, isTime) {
  const names = new Map()
  const points = new Map()
  for (const row of dataset) {
    const at = isTime ? Date.parse(row[x]) / 1000 : Number(row[x])
    if (row[x] === null || Number.isNaN(at)) continue
    const point = points.get(at) ?? new Map()
    points.set(at, point)
    for (const { name, index } of values) {
      const label = by < 0 ? name : values.length === 1 ? String(row[by]) : `${row[by]} ${name}`
      if (!names.has(label) && names.size >= linesMax) continue
      names.set(label, true)
      // Large integers are strings.
      point.set(label, row[index] === null ? null : Number(row[index]))
    }
  }
  const lines = [...names.keys()]
  const sorted = [...points].sort(([a], [b]) => a - b)
  const data = [sorted.map(([at]) => at), ...lines.map((label) => sorted.map(([, point]) => point.get(label) ?? null))]
  return { lines, data }
}

function fill(choice, names) {
  choice.replaceChildren(...names.map((name) => element('option', { value: name }, name === '' ? '(nothing)' : name)))
}
