// Heat map, a kind of chart for many series, where lines would cover each other: a row for each series and a cell for
// each point, coloured by its value. It draws all series that it gets; chart.ts passes up to 400 of them unless the
// user chooses others. Gaps have no cells.

import type { Plot, PlotOptions } from './uplot.js'
import { resolvedColour } from './uplot.js'

const [left, right, top, bottom] = [110, 14, 10, 24]
const labelPixels = 14
const timeLabelPixels = 130
/** Room for the scale of colours. */
const scalePixels = 190
/** From low to high; dark to light, so that it reads without colours, too. */
const scale = ['#30123b', '#3e60c4', '#1fa79b', '#7fc244', '#f5c53b', '#e8672a'] as const

export function drawHeatMap(options: PlotOptions): Plot {
  const canvas = document.createElement('canvas')
  canvas.className = 'heat-map'
  const draw = (): void => paint(canvas, options)
  options.host.append(canvas)
  draw()
  listen(canvas, options)
  return { canvas, resize: draw, close: () => canvas.remove() }
}

function paint(canvas: HTMLCanvasElement, { host, x, isTime, series }: PlotOptions): void {
  const [width, height, ratio] = [host.clientWidth, host.clientHeight, devicePixelRatio]
  canvas.width = width * ratio
  canvas.height = height * ratio
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const context = canvas.getContext('2d')
  if (context === null || x.length === 0) return
  context.scale(ratio, ratio)
  const [low, high] = extentOf(series.flatMap(({ data }) => data))
  const rowPixels = (height - top - bottom) / Math.max(1, series.length)
  const place = placesOf(x, width)
  const step = usualStep(x)
  series.forEach(({ data }, row) => {
    data.forEach((value, index) => {
      if (value === null || value === undefined) return
      const at = x[index] ?? 0
      const [begin, end] = [place(at), place(at + step)]
      context.fillStyle = colourOf(high === low ? 0.5 : (value - low) / (high - low))
      context.fillRect(
        begin,
        top + row * rowPixels,
        Math.max(1, end - begin + 0.5),
        Math.max(1, rowPixels - (rowPixels > 6 ? 1 : 0)),
      )
    })
  })
  context.fillStyle = resolvedColour(host, 'var(--quiet)')
  context.font = '11px system-ui, sans-serif'
  const every = Math.max(1, Math.ceil(labelPixels / rowPixels))
  series.forEach(({ label }, row) => {
    if (row % every === 0) context.fillText(label.slice(0, 17), 4, top + (row + 0.5) * rowPixels + 4, left - 10)
  })
  paintTimes(context, x, place, { width, height }, isTime)
  paintScale(context, [low, high], { width, height })
}

interface Size {
  readonly width: number
  readonly height: number
}

function paintTimes(
  context: CanvasRenderingContext2D,
  x: readonly number[],
  place: (at: number) => number,
  { width, height }: Size,
  isTime: boolean,
): void {
  const count = Math.max(1, Math.floor((width - left - right - scalePixels) / timeLabelPixels))
  const [first = 0, last = 0] = [x[0], x.at(-1)]
  for (let n = 0; n < count; n++) {
    const at = first + ((last - first) * n * timeLabelPixels) / Math.max(1, width - left - right)
    const text = isTime
      ? new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' ')
      : String(Number(at.toPrecision(6)))
    context.fillText(text, place(at), height - 8)
  }
}

/** Which colour stands for which value. */
function paintScale(context: CanvasRenderingContext2D, [low, high]: readonly number[], { width, height }: Size): void {
  if (low === undefined || high === undefined || !Number.isFinite(low)) return
  const [begin, barPixels] = [width - scalePixels + 50, 70]
  context.textAlign = 'right'
  context.fillText(String(Number(low.toPrecision(4))), begin - 6, height - 8)
  context.textAlign = 'left'
  context.fillText(String(Number(high.toPrecision(4))), begin + barPixels + 6, height - 8)
  for (let pixel = 0; pixel < barPixels; pixel++) {
    context.fillStyle = colourOf(pixel / barPixels)
    context.fillRect(begin + pixel, height - 17, 1, 10)
  }
}

/** From values of the axis to pixels. */
function placesOf(x: readonly number[], width: number): (at: number) => number {
  const [first = 0, last = 0] = [x[0], x.at(-1)]
  const range = last - first + usualStep(x)
  return (at) => left + (range === 0 ? 0 : ((at - first) / range) * (width - left - right))
}

function usualStep(x: readonly number[]): number {
  const distances = x
    .slice(1)
    .map((at, index) => at - (x[index] ?? at))
    .sort((a, b) => a - b)
  return distances[Math.floor(distances.length / 2)] ?? 1
}

function extentOf(values: readonly (number | null | undefined)[]): [low: number, high: number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    if (value === null || value === undefined) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return [low, high]
}

function colourOf(share: number): string {
  const place = Math.max(0, Math.min(1, share)) * (scale.length - 1)
  const index = Math.min(scale.length - 2, Math.floor(place))
  const [from, to] = [channels(scale[index] ?? scale[0]), channels(scale[index + 1] ?? scale[0])]
  return `rgb(${from.map((value, channel) => Math.round(value + ((to[channel] ?? value) - value) * (place - index))).join(',')})`
}

function channels(colour: string): number[] {
  return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16))
}

function listen(canvas: HTMLCanvasElement, { x, hovered, selected }: PlotOptions): void {
  const valueAt = (event: PointerEvent): number => {
    const width = canvas.clientWidth - left - right
    const [first = 0, last = 0] = [x[0], x.at(-1)]
    return first + ((event.offsetX - left) / width) * (last - first + usualStep(x))
  }
  let begin: number | null = null
  canvas.addEventListener('pointerdown', (event) => {
    begin = valueAt(event)
  })
  canvas.addEventListener('pointermove', (event) => {
    const at = valueAt(event)
    const index = x.findLastIndex((value) => value <= at)
    hovered(index < 0 ? null : index)
  })
  canvas.addEventListener('pointerup', (event) => {
    const end = valueAt(event)
    const isDrag = begin !== null && Math.abs(end - begin) > usualStep(x)
    if (begin !== null && isDrag) selected(Math.min(begin, end), Math.max(begin, end))
    begin = null
  })
}
