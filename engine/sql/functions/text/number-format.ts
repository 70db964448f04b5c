// to_char() for numbers and intervals: formats with PostgreSQL's template patterns.
//
//   9 0        a digit; from the first 0 on, leading zeros are printed
//   . D        decimal point       , G        group separator, if a digit precedes it
//   S SG       sign, also +        MI         minus or blank        PL    plus or blank        PR    `<5>` for -5
//   FM         no padding blanks, and no trailing zeros for a 9
//   "text"     literal text        L          nothing: there is no currency symbol
//
// A number with more digits than its pattern is printed as `#`.

import { nonNull } from '../../../base/assert.js'
import { SqlError } from '../../../base/errors.js'
import { type DataType, isSpan } from '../../../types/column-types.js'
import { valueText } from '../../../types/convert.js'
import { formatSpanByPgPattern } from '../../../types/span-pattern.js'
import type { Value } from '../../../types/value.js'
import type { ScalarFunction } from '../function-types.js'

export type Token =
  | { readonly kind: 'digit'; readonly zero: boolean }
  | { readonly kind: 'point' | 'group' | 'sign' | 'signAnywhere' | 'minus' | 'plus' | 'angle' | 'nothing' }
  | { readonly kind: 'text'; readonly text: string }

export interface Pattern {
  readonly tokens: readonly Token[]
  readonly fill: boolean
  /** Number of digits before and after the point. */
  readonly whole: number
  readonly places: number
  /** Index of the first 0 among the digits; the number of digits if there is none. */
  readonly firstZero: number
  readonly lastZero: number
}

const words: Readonly<Record<string, Token['kind'] & ('point' | 'group' | 'sign' | 'minus' | 'plus' | 'angle')>> = {
  '.': 'point',
  D: 'point',
  ',': 'group',
  G: 'group',
  S: 'sign',
  MI: 'minus',
  PL: 'plus',
  PR: 'angle',
}

const wordPattern = /FM|SG|MI|PL|PR|EEEE|TH|RN|[90.,DGSLV]|"((?:[^"\\]|\\.)*)"|[\s\S]/giy

const patterns = new Map<string, Pattern>()
const patternsMax = 200

export function patternOf(text: string, position = 0): Pattern {
  const known = patterns.get(text)
  if (known !== undefined) return known
  const pattern = parsed(text, position)
  if (patterns.size >= patternsMax) patterns.clear()
  patterns.set(text, pattern)
  return pattern
}

function parsed(text: string, position: number): Pattern {
  const tokens: Token[] = []
  let fill = true
  for (const [word, quoted] of text.matchAll(wordPattern)) {
    const name = word.toUpperCase()
    if (name === 'FM') fill = false
    else tokens.push(tokenOf(word, name, quoted, position))
  }
  const point = tokens.findIndex(({ kind }) => kind === 'point')
  if (tokens.filter(({ kind }) => kind === 'point').length > 1) throw new SqlError('multiple decimal points', position)
  const before = point < 0 ? tokens : tokens.slice(0, point)
  const digits = tokens.filter((token) => token.kind === 'digit')
  const whole = before.filter(({ kind }) => kind === 'digit').length
  const zeros = digits.map(({ zero }) => zero)
  const firstZero = zeros.indexOf(true)
  return {
    tokens,
    fill,
    whole,
    places: digits.length - whole,
    firstZero: firstZero < 0 ? digits.length : firstZero,
    lastZero: zeros.lastIndexOf(true),
  }
}

function tokenOf(word: string, name: string, quoted: string | undefined, position: number): Token {
  if (quoted !== undefined) return { kind: 'text', text: quoted.replace(/\\(.)/g, '$1') }
  if (name === '9' || name === '0') return { kind: 'digit', zero: name === '0' }
  if (name === 'SG') return { kind: 'signAnywhere' }
  if (name === 'L') return { kind: 'nothing' }
  if (['EEEE', 'TH', 'RN', 'V'].includes(name))
    throw new SqlError(`unsupported element of a number pattern: ${name}`, position)
  const kind = words[name]
  return kind === undefined ? { kind: 'text', text: word } : { kind }
}

interface Digits {
  readonly negative: boolean
  /** Without leading zeros. */
  readonly whole: string
  readonly fraction: string
}

/** The number rounded to so many places, halves away from zero. */
function digitsOf(text: string, places: number): Digits {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d*)(?:\.(\d*))?(?:E([+-]?\d+))?$/i.exec(text) ?? []
  const scale = fraction.length - Number(exponent)
  const value = BigInt(`${whole}${fraction}` || '0')
  const cut = scale - places
  const rounded = cut <= 0 ? value * 10n ** BigInt(-cut) : (value + 5n * 10n ** BigInt(cut - 1)) / 10n ** BigInt(cut)
  const all = String(rounded).padStart(places + 1, '0')
  const end = all.length - places
  return {
    negative: sign === '-' && rounded !== 0n,
    whole: all.slice(0, end).replace(/^0+/, ''),
    fraction: all.slice(end),
  }
}

/** The character for each digit position; '' for none. */
function shownDigits(pattern: Pattern, { whole, fraction }: Digits): string[] {
  const { whole: room, places, fill, firstZero, lastZero } = pattern
  if (whole.length > room) return Array.from({ length: room + places }, () => '#')
  const blanks = room - whole.length
  const front = Array.from({ length: room }, (_, index) => {
    if (index >= blanks) return whole[index - blanks] ?? ''
    const isLast = index === room - 1 && places === 0
    return index >= firstZero || isLast ? '0' : ''
  })
  const needed = fill ? places : Math.max(fraction.replace(/0+$/, '').length, lastZero + 1 - room)
  return [...front, ...Array.from({ length: places }, (_, index) => (index < needed ? (fraction[index] ?? '0') : ''))]
}

function formatted(text: string, template: string): string {
  const pattern = patternOf(template)
  const digits = digitsOf(text, pattern.places)
  const shown = shownDigits(pattern, digits)
  const { tokens, fill } = pattern
  const hasSign = tokens.some(({ kind }) => ['sign', 'signAnywhere', 'minus', 'angle'].includes(kind))
  const angled = tokens.some(({ kind }) => kind === 'angle')
  const written: string[] = []
  let place = 0
  let begun = false
  /** Position of the first digit, before which the sign is inserted. */
  let first = -1
  for (const token of tokens) {
    if (token.kind === 'digit') {
      const digit = shown[place++] ?? ''
      if (digit !== '' && !begun) first = written.length
      begun ||= digit !== ''
      written.push(digit === '' && fill && place <= pattern.whole ? ' ' : digit)
    } else if (token.kind === 'point') {
      if (!begun) first = written.length
      begun = true
      written.push('.')
    } else if (token.kind === 'group') written.push(begun ? ',' : fill ? ' ' : '')
    else if (token.kind === 'sign') written.push(place === 0 ? '' : digits.negative ? '-' : '+')
    else written.push(signOf(token, digits.negative, fill))
  }
  const at = first < 0 ? written.length : first
  const leading = signIn(tokens) === 'front' ? (digits.negative ? '-' : '+') : ''
  const before = angled
    ? digits.negative
      ? '<'
      : fill
        ? ' '
        : ''
    : hasSign
      ? leading
      : digits.negative
        ? '-'
        : fill
          ? ' '
          : ''
  const after = angled ? (digits.negative ? '>' : fill ? ' ' : '') : ''
  return `${written.slice(0, at).join('')}${before}${written.slice(at).join('')}${after}`
}

/** S before all digits is printed immediately before the first digit. */
function signIn(tokens: readonly Token[]): 'front' | 'back' | null {
  const sign = tokens.findIndex(({ kind }) => kind === 'sign')
  if (sign < 0) return null
  return sign < tokens.findIndex(({ kind }) => kind === 'digit') ? 'front' : 'back'
}

function signOf(token: Token, negative: boolean, fill: boolean): string {
  switch (token.kind) {
    case 'text':
      return token.text
    case 'signAnywhere':
      return negative ? '-' : '+'
    case 'minus':
      return negative ? '-' : fill ? ' ' : ''
    case 'plus':
      return negative ? (fill ? ' ' : '') : '+'
    default:
      return ''
  }
}

function toChar([value, template]: readonly Value[], type: DataType): Value {
  if (isSpan(type)) return spanText(value as bigint, String(template))
  const text = valueText(value as Exclude<Value, null>, type)
  if (!/\d/.test(text)) return text
  return formatted(text, String(template))
}

function spanText(span: bigint, template: string): string {
  const text = formatSpanByPgPattern(span, template)
  if (text === null) throw new SqlError('invalid format specification for an interval value', 0)
  return text
}

export const numberFormats: readonly ScalarFunction[] = (['LONG', 'DOUBLE', 'DECIMAL'] as const).map((type) => ({
  name: 'to_char',
  takes: [type, 'TEXT'],
  gives: 'STRING',
  description: 'Formats a number by a pattern of PostgreSQL: 9, 0, point, comma, S, MI, PL, PR, FM.',
  example: type === 'DOUBLE' ? ["to_char(-1234.5, 'FM9,990.00')", '-1,234.50'] : null,
  eval: (args, { argTypes }) => toChar(args, nonNull(argTypes[0])),
}))
