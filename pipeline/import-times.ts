// Chooses the designated timestamp (the table's time column) of a CSV import and determines how its values are parsed.

import {
  type CsvColumn,
  type EpochUnit,
  epochScale,
  fractionDigits,
  isNullWord,
  parseField,
  parseFileTime,
} from '../engine/engine.js'
import { dataType } from '../engine/types/column-types.js'
import { ImportError } from './import-schema.js'

/** Names of the options in the interface of the import, for error messages that suggest them. */
export interface OptionWords {
  readonly timestamp: string
  /** Option for imports without a designated timestamp. */
  readonly none: string
  readonly pattern: string
  readonly unit: string
  /** Option to ignore fields after the last column; null where there is none. */
  readonly extra: string | null
}

export const requestWords: OptionWords = {
  timestamp: 'timestamp=',
  none: 'timestamp= without a name',
  pattern: 'a pattern in the schema part ([{"name":"ts","type":"TIMESTAMP","pattern":"dd.MM.yyyy HH:mm:ss"}])',
  unit: 'unit=s, ms, us or ns',
  extra: 'skipLev=true',
}

export const copyWords: OptionWords = {
  timestamp: 'TIMESTAMP',
  none: "TIMESTAMP ''",
  pattern: "FORMAT 'dd.MM.yyyy HH:mm:ss'",
  unit: "FORMAT 'epoch_ms' (epoch_s, epoch_us, epoch_ns)",
  extra: null,
}

const microDigits = 6

export function isTimestamp({ type }: CsvColumn): boolean {
  return type.name === 'TIMESTAMP' || type.name === 'TIMESTAMP_NS'
}

/** The only timestamp column, if all its sampled values are valid for a designated timestamp; else -1. */
export function loneTimestamp(columns: readonly CsvColumn[], records: readonly (readonly string[])[]): number {
  const [place = -1, ...others] = columns.flatMap((column, index) => (isTimestamp(column) ? [index] : []))
  const column = columns[place]
  if (column === undefined || others.length > 0) return -1
  const isUsable = (text: string): boolean => {
    if (text === '' || isNullWord(text)) return false
    const ticks = parseField(text, column.type, column.pattern)
    // A value that is no timestamp at all is an error of its row in any case.
    return typeof ticks !== 'bigint' || ticks >= 0n
  }
  return records.every((record) => isUsable(record[place] ?? '')) ? place : -1
}

/**
 * Type and pattern of the column named as timestamp; it may hold strings or numbers if all of them are timestamps.
 */
export function asTimes(
  column: CsvColumn,
  /** Fields of the sample, with their lines. */
  fields: readonly SampleField[],
  { unit, words }: { readonly unit: EpochUnit | null; readonly words: OptionWords },
): Pick<CsvColumn, 'type' | 'pattern'> {
  const named = unit === null ? column.pattern : `epoch_${unit}`
  if (isTimestamp(column) && column.guessed !== true) return { type: column.type, pattern: named }
  // A file of a header only.
  if (fields.length === 0) return { type: dataType('TIMESTAMP'), pattern: unit === null ? null : named }
  const scale = unit ?? 'auto'
  const isOwnType = column.guessed === true || epochScale(named ?? '') !== null
  const times = fields.filter(({ text }) => text !== '' && !isNullWord(text))
  const wrong = isOwnType ? times.find(({ text }) => parseFileTime(text, 'TIMESTAMP', scale) === null) : times[0]
  if (wrong !== undefined || times.length === 0) throw notTimes(column, wrong ?? null, words)
  const isFine = times.some(
    ({ text }) => fractionDigits(text) > microDigits || parseFileTime(text, 'TIMESTAMP', scale)?.cut === true,
  )
  return { type: dataType(isFine ? 'TIMESTAMP_NS' : 'TIMESTAMP'), pattern: unit === null ? null : named }
}

export interface SampleField {
  readonly line: number
  readonly text: string
}

function notTimes({ name }: CsvColumn, field: SampleField | null, words: OptionWords): ImportError {
  const shown =
    field === null
      ? 'it has no values'
      : `[line=${field.line}, value=${field.text.slice(0, 100)}]: ${timeFormatHint(field.text, words)}`
  return new ImportError(`not a timestamp '${name}' ${shown}`)
}

/** Suggests the option with which the value would be a timestamp. */
export function timeFormatHint(value: string, words: OptionWords): string {
  return /^\s*[+-]?[0-9]+(?:\.[0-9]*)?\s*$/.test(value)
    ? `${words.unit} sets the unit of numbers`
    : `${words.pattern} sets the format of timestamps`
}
