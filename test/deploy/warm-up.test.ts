// Goal: the usual queries are asked once a table is worth it, all of them are understood, and nobody waits for them.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { httpOptions } from '../../deploy/gateway-options.js'
import { loadSettings } from '../../deploy/settings/settings.js'
import { type WarmEngine, WarmUp } from '../../deploy/warm-up.js'
import { isWhole } from '../../deploy/warm-up-client.js'
import { openWarmHttp, warmRights } from '../../deploy/warm-up-http.js'
import {
  exportsOf,
  pageStatementsOf,
  sharedStatementsOf,
  smallStatementsOf,
  statementsOf,
  tablelessStatements,
  warmColumns,
} from '../../deploy/warm-up-statements.js'
import { systemClock } from '../../engine/base/clock.js'
import type { Engine, EngineObserver, Session } from '../../engine/engine.js'
import { metricsSource } from '../../gateways/common/metrics-source.js'
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
  const from = Date.UTC(2024, 0, 1) * 1000
  const found = {
    ...kinds,
    symbolValues: ["it's", 'b'],
    from,
    to: Date.UTC(2024, 0, 1, 6) * 1000,
    sharedFrom: from + 7_200_000_000,
    pagesFrom: from + 3_600_000_000,
  }
  const poor = { ...found, symbol: null, double: null, text: null }
  for (const round of [0, 19]) {
    for (const statement of [
      ...tablelessStatements,
      ...smallStatementsOf(found),
      ...statementsOf(found),
      ...sharedStatementsOf(found),
      ...pageStatementsOf(found),
      ...exportsOf(found),
    ])
      await run(statement(round))
  }
  for (const statement of statementsOf(poor)) await run(statement(1))
  expect(sharedStatementsOf(found).length).toBe(statementsOf(found).length)
  expect([pageStatementsOf(found).length, pageStatementsOf({ ...found, pagesFrom: null }).length]).toEqual([3, 0])
  expect(sharedStatementsOf({ ...found, sharedFrom: null })).toEqual([])
  expect([exportsOf(found).length, exportsOf({ ...found, pagesFrom: null }).length]).toEqual([1, 0])
  expect(new Set([...statementsOf(found)].map((statement) => statement(0))).size).toBe(statementsOf(found).length)
})

test('tables without a designated timestamp are left alone', () => {
  const shape = { id: 1, name: 't', columns: [], timestamp: null, partitionBy: 'NONE', dedup: false, keys: [] } as const
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
      validate: (sql, asking) => engine.validate(sql, asking),
      figures: () => engine.figures(),
      table: (name) => engine.table(name),
      tableNames: () => [...names],
      actFullCache: (isOn) => engine.actFullCache(isOn),
    },
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 600_000; !holds(); ) {
    if (Date.now() > end) throw new Error('it did not happen within ten minutes')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a table that appears later is asked, until it is closed', async () => {
  const names: string[] = ['own']
  const { asked, engine: warm } = watched(names)
  const warmUp = new WarmUp((name) => name === 'own', observer)
  warmUp.start(warm, null)
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(asked).toEqual([])
  names.push('odd name')
  await until(() => asked.some((sql) => sql.includes('row_number')))
  warmUp.close()
  await new Promise((resolve) => setTimeout(resolve, 50))
  const before = asked.length
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(asked.length).toBe(before)
})

test('tables of different kinds take turns, of one kind the first is asked', async () => {
  const made = [
    `create table "same kind" as (select ${columns} from long_sequence(25000)) timestamp("a time") partition by day`,
    `create table counts as (select timestamp_sequence('2024-01-01', 1000000) ts, rnd_symbol('a') s, x n from long_sequence(25000)) timestamp(ts) partition by day`,
  ]
  for (const sql of made) expect((await engine.execute(sql, executeOptions)).kind).toBe('done')
  const { asked, engine: warm } = watched(['odd name', 'same kind', 'counts'])
  const warmUp = new WarmUp(() => false, observer)
  warmUp.start(warm, null)
  const windows = (): string[] => asked.filter((sql) => sql.includes('row_number'))
  await until(() => windows().filter((sql) => sql.includes('"counts"')).length > 1)
  warmUp.close()
  expect(windows().some((sql) => sql.includes('"odd name"'))).toBe(true)
  expect(windows().some((sql) => sql.includes('"same kind"'))).toBe(false)
})

test('nothing is asked while others ask, and they are heard as before', async () => {
  const heard: string[] = []
  const { asked, engine: warm } = watched(['odd name'])
  const warmUp = new WarmUp(() => false, { ...observer, statementEnded: (_: Session, sql) => heard.push(sql) })
  const others = setInterval(() => warmUp.observer.statementEnded(session, 'theirs', 1), 1)
  await until(() => heard.length > 0)
  warmUp.start(warm, null)
  await new Promise((resolve) => setTimeout(resolve, 600))
  expect(asked).toEqual([])
  clearInterval(others)
  await until(() => asked.some((sql) => sql.includes('row_number')))
  warmUp.close()
  expect(heard[0]).toBe('theirs')
})

test('while rows are stored nothing is asked at first, then with long rests, although the process is idle', async () => {
  const askedIn = async (stores: boolean): Promise<number> => {
    let asked = 0
    let commits = 1
    const figures = engine.figures()
    const warmUp = new WarmUp(() => false, observer)
    const slow: WarmEngine = {
      ...watched(['odd name']).engine,
      validate: (sql, asking) => engine.validate(sql, asking),
      execute: async (sql, options) => {
        asked++
        await new Promise((resolve) => setTimeout(resolve, 10))
        return engine.execute(sql, options)
      },
      figures: () => ({ ...figures, queries: 0, counts: { ...figures.counts, commits: stores ? commits++ : 0 } }),
    }
    warmUp.start(slow, null)
    if (stores) {
      await new Promise((resolve) => setTimeout(resolve, 2000))
      expect(asked).toBe(0)
    }
    await until(() => asked > 10)
    const [before, begun] = [asked, performance.now()]
    await new Promise((resolve) => setTimeout(resolve, 1500))
    warmUp.close()
    return ((asked - before) * 1500) / (performance.now() - begun)
  }
  const [idle, storing] = [await askedIn(false), await askedIn(true)]
  expect(storing * 2).toBeLessThan(idle)
})

test('over HTTP it comes alone, and is heard by nobody', async () => {
  const asked: Session[] = []
  const watching = new Proxy(engine, {
    get: (target, name) => {
      if (name !== 'execute') return Reflect.get(target, name, target)
      return (...[sql, options]: Parameters<Engine['execute']>) => {
        asked.push(options.session)
        return engine.execute(sql, options)
      }
    },
  })
  const { values } = loadSettings({ file: null, environment: {}, assignments: [] })
  const log = (): void => {}
  const http = await openWarmHttp(httpOptions(values, 'test', directory), {
    ...{ engine: watching, metrics: metricsSource([], ''), clock: systemClock, log },
  })
  await http.ask(`/exec?query=${encodeURIComponent('select count(*) from "odd name"')}`)
  await http.ask(`/exec?query=${encodeURIComponent('select * from "odd name"')}`)
  await http.ask(`/exec?query=${encodeURIComponent('drop table "odd name"')}`)
  expect(asked.map(({ rights }) => rights === warmRights)).toEqual([true, true, true])
  expect(engine.table('odd name')?.name).toBe('odd name')
  // One connection follows the other.
  for (let n = 0; n < 250; n++) await http.ask(`/exec?query=select%20${n}`)
  expect(asked.length).toBe(253)
  const heard: string[] = []
  const { observer: own } = new WarmUp(() => false, { ...observer, statementEnded: (_, sql) => heard.push(sql) })
  own.statementEnded(asked[0] as Session, 'ours', 1)
  own.statementEnded({ ...session, rights: { ...warmRights } }, 'theirs', 1)
  expect(heard).toEqual(['theirs'])
  const theirs = await fetch(`http://127.0.0.1:${http.port}/exec?query=select%201`)
  expect(theirs.status).toBe(403)
  await http.close()
  await expect(http.ask('/exec?query=select%201')).rejects.toThrow('closed')
})

test('an answer is whole with its last byte', () => {
  for (const answer of [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab\r\nc',
    'HTTP/1.1 200 OK\r\nTrailer: X\r\n\r\n4\r\n0\r\n\r\r\n2\r\nab\r\n0\r\n\r\n',
  ]) {
    for (let bytes = 0; bytes < answer.length; bytes++) expect(isWhole(Buffer.from(answer.slice(0, bytes)))).toBe(false)
    expect(isWhole(Buffer.from(answer))).toBe(true)
  }
})
