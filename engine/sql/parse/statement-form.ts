// The form of a statement: its text without the constants that statements of the same kind differ in. Dashboards and
// programs send the same queries with other names and times; one plan serves all statements of a form
// (typing/deferred-values.ts).
//
// A constant is left out only where a value is compared or computed with: in WHERE, after an operator, in a list of IN
// and beside BETWEEN, and not in calls, whose arguments may decide about types. A form names the types of its constants,
// so `1` and `'1'`, or an INT and a LONG, are of different forms.
//
// This is no parser: it reads tokens as the lexer does (cursor.ts) and gives up, returning null, at any that is rare. If
// it takes something else for a constant, the parser has no literal there, and the plan then serves that constant alone.

import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'

/** A constant that the form leaves out, in the place of a parameter. */
export interface WrittenConstant {
  readonly value: Value
  readonly type: DataType
  /** As written, without quotes. */
  readonly text: string
  readonly start: number
  readonly end: number
}

export interface StatementForm {
  /** Equal for statements of the same form. It is no SQL, and differs from all texts of statements. */
  readonly key: string
  readonly constants: readonly WrittenConstant[]
}

const charactersMax = 16_384
const constantsMax = 64
const int = dataType('INT')
const long = dataType('LONG')
const double = dataType('DOUBLE')
const character = dataType('CHAR')
const string = dataType('STRING')
const intMax = 2_147_483_647
/** Digits of numbers that are surely exact as DOUBLE, or fit into a LONG. */
const digitsMax = 18

/** Stands for a constant of the type in keys. Texts with these characters have no form. */
const marks: Readonly<Record<string, string>> = {
  INT: '\x01',
  LONG: '\x02',
  DOUBLE: '\x03',
  CHAR: '\x04',
  STRING: '\x05',
}
const prefix = '\x06'

/** Words after which a constant may follow. */
const joining: ReadonlySet<string> = new Set(['and', 'or', 'not', 'in', 'between'])
/** Words that end WHERE, or begin something within it that has other rules. */
const ending: ReadonlySet<string> = new Set(
  (
    'select from group order sample latest limit union except intersect having window fill align to join on asof lt ' +
    'splice cross left right full inner lateral partition pivot unpivot tolerance offset fetch for case with values as range'
  ).split(' '),
)

/** Words before a parenthesis that does not begin the arguments of a call. */
const grouping: ReadonlySet<string> = new Set([...joining, ...ending, 'where', 'exists', 'all', 'distinct', 'by'])

/** A token and what came before it. */
interface Scan {
  readonly text: string
  at: number
  /** In WHERE, where constants are left out. */
  isWhere: boolean
  /** An operator or one of the joining words was last. */
  isJoined: boolean
  /** Start of the last token if it was a word or a name; -1: it was another. */
  wordAt: number
  depth: number
  /** Depth of the outermost open call or subscript; 0: none is open. */
  callDepth: number
  key: string
  /** End of the text that the key has. */
  copied: number
  readonly constants: WrittenConstant[]
}

/** Null for a statement without constants to leave out, and for one that is no plain query. */
export function formOf(text: string): StatementForm | null {
  if (text.length > charactersMax || !/^\s*(?:select|with)\b/i.test(text)) return null
  const scan: Scan = {
    ...{ text, at: 0, isWhere: false, isJoined: false, wordAt: -1, depth: 0, callDepth: 0 },
    ...{ key: prefix, copied: 0, constants: [] },
  }
  while (scan.at < text.length) if (!next(scan)) return null
  const { key, copied, constants } = scan
  if (constants.length === 0 || constants.length > constantsMax) return null
  return { key: key + text.slice(copied), constants }
}

/** Reads a token or a blank; false when the statement has no form. */
function next(scan: Scan): boolean {
  const { text, at } = scan
  const code = text.charCodeAt(at)
  if (isBlank(code)) scan.at++
  else if (isLetter(code)) readWord(scan)
  else if (isDigit(code)) return readNumber(scan)
  else if (code === quote) return readString(scan)
  else if (code === doubleQuote) return readName(scan)
  else return readSymbol(scan, code)
  return true
}

const quote = 39
const doubleQuote = 34

function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13)
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Characters that begin words. */
function isLetter(code: number): boolean {
  const lower = code | 32
  return (lower >= 97 && lower <= 122) || code === 95 || code >= 128
}

function isWordCode(code: number): boolean {
  return isLetter(code) || isDigit(code) || code === 36
}

function readWord(scan: Scan): void {
  const { text, at } = scan
  let end = at + 1
  while (isWordCode(text.charCodeAt(end))) end++
  scan.at = end
  scan.wordAt = at
  scan.isJoined = false
  if (!scan.isWhere) {
    scan.isWhere = end - at === 5 && text.slice(at, end).toLowerCase() === 'where'
    return
  }
  const word = text.slice(at, end).toLowerCase()
  if (joining.has(word)) scan.isJoined = true
  else if (ending.has(word)) scan.isWhere = false
}

/** Digits, with a fraction or without. Numbers of other forms stay in the key. */
function readNumber(scan: Scan): boolean {
  const { text, at } = scan
  let end = at
  while (isDigit(text.charCodeAt(end))) end++
  const isWhole = text.charCodeAt(end) !== 46
  if (!isWhole) {
    end++
    if (!isDigit(text.charCodeAt(end))) return false
    while (isDigit(text.charCodeAt(end))) end++
    if (text.charCodeAt(end) === 46) return false
  }
  const isPlain = !isWordCode(text.charCodeAt(end)) && end - at <= digitsMax
  if (isPlain && isConstantHere(scan)) {
    const digits = text.slice(at, end)
    const number = Number(digits)
    if (!isWhole) leaveOut(scan, number, double, digits, end)
    else if (number <= intMax) leaveOut(scan, number, int, digits, end)
    else leaveOut(scan, BigInt(digits), long, digits, end)
  }
  while (isWordCode(text.charCodeAt(end))) end++
  return afterOperand(scan, end)
}

/** False for prefixes such as E'..' and U&'..'. */
function readString(scan: Scan): boolean {
  const { text, at } = scan
  const before = text.charCodeAt(at - 1)
  if (isWordCode(before) || before === 38) return false
  let end = text.indexOf("'", at + 1)
  let isDoubled = false
  while (end >= 0 && text.charCodeAt(end + 1) === quote) {
    isDoubled = true
    end = text.indexOf("'", end + 2)
  }
  if (end < 0) return false
  if (isConstantHere(scan) && end > at + 1) {
    const inner = text.slice(at + 1, end)
    const value = isDoubled ? inner.replaceAll("''", "'") : inner
    leaveOut(scan, value, value.length === 1 && value !== "'" ? character : string, value, end + 1)
  }
  return afterOperand(scan, end + 1)
}

/** A name in double quotes. */
function readName(scan: Scan): boolean {
  const close = scan.text.indexOf('"', scan.at + 1)
  if (close < 0) return false
  const { at } = scan
  afterOperand(scan, close + 1)
  scan.wordAt = at
  return true
}

function afterOperand(scan: Scan, end: number): boolean {
  scan.at = end
  scan.wordAt = -1
  scan.isJoined = false
  return true
}

function isConstantHere({ isWhere, isJoined, callDepth }: Scan): boolean {
  return isWhere && isJoined && callDepth === 0
}

function leaveOut(scan: Scan, value: Value, type: DataType, text: string, end: number): void {
  scan.key += scan.text.slice(scan.copied, scan.at) + marks[type.name]
  scan.copied = end
  scan.constants.push({ value, type, text, start: scan.at, end })
}

function readSymbol(scan: Scan, code: number): boolean {
  const { text, at } = scan
  const following = text.charCodeAt(at + 1)
  const { wordAt } = scan
  afterOperand(scan, at + 1)
  switch (String.fromCharCode(code)) {
    case '(':
      open(scan, wordAt >= 0 && !grouping.has(text.slice(wordAt, at).trim().toLowerCase()))
      return true
    case '[':
      open(scan, true)
      return true
    case ')':
    case ']':
      close(scan)
      return true
    case '-':
      scan.isJoined = true
      return following !== code
    case '/':
      scan.isJoined = true
      return following !== 42
    case '=':
    case '<':
    case '>':
    case '!':
    case '+':
    case '*':
    case '%':
    case ',':
      scan.isJoined = true
      return true
    case '.':
      return !isDigit(following) && following !== code
    case ':':
      scan.at++
      return following === code
    case ';':
      return /^[\s;]*$/.test(text.slice(at))
    default:
      return false
  }
}

function open(scan: Scan, isCall: boolean): void {
  scan.depth++
  if (isCall && scan.callDepth === 0) scan.callDepth = scan.depth
  scan.isJoined = true
}

function close(scan: Scan): void {
  if (scan.callDepth === scan.depth) scan.callDepth = 0
  scan.depth--
}

/** Where positions of one statement are in another statement of the same form; null: at the same places. */
export function movesBetween(
  from: readonly WrittenConstant[],
  to: readonly WrittenConstant[],
): ((position: number) => number) | null {
  if (from.every(({ end }, index) => end === to[index]?.end)) return null
  return (position) => {
    let shift = 0
    for (const [index, constant] of from.entries()) {
      const other = to[index] ?? constant
      if (constant.start > position) break
      shift = constant.end > position ? other.start - constant.start : other.end - constant.end
    }
    return position + shift
  }
}
