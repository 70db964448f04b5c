// Parses the first component of a time interval string in WHERE (interval.ts): dates and lists of dates, variables such
// as `$today`, times of day, a time zone, and a filter by weekday.
//
//   dates      `2024-01-15`, `2024-01-[10,15..20]`, `[2024-01-15,2024-02-[01,02]]`
//   variables  `$now`, `$today`, `$yesterday`, `$tomorrow`, each optionally with `+5d`, `-2h`, `+3bd` (business days);
//              `$today..$today+5d` is each day of the range, `$now-2h..$now` the whole time in between
//   times      `T09:30`, `T[09:30,14:00]` after the date or variable
//   zone       `@Europe/Berlin`: the text is local time of that zone
//   days       `#Mon,Wed`, `#workday`, `#weekend`: of ranges longer than a day, only these days remain; shorter ranges
//              and repeats that start on other days are dropped; adjacent ranges are merged
//
// A zone may follow a single alternative (`T[09:30@Asia/Tokyo,14:00]`) or all of them.

import { parseSpan } from './timestamp.js'
import {
  floorDivide,
  floorModulo,
  isoDayOfWeek,
  type TimestampUnit,
  ticksPerDay,
  ticksPerMicro,
} from './timestamp-calendar.js'
import { addUnits, isTimeUnit } from './timestamp-floor.js'
import { fromZone, type TimeZone, timeZone, toZone } from './timestamp-zone.js'

/** Timestamps from `lo` to `hi`, inclusive. */
export interface Range {
  readonly lo: bigint
  readonly hi: bigint
}

/** In local time of the zone, if there is one: durations and repeats are added in wall-clock time. */
export interface TickSpan extends Range {
  /** `$now-2h..$now`: a duration does not apply. */
  readonly isBetween: boolean
  /** Weekdays; ranges that start on others are dropped. */
  readonly days: ReadonlySet<number> | null
  readonly zone: TimeZone | null
}

export interface TickContext {
  readonly unit: TimestampUnit
  readonly nowMicros: bigint
}

const alternativesMax = 100_000

/** Returns the time ranges of the expression, or an error message. */
export function tickSpans(text: string, context: TickContext): readonly TickSpan[] | string {
  const { head, days, zone } = suffixes(text)
  const allowed = days === null ? null : daysOfWeek(days)
  if (typeof allowed === 'string') return allowed
  const options = expand(head.trim())
  if (options === null) return bracketProblem(head) ?? `Invalid date: ${text}`
  if (options.length > alternativesMax) return 'too many intervals'
  const spans: TickSpan[] = []
  for (const option of options) {
    const found = spansOf(option, zone, allowed, context)
    if (typeof found === 'string') return bracketProblem(head) ?? found
    for (const span of found) spans.push(span)
  }
  return spans
}

/** Whether the ranges depend on the current time. */
export function dependsOnNow(text: string): boolean {
  return text.includes('$')
}

/** Removes `@zone` and `#days` from the end, in either order; within brackets they belong to an alternative. */
function suffixes(text: string): { head: string; days: string | null; zone: string | null } {
  let [head, days, zone]: [string, string | null, string | null] = [text, null, null]
  for (;;) {
    const at = Math.max(head.lastIndexOf('@'), head.lastIndexOf('#'))
    if (at < 0 || at < head.lastIndexOf(']')) return { head, days, zone }
    const value = head.slice(at + 1).trim()
    if (head[at] === '@' && zone === null) zone = value
    else if (head[at] === '#' && days === null) days = value
    else return { head, days, zone }
    head = head.slice(0, at)
  }
}

const dayNames: Readonly<Record<string, readonly number[]>> = {
  mon: [1],
  tue: [2],
  wed: [3],
  thu: [4],
  fri: [5],
  sat: [6],
  sun: [7],
  workday: [1, 2, 3, 4, 5],
  wd: [1, 2, 3, 4, 5],
  weekend: [6, 7],
}

/** A market identifier code (ISO 10383), which names the calendar of an exchange. */
const exchangeCode = /^(?:[A-Z][A-Z0-9]{3}|x[a-z0-9]{3})$/

function daysOfWeek(text: string): ReadonlySet<number> | string {
  const days = new Set<number>()
  for (const word of text.split(',')) {
    const name = word.trim().toLowerCase()
    const known =
      dayNames[name] ??
      (/^(mon|tues|wednes|thurs|fri|satur|sun)day$/.test(name) ? dayNames[name.slice(0, 3)] : undefined)
    if (known === undefined && exchangeCode.test(word.trim()))
      return `exchange calendars are not supported, list the days instead: ${word.trim()}`
    if (known === undefined) return `Unknown day name: ${word.trim()}`
    for (const day of known) days.add(day)
  }
  return days
}

// Alternatives ------------------------------------------------------------------------------------------------------

/**
 * Expands the brackets to all alternatives; null when one is unclosed or there are too many. `before`: the expanded
 * prefix.
 */
function expand(text: string, before = ''): string[] | null {
  const open = text.indexOf('[')
  if (open < 0) return text.includes(']') ? null : [text]
  const close = closingBracket(text, open)
  if (close < 0) return null
  const tails = expand(text.slice(close + 1), before + text.slice(0, close + 1))
  if (tails === null) return null
  const options: string[] = []
  for (const part of splitOutside(text.slice(open + 1, close))) {
    const expanded = expandPart(part.trim())
    if (expanded === null) return null
    for (const option of expanded) options.push(withDigits(option, before + text.slice(0, open)))
  }
  if (options.length * tails.length > alternativesMax) return null
  const head = text.slice(0, open)
  return options.flatMap((option) => tails.map((tail) => head + withTime(option, tail)))
}

/** Months, days, weeks and times have two digits, a weekday has one. */
function withDigits(option: string, before: string): string {
  if (/W(?:\d+|\[[^\]]*\])-$/.test(before)) return option.replace(/^0(?=\d$)/, '')
  return /^\d$/.test(option) && /[-WT:]$/.test(before) ? `0${option}` : option
}

/** Error message for the content of brackets; null: none. */
function bracketProblem(text: string): string | null {
  const open = text.indexOf('[')
  if (open < 0) return null
  if (closingBracket(text, open) < 0) return "Unclosed '[' in interval"
  if (/\[\s*\]/.test(text)) return 'Empty bracket expansion'
  const range = /(\d+)\.\.(\d+)/.exec(text)
  if (range !== null && Number(range[1]) > Number(range[2])) return `Range must be ascending: ${range[0]}`
  return /-\[\s*\D/.test(text) ? 'Expected number in bracket expansion' : null
}

/** `15..20` expands to each number. */
function expandPart(part: string): string[] | null {
  const range = /^(\d+)\.\.(\d+)$/.exec(part)
  if (range !== null && Number(range[1]) > Number(range[2])) return null
  return range === null ? expand(part) : numbersBetween(range[1] ?? '', range[2] ?? '')
}

/** `10@Zone` and `T09:30` become `10T09:30@Zone`: an alternative's own zone stays last. */
function withTime(option: string, tail: string): string {
  const at = option.indexOf('@')
  return at < 0 || tail === '' ? option + tail : option.slice(0, at) + tail + option.slice(at)
}

/** -1: unclosed. */
export function closingBracket(text: string, open: number): number {
  let depth = 0
  for (let index = open; index < text.length; index++) {
    if (text[index] === '[') depth++
    else if (text[index] === ']' && --depth === 0) return index
  }
  return -1
}

/** Splits at commas outside of brackets. */
export function splitOutside(text: string): string[] {
  const parts: string[] = []
  let [depth, begin] = [0, 0]
  for (let index = 0; index <= text.length; index++) {
    const character = text[index]
    if (character === '[') depth++
    else if (character === ']') depth--
    else if (index === text.length || (character === ',' && depth === 0)) {
      parts.push(text.slice(begin, index))
      begin = index + 1
    }
  }
  return parts
}

function numbersBetween(first: string, last: string): string[] {
  const length = Math.max(0, Math.min(10_000, Number(last) - Number(first) + 1))
  return Array.from({ length }, (_, index) => String(Number(first) + index).padStart(first.length, '0'))
}

// One alternative ---------------------------------------------------------------------------------------------------

function spansOf(
  option: string,
  outerZone: string | null,
  days: ReadonlySet<number> | null,
  { unit, nowMicros }: TickContext,
): readonly TickSpan[] | string {
  const at = option.indexOf('@')
  const zoneName = at < 0 ? outerZone : option.slice(at + 1).trim()
  const text = (at < 0 ? option : option.slice(0, at)).trim()
  const zone = zoneName === null ? null : timeZone(zoneName)
  if (zoneName !== null && zone === null) return `invalid timezone: ${zoneName}`
  const local = text.startsWith('$') ? variableSpans(text, zone, unit, nowMicros) : plainSpan(text, unit)
  if (local === null) return `Invalid date: ${text}`
  const isBetween = days === null && /^\$now.*\.\./i.test(text)
  const retained = days === null ? local : local.flatMap((span) => onDays(span, days, unit))
  return retained.map(({ lo, hi }) => ({ lo, hi, isBetween, days, zone }))
}

function plainSpan(text: string, unit: TimestampUnit): Range[] | null {
  const span = parseSpan(text, unit)
  return span === null ? null : [span]
}

/** A month or year becomes its matching weekdays; for a day or less the repeats are filtered. */
function onDays(span: Range, days: ReadonlySet<number>, unit: TimestampUnit): Range[] {
  const perDay = ticksPerDay(unit)
  if (span.hi - span.lo < perDay) return [span]
  const found: Range[] = []
  for (let day = floorDivide(span.lo, perDay); day * perDay <= span.hi && found.length <= alternativesMax; day++) {
    if (!days.has(isoDayOfWeek(Number(day)))) continue
    const [lo, hi] = [day * perDay, (day + 1n) * perDay - 1n]
    found.push({ lo: lo > span.lo ? lo : span.lo, hi: hi < span.hi ? hi : span.hi })
  }
  return found
}

export function startsOn({ lo }: Range, days: ReadonlySet<number>, unit: TimestampUnit): boolean {
  return days.has(isoDayOfWeek(Number(floorDivide(lo, ticksPerDay(unit)))))
}

/** Converts from local time. */
export function inZone({ lo, hi }: Range, zone: TimeZone, unit: TimestampUnit): Range {
  const scale = ticksPerMicro(unit)
  const utc = (ticks: bigint): bigint => fromZone(floorDivide(ticks, scale), zone) * scale + floorModulo(ticks, scale)
  return { lo: utc(lo), hi: utc(hi) }
}

// Variables ---------------------------------------------------------------------------------------------------------

interface TickTime {
  readonly ticks: bigint
  /** For `$today` and similar variables without added hours: the whole day. */
  readonly isDay: boolean
  readonly isBusiness: boolean
}

const variablePattern =
  /^(\$[a-z]+(?:\s*[+-]\s*\d+\s*[a-z]+)*)\s*(?:\.\.\s*(\$[a-z]+(?:\s*[+-]\s*\d+\s*[a-z]+)*))?\s*(?:T(\d.*))?$/i

/** In local time of the zone. */
function variableSpans(text: string, zone: TimeZone | null, unit: TimestampUnit, nowMicros: bigint): Range[] | null {
  const match = variablePattern.exec(text)
  if (match === null) return null
  const now = (zone === null ? nowMicros : toZone(nowMicros, zone)) * ticksPerMicro(unit)
  const first = timestamp(match[1] ?? '', now, unit)
  const last = match[2] === undefined ? first : timestamp(match[2], now, unit)
  if (first === null || last === null) return null
  const time = match[3]
  if (!first.isDay) return time === undefined ? [{ lo: first.ticks, hi: last.ticks }] : null
  const days = daysBetween(first, last, unit)
  return time === undefined ? days : atTime(days, time, unit)
}

function atTime(days: readonly Range[], time: string, unit: TimestampUnit): Range[] | null {
  const spans = days.map(({ lo }) => {
    const span = parseSpan(`1970-01-01T${time}`, unit)
    return span === null ? null : { lo: lo + span.lo, hi: lo + span.hi }
  })
  return spans.includes(null) ? null : (spans as Range[])
}

function daysBetween(first: TickTime, last: TickTime, unit: TimestampUnit): Range[] {
  const perDay = ticksPerDay(unit)
  const days: Range[] = []
  for (let lo = first.ticks; lo <= last.ticks && days.length <= alternativesMax; lo += perDay) {
    if (last.isBusiness && isoDayOfWeek(Number(lo / perDay)) > 5) continue
    days.push({ lo, hi: lo + perDay - 1n })
  }
  return days
}

const dayOffsets: Readonly<Record<string, number>> = { today: 0, yesterday: -1, tomorrow: 1 }

function timestamp(text: string, now: bigint, unit: TimestampUnit): TickTime | null {
  const match = /^\$([a-z]+)\s*(.*)$/i.exec(text.trim())
  const name = (match?.[1] ?? '').toLowerCase()
  const perDay = ticksPerDay(unit)
  const offset = dayOffsets[name]
  if (match === null || (offset === undefined && name !== 'now')) return null
  const start = offset === undefined ? now : (floorDivide(now, perDay) + BigInt(offset)) * perDay
  return moved({ ticks: start, isDay: offset !== undefined, isBusiness: false }, match[2] ?? '', unit)
}

/** `+5d - 2h` */
function moved(start: TickTime, text: string, unit: TimestampUnit): TickTime | null {
  let { ticks, isDay, isBusiness } = start
  let rest = text.trim()
  while (rest !== '') {
    const match = /^([+-])\s*(\d{1,9})\s*([A-Za-z]+)\s*/.exec(rest)
    if (match === null) return null
    const count = Number(match[2]) * (match[1] === '-' ? -1 : 1)
    const word = match[3] === 'u' ? 'U' : match[3]
    if (word === 'bd') {
      ticks = addBusinessDays(ticks, count, unit)
      isBusiness = true
    } else if (isTimeUnit(word)) {
      ticks = addUnits(ticks, word, count, unit)
      isDay &&= word === 'd' || word === 'w' || word === 'M' || word === 'y'
    } else return null
    rest = rest.slice(match[0].length)
  }
  return { ticks, isDay, isBusiness }
}

function addBusinessDays(ticks: bigint, count: number, unit: TimestampUnit): bigint {
  const perDay = ticksPerDay(unit)
  const step = count < 0 ? -1n : 1n
  let moved = ticks
  for (let left = Math.min(Math.abs(count), alternativesMax); left > 0; ) {
    moved += step * perDay
    if (isoDayOfWeek(Number(floorDivide(moved, perDay))) <= 5) left--
  }
  return moved
}
