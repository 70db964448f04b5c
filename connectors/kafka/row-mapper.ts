// Maps the values of a record to columns of a row: decides which are symbols (dictionary-encoded strings), doubles or
// timestamps, and which one is the designated timestamp (the table's time column). Format readers identify each value
// by its path, whose parts are joined with `_`.
import { BadRecordError } from './bad-record.js'
import type { LineText } from './line-text.js'
import { type MappingOptions, recordColumns } from './options.js'
import { timestampOfNumber, timestampOfText } from './timestamps.js'

/** Characters that the server rejects in column names. */
const forbidden = new Set('?.,\'"\\/:)(+*%~-\u007f\ufeff')
const lastControl = 0x0f
const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n
const namesMax = 10_000
const recordNames: ReadonlySet<string> = new Set(Object.values(recordColumns))

/** How the values of a field are stored. */
export type FieldAction = 'value' | 'symbol' | 'double' | 'time' | 'timestamp' | 'part'

export interface Field {
  /** Unchanged path, compared with the names in the options. */
  readonly path: string
  /** Column name. */
  readonly column: string
  readonly action: FieldAction
}

export class RowMapper {
  readonly #lines: LineText
  readonly #options: MappingOptions
  readonly #fields = new Map<string, Field>()
  readonly #format: string
  /** Designated timestamp of the current row. */
  #timestamp = ''
  readonly #parts: (string | undefined)[] = []

  constructor(lines: LineText, options: MappingOptions) {
    this.#lines = lines
    this.#options = options
    this.#format = options.timestampFormat
  }

  begin(table: string): void {
    this.#timestamp = ''
    this.#parts.length = 0
    this.#lines.begin(table)
  }

  /** `nativeMs`: the timestamp of the Kafka record. */
  end(nativeMs: string): void {
    const { timestampFields, timestampNative } = this.#options
    if (timestampFields.length > 1) this.#timestamp = this.#composed()
    if (timestampNative) this.#timestamp = timestampOfNumber(nativeMs, 'millis')
    this.#lines.end(this.#timestamp)
  }

  /** Adds the columns that say from which record the row is, unless it has no others. */
  origin(topic: string, partition: number, offset: string): void {
    if (!this.#lines.hasColumns) return
    this.#lines.symbol(recordColumns.topic, topic)
    this.#lines.long(recordColumns.partition, String(partition))
    this.#lines.long(recordColumns.offset, offset)
  }

  field(path: string): Field {
    const known = this.#fields.get(path)
    if (known !== undefined) return known
    if (this.#fields.size >= namesMax) this.#fields.clear()
    const column = columnName(path)
    if (this.#options.recordColumns && recordNames.has(column.toLowerCase()))
      throw new BadRecordError(`the column has the offsets of records [field=${path}]`)
    const field = { path, column, action: this.#actionOf(path, column) }
    this.#fields.set(path, field)
    return field
  }

  #actionOf(path: string, column: string): FieldAction {
    const { timestampFields, symbols, doubles, timestampStringFields } = this.#options
    const named = (names: readonly string[]): boolean => names.includes(path) || names.includes(column)
    if (timestampFields.length > 1 && named(timestampFields)) return 'part'
    if (named(timestampFields)) return 'timestamp'
    if (named(symbols)) return 'symbol'
    if (named(timestampStringFields)) return 'time'
    return named(doubles) ? 'double' : 'value'
  }

  text(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = `${timestampOfText(text, this.#format)}t`
    else if (action === 'part') this.#part(path, text)
    else if (action === 'symbol') this.#lines.symbol(column, text)
    else if (action === 'time') this.#lines.timestamp(column, timestampOfText(text, this.#format))
    else this.#lines.text(column, text)
  }

  /** A number as decimal text. An integer that exceeds 64 bits becomes a double. */
  number(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = timestampOfNumber(text, this.#options.timestampUnits)
    else if (action === 'part') this.#part(path, text)
    else if (action === 'symbol') this.#lines.symbol(column, text)
    else if (action === 'time') this.#lines.timestamp(column, this.#micros(text))
    else if (action === 'double' || !isLong(text)) this.#lines.double(column, text)
    else this.#lines.long(column, text)
  }

  /** A number that is a double even if it looks like an integer. */
  double(path: string, value: number): void {
    const { action, column } = this.field(path)
    if (action === 'value' || action === 'double') this.#lines.double(column, String(value))
    else this.number(path, String(value))
  }

  boolean(path: string, value: boolean): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') throw new BadRecordError(`not a timestamp: ${value} [field=${path}]`)
    if (action === 'part') this.#part(path, String(value))
    else if (action === 'symbol') this.#lines.symbol(column, String(value))
    else this.#lines.boolean(column, value)
  }

  /** A timestamp, as declared by its type. */
  instant(path: string, micros: bigint): void {
    const { action, column } = this.field(path)
    if (action === 'timestamp') this.#timestamp = `${micros}t`
    else this.#lines.timestamp(column, micros)
  }

  /** A string that is a symbol unless the options say otherwise. */
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

  /** A string that is a timestamp. */
  timeText(path: string, text: string): void {
    const { action, column } = this.field(path)
    if (action === 'value') this.#lines.timestamp(column, timestampOfText(text, this.#format))
    else this.text(path, text)
  }

  missing(path: string): void {
    const { action } = this.field(path)
    if (action !== 'timestamp' && action !== 'part') return
    throw new BadRecordError(`the timestamp is null [field=${path}]`)
  }

  array(path: string, shape: readonly number[], values: readonly number[]): void {
    const { action, column } = this.field(path)
    if (action === 'value' || action === 'double') this.#lines.array(column, shape, values)
    else this.unsupported(path, 'an array where one value is expected')
  }

  /** A value that no column type can hold: skipped, or an error of the record, as the options say. */
  unsupported(path: string, type: string): void {
    if (this.#options.skipUnsupported) return
    throw new BadRecordError(`unsupported type: ${type} [field=${path}]`)
  }

  #micros(text: string): bigint {
    return BigInt(timestampOfNumber(text, this.#options.timestampUnits).slice(0, -1)) / 1000n
  }

  #part(path: string, text: string): void {
    const { column } = this.field(path)
    const index = this.#options.timestampFields.findIndex((name) => name === path || name === column)
    this.#parts[index] = text
  }

  #composed(): string {
    const { timestampFields } = this.#options
    const strings = timestampFields.map((name, index) => {
      const text = this.#parts[index]
      if (text === undefined) throw new BadRecordError(`a part of the timestamp is missing [field=${name}]`)
      return text
    })
    return `${timestampOfText(strings.join(''), this.#format)}t`
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
