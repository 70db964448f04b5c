// Parses timestamps in files: ISO 8601 in all its forms, and numbers since 1970-01-01. Each value is recognised by
// itself, so a column may mix the forms.
//
//   2024-01-31T10:11:12.123456789+02:00   T, t or blank; up to 9 decimals after point or comma; Z, offset, UTC or none
//   2024-01-31 10:11   2024-01-31   2024-W05-3   2024-031   2024-01   2024       the first instant of what they name
//   20240131T101112Z   20240131                                                  the basic form
//   +012024-01-31T10:11:12Z                                                      years of six digits (JavaScript)
//   1706695872   1706695872.5   1.7066959e9   1706695872123   ..                 epochs; the size of the number tells
//                                                                                the unit where nobody names it
//
// A number is in seconds, milliseconds, microseconds or nanoseconds, depending on its size, unless the caller names the
// unit. Without a named unit, a number below 10^8 (except 0) is a year or date, as above, or not a timestamp.

import { nonNull } from '../base/assert.js'
import { longMax, longMin } from './number.js'
import { parseFileTimestamp } from './timestamp.js'
import { daysFromCivil, daysInMonth, floorDivide, type TimestampUnit, ticksOfDays } from './timestamp-calendar.js'

const epochUnits = ['s', 'ms', 'us', 'ns'] as const
export type EpochUnit = (typeof epochUnits)[number]
/** `auto`: by the magnitude of each number. */
export type EpochScale = EpochUnit | 'auto'

const nanosOf: Readonly<Record<EpochUnit, bigint>> = { s: 1_000_000_000n, ms: 1_000_000n, us: 1000n, ns: 1n }

/** Smaller numbers are not plausible timestamps in any unit: 1e8 seconds are March 1973. */
const epochMagnitudeMin = 100_000_000n
/** From here on a number is in the next finer unit: 1e11 seconds are the year 5138. */
const unitBounds: readonly (readonly [bound: bigint, unit: EpochUnit])[] = [
  [10n ** 11n, 's'],
  [10n ** 14n, 'ms'],
  [10n ** 17n, 'us'],
]

const unitWords: readonly (readonly [EpochUnit, RegExp])[] = [
  ['s', /^(?:s|sec|secs|seconds?)$/],
  ['ms', /^(?:ms|millis|milliseconds?)$/],
  ['us', /^(?:us|µs|micros|microseconds?)$/],
  ['ns', /^(?:ns|nanos|nanoseconds?)$/],
]

/** Parses `s`, `ms`, `us`, `ns` and their common names; null for any other word. */
export function epochUnit(word: string): EpochUnit | null {
  return unitWords.find(([, known]) => known.test(word.toLowerCase()))?.[0] ?? null
}

/** The unit of a pattern such as `epoch_ms`; null for a pattern of strings. */
export function epochScale(pattern: string): EpochScale | null {
  const match = /^(?:epoch|unix)(?:[ _-]?([a-zµ]+))?$/i.exec(pattern.trim())
  if (match === null) return null
  return match[1] === undefined ? 'auto' : epochUnit(match[1])
}

export interface FileTime {
  readonly ticks: bigint
  /** The text has non-zero digits that the unit cannot hold. */
  readonly cut: boolean
}

/** Null: not a timestamp, or out of the 64-bit range. */
export function parseFileTime(text: string, unit: TimestampUnit, scale: EpochScale = 'auto'): FileTime | null {
  const trimmed = text.trim()
  if (/^[+-]?(?:\d|\.\d)[\d.]*(?:[eE][+-]?\d+)?$/.test(trimmed)) {
    // Four digits are a year, and eight digits that form a date are a date, unless numbers have a known unit.
    const day = scale === 'auto' && /^(?:\d{4}|\d{8})$/.test(trimmed) ? dayOfDigits(trimmed, unit) : null
    if (day !== null) return { ticks: day, cut: false }
    return timeOfNumber(trimmed, unit, scale)
  }
  const ticks = parseFileTimestamp(trimmed, unit) ?? timeOfOtherForm(trimmed, unit)
  if (ticks === null) return null
  const fraction = /[.,](\d+)/.exec(trimmed)?.[1] ?? ''
  return { ticks, cut: /[1-9]/.test(fraction.slice(unit === 'TIMESTAMP' ? 6 : 9)) }
}

/** Whether a string has the form of a date or timestamp, so that it can be detected as one. */
export function looksLikeTime(text: string): boolean {
  const trimmed = text.trim()
  const isWritten = /^[+-]?\d{4,6}-(?:\d{2}-\d{2}|W\d{2}-\d)(?!\d)|^\d{8}[Tt]\d{4,6}(?!\d)/.test(trimmed)
  return isWritten && parseFileTime(trimmed, 'TIMESTAMP') !== null
}

/** Number of fractional digits of the second. */
export function fractionDigits(text: string): number {
  return (
    /:\d{2}[.,](\d+)|[Tt]\d{6}[.,](\d+)/
      .exec(text)
      ?.slice(1)
      .find((digits) => digits !== undefined)?.length ?? 0
  )
}

// Numbers -----------------------------------------------------------------------------------------------------------

function timeOfNumber(text: string, unit: TimestampUnit, scale: EpochScale): FileTime | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text)
  if (match === null) return null
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  const digits = `${whole}${fraction}`
  if (digits === '' || digits.length > 40) return null
  const places = fraction.length - Number(exponent)
  const magnitude = places > 0 ? BigInt(digits) / 10n ** BigInt(places) : BigInt(digits) * 10n ** BigInt(-places)
  const found = scale === 'auto' ? unitOfSize(magnitude) : scale
  if (found === null) return null
  const scaled = BigInt(digits) * nanosOf[found] * 10n ** BigInt(Math.max(0, -places))
  const divisor = 10n ** BigInt(Math.max(0, places))
  const perTick = unit === 'TIMESTAMP' ? divisor * 1000n : divisor
  const signed = sign === '-' ? -scaled : scaled
  const ticks = floorDivide(signed, perTick)
  if (ticks <= longMin || ticks > longMax) return null
  // Fractions come from floating point, so their last digits carry no information.
  return { ticks, cut: places <= 0 && ticks * perTick !== signed }
}

/** Zero is the same instant in every unit. */
function unitOfSize(magnitude: bigint): EpochUnit | null {
  if (magnitude < epochMagnitudeMin) return magnitude === 0n ? 's' : null
  return unitBounds.find(([bound]) => magnitude < bound)?.[1] ?? 'ns'
}

/** Parses `2024` and `20240131`; null when they are no plausible date. */
function dayOfDigits(text: string, unit: TimestampUnit): bigint | null {
  if (text.length === 4) return parseFileTimestamp(text, unit)
  const [year, month, day] = [Number(text.slice(0, 4)), Number(text.slice(4, 6)), Number(text.slice(6))]
  if (year < 1900 || year > 2199 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return null
  return ticksOfDays(daysFromCivil(year, month, day), unit)
}

// Strings -------------------------------------------------------------------------------------------------------------

/** Rewrites forms that SQL does not support to ones that it does. */
function timeOfOtherForm(text: string, unit: TimestampUnit): bigint | null {
  const plain = text.replace(/(?<=\d)t(?=\d)/, 'T').replace(/z$/, 'Z')
  const basic = /^(\d{4})(\d{2})(\d{2})T(\d{2})(?:(\d{2})(?:(\d{2})([.,]\d{1,9}\d*)?)?)?(.*)$/.exec(plain)
  if (basic !== null) {
    const [, year, month, day, hour, minute = '00', second = '00', fraction = '', zone = ''] = basic
    return parseFileTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone}`, unit)
  }
  const long = /^\+(\d{6}-.*)$/.exec(plain)
  if (long !== null) return parseFileTimestamp(nonNull(long[1]), unit)
  const ordinal = /^(\d{4})-(\d{3})((?:T.*)?)$/.exec(plain)
  if (ordinal !== null) return timeOfOrdinal(Number(ordinal[1]), Number(ordinal[2]), nonNull(ordinal[3]), unit)
  const leap = /^(.*\d:\d{2}:)60((?:[.,]\d+)?.*)$/.exec(plain)
  if (leap !== null) {
    const before = parseFileTimestamp(`${leap[1]}59${leap[2]}`, unit)
    return before === null ? null : before + (unit === 'TIMESTAMP' ? 1_000_000n : 1_000_000_000n)
  }
  return plain === text ? null : parseFileTimestamp(plain, unit)
}

function timeOfOrdinal(year: number, dayOfYear: number, rest: string, unit: TimestampUnit): bigint | null {
  const first = daysFromCivil(year, 1, 1)
  if (dayOfYear < 1 || dayOfYear > daysFromCivil(year + 1, 1, 1) - first) return null
  const day = ticksOfDays(first + dayOfYear - 1, unit)
  if (rest === '') return day
  const clock = parseFileTimestamp(`1970-01-01${rest}`, unit)
  return clock === null ? null : day + clock
}
