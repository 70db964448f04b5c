// Adapter of the package uPlot, which draws charts: series on one or two axes as lines, areas, bars or points. Reports
// the position of the pointer, and the range that the user dragged over.

import uPlot from 'uplot'

export type ChartStyle = 'lines' | 'area' | 'bars' | 'points' | 'heat'

interface PlotSeries {
  readonly label: string
  readonly colour: string
  readonly dash: readonly number[]
  readonly right: boolean
  readonly data: readonly (number | null | undefined)[]
}

export interface PlotOptions {
  readonly host: HTMLElement
  readonly x: readonly number[]
  readonly isTime: boolean
  readonly style: ChartStyle
  readonly series: readonly PlotSeries[]
  /** Index of the point at the pointer; null outside. */
  readonly hovered: (index: number | null) => void
  readonly selected: (from: number, to: number) => void
}

export interface Plot {
  readonly canvas: HTMLCanvasElement
  resize(): void
  /** The vertical marker of another chart or of the keyboard. */
  close(): void
}

const barShare = 0.8
const barPixelsMax = 60
/** Below it, points are marked. */
const markedPointsMax = 120

export function drawPlot(options: PlotOptions): Plot {
  const { host, x, series, hovered, selected } = options
  const plot = new uPlot(
    {
      ...sizeOf(host),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
      scales: { x: { time: options.isTime }, ...valueScales(options) },
      axes: axesOf(options),
      series: [{}, ...series.map((one) => seriesOf(one, options))],
      hooks: {
        setCursor: [({ cursor }) => hovered(cursor.idx ?? null)],
        setSelect: [
          (self) => {
            const { left, width } = self.select
            if (width < 6) return
            selected(self.posToVal(left, 'x'), self.posToVal(left + width, 'x'))
            self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false)
          },
        ],
      },
    },
    [[...x], ...series.map(({ data }) => [...data])],
    host,
  )
  return {
    canvas: plot.ctx.canvas,
    resize: () => plot.setSize(sizeOf(host)),
    close: () => plot.destroy(),
  }
}

function sizeOf(host: HTMLElement): { width: number; height: number } {
  return { width: Math.max(200, host.clientWidth), height: Math.max(120, host.clientHeight) }
}

/** Areas and bars begin at zero; lines use the room for their values. */
function valueScales({ style }: PlotOptions): uPlot.Scales {
  if (style === 'lines' || style === 'points') return { y: {}, right: {} }
  const range = (_self: uPlot, min: number, max: number): uPlot.Range.MinMax => {
    const [low, high] = [Math.min(0, min), Math.max(0, max)]
    return low === high ? [0, 1] : [low + low * 0.05, high + high * 0.05]
  }
  return { y: { range }, right: { range } }
}

function axesOf({ host, series, isTime }: PlotOptions): uPlot.Axis[] {
  const style = getComputedStyle(host)
  const [text, line] = [style.getPropertyValue('--quiet'), style.getPropertyValue('--line')]
  const stroke = resolvedColour(host, text)
  const grid = { stroke: resolvedColour(host, line), width: 1 }
  const font = '11px system-ui, sans-serif'
  const common = { stroke, font, ticks: { show: false } }
  const right = series.some((one) => one.right)
  const values = (_self: uPlot, splits: number[]): string[] => splits.map(axisNumber)
  const times = (_self: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] =>
    splits.map((seconds, index) => axisTime(seconds, splits[index - 1], step))
  return [
    { ...common, grid, space: 76, ...(isTime ? { values: times } : {}) },
    { ...common, grid, size: 58, values, scale: 'y' },
    ...(right
      ? [{ ...common, grid: { show: false }, size: 58, values, scale: 'right', side: 1 } satisfies uPlot.Axis]
      : []),
  ]
}

/** The time as in ISO 8601, and the day below it where it changes. */
function axisTime(seconds: number, before: number | undefined, step: number): string {
  const iso = new Date(seconds * 1000).toISOString()
  const day = iso.slice(0, 10)
  if (step >= 86_400) return day
  const time = step >= 60 ? iso.slice(11, 16) : step >= 1 ? iso.slice(11, 19) : iso.slice(11, 23)
  const isNew = before === undefined || new Date(before * 1000).toISOString().slice(0, 10) !== day
  return isNew ? `${time}\n${day}` : time
}

function axisNumber(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e9) return `${trimmed(value / 1e9)}G`
  if (size >= 1e6) return `${trimmed(value / 1e6)}M`
  if (size >= 1e4) return `${trimmed(value / 1e3)}k`
  return size !== 0 && size < 1e-3 ? value.toExponential(1) : trimmed(value)
}

function trimmed(value: number): string {
  return String(Number(value.toPrecision(6)))
}

function seriesOf({ label, colour, dash, right, data }: PlotSeries, { host, style, x }: PlotOptions): uPlot.Series {
  const ground = resolvedColour(host, getComputedStyle(host).getPropertyValue('--panel'))
  const filled = style === 'area' || style === 'bars'
  const points = data.length < markedPointsMax || style === 'points'
  return {
    label,
    scale: right ? 'right' : 'y',
    stroke: colour,
    width: style === 'points' ? 0 : 1.5,
    spanGaps: false,
    ...(dash.length === 0 ? {} : { dash: [...dash] }),
    ...(filled ? { fill: mixed(colour, ground, style === 'area' ? 0.45 : 0.8) } : {}),
    ...(style === 'bars' ? { paths: bars(x.length) } : {}),
    points: { show: points && style !== 'bars', size: style === 'points' ? 5 : 4 },
  }
}

function bars(count: number): uPlot.Series.PathBuilder {
  const make = uPlot.paths.bars
  if (make === undefined) throw new Error('this uPlot has no bars')
  return make({ size: [barShare, count < 3 ? barPixelsMax * 2 : barPixelsMax] })
}

/** A colour as the canvas needs it: without functions of style sheets. */
export function resolvedColour(host: HTMLElement, colour: string): string {
  const probe = document.createElement('span')
  probe.style.color = colour
  host.append(probe)
  const resolved = getComputedStyle(probe).color
  probe.remove()
  return resolved
}

/** Opaque mixtures, because stacked areas lie over each other. */
function mixed(colour: string, ground: string, share: number): string {
  const [a, b] = [channels(colour), channels(ground)]
  return `rgb(${a.map((value, index) => Math.round(value * share + (b[index] ?? 0) * (1 - share))).join(',')})`
}

function channels(colour: string): number[] {
  const hex = /^#(..)(..)(..)$/.exec(colour)
  if (hex !== null) return hex.slice(1).map((part) => Number.parseInt(part, 16))
  return (colour.match(/[\d.]+/g) ?? ['0', '0', '0']).slice(0, 3).map(Number)
}
