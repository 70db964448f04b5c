// Parses and formats PostgreSQL's type interval: `1 day 02:00:00`. A column of intervals holds microseconds, so it
// cannot hold months and years, whose lengths vary; an interval that is added to a timestamp may have them.
//
//   text       [sign]number unit, repeated; [sign]hh:mm[:ss[.fraction]]; a final `ago` reverses all signs
//   ISO 8601   [-]P1Y2M3W4DT5H6M7.5S

import { longMax, longMin } from './number.js'
import { secondFraction } from './time-of-day.js'
import { microsPerDay } from './timestamp-calendar.js'

/** A number of each unit of dateadd(). */
export interface Shift {
  readonly unit: string
  readonly count: number
}

const units: readonly (readonly [name: RegExp, unit: string, times: number])[] = [
  [/^(y|yr|yrs|years?)$/, 'y', 1],
  [/^(mon|mons|months?)$/, 'M', 1],
  [/^(w|weeks?)$/, 'd', 7],
  [/^(d|days?)$/, 'd', 1],
  [/^(h|hr|hrs|hours?)$/, 's', 3600],
  [/^(m|mins?|minutes?)$/, 's', 60],
  [/^(s|secs?|seconds?)$/, 's', 1],
  [/^(ms|msecs?|milliseconds?)$/, 'u', 1000],
  [/^(us|usecs?|microseconds?)$/, 'u', 1],
  [/^(decades?)$/, 'y', 10],
  [/^(centur(y|ies))$/, 'y', 100],
]

const secondsPerDay = 86_400

/** Null: the text is not a PostgreSQL interval. */
export function shiftsOf(text: string): readonly Shift[] | null {
  const words = wordsOfIso(text.trim()) ?? text.trim().toLowerCase()
  const ago = /\sago$/.test(words)
  let rest = ago ? words.slice(0, -3).trim() : words
  const shifts: Shift[] = []
  while (rest !== '') {
    const clock = /^([+-]?)(\d+):(\d\d?)(?::(\d\d?(?:\.\d+)?))?(?=\s|$)/.exec(rest)
    const amount = clock === null ? /^([+-]?\d+(?:\.\d+)?)\s*([a-z]+)(?=[\s\d+-]|$)/.exec(rest) : null
    if (clock !== null) {
      const seconds = Number(clock[2]) * 3600 + Number(clock[3]) * 60 + Number(clock[4] ?? 0)
      shifts.push(...secondsShift(clock[1] === '-' ? -seconds : seconds))
    } else {
      const [, unit = '', times = 0] = units.find(([name]) => name.test(amount?.[2] ?? '')) ?? []
      const found = unit === '' ? null : shiftsOfUnit(unit, Number(amount?.[1]) * times)
      if (found === null) return null
      shifts.push(...found)
    }
    rest = rest.slice((clock ?? amount)?.[0].length).trim()
  }
  if (shifts.length === 0 || shifts.some(({ count }) => Math.abs(count) >= 2 ** 31)) return null
  const moved = shifts.filter(({ unit, count }) => count !== 0 || microsOfUnit(unit) !== undefined)
  return ago ? moved.map(({ unit, count }) => ({ unit, count: -count })) : moved
}

/** A fraction of a day is converted to seconds; that of a month has no defined length. */
function shiftsOfUnit(unit: string, count: number): Shift[] | null {
  if (unit === 's') return secondsShift(count)
  if (Number.isInteger(count)) return [{ unit, count }]
  if (unit !== 'd') return null
  const whole = Math.trunc(count)
  return [...(whole === 0 ? [] : [{ unit, count: whole }]), ...secondsShift((count - whole) * secondsPerDay)]
}

function secondsShift(seconds: number): Shift[] {
  const whole = Math.trunc(seconds)
  const micros = Math.round((seconds - whole) * 1e6)
  return [
    ...(whole === 0 && micros !== 0 ? [] : [{ unit: 's', count: whole }]),
    ...(micros === 0 ? [] : [{ unit: 'u', count: micros }]),
  ]
}

const isoUnits = ['years', 'months', 'weeks', 'days', 'hours', 'minutes', 'seconds'] as const

function wordsOfIso(text: string): string | null {
  const number = '([+-]?\\d+(?:\\.\\d+)?)'
  const part = (letter: string): string => `(?:${number}${letter})?`
  const days = ['Y', 'M', 'W', 'D'].map(part).join('')
  const found = new RegExp(`^(-?)P${days}(?:T${['H', 'M', 'S'].map(part).join('')})?$`).exec(text)
  if (found === null) return null
  const [, sign, ...counts] = found
  const words = counts.flatMap((count, index) => (count === undefined ? [] : [`${count} ${isoUnits[index]}`]))
  return sign === '-' ? [...words, 'ago'].join(' ') : words.join(' ')
}

const unitMicros: Readonly<Record<string, bigint>> = { d: BigInt(microsPerDay), s: 1_000_000n, u: 1n }

/** Microseconds of a unit; undefined for months and years, whose lengths vary. */
export function microsOfUnit(unit: string): bigint | undefined {
  return unitMicros[unit]
}

/** Whether it includes months or years. */
export function hasMonths(shifts: readonly Shift[]): boolean {
  return shifts.some(({ unit }) => microsOfUnit(unit) === undefined)
}

/** Microseconds; null: not an interval, or one without a fixed length. */
export function microsOfSpan(text: string): bigint | null {
  // A bare number is in seconds.
  const shifts = shiftsOf(/^\s*[+-]?\d+(\.\d+)?\s*$/.test(text) ? `${text} s` : text)
  if (shifts === null || hasMonths(shifts)) return null
  const micros = shifts.reduce((sum, { unit, count }) => sum + BigInt(count) * (microsOfUnit(unit) ?? 0n), 0n)
  return micros > longMin && micros <= longMax ? micros : null
}

/** PostgreSQL's format, with whole days. */
export function formatSpan(micros: bigint): string {
  const { days, rest } = daysOf(micros)
  const sign = rest < 0n ? '-' : ''
  const size = rest < 0n ? -rest : rest
  const two = (value: bigint): string => String(value).padStart(2, '0')
  const seconds = size / 1_000_000n
  const fraction = secondFraction(size)
  const clock = `${sign}${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}${fraction}`
  if (days === 0n) return clock
  const counted = `${days} ${days === 1n ? 'day' : 'days'}`
  return rest === 0n ? counted : `${counted} ${clock}`
}

/** PostgreSQL's format for IntervalStyle iso_8601: `P1DT2H3M4.5S`. */
export function formatIsoSpan(micros: bigint): string {
  const { days, rest } = daysOf(micros)
  const sign = rest < 0n ? '-' : ''
  const size = rest < 0n ? -rest : rest
  const seconds = size / 1_000_000n
  const fraction = secondFraction(size)
  const part = (count: bigint, letter: string): string => (count === 0n ? '' : `${sign}${count}${letter}`)
  const last = fraction === '' ? part(seconds % 60n, 'S') : `${sign}${seconds % 60n}${fraction}S`
  const clock = `${part(seconds / 3600n, 'H')}${part((seconds / 60n) % 60n, 'M')}${last}`
  if (days === 0n) return `PT${clock === '' ? '0S' : clock}`
  return clock === '' ? `P${days}D` : `P${days}DT${clock}`
}

/** Whole days and the remainder, both with the interval's sign. */
export function daysOf(micros: bigint): { readonly days: bigint; readonly rest: bigint } {
  return { days: micros / BigInt(microsPerDay), rest: micros % BigInt(microsPerDay) }
}

export const monthsProblem = 'months and years differ in length: write days, or add them to a timestamp'

/** Error for a value that a column of intervals cannot hold. */
export function spanProblem(text: string): string {
  const shifts = shiftsOf(text)
  if (shifts === null) return `invalid input syntax for type interval: "${text.slice(0, 100)}"`
  return hasMonths(shifts)
    ? `${monthsProblem} [interval=${text.slice(0, 100)}]`
    : `interval out of range [interval=${text.slice(0, 100)}]`
}
