// Generates line-protocol load of random shapes, because a benchmark with fixed shapes would show only the cases for
// which the server was tuned. A seed determines a shape: 3 to 200 columns (symbols, doubles, integers, booleans,
// timestamps, strings); symbols with 1 to 1 million distinct values; strings of 1 to 2,000 bytes, unique or not; 1 to
// 1,000 tables whose lines alternate; columns that are missing in some lines; batches of 1 to 50,000 lines; rows in
// order, late or shuffled.

import { type RowOrder, randomNumbers } from './line-template.js'

export interface RandomShape {
  readonly columns: readonly RandomColumn[]
  readonly tables: number
  readonly batchRows: number
  readonly order: RowOrder
  /** Share of the lines that lack a field. */
  readonly absent: number
}

/** Some are more frequent than others. */
const kinds = ['symbol', 'symbol', 'double', 'double', 'long', 'long', 'boolean', 'timestamp', 'text'] as const

interface RandomColumn {
  readonly kind: (typeof kinds)[number]
  /** Number of different values of a symbol or text; 0: every text is unique. */
  readonly distinct: number
  /** Bytes of a text. */
  readonly bytes: number
}

type Random = () => number

/** The sender holds all lines, and few rows in a batch take long. */
const loadBytesMax = 128 * 1024 * 1024
const batchesMax = 4000
const columnsMax = 200
const tablesMax = 1000
const distinctMax = 1_000_000
const textBytesMax = 2000
const batchRowsMax = 50_000

export function randomShape(seed: number): RandomShape {
  const random = randomNumbers(seed * 7919 + 1)
  // The first numbers of nearby seeds are alike.
  for (let skipped = 0; skipped < 16; skipped++) random()
  const count = logarithmic(random, 3, columnsMax)
  const longTexts = random() < 0.3
  const columns = Array.from({ length: count }, (_, index) => columnOf(random, index, count, longTexts))
  return {
    columns,
    tables: random() < 0.5 ? 1 : logarithmic(random, 2, tablesMax),
    batchRows: logarithmic(random, 1, batchRowsMax),
    order: pick(random, ['sorted', 'sorted', 'late', 'shuffled']),
    absent: random() < 0.5 ? 0 : random() * 0.6,
  }
}

function columnOf(random: Random, index: number, count: number, longTexts: boolean): RandomColumn {
  // Of many columns, few are as long as texts may be.
  const bytesMax = longTexts && index % Math.ceil(count / 4) === 0 ? textBytesMax : 40
  const bytes = logarithmic(random, 1, bytesMax)
  const kind = pick(random, kinds)
  const isUnique = kind === 'text' && random() < 0.5
  return { kind, distinct: isUnique ? 0 : logarithmic(random, 1, distinctMax), bytes }
}

/** As likely in each order of magnitude. */
function logarithmic(random: Random, low: number, high: number): number {
  return Math.min(high, Math.floor(low * ((high + 1) / low) ** random()))
}

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T
}

/** At most so many rows that the lines fit the sender's memory and the batches take seconds. */
export function rowsOf(shape: RandomShape, rows: number): number {
  const lineBytes = shape.columns.reduce((sum, { kind, bytes }) => sum + 8 + (kind === 'text' ? bytes : 12), 40)
  return Math.max(1, Math.min(rows, Math.floor(loadBytesMax / lineBytes), shape.batchRows * batchesMax))
}

export function describeShape({ columns, tables, batchRows, order, absent }: RandomShape): string {
  const counts = [...new Set(kinds)].map((kind) => {
    const count = columns.filter((column) => column.kind === kind).length
    return count === 0 ? [] : [`${count} ${kind}`]
  })
  return `${counts.flat().join(' ')}, ${tables} tables, ${batchRows} a batch, ${order}, ${(absent * 100).toFixed(0)} % absent`
}

export function tableOf(prefix: string, shape: RandomShape, row: number): string {
  return `${prefix}_${row % shape.tables}`
}

/** Lines up to the timestamp. */
export function randomLines(prefix: string, seed: number): (row: number) => string {
  const shape = randomShape(seed)
  const random = randomNumbers(seed + 7)
  const isPresent = (): boolean => shape.absent === 0 || random() >= shape.absent
  return (row) => {
    const tags: string[] = []
    const fields: string[] = []
    shape.columns.forEach((column, index) => {
      if (!isPresent()) return
      if (column.kind === 'symbol') tags.push(`,c${index}=s${Math.floor(random() * column.distinct)}`)
      else fields.push(`c${index}=${fieldOf(column, row, random)}`)
    })
    // A line needs a field.
    fields.push(`n=${row}i`)
    return `${tableOf(prefix, shape, row)}${tags.join('')} ${fields.join(',')} `
  }
}

function fieldOf({ kind, distinct, bytes }: RandomColumn, row: number, random: Random): string {
  switch (kind) {
    case 'double':
      return String(Math.round(random() * 1e6) / 1000)
    case 'long':
      return `${Math.floor(random() * 1e9)}i`
    case 'boolean':
      return random() < 0.5 ? 't' : 'f'
    case 'timestamp':
      return `${1_700_000_000_000_000 + Math.floor(random() * 1e12)}t`
    default:
      return `"${textOf(distinct === 0 ? row : Math.floor(random() * distinct), bytes)}"`
  }
}

function textOf(number: number, bytes: number): string {
  return `${number} `.padEnd(bytes, 'abcdefghijklmnop ')
}
