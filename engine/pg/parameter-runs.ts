// Parameters of many rows on their way into one column: a loop for each form that drivers send, so that nothing is asked
// again for each value. A loop ends before the first value that is not simple, which goes the general way of
// column-appender.ts; both give the same, and test/engine/pg holds them together.

import type { FixedBuilder } from './fixed-builder.js'
import { scanDecimal, scanInteger, scanTimestamp } from './scan-text.js'
import type { SymbolBuilder, TextBuilder } from './text-builder.js'
import { isText } from './text-builder.js'

/** Values row by row, each row as wide as the next: value `column` of a row is at row * width + column. */
export interface ValueRun {
  readonly bytes: Buffer
  /** Of those bytes. */
  readonly view: DataView
  readonly starts: Int32Array
  /** Negative for NULL. */
  readonly ends: Int32Array
  readonly width: number
}

/** Answers the row that it could not take. */
type Taking<Target> = (run: ValueRun, column: number, from: number, rows: number, target: Target) => number

const twoTo32 = 2 ** 32
const exactMax = 2 ** 53

export const takeDoubles: Taking<FixedBuilder> = ({ view, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { doubles } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const start = starts[place] as number
    if ((ends[place] as number) - start !== 8) break
    const value = view.getFloat64(start)
    if (Number.isNaN(value)) break
    doubles[at++] = value
  }
  target.rows = at
  return row
}

export const takeLongs: Taking<FixedBuilder> = ({ view, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width, at++) {
    const start = starts[place] as number
    if ((ends[place] as number) - start !== 8) break
    words[at * 2] = view.getInt32(start + 4)
    words[at * 2 + 1] = view.getInt32(start)
  }
  target.rows = at
  return row
}

/** The smallest one is NULL. */
export const takeInts: Taking<FixedBuilder> = ({ view, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const start = starts[place] as number
    if ((ends[place] as number) - start !== 4) break
    const value = view.getInt32(start)
    if (value === -(2 ** 31)) break
    words[at++] = value
  }
  target.rows = at
  return row
}

/** INT parameters of a LONG column. */
export const takeWideInts: Taking<FixedBuilder> = ({ view, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width, at++) {
    const start = starts[place] as number
    if ((ends[place] as number) - start !== 4) break
    const value = view.getInt32(start)
    words[at * 2] = value
    words[at * 2 + 1] = value >> 31
  }
  target.rows = at
  return row
}

/** Texts of times from 1970 on. */
export const takeTimes: Taking<FixedBuilder> = ({ bytes, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width, at++) {
    const micros = scanTimestamp(bytes, starts[place] as number, ends[place] as number)
    if (!(micros >= 0 && micros < exactMax)) break
    words[at * 2] = micros | 0
    words[at * 2 + 1] = Math.floor(micros / twoTo32)
  }
  target.rows = at
  return row
}

/** Texts of up to 15 digits, into LONG. */
export const takeWholes: Taking<FixedBuilder> = ({ bytes, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width, at++) {
    const value = scanInteger(bytes, starts[place] as number, ends[place] as number)
    if (Number.isNaN(value)) break
    words[at * 2] = value | 0
    words[at * 2 + 1] = Math.floor(value / twoTo32)
  }
  target.rows = at
  return row
}

/** Texts of up to 15 digits, into DOUBLE. */
export const takeDecimals: Taking<FixedBuilder> = ({ bytes, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { doubles } = target
  let at = target.rows
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const value = scanDecimal(bytes, starts[place] as number, ends[place] as number)
    if (Number.isNaN(value)) break
    doubles[at++] = value
  }
  target.rows = at
  return row
}

export const takeTexts: Taking<TextBuilder> = ({ bytes, starts, ends, width }, column, from, rows, target) => {
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const end = ends[place] as number
    if (end < 0 || !target.appendAscii(bytes, starts[place] as number, end)) break
  }
  return row
}

export const takeSymbols: Taking<SymbolBuilder> = ({ bytes, starts, ends, width }, column, from, rows, target) => {
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const start = starts[place] as number
    const end = ends[place] as number
    if (end < 0 || !isText(bytes, start, end)) break
    target.append(bytes, start, end)
  }
  return row
}
