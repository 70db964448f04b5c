// Parses numbers and timestamps in text parameters of the PostgreSQL protocol directly from their bytes, without
// creating strings, which is faster. Only simple forms are parsed; for all others the result is NaN, and the caller
// uses the general conversion.

const digitZero = 48
/** A number with this many digits is exact as a double. */
export const digitsExact = 15

export const powersOfTen = Float64Array.from({ length: 23 }, (_, exponent) => 10 ** exponent)

/** An integer of up to 15 digits; NaN for anything else. */
export function scanInteger(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  const negative = bytes[at] === 45
  if (negative) at++
  if (at >= end || end - at > digitsExact) return Number.NaN
  let value = 0
  for (; at < end; at++) {
    const digit = bytes[at]! - digitZero
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return negative ? -value : value
}

/** Up to 15 digits with a decimal point: the quotient of two exact doubles is the nearest double. Else NaN. */
export function scanDecimal(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  const negative = bytes[at] === 45
  if (negative) at++
  let value = 0
  let digits = 0
  let fraction = -1
  for (; at < end; at++) {
    const byte = bytes[at]!
    if (byte === 46) {
      if (fraction >= 0) return Number.NaN
      fraction = 0
      continue
    }
    const digit = byte - digitZero
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
    digits++
    if (fraction >= 0) fraction++
  }
  if (digits === 0 || digits > digitsExact) return Number.NaN
  if (fraction > 0) value /= powersOfTen[fraction]!
  return negative ? -value : value
}

/** Two digits, or NaN. */
function two(bytes: Uint8Array, at: number): number {
  const high = bytes[at]! - digitZero
  const low = bytes[at + 1]! - digitZero
  return high >= 0 && high <= 9 && low >= 0 && low <= 9 ? high * 10 + low : Number.NaN
}

const monthDays = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Days since 1970-01-01, for years from 1 on; NaN for an invalid date. */
function daysOf(year: number, month: number, day: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const last = month === 2 && leap ? 29 : (monthDays[month] ?? 0)
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= last)) return Number.NaN
  const shifted = month <= 2 ? year - 1 : year
  const monthIndex = month <= 2 ? month + 9 : month - 3
  const days = Math.floor(shifted * 365.25) - Math.floor(shifted / 100) + Math.floor(shifted / 400)
  return days + Math.floor((monthIndex * 153 + 2) / 5) + day - 719_469
}

/** Bytes of `2024-01-02 03:04`. */
const minuteBytes = 16

/** `2024-01-02[ 03:04:05[.6{1,6}][Z|+00|+00:00]]`, also with T, in microseconds; NaN for any other form. */
export function scanTimestamp(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start
  if (length < 10 || bytes[start + 4] !== 45 || bytes[start + 7] !== 45) return Number.NaN
  const days = daysOf(two(bytes, start) * 100 + two(bytes, start + 2), two(bytes, start + 5), two(bytes, start + 8))
  if (length === 10) return days * 86_400_000_000
  return minutesOf(bytes, start, end, days) * 60_000_000 + scanSeconds(bytes, start + minuteBytes, end)
}

function minutesOf(bytes: Uint8Array, start: number, end: number, days: number): number {
  const separator = bytes[start + 10]
  if (end - start < minuteBytes || (separator !== 32 && separator !== 84) || bytes[start + 13] !== 58) return Number.NaN
  const hour = two(bytes, start + 11)
  const minute = two(bytes, start + 14)
  return hour < 24 && minute < 60 ? (days * 24 + hour) * 60 + minute : Number.NaN
}

/** `:05[.6{1,6}][Z|+00|+00:00]`, in microseconds; NaN for any other form. */
function scanSeconds(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < 3 || bytes[start] !== 58) return Number.NaN
  const second = two(bytes, start + 1)
  if (!(second < 60)) return Number.NaN
  let at = start + 3
  let micros = 0
  if (bytes[at] === 46 && at < end) {
    at++
    let digits = 0
    for (; at < end && digits < 6; at++, digits++) {
      const digit = bytes[at]! - digitZero
      if (digit < 0 || digit > 9) break
      micros = micros * 10 + digit
    }
    if (digits === 0) return Number.NaN
    micros *= powersOfTen[6 - digits]!
  }
  return isUtc(bytes, at, end) ? second * 1_000_000 + micros : Number.NaN
}

function isUtc(bytes: Uint8Array, at: number, end: number): boolean {
  if (at === end) return true
  if (bytes[at] === 90) return at + 1 === end
  if (bytes[at] !== 43) return false
  for (let index = at + 1; index < end; index++) {
    const byte = bytes[index]
    if (byte !== digitZero && byte !== 58) return false
  }
  return end - at === 3 || end - at === 6
}
