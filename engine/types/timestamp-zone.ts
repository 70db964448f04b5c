// Converts between UTC and local time of a time zone, given as a fixed offset (`+02:00`, `UTC+1`, `Z`), an IANA name,
// or an abbreviation such as `EST`. The rules of named zones come from JavaScript's Intl, which is slow, so the offset
// is cached for each quarter of an hour. If the offset changes within a quarter, it is computed anew for each
// timestamp.

import { floorDivide } from './timestamp-calendar.js'

/** Offset from UTC in microseconds at an instant of UTC (microseconds). */
export interface TimeZone {
  readonly name: string
  readonly offsetAt: (micros: bigint) => bigint
}

const zones = new Map<string, TimeZone | null>()
const cacheEntriesMax = 4096
const quarterMicros = 900_000_000n

/** null for an unknown zone. */
export function timeZone(name: string): TimeZone | null {
  const known = zones.get(name)
  if (known !== undefined) return known
  const zone = fixedZone(name) ?? namedZone(abbreviations[name.toUpperCase()] ?? name)
  if (zones.size < cacheEntriesMax) zones.set(name, zone)
  return zone
}

/** Abbreviations of standard and summer time that denote a zone in this dialect. */
const abbreviations: Record<string, string> = {
  CEST: 'Europe/Berlin',
  EEST: 'Europe/Athens',
  WEST: 'Europe/Lisbon',
  BST: 'Europe/London',
  EST: 'America/New_York',
  EDT: 'America/New_York',
  CDT: 'America/Chicago',
  MST: 'America/Denver',
  MDT: 'America/Denver',
  PDT: 'America/Los_Angeles',
}

function fixedZone(name: string): TimeZone | null {
  const match = /^(?:UTC|GMT|Z)?(?:([+-]?)(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?)?$/i.exec(name)
  if (match === null || name === '') return null
  const [, sign, hours, minutes, seconds] = match
  const offset = offsetOf(sign, hours, minutes, seconds)
  return offset === null ? null : { name, offsetAt: () => offset }
}

/** Microseconds of `+02:00`, `-0130`, `10`, `GMT+02:00`, `Z`: hours have two digits; null for any other text. */
export function parseOffset(text: string): bigint | null {
  if (text === 'Z') return 0n
  const match = /^(?:UTC|GMT)?([+-]?)(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?$/i.exec(text)
  return match === null ? null : offsetOf(match[1], match[2], match[3], match[4])
}

function offsetOf(sign: string | undefined, ...parts: (string | undefined)[]): bigint | null {
  const [hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? '0'))
  if (hours > 23 || minutes > 59 || seconds > 59) return null
  const total = BigInt((hours * 60 + minutes) * 60 + seconds) * 1_000_000n
  return sign === '-' ? -total : total
}

function namedZone(name: string): TimeZone | null {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset', era: 'short' })
  } catch {
    return null
  }
  const byQuarter = new Map<bigint, bigint | null>()
  const offsetAt = (micros: bigint): bigint => {
    const quarter = floorDivide(micros, quarterMicros)
    const cached = byQuarter.get(quarter) ?? undefined
    if (cached !== undefined) return cached
    if (byQuarter.has(quarter)) return offsetByIntl(format, micros)
    const first = offsetByIntl(format, quarter * quarterMicros)
    const last = offsetByIntl(format, (quarter + 1n) * quarterMicros - 1n)
    if (byQuarter.size >= cacheEntriesMax) byQuarter.clear()
    byQuarter.set(quarter, first === last ? first : null)
    return first === last ? first : offsetByIntl(format, micros)
  }
  return { name, offsetAt }
}

function offsetByIntl(format: Intl.DateTimeFormat, micros: bigint): bigint {
  const millis = Number(floorDivide(micros, 1000n))
  // Dates beyond Intl's range use the rules of its last year.
  const bounded = Math.max(-8.64e15, Math.min(8.64e15, millis))
  const text = format.formatToParts(bounded).find((part) => part.type === 'timeZoneName')?.value ?? 'GMT'
  const match = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?/.exec(text)
  if (match === null) return 0n
  const [, sign, hours, minutes, seconds] = match
  const total = (Number(hours ?? '0') * 60 + Number(minutes ?? '0')) * 60 + Number(seconds ?? '0')
  return BigInt(sign === '-' ? -total : total) * 1_000_000n
}

/** UTC to local time. */
export function toZone(micros: bigint, zone: TimeZone): bigint {
  return micros + zone.offsetAt(micros)
}

/**
 * Converts local time to UTC. A local time that does not exist uses the offset before the gap, one that exists twice
 * the earlier offset.
 */
export function fromZone(local: bigint, zone: TimeZone): bigint {
  const before = zone.offsetAt(local - zone.offsetAt(local) - 86_400_000_000n)
  const first = local - before
  if (zone.offsetAt(first) === before) return first
  const guess = local - zone.offsetAt(first)
  return zone.offsetAt(guess) === zone.offsetAt(first) ? guess : first
}
