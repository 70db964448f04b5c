// Parses timestamps of SQLite: strings (ISO 8601), Julian days, and seconds, milliseconds, microseconds or nanoseconds
// since 1970. The result is microseconds as a Number, exact until the year 2255.

const timeUnits = ['s', 'ms', 'us', 'ns', 'julian'] as const
export type TimeUnit = (typeof timeUnits)[number]

const unixEpochJulian = 2_440_587.5
const microsPerDay = 86_400_000_000

/** The unit in which the number is a plausible date. */
export function unitOf(magnitude: number): TimeUnit {
  if (magnitude < 1e11) return 's'
  if (magnitude < 1e14) return 'ms'
  return magnitude < 1e17 ? 'us' : 'ns'
}

/** NaN when it is no timestamp. */
export function microsOfNumber(value: number, unit: TimeUnit): number {
  switch (unit) {
    case 's':
      return Math.round(value * 1e6)
    case 'ms':
      return Math.round(value * 1e3)
    case 'us':
      return Math.round(value)
    case 'ns':
      return Math.floor(value / 1e3)
    case 'julian':
      return Math.round((value - unixEpochJulian) * microsPerDay)
  }
}

/**
 * Parses `2024-03-14`, `2024-03-14 05:06`, `2024-03-14T05:06:07.123456Z`, `.. +01:00`; NaN when the bytes are none
 * of these.
 */
export function microsOfText(bytes: Buffer, from: number, to: number): number {
  const length = to - from
  if (length < 10 || bytes[from + 4] !== 0x2d || bytes[from + 7] !== 0x2d) return Number.NaN
  const year = digits(bytes, from, 4)
  const month = digits(bytes, from + 5, 2)
  const date = digits(bytes, from + 8, 2)
  if (!(month >= 1 && month <= 12 && date >= 1 && date <= monthDays(year, month))) return Number.NaN
  const day = dayOf(year, month, date) * microsPerDay
  if (length === 10) return day
  const separator = bytes[from + 10]
  if ((separator !== 0x20 && separator !== 0x54 && separator !== 0x74) || bytes[from + 13] !== 0x3a) return Number.NaN
  if (length < 16) return Number.NaN
  const hour = digits(bytes, from + 11, 2)
  const minute = digits(bytes, from + 14, 2)
  if (!(hour <= 23 && minute <= 59)) return Number.NaN
  const rest = secondsAndZone(bytes, from + 16, to)
  return day + (hour * 3600 + minute * 60) * 1e6 + rest
}

function secondsAndZone(bytes: Buffer, from: number, to: number): number {
  let at = from
  let micros = 0
  if (bytes[at] === 0x3a && at < to) {
    if (at + 3 > to) return Number.NaN
    const second = digits(bytes, at + 1, 2)
    if (!(second <= 59)) return Number.NaN
    micros = second * 1e6
    at += 3
    if (at < to && (bytes[at] === 0x2e || bytes[at] === 0x2c)) {
      const begin = ++at
      for (let weight = 100_000; at < to && isDigit(bytes[at]); at++, weight /= 10) {
        if (weight >= 1) micros += (bytes[at]! - 0x30) * weight
      }
      if (at === begin) return Number.NaN
    }
  }
  return at === to ? micros : micros - zoneMicros(bytes, at, to)
}

/** Parses `Z`, `+01:00`, `-0130`, `+01`, optionally after a blank. */
function zoneMicros(bytes: Buffer, from: number, to: number): number {
  const at = bytes[from] === 0x20 ? from + 1 : from
  const sign = bytes[at]
  if ((sign === 0x5a || sign === 0x7a) && at + 1 === to) return 0
  if (sign !== 0x2b && sign !== 0x2d) return Number.NaN
  const hours = digits(bytes, at + 1, 2)
  const minutesAt = bytes[at + 3] === 0x3a ? at + 4 : at + 3
  const minutes = at + 3 === to ? 0 : minutesAt + 2 === to ? digits(bytes, minutesAt, 2) : Number.NaN
  if (!(hours <= 14 && minutes <= 59)) return Number.NaN
  return (sign === 0x2b ? 1 : -1) * (hours * 3600 + minutes * 60) * 1e6
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

/** NaN when a byte is not a digit. */
function digits(bytes: Buffer, from: number, count: number): number {
  let value = 0
  for (let at = from; at < from + count; at++) {
    const byte = bytes[at]
    if (byte === undefined || byte < 0x30 || byte > 0x39) return Number.NaN
    value = value * 10 + byte - 0x30
  }
  return value
}

function monthDays(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days since 1970-01-01, computed in eras of 400 years that start in March. */
function dayOf(year: number, month: number, date: number): number {
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + date - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
}
