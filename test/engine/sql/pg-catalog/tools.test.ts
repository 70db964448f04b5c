// Goal: the exact statements that drivers and tools for PostgreSQL send are answered, and their results do not change
// unnoticed.
//
// Method: fixtures/*.jsonl contain statements with their parameters, recorded between the tools and a server
// (tools.jsonl: copied from the tools' sources). Those that the gateway does not handle itself run in a PostgreSQL
// session over a small database. Each is compared with the result in the fixture: column names, number of rows, and the
// first rows (for results that list functions only the columns, since each new function changes them). PG_COMPLETE=1
// writes the results into the fixtures.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allRights } from '../../../../engine/base/rights.js'
import type { Engine, ExecuteOptions } from '../../../../engine/engine.js'
import { postgresDialect } from '../../../../engine/sql/dialect.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { executeOptions, openTestEngine } from '../../../support/test-engine.js'

interface Recorded {
  readonly client: string
  readonly sql: string
  readonly parameters: readonly (string | null)[]
  readonly answers?: readonly Answer[]
}

interface Answer {
  readonly tag: string
  readonly columns?: string
  readonly rows?: number
  readonly first?: readonly string[]
}

const shownRows = 3
/** Statements that the gateway handles. */
const ofTheGateway = new Set(['copy', 'declare cursor', 'fetch', 'close', 'prepare', 'execute', 'empty', 'transaction'])
const listsFunctions = /pg_proc|routines|pg_aggregate|pg_description|functions\(\)|regproc/

const options: ExecuteOptions = {
  ...executeOptions,
  session: {
    user: 'admin',
    protocol: 'pg',
    dialect: postgresDialect,
    readOnly: false,
    rights: allRights,
    settings: new Map(),
    processId: 7,
  },
}

const table = `create table t (ts timestamp, s varchar, v long, d double, b boolean, u uuid, c char, f float, i int,
  sh short, bin binary, n decimal(10,2), a double[]) timestamp(ts) partition by day wal`

const directory = mkdtempSync(join(tmpdir(), 'penstock-tools-'))
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(join(directory, 'db'), { memoryBytes: 1024 * 1024 * 1024 })
  await engine.execute(table, options)
  await engine.execute('create view vw as (select s, v from t)', options)
})

afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true, force: true })
})

async function answersTo({ sql, parameters }: Recorded): Promise<Answer[]> {
  const bound = parameters.map((value) => ({ value, type: dataType('STRING') }))
  options.session.settings?.clear()
  const own = /create table "T"/i.test(sql)
  if (own) await engine.execute('drop table t', options)
  const answers: Answer[] = []
  for (const parsed of engine.parse(sql)) {
    if (!ofTheGateway.has(parsed.statement.kind))
      answers.push(await answerTo(sql, { ...options, parameters: bound, parsed }))
  }
  if (own) {
    await engine.execute('drop table t', options)
    await engine.execute(table, options)
  }
  return answers
}

async function answerTo(sql: string, requested: ExecuteOptions): Promise<Answer> {
  const result = await engine.execute(sql, requested)
  if (result.kind !== 'rows') return { tag: result.kind === 'done' ? result.tag : result.kind }
  const first: string[] = []
  for await (const rows of result.values)
    first.push(...rows.slice(0, shownRows - first.length).map((row) => row.map(String).join(' | ')))
  const { rows } = await result.summary
  const columns = result.columns.map(({ name }) => name).join(' | ')
  return listsFunctions.test(sql) ? { tag: 'SELECT', columns } : { tag: 'SELECT', columns, rows, first }
}

describe.each(['drivers', 'psql', 'dump', 'jdbc', 'sqlalchemy', 'tools'])('%s', (name) => {
  const file = new URL(`../../../../test/engine/sql/pg-catalog/fixtures/${name}.jsonl`, import.meta.url)
  const recorded = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Recorded)
  const written: Recorded[] = []

  test.each(recorded.map((entry) => [`${entry.client}: ${entry.sql.slice(0, 200)}`, entry] as const))(
    '%s',
    async (_, entry) => {
      const answers = await answersTo(entry)
      written.push({ ...entry, answers })
      if (process.env['PG_COMPLETE'] !== '1') expect(answers).toEqual(entry.answers)
    },
  )

  afterAll(() => {
    if (process.env['PG_COMPLETE'] === '1')
      writeFileSync(file, written.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  })
})
