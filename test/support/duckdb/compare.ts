// Normalises result rows of this server and of DuckDB for comparison: cells are strings, numbers for DuckDB's doubles,
// or null. Doubles are compared with a tolerance.

import { DuckDBDecimalValue, DuckDBTimestampValue } from '@duckdb/node-api'

export type Cell = string | number | null
export type Rows = readonly (readonly Cell[])[]

export function duckCell(value: unknown): Cell {
  if (value === null || value === undefined) return null
  if (value instanceof DuckDBTimestampValue) return timeText(value.micros)
  if (value instanceof DuckDBDecimalValue) return finite(Number(value.toString()))
  if (typeof value === 'number') return finite(value)
  return String(value)
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

function timeText(micros: bigint): string {
  const seconds = micros / 1_000_000n - (micros % 1_000_000n < 0n ? 1n : 0n)
  const rest = micros - seconds * 1_000_000n
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${String(rest).padStart(6, '0')}Z`
}

/** A cell of /exec's JSON text. */
export function ourCell(text: string): Cell {
  if (text === 'null') return null
  if (text.startsWith('"')) return JSON.parse(text) as string
  return text
}

/** What differs, or null. Without order both sides are sorted first. */
export function rowsDiffer(ours: Rows, duck: Rows, ordered: boolean): string | null {
  if (ours.length !== duck.length) return `${ours.length} rows, DuckDB has ${duck.length}`
  const [left, right] = ordered ? [ours, duck] : [sortedRows(ours), sortedRows(duck)]
  for (let row = 0; row < left.length; row++) {
    const [mine, other] = [left[row] ?? [], right[row] ?? []]
    const column = mine.findIndex((cell, index) => !sameCell(cell, other[index] ?? null))
    if (column >= 0 || mine.length !== other.length)
      return `row ${row} column ${column}: ${show(mine)}\n      DuckDB: ${show(other)}`
  }
  return null
}

const show = (cells: readonly Cell[]): string => cells.map((cell) => JSON.stringify(cell)).join(' | ')

function sameCell(left: Cell, right: Cell): boolean {
  if (left === null || right === null) return left === right
  if (String(left) === String(right)) return true
  const [a, b] = [Number(left), Number(right)]
  if (Number.isNaN(a) || Number.isNaN(b)) return false
  return typeof right === 'number' && Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b))
}

/** By texts in which doubles are rounded, so that last digits do not change the order. */
function sortedRows(rows: Rows): Rows {
  const keyed = rows.map((row) => ({ row, key: row.map(keyOf).join('\u0001') }))
  keyed.sort((left, right) => (left.key < right.key ? -1 : left.key > right.key ? 1 : 0))
  return keyed.map(({ row }) => row)
}

function keyOf(cell: Cell): string {
  if (cell === null) return '\u0000'
  const isDouble = typeof cell === 'number' || /^-?\d+\.?\d*(e[-+]?\d+)?$/i.test(cell)
  if (!isDouble || (typeof cell === 'string' && /^-?\d+$/.test(cell))) return cell as string
  const rounded = Number(Number(cell).toPrecision(7))
  return String(rounded === 0 ? 0 : rounded)
}
