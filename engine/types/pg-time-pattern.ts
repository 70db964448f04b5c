// Formats timestamps like PostgreSQL's to_char() (PostgreSQL 15, Data Type Formatting Functions, table 9.27):
//
//   HH HH12 HH24 MI SS MS US FF1..FF6 SSSS SSSSS  time of day         AM PM A.M. P.M.  BC AD B.C. A.D.
//   Y,YYY YYYY YYY YY Y  year      IYYY IYY IY I  ISO year     CC  century     Q  quarter     J  Julian day
//   MM  month      MONTH Month month  MON Mon mon  its name    RM rm  in Roman digits
//   DDD DD D  day of year, month, week from Sunday (1)     IDDD ID  of the ISO year, of the week from Monday
//   DAY Day day  DY Dy dy  name of the day
//   W WW IW  week of month, year, ISO year       TZ tz TZH TZM OF  zone, which is UTC
//   FM before: no blanks and leading zeros     TH th after: an ordinal number     "text", other characters: themselves

import { nonNull } from '../base/assert.js'
import {
  daysFromCivil,
  isoDayOfWeek,
  isoWeek,
  isoYearStart,
  partsOf,
  type TimestampParts,
  type TimestampUnit,
} from './timestamp-calendar.js'
import { monthNames, weekDayNames } from './timestamp-pattern.js'

type Print = (parts: TimestampParts, zoned: boolean) => string

interface Element {
  readonly print: Print
  /** Width of a zero-padded number or a blank-padded name; 0: unpadded. */
  readonly width: number
  readonly isNumber: boolean
  /** Preceded by FM or TM. */
  readonly bare: boolean
  readonly ordinal: '' | 'TH' | 'th'
}

const nameWidth = 9
const julianEpoch = 2_440_588
const romans = ['I', 'II', 'III', 'IV', 'V', 'VI', 'VII', 'VIII', 'IX', 'X', 'XI', 'XII']

const dayOfYear = ({ days, year }: TimestampParts): number => days - daysFromCivil(year, 1, 1) + 1
const isoYear = ({ days }: TimestampParts): number => isoWeek(days).year
const shownYear = (year: number): number => (year > 0 ? year : 1 - year)
const secondOfDay = ({ hour, minute, second }: TimestampParts): number => (hour * 60 + minute) * 60 + second

/** Width and formatter by word, in lower case. */
const numbers: Readonly<Record<string, readonly [width: number, value: (parts: TimestampParts) => number]>> = {
  HH: [2, ({ hour }) => hour % 12 || 12],
  HH12: [2, ({ hour }) => hour % 12 || 12],
  HH24: [2, ({ hour }) => hour],
  MI: [2, ({ minute }) => minute],
  SS: [2, ({ second }) => second],
  MS: [3, ({ nanos }) => Math.floor(nanos / 1e6)],
  US: [6, ({ nanos }) => Math.floor(nanos / 1000)],
  SSSS: [0, secondOfDay],
  SSSSS: [0, secondOfDay],
  YYYY: [4, ({ year }) => shownYear(year)],
  YYY: [3, ({ year }) => shownYear(year) % 1000],
  YY: [2, ({ year }) => shownYear(year) % 100],
  Y: [1, ({ year }) => shownYear(year) % 10],
  IYYY: [4, isoYear],
  IYY: [3, (parts) => isoYear(parts) % 1000],
  IY: [2, (parts) => isoYear(parts) % 100],
  I: [1, (parts) => isoYear(parts) % 10],
  CC: [2, ({ year }) => Math.ceil(year / 100)],
  Q: [0, ({ month }) => Math.ceil(month / 3)],
  J: [0, ({ days }) => days + julianEpoch],
  MM: [2, ({ month }) => month],
  DDD: [3, dayOfYear],
  DD: [2, ({ day }) => day],
  D: [0, ({ days }) => (isoDayOfWeek(days) % 7) + 1],
  IDDD: [3, (parts) => parts.days - isoYearStart(isoYear(parts)) + 1],
  ID: [0, ({ days }) => isoDayOfWeek(days)],
  W: [0, ({ day }) => Math.ceil(day / 7)],
  WW: [2, (parts) => Math.ceil(dayOfYear(parts) / 7)],
  IW: [2, ({ days }) => isoWeek(days).week],
}

const monthName: Print = ({ month }) => nonNull(monthNames[month - 1])
const dayName: Print = ({ days }) => nonNull(weekDayNames[isoDayOfWeek(days) - 1])
const short =
  (print: Print): Print =>
  (parts, zoned) =>
    print(parts, zoned).slice(0, 3)
const half =
  (before: string, after: string): Print =>
  ({ hour }) =>
    hour < 12 ? before : after
const era =
  (before: string, after: string): Print =>
  ({ year }) =>
    year > 0 ? after : before

/** Applies the case of the word: `MON`, `Mon`, `mon`. */
const names: Readonly<Record<string, readonly [width: number, print: Print]>> = {
  MONTH: [nameWidth, monthName],
  MON: [0, short(monthName)],
  DAY: [nameWidth, dayName],
  DY: [0, short(dayName)],
  RM: [4, ({ month }) => nonNull(romans[month - 1])],
  AM: [0, half('AM', 'PM')],
  PM: [0, half('AM', 'PM')],
  'A.M.': [0, half('A.M.', 'P.M.')],
  'P.M.': [0, half('A.M.', 'P.M.')],
  BC: [0, era('BC', 'AD')],
  AD: [0, era('BC', 'AD')],
  'B.C.': [0, era('B.C.', 'A.D.')],
  'A.D.': [0, era('B.C.', 'A.D.')],
  TZH: [0, () => '+00'],
  TZM: [0, () => '00'],
  TZ: [0, (_parts, zoned) => (zoned ? 'UTC' : '')],
  OF: [0, () => '+00'],
}

/** Words in upper and lower case and, for names of months and days, capitalised. The longest one comes first. */
const words = [
  ...Object.keys(numbers),
  ...Object.keys(names),
  'Y,YYY',
  ...[1, 2, 3, 4, 5, 6].map((digits) => `FF${digits}`),
]
  .flatMap((word) => [word, word.toLowerCase(), ...(/^(?:MONTH|MON|DAY|DY)$/.test(word) ? [capital(word)] : [])])
  .sort((left, right) => right.length - left.length)
  .map((word) => word.replaceAll('.', '\\.'))
/** Groups: quoted text; FM or similar prefix, word, ordinal suffix. Otherwise a lone prefix or one character. */
export const pgPatternElement = new RegExp(
  `"((?:[^"\\\\]|\\\\.)*)"?|(FM|fm|TM|tm|FX|fx)?(?:(${words.join('|')})(TH|th)?)|FM|fm|TM|tm|FX|fx|[\\s\\S]`,
  'gu',
)

function capital(word: string): string {
  return word.charAt(0) + word.slice(1).toLowerCase()
}

const compiled = new Map<string, readonly Element[]>()
const compiledMax = 1000

function compile(pattern: string): readonly Element[] {
  const known = compiled.get(pattern)
  if (known !== undefined) return known
  const elements = [...pattern.matchAll(pgPatternElement)].flatMap(elementOf)
  if (compiled.size < compiledMax) compiled.set(pattern, elements)
  return elements
}

function elementOf([text, quoted, prefix, word, suffix]: RegExpMatchArray): Element[] {
  if (quoted !== undefined) return [literal(quoted.replaceAll(/\\(.)/g, '$1'))]
  if (word === undefined) return /^(?:FM|TM|FX)$/i.test(text) ? [] : [literal(text)]
  const bare = prefix !== undefined && prefix.toUpperCase() !== 'FX'
  const ordinal = suffix === undefined ? '' : suffix === 'TH' ? 'TH' : 'th'
  const upper = word.toUpperCase()
  const [width, value] = numbers[upper] ?? []
  if (width !== undefined && value !== undefined)
    return [{ print: (parts) => String(value(parts)), width, isNumber: true, bare, ordinal }]
  if (upper === 'Y,YYY') return [{ print: thousands, width: 0, isNumber: true, bare, ordinal }]
  if (upper.startsWith('FF')) return [{ ...fraction(Number(word.at(-1))), bare, ordinal }]
  const [room, print] = nonNull(names[upper])
  return [
    { print: (parts, zoned) => cased(print(parts, zoned), word), width: room, isNumber: false, bare, ordinal: '' },
  ]
}

function literal(text: string): Element {
  return { print: () => text, width: 0, isNumber: false, bare: false, ordinal: '' }
}

const thousands: Print = ({ year }) => {
  const shown = shownYear(year)
  return `${Math.floor(shown / 1000)},${String(shown % 1000).padStart(3, '0')}`
}

function fraction(digits: number): Pick<Element, 'print' | 'width' | 'isNumber'> {
  return { print: ({ nanos }) => String(Math.floor(nanos / 10 ** (9 - digits))), width: digits, isNumber: true }
}

function cased(text: string, word: string): string {
  if (word === word.toUpperCase()) return text.toUpperCase()
  return word === word.toLowerCase() ? text.toLowerCase() : text
}

export function formatByPgPattern(ticks: bigint, unit: TimestampUnit, pattern: string, zoned: boolean): string {
  const parts = partsOf(ticks, unit)
  let text = ''
  for (const { print, width, isNumber, bare, ordinal } of compile(pattern)) {
    const plain = print(parts, zoned)
    const filled = bare ? plain : isNumber ? plain.padStart(width, '0') : plain.padEnd(width, ' ')
    text += ordinal === '' ? filled : filled + ordinalOf(plain, ordinal)
  }
  return text
}

function ordinalOf(number: string, written: 'TH' | 'th'): string {
  const last = number.at(-2) === '1' ? '0' : number.at(-1)
  const ending = last === '1' ? 'st' : last === '2' ? 'nd' : last === '3' ? 'rd' : 'th'
  return written === 'TH' ? ending.toUpperCase() : ending
}
