// Formats durations (PostgreSQL's type interval) by a pattern, like PostgreSQL's to_char(): HH24, MI, SS and similar,
// and DD and DDD for whole days. A duration has microseconds only, so months and years are always 0. A pattern that
// needs a date, such as one with the name of a day, is invalid.

import { pgPatternElement } from './pg-time-pattern.js'
import { microsPerDay } from './timestamp-calendar.js'

interface SpanParts {
  readonly days: number
  /** Microseconds of the day. */
  readonly micros: number
}

const hours = ({ micros }: SpanParts): number => Math.trunc(micros / 3.6e9)
const twelve = (parts: SpanParts): number => hours(parts) % 12 || 12
const seconds = ({ micros }: SpanParts): number => Math.trunc(micros / 1e6)

const numbers: Readonly<Record<string, readonly [width: number, value: (parts: SpanParts) => number]>> = {
  HH: [2, twelve],
  HH12: [2, twelve],
  HH24: [2, hours],
  MI: [2, (parts) => Math.trunc(seconds(parts) / 60) % 60],
  SS: [2, (parts) => seconds(parts) % 60],
  MS: [3, ({ micros }) => Math.trunc(micros / 1000) % 1000],
  US: [6, ({ micros }) => micros % 1_000_000],
  SSSS: [0, seconds],
  SSSSS: [0, seconds],
  ...Object.fromEntries(
    [1, 2, 3, 4, 5, 6].map((digits) => [
      `FF${digits}`,
      [digits, ({ micros }: SpanParts) => Math.trunc((micros % 1_000_000) / 10 ** (6 - digits))] as const,
    ]),
  ),
  DD: [2, ({ days }) => days],
  DDD: [3, ({ days }) => days],
  MM: [2, () => 0],
  YYYY: [4, () => 0],
  YYY: [3, () => 0],
  YY: [2, () => 0],
  Y: [1, () => 0],
  CC: [2, () => 0],
}

/** Null: the pattern contains words that do not apply to intervals. */
export function formatSpanByPgPattern(span: bigint, pattern: string): string | null {
  const parts = { days: Number(span / BigInt(microsPerDay)), micros: Number(span % BigInt(microsPerDay)) }
  let text = ''
  for (const [written, quoted, prefix, word] of pattern.matchAll(pgPatternElement)) {
    if (quoted !== undefined) text += quoted.replaceAll(/\\(.)/g, '$1')
    else if (word === undefined) text += /^(?:FM|TM|FX)$/i.test(written) ? '' : written
    else {
      const printed = halfOfDay(word, parts) ?? printedNumber(word, prefix, parts)
      if (printed === null) return null
      text += printed
    }
  }
  return text
}

function halfOfDay(word: string, parts: SpanParts): string | null {
  if (!/^[AP]\.?M\.?$/i.test(word)) return null
  const letter = hours(parts) % 24 >= 12 ? 'P' : 'A'
  const half = word.includes('.') ? `${letter}.M.` : `${letter}M`
  return word === word.toUpperCase() ? half : half.toLowerCase()
}

function printedNumber(word: string, prefix: string | undefined, parts: SpanParts): string | null {
  const [width, value] = numbers[word.toUpperCase()] ?? []
  if (width === undefined || value === undefined) return null
  const number = value(parts)
  const isBare = prefix !== undefined && prefix.toUpperCase() !== 'FX'
  const digits = String(Math.abs(number)).padStart(isBare ? 0 : width, '0')
  return number < 0 ? `-${digits}` : digits
}
