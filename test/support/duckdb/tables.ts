// Generates random tables for the differential test: the same rows as INSERTs for this server and for DuckDB. Values
// are small, so that integers never overflow; key columns have few values, so that joins find rows; timestamps are
// unique in a table, so that window functions and ASOF JOIN have one valid result.

import type { PairType } from '../pair.js'
import type { Random } from '../random.js'

export interface DuckColumn {
  readonly name: string
  readonly type: PairType
  readonly ours: string
  readonly duck: string
}

export interface DuckTable {
  readonly name: string
  readonly rows: readonly (readonly string[])[]
}

export const duckColumns: readonly DuckColumn[] = [
  { name: 'ts', type: 'time', ours: 'TIMESTAMP', duck: 'TIMESTAMP' },
  { name: 'sym', type: 'text', ours: 'SYMBOL', duck: 'VARCHAR' },
  { name: 'host', type: 'text', ours: 'VARCHAR', duck: 'VARCHAR' },
  { name: 'i', type: 'int', ours: 'INT', duck: 'INTEGER' },
  { name: 'l', type: 'long', ours: 'LONG', duck: 'BIGINT' },
  { name: 'd', type: 'double', ours: 'DOUBLE', duck: 'DOUBLE' },
  { name: 'seen', type: 'time', ours: 'TIMESTAMP', duck: 'TIMESTAMP' },
]

const strings = [
  "'alpha'",
  "'Beta'",
  "'gamma ray'",
  "''",
  "' edge '",
  "'thrée'",
  "'a_b%c'",
  "'42'",
  "'a longer text than sixteen bytes'",
]

export function randomTable(name: string, rowCount: number, random: Random): DuckTable {
  const rows: string[][] = []
  let seconds = 1_709_251_200 + random.below(86_400)
  for (let row = 0; row < rowCount; row++) {
    seconds += 1 + random.below(random.chance(0.05) ? 90_000 : 900)
    rows.push(randomRow(seconds, random))
  }
  return { name, rows }
}

function randomRow(seconds: number, random: Random): string[] {
  const or = (text: string): string => (random.chance(0.12) ? 'null' : text)
  return [
    time(seconds, random.below(1_000_000)),
    or(`'s${random.below(5)}'`),
    or(random.pick(strings)),
    or(String(random.between(-20, 20))),
    or(String(random.between(-3000, 3000) * (random.chance(0.1) ? 1_000_000 : 1))),
    or(String(random.between(-400, 400) / 8)),
    or(time(1_709_251_200 + random.below(40) * 43_200, 0)),
  ]
}

function time(seconds: number, micros: number): string {
  const text = new Date(seconds * 1000).toISOString().slice(0, 19)
  return `'${text}.${String(micros).padStart(6, '0')}'`
}

/** Statements that make and fill the table. */
export function tableStatements({ name, rows }: DuckTable): { ours: string[]; duck: string[] } {
  const columns = (side: 'ours' | 'duck') => duckColumns.map((column) => `${column.name} ${column[side]}`).join(', ')
  const values = rows.map((row) => `(${row.join(', ')})`).join(', ')
  return {
    ours: [
      `create table ${name} (${columns('ours')}) timestamp(ts) partition by day`,
      `insert into ${name} values ${values}`,
    ],
    duck: [`create table ${name} (${columns('duck')})`, `insert into ${name} values ${values}`],
  }
}
