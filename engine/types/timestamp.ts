// Parses and formats timestamps and dates. Accepts a year and any further part of
//
//   yyyy[-MM[-dd[(T| )HH[:mm[:ss[.f{0,9}][Z]]]]]][ ][UTC | GMT | (+|-)HH[:mm[:ss]] | (+|-)HHmm[ss]]
//   yyyy[-Www[-d[(T| )HH ..                             an ISO week and its day, then as above
//
// A year of more than four digits needs a month or week. Z may follow seconds only; ` UTC`, ` GMT` and offsets, which
// PostgreSQL clients write (`2024-01-01 +00`), may follow every part. Files and topics (`parseFileTimestamp`) may
// also have surrounding blanks, Z after every part, a comma before the fraction, and 24:00. A partial form means its
// first instant (`parseTimestamp`) or the whole range (`parseSpan`). Output is always complete: microseconds,
// nanoseconds or (DATE) milliseconds, and Z.

import { longMax, longMin } from './number.js'
import {
  civilFromDays,
  daysFromCivil,
  daysInMonth,
  floorDivide,
  floorModulo,
  isoYearStart,
  type TimestampUnit,
  ticksFrom,
  ticksOfDays,
  ticksPerMicro,
} from './timestamp-calendar.js'

/** First and last tick of what the text denotes, inclusive. */
export interface TimeSpan {
  readonly lo: bigint
  readonly hi: bigint
}

const pattern =
  /^(-?\d{4,6})(?:-(?:(\d{2})(?:-(\d{2})(?:[T ](\d{2})(?::(\d{2})(?::(\d{2})(?:\.(\d{0,9}))?)?)?)?)?|W(\d{2})(?:-(\d)(?:[T ](\d{2})(?::(\d{2})(?::(\d{2})(?:\.(\d{0,9}))?)?)?)?)?))?(Z| ?(?:UTC|GMT|[+-]\d{2}(?::?\d{2}){0,2}))?$/

const filePattern =
  /^(-?\d{4,6})(?:-(?:(\d{2})(?:-(\d{2})(?:[T ](\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9})\d*)?)?)?)?)?|W(\d{2})(?:-(\d)(?:[T ](\d{2})(?::(\d{2})(?::(\d{2})(?:[.,](\d{1,9})\d*)?)?)?)?)?))? ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2}){0,2})?$/

/** First instant of the denoted range; null when the text is not a timestamp or out of the 64-bit range. */
export function parseTimestamp(text: string, unit: TimestampUnit): bigint | null {
  const plain = plainInstant(text, unit)
  if (plain !== null) return plain
  return firstOf(parseSpan(text, unit))
}

/** Like `parseTimestamp`, for text that other programs wrote. */
export function parseFileTimestamp(text: string, unit: TimestampUnit): bigint | null {
  const plain = plainInstant(text, unit)
  if (plain !== null) return plain
  const match = filePattern.exec(text.trim())
  return match === null ? null : firstOf(spanOf(match, unit))
}

function firstOf(span: TimeSpan | null): bigint | null {
  return span === null || span.lo <= longMin || span.lo > longMax ? null : span.lo
}

/**
 * Fast path for the form in which programs send parameters: `yyyy-MM-dd(T| )HH:mm:ss[.f{1,9}][Z|+00:00]`; null for
 * any other text, valid or not.
 */
function plainInstant(text: string, unit: TimestampUnit): bigint | null {
  const separator = text.charCodeAt(10)
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45 || (separator !== 32 && separator !== 84)) return null
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return null
  const [century, rest, month, day] = [digitsAt(text, 0), digitsAt(text, 2), digitsAt(text, 5), digitsAt(text, 8)]
  const [hour, minute, second] = [digitsAt(text, 11), digitsAt(text, 14), digitsAt(text, 17)]
  // A negative value makes the sum of the bits negative.
  if ((century | rest | month | day | hour | minute | second) < 0) return null
  const year = century * 100 + rest
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  if (hour > 23 || minute > 59 || second > 59) return null
  let nanos = 0
  let at = 19
  if (text.charCodeAt(at) === 46) {
    let digit = text.charCodeAt(++at) - 48
    for (let unitNanos = 1e8; digit >= 0 && digit <= 9 && unitNanos >= 1; unitNanos /= 10) {
      nanos += digit * unitNanos
      digit = text.charCodeAt(++at) - 48
    }
    if (at === 20) return null
  }
  if (at < text.length && !(text.endsWith('Z') && at === text.length - 1)) {
    if (!text.endsWith('+00:00') || at !== text.length - 6) return null
  }
  const instant = ticksFrom(daysFromCivil(year, month, day), { hour, minute, second, nanos }, unit)
  return instant <= longMin || instant > longMax ? null : instant
}

/** Two digits as a number; -1 if they are not digits. */
function digitsAt(text: string, at: number): number {
  const high = text.charCodeAt(at) - 48
  const low = text.charCodeAt(at + 1) - 48
  return high >= 0 && high <= 9 && low >= 0 && low <= 9 ? high * 10 + low : -1
}

export function parseSpan(text: string, unit: TimestampUnit): TimeSpan | null {
  const match = pattern.exec(text)
  if (match === null) return null
  const [hour, second, weekHour, weekSecond, zone] = [match[4], match[6], match[10], match[12], match[14]]
  if (hour === '24' || weekHour === '24') return null
  const isEarly = zone === 'Z' && second === undefined && weekSecond === undefined
  return isEarly ? null : spanOf(match, unit)
}

function spanOf(match: RegExpExecArray, unit: TimestampUnit): TimeSpan | null {
  const [, year, month, day, hour, minute, second, fraction, week, weekDay, ...more] = match
  const [weekHour, weekMinute, weekSecond, weekFraction, zone] = more
  if (year === undefined || (month === undefined && week === undefined && year.length !== 4)) return null
  const offset = zoneOffsetMicros(zone?.trimStart())
  if (offset === null) return null
  const span =
    week === undefined
      ? calendarSpan({ year, month, day, hour, minute, second, fraction }, unit)
      : weekSpan(
          Number(week),
          weekDay,
          {
            ...{ year, month, day, hour: weekHour },
            ...{ minute: weekMinute, second: weekSecond, fraction: weekFraction },
          },
          unit,
        )
  if (span === null) return null
  const shift = offset * ticksPerMicro(unit)
  return { lo: span.lo - shift, hi: span.hi - shift }
}

interface Fields {
  readonly year: string
  readonly month: string | undefined
  readonly day: string | undefined
  readonly hour: string | undefined
  readonly minute: string | undefined
  readonly second: string | undefined
  readonly fraction: string | undefined
}

function calendarSpan(fields: Fields, unit: TimestampUnit): TimeSpan | null {
  const year = Number(fields.year)
  if (fields.month === undefined) return daySpan(daysFromCivil(year, 1, 1), daysFromCivil(year + 1, 1, 1), unit)
  const month = Number(fields.month)
  if (month < 1 || month > 12) return null
  const first = daysFromCivil(year, month, 1)
  if (fields.day === undefined) return daySpan(first, first + daysInMonth(year, month), unit)
  const day = Number(fields.day)
  if (day < 1 || day > daysInMonth(year, month)) return null
  const days = first + day - 1
  return fields.hour === undefined ? daySpan(days, days + 1, unit) : timeSpan(days, fields, unit)
}

function daySpan(first: number, end: number, unit: TimestampUnit): TimeSpan {
  return { lo: ticksOfDays(first, unit), hi: ticksOfDays(end, unit) - 1n }
}

function timeSpan(days: number, fields: Fields, unit: TimestampUnit): TimeSpan | null {
  const hour = Number(fields.hour)
  const minute = Number(fields.minute ?? '0')
  const second = Number(fields.second ?? '0')
  if (hour > 24 || (hour === 24 && minute + second > 0) || minute > 59 || second > 59) return null
  const nanos = Number((fields.fraction ?? '').padEnd(9, '0'))
  const lo = ticksFrom(days, { hour, minute, second, nanos }, unit)
  return { lo, hi: lo + spanTicks(fields, unit) - 1n }
}

/** Ticks of the last field that is present. */
function spanTicks(fields: Fields, unit: TimestampUnit): bigint {
  const perSecond = ticksPerMicro(unit) * 1_000_000n
  if (fields.minute === undefined) return perSecond * 3600n
  if (fields.second === undefined) return perSecond * 60n
  if (fields.fraction === undefined) return perSecond
  const ticks = perSecond / 10n ** BigInt(Math.min(9, fields.fraction.length))
  return ticks < 1n ? 1n : ticks
}

function weekSpan(week: number, weekDay: string | undefined, fields: Fields, unit: TimestampUnit): TimeSpan | null {
  if (week < 1 || week > 53) return null
  const first = isoYearStart(Number(fields.year)) + (week - 1) * 7
  if (weekDay === undefined) return daySpan(first, first + 7, unit)
  const day = Number(weekDay)
  if (day < 1 || day > 7) return null
  const days = first + day - 1
  return fields.hour === undefined ? daySpan(days, days + 1, unit) : timeSpan(days, fields, unit)
}

function zoneOffsetMicros(zone: string | undefined): bigint | null {
  if (zone === undefined || !/^[+-]/.test(zone)) return 0n
  const hours = Number(zone.slice(1, 3))
  const rest = zone.slice(3).replaceAll(':', '')
  const [minutes, seconds] = [Number(rest.slice(0, 2)), Number(rest.slice(2))]
  if (hours > 23 || minutes > 59 || seconds > 59) return null
  return BigInt((zone.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds)) * 1_000_000n
}

/** DATE: milliseconds. */
export function parseDate(text: string): bigint | null {
  return millisOf(parseTimestamp(text, 'TIMESTAMP'))
}

function millisOf(micros: bigint | null): bigint | null {
  return micros === null ? null : floorDivide(micros, 1000n)
}

export function formatTimestamp(ticks: bigint, unit: TimestampUnit): string {
  return unit === 'TIMESTAMP' ? formatTicks(ticks, 1_000_000n, 6) : formatTicks(ticks, 1_000_000_000n, 9)
}

export function formatDate(millis: bigint): string {
  return formatTicks(millis, 1000n, 3)
}

function formatTicks(ticks: bigint, perSecond: bigint, digits: number): string {
  const seconds = floorDivide(ticks, perSecond)
  const days = Number(floorDivide(seconds, 86_400n))
  const rest = Number(floorModulo(seconds, 86_400n))
  const { year, month, day } = civilFromDays(days)
  const fraction = String(floorModulo(ticks, perSecond)).padStart(digits, '0')
  const time = `${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`
  return `${yearText(year)}-${two(month)}-${two(day)}T${time}.${fraction}Z`
}

export function yearText(year: number): string {
  return year < 0 ? `-${String(-year).padStart(4, '0')}` : String(year).padStart(4, '0')
}

export function two(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}
