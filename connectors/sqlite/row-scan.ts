// Scans one row of an INSERT into byte ranges: `(1,-2.5e3,'it''s',X'00ff',NULL,unistr('\u000a'))`. Values are not
// decoded yet, so scanning allocates nothing.
//
// Layout of a scanned row: for each value its kind, its start and its end, without quotes.

import { isBlank, quotedEnd, skipBlanks } from './source.js'

export const valueKinds = {
  null: 0,
  integer: 1,
  real: 2,
  text: 3,
  /** A string with doubled quotes. */
  quotedText: 4,
  /** Hexadecimal digits. */
  blob: 5,
  /** Anything that must be evaluated: replace(..), unistr(..), `..` || char(10), CAST(..). */
  expression: 6,
} as const

const valuesMax = 4096

export class ScannedRow {
  count = 0
  readonly kinds = new Uint8Array(valuesMax)
  readonly begins = new Int32Array(valuesMax)
  readonly ends = new Int32Array(valuesMax)
}

/** A malformed row: the position and what is wrong. */
export class ScanError extends Error {
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.name = 'ScanError'
    this.offset = offset
  }
}

/**
 * Scans the row whose `(` is at `from`; returns the offset after its `)`, or -1 when more bytes are needed. Throws
 * ScanError.
 */
export function scanRow(bytes: Buffer, from: number, row: ScannedRow): number {
  const { kinds, begins, ends } = row
  let at = from + 1
  let count = 0
  for (;;) {
    let byte = bytes[at]
    if (byte !== undefined && (isBlank(byte) || byte === 0x2f)) {
      at = skipBlanks(bytes, at)
      if (at < 0) return -1
      byte = bytes[at]
    }
    if (byte === undefined) return -1
    if (count === valuesMax) throw new ScanError(`a row has too many values [limit=${valuesMax}]`, at)
    begins[count] = at
    const kind = kindAt(bytes, at, byte)
    let end = kind === valueKinds.expression ? at : simpleEnd(bytes, at, kind, row, count)
    if (end < 0) return -1
    const next = bytes[end]
    if (next === undefined) return -1
    if (kind !== valueKinds.expression && (next === 0x2c || next === 0x29)) {
      if (kinds[count] === valueKinds.text || kinds[count] === valueKinds.quotedText) {
        begins[count] = at + 1
        ends[count] = end - 1
      } else if (kind === valueKinds.blob) {
        begins[count] = at + 2
        ends[count] = end - 1
      } else ends[count] = end
    } else {
      kinds[count] = valueKinds.expression
      end = expressionEnd(bytes, at)
      if (end < 0) return -1
      begins[count] = at
      ends[count] = end
    }
    count++
    at = end + 1
    if (bytes[end] === 0x29) {
      row.count = count
      return at
    }
  }
}

/** Kind by the first byte; the rest of the value may contradict it. */
function kindAt(bytes: Buffer, at: number, byte: number): number {
  if (byte === 0x27) return valueKinds.text
  if ((byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e) return valueKinds.integer
  if ((byte | 0x20) === 0x6e) return valueKinds.null
  if ((byte | 0x20) === 0x78 && bytes[at + 1] === 0x27) return valueKinds.blob
  return valueKinds.expression
}

/** Records the kind and returns where the value ends; the caller checks what follows. */
function simpleEnd(bytes: Buffer, at: number, kind: number, { kinds }: ScannedRow, count: number): number {
  kinds[count] = kind
  if (kind === valueKinds.text) return textEnd(bytes, at, kinds, count)
  if (kind === valueKinds.blob) {
    const end = bytes.indexOf(0x27, at + 2)
    return end < 0 ? -1 : end + 1
  }
  if (kind === valueKinds.null) {
    for (let index = 0; index < 4; index++) {
      const byte = bytes[at + index]
      if (byte === undefined) return -1
      if ((byte | 0x20) !== nullWord[index]) return at
    }
    return at + 4
  }
  return numberEnd(bytes, at, kinds, count)
}

const nullWord = [0x6e, 0x75, 0x6c, 0x6c]

function textEnd(bytes: Buffer, from: number, kinds: Uint8Array, count: number): number {
  const { length } = bytes
  for (let at = from + 1; at < length; at++) {
    if (bytes[at] !== 0x27) continue
    if (at + 1 >= length) return -1
    if (bytes[at + 1] !== 0x27) return at + 1
    kinds[count] = valueKinds.quotedText
    at++
  }
  return -1
}

function numberEnd(bytes: Buffer, from: number, kinds: Uint8Array, count: number): number {
  let at = from
  if (bytes[at] === 0x2d || bytes[at] === 0x2b) at++
  for (; ; at++) {
    const byte = bytes[at]
    if (byte === undefined) return -1
    if (byte >= 0x30 && byte <= 0x39) continue
    if (byte === 0x2e) kinds[count] = valueKinds.real
    else if (byte === 0x65 || byte === 0x45) {
      kinds[count] = valueKinds.real
      const sign = bytes[at + 1]
      if (sign === 0x2d || sign === 0x2b) at++
    } else return at
  }
}

/** Offset of the comma or the closing parenthesis after an expression. */
function expressionEnd(bytes: Buffer, from: number): number {
  let depth = 0
  for (let at = from; ; ) {
    const byte = bytes[at]
    if (byte === undefined) return -1
    if (byte === 0x27 || byte === 0x22) {
      at = quotedEnd(bytes, at, byte)
      if (at < 0) return -1
      continue
    }
    if (byte === 0x3b && depth === 0) throw new ScanError('a row is not terminated', at)
    if (byte === 0x28) depth++
    if (depth === 0 && (byte === 0x2c || byte === 0x29)) return at
    if (byte === 0x29) depth--
    at++
  }
}
