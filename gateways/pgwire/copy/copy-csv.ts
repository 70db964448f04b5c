// Stage: converts CSV that the engine's own decoder does not support to the text format of COPY, which the engine
// decodes (engine/csv/shape.ts, copyText): CSV with another quote or escape, FORCE_NULL, FORCE_NOT_NULL, HEADER MATCH,
// or a single column.
//
//   in    CSV chunks of any size: delimited fields, quotes anywhere in a field, rows ended by LF, CRLF or CR
//   out   whole rows: tab-separated fields, \N for NULL, backslash escapes, rows ended by LF

import { PgError } from '../protocol/sqlstate.js'

export interface CsvForm {
  readonly delimiter: string
  readonly quote: string
  readonly quoteEscape: string
  readonly nullText: string
  /** By column: a quoted NULL string is NULL too (forceNull), or an unquoted one is not NULL (forceNotNull). */
  readonly forceNull: readonly boolean[]
  readonly forceNotNull: readonly boolean[]
}

const lf = 10
const cr = 13
const tab = 9
const backslash = 92
/** Escape letter for each byte that needs a backslash. */
const escapes: ReadonlyMap<number, number> = new Map([
  [tab, 116],
  [lf, 110],
  [cr, 114],
  [backslash, backslash],
])

export class CsvToText {
  readonly #form: CsvForm
  readonly #nullText: Buffer
  readonly #delimiter: number
  readonly #quote: number
  readonly #escape: number
  /** Complete rows, and the current one. */
  #out = Buffer.allocUnsafe(64 * 1024)
  #length = 0
  #rowStart = 0
  /** Raw bytes of the current field, without quotes. */
  #field = Buffer.allocUnsafe(1024)
  #fieldLength = 0
  #fieldIndex = 0
  #isQuoted = false
  #inQuotes = false
  /**
   * The previous byte, if its meaning depends on the next one: an escape within quotes, or a CR outside of them.
   */
  #pending: 'none' | 'escape' | 'cr' = 'none'
  #ended = false

  constructor(form: CsvForm) {
    this.#form = form
    this.#nullText = Buffer.from(form.nullText)
    this.#delimiter = form.delimiter.charCodeAt(0)
    this.#quote = form.quote.charCodeAt(0)
    this.#escape = form.quoteEscape.charCodeAt(0)
  }

  /** Returns the rows that are now complete. */
  push(chunk: Uint8Array): Buffer {
    for (let at = 0; at < chunk.length && !this.#ended; at++) {
      const byte = chunk[at]!
      if (this.#inQuotes || this.#pending === 'escape') this.#quoted(byte)
      else this.#plain(byte)
    }
    return this.#taken(this.#rowStart)
  }

  /** Returns the last row, which needs no line end. */
  end(): Buffer {
    if (this.#pending === 'escape' && this.#escape === this.#quote) this.#inQuotes = false
    if (this.#inQuotes) throw new PgError('22P04', 'unterminated CSV quoted field')
    this.#pending = 'none'
    if (this.#fieldIndex > 0 || this.#fieldLength > 0 || this.#isQuoted) this.#endRow()
    return this.#taken(this.#length)
  }

  #quoted(byte: number): void {
    if (this.#pending === 'escape') {
      this.#pending = 'none'
      if (byte === this.#quote || byte === this.#escape) {
        this.#keep(byte)
        return
      }
      // The pending byte ended the quotes, or is a literal character.
      if (this.#escape === this.#quote) {
        this.#inQuotes = false
        this.#plain(byte)
        return
      }
      this.#keep(this.#escape)
    }
    if (byte === this.#escape) this.#pending = 'escape'
    else if (byte === this.#quote) this.#inQuotes = false
    else this.#keep(byte)
  }

  #plain(byte: number): void {
    if (this.#pending === 'cr') {
      this.#pending = 'none'
      if (byte === lf) return
    }
    if (byte === this.#delimiter) this.#endField()
    else if (byte === this.#quote) {
      this.#inQuotes = true
      this.#isQuoted = true
    } else if (byte === lf || byte === cr) {
      if (byte === cr) this.#pending = 'cr'
      this.#endRow()
    } else this.#keep(byte)
  }

  #keep(byte: number): void {
    if (this.#fieldLength === this.#field.length) this.#field = Buffer.concat([this.#field], this.#field.length * 2)
    this.#field[this.#fieldLength++] = byte
  }

  #endField(): void {
    const { forceNull, forceNotNull } = this.#form
    const bytes = this.#field.subarray(0, this.#fieldLength)
    const index = this.#fieldIndex
    const mayBeNull = this.#isQuoted ? forceNull[index] === true : forceNotNull[index] !== true
    if (index > 0) this.#put(tab)
    if (mayBeNull && bytes.equals(this.#nullText)) {
      this.#put(backslash)
      this.#put(78)
    } else for (let at = 0; at < bytes.length; at++) this.#putEscaped(bytes[at]!)
    this.#fieldIndex++
    this.#fieldLength = 0
    this.#isQuoted = false
  }

  #endRow(): void {
    if (this.#isLast) {
      this.#ended = true
      this.#fieldLength = 0
      return
    }
    this.#endField()
    this.#put(lf)
    this.#fieldIndex = 0
    this.#rowStart = this.#length
  }

  /** Whether the row is the end-of-data marker of old clients: `\\.` alone. */
  get #isLast(): boolean {
    if (this.#fieldIndex > 0 || this.#isQuoted || this.#fieldLength !== 2) return false
    return this.#field[0] === backslash && this.#field[1] === 46
  }

  #putEscaped(byte: number): void {
    const escaped = escapes.get(byte)
    if (escaped !== undefined) this.#put(backslash)
    this.#put(escaped ?? byte)
  }

  #put(byte: number): void {
    if (this.#length === this.#out.length) this.#out = Buffer.concat([this.#out], this.#out.length * 2)
    this.#out[this.#length++] = byte
  }

  #taken(to: number): Buffer {
    const rows = Buffer.from(this.#out.subarray(0, to))
    this.#out.copyWithin(0, to, this.#length)
    this.#length -= to
    this.#rowStart -= Math.min(to, this.#rowStart)
    return rows
  }
}
