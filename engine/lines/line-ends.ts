// Finds the ends of lines of line protocol. A newline ends a line unless it is part of a value:
//
//   - after an odd number of backslashes (symbols that span lines);
//   - within a quoted value: from a `"` right after the `=` of a field to the next unescaped `"`;
//   - within a binary value of protocol version 2 or 3:
//
//       double   '=' '=' 0x10 | 8 bytes
//       array    '=' '=' 0x0E | element type u8 (10 = double) | dimensions u8 | a u32 length for each | the doubles
//       decimal  '=' '=' 0x17 | scale u8 | bytes u8 | the unscaled number, most significant byte first
//
//     (The first '=' separates name and value, the second means "binary".)
//
// A quoted value is malformed if it is not closed within the line limit, or if anything but a comma, a blank or the end
// of the line follows the closing quote. Then its line ends at the next newline, whatever that newline is part of, so
// that a stray quote does not swallow the following lines. A comment (a line that begins with `#`) contains no values.
//
// The general parser and the stage that cuts streams into blocks share these rules, so both see the same lines.
//
// Fast path: text contains no bytes below 0x20 except line ends and tabs, so a memchr-like search rules out binary
// values, and the last quote before a newline shows whether that newline is quoted, since only a quote after `=`
// opens a value. Only ambiguous blocks are scanned line by line.

import { assert } from '../base/assert.js'

const newline = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const quoteMark = 0x22
const hash = 0x23
const comma = 0x2c
const equals = 0x3d
const backslash = 0x5c
const doubleMark = 0x10
const arrayMark = 0x0e
const decimalMark = 0x17
const markBytes = 3
const doubleBytes = 8
/** Largest decimal, including scale and length. */
const decimalBytesMax = 257
const never = Number.POSITIVE_INFINITY

/** Results of `afterQuoted` that are not positions. */
const quotedResults = { incomplete: -1, malformed: 0 } as const

export interface LineEndLimits {
  /** A quoted value that is not closed within this many bytes of its line is malformed. */
  readonly lineBytesMax: number
  /** Nothing follows the bytes, so an unclosed quoted value is malformed. */
  readonly final: boolean
}

export interface LineEnds {
  /** Offset after the last complete line; 0: no line is complete. */
  readonly end: number
  /** Whether the bytes after `end` stop within a quoted value, so that only a quote can complete that line. */
  readonly quoted: boolean
}

/** End of the last complete line. The bytes must start at the start of a line. */
export function lastLineEnd(bytes: Buffer, limits: LineEndLimits): LineEnds {
  const at = bytes.lastIndexOf(newline)
  if (at < 0) return { end: 0, quoted: false }
  return isInDoubt(bytes, at) ? walkLines(bytes, bytes.length, limits) : { end: at + 1, quoted: false }
}

/** End of the last line within the first `most` bytes; if there is none, end of the first line. */
export function blockEnd(bytes: Buffer, most: number, limits: LineEndLimits): LineEnds {
  return walkLines(bytes, most, limits)
}

/** Offset after the newline of the line at `start`, or `end`, the end of the last block. */
export function lineEnd(bytes: Uint8Array, start: number, end: number, lineBytesMax: number): number {
  assert(start <= end, 'P2: a line does not end before its beginning')
  assert(end <= bytes.length, 'P2: a line is within its block')
  const block = bytes.subarray(start, end)
  const found = new LineScan(block, { lineBytesMax, final: true }).lineEnd(0)
  return found === null ? end : start + found
}

/**
 * Number of lines, including empty ones; null when the bytes end within a value. The last line may lack its
 * newline.
 */
export function countLines(bytes: Uint8Array, lineBytesMax: number): number | null {
  const whole = bytes.at(-1) === newline ? bytes : Buffer.concat([bytes, Buffer.of(newline)])
  const scan = new LineScan(whole, { lineBytesMax, final: false })
  let lines = 0
  for (let at = 0; bytes.length > 0 && at < whole.length; lines++) {
    const next = scan.lineEnd(at)
    if (next === null) return null
    assert(next > at, 'P1: every line moves the scan forward')
    at = next
  }
  return lines
}

/**
 * Offset after the quote that closes the value opened at `quote`, or one of `quotedResults`. `final`: nothing
 * follows `end`.
 */
export function afterQuoted(bytes: Uint8Array, quote: number, end: number, final: boolean): number {
  const closing = closingQuote(bytes, quote, end)
  if (closing >= 0) return valueEnds(bytes, closing + 1, end, final)
  return final ? quotedResults.malformed : quotedResults.incomplete
}

/** Offset of the next unescaped quote before `end`; -1: none. */
export function closingQuote(bytes: Uint8Array, quote: number, end: number): number {
  for (let at = quote + 1; at < end; at++) {
    if (bytes[at] === backslash) at++
    else if (bytes[at] === quoteMark) return at
  }
  return -1
}

/** Returns `at` if a quoted value may end there. */
function valueEnds(bytes: Uint8Array, at: number, end: number, final: boolean): number {
  const undecided = final ? at : quotedResults.incomplete
  if (at >= end) return undecided
  const byte = bytes[at]
  if (byte === comma || byte === space || byte === newline) return at
  if (byte !== carriageReturn) return quotedResults.malformed
  if (at + 1 >= end) return undecided
  return bytes[at + 1] === newline ? at : quotedResults.malformed
}

/** Whether the newline at `at`, the last one, may be part of a value. */
function isInDoubt(bytes: Buffer, at: number): boolean {
  if (bytes[at - 1] === backslash || markNear(bytes, at) || nextMark(bytes, arrayMark, 0) < never) return true
  const quote = bytes.lastIndexOf(quoteMark, at)
  if (quote < 1) return false
  const before = bytes[quote - 1]
  // A quote that does not open a value closes one, unless it is escaped or part of a binary value.
  return before === equals || before === backslash || markNear(bytes, quote)
}

/** Whether the byte at `at` may be within a double or decimal; a type byte may also belong to an earlier value. */
function markNear(bytes: Buffer, at: number): boolean {
  return markBefore(bytes, at, doubleMark, doubleBytes) || markBefore(bytes, at, decimalMark, decimalBytesMax)
}

function markBefore(bytes: Buffer, at: number, type: number, bytesMax: number): boolean {
  const from = Math.max(2, at - bytesMax)
  return from < at && nextMark(bytes.subarray(0, at), type, from) < never
}

/** Offset of the next type byte of a binary value at or after `from`; Infinity: none. */
function nextMark(bytes: Uint8Array, type: number, from: number): number {
  for (let at = bytes.indexOf(type, from); at >= 0; at = bytes.indexOf(type, at + 1)) {
    if (at >= 2 && bytes[at - 1] === equals && bytes[at - 2] === equals) return at
  }
  return never
}

/** Scans line by line; stops before the first line that ends after `most`, unless it is the first one. */
function walkLines(bytes: Buffer, most: number, limits: LineEndLimits): LineEnds {
  const scan = new LineScan(bytes, limits)
  let end = 0
  for (;;) {
    const next = scan.lineEnd(end)
    if (next === null) return { end, quoted: scan.quoted }
    assert(next > end, 'P1: every line moves the scan forward')
    if (next > most && end > 0) return { end, quoted: false }
    end = next
  }
}

/** Finds line ends in one pass: each byte is searched once per kind of value. */
class LineScan {
  readonly #bytes: Uint8Array
  readonly #limits: LineEndLimits
  #quote = -1
  #double = -1
  #array = -1
  #decimal = -1
  /** Whether the last search for a line end stopped within a quoted value. */
  quoted = false

  constructor(bytes: Uint8Array, limits: LineEndLimits) {
    this.#bytes = bytes
    this.#limits = limits
  }

  /** Offset after the newline that ends the line at `start`; null when it has not arrived. */
  lineEnd(start: number): number | null {
    const bytes = this.#bytes
    const comment = bytes[start] === hash
    this.quoted = false
    let from = start
    for (;;) {
      const at = bytes.indexOf(newline, from)
      if (at < 0) {
        this.quoted = !comment && this.#stopsQuoted(start, from)
        return null
      }
      const value = comment ? never : this.#nextValue(from)
      if (value > at) {
        if (!isHidden(bytes, from, at)) return at + 1
        from = at + 1
        continue
      }
      const after = this.#afterValue(start, value)
      if (after === quotedResults.malformed) return bytes.indexOf(newline, value) + 1
      if (after === quotedResults.incomplete || after > bytes.length) return null
      from = after
    }
  }

  /** Offset of the next quote or binary value at or after `from`. */
  #nextValue(from: number): number {
    const bytes = this.#bytes
    if (this.#quote < from) this.#quote = indexOrNever(bytes, quoteMark, from)
    if (this.#double < from) this.#double = nextMark(bytes, doubleMark, from)
    if (this.#array < from) this.#array = nextMark(bytes, arrayMark, from)
    if (this.#decimal < from) this.#decimal = nextMark(bytes, decimalMark, from)
    return Math.min(this.#quote, this.#double, this.#array, this.#decimal)
  }

  #afterValue(start: number, value: number): number {
    const bytes = this.#bytes
    if (bytes[value] !== quoteMark) return afterBinary(bytes, value)
    if (!opensValue(bytes, start, value)) return value + 1
    const end = Math.min(bytes.length, start + this.#limits.lineBytesMax)
    const after = afterQuoted(bytes, value, end, this.#limits.final || end < bytes.length)
    this.quoted = after === quotedResults.incomplete
    return after
  }

  /** Whether a line without a newline stops within a quoted value. */
  #stopsQuoted(start: number, begin: number): boolean {
    for (let from = begin; ; ) {
      const value = this.#nextValue(from)
      if (value === never) return false
      const after = this.#afterValue(start, value)
      if (after <= 0 || after > this.#bytes.length) return after === quotedResults.incomplete
      from = after
    }
  }
}

function indexOrNever(bytes: Uint8Array, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at < 0 ? never : at
}

/** A quote opens a value after the `=` of a field. Fields start after the line's first unescaped blank. */
function opensValue(bytes: Uint8Array, start: number, quote: number): boolean {
  if (quote < 1 || bytes[quote - 1] !== equals || isHidden(bytes, start, quote - 1)) return false
  for (let at = start; at < quote; at++) {
    if (bytes[at] === backslash) at++
    else if (bytes[at] === space) return true
  }
  return false
}

/** Whether the byte is escaped: by an odd number of backslashes, none of them before `from`. */
function isHidden(bytes: Uint8Array, from: number, hidden: number): boolean {
  let at = hidden
  while (at > from && bytes[at - 1] === backslash) at--
  return (hidden - at) % 2 === 1
}

/** Offset after the binary value whose type byte is at `mark`; beyond the bytes when it is incomplete. */
function afterBinary(bytes: Uint8Array, mark: number): number {
  if (bytes[mark] === doubleMark) return mark + 1 + doubleBytes
  if (bytes[mark] === decimalMark) return mark + markBytes + (bytes[mark + 2] ?? bytes.length)
  const dimensions = bytes[mark + 2]
  if (dimensions === undefined) return bytes.length + 1
  const data = mark + markBytes + dimensions * 4
  if (data > bytes.length) return data
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  let elements = dimensions === 0 ? 0 : 1
  for (let at = mark + markBytes; at < data; at += 4) elements *= view.getUint32(at, true)
  return data + elements * doubleBytes
}
