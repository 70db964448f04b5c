// Exponential moving averages: avg(v, 'alpha', a), avg(v, 'period', n) and avg(v, 'hour', n), each also with a column
// of volumes. A running state for each partition, in the order of the window.
//
//   moving_avg        value, weight of the newest value, [volume]
//   moving_avg_time   value, time, time in which a value's weight falls to 1/e, [volume]

import type { WindowCall } from '../../sql/plan/plan.js'
import type { WindowOrder, Working } from './window-order.js'
import type { WindowResult } from './window-result.js'
import type { WindowRows } from './window-rows.js'
import { numberReader } from './window-values.js'

export const movingNames: ReadonlySet<string> = new Set(['moving_avg', 'moving_avg_time'])

type NumberAt = (row: number) => number

export function* movingResult(order: WindowOrder, call: WindowCall, slots: readonly number[]): Working<WindowResult> {
  const { memory, arena } = order.rows.context
  const { u32, f64 } = memory
  const address = arena.take(order.rows.rows * 8)
  const moving = new MovingAverage(order.rows, call, slots)
  const rows = order.order >>> 2
  moving.bind()
  yield* order.each((start, _end, from, to) => {
    for (let p = from; p < to; p++) {
      const row = u32[rows + p]!
      if (p === start) moving.reset()
      moving.add(row)
      f64[(address >>> 3) + row] = moving.average
    }
  })
  return { kind: 'values', address, dictionary: 0 }
}

const none: NumberAt = () => Number.NaN
const one: NumberAt = () => 1

/** A row without value or volume repeats the previous average, but its time still counts. */
export class MovingAverage {
  average = Number.NaN
  readonly #rows: WindowRows
  readonly #isTimed: boolean
  readonly #slots: readonly number[]
  #value = none
  #second = none
  #span = none
  #volume = one
  #sum = 0
  #volumes = 0
  #isFirst = true
  #time = 0

  constructor(rows: WindowRows, { name }: WindowCall, slots: readonly number[]) {
    this.#rows = rows
    this.#isTimed = name === 'moving_avg_time'
    this.#slots = slots
  }

  bind(): void {
    const { rows, context } = this.#rows
    const readers = this.#slots.map((slot) => numberReader(context.memory, this.#rows.column(slot), rows, false))
    const [value = none, second = none, third, fourth] = readers
    this.#value = value
    this.#second = second
    this.#span = third ?? none
    this.#volume = (this.#isTimed ? fourth : third) ?? one
  }

  reset(): void {
    this.average = Number.NaN
    this.#isFirst = true
  }

  add(row: number): void {
    const newest = this.#isTimed ? this.#fadedSince(row) : this.#second(row)
    const [value, volume] = [this.#value(row), this.#volume(row)]
    if (Number.isNaN(value) || Number.isNaN(volume)) return
    const isFirst = Number.isNaN(this.average)
    this.#sum = isFirst ? value * volume : newest * value * volume + (1 - newest) * this.#sum
    this.#volumes = isFirst ? volume : newest * volume + (1 - newest) * this.#volumes
    this.average = this.#sum / this.#volumes
  }

  /** The share that earlier rows have lost since the row before. */
  #fadedSince(row: number): number {
    const now = this.#second(row)
    const passed = this.#isFirst ? 0 : Math.abs(now - this.#time)
    this.#time = now
    this.#isFirst = false
    return 1 - Math.exp(-passed / this.#span(row))
  }

  value(): number | null {
    return Number.isNaN(this.average) ? null : this.average
  }
}
