// Parses the strings that describe time intervals in WHERE: `2024-01-01` (a whole day), or `2024-01;1d;7d;5`
// (start;duration;period;count: an interval repeated five times, every seven days). tick.ts has more forms of the
// start, and brackets list several. Also computes intersection, union and complement of lists of ranges that include
// both ends.

import { longMax, longMin } from './number.js'
import { closingBracket, inZone, type Range, splitOutside, startsOn, type TickSpan, tickSpans } from './tick.js'
import { formatTimestamp, parseTimestamp } from './timestamp.js'
import type { TimestampUnit } from './timestamp-calendar.js'
import { addUnits, isTimeUnit, type TimeUnit } from './timestamp-floor.js'
import type { IntervalValue } from './value.js'

/** Bounds of valid timestamps: NULL is the smallest integer. */
export const allOfTime: Range = { lo: longMin + 1n, hi: longMax }

export type IntervalResult = { readonly ranges: readonly Range[] } | { readonly error: string }

const rangesMax = 20_000

/** `nowMicros`: the current time for the variables of tick expressions (tick.ts). */
export function parseIntervals(text: string, unit: TimestampUnit, nowMicros: bigint): IntervalResult {
  const members = listMembers(text)
  if (members === null) return parseInterval(text, unit, nowMicros)
  const ranges: Range[] = []
  for (const member of members) {
    const result = parseInterval(member, unit, nowMicros)
    if ('error' in result) return result
    for (const range of result.ranges) ranges.push(range)
    if (ranges.length > rangesMax) return { error: `too many intervals [max=${rangesMax}]` }
  }
  return { ranges: normalise(ranges) }
}

/** Parses `[2024-01-01;1h,2024-01-02]@Asia/Tokyo`, a list whose members have their own durations; else null. */
function listMembers(text: string): string[] | null {
  const list = text.trim()
  const close = list.startsWith('[') ? closingBracket(list, 0) : -1
  const inside = list.slice(1, Math.max(1, close))
  return inside.includes(';') ? splitOutside(inside).map((member) => withTail(member, list.slice(close + 1))) : null
}

/** Zone and weekdays of the whole list are applied to each start. */
function withTail(member: string, tail: string): string {
  const [start, durations] = cutAt(member.trim(), ';')
  const [suffixes, more] = cutAt(tail, ';')
  return start + suffixes + durations + more
}

function cutAt(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at)]
}

function parseInterval(text: string, unit: TimestampUnit, nowMicros: bigint): IntervalResult {
  const [start = '', duration, period, count, ...more] = text.split(';').map((part) => part.trim())
  if (more.length > 0) return { error: `Invalid interval format (too many semicolons): ${text}` }
  if (period !== undefined && count === undefined) return { error: `Invalid interval format: ${text}` }
  const spans = tickSpans(start, { unit, nowMicros })
  if (typeof spans === 'string') return { error: spans }
  const ranges: Range[] = []
  for (const span of spans) {
    const result = repeated(span, duration, period, count ?? '', unit)
    if ('error' in result) return result
    for (const range of ofSpan(result.ranges, span, unit)) ranges.push(range)
    if (ranges.length > rangesMax) return { error: `too many intervals [max=${rangesMax}]` }
  }
  return { ranges: normalise(ranges) }
}

/** Restricted to the requested weekdays, in UTC. */
function ofSpan(ranges: readonly Range[], { days, zone }: TickSpan, unit: TimestampUnit): readonly Range[] {
  const retained = days === null ? ranges : normalise(ranges).filter((range) => startsOn(range, days, unit))
  return zone === null ? retained : retained.map((range) => inZone(range, zone, unit))
}

function repeated(
  span: TickSpan,
  duration: string | undefined,
  period: string | undefined,
  count: string,
  unit: TimestampUnit,
): IntervalResult {
  // A duration counts from the start: `2024-01-01;1h` is the first hour of the day. A negative one counts from the end:
  // `2024-01;-1d` is the month without its last day. `$now-2h..$now` has its own length.
  if (duration === undefined || span.isBetween) return { ranges: [span] }
  const isNegative = duration.startsWith('-')
  const lengths = parseDurations(isNegative ? duration.slice(1) : duration)
  if ('error' in lengths) return lengths
  const sign = isNegative ? -1 : 1
  const end = lengths.parts.reduce(
    (ticks, part) => addUnits(ticks, part.unit, sign * part.count, unit),
    isNegative ? span.hi + 1n : span.lo,
  )
  const base = { lo: span.lo, hi: end - 1n }
  if (period === undefined) return { ranges: [base] }
  const step = parsePeriod(period)
  if ('error' in step) return step
  const times = /^-?\d+$/.test(count) ? Number(count) : Number.NaN
  if (!Number.isInteger(times)) return { error: 'Count not a number' }
  if (Math.abs(times) > rangesMax) return { error: `too many intervals [max=${rangesMax}]` }
  return { ranges: repeatRange(base, step, times, unit) }
}

function repeatRange(base: Range, step: Duration, times: number, unit: TimestampUnit): Range[] {
  const sign = times < 0 ? -1 : 1
  // The interval itself is always included.
  return Array.from({ length: Math.max(1, Math.abs(times)) }, (_, index) => ({
    lo: addUnits(base.lo, step.unit, step.count * index * sign, unit),
    hi: addUnits(base.hi, step.unit, step.count * index * sign, unit),
  }))
}

interface Duration {
  readonly count: number
  readonly unit: TimeUnit
}

/** Parses `1h`, `6h30m`; an empty duration is invalid. */
function parseDurations(text: string): { readonly parts: readonly Duration[] } | { readonly error: string } {
  const units = /^(?:\d+[A-Za-z])*$/.test(text) ? (text.match(/\d+[A-Za-z]/g) ?? []) : [text]
  const parts: Duration[] = []
  for (const unit of units) {
    const part = parseDuration(unit)
    if ('error' in part) return part
    parts.push(part)
  }
  return { parts }
}

function parseDuration(text: string): Duration | { readonly error: string } {
  const match = /^(\d+)(.*)$/.exec(text)
  if (match === null)
    return { error: /^[a-z-]/i.test(text) ? `Expected number before unit '${text[0]}'` : `Invalid duration: ${text}` }
  const [, digits, suffix] = match
  const unit = suffix === 'u' ? 'U' : suffix
  if (suffix === '') return { error: 'Missing unit at end of duration' }
  if (!isTimeUnit(unit)) return { error: `Invalid duration unit: ${suffix ?? ''}` }
  const count = Number(digits)
  if (count > 2_147_483_647) return { error: `Invalid duration: ${text}` }
  return { count, unit }
}

function parsePeriod(text: string): Duration | { readonly error: string } {
  const digits = /^-?\d+/.exec(text)?.[0]
  if (digits === undefined) return { error: 'Period not a number' }
  const unit = text.slice(digits.length)
  if (unit !== 'u' && !isTimeUnit(unit)) return { error: `Unknown period: ${unit} at ${digits.length}` }
  const negative = digits.startsWith('-')
  const period = parseDuration(negative ? text.slice(1) : text)
  return 'error' in period || !negative ? period : { ...period, count: -period.count }
}

/** Normalises ranges: sorted, disjoint, not empty, adjacent ones merged. */
export function normalise(ranges: readonly Range[]): Range[] {
  const sorted = ranges.filter((range) => range.lo <= range.hi).sort((a, b) => (a.lo < b.lo ? -1 : a.lo > b.lo ? 1 : 0))
  const result: Range[] = []
  for (const range of sorted) {
    const last = result[result.length - 1]
    if (last === undefined || range.lo > last.hi + 1n) result.push(range)
    else if (range.hi > last.hi) result[result.length - 1] = { lo: last.lo, hi: range.hi }
  }
  return result
}

/** Both normalised. */
export function intersect(left: readonly Range[], right: readonly Range[]): Range[] {
  const result: Range[] = []
  let [i, j] = [0, 0]
  for (;;) {
    const a = left[i]
    const b = right[j]
    if (a === undefined || b === undefined) return result
    const lo = larger(a.lo, b.lo)
    const hi = smaller(a.hi, b.hi)
    if (lo <= hi) result.push({ lo, hi })
    if (a.hi < b.hi) i++
    else j++
  }
}

function larger(a: bigint, b: bigint): bigint {
  if (a > b) return a
  return b
}

function smaller(a: bigint, b: bigint): bigint {
  if (a < b) return a
  return b
}

export function unite(left: readonly Range[], right: readonly Range[]): Range[] {
  return normalise([...left, ...right])
}

/** Complement of normalised ranges. */
export function complement(ranges: readonly Range[]): Range[] {
  const result: Range[] = []
  let lo = allOfTime.lo
  for (const range of ranges) {
    if (range.lo > lo) result.push({ lo, hi: range.lo - 1n })
    lo = range.hi + 1n
  }
  if (lo <= allOfTime.hi) result.push({ lo, hi: allOfTime.hi })
  return result
}

export function contains(ranges: readonly Range[], value: bigint): boolean {
  let [lo, hi] = [0, ranges.length - 1]
  while (lo <= hi) {
    const middle = (lo + hi) >> 1
    const range = ranges[middle]
    if (range === undefined) return false
    if (value < range.lo) hi = middle - 1
    else if (value > range.hi) lo = middle + 1
    else return true
  }
  return false
}

/** With milliseconds, as clients expect, or microseconds if they are not zero. */
export function formatInterval({ lo, hi }: IntervalValue): string {
  const precise = lo % 1000n !== 0n || hi % 1000n !== 0n
  const text = (ts: bigint): string => {
    const micros = formatTimestamp(ts, 'TIMESTAMP')
    return precise ? micros : micros.replace(/000Z$/, 'Z')
  }
  return `('${text(lo)}', '${text(hi)}')`
}

export function parseIntervalValue(text: string): IntervalValue | null {
  const match = /^\(\s*'?([^',]*)'?\s*,\s*'?([^',]*)'?\s*\)$/.exec(text.trim())
  if (match === null) return null
  const lo = parseTimestamp(match[1] ?? '', 'TIMESTAMP')
  const hi = parseTimestamp(match[2] ?? '', 'TIMESTAMP')
  return lo === null || hi === null ? null : { lo, hi }
}
