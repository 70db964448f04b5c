// Parses and formats timestamps by pattern, for to_timestamp() and to_str():
//
//   y yyyy yy u  year      M MM MMM MMMM  month        d dd  day      D DDD  day of year
//   H HH  hour 0-23        h hh  hour 1-12 (K KK 0-11)  k kk  hour 1-24       a  AM/PM
//   m mm  minute           s ss  second                S SSS  millisecond    U UUU  microsecond   N NNN  nanosecond
//   SSSUUU U+ N+  fraction of any length               E EE EEE EEEE  day name, u  day number (Sunday is 1)
//   w  week that begins on Sunday, the first with 1 January        ww  ISO week         Y YYYY  ISO year
//   z zz zzz Z x X  zone   G  era
//   'text' in quotes, and any other character, stand for themselves
//
// A parsed u is the year, a printed one of up to three letters the day number. A parsed w is an ISO week.

import { two, yearText } from './timestamp.js'
import {
  civilFromDays,
  daysFromCivil,
  daysInMonth,
  isoDayOfWeek,
  isoWeek,
  isoYearStart,
  partsOf,
  type TimestampParts,
  type TimestampUnit,
  ticksFrom,
  ticksPerMicro,
} from './timestamp-calendar.js'
import { fromZone, timeZone } from './timestamp-zone.js'

export const monthNames = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]
export const weekDayNames = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

type Element =
  | { readonly kind: 'field'; readonly letter: string; readonly length: number }
  | { readonly kind: 'literal'; readonly text: string }

const compiled = new Map<string, readonly Element[]>()
const compiledMax = 1000

function compile(pattern: string): readonly Element[] {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const elements: Element[] = []
  for (const match of pattern.matchAll(/'((?:[^']|'')*)'|([a-zA-Z])\2*\+?|[^a-zA-Z']+|'/g)) {
    const [text, quoted, letter] = match
    if (quoted !== undefined) elements.push({ kind: 'literal', text: quoted.replaceAll("''", "'") || "'" })
    else if (letter !== undefined && 'yuMdDHhKkmsSUNEwYazZxXG'.includes(letter)) {
      elements.push({ kind: 'field', letter, length: text.endsWith('+') ? 0 : text.length })
    } else elements.push({ kind: 'literal', text })
  }
  if (compiled.size < compiledMax) compiled.set(pattern, elements)
  return elements
}

const finest = [
  ['s', 's'],
  ['m', 'm'],
  ['HhKka', 'h'],
  ['dDEuwY', 'd'],
  ['M', 'M'],
  ['y', 'y'],
] as const

/**
 * The largest unit within which the printed text is constant; undefined when it prints fractions of a second or no
 * time.
 */
export function constantUnit(pattern: string): (typeof finest)[number][1] | undefined {
  const letters = compile(pattern).flatMap((element) => (element.kind === 'field' ? [element.letter] : []))
  if (letters.some((letter) => 'SUN'.includes(letter))) return undefined
  return finest.find(([group]) => letters.some((letter) => group.includes(letter)))?.[1]
}

// Formatting
// --------------------------------------------------------------------------------------------------------

export function formatByPattern(ticks: bigint, unit: TimestampUnit, pattern: string): string {
  const parts = partsOf(ticks, unit)
  let text = ''
  for (const element of compile(pattern)) {
    text += element.kind === 'literal' ? element.text : printField(element.letter, element.length, parts)
  }
  return text
}

function plainWeek({ year, days }: TimestampParts): number {
  const first = daysFromCivil(year, 1, 1)
  return Math.floor((days - first + (isoDayOfWeek(first) % 7)) / 7) + 1
}

function printField(letter: string, length: number, parts: TimestampParts): string {
  switch (letter) {
    case 'y':
    case 'Y':
      return printYear(letter === 'y' ? parts.year : isoWeek(parts.days).year, length)
    case 'u':
      return length >= 4 ? yearText(parts.year) : String((isoDayOfWeek(parts.days) % 7) + 1)
    case 'M':
      return printMonth(parts.month, length)
    case 'd':
      return padded(parts.day, length)
    case 'D':
      return padded(parts.days - daysFromCivil(parts.year, 1, 1) + 1, length)
    case 'E':
      return weekDayName(isoDayOfWeek(parts.days), length)
    case 'w':
      return length === 1 ? String(plainWeek(parts)) : padded(isoWeek(parts.days).week, length)
    case 'a':
      return parts.hour < 12 ? 'AM' : 'PM'
    case 'G':
      return parts.year > 0 ? 'AD' : 'BC'
    case 'z':
    case 'Z':
    case 'x':
    case 'X':
      return 'Z'
    default:
      return printTime(letter, length, parts)
  }
}

function printTime(letter: string, length: number, parts: TimestampParts): string {
  switch (letter) {
    case 'H':
      return padded(parts.hour, length)
    case 'h':
      return padded(parts.hour % 12 || 12, length)
    case 'K':
      return padded(parts.hour % 12, length)
    case 'k':
      return padded(parts.hour || 24, length)
    case 'm':
      return padded(parts.minute, length)
    case 's':
      return padded(parts.second, length)
    case 'S':
      return padded(Math.floor(parts.nanos / 1e6), length)
    case 'U':
      return length === 0
        ? padded(Math.floor(parts.nanos / 1000), 6)
        : padded(Math.floor(parts.nanos / 1000) % 1000, length)
    default:
      return length === 0 ? padded(parts.nanos, 9) : padded(parts.nanos % 1000, length)
  }
}

function padded(value: number, length: number): string {
  return String(value).padStart(length, '0')
}

function printYear(year: number, length: number): string {
  return length === 2 ? two(((year % 100) + 100) % 100) : length >= 4 ? yearText(year) : String(year)
}

function printMonth(month: number, length: number): string {
  if (length <= 2) return padded(month, length)
  const name = monthNames[month - 1] ?? ''
  return length === 3 ? name.slice(0, 3) : name
}

function weekDayName(day: number, length: number): string {
  const name = weekDayNames[day - 1] ?? ''
  return length <= 3 ? name.slice(0, 3) : name
}

// Parsing
// -----------------------------------------------------------------------------------------------------------

interface Draft {
  year: number
  month: number
  day: number
  dayOfYear: number
  week: number
  weekYear: number
  hour: number
  afternoon: boolean | null
  minute: number
  second: number
  nanos: number
  offsetMicros: bigint
  zone: string | null
  beforeChrist: boolean
}

interface Cursor {
  readonly text: string
  at: number
}

/** null when the text does not match the pattern to its end. */
export function parseByPattern(text: string, unit: TimestampUnit, pattern: string): bigint | null {
  const draft: Draft = {
    year: 1970,
    month: 1,
    day: 1,
    dayOfYear: 0,
    week: 0,
    weekYear: 0,
    hour: 0,
    afternoon: null,
    minute: 0,
    second: 0,
    nanos: 0,
    offsetMicros: 0n,
    zone: null,
    beforeChrist: false,
  }
  const cursor: Cursor = { text, at: 0 }
  const elements = compile(pattern)
  for (const [index, element] of elements.entries()) {
    if (element.kind === 'literal') {
      if (!text.startsWith(element.text, cursor.at)) return null
      cursor.at += element.text.length
    } else {
      // Adjacent fields must not consume each other's digits.
      const touches = elements[index + 1]?.kind === 'field'
      if (!readField(cursor, element.letter, element.length, touches, draft)) return null
    }
  }
  return cursor.at === text.length ? assemble(draft, unit) : null
}

function readField(cursor: Cursor, letter: string, length: number, touches: boolean, draft: Draft): boolean {
  switch (letter) {
    case 'y':
    case 'u':
      return readYear(cursor, length, touches, draft)
    case 'M':
      return length >= 3
        ? readMonthName(cursor, draft)
        : store(draft, 'month', readNumber(cursor, length, touches, 1, 12))
    case 'd':
      return store(draft, 'day', readNumber(cursor, length, touches, 1, 31))
    case 'D':
      return store(draft, 'dayOfYear', readNumber(cursor, length, touches, 1, 366))
    case 'Y':
      return store(draft, 'weekYear', readNumber(cursor, length, touches, 0, 9999))
    case 'w':
      return store(draft, 'week', readNumber(cursor, length, touches, 1, 53))
    case 'E':
      return readWord(cursor, weekDayNames) >= 0
    case 'a':
      return readHalf(cursor, draft)
    case 'G':
      return readEra(cursor, draft)
    case 'z':
    case 'Z':
    case 'x':
    case 'X':
      return readZone(cursor, draft)
    default:
      return readTime(cursor, letter, length, touches, draft)
  }
}

function readTime(cursor: Cursor, letter: string, length: number, touches: boolean, draft: Draft): boolean {
  switch (letter) {
    case 'H':
      return store(draft, 'hour', readNumber(cursor, length, touches, 0, 23))
    case 'h':
    case 'K': {
      const hour = readNumber(cursor, length, touches, 0, 12)
      draft.afternoon ??= false
      return store(draft, 'hour', hour < 0 ? hour : hour % 12)
    }
    case 'k':
      return store(draft, 'hour', readNumber(cursor, length, touches, 1, 24) % 24)
    case 'm':
      return store(draft, 'minute', readNumber(cursor, length, touches, 0, 59))
    case 's':
      return store(draft, 'second', readNumber(cursor, length, touches, 0, 59))
    case 'S':
      return readThousandths(cursor, draft, length, touches, 1e6)
    case 'U':
      return length === 0 ? readFraction(cursor, draft, 6) : readThousandths(cursor, draft, length, touches, 1e3)
    default:
      return length === 0
        ? readFraction(cursor, draft, 9)
        : addNanos(draft, readNumber(cursor, length, touches, 0, 999), 1)
  }
}

/** A single letter parses a fraction: `.5` is 500 thousandths. */
function readThousandths(cursor: Cursor, draft: Draft, length: number, touches: boolean, nanos: number): boolean {
  const { at } = cursor
  const value = readNumber(cursor, length, touches, 0, 999)
  const isFraction = length === 1 && !touches && value >= 0
  return addNanos(draft, isFraction ? value * 10 ** (3 - (cursor.at - at)) : value, nanos)
}

/**
 * -1 when there is no number within the bounds. A single letter parses greedily, several letters that many digits.
 */
function readNumber(cursor: Cursor, length: number, touches: boolean, min: number, max: number): number {
  const digitsMax = length > 1 ? length : touches ? 1 : String(max).length
  let end = cursor.at
  while (end < cursor.text.length && end - cursor.at < digitsMax && isDigit(cursor.text, end)) end++
  if (end === cursor.at || (length > 1 && end - cursor.at < length)) return -1
  const value = Number(cursor.text.slice(cursor.at, end))
  cursor.at = end
  return value >= min && value <= max ? value : -1
}

function isDigit(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 48 && code <= 57
}

type NumberField = 'month' | 'day' | 'dayOfYear' | 'week' | 'weekYear' | 'hour' | 'minute' | 'second'

function store(draft: Draft, field: NumberField, value: number): boolean {
  if (value < 0) return false
  draft[field] = value
  return true
}

function addNanos(draft: Draft, value: number, factor: number): boolean {
  if (value < 0) return false
  draft.nanos += value * factor
  return true
}

function readFraction(cursor: Cursor, draft: Draft, digits: number): boolean {
  const match = /^\d{1,9}/.exec(cursor.text.slice(cursor.at, cursor.at + digits))
  if (match === null) return false
  cursor.at += match[0].length
  draft.nanos += Number(match[0].padEnd(9, '0'))
  return true
}

function readYear(cursor: Cursor, length: number, touches: boolean, draft: Draft): boolean {
  const sign = cursor.text[cursor.at] === '-' && length !== 2 ? -1 : 1
  if (sign < 0) cursor.at++
  const { at } = cursor
  const value = readNumber(cursor, length === 1 && touches ? 4 : length, touches, 0, 9999)
  if (value < 0) return false
  const isShort = length === 2 || (length === 1 && sign > 0 && cursor.at - at === 2)
  draft.year = isShort ? 2000 + value : sign * value
  return true
}

function readMonthName(cursor: Cursor, draft: Draft): boolean {
  const index = readWord(cursor, monthNames)
  draft.month = index + 1
  return index >= 0
}

/** Index of the full name, or of its first three letters; -1. */
function readWord(cursor: Cursor, words: readonly string[]): number {
  const rest = cursor.text.slice(cursor.at).toLowerCase()
  for (const [index, word] of words.entries()) {
    const length = rest.startsWith(word.toLowerCase())
      ? word.length
      : rest.startsWith(word.slice(0, 3).toLowerCase())
        ? 3
        : 0
    if (length > 0) {
      cursor.at += length
      return index
    }
  }
  return -1
}

function readHalf(cursor: Cursor, draft: Draft): boolean {
  const word = cursor.text.slice(cursor.at, cursor.at + 2).toUpperCase()
  if (word !== 'AM' && word !== 'PM') return false
  draft.afternoon = word === 'PM'
  cursor.at += 2
  return true
}

function readEra(cursor: Cursor, draft: Draft): boolean {
  const word = cursor.text.slice(cursor.at, cursor.at + 2).toUpperCase()
  if (word !== 'AD' && word !== 'BC') return false
  draft.beforeChrist = word === 'BC'
  cursor.at += 2
  return true
}

function readZone(cursor: Cursor, draft: Draft): boolean {
  const match = /^(?:Z|[+-]\d{2}(?::?\d{2})?|[A-Za-z_]+(?:\/[A-Za-z_+\-\d]+)*)/.exec(cursor.text.slice(cursor.at))
  if (match === null || timeZone(match[0]) === null) return false
  draft.zone = match[0]
  cursor.at += match[0].length
  return true
}

function assemble(draft: Draft, unit: TimestampUnit): bigint | null {
  const days = daysOf(draft)
  if (days === null) return null
  const hour = draft.afternoon === true ? draft.hour + 12 : draft.hour
  const ticks = ticksFrom(days, { hour, minute: draft.minute, second: draft.second, nanos: draft.nanos }, unit)
  const timestamp = draft.zone === null ? ticks : ofZone(ticks, draft.zone, unit)
  return BigInt.asIntN(64, timestamp) === timestamp ? timestamp : null
}

function ofZone(ticks: bigint, name: string, unit: TimestampUnit): bigint {
  const zone = timeZone(name)
  if (zone === null) return ticks
  const perMicro = ticksPerMicro(unit)
  return fromZone(ticks / perMicro, zone) * perMicro + (ticks % perMicro)
}

function daysOf(draft: Draft): number | null {
  const year = draft.beforeChrist ? 1 - draft.year : draft.year
  if (draft.week > 0) return isoYearStart(draft.weekYear || year) + (draft.week - 1) * 7
  if (draft.dayOfYear > 0) {
    const days = daysFromCivil(year, 1, 1) + draft.dayOfYear - 1
    return civilFromDays(days).year === year ? days : null
  }
  if (draft.day > daysInMonth(year, draft.month)) return null
  return daysFromCivil(year, draft.month, draft.day)
}
