// Builds line protocol value by value in one growing buffer. Symbols (tags) precede fields in a line but may arrive in
// any order, so fields are collected in a second buffer until the line ends.
//
//   begin(table) (symbol | text | long | ...)* end(timestamp)      one row, ended by \n
//   begin(table) ... cancel()                                      nothing
//
// Names and strings are escaped here. A newline within a string is escaped by a backslash, so each row is one line.

import { BadRecordError } from './bad-record.js'

const firstBytes = 64 * 1024

/** A growing byte buffer. The view is valid until the next write. */
class ByteText {
  bytes = Buffer.allocUnsafe(firstBytes)
  length = 0

  room(bytes: number): void {
    if (this.length + bytes <= this.bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.bytes.length * 2, this.length + bytes))
    this.bytes.copy(grown, 0, 0, this.length)
    this.bytes = grown
  }

  text(text: string): void {
    this.room(text.length * 3)
    this.length += this.bytes.write(text, this.length)
  }

  append(bytes: Uint8Array): void {
    this.room(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }
}

const namesMax = 10_000
/** Type bytes of a binary value. */
const binaryArray = 14
const arrayOfDoubles = 10
const nonFinite = /[^0-9.eE+-]/

export class LineText {
  readonly #lines = new ByteText()
  readonly #fields = new ByteText()
  readonly #names = new Map<string, string>()
  #start = 0
  #open = false
  #symbols = 0

  get length(): number {
    return this.#lines.length
  }

  /** Whether the current row has any. */
  get hasColumns(): boolean {
    return this.#fields.length > 0 || this.#symbols > 0
  }

  begin(table: string): void {
    this.#open = true
    this.#start = this.#lines.length
    this.#fields.length = 0
    this.#symbols = 0
    this.#lines.text(this.#name(table))
  }

  symbol(name: string, text: string): void {
    if (text === '') return
    this.#symbols++
    this.#lines.text(`,${this.#name(name)}=${escapeWord(text)}`)
  }

  text(name: string, text: string): void {
    this.#field(name, `"${escapeText(text)}"`)
  }

  /** Digits with an optional sign, within the range of int64. */
  long(name: string, digits: string): void {
    this.#field(name, `${digits}i`)
  }

  /** A decimal number as text, which the server parses exactly. */
  double(name: string, text: string): void {
    this.#field(name, nonFinite.test(text) ? nonFiniteText(text) : text)
  }

  boolean(name: string, value: boolean): void {
    this.#field(name, value ? 't' : 'f')
  }

  timestamp(name: string, micros: bigint): void {
    this.#field(name, `${micros}t`)
  }

  /** An array of doubles in row-major order. */
  array(name: string, shape: readonly number[], values: readonly number[]): void {
    this.#field(name, '=')
    const fields = this.#fields
    fields.room(8 + shape.length * 4 + values.length * 8)
    const { bytes } = fields
    fields.length = bytes.writeUInt8(binaryArray, fields.length)
    fields.length = bytes.writeUInt8(arrayOfDoubles, fields.length)
    fields.length = bytes.writeUInt8(shape.length, fields.length)
    for (const size of shape) fields.length = bytes.writeUInt32LE(size, fields.length)
    for (const value of values) fields.length = bytes.writeDoubleLE(value, fields.length)
  }

  /** `timestamp`: digits with the suffix t (microseconds) or n (nanoseconds); empty: the time of arrival. */
  end(timestamp: string): void {
    const lines = this.#lines
    if (!this.hasColumns) {
      this.cancel()
      throw new BadRecordError('the record has no column')
    }
    if (this.#fields.length > 0) {
      lines.text(' ')
      lines.append(this.#fields.bytes.subarray(0, this.#fields.length))
    }
    lines.text(timestamp === '' ? '\n' : ` ${timestamp}\n`)
    this.#open = false
  }

  /** Discards the current row. */
  cancel(): void {
    if (this.#open) this.#lines.length = this.#start
    this.#open = false
  }

  /** Truncates to `length`, which may discard whole lines. */
  cutTo(length: number): void {
    this.#lines.length = length
    this.#open = false
  }

  /** Appends complete, terminated lines. */
  append(lines: Uint8Array): void {
    this.#lines.append(lines)
  }

  /** Appends lines as they were received. */
  raw(lines: Uint8Array): void {
    this.#lines.append(lines)
    if (lines.at(-1) !== 10) this.#lines.text('\n')
  }

  /** Returns a copy of the lines so far and starts anew. */
  take(): Uint8Array {
    const taken = new Uint8Array(this.#lines.bytes.subarray(0, this.#lines.length))
    this.#lines.length = 0
    return taken
  }

  #field(name: string, value: string): void {
    const fields = this.#fields
    fields.text(fields.length === 0 ? `${this.#name(name)}=${value}` : `,${this.#name(name)}=${value}`)
  }

  #name(name: string): string {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    if (this.#names.size >= namesMax) this.#names.clear()
    const escaped = escapeWord(name)
    this.#names.set(name, escaped)
    return escaped
  }
}

/** Escapes a name or symbol. */
export function escapeWord(text: string): string {
  return /[\\ ,=\n\r]/.test(text) ? text.replace(/[\\ ,=\n\r]/g, '\\$&') : text
}

function escapeText(text: string): string {
  return /["\\\n\r]/.test(text) ? text.replace(/["\\\n\r]/g, '\\$&') : text
}

function nonFiniteText(text: string): string {
  if (text === 'NaN' || text === 'Infinity' || text === '-Infinity') return text
  throw new BadRecordError(`not a number: ${text}`)
}
