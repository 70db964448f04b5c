// Parses timestamps by a pattern with the rules of PostgreSQL's to_timestamp() and to_date(). pg-time-pattern.ts lists
// the elements of patterns, such as YYYY and MM. They match text as follows:
//
//   a number   has at most as many digits as to_char() prints for its element, or as many as the text has, if no digit
//              follows in the pattern or the element has the prefix FM
//   separator  matches one blank or punctuation mark, or nothing; blanks before and after elements are skipped
//   character  any other character of the pattern matches any one character of the text
//   end        text or pattern may end first; missing fields have the values of 1970-01-01
//
// Deliberately not supported: FX (ignored), and IYY, IY, I, Y,YYY, W, CC, RM, OF and zones by name, which yield NULL.
//
// A pattern without an element that only PostgreSQL has, such as MI or DD, is left to timestamp-pattern.ts.

import { nonNull } from '../base/assert.js'
import { pgPatternElement } from './pg-time-pattern.js'
import {
  daysFromCivil,
  daysInMonth,
  isLeapYear,
  isoYearStart,
  type TimestampUnit,
  ticksFrom,
  ticksPerMicro,
} from './timestamp-calendar.js'
import { monthNames, parseByPattern, weekDayNames } from './timestamp-pattern.js'

type Field = (typeof fields)[number]
type Draft = Partial<Record<Field, number>>
type Element =
  | { readonly kind: 'number'; readonly field: Field; readonly digits: number; readonly bare: boolean }
  | { readonly kind: 'name'; readonly field: Field; readonly names: readonly string[]; readonly first: number }
  | { readonly kind: 'separator' | 'character' | 'ordinal' | 'zone' | 'unknown'; readonly text: string }

const fields = [
  ...(['year', 'shortYear', 'beforeChrist', 'month', 'day', 'dayOfYear', 'week', 'julian'] as const),
  ...(['isoYear', 'isoWeek', 'isoDay', 'isoDayOfYear', 'hour', 'halfHour', 'afternoon', 'minute', 'second'] as const),
  ...(['secondOfDay', 'fraction', 'zoneHour', 'zoneMinute', 'unused'] as const),
]

const numbers: Readonly<Record<string, readonly [field: Field, digits: number]>> = {
  HH: ['halfHour', 2],
  HH12: ['halfHour', 2],
  HH24: ['hour', 2],
  MI: ['minute', 2],
  SS: ['second', 2],
  MS: ['fraction', 3],
  US: ['fraction', 6],
  SSSS: ['secondOfDay', 5],
  SSSSS: ['secondOfDay', 5],
  YYYY: ['year', 4],
  YYY: ['shortYear', 3],
  YY: ['shortYear', 2],
  Y: ['shortYear', 1],
  MM: ['month', 2],
  DDD: ['dayOfYear', 3],
  DD: ['day', 2],
  D: ['unused', 1],
  Q: ['unused', 1],
  WW: ['week', 2],
  J: ['julian', 7],
  IYYY: ['isoYear', 4],
  IW: ['isoWeek', 2],
  ID: ['isoDay', 1],
  IDDD: ['isoDayOfYear', 3],
  TZM: ['zoneMinute', 2],
  ...Object.fromEntries([1, 2, 3, 4, 5, 6].map((digits) => [`FF${digits}`, ['fraction', digits] as const])),
}

const shortened = (names: readonly string[]): string[] => names.map((name) => name.slice(0, 3))
const names: Readonly<Record<string, readonly [field: Field, names: readonly string[], first: number]>> = {
  MONTH: ['month', monthNames, 1],
  MON: ['month', shortened(monthNames), 1],
  DAY: ['unused', weekDayNames, 1],
  DY: ['unused', shortened(weekDayNames), 1],
  AM: ['afternoon', ['AM', 'PM'], 0],
  'A.M.': ['afternoon', ['A.M.', 'P.M.'], 0],
  AD: ['beforeChrist', ['AD', 'BC'], 0],
  'A.D.': ['beforeChrist', ['A.D.', 'B.C.'], 0],
}
const synonyms: Readonly<Record<string, string>> = { PM: 'AM', 'P.M.': 'A.M.', BC: 'AD', 'B.C.': 'A.D.' }

/** Words that patterns of to_str() (timestamp-pattern.ts) do not use. Quoted text has been removed. */
const ownWords = /(?:HH|hh)(?:12|24)|MI|\bmi\b|DD|MON|Mon|IW|YYYY(?=.*MM)/s
const compiled = new Map<string, readonly Element[] | null>()
const compiledMax = 1000

/** Uses PostgreSQL's pattern if it is one, else one of timestamp-pattern.ts. */
export function parseByEitherPattern(text: string, unit: TimestampUnit, pattern: string): bigint | null {
  const elements = compile(pattern)
  return elements === null ? parseByPattern(text, unit, pattern) : ticksOf(read(text, elements), unit)
}

function compile(pattern: string): readonly Element[] | null {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const own = ownWords.test(pattern.replaceAll(/'[^']*'/g, ''))
  const elements = own ? [...pattern.matchAll(pgPatternElement)].flatMap(elementsOf) : null
  if (compiled.size < compiledMax) compiled.set(pattern, elements)
  return elements
}

function elementsOf([text, quoted, prefix, word, suffix]: RegExpMatchArray): Element[] {
  if (quoted !== undefined)
    return [...quoted.replaceAll(/\\(.)/g, '$1')].map((one) => ({ kind: 'character', text: one }))
  if (word === undefined) {
    if (/^(?:FM|TM|FX)$/i.test(text)) return []
    return [{ kind: /[!-~\s]/.test(text) && !/[a-z\d]/i.test(text) ? 'separator' : 'character', text }]
  }
  const upper = word.toUpperCase()
  if (upper === 'TZH') return [{ kind: 'zone', text: word }]
  const [field, digits] = numbers[upper] ?? []
  if (field !== undefined && digits !== undefined) {
    const number: Element = { kind: 'number', field, digits, bare: prefix !== undefined }
    return suffix === undefined ? [number] : [number, { kind: 'ordinal', text: suffix }]
  }
  const named = names[synonyms[upper] ?? upper]
  if (named === undefined) return [{ kind: 'unknown', text: word }]
  return [{ kind: 'name', field: named[0], names: named[1], first: named[2] }]
}

function read(text: string, elements: readonly Element[]): Draft | null {
  if (text === '') return null
  const draft: Draft = {}
  let at = afterBlanks(text, 0)
  let passed = at
  for (let index = 0; index < elements.length && at < text.length; index++) {
    const element = nonNull(elements[index])
    if (element.kind === 'separator') {
      const isMark = !/[a-z\d\u0080-\uffff]/i.test(text.charAt(at))
      passed += isMark ? 0 : -1
      at += isMark ? 1 : 0
    } else if (element.kind === 'character') {
      if (passed > 0) passed--
      else at++
    } else {
      const end = readWord(text, afterBlanks(text, at), element, elements[index + 1], draft)
      if (end === null) return null
      at = afterBlanks(text, end)
      passed = at - end
    }
  }
  return draft
}

function afterBlanks(text: string, at: number): number {
  while (/\s/.test(text.charAt(at))) at++
  return at
}

/** Position after the word; null: it is not there. */
function readWord(text: string, at: number, element: Element, next: Element | undefined, draft: Draft): number | null {
  switch (element.kind) {
    case 'ordinal':
      return at + 2
    case 'number': {
      const free = element.bare || next === undefined || !(next.kind === 'number' || /^\d/.test(textOf(next)))
      const digits = /^\d+/.exec(text.slice(at, free ? undefined : at + element.digits))?.[0]
      if (digits === undefined) return null
      draft[element.field] = element.field === 'fraction' ? Number(`0.${digits}`) : numberOf(element.field, digits)
      return at + digits.length
    }
    case 'name': {
      const found = element.names.findIndex(
        (name) => text.slice(at, at + name.length).toUpperCase() === name.toUpperCase(),
      )
      if (found < 0) return null
      draft[element.field] = found + element.first
      return at + nonNull(element.names[found]).length
    }
    case 'zone': {
      const [zone, hours] = /^([+-]?\d{1,2})/.exec(text.slice(at)) ?? []
      if (zone === undefined) return null
      draft.zoneHour = Number(hours)
      return at + zone.length
    }
    default:
      return null
  }
}

const textOf = (element: Element): string => ('text' in element ? element.text : '')

/** A year of fewer than four digits is the one nearest to 2020. */
function numberOf(field: Field, digits: string): number {
  const number = Number(digits)
  if (field !== 'shortYear' || digits.length > 3) return number
  if (number < 70 || (number >= 100 && number < 520)) return number + 2000
  return number < 100 ? number + 1900 : number + 1000
}

function ticksOf(draft: Draft | null, unit: TimestampUnit): bigint | null {
  const days = draft === null ? null : daysOf(draft)
  if (draft === null || days === null) return null
  const { secondOfDay = 0, zoneHour = 0, zoneMinute = 0 } = draft
  const hour = hourOf(draft) + Math.floor(secondOfDay / 3600)
  const minute = (draft.minute ?? 0) + Math.floor((secondOfDay % 3600) / 60)
  const second = (draft.second ?? 0) + (secondOfDay % 60)
  if (!(hour < 24 && minute < 60 && second < 60)) return null
  const nanos = Math.floor((draft.fraction ?? 0) * 1e9 + 0.5)
  const ticks = ticksFrom(days, { hour, minute, second, nanos }, unit)
  const east = zoneHour * 60 + (zoneHour < 0 ? -zoneMinute : zoneMinute)
  const timestamp = ticks - BigInt(east) * 60_000_000n * ticksPerMicro(unit)
  return BigInt.asIntN(64, timestamp) === timestamp ? timestamp : null
}

/** NaN for an hour that does not exist on a 12-hour clock. */
function hourOf({ hour = 0, halfHour, afternoon = 0 }: Draft): number {
  if (halfHour === undefined) return hour
  return halfHour < 1 || halfHour > 12 ? Number.NaN : (halfHour % 12) + 12 * afternoon
}

function daysOf(draft: Draft): number | null {
  const { isoYear, isoWeek = 1, isoDay = 1, isoDayOfYear, julian, month = 1, day = 1 } = draft
  if (julian !== undefined) return julian - 2_440_588
  if (isoYear !== undefined) return isoYearStart(isoYear) + (isoDayOfYear ?? (isoWeek - 1) * 7 + isoDay) - 1
  const shown = draft.year ?? draft.shortYear ?? 1970
  const year = draft.beforeChrist === 1 ? 1 - shown : shown
  const dayOfYear = draft.dayOfYear ?? (draft.week === undefined ? undefined : draft.week * 7 - 6)
  if (dayOfYear !== undefined) {
    const isDay = dayOfYear >= 1 && dayOfYear <= (isLeapYear(year) ? 366 : 365)
    return isDay ? daysFromCivil(year, 1, 1) + dayOfYear - 1 : null
  }
  if (!(month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month))) return null
  return daysFromCivil(year, month, day)
}
