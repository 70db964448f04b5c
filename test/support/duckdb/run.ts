// Compares our results with DuckDB's: runs random queries over random tables on both, and returns the differences. The
// seed determines tables and queries; a difference names both statements.

import { DuckDBInstance } from '@duckdb/node-api'
import { cellsOfRows } from '../../sql/json-rows.js'
import { createRandom } from '../random.js'
import { duckCell, ourCell, rowsDiffer } from './compare.js'
import { type DuckQuery, randomQuery, tableNames } from './queries.js'
import { randomTable, tableStatements } from './tables.js'

/** Runs a statement here: the rows as JSON texts without their brackets, empty for anything else. */
export type RunOurs = (sql: string) => Promise<string>

export interface DuckReport {
  readonly queries: number
  /** Both refused. */
  readonly refused: number
  readonly differences: readonly string[]
}

const queriesPerRound = 100

export async function runDuck(seed: number, queries: number, run: RunOurs): Promise<DuckReport> {
  const instance = await DuckDBInstance.create(':memory:')
  const duck = await instance.connect()
  const differences: string[] = []
  let refused = 0
  try {
    for (let done = 0, round = 0; done < queries; round++) {
      const random = createRandom(seed + round)
      await fill(random, run, async (sql) => void (await duck.run(sql)))
      for (let index = 0; index < queriesPerRound && done < queries; index++, done++) {
        const query = randomQuery(random)
        const found = await ask(query, run, async (sql) => (await duck.runAndReadAll(sql)).getRows())
        if (found === 'refused') refused++
        else if (found !== null) differences.push(`[seed=${seed + round}, query=${index}, ${query.kind}] ${found}`)
      }
    }
  } finally {
    duck.closeSync()
    instance.closeSync()
  }
  return { queries, refused, differences }
}

type RunDuck<T> = (sql: string) => Promise<T>

async function fill(random: ReturnType<typeof createRandom>, run: RunOurs, duck: RunDuck<void>): Promise<void> {
  for (const name of tableNames) {
    const table = randomTable(name, random.pick([0, 1, 30, 120, 400]), random)
    const { ours, duck: theirs } = tableStatements(table)
    await run(`drop table if exists ${name}`)
    await duck(`drop table if exists ${name}`)
    const filled = table.rows.length > 0
    for (const sql of filled ? ours : ours.slice(0, 1)) await run(sql)
    for (const sql of filled ? theirs : theirs.slice(0, 1)) await duck(sql)
  }
  if (random.chance(0.5)) await run('checkpoint')
}

async function ask(
  query: DuckQuery,
  run: RunOurs,
  duck: RunDuck<readonly (readonly unknown[])[]>,
): Promise<string | null> {
  const strings = `\n  ours: ${query.ours}\n  duck: ${query.duck}\n      `
  const [mine, theirs] = await Promise.all([attempt(() => run(query.ours)), attempt(() => duck(query.duck))])
  if ('error' in mine || 'error' in theirs) {
    if ('error' in mine && 'error' in theirs) return 'refused'
    // DuckDB sums BIGINT as HUGEINT.
    if ('error' in mine && mine.error.includes('the sum is out of range of LONG')) return 'refused'
    return `${strings}${'error' in mine ? `we: ${mine.error}` : `DuckDB: ${'error' in theirs ? theirs.error : ''}`}`
  }
  const ours = cellsOfRows(mine.value).map((row) => row.map(ourCell))
  const difference = rowsDiffer(
    ours,
    theirs.value.map((row) => row.map(duckCell)),
    query.ordered,
  )
  return difference === null ? null : `${strings}${difference}`
}

async function attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: string }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}
