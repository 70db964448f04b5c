// Sparkline: a small line chart without axes that shows the last 90 readings of a metric.

const readingsMax = 90
const [width, height] = [120, 28]
const svg = 'http://www.w3.org/2000/svg'

export class Sparkline {
  readonly host = document.createElementNS(svg, 'svg')
  readonly #line = document.createElementNS(svg, 'polyline')
  readonly #values: number[] = []

  constructor() {
    this.host.setAttribute('viewBox', `0 0 ${width} ${height}`)
    this.host.setAttribute('preserveAspectRatio', 'none')
    this.host.setAttribute('class', 'sparkline')
    this.host.setAttribute('aria-hidden', 'true')
    this.host.append(this.#line)
  }

  add(value: number): void {
    this.#values.push(value)
    if (this.#values.length > readingsMax) this.#values.shift()
    const max = Math.max(...this.#values, 1e-9)
    const first = readingsMax - this.#values.length
    const points = this.#values.map((one, index) => {
      const left = ((first + index) / (readingsMax - 1)) * width
      return `${left.toFixed(1)},${(height - 2 - (one / max) * (height - 4)).toFixed(1)}`
    })
    this.#line.setAttribute('points', points.join(' '))
  }
}
