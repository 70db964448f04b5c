// Detects the header, the column names and the column types of a CSV file from a sample of its records. The rules are
// those of other servers of this SQL dialect:
//
// A column gets the first type in the list `probes` that all of its non-blank values match. If no column has a type in
// this way (a column of single characters does not count as typed), the first record may be a header: it is one if
// some column has a type without that record. A column whose first cell is empty is ignored in this check, because
// programs write row numbers under an empty name.
//
// A column becomes text if a numeric type would round its values, or if its integers exceed LONG. A column of dates
// such as 01/02/2024 becomes text, too, if no value shows whether the day or the month comes first.

import { type CsvColumn, type CsvReject, fractionDigits, looksLikeTime } from '../engine/engine.js'
import { type ColumnType, dataType } from '../engine/types/column-types.js'
import { ImportError } from './import-schema.js'

interface Probe {
  readonly type: ColumnType
  readonly pattern: string | null
  readonly matches: (text: string) => boolean
}

const intText = /^[+-]?[0-9][0-9_]*$/
const doubleText = /^(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity)$/
const leadingZero = /^[+-]?0[0-9]/
const wholeOf = (text: string): bigint => BigInt(text.trim().replace(/^\+|_/g, ''))
const isInt = (text: string): boolean => {
  const value = wholeOf(text)
  return value > -(2n ** 31n) && value < 2n ** 31n
}
/** Includes the value that represents NULL, since no other numeric type suits it better. */
const isLong = (value: bigint): boolean => BigInt.asIntN(64, value) === value
const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const microDigits = 6
const like =
  (pattern: RegExp) =>
  (text: string): boolean =>
    pattern.test(text)

const twelve = '(?:0[1-9]|1[0-2])'
const dayOfMonth = '(?:0[1-9]|[12][0-9]|3[01])'

/** Dates that match both orders below, so that the order is ambiguous. */
const eitherDayProbe: Probe = {
  type: 'VARCHAR',
  pattern: null,
  matches: like(new RegExp(`^${twelve}/${twelve}/[0-9]{4}$`)),
}

/** Digits with leading zeros, such as 007: text, but not a column name. */
const digitsProbe: Probe = { type: 'VARCHAR', pattern: null, matches: like(intText) }

const probes: readonly Probe[] = [
  { type: 'CHAR', pattern: null, matches: like(/^[A-Za-z]$/) },
  { type: 'IPv4', pattern: null, matches: like(new RegExp(`^${octet}(?:\\.${octet}){3}$`)) },
  {
    type: 'INT',
    pattern: null,
    matches: (text) => intText.test(text) && !leadingZero.test(text) && isInt(text),
  },
  { type: 'LONG256', pattern: null, matches: like(/^0x[0-9a-fA-F]{1,64}$/) },
  {
    type: 'LONG',
    pattern: null,
    matches: (text) => intText.test(text) && !leadingZero.test(text) && isLong(wholeOf(text)),
  },
  // Only numbers may be surrounded by blanks, as in the reference server.
  {
    type: 'DOUBLE',
    pattern: null,
    matches: (text) => !leadingZero.test(text.trim()) && (doubleText.test(text.trim()) || intText.test(text.trim())),
  },
  { type: 'BOOLEAN', pattern: null, matches: like(/^(?:true|false)$/i) },
  eitherDayProbe,
  { type: 'DATE', pattern: 'dd/MM/yyyy', matches: like(new RegExp(`^${dayOfMonth}/${twelve}/[0-9]{4}$`)) },
  { type: 'DATE', pattern: 'MM/dd/yyyy', matches: like(new RegExp(`^${twelve}/${dayOfMonth}/[0-9]{4}$`)) },
  {
    type: 'TIMESTAMP',
    pattern: null,
    matches: (text) => looksLikeTime(text) && fractionDigits(text) <= microDigits,
  },
  { type: 'TIMESTAMP_NS', pattern: null, matches: looksLikeTime },
  {
    type: 'UUID',
    pattern: null,
    matches: like(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/),
  },
  digitsProbe,
]

export interface Detected {
  readonly header: boolean
  readonly columns: readonly CsvColumn[]
  /** Indexes of columns with ambiguous dates, which become text. */
  readonly unclearDays: readonly number[]
}

type Types = readonly (Probe | null)[]

/** Requires at least one record. `given`: whether the first line is a header; 'perhaps': detect it. */
export function detectColumns(records: readonly (readonly string[])[], given: 'yes' | 'no' | 'perhaps'): Detected {
  const [first = []] = records
  const regular = records.filter(({ length }) => length === first.length)
  const rows = regular.slice(1)
  const all = histogram(regular, first.length)
  const together = choose(all, regular.length)
  const none = given === 'yes' ? first.map(() => null) : together
  const below = rows.length === 0 ? none : choose(belowNames(rows, all), rows.length)
  const single = rows.length === 1 ? (rows[0] ?? []) : []
  const isClear = single.some((value) => value.length > 1)
  const unclear = first.map((name, column) => !isClear && isUnclear(name, single[column] ?? ''))
  const types = below.map((probe, column) => (unclear[column] ? unclearProbe(single[column] ?? '', given) : probe))
  const header = given === 'yes' || (given === 'perhaps' && looksLikeNames(first, rows, together, types))
  const chosen = header ? types : together.map((probe, column) => (unclear[column] ? (types[column] ?? null) : probe))
  const names = columnNames(first.length, header ? first : [])
  const columns = chosen.map((probe, index) => ({
    name: names[index] as string,
    type: dataType(probe?.type ?? 'VARCHAR'),
    pattern: probe?.pattern ?? null,
  }))
  const unclearDays = chosen.flatMap((probe, index) => (probe === eitherDayProbe ? [index] : []))
  return { header, columns, unclearDays }
}

/**
 * Above a single row of characters, a letter may be a name or a value; the reference server treats both as text.
 */
function isUnclear(name: string, value: string): boolean {
  return /^[A-Za-z]$/.test(name) && value.length === 1
}

function unclearProbe(value: string, given: 'yes' | 'no' | 'perhaps'): Probe | null {
  const [char] = probes
  return given === 'yes' && char?.matches(value) !== true ? null : (char ?? null)
}

function isTyped(probe: Probe | null | undefined): boolean {
  return probe !== null && probe !== undefined && probe.type !== 'CHAR'
}

function looksLikeNames(
  first: readonly string[],
  rows: readonly (readonly string[])[],
  together: Types,
  below: Types,
): boolean {
  const named = [...first.keys()].filter((column) => first[column] !== '')
  if (named.length === 0 || named.some((column) => isTyped(together[column]))) return false
  if (named.some((column) => isTyped(below[column]))) return true
  // Row numbers under an empty name, beside text columns.
  const isCount = (start: number): boolean => rows.every(([number], row) => number === String(start + row))
  return first[0] === '' && rows.length > 0 && (isCount(0) || isCount(1))
}

interface ColumnStatistics {
  /** Number of matching values, by probe. */
  readonly counts: readonly number[]
  readonly blanks: number
  readonly wholes: number
  /** Number of integers that exceed LONG or that DOUBLE cannot represent exactly. */
  readonly beyond: number
  readonly inexact: number
}

function histogram(records: readonly (readonly string[])[], width: number): readonly ColumnStatistics[] {
  return Array.from({ length: width }, (_, column) => statisticsOf(records.map((record) => record[column] ?? '')))
}

function statisticsOf(strings: readonly string[]): ColumnStatistics {
  const counts = probes.map(() => 0)
  const statistics = { counts, blanks: 0, wholes: 0, beyond: 0, inexact: 0 }
  for (const text of strings) {
    if (text === '') {
      statistics.blanks++
      continue
    }
    for (const [index, { matches }] of probes.entries())
      if (matches(text)) counts[index] = (counts[index] as number) + 1
    if (!intText.test(text.trim())) continue
    const value = wholeOf(text)
    const rounded = Number(value)
    statistics.wholes++
    if (!isLong(value)) statistics.beyond++
    if (!Number.isFinite(rounded) || BigInt(rounded) !== value) statistics.inexact++
  }
  return statistics
}

/** Excludes the header from a column's statistics, except for a column without values. */
function belowNames(
  rows: readonly (readonly string[])[],
  all: readonly ColumnStatistics[],
): readonly ColumnStatistics[] {
  const below = histogram(rows, all.length)
  return below.map((own, column) => {
    const name = all[column]
    // The name counts in place of one blank value.
    return own.blanks === rows.length && name !== undefined ? { ...name, blanks: own.blanks - 1 } : own
  })
}

/** The type that all values of each column match within `rows` records; null: text. */
function choose(columns: readonly ColumnStatistics[], rows: number): Types {
  return columns.map(({ counts, blanks, wholes, beyond, inexact }) => {
    const probe = probes[counts.findIndex((count) => count > 0 && count + blanks === rows)] ?? null
    if (probe?.type !== 'DOUBLE') return probe
    return inexact > 0 || (beyond > 0 && wholes + blanks === rows) ? digitsProbe : probe
  })
}

/**
 * Converts header fields to valid column names: `a b` becomes `aB`, ` a` becomes `A`. An empty name becomes `f` and
 * the index, with underscores appended until it is unique. Two columns of the same name are an error.
 */
function columnNames(width: number, strings: readonly string[]): string[] {
  const written = Array.from({ length: width }, (_, index) => columnName(strings[index] ?? ''))
  const used = new Map<string, number>()
  for (const [index, name] of written.entries()) {
    const other = used.get(name.toLowerCase())
    if (name !== '' && other !== undefined)
      throw new ImportError(
        `duplicate column name found [no=${index},name=${name}]: ${sameNames(strings[other] ?? '', strings[index] ?? '', name)}`,
      )
    used.set(name.toLowerCase(), index)
  }
  return written.map((name, index) => {
    if (name !== '') return name
    let free = `f${index}`
    while (used.has(free)) free += '_'
    return free
  })
}

function sameNames(first: string, second: string, name: string): string {
  const [before, after] = [first, second].map((text) => text.replace(/^\ufeff/, '').slice(0, 100))
  return before === after
    ? `the header has '${before}' twice`
    : `the header's '${before}' and '${after}' both become ${name}, whatever their case`
}

/** Converts a header field to a column name. */
export function columnName(text: string): string {
  const words = text.replace(/^\ufeff/, '').split(/[^\p{L}\p{N}_]+/u)
  const name = words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('')
  return /^[0-9]/.test(name) ? `_${name}` : name
}

/** Returns the next wider type, or null. `cause`: see CsvReject. */
export function widerType(type: ColumnType, cause: CsvReject['cause']): ColumnType | null {
  if (cause === 'beyond') return null
  if (cause === 'cut') return 'TIMESTAMP_NS'
  if (cause === 'digits') return 'VARCHAR'
  if (type === 'INT') return 'LONG'
  if (type === 'LONG') return cause === 'large' ? 'VARCHAR' : 'DOUBLE'
  return type === 'VARCHAR' ? null : 'VARCHAR'
}
