// The control of a dashboard's time range: a duration until now, or two times in UTC.

import { parseRange } from '../../common/dashboards.js'
import { element, select } from '../app/dom.js'
import { fixedRange, rangeNow } from './dashboard-address.js'

const durations: readonly (readonly [range: string, text: string])[] = [
  ['5m', 'last 5 minutes'],
  ['15m', 'last 15 minutes'],
  ['1h', 'last hour'],
  ['6h', 'last 6 hours'],
  ['24h', 'last 24 hours'],
  ['7d', 'last 7 days'],
  ['30d', 'last 30 days'],
  ['90d', 'last 90 days'],
  ['365d', 'last 365 days'],
]
const fixed = 'fixed'

export class RangeControl {
  readonly host = element('span', { className: 'bar range' })
  readonly #changed: (range: string) => void

  constructor(changed: (range: string) => void) {
    this.#changed = changed
  }

  show(range: string): void {
    const parsed = parseRange(range)
    const isFixed = parsed?.kind === 'fixed'
    const known = durations.some(([duration]) => duration === range)
    const own: [string, string][] = known || isFixed ? [] : [[range, `last ${range}`]]
    const chooser = select(
      'Time range',
      [...durations, ...own, [fixed, 'from … to …']],
      isFixed ? fixed : range,
      (value) => {
        const { fromMs, toMs } = rangeNow(range, Date.now())
        this.#changed(value === fixed ? fixedRange(fromMs, toMs) : value)
      },
    )
    this.host.replaceChildren(chooser)
    if (isFixed) this.#showTimes(parsed.fromMs, parsed.toMs)
  }

  #showTimes(fromMs: number, toMs: number): void {
    const [from, to] = [this.#timeInput('From, UTC', fromMs), this.#timeInput('To, UTC', toMs)]
    const change = (): void => {
      const [fromNow, toNow] = [timeOf(from), timeOf(to)]
      const isRange = fromNow < toNow
      to.setCustomValidity(isRange ? '' : 'The range ends before it begins.')
      if (isRange) this.#changed(fixedRange(fromNow, toNow))
      else to.reportValidity()
    }
    for (const input of [from, to]) input.addEventListener('change', change)
    this.host.append(
      from,
      element('span', { className: 'quiet' }, 'to'),
      to,
      element('span', { className: 'quiet' }, 'UTC'),
    )
  }

  #timeInput(label: string, ms: number): HTMLInputElement {
    const input = element('input', { type: 'datetime-local', step: '1', ariaLabel: label, title: label })
    input.value = new Date(ms).toISOString().slice(0, 19)
    return input
  }
}

function timeOf({ value }: HTMLInputElement): number {
  return value === '' ? Number.NaN : Date.parse(`${value}Z`)
}
