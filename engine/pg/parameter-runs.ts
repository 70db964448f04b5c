// Parameters of many rows on their way into one column: a loop for each form that drivers send, so that nothing is asked
// again for each value. A loop ends before the first value that is not simple, which goes the general way of
// column-appender.ts; both give the same, and test/engine/pg holds them together.

import type { FixedBuilder } from './fixed-builder.js'
import { minuteBytes, scanDecimal, scanInteger, scanSeconds, scanTimestamp } from './scan-text.js'
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

/** Texts of times from 1970 on. Of those in one minute only the first one is read whole. */
export const takeTimes: Taking<FixedBuilder> = ({ bytes, view, starts, ends, width }, column, from, rows, target) => {
  target.demand(rows - from)
  const { words } = target
  let at = target.rows
  let row = from
  let known = -1
  let minuteMicros = 0
  for (let place = from * width + column; row < rows; row++, place += width, at++) {
    const start = starts[place] as number
    const end = ends[place] as number
    let micros: number
    if (known >= 0 && end - start > minuteBytes && isSameMinute(view, start, known)) {
      micros = minuteMicros + scanSeconds(bytes, start + minuteBytes, end)
    } else {
      micros = scanTimestamp(bytes, start, end)
      known = end - start > minuteBytes ? start : -1
      minuteMicros = micros - (micros % 60_000_000)
    }
    if (!(micros >= 0 && micros < exactMax)) break
    words[at * 2] = micros | 0
    words[at * 2 + 1] = Math.floor(micros / twoTo32)
  }
  target.rows = at
  return row
}

/** Of two texts that are long enough. */
function isSameMinute(view: DataView, at: number, known: number): boolean {
  return (
    view.getInt32(at + 12) === view.getInt32(known + 12) &&
    view.getInt32(at + 8) === view.getInt32(known + 8) &&
    view.getInt32(at + 4) === view.getInt32(known + 4) &&
    view.getInt32(at) === view.getInt32(known)
  )
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

export const takeTexts: Taking<TextBuilder> = ({ bytes, view, starts, ends, width }, column, from, rows, target) => {
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const end = ends[place] as number
    if (end < 0 || !target.appendAscii(bytes, view, starts[place] as number, end)) break
  }
  return row
}

/** Most symbols are short, and few: these are known by two words. */
export const takeSymbols: Taking<SymbolBuilder> = (
  { bytes, view, starts, ends, width },
  column,
  from,
  rows,
  target,
) => {
  let row = from
  for (let place = from * width + column; row < rows; row++, place += width) {
    const start = starts[place] as number
    const end = ends[place] as number
    const length = end - start
    const isShort = length >= 4 && length <= 8
    if (isShort && target.appendLate(view.getInt32(start), view.getInt32(end - 4), length)) continue
    if (end < 0 || !isText(bytes, start, end)) break
    target.append(bytes, start, end)
    if (isShort) target.rememberLate(view.getInt32(start), view.getInt32(end - 4), length)
  }
  return row
}
