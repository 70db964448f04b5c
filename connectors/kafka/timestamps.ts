// Parses timestamps in Kafka records: numbers in a given or detected unit, and strings by a pattern or in ISO 8601.

import { parseFileTimestamp } from '../../engine/types/timestamp.js'
import { parseByPattern } from '../../engine/types/timestamp-pattern.js'
import { BadRecordError } from './bad-record.js'
import type { TimestampUnits } from './options.js'

/** Digits to append to get nanoseconds. */
const zeros = { seconds: 9, millis: 6, micros: 3, nanos: 0 } as const

/** Numbers with fewer digits than these are seconds, milliseconds, microseconds; longer ones are nanoseconds. */
const guessed = [
  [10, 'seconds'],
  [13, 'millis'],
  [16, 'micros'],
] as const

/** Converts decimal text to nanoseconds with the suffix n. Truncates fractions of a nanosecond. */
export function timestampOfNumber(text: string, units: TimestampUnits): string {
  const match = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text) ?? exponential(text)
  if (match === null) throw new BadRecordError(`not a timestamp: ${text}`)
  const [, sign = '', whole = '', fraction = ''] = match
  const digits = whole.replace(/^0+(?=.)/, '')
  const unit = units === 'auto' ? unitOf(digits) : units
  const nanos = `${digits}${fraction.slice(0, zeros[unit]).padEnd(zeros[unit], '0')}`.replace(/^0+(?=.)/, '')
  if (sign === '-' && nanos !== '0') throw new BadRecordError(`timestamp before 1970-01-01: ${text}`)
  if (nanos.length > 19 || BigInt(nanos) > 2n ** 63n - 1n) throw new BadRecordError(`timestamp is too large: ${text}`)
  return `${nanos}n`
}

function unitOf(digits: string): Exclude<TimestampUnits, 'auto'> {
  return guessed.find(([length]) => digits.length <= length)?.[1] ?? 'nanos'
}

/** Some encoders write 1.7e12. */
function exponential(text: string): RegExpExecArray | null {
  const value = Number(text)
  return /[eE]/.test(text) && Number.isSafeInteger(value) ? /^(-?)([0-9]+)$/.exec(String(value)) : null
}

/** Parses a string to microseconds. Without a pattern: ISO 8601. */
export function timestampOfText(text: string, pattern: string): bigint {
  const micros = pattern === '' ? parseFileTimestamp(text, 'TIMESTAMP') : parseByPattern(text, 'TIMESTAMP', pattern)
  if (micros !== null) return micros
  throw new BadRecordError(`not a timestamp: '${text}' [format=${pattern === '' ? 'ISO 8601' : pattern}]`)
}
