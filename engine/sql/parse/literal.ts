// Converts number, geohash and interval tokens to literals of the syntax tree.

import { SqlError } from '../../base/errors.js'
import type { IntegerLiteral, Literal, TimeUnit } from '../ast/ast.js'
import { type Cursor, tokenText } from './cursor.js'

const timeUnits: ReadonlyMap<string, TimeUnit> = new Map<string, TimeUnit>(
  (['n', 'U', 'T', 's', 'm', 'h', 'd', 'w', 'M', 'y'] as const).map((unit) => [unit, unit]),
)

const unitWords: Readonly<Record<string, TimeUnit>> = {
  nanosecond: 'n',
  microsecond: 'U',
  millisecond: 'T',
  second: 's',
  minute: 'm',
  hour: 'h',
  day: 'd',
  week: 'w',
  month: 'M',
  year: 'y',
}

/** The unit of `h`, `M`, `hour`, `Hours`; undefined for other words. Single letters are case-sensitive. */
export function timeUnitOf(text: string): TimeUnit | undefined {
  const unit = timeUnits.get(text)
  if (unit !== undefined || text.length < 3) return unit
  const word = text.toLowerCase()
  const single = word.endsWith('s') ? word.slice(0, -1) : word
  return Object.hasOwn(unitWords, single) ? unitWords[single] : undefined
}

/** `15m` split into digits and unit; null for any other text. */
export function intervalOfText(text: string): { readonly digits: string; readonly unit: TimeUnit } | null {
  const match = /^([\d_]+)([a-zA-Z]+)$/.exec(text)
  const unit = timeUnits.get(match?.[2] ?? '')
  if (match === null || unit === undefined) return null
  return { digits: (match[1] as string).replaceAll('_', ''), unit }
}

export function wholeNumber(position: number, digits: string): IntegerLiteral {
  return { kind: 'integer', position, text: digits, digits, long: false }
}

/** The number at the cursor, which does not move. */
export function numberLiteral(cursor: Cursor): Literal {
  const text = tokenText(cursor)
  const position = cursor.start
  if (cursor.text.charCodeAt(cursor.end) === 46 && cursor.text.charCodeAt(cursor.end + 1) !== 46) {
    const whole = /^[\w.]*/.exec(cursor.text.slice(position, position + 100))?.[0]
    throw new SqlError(`invalid constant: ${whole}`, position)
  }
  if (cursor.text.startsWith('..', cursor.end)) throw new SqlError('too many dots', cursor.end + 1)
  const plain = plainForm(text)
  if (plain === 'integer') return { kind: 'integer', position, text, digits: text, long: false }
  if (plain === 'decimal') return { kind: 'float', position, text, digits: text, value: Number(text), single: false }
  if (/^0x/i.test(text)) return hexLiteral(text, position)
  const match = /^(\d[\d_]*)?(\.\d*)?([eE][+-]?\d+)?([a-zA-Z]*)$/.exec(text)
  if (match === null || /__|_(?!\d)/.test(text)) throw new SqlError(`invalid constant: ${text}`, position)
  const suffix = match[4] ?? ''
  const digits = text.slice(0, text.length - suffix.length).replaceAll('_', '')
  const whole = match[2] === undefined && match[3] === undefined
  // Only integers may contain underscores.
  if (!whole && text.includes('_')) throw new SqlError(`invalid constant: ${text}`, position)
  if (whole && (suffix === '' || suffix === 'L' || suffix === 'l')) {
    return { kind: 'integer', position, text, digits, long: suffix !== '' }
  }
  if (suffix === '' || /^[fFdD]$/.test(suffix)) {
    const single = suffix === 'f' || suffix === 'F'
    return { kind: 'float', position, text, digits, value: Number(digits), single }
  }
  if (suffix === 'm' || (suffix === 'M' && !whole)) return { kind: 'decimal', position, text, digits }
  if (whole && timeUnits.has(suffix)) return { kind: 'interval', position, text }
  throw new SqlError(`invalid constant: ${text}`, position)
}

/** Classifies numbers of digits and at most one point, which are nearly all; other forms need a closer look. */
function plainForm(text: string): 'integer' | 'decimal' | 'other' {
  let points = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 46) points++
    else if (code < 48 || code > 57) return 'other'
  }
  if (points === 0) return 'integer'
  return points === 1 && text.length > 1 ? 'decimal' : 'other'
}

/** LONG256 literals consist of whole bytes, at most 32. */
function hexLiteral(text: string, position: number): Literal {
  const digits = text.slice(2)
  if (!/^[0-9a-fA-F]+$/.test(digits) || digits.length % 2 !== 0 || digits.length > 64) {
    throw new SqlError(`invalid constant: ${text}`, position)
  }
  return { kind: 'hex', position, text, digits }
}

/** The geohash at the cursor, which does not move. */
export function geohashLiteral(cursor: Cursor): Literal {
  const text = tokenText(cursor)
  const position = cursor.start
  const match = /^(?:##([01]{1,60})|#([0-9bcdefghjkmnpqrstuvwxyz]{1,12}))(?:\/(\d{1,2}))?$/i.exec(text)
  const digits = match?.[1] ?? match?.[2]
  if (match === null || digits === undefined) throw new SqlError(`invalid constant: ${text}`, position)
  const binary = match[1] !== undefined
  const size = binary ? digits.length : digits.length * 5
  const bits = match[3] === undefined ? size : Number(match[3])
  if (bits < 1 || bits > size) throw new SqlError(`invalid constant: ${text}`, position)
  return { kind: 'geohash', position, text, digits, binary, bits }
}
