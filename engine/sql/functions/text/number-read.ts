// to_number(): parses a number from text with PostgreSQL's template patterns (number-format.ts). As in PostgreSQL, each
// element of the pattern consumes or skips characters:
//
//   9 0 . D      a digit, or the point if the pattern has one; before the first digit also a sign, after the last one
//                also a sign if the pattern has one
//   , G          a comma if there is one
//   SG MI PL     a sign; any other character that is not part of a number is skipped
//   L            skips a character that is not part of a number
//   PR           `<5>` is -5
//   text         skips as many characters, whatever they are

import { SqlError } from '../../../base/errors.js'
import { dataType } from '../../../types/column-types.js'
import { parseDecimal } from '../../../types/number.js'
import type { BoundArgument, ScalarFunction } from '../function-types.js'
import { type Pattern, patternOf, type Token } from './number-format.js'

const precisionMax = 76

/** Parser state. */
interface Reading {
  readonly characters: readonly string[]
  readonly pattern: Pattern
  readonly kinds: ReadonlySet<Token['kind']>
  at: number
  sign: string
  digits: string
  places: number
  pointRead: boolean
}

function readingOf(text: string, pattern: Pattern): Reading {
  return {
    characters: [...text],
    pattern,
    kinds: new Set(pattern.tokens.map(({ kind }) => kind)),
    at: 0,
    sign: '',
    digits: '',
    places: 0,
    pointRead: false,
  }
}

function read(text: string, template: string): string {
  const reading = readingOf(text, patternOf(template))
  for (const token of reading.pattern.tokens) {
    if (reading.at >= reading.characters.length) break
    readToken(reading, token)
  }
  return reading.sign + reading.digits
}

function readToken(reading: Reading, token: Token): void {
  const character = reading.characters[reading.at]
  switch (token.kind) {
    case 'digit':
    case 'point':
      readDigit(reading, token)
      return
    case 'group':
      if (reading.pattern.fill && character === ',') reading.at++
      return
    case 'minus':
    case 'plus':
    case 'signAnywhere':
      readSign(reading, token.kind)
      return
    case 'nothing':
      passOver(reading)
      return
    case 'text':
      reading.at += [...token.text].length
  }
}

function passOver(reading: Reading): void {
  if (!/[\d.,+-]/.test(reading.characters[reading.at] ?? '0')) reading.at++
}

function readSign(reading: Reading, kind: 'minus' | 'plus' | 'signAnywhere'): void {
  const character = reading.characters[reading.at] ?? ''
  const isSign = (character === '-' && kind !== 'plus') || (character === '+' && kind !== 'minus')
  if (!isSign) passOver(reading)
  else {
    reading.sign = character
    reading.at++
  }
}

function readDigit(reading: Reading, token: Token): void {
  if (reading.characters[reading.at] === ' ') reading.at++
  if (token.kind === 'digit' && reading.digits === '' && reading.sign === '') readLeadingSign(reading)
  const character = reading.characters[reading.at]
  if (character === undefined) return
  const isPoint = character === '.' && reading.kinds.has('point') && !reading.pointRead
  const isDigit = /\d/.test(character)
  if (isDigit && reading.pointRead && reading.places === reading.pattern.places) return
  if (isDigit && reading.pointRead) reading.places++
  if (isPoint) reading.pointRead = true
  if (isDigit || isPoint) reading.digits += character
  readTrailingSign(reading, isDigit || isPoint)
  reading.at++
}

function readLeadingSign(reading: Reading): void {
  const character = reading.characters[reading.at] ?? ''
  const isBracket = character === '<' && reading.kinds.has('angle')
  if (character !== '-' && character !== '+' && !isBracket) return
  reading.sign = character === '+' ? '+' : '-'
  reading.at++
}

/** A sign after the last digit, which need not be the last one of the pattern: `5-` with `99S`. */
function readTrailingSign(reading: Reading, isRead: boolean): void {
  if (reading.sign !== '' || !/\d/.test(reading.digits)) return
  const { kinds } = reading
  const after = isRead ? reading.at + 1 : reading.at
  const character = reading.characters[after]
  if (character !== '-' && character !== '+') return
  const isWanted = kinds.has('minus') || kinds.has('plus') || kinds.has('signAnywhere')
  if (kinds.has('sign') ? !isRead : isRead || !isWanted) return
  reading.sign = character
  reading.at = after
}

/** Digits before and after the point that a constant pattern allows; null if the pattern is not constant. */
function roomOf(template: BoundArgument | undefined): { readonly whole: number; readonly places: number } | null {
  return typeof template?.constant === 'string' ? patternOf(template.constant, template.position) : null
}

export const numberReaders: readonly ScalarFunction[] = [
  {
    name: 'to_number',
    takes: ['TEXT', 'TEXT'],
    gives: ([, template]) => {
      const room = roomOf(template)
      if (room === null) return dataType('DOUBLE')
      return dataType('DECIMAL', Math.max(1, Math.min(precisionMax, room.whole + room.places)), room.places)
    },
    description:
      'Parses a number by a pattern of PostgreSQL: a DECIMAL with the digits of a constant pattern, else a DOUBLE.',
    example: ["to_number('12,454.8-', '99G999D9S')", '-12454.8'],
    check: ([, template], position) => {
      const room = roomOf(template)
      if (room !== null && room.whole + room.places > precisionMax)
        throw new SqlError(`a pattern has at most ${precisionMax} digits`, position)
    },
    eval: ([text, template], { type, position }) => {
      const number = read(String(text), String(template))
      if (!/\d/.test(number)) throw new SqlError(`invalid input syntax for type numeric: "${number || ' '}"`, position)
      if (type.name === 'DOUBLE') return Number(number)
      const value = parseDecimal(number, type.a, type.b)
      if (value === null) throw new SqlError('numeric field overflow', position)
      return value
    },
  },
]
