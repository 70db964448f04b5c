// Numbers and times as text bytes, without strings where values are usual. Forms are those of types/number.ts and
// types/timestamp.ts, which serve the rest.

import { formatDouble, formatFloat } from '../../types/number.js'
import { formatTimestamp } from '../../types/timestamp.js'
import { civilFromDays } from '../../types/timestamp-calendar.js'
import type { ByteWriter } from './byte-writer.js'

const zero = 48
/** Bytes that any number or time takes at most. */
export const numberBytesMax = 40

/** A whole number of at most 2^53, after reserve. */
export function putInteger(writer: ByteWriter, value: number): void {
  const { u8 } = writer
  let rest = value
  if (rest < 0) {
    u8[writer.at++] = 45
    rest = -rest
  }
  const digits = digitCount(rest)
  let at = writer.at + digits
  writer.at = at
  while (rest >= 0x7fff_ffff) {
    const tenth = Math.floor(rest / 10)
    u8[--at] = zero + (rest - tenth * 10)
    rest = tenth
  }
  let small = rest | 0
  do {
    const tenth = (small / 10) | 0
    u8[--at] = zero + (small - tenth * 10)
    small = tenth
  } while (at > writer.at - digits)
}

function digitCount(value: number): number {
  let limit = 10
  let digits = 1
  while (value >= limit) {
    limit *= 10
    digits++
  }
  return digits
}

/** A LONG given as its halves. */
export function putLong(writer: ByteWriter, low: number, high: number): void {
  if (high >= -0x20_0000 && high < 0x20_0000) putInteger(writer, high * 0x1_0000_0000 + low)
  else writer.ascii(String((BigInt(high) << 32n) | BigInt(low)))
}

/** A finite double, after reserve. Up to four decimals take the short way. */
export function putDouble(writer: ByteWriter, value: number): void {
  const size = Math.abs(value)
  const scaled = Math.round(size * 10_000)
  if (size >= 0.001 && size < 1e7 && scaled / 10_000 === size) putScaled(writer, value < 0, scaled)
  else writer.ascii(formatDouble(value))
}

function putScaled(writer: ByteWriter, negative: boolean, scaled: number): void {
  const { u8 } = writer
  if (negative) u8[writer.at++] = 45
  const whole = Math.floor(scaled / 10_000)
  putInteger(writer, whole)
  u8[writer.at++] = 46
  let rest = scaled - whole * 10_000
  let unit = 1000
  do {
    const digit = (rest / unit) | 0
    u8[writer.at++] = zero + digit
    rest -= digit * unit
    unit /= 10
  } while (rest > 0)
}

export function putFloat(writer: ByteWriter, value: number): void {
  writer.ascii(formatFloat(value))
}

const microsPerDay = 86_400_000_000
const microsMax = 253_402_300_800_000_000

/** `2024-02-03T04:05:06.123456Z` of microseconds given as halves, after reserve. One per column: it keeps the day. */
export class TimestampText {
  #days = Number.NaN
  readonly #date = new Uint8Array(11)

  put(writer: ByteWriter, low: number, high: number): void {
    const micros = high * 0x1_0000_0000 + low
    if (micros < -62_135_596_800_000_000 || micros >= microsMax) {
      writer.ascii(formatTimestamp((BigInt(high) << 32n) | BigInt(low), 'TIMESTAMP'))
      return
    }
    const days = Math.floor(micros / microsPerDay)
    if (days !== this.#days) this.#setDay(days)
    const { u8 } = writer
    u8.set(this.#date, writer.at)
    const rest = micros - days * microsPerDay
    const seconds = Math.floor(rest / 1_000_000)
    let at = writer.at + 11
    const hour = (seconds / 3600) | 0
    const minute = ((seconds / 60) | 0) % 60
    const second = seconds % 60
    at = pair(u8, at, hour)
    u8[at++] = 58
    at = pair(u8, at, minute)
    u8[at++] = 58
    at = pair(u8, at, second)
    u8[at++] = 46
    const fraction = rest - seconds * 1_000_000
    const upper = (fraction / 10_000) | 0
    const lower = fraction - upper * 10_000
    at = pair(u8, at, upper)
    at = pair(u8, at, (lower / 100) | 0)
    at = pair(u8, at, lower % 100)
    u8[at++] = 90
    writer.at = at
  }

  #setDay(days: number): void {
    const { year, month, day } = civilFromDays(days)
    const date = this.#date
    pair(date, 0, Math.floor(year / 100))
    pair(date, 2, year % 100)
    date[4] = 45
    pair(date, 5, month)
    date[7] = 45
    pair(date, 8, day)
    date[10] = 84
    this.#days = days
  }
}

function pair(u8: Uint8Array, at: number, value: number): number {
  const ten = (value / 10) | 0
  u8[at] = zero + ten
  u8[at + 1] = zero + (value - ten * 10)
  return at + 2
}
