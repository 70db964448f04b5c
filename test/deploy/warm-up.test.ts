// Goal: the usual queries are asked once a table is worth it, all of them are understood, and nobody waits for them.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type WarmEngine, WarmUp } from '../../deploy/warm-up.js'
import { statementsOf, tablelessStatements, warmColumns } from '../../deploy/warm-up-statements.js'
import type { Engine, EngineObserver, Session } from '../../engine/engine.js'
import { executeOptions, openTestEngine } from '../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'penstock-warm-up-'))
const observer: EngineObserver = { tableCreated: () => {}, statementEnded: () => {} }
const { session } = executeOptions
let engine: Engine

const columns = `timestamp_sequence('2024-01-01', 1000000) "a time", rnd_symbol('it''s', 'b') s, x * 0.5 d, x n, 'note ' || x t`

beforeAll(async () => {
  engine = await openTestEngine(directory)
  const made = await engine.execute(
    `create table "odd name" as (select ${columns} from long_sequence(25000)) timestamp("a time") partition by day`,
    executeOptions,
  )
  expect(made.kind).toBe('done')
})

afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true, force: true })
})

async function run(sql: string): Promise<void> {
  const result = await engine.execute(sql, executeOptions)
  if (result.kind !== 'rows') throw new Error(sql)
  for await (const _ of result.values);
}

test('every statement runs, over every kind of table', async () => {
  const shape = engine.table('odd name')
  const kinds = shape === undefined ? null : warmColumns(shape)
  if (kinds === null) throw new Error('the table has a designated timestamp')
  const found = { ...kinds, symbolValue: "it's", from: Date.UTC(2024, 0, 1) * 1000, to: Date.UTC(2024, 0, 1, 6) * 1000 }
  const poor = { ...found, symbol: null, double: null, text: null }
  for (const round of [0, 19]) {
    for (const statement of [...tablelessStatements, ...statementsOf(found)]) await run(statement(round))
  }
  for (const statement of statementsOf(poor)) await run(statement(1))
  expect(new Set([...statementsOf(found)].map((statement) => statement(0))).size).toBe(statementsOf(found).length)
})

test('tables without a designated timestamp are left alone', () => {
  const shape = { id: 1, name: 't', columns: [], timestamp: null, partitionBy: 'NONE', dedup: false } as const
  expect(warmColumns(shape)).toBe(null)
})

/** The engine, and what it is asked. */
function watched(names: readonly string[]): { readonly asked: string[]; readonly engine: WarmEngine } {
  const asked: string[] = []
  return {
    asked,
    engine: {
      execute: (sql, options) => {
        asked.push(sql)
        return engine.execute(sql, options)
      },
      figures: () => engine.figures(),
      table: (name) => engine.table(name),
      tableNames: () => [...names],
    },
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 60_000; !holds(); ) {
    if (Date.now() > end) throw new Error('it did not happen within a minute')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a table that appears later is asked, until it is closed', async () => {
  const names: string[] = ['own']
  const { asked, engine: warm } = watched(names)
  const warmUp = new WarmUp((name) => name === 'own', observer)
  warmUp.start(warm)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(asked).toEqual([])
  names.push('odd name')
  await until(() => asked.some((sql) => sql.includes('row_number')))
  warmUp.close()
  await new Promise((resolve) => setTimeout(resolve, 50))
  const before = asked.length
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(asked.length).toBe(before)
}, 70_000)

test('nothing is asked while others ask, and they are heard as before', async () => {
  const heard: string[] = []
  const { asked, engine: warm } = watched(['odd name'])
  const warmUp = new WarmUp(() => false, { ...observer, statementEnded: (_: Session, sql) => heard.push(sql) })
  const others = setInterval(() => warmUp.observer.statementEnded(session, 'theirs', 1), 1)
  await until(() => heard.length > 0)
  warmUp.start(warm)
  // It has looked at the table.
  await until(() => asked.some((sql) => sql.endsWith('limit -1')))
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(asked.filter((sql) => sql.includes('row_number')).length).toBe(0)
  clearInterval(others)
  await until(() => asked.some((sql) => sql.includes('row_number')))
  warmUp.close()
  expect(heard[0]).toBe('theirs')
}, 140_000)
