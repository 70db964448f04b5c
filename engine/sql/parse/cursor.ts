// The lexer: a cursor that holds one token of the SQL text and advances to the next. It copies nothing but words.
//
// Invariants:
//   1. 0 <= start <= end <= text.length, and every advance moves forward, so lexing takes linear time.
//   2. `word` is the lower-case form of an unquoted word, the characters of a symbol, and '' for other tokens. So
//      `cursor.word === 'select'` is true only for the keyword, never for a quoted name or a string.

import { SqlError } from '../../base/errors.js'
import { sqlDepthMax, sqlTermsMax, statementCharactersMax } from '../../base/limits.js'

type TokenKind =
  | 'end'
  | 'word'
  /** A name in double quotes or backquotes. */
  | 'quoted'
  | 'string'
  /** Digits with any letters that follow: `10`, `1.5e3`, `10L`, `5m`, `0xff`. */
  | 'number'
  | 'symbol'
  /** `$1`, `:name`, `?` */
  | 'parameter'
  /** `@x` */
  | 'variable'
  /** `#u33`, `##0101/3` */
  | 'geohash'

export interface Cursor {
  readonly text: string
  kind: TokenKind
  start: number
  end: number
  word: string
  /** The string or quoted name contains doubled quotes. */
  doubled: boolean
  /** The string is written E'..' with backslash escapes. */
  escaped: boolean
  /** End of the previous token. */
  previousEnd: number
  /** Current nesting depth. */
  depth: number
  /** Count of AND and OR terms and CASE branches so far. */
  terms: number
  /** Height of the tree of the innermost open expression, counted in operators. */
  height: number
  /**
   * The outermost operator of the innermost open expression that still lacks its right operand. Errors about a missing
   * operand name it.
   */
  waiting: { readonly operator: string; readonly position: number } | null
  /** Count of `?` parameters so far. */
  parameters: number
  /** Position after EXISTS, where SELECT may have no columns. */
  bareSelect: number
}

/** A cursor on the first token. */
export function openCursor(text: string): Cursor {
  if (text.length > statementCharactersMax) {
    throw new SqlError(`statement is too long [characters=${text.length}, max=${statementCharactersMax}]`, 0)
  }
  const cursor: Cursor = {
    text,
    kind: 'end',
    start: 0,
    end: 0,
    word: '',
    doubled: false,
    escaped: false,
    previousEnd: 0,
    depth: 0,
    terms: 0,
    height: 0,
    waiting: null,
    parameters: 0,
    bareSelect: -1,
  }
  advance(cursor)
  return cursor
}

/** Counts a term of AND or OR, or a branch of CASE (which counts twice), against the limit. */
export function countTerm(cursor: Cursor, weight = 1): void {
  cursor.terms += weight
  if (cursor.terms > sqlTermsMax)
    throw new SqlError(`statement has too many conditions [max=${sqlTermsMax}]`, cursor.start)
}

/** Enters a nesting level. The caller leaves it with `cursor.depth--`. */
export function descend(cursor: Cursor): void {
  cursor.depth++
  if (cursor.depth > sqlDepthMax)
    throw new SqlError(`statement is nested too deeply [max=${sqlDepthMax}]`, cursor.start)
}

/** Moves to the token that starts at `position`, backwards or forwards. */
export function moveTo(cursor: Cursor, position: number): void {
  cursor.end = position
  advance(cursor)
}

/** The lower-case word or symbol after the current token; '' for other tokens. */
export function peekWord(cursor: Cursor): string {
  const { start, previousEnd } = cursor
  advance(cursor)
  const word = cursor.word
  moveTo(cursor, start)
  cursor.previousEnd = previousEnd
  return word
}

const OTHER = 0
const BLANK = 1
const LETTER = 2
const DIGIT = 3
const classes = characterClasses()

function characterClasses(): Uint8Array {
  const table = new Uint8Array(128)
  for (const code of [9, 10, 11, 12, 13, 32]) table[code] = BLANK
  for (let code = 97; code <= 122; code++) table[code] = table[code - 32] = LETTER
  for (let code = 48; code <= 57; code++) table[code] = DIGIT
  // Braces and backslashes are not part of names. As letters they form one token, which errors can show.
  for (const character of '_{}\\') table[character.charCodeAt(0)] = LETTER
  return table
}

/** Class of a character. NaN, after the end of the text, has none. */
function classOf(code: number): number {
  if (code < 128) return classes[code]!
  if (code === 0xa0 || code === 0xfeff || code === 0x2028 || code === 0x2029) return BLANK
  return code >= 128 ? LETTER : OTHER
}

function isWordCode(code: number): boolean {
  return classOf(code) >= LETTER || code === 36
}

export function advance(cursor: Cursor): void {
  const text = cursor.text
  cursor.previousEnd = cursor.end
  const start = skipBlanks(text, cursor.end)
  cursor.start = start
  if (start >= text.length) {
    cursor.kind = 'end'
    cursor.word = ''
    cursor.start = endOf(text, cursor.previousEnd)
    cursor.end = text.length
    return
  }
  const code = text.charCodeAt(start)
  const kind = classOf(code)
  if (kind === LETTER) readWord(cursor, start)
  else if (kind === DIGIT || (code === 46 && isDigit(text, start + 1))) readNumber(cursor, start)
  else if (code === 39) readQuotes(cursor, start, 39, 'string', false)
  else if (code === 34 || code === 96) readQuotes(cursor, start, code, 'quoted', false)
  else readMarkOrSymbol(cursor, start, code)
}

/** Position of errors at the end of the text: after the last token, and after one blank if that token is a word. */
function endOf(text: string, previousEnd: number): number {
  return isWordCode(text.charCodeAt(previousEnd - 1)) && previousEnd < text.length ? previousEnd + 1 : previousEnd
}

/** The first position that is neither blank nor comment. */
function skipBlanks(text: string, from: number): number {
  let position = from
  for (;;) {
    const code = text.charCodeAt(position)
    if (code === 45 && text.charCodeAt(position + 1) === 45) {
      const newline = text.indexOf('\n', position)
      if (newline < 0) return text.length
      position = newline + 1
    } else if (code === 47 && text.charCodeAt(position + 1) === 42) {
      const close = text.indexOf('*/', position + 2)
      if (close < 0) return text.length
      position = close + 2
    } else if (classOf(code) === BLANK) position++
    else return position
  }
}

function isDigit(text: string, position: number): boolean {
  const code = text.charCodeAt(position)
  return code >= 48 && code <= 57
}

function readWord(cursor: Cursor, start: number): void {
  const text = cursor.text
  let position = start
  let upper = false
  for (;;) {
    const code = text.charCodeAt(position)
    if (!isWordCode(code)) break
    if ((code >= 65 && code <= 90) || code >= 128) upper = true
    position++
  }
  if (position === start + 1 && text.charCodeAt(position) === 39 && (text.charCodeAt(start) | 32) === 101) {
    readQuotes(cursor, position, 39, 'string', true)
    cursor.start = start
    return
  }
  if (position === start + 1 && (text.charCodeAt(start) | 32) === 117 && isUnicodeText(text, position)) {
    const quote = text.charCodeAt(position + 1)
    readQuotes(cursor, position + 1, quote, quote === 39 ? 'string' : 'quoted', false)
    cursor.escaped = true
    cursor.start = start
    return
  }
  cursor.kind = 'word'
  cursor.end = position
  const word = text.slice(start, position)
  cursor.word = upper ? word.toLowerCase() : word
}

/** Whether the letter before `position` starts `U&'d\0061t\+000061'` or `U&"..."`. */
function isUnicodeText(text: string, position: number): boolean {
  const quote = text.charCodeAt(position + 1)
  return text.charCodeAt(position) === 38 && (quote === 39 || quote === 34)
}

/** Digits, a dot, an exponent; then letters up to the end of the word (a suffix or unit, which the parser checks). */
function readNumber(cursor: Cursor, start: number): void {
  const text = cursor.text
  cursor.kind = 'number'
  cursor.word = ''
  let position = start
  if (text.charCodeAt(start) === 48 && (text.charCodeAt(start + 1) | 32) === 120) {
    cursor.end = skipWord(text, start)
    return
  }
  position = skipDigits(text, position)
  if (text.charCodeAt(position) === 46 && text.charCodeAt(position + 1) !== 46)
    position = skipDigits(text, position + 1)
  if ((text.charCodeAt(position) | 32) === 101) {
    const sign = text.charCodeAt(position + 1)
    const digits = sign === 43 || sign === 45 ? position + 2 : position + 1
    if (isDigit(text, digits)) position = skipDigits(text, digits)
  }
  cursor.end = skipWord(text, position)
}

function skipDigits(text: string, from: number): number {
  let position = from
  while (isDigit(text, position) || (text.charCodeAt(position) === 95 && isDigit(text, position + 1))) position++
  return position
}

function skipWord(text: string, from: number): number {
  let position = from
  while (isWordCode(text.charCodeAt(position))) position++
  return position
}

/** `open` is the position of the opening quote. */
function readQuotes(cursor: Cursor, open: number, quote: number, kind: 'string' | 'quoted', escaped: boolean): void {
  const text = cursor.text
  const mark = String.fromCharCode(quote)
  cursor.kind = kind
  cursor.word = ''
  cursor.doubled = false
  cursor.escaped = escaped
  let position = open + 1
  for (;;) {
    const close = escaped ? closingQuote(text, position) : text.indexOf(mark, position)
    if (close < 0) {
      throw new SqlError(kind === 'string' ? 'unclosed quoted string?' : 'unclosed quotation mark', cursor.start)
    }
    position = close + 1
    if (text.charCodeAt(position) !== quote) break
    cursor.doubled = true
    position++
  }
  cursor.end = position
}

/** The next quote that is not escaped by a backslash. */
function closingQuote(text: string, from: number): number {
  for (let position = from; position < text.length; position++) {
    const code = text.charCodeAt(position)
    if (code === 39) return position
    if (code === 92) position++
  }
  return -1
}

const longSymbols = [
  ...['<<=', '>>=', '<<', '>>', '<=', '>=', '<>', '!=', '||', '::', ':=', '==', '->>', '->'],
  ...['!~~*', '!~~', '!~*', '!~', '~~*', '~~', '~*'],
  ...['#>>', '#>', '#-', '@>', '<@', '?|', '?&', '&&'],
]
const symbolsByCode = symbolTable()

function symbolTable(): readonly (readonly string[])[] {
  const table: string[][] = []
  for (let code = 0; code < 128; code++) {
    const first = String.fromCharCode(code)
    table.push([...longSymbols.filter((symbol) => symbol.startsWith(first)), first])
  }
  return table
}

/** Reads a marked token (`$1`, `@x`, `#u33`) or a symbol. `:` marks a parameter only before a letter. */
function readMarkOrSymbol(cursor: Cursor, start: number, code: number): void {
  if (isOperator(cursor.text, start, code)) readSymbol(cursor, start, code)
  else if (code === 35) readGeohash(cursor, start)
  else if (code === 36 && dollarMark(cursor.text, start) !== '') readDollars(cursor, start)
  else if (code === 64) readMarked(cursor, start, 'variable')
  else if (code === 36 || code === 63) readMarked(cursor, start, 'parameter')
  else if (code === 58 && classOf(cursor.text.charCodeAt(start + 1)) === LETTER) readMarked(cursor, start, 'parameter')
  else readSymbol(cursor, start, code)
}

/**
 * Whether the mark is an operator: `#>`, `#-`, `@>`, `?|`, `?&`, or `# ` (PostgreSQL's XOR). `?||` is a parameter and a
 * concatenation.
 */
function isOperator(text: string, start: number, code: number): boolean {
  const next = text.charCodeAt(start + 1)
  if (code === 64) return next === 62
  if (code === 35) return next === 62 || next === 45 || classOf(next) === BLANK
  return code === 63 && (next === 38 || (next === 124 && text.charCodeAt(start + 2) !== 124))
}

const otherSymbols: ReadonlyMap<string, string> = new Map([
  ['!=', '<>'],
  ['==', '='],
  ['#', '^'],
])

function readSymbol(cursor: Cursor, start: number, code: number): void {
  const text = cursor.text
  cursor.kind = 'symbol'
  const candidates = symbolsByCode[code]
  let symbol = text[start] as string
  if (candidates !== undefined && candidates.length > 1) {
    symbol = candidates.find((candidate) => text.startsWith(candidate, start)) ?? symbol
  } else if (candidates !== undefined) symbol = candidates[0] as string
  // `a<@limit` is a comparison with a variable.
  if (symbol === '<@' && isWordCode(text.charCodeAt(start + 2))) symbol = '<'
  cursor.word = otherSymbols.get(symbol) ?? symbol
  cursor.end = start + symbol.length
}

/** `$$` or `$tag$` at the position; '' if there is none. */
function dollarMark(text: string, start: number): string {
  let end = start + 1
  while (classOf(text.charCodeAt(end)) >= LETTER) end++
  const isMark = text.charCodeAt(end) === 36 && classOf(text.charCodeAt(start + 1)) !== DIGIT
  return isMark ? text.slice(start, end + 1) : ''
}

/** A dollar-quoted string: everything up to the closing tag is literal. */
function readDollars(cursor: Cursor, start: number): void {
  const mark = dollarMark(cursor.text, start)
  const close = cursor.text.indexOf(mark, start + mark.length)
  if (close < 0) throw new SqlError('unclosed quoted string?', start)
  cursor.kind = 'string'
  cursor.word = ''
  cursor.doubled = false
  cursor.escaped = false
  cursor.end = close + mark.length
}

function readMarked(cursor: Cursor, start: number, kind: 'variable' | 'parameter'): void {
  cursor.kind = kind
  cursor.word = ''
  cursor.end = skipWord(cursor.text, start + 1)
}

/** `#` and characters or `##` and bits, optionally followed by `/` and a number of bits. */
function readGeohash(cursor: Cursor, start: number): void {
  const text = cursor.text
  cursor.kind = 'geohash'
  cursor.word = ''
  let position = skipWord(text, text.charCodeAt(start + 1) === 35 ? start + 2 : start + 1)
  if (text.charCodeAt(position) === 47 && isDigit(text, position + 1)) position = skipDigits(text, position + 1)
  cursor.end = position
}

/**
 * Whether the cursor is on the word or symbol. A function, because TypeScript narrows `cursor.word` and does not see
 * that a move changes it.
 */
export function at(cursor: Cursor, word: string): boolean {
  return cursor.word === word
}

/** The token as it is written. */
export function tokenText(cursor: Cursor): string {
  return cursor.text.slice(cursor.start, cursor.end)
}

/** The value of a string or quoted name. */
export function quotedValue(cursor: Cursor): string {
  const { text, start, end } = cursor
  if (text[start] === '$') {
    const { length } = dollarMark(text, start)
    return text.slice(start + length, end - length)
  }
  if (cursor.escaped && text[start + 1] === '&') return unicodeText(cursor, text.slice(start + 3, end - 1))
  if (cursor.escaped && cursor.kind === 'string') return unescaped(cursor, text.slice(start + 2, end - 1))
  const inner = text.slice(start + 1, end - 1)
  if (!cursor.doubled) return inner
  const quote = text[start] as string
  return inner.replaceAll(quote + quote, quote)
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }

function unescaped({ start }: Cursor, inner: string): string {
  const pattern = /''|\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([\s\S]))/g
  const text = inner.replace(pattern, (match, hex, short, long, octal, character) => {
    if (match === "''") return "'"
    const digits: string | undefined = hex ?? short ?? long
    if (digits !== undefined) return codePoint(Number.parseInt(digits, 16), start)
    if (octal !== undefined) return codePoint(Number.parseInt(octal, 8), start)
    return escapes[character] ?? character
  })
  return requirePairs(text, start)
}

/** Code points written as a backslash and four digits, or a backslash, a plus and six digits. */
function unicodeText({ text, start, end }: Cursor, inner: string): string {
  const quote = text[end - 1] as string
  const value = inner
    .replaceAll(quote + quote, quote)
    .replace(/\\(?:([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|(\\)|)/g, (_match, short, long, backslash) => {
      if (backslash !== undefined) return '\\'
      const digits: string | undefined = short ?? long
      if (digits === undefined) throw new SqlError('invalid Unicode escape, \\XXXX or \\+XXXXXX expected', start)
      return codePoint(Number.parseInt(digits, 16), start)
    })
  return requirePairs(value, start)
}

function codePoint(code: number, position: number): string {
  // Clients of PostgreSQL end strings at a zero byte, for example column names.
  if (code === 0) throw new SqlError('invalid byte sequence for encoding "UTF8": 0x00', position)
  if (code > 0x10ffff) throw new SqlError('invalid Unicode escape value', position)
  return String.fromCodePoint(code)
}

function requirePairs(text: string, position: number): string {
  if (/\p{Surrogate}/u.test(text)) throw new SqlError('invalid Unicode surrogate pair', position)
  return text
}

/** An error that shows the token at the cursor. */
export function shownTokenError(cursor: Cursor, message: string): SqlError {
  const token = tokenText(cursor).slice(0, 100)
  return new SqlError(`found [tok='${token}', len=${cursor.end - cursor.start}] ${message}`, cursor.start)
}
