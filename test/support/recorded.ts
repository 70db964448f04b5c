// Reads fixtures of recorded statements with their results, one JSON object a line: {sql, columns?, timestamp?, rows?}
// or {sql, error}. Integers beyond 2^53 are written as "#123". `error` is the position of the error; null means that
// any position is right.

import { readFileSync } from 'node:fs'
import { SqlError } from '../../engine/base/errors.js'
import { type DataType, typeText } from '../../engine/types/column-types.js'
import { jsonValue, type MemoryDatabase, type MemoryResult } from './memory-database.js'

export interface Recorded {
  readonly sql: string
  readonly columns?: readonly string[]
  readonly timestamp?: number
  readonly rows?: readonly (readonly unknown[])[]
  readonly error?: number | null
}

export function readRecorded(url: URL): Recorded[] {
  const lines = readFileSync(url, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Recorded)
}

/** null when the answer is right, else what is wrong. */
export function difference(database: MemoryDatabase, recorded: Recorded): string | null {
  let result: MemoryResult
  try {
    result = database.run(recorded.sql)
  } catch (error) {
    return errorDifference(error, recorded)
  }
  if (recorded.error !== undefined) return 'an error was expected'
  const columns = result.columns.map(({ name, type }) => `${name} ${shownType(type)}`)
  if (recorded.columns !== undefined && columns.join() !== recorded.columns.join())
    return `columns are ${columns.join()}`
  if (recorded.timestamp !== undefined && recorded.timestamp !== result.timestampIndex)
    return `timestamp is ${result.timestampIndex}`
  if (recorded.rows === undefined) return null
  const rows = result.rows.map((row) =>
    row.map((value, index) => jsonValue(value, result.columns[index]?.type ?? stringType)),
  )
  return sameRows(recorded.rows, rows, /order by/i.test(recorded.sql)) ? null : `rows are ${shown(rows)}`
}

const stringType: DataType = { name: 'STRING', a: 0, b: 0 }

function shownType(type: DataType): string {
  return type.name === 'ARRAY' ? 'ARRAY' : typeText(type)
}

function errorDifference(error: unknown, recorded: Recorded): string | null {
  if (!(error instanceof SqlError)) throw error
  if (recorded.error === undefined) return `error: ${error.message} at ${error.position}`
  return recorded.error === null || recorded.error === error.position
    ? null
    : `error at ${error.position}: ${error.message}`
}

function sameRows(expected: readonly (readonly unknown[])[], rows: readonly unknown[][], ordered: boolean): boolean {
  if (expected.length !== rows.length) return false
  if (sameValue(expected, rows)) return true
  if (ordered) return false
  const left = [...rows]
  return expected.every((row) => {
    const index = left.findIndex((candidate) => sameValue(row, candidate))
    if (index >= 0) left.splice(index, 1)
    return index >= 0
  })
}

/** Numbers by value within 1e-9, integers exactly. */
function sameValue(expected: unknown, value: unknown): boolean {
  if (typeof value === 'bigint')
    return typeof expected === 'string' ? expected === `#${value}` : BigInt(Number(expected)) === value
  if (typeof expected === 'number' && typeof value === 'number') {
    return expected === value || Math.abs(expected - value) <= 1e-9 * Math.max(Math.abs(expected), Math.abs(value))
  }
  if (Array.isArray(expected)) {
    return (
      Array.isArray(value) &&
      expected.length === value.length &&
      expected.every((element, index) => sameValue(element, value[index]))
    )
  }
  return expected === value
}

function shown(rows: unknown): string {
  return JSON.stringify(rows, (_key, value: unknown) => (typeof value === 'bigint' ? `#${value}` : value)).slice(0, 600)
}
