// Goal: INSERT .. ON CONFLICT has the same effect whether the rows with its keys are found by key indexes on the main
// thread or by a query, for all column types and wherever the rows are stored.
//
// Method: the same random statements run on two engines, one of which always uses the query. Row counts, RETURNING and
// the rows of the tables must be equal. A count of index searches shows that the other engine uses them.

import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { InlineExecutor } from '../../../engine/exec/run/inline-executor.js'
import { randomNumbers } from '../../bench/line-template.js'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'
import { runs } from '../../support/runs.js'
import { executeOptions } from '../../support/test-engine.js'

const seed = Date.now() % 1e9
const random = randomNumbers(seed)
const below = (limit: number): number => Math.floor(random() * limit)
const oneOf = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item

/** Values of a random row by column; the keys are few. */
const columns: readonly (readonly [string, string, () => string])[] = [
  ['id', 'long', () => String(below(30))],
  ['code', 'varchar', () => `'${oneOf(['a', 'bb', 'ünï', '', 'a long text that is not kept in line'])}${below(6)}'`],
  ['ts', 'timestamp', () => `'2024-01-0${1 + below(4)}T00:00:0${below(10)}'`],
  ['i', 'int', () => oneOf(['null', String(below(100))])],
  ['l', 'long', () => oneOf(['null', String(below(1000))])],
  ['d', 'double', () => oneOf(['null', String(below(1000) / 7)])],
  ['f', 'float', () => oneOf(['null', String(below(1000) / 7)])],
  ['sh', 'short', () => String(below(100))],
  ['by', 'byte', () => String(below(100))],
  ['b', 'boolean', () => oneOf(['true', 'false'])],
  ['c', 'char', () => oneOf(["'x'", 'null'])],
  ['s', 'symbol', () => oneOf(["'one'", "'zwei'", 'null'])],
  ['v', 'varchar', () => oneOf(["'text'", "''", "'tëxt'", 'null'])],
  ['u', 'uuid', () => oneOf(["'11111111-1111-1111-1111-111111111111'", 'null'])],
  ['ip', 'ipv4', () => oneOf(["'10.0.0.1'", 'null'])],
  ['da', 'date', () => oneOf(["'2024-05-05'", 'null'])],
  ['de', 'decimal(12, 3)', () => oneOf(['1.250m', 'null'])],
  ['a', 'double[]', () => oneOf(['ARRAY[1.0, 2.5]', 'null'])],
  ['l2', 'long256', () => oneOf(["'0x0123456789abcdef'", 'null'])],
]
const names = columns.map(([name]) => name)
const keys: Readonly<Record<string, readonly string[]>> = {
  by_id: ['id'],
  by_code: ['code', 'id'],
  by_time: ['id', 'ts'],
}
const sets = [
  ...['l = T.l + excluded.l', 'i = excluded.i, d = T.d * 2 - excluded.d', 'f = T.f + excluded.f, sh = excluded.sh'],
  ...['v = excluded.v, s = excluded.s', "s = 'neu', v = T.s", 'l = case when T.l > 500 then 0 else T.l + 1 end'],
  ...['b = not T.b, c = excluded.c, u = excluded.u', 'a = excluded.a, de = T.de + 1, l2 = excluded.l2', 'd = T.i / 0'],
  ...['sh = 20000 + T.by, by = excluded.by', 'da = excluded.da, ip = excluded.ip', 'i = null, l = null, by = 3'],
]
const conditions = [
  '',
  '',
  'where T.l < 500',
  'where T.i is not null and excluded.b',
  'where T.s = excluded.s',
  'where 1 = 2',
]

function tuples(key: readonly string[]): string {
  const rows = new Map<string, string>()
  for (let count = 1 + (below(3) === 0 ? below(12) : 0); count > 0; count--) {
    const values = columns.map(([, , value]) => value())
    const text = key.map((name) => values[names.indexOf(name)]).join()
    if (below(20) === 0 && key[0] === 'id') values[0] = 'null'
    // Rarely, a key occurs twice.
    rows.set(below(30) === 0 ? `${text} ${count}` : text, `(${values.join(', ')})`)
  }
  return [...rows.values()].join(', ')
}

function statement(table: string): string {
  const key = keys[table] as readonly string[]
  const returning = below(5) === 0 ? ` returning ${names.join(', ')}` : ''
  switch (below(24)) {
    case 0:
      return `insert into ${table} values ${tuples([])}`
    case 1:
    case 2:
      return `insert into ${table} values ${tuples(key)} on conflict do nothing${returning}`
    case 3:
      return `update ${table} set l = l + 1 where id = ${below(30)}`
    case 4:
      return `delete from ${table} where id = ${below(30)}`
    default: {
      const change = `update set ${oneOf(sets)} ${oneOf(conditions)}`.replaceAll('T.', `${table}.`)
      return `insert into ${table} values ${tuples(key)} on conflict (${key.join()}) do ${change}${returning}`
    }
  }
}

/** Lets the engine run until the work has ended. */
async function ended<Result>(engine: InlineEngine, work: Promise<Result>): Promise<Result> {
  let over = false
  const done = (): void => {
    over = true
  }
  work.then(done, done)
  for (let turn = 0; !over; turn++) {
    if (turn > 20_000) throw new Error('nothing came of it')
    await nextTick()
    engine.turn()
  }
  return work
}

async function outcome(engine: InlineEngine, sql: string): Promise<unknown> {
  try {
    const result = await ended(engine, engine.engine.execute(sql, executeOptions))
    if (result.kind !== 'rows') return result.kind === 'done' ? result.rows : 0
    const rows: string[] = []
    const all = (async () => {
      for await (const some of result.values) for (const row of some) rows.push(textOf(row))
    })()
    await ended(engine, all)
    return rows.sort()
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

function textOf(row: unknown): string {
  return JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
}

async function tablesOf(engine: InlineEngine): Promise<unknown[]> {
  const found = []
  for (const table of Object.keys(keys)) found.push(await outcome(engine, `select ${names.join()} from ${table}`))
  return found
}

test(`a search by indexes changes what a query changes [seed=${seed}]`, async () => {
  const engines = [await emptyEngine({ inline: true }), await emptyEngine()] as const
  const both = async (sql: string): Promise<void> => {
    const [own, other] = [await outcome(engines[0], sql), await outcome(engines[1], sql)]
    expect(own, sql).toEqual(other)
  }
  let searches = 0
  const { search } = InlineExecutor.prototype
  InlineExecutor.prototype.search = function (request) {
    const found = search.call(this, request)
    if (found !== null) searches++
    return found
  }
  try {
    const list = columns.map(([name, type]) => `${name} ${type}`).join(', ')
    for (const [table, key] of Object.entries(keys))
      await both(`create table ${table} (${list}, primary key (${key.join()})) timestamp(ts) partition by day`)
    const endMs = performance.now() + 40_000
    for (let stretch = 0; stretch < runs(9, 4) && performance.now() < endMs; stretch++) {
      const table = Object.keys(keys)[stretch % 3] ?? ''
      // Then the rows are in parts, whose pages get indexes by the first searches.
      if (stretch % 2 === 1) await both('checkpoint')
      for (let count = 0; count < 20; count++) await both(statement(table))
      expect(await tablesOf(engines[0])).toEqual(await tablesOf(engines[1]))
    }
    expect(await tablesOf(engines[0])).toEqual(await tablesOf(engines[1]))
    expect(searches).toBeGreaterThan(5)
  } finally {
    InlineExecutor.prototype.search = search
  }
}, 240_000)
