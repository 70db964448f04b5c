// Fast path for INSERT .. VALUES of literals, without a syntax tree: the head before the first tuple is parsed, the
// tuples are copied byte by byte into the transaction's columns. Anything but a plain literal, and every error, is
// left to the parser, which gets the tuples of a long statement in chunks (written-rows.ts).
//
//   tuples    tuple (, tuple)* [;]      tuple    ( literal (, literal)* )
//   literal   'text' ['' is a quote] [::timestamp] | [-]digits[.digits] | true | false | null
//
// About three times as fast as the parser.

import { assert, nonNull } from '../base/assert.js'
import { SqlError } from '../base/errors.js'
import { yieldToEventLoop } from '../base/event-loop.js'
import type { Insert } from '../sql/ast/ast.js'
import { parseStatement } from '../sql/parse/parse.js'
import { digitsExact, powersOfTen } from '../types/pg-scan-text.js'
import type { InsertTargets } from './collect-insert.js'
import type { ColumnAppender } from './column-appender.js'
import type { RowCollector } from './row-collector.js'
import { type WrittenRows, windowEnd } from './written-rows.js'

const headBytesMax = 64 * 1024
/** Some milliseconds of work. */
const turnBytes = 128 * 1024
const quote = 39

/** The statement up to the tuples. */
export interface InsertHead {
  readonly text: string
  /** Parsed with one placeholder row; null when the head is not plain. */
  readonly statement: Insert | null
}

/** Offset of the first tuple of an INSERT; -1 when the text is another statement or not plain. */
export function firstTuple(bytes: Uint8Array, start: number, end: number): number {
  assert(end <= bytes.length, 'P2: a statement is within its message')
  const insert = skipBlanks(bytes, start, end)
  if (!isWord(bytes, insert, end, 'insert')) return -1
  const last = Math.min(end, insert + headBytesMax)
  for (let at = insert + 6; at < last; at++) {
    const byte = bytes[at]!
    if (byte === quote || byte === 34) {
      at = bytes.indexOf(byte, at + 1)
      if (at < 0) return -1
    } else if (byte === 59 || byte === 45 || byte === 47 || byte === 36) return -1
    else if ((byte | 32) === 118 && isWord(bytes, at, end, 'values') && isBlank(bytes[at - 1]!, 41)) {
      const open = skipBlanks(bytes, at + 6, end)
      if (bytes[open] === 40) return open
    }
  }
  return -1
}

/** Parses the head of a statement. */
export function insertHead(text: string): InsertHead {
  const statement = parsedHead(text)
  return { text, statement }
}

function parsedHead(text: string): Insert | null {
  try {
    // As many NULLs as there are named columns.
    const statement = parseStatement(`${text}(${text.replace(/[^,]/g, '').replaceAll(',', 'null,')}null)`)
    if (statement.kind !== 'insert' || statement.source.kind !== 'rows' || statement.batch !== null) return null
    const [row, second] = statement.source.rows
    return row?.position === text.length && second === undefined ? statement : null
  } catch (error) {
    if (error instanceof SqlError) return null
    throw error
  }
}

/** Progress through a list of tuples. */
interface TupleRun {
  readonly bytes: Buffer
  at: number
  readonly end: number
  rows: number
}

/** Destination of tuples. */
interface TupleSink {
  readonly targets: InsertTargets
  readonly collector: RowCollector
  readonly written: WrittenRows
}

/**
 * Adds the tuples from `at` on and returns their number; returns -1 and adds nothing when the parser has to decide.
 * Returns a promise for many tuples and yields to the event loop in between.
 */
export function collectLiterals(bytes: Buffer, at: number, end: number, sink: TupleSink): number | Promise<number> {
  const { collector } = sink
  const run: TupleRun = { bytes, at, end, rows: 0 }
  const mark = collector.mark()
  const settle = (plain: boolean): number => {
    if (plain) return run.rows
    collector.backTo(mark)
    return -1
  }
  if (end - at <= turnBytes) return settle(collectTuples(run, end, sink))
  return collectInTurns(run, sink).then(settle)
}

async function collectInTurns(run: TupleRun, sink: TupleSink): Promise<boolean> {
  while (run.at < run.end) {
    if (!collectTuples(run, run.at + turnBytes, sink) && !collectWritten(run, sink)) return false
    await yieldToEventLoop()
  }
  return true
}

/** Lets the parser handle some tuples; false when it needs the whole statement. */
function collectWritten(run: TupleRun, { written }: TupleSink): boolean {
  const { bytes, at, end } = run
  const close = bytes[at] === 40 ? windowEnd(bytes, at, end) : -1
  if (close < 0) return false
  assert(close <= end, 'P1: tuples are taken from the statement alone')
  const next = afterTuple(bytes, close, end)
  const rows = next < 0 ? -1 : written.collect(bytes.toString('utf8', at, close))
  run.rows += Math.max(0, rows)
  run.at = next
  return rows >= 0
}

/** Adds tuples that start before `until`; false when one is not plain or does not fit. */
function collectTuples(run: TupleRun, until: number, { targets, collector }: TupleSink): boolean {
  const { bytes, end } = run
  const { columns, key, version } = targets
  while (run.at < end) {
    if (run.at >= until) return true
    if (bytes[run.at] !== 40) return false
    const batch = collector.batch(version.schema.id, key, columns)
    const close = collectTuple(bytes, run.at, end, batch.columns)
    const next = close < 0 ? -1 : afterTuple(bytes, close, end)
    if (next < 0) {
      for (const column of batch.columns) column.truncate(batch.rows)
      return false
    }
    batch.rows++
    run.rows++
    run.at = next
  }
  return true
}

/** Offset of the next tuple, or the end; -1 when neither follows. */
function afterTuple(bytes: Buffer, close: number, end: number): number {
  const at = skipBlanks(bytes, close, end)
  const isLast = at >= end || bytes[at] === 59
  if (!isLast && bytes[at] !== 44) return -1
  const next = skipBlanks(bytes, at + 1, end)
  // Nothing may follow the last tuple, and a tuple must follow a comma.
  return isLast === next >= end ? next : -1
}

/** Returns the offset after the tuple; -1 when it is not plain or does not fit. */
function collectTuple(bytes: Buffer, open: number, end: number, columns: readonly ColumnAppender[]): number {
  try {
    return plainTuple(bytes, open, end, columns)
  } catch (error) {
    if (error instanceof SqlError) return -1
    throw error
  }
}

function plainTuple(bytes: Buffer, open: number, end: number, columns: readonly ColumnAppender[]): number {
  let at = open
  for (let index = 0; index < columns.length; index++) {
    if (bytes[at] !== (index === 0 ? 40 : 44)) return -1
    at++
    if (bytes[at] === 32) at++
    at = collectValue(bytes, skipBlanks(bytes, at, end), end, nonNull(columns[index]))
    if (at < 0) return -1
    at = skipBlanks(bytes, at, end)
    if (at >= end) return -1
  }
  return bytes[at] === 41 ? at + 1 : -1
}

/** Returns the offset after the literal; -1 when it is not plain or does not fit the column. */
function collectValue(bytes: Buffer, at: number, end: number, column: ColumnAppender): number {
  const byte = at < end ? bytes[at]! : 0
  if (byte === quote) return collectText(bytes, at + 1, end, column)
  if ((byte >= 48 && byte <= 57) || byte === 45) return collectNumber(bytes, at, end, column)
  if (isWord(bytes, at, end, 'null')) {
    column.missing()
    return at + 4
  }
  if (isWord(bytes, at, end, 'true')) return column.plainBoolean(true) ? at + 4 : -1
  return isWord(bytes, at, end, 'false') && column.plainBoolean(false) ? at + 5 : -1
}

function collectText(bytes: Buffer, start: number, end: number, column: ColumnAppender): number {
  let close = start
  while (close < end && bytes[close] !== quote) close++
  if (close >= end) return -1
  if (close + 1 < end && bytes[close + 1] === quote) return collectEscaped(bytes, start, end, column)
  if (!column.literal(bytes, start, close)) return -1
  return bytes[close + 1] === 58 ? afterCast(bytes, close + 1, end, column) : close + 1
}

/** Reduces doubled quotes. */
function collectEscaped(bytes: Buffer, start: number, end: number, column: ColumnAppender): number {
  let close = start
  for (; ; close += 2) {
    close = bytes.indexOf(quote, close)
    if (close < 0 || close >= end) return -1
    if (close + 1 >= end || bytes[close + 1] !== quote) break
  }
  const text = Buffer.from(bytes.toString('latin1', start, close).replaceAll("''", "'"), 'latin1')
  return column.literal(text, 0, text.length) ? close + 1 : -1
}

/** Skips `::timestamp`, which is redundant for a TIMESTAMP column. */
function afterCast(bytes: Buffer, at: number, end: number, { column }: ColumnAppender): number {
  if (bytes[at + 1] !== 58 || !isWord(bytes, at + 2, end, 'timestamp') || column.type.name !== 'TIMESTAMP') return -1
  return at + 11
}

function collectNumber(bytes: Buffer, start: number, end: number, column: ColumnAppender): number {
  const negative = bytes[start] === 45
  const first = negative ? start + 1 : start
  let value = 0
  let at = digitsFrom(bytes, first, end)
  const whole = at - first
  if (whole === 0 || whole > digitsExact + 1) return -1
  for (let index = first; index < at; index++) value = value * 10 + bytes[index]! - 48
  // Up to 2^53, sixteen digits are exact.
  if (value > Number.MAX_SAFE_INTEGER) return -1
  if (bytes[at] !== 46) return column.plainNumber(negative ? -value : value) ? at : -1
  const point = at
  at = digitsFrom(bytes, point + 1, end)
  const decimals = at - point - 1
  if (decimals === 0 || whole + decimals > digitsExact) return -1
  for (let index = point + 1; index < at; index++) value = value * 10 + bytes[index]! - 48
  value /= powersOfTen[decimals]!
  return column.plainDouble(negative ? -value : value) ? at : -1
}

function digitsFrom(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && bytes[at]! >= 48 && bytes[at]! <= 57) at++
  return at
}

function skipBlanks(bytes: Uint8Array, start: number, end: number): number {
  let at = start
  while (at < end && isBlank(bytes[at]!, 32)) at++
  return at
}

/** Also accepts `other`. */
function isBlank(byte: number, other: number): boolean {
  return byte === 32 || byte === 10 || byte === 13 || byte === 9 || byte === other
}

/** Matches a keyword in any case, not followed by a letter, digit or dot. */
function isWord(bytes: Uint8Array, start: number, end: number, word: string): boolean {
  if (start + word.length > end) return false
  for (let index = 0; index < word.length; index++) {
    if ((bytes[start + index]! | 32) !== word.charCodeAt(index)) return false
  }
  const next = start + word.length < end ? bytes[start + word.length]! : 32
  return isBlank(next, 44) || next === 40 || next === 41
}
