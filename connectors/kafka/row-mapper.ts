// Values of a record to columns of a row: what is a symbol, a double, a timestamp, and which value is the designated
// timestamp. Readers of the formats name each value by its path; parts of a path are joined with `_`.

import { BadRecordError } from './bad-record.js'
import type { LineText } from './line-text.js'
import type { MappingOptions } from './options.js'
import { timestampOfNumber, timestampOfText } from './timestamps.js'

/** What a server does not take in the name of a column. */
const forbidden = new Set('?.,\'"\\/:)(+*%~-\u007f\ufeff')
const lastControl = 0x0f
const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const namesMax = 10_000

/** What happens to the values of one field. */
export type FieldAction = 'value' | 'symbol' | 'double' | 'time' | 'timestamp' | 'piece'

export interface Field {
  /** As written: compared with the names of the options. */
  readonly path: string
  /** The column. */
  readonly column: string
  readonly action: FieldAction
}

export class RowMapper {
  readonly #lines: LineText
  readonly #options: MappingOptions
  readonly #fields = new Map<string, Field>()
  readonly #format: string
  /** Of the row under way. */
  #timestamp = ''
  readonly #pieces: (string | undefined)[] = []

  constructor(lines: LineText, options: MappingOptions) {
    this.#lines = lines
    this.#options = options
    this.#format = options.timestampFormat
  }

  begin(table: string): void {
    this.#timestamp = ''
    this.#pieces.length = 0
    this.#lines.begin(table)
  }

  /** `nativeMs`: the timestamp of the Kafka record. */
  end(nativeMs: string): void {
    const { timestampFields, timestampNative } = this.#options
    if (timestampFields.length > 1) this.#timestamp = this.#composed()
    if (timestampNative) this.#timestamp = timestampOfNumber(nativeMs, 'millis')
    this.#lines.end(this.#timestamp)
  }

  field(path: string): Field {
    const known = this.#fields.get(path)
    if (known !== undefined) return known
    if (this.#fields.size >= namesMax) this.#fields.clear()
    const column = columnName(path)
    const field = { path, column, action: this.#actionOf(path, column) }
    this.#fields.set(path, field)
    return field
  }

  #actionOf(path: string, column: string): FieldAction {
    const { timestampFields, symbols, doubles, timestampStringFields } = this.#options
    const named = (names: readonly string[]): boolean => names.includes(path) || names.includes(column)
    if (timestampFields.length > 1 && named(timestampFields)) return 'piece'
    if (named(timestampFields)) return 'timestamp'
    if (named(symbols)) return 'symbol'
    if (named(timestampStringFields)) return 'time'
    return named(doubles) ? 'double' : 'value'
  }

  text(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = `${timestampOfText(text, this.#format)}t`
    else if (action === 'piece') this.#piece(path, text)
    else if (action === 'symbol') this.#lines.symbol(column, text)
    else if (action === 'time') this.#lines.timestamp(column, timestampOfText(text, this.#format))
    else this.#lines.text(column, text)
  }

  /** A number in its decimal text. An integer beyond 64 bits is a double. */
  number(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = timestampOfNumber(text, this.#options.timestampUnits)
    else if (action === 'piece') this.#piece(path, text)
    else if (action === 'symbol') this.#lines.symbol(column, text)
    else if (action === 'time') this.#lines.timestamp(column, this.#micros(text))
    else if (action === 'double' || !isLong(text)) this.#lines.double(column, text)
    else this.#lines.long(column, text)
  }

  /** A number that is a double whatever its text looks like. */
  double(path: string, value: number): void {
    const { action, column } = this.field(path)
    if (action === 'value' || action === 'double') this.#lines.double(column, String(value))
    else this.number(path, String(value))
  }

  boolean(path: string, value: boolean): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') throw new BadRecordError(`no timestamp: ${value} [field=${path}]`)
    if (action === 'piece') this.#piece(path, String(value))
    else if (action === 'symbol') this.#lines.symbol(column, String(value))
    else this.#lines.boolean(column, value)
  }

  /** A point in time whose type says so. */
  instant(path: string, micros: bigint): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = `${micros}t`
    else this.#lines.timestamp(column, micros)
  }

  /** A text that is a symbol, unless the options say other. */
  symbol(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'value') this.#lines.symbol(column, text)
    else this.text(path, text)
  }

  /** A number that is a timestamp. */
  time(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'value') this.#lines.timestamp(column, this.#micros(text))
    else this.number(path, text)
  }

  /** A text that is a timestamp. */
  timeText(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'value') this.#lines.timestamp(column, timestampOfText(text, this.#format))
    else this.text(path, text)
  }

  missing(path: string): void {
    const { action } = this.field(path)
    if (action !== 'timestamp' && action !== 'piece') return
    throw new BadRecordError(`the timestamp is null [field=${path}]`)
  }

  array(path: string, shape: readonly number[], values: readonly number[]): void {
    const { action, column } = this.field(path)
    if (action === 'value' || action === 'double') this.#lines.array(column, shape, values)
    else this.unsupported(path, 'an array where one value is expected')
  }

  /** What no column can hold: left out, or the record is a bad one. */
  unsupported(path: string, type: string): void {
    if (this.#options.skipUnsupported) return
    throw new BadRecordError(`unsupported type: ${type} [field=${path}]`)
  }

  #micros(text: string): bigint {
    return BigInt(timestampOfNumber(text, this.#options.timestampUnits).slice(0, -1)) / 1000n
  }

  #piece(path: string, text: string): void {
    const { column } = this.field(path)
    const index = this.#options.timestampFields.findIndex((name) => name === path || name === column)
    this.#pieces[index] = text
  }

  #composed(): string {
    const { timestampFields } = this.#options
    const texts = timestampFields.map((name, index) => {
      const text = this.#pieces[index]
      if (text === undefined) throw new BadRecordError(`a part of the timestamp is missing [field=${name}]`)
      return text
    })
    return `${timestampOfText(texts.join(''), this.#format)}t`
  }
}

function columnName(path: string): string {
  const isBad = (character: string): boolean => character.charCodeAt(0) <= lastControl || forbidden.has(character)
  return Array.from(path, (character) => (isBad(character) ? '_' : character)).join('')
}

function isLong(text: string): boolean {
  if (!/^-?[0-9]+$/.test(text)) return false
  if (text.length < 19) return true
  const value = BigInt(text)
  return value > int64Min && value <= int64Max
}
