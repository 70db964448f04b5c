// What a sample of records says about a CSV file: header, types, names. The rules are those of the peers in this field:
//
//   A column has the first of the types in `probes` that all its values have, blanks aside. When no column of all
//   records has a type (single characters do not count), the first record may be a header: the others are looked at
//   alone, and when some column has a type then, it is one.

import type { CsvColumn } from '../engine/engine.js'
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
const isoDay = '[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])'
const clock = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]'
const isoTime = (decimals: number): RegExp => new RegExp(`^${isoDay}T${clock}\\.[0-9]{${decimals}}Z$`)
/** With fewer digits, without a zone or with an offset: `T10:11:12.5`, `T10:11:12.123+02:00`. */
const looseTime = new RegExp(`^${isoDay}T${clock}\\.[0-9]{1,6}(?:Z|[+-][0-9]{2}:[0-9]{2})?$`)
const within = (text: string, bits: number): boolean => {
  const value = BigInt(text.replace(/[+_]/g, ''))
  return value > -(2n ** BigInt(bits - 1)) && value < 2n ** BigInt(bits - 1)
}
const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
const like =
  (pattern: RegExp) =>
  (text: string): boolean =>
    pattern.test(text)

const probes: readonly Probe[] = [
  { type: 'CHAR', pattern: null, matches: like(/^[A-Za-z]$/) },
  { type: 'IPv4', pattern: null, matches: like(new RegExp(`^${octet}(?:\\.${octet}){3}$`)) },
  {
    type: 'INT',
    pattern: null,
    matches: (text) => intText.test(text) && !leadingZero.test(text) && within(text, 32),
  },
  { type: 'LONG256', pattern: null, matches: like(/^0x[0-9a-fA-F]{1,64}$/) },
  {
    type: 'LONG',
    pattern: null,
    matches: (text) => intText.test(text) && !leadingZero.test(text) && within(text, 64),
  },
  {
    type: 'DOUBLE',
    pattern: null,
    matches: (text) => !leadingZero.test(text) && doubleText.test(text),
  },
  { type: 'BOOLEAN', pattern: null, matches: like(/^(?:true|false)$/i) },
  { type: 'DATE', pattern: 'yyyy-MM-dd', matches: like(new RegExp(`^${isoDay}$`)) },
  { type: 'DATE', pattern: 'dd/MM/yyyy', matches: like(/^(?:0[1-9]|[12][0-9]|3[01])\/(?:0[1-9]|1[0-2])\/[0-9]{4}$/) },
  { type: 'DATE', pattern: 'MM/dd/yyyy', matches: like(/^(?:0[1-9]|1[0-2])\/(?:0[1-9]|[12][0-9]|3[01])\/[0-9]{4}$/) },
  { type: 'DATE', pattern: 'yyyy-MM-dd HH:mm:ss', matches: like(new RegExp(`^${isoDay} ${clock}$`)) },
  { type: 'DATE', pattern: null, matches: like(isoTime(3)) },
  { type: 'TIMESTAMP', pattern: null, matches: like(looseTime) },
  { type: 'TIMESTAMP_NS', pattern: null, matches: like(isoTime(9)) },
  {
    type: 'UUID',
    pattern: null,
    matches: like(/^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/),
  },
]

export interface Detected {
  readonly header: boolean
  readonly columns: readonly CsvColumn[]
}

/** At least one record. `said`: whether the first line is a header; 'perhaps' is decided by types. */
export function detectColumns(records: readonly (readonly string[])[], said: 'yes' | 'no' | 'perhaps'): Detected {
  const width = records[0]?.length ?? 0
  const regular = records.filter(({ length }) => length === width)
  const all = histogram(regular, width)
  const rest = regular.length > 2 ? belowNames(regular.slice(1), all) : null
  const types: (Probe | null)[] = Array.from({ length: width }, () => null)
  const onlyTexts = choose(types, all, regular.length, true)
  const looksBelow = onlyTexts || (said === 'yes' && rest !== null)
  const found = looksBelow && !choose(types, rest ?? all, regular.length - 1, said === 'yes' && rest !== null)
  const header = said !== 'no' && (found || said === 'yes')
  if (said === 'no' && found) choose(types, all, regular.length, true)
  const names = columnNames(width, header ? (regular[0] ?? []) : [])
  const columns = types.map((probe, index) => ({
    name: names[index] as string,
    type: dataType(probe?.type ?? 'VARCHAR'),
    pattern: probe?.pattern ?? null,
  }))
  return { header, columns }
}

interface Histogram {
  /** By column, then by probe. */
  readonly counts: readonly (readonly number[])[]
  readonly blanks: readonly number[]
}

function histogram(records: readonly (readonly string[])[], width: number): Histogram {
  const counts = Array.from({ length: width }, () => probes.map(() => 0))
  const blanks = Array.from({ length: width }, () => 0)
  for (const record of records) {
    for (const [column, text] of record.entries()) {
      if (text === '') blanks[column] = (blanks[column] as number) + 1
      else {
        const own = counts[column] as number[]
        for (const [index, { matches }] of probes.entries()) if (matches(text)) own[index] = (own[index] as number) + 1
      }
    }
  }
  return { counts, blanks }
}

/** A name says nothing of the values below it; where there are none, or one alone, it is looked at with them. */
function belowNames(records: readonly (readonly string[])[], all: Histogram): Histogram {
  const below = histogram(records, all.counts.length)
  const isEmpty = (column: number): boolean => below.blanks[column] === records.length
  return {
    counts: below.counts.map((own, column) => (isEmpty(column) ? (all.counts[column] ?? own) : own)),
    // The name stands in for one of them.
    blanks: below.blanks.map((count, column) => (isEmpty(column) ? count - 1 : count)),
  }
}

/** Types of columns whose values have one in `rows` records; whether all are texts. */
function choose(types: (Probe | null)[], { counts, blanks }: Histogram, rows: number, reset: boolean): boolean {
  let onlyTexts = true
  for (const [column, own] of counts.entries()) {
    const index = own.findIndex((count) => count > 0 && count + (blanks[column] as number) === rows)
    const probe = probes[index] ?? null
    if (probe !== null) {
      types[column] = probe
      if (probe.type !== 'CHAR') onlyTexts = false
    } else if (reset) types[column] = null
  }
  return onlyTexts
}

/**
 * Names that a column may have: `a b` becomes `aB`, ` a` becomes `A`. Nothing becomes `f` and the index, and an underscore
 * for each name like it. Two columns of one name are a mistake.
 */
function columnNames(width: number, texts: readonly string[]): string[] {
  const written = Array.from({ length: width }, (_, index) => columnName(texts[index] ?? ''))
  const used = new Set<string>()
  for (const [index, name] of written.entries()) {
    if (name !== '' && used.has(name.toLowerCase()))
      throw new ImportError(`duplicate column name found [no=${index},name=${name}]`)
    used.add(name.toLowerCase())
  }
  return written.map((name, index) => {
    if (name !== '') return name
    let free = `f${index}`
    while (used.has(free)) free += '_'
    return free
  })
}

function columnName(text: string): string {
  const words = text.replace(/^\ufeff/, '').split(/[^\p{L}\p{N}_]+/u)
  const name = words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('')
  return /^[0-9]/.test(name) ? `_${name}` : name
}

/** The next type that holds more; null when there is none. `large`: a whole number did not fit, and is to keep its digits. */
export function widerType(type: ColumnType, large: boolean): ColumnType | null {
  if (type === 'INT') return 'LONG'
  if (type === 'LONG') return large ? 'VARCHAR' : 'DOUBLE'
  return type === 'VARCHAR' ? null : 'VARCHAR'
}
