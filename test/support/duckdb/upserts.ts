// Compares INSERT .. ON CONFLICT and MERGE with DuckDB's: random statements change a table on both, and after each of
// them the rows of the table must be the same, as must be those of RETURNING. The seed determines the statements; a
// difference names the one after which it was found.

import { DuckDBInstance } from '@duckdb/node-api'
import { cellsOfRows } from '../../sql/json-rows.js'
import { createRandom, type Random } from '../random.js'
import { duckCell, ourCell, rowsDiffer } from './compare.js'
import type { DuckReport, RunOurs } from './run.js'

const statementsPerRound = 100
const keysMax = 30

/** The key of the table: k, or k and g. */
type Key = readonly ('k' | 'g')[]
const keys: readonly Key[] = [['k'], ['k', 'g']]

export async function runDuckUpserts(seed: number, statements: number, run: RunOurs): Promise<DuckReport> {
  const instance = await DuckDBInstance.create(':memory:')
  const duck = await instance.connect()
  const rowsOf = async (sql: string) => (await duck.runAndReadAll(sql)).getRows().map((row) => row.map(duckCell))
  const ourRows = async (sql: string) => cellsOfRows(await run(sql)).map((row) => row.map(ourCell))
  const differences: string[] = []
  let refused = 0
  try {
    for (let done = 0, round = 0; done < statements; round++) {
      const random = createRandom(seed + round)
      const key = random.pick(keys)
      await make(key, random, run, async (sql) => void (await duck.run(sql)))
      for (let index = 0; index < statementsPerRound && done < statements; index++, done++) {
        if (random.chance(0.05)) await run('checkpoint')
        const sql = randomStatement(key, random)
        const [mine, theirs] = [await attempt(() => ourRows(sql)), await attempt(() => rowsOf(sql))]
        const place = `[seed=${seed + round}, statement=${index}] ${sql}\n      `
        if ('error' in mine && 'error' in theirs) refused++
        else if ('error' in mine) differences.push(`${place}we: ${mine.error}`)
        else if ('error' in theirs) differences.push(`${place}DuckDB: ${theirs.error}`)
        else if (sql.includes('returning')) note(differences, place, rowsDiffer(mine.value, theirs.value, false))
        const all = 'select * from u order by k, g'
        note(differences, place, rowsDiffer(await ourRows(all), await rowsOf(all), true))
        // Later statements would repeat it.
        if (differences.length > 0) return { queries: done + 1, refused, differences }
      }
    }
  } finally {
    duck.closeSync()
    instance.closeSync()
  }
  return { queries: statements, refused, differences }
}

function note(differences: string[], place: string, difference: string | null): void {
  if (difference !== null) differences.push(`${place}${difference}`)
}

async function attempt<T>(work: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: string }> {
  try {
    return { value: await work() }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

/** An empty table `u` with the key, and `s`, whose rows have different keys. */
async function make(key: Key, random: Random, run: RunOurs, duck: (sql: string) => Promise<void>): Promise<void> {
  const both = async (sql: string, rest = ''): Promise<void> => {
    await run(`${sql}${rest}`)
    await duck(sql)
  }
  const columns = 'k int, g varchar, n bigint, d double, ts timestamp'
  const timed = random.chance(0.5) ? ' timestamp(ts) partition by day' : ''
  for (const name of ['u', 's']) await both(`drop table if exists ${name}`)
  await both(`create table u (${columns}, primary key (${key.join(', ')}))`, timed)
  await both(`create table s (${columns})`)
  const rows = [...Array(keysMax).keys()].filter(() => random.chance(0.5)).map((k) => row(k, random))
  await both(`insert into s values ${[...rows, row(keysMax, random)].join(', ')}`)
}

/** Equal keys have equal times, so that a table ordered by time has one order for both. */
function row(k: number, random: Random): string {
  const g = `'g${random.below(2)}'`
  const or = (text: string): string => (random.chance(0.15) ? 'null' : text)
  const time = `'2024-03-0${1 + random.below(5)}T0${random.below(9)}:00:00'`
  return `(${k}, ${g}, ${random.between(-50, 50)}, ${or(String(random.between(-80, 80) / 8))}, ${time})`
}

function distinctRows(random: Random): string {
  const ks = [...Array(keysMax).keys()].filter(() => random.chance(0.1))
  return [...ks, keysMax + random.below(3)].map((k) => row(k, random)).join(', ')
}

function randomStatement(key: Key, random: Random): string {
  switch (random.below(8)) {
    case 0:
      return `update u set n = n + ${random.between(-3, 3)} where k % 3 = ${random.below(3)}`
    case 1:
      return `delete from u where k % 5 = ${random.below(5)} and n < ${random.between(-20, 20)}`
    case 2:
    case 3:
    case 4:
      return `${insertOf(random)} ${conflictOf(key, random)}${returning(random)}`
    default:
      return `${mergeOf(key, random)}${returning(random)}`
  }
}

function returning(random: Random): string {
  return random.chance(0.3) ? ' returning k, g, n' : ''
}

function insertOf(random: Random): string {
  if (random.chance(0.5)) return `insert into u values ${distinctRows(random)}`
  return `insert into u select k + ${random.below(4)}, g, n * ${random.between(-2, 2)}, d, ts from s where ${sourceCondition(random)}`
}

function sourceCondition(random: Random): string {
  return random.pick([`k % 4 <> ${random.below(4)}`, `n > ${random.between(-40, 40)}`, `g = 'g${random.below(2)}'`])
}

function conflictOf(key: Key, random: Random): string {
  const target = `on conflict (${key.join(', ')})`
  if (random.chance(0.25)) return `${target} do nothing`
  const changes = assignments(random, 'u', 'excluded')
  const where = random.chance(0.4) ? ` where ${condition(random, 'u', 'excluded')}` : ''
  return `${target} do update set ${changes}${where}`
}

function assignments(random: Random, target: string, source: string): string {
  const n = random.pick([
    `${source}.n`,
    `${target}.n + ${source}.n`,
    `${target}.n - 1`,
    `${source}.n * 2 - ${target}.k`,
  ])
  const d = random.pick([`${source}.d`, `coalesce(${target}.d, ${source}.d)`, `${target}.d + 0.5`])
  return random.pick([`n = ${n}`, `d = ${d}`, `n = ${n}, d = ${d}`, `d = ${d}, n = ${n}`])
}

function condition(random: Random, target: string, source: string): string {
  return random.pick([
    `${target}.n < ${random.between(-30, 60)}`,
    `${source}.n > ${target}.n`,
    `${target}.k % 2 = ${random.below(2)} and ${source}.n <> 0`,
  ])
}

function mergeOf(key: Key, random: Random): string {
  const source = random.chance(0.5)
    ? `(select k + ${random.below(4)} k, g, n, d, ts from s where ${sourceCondition(random)})`
    : 's'
  const on = key.map((name) => `t.${name} = x.${name}`).join(' and ')
  const matched = random.pick([
    `when matched then update set ${assignments(random, 't', 'x')}`,
    `when matched and ${condition(random, 't', 'x')} then delete`,
    `when matched and ${condition(random, 't', 'x')} then update set ${assignments(random, 't', 'x')}`,
    `when matched and ${condition(random, 't', 'x')} then delete when matched then update set ${assignments(random, 't', 'x')}`,
    'when matched then do nothing',
  ])
  const added = random.pick([
    'when not matched then insert (k, g, n, d, ts) values (x.k, x.g, x.n, x.d, x.ts)',
    `when not matched and x.n > ${random.between(-30, 30)} then insert (k, g, n, ts) values (x.k, x.g, x.n + 1, x.ts)`,
    '',
  ])
  return `merge into u t using ${source} x on ${on} ${matched} ${added}`.trimEnd()
}
