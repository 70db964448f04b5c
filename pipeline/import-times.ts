// Which column of an import is the designated timestamp, and how its times are read.

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

/** How the interface that the import came by calls what would help; parts of error messages. */
export interface OptionWords {
  readonly timestamp: string
  /** Imports without a designated timestamp. */
  readonly none: string
  readonly pattern: string
  readonly unit: string
  /** Passes over values behind the last column; null where there is no such option. */
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

/** The only column of times, when its values in the sample can all be a designated timestamp; else -1. */
export function loneTimestamp(columns: readonly CsvColumn[], records: readonly (readonly string[])[]): number {
  const [place = -1, ...others] = columns.flatMap((column, index) => (isTimestamp(column) ? [index] : []))
  const column = columns[place]
  if (column === undefined || others.length > 0) return -1
  const isUsable = (text: string): boolean => {
    if (text === '' || isNullWord(text)) return false
    const ticks = parseField(text, column.type, column.pattern)
    // What is no time at all is an error of its row, whatever the column becomes.
    return typeof ticks !== 'bigint' || ticks >= 0n
  }
  return records.every((record) => isUsable(record[place] ?? '')) ? place : -1
}

/** Type and pattern of a column that is named as the timestamp: also texts and numbers that are all times. */
export function asTimes(
  column: CsvColumn,
  /** Of the sample, with their lines. */
  fields: readonly SampleField[],
  { unit, words }: { readonly unit: EpochUnit | null; readonly words: OptionWords },
): Pick<CsvColumn, 'type' | 'pattern'> {
  const named = unit === null ? column.pattern : `epoch_${unit}`
  if (isTimestamp(column) && column.guessed !== true) return { type: column.type, pattern: named }
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
      : `[line=${field.line}, value=${field.text.slice(0, 100)}]: ${helpForTime(field.text, words)}`
  return new ImportError(`not a timestamp '${name}' ${shown}`)
}

/** The option by which a text would have been a time. */
export function helpForTime(value: string, words: OptionWords): string {
  return /^\s*[+-]?[0-9]+(?:\.[0-9]*)?\s*$/.test(value)
    ? `${words.unit} tells what numbers count`
    : `${words.pattern} tells how times are written`
}
