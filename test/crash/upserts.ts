// `node dist/test/crash/upserts.js [--rounds n] [--statements n] [--sessions n] [--seed n] [--flush-rows n]`: random
// upserts by several sessions, compared with a model, with a SIGKILL of the server between the rounds.
//
// Method: every session has its own keys and knows their values after each statement. Statements are INSERT .. ON
// CONFLICT with DO UPDATE, WHERE and DO NOTHING, and MERGE that updates, deletes and inserts. Each row count in a
// response must be that of the model. One table has an enforced key, so that a plain INSERT with a stored key is
// refused. All sessions also increment one common row. Half of the sessions use the PostgreSQL protocol. Small
// memtables and frequent checkpoints move rows to Parquet files and through compactions meanwhile.
//
// After a kill, the rows of a session must be those after its last answered statement, or those after the statement
// that was running. The value of the common row must be at least the number of answered increments and at most the
// number of sent ones.

import { parseArgs } from 'node:util'
import { randomNumbers } from '../bench/line-template.js'
import { TestServer } from '../support/server.js'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    statements: { type: 'string', default: '1000' },
    sessions: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    'flush-rows': { type: 'string', default: '1000' },
  },
})
const random = randomNumbers(Number(values.seed))
const sessions = Number(values.sessions)
const keysMax = 40
const tables = ['upsert_days', 'upsert_plain', 'upsert_enforced']
/** What `Run` returns for a statement that an enforced key refuses. */
const refused = -1

type Rows = Map<number, number>
type Run = (sql: string) => Promise<number>

interface Model {
  readonly session: number
  /** By table: the rows after the last answered statement. */
  readonly rows: Map<string, Rows>
  /** The statement under way, and the rows after it. */
  pending: { readonly table: string; readonly rows: Rows } | null
}

interface Common {
  sent: number
  answered: number
}

interface Statement {
  readonly sql: string
  readonly after: Rows
  readonly count: number
}

function below(limit: number): number {
  return Math.floor(random() * limit)
}

function randomRows(session: number): [number, number][] {
  const keys = new Set(
    Array.from({ length: 1 + below(below(4) === 0 ? 20 : 2) }, () => session * 1000 + below(keysMax)),
  )
  return [...keys].map((key) => [key, below(1000)])
}

/** Of the enforced table, where a key is always at the same time. */
function timeOf(key: number): string {
  return `'2024-01-0${1 + (key % 4)}T00:00:${10 + (key % 50)}Z'`
}

function tuple(table: string, [key, value]: readonly [number, number]): string {
  if (table === 'upsert_enforced') return `(${key}, ${value}, ${timeOf(key)})`
  return table === 'upsert_plain'
    ? `(${key}, ${value})`
    : `(${key}, ${value}, '2024-01-0${1 + (key % 4)}T00:00:${10 + below(50)}Z')`
}

/** `change` returns the new value of an existing row, 'delete', or null to leave it. */
function applied(
  before: Rows,
  source: readonly (readonly [number, number])[],
  change: (old: number, value: number) => number | 'delete' | null,
): { readonly after: Rows; readonly count: number } {
  const after = new Map(before)
  let count = 0
  for (const [key, value] of source) {
    const old = before.get(key)
    const next = old === undefined ? value : change(old, value)
    if (next === null) continue
    count++
    if (next === 'delete') after.delete(key)
    else after.set(key, next)
  }
  return { after, count }
}

function randomStatement(table: string, session: number, before: Rows): Statement {
  const source = randomRows(session)
  const insert = `insert into ${table} values ${source.map((row) => tuple(table, row)).join(', ')}`
  const limit = below(2000)
  const isEnforced = table === 'upsert_enforced'
  const target = isEnforced ? 'k, ts' : 'k'
  if (isEnforced && below(3) === 0) {
    const isNew = source.every(([key]) => !before.has(key))
    if (!isNew) return { sql: insert, after: before, count: refused }
    return { sql: insert, ...applied(before, source, () => null) }
  }
  switch (below(4)) {
    case 0:
      return {
        sql: `${insert} on conflict (${target}) do update set v = ${table}.v + excluded.v`,
        ...applied(before, source, (old, value) => old + value),
      }
    case 1:
      return {
        sql: `${insert} on conflict (${target}) do update set v = excluded.v where ${table}.v < ${limit}`,
        ...applied(before, source, (old, value) => (old < limit ? value : null)),
      }
    case 2:
      return { sql: `${insert} on conflict do nothing`, ...applied(before, source, () => null) }
    default: {
      const rows = source.map(([key, value], index) => {
        const time = isEnforced ? `${timeOf(key)}::timestamp` : "'2024-01-05'::timestamp"
        return index === 0 ? `select ${key}l k, ${value}l v, ${time} ts` : `select ${key}l, ${value}l, ${time}`
      })
      const columns = table === 'upsert_plain' ? '(k, v) values (s.k, s.v)' : '(k, v, ts) values (s.k, s.v, s.ts)'
      const sql = `merge into ${table} t using (${rows.join(' union all ')}) s on t.k = s.k
        when matched and t.v % 3 = 0 then delete when matched and t.v % 3 = 1 then do nothing
        when matched then update set v = t.v + s.v when not matched then insert ${columns}`
      return {
        sql,
        ...applied(before, source, (old, value) => (old % 3 === 0 ? 'delete' : old % 3 === 1 ? null : old + value)),
      }
    }
  }
}

async function work(model: Model, run: Run, common: Common, statements: number, over: () => boolean): Promise<void> {
  for (let index = 0; index < statements && !over(); index++) {
    if (below(6) === 0) {
      common.sent++
      const rows = await run(
        'insert into upsert_common values (1, 1) on conflict (k) do update set v = upsert_common.v + 1',
      )
      check(rows === 1, `an increment changed ${rows} rows`)
      common.answered++
      continue
    }
    const table = tables[below(tables.length)] as string
    const statement = randomStatement(table, model.session, model.rows.get(table) as Rows)
    model.pending = { table, rows: statement.after }
    const count = await run(statement.sql)
    check(count === statement.count, `${count} rows, not ${statement.count}: ${statement.sql}`)
    model.rows.set(table, statement.after)
    model.pending = null
  }
}

class Unanswered extends Error {}

function unanswered(): never {
  throw new Unanswered()
}

function httpRun(server: TestServer): Run {
  return async (sql) => {
    const answer = await server.exec(sql).catch(() => null)
    if (answer === null) throw new Unanswered()
    const body = answer.body as { readonly error?: string; readonly inserted?: number; readonly merged?: number }
    if (body.error?.startsWith('duplicate key value') === true) return refused
    check(body.error === undefined, `${body.error}: ${sql}`)
    return body.inserted ?? body.merged ?? 0
  }
}

async function pgRun(server: TestServer): Promise<Run> {
  const client = await server.connect()
  client.on('error', () => {})
  return async (sql) => {
    try {
      return (await client.query(sql)).rowCount ?? 0
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === '23505') return refused
      if (
        error instanceof Error &&
        'code' in error &&
        /^[0-9A-Z]{5}$/.test(String(error.code)) &&
        error.code !== '57P01'
      )
        throw error
      throw new Unanswered()
    }
  }
}

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(`${message} [seed=${values.seed}]`)
}

async function stored(server: TestServer, table: string, session: number): Promise<string> {
  const { body } = await server.exec(
    `select k, v from ${table} where k >= ${session * 1000} and k < ${session * 1000 + 1000} order by k, v`,
  )
  return JSON.stringify(body.dataset)
}

function textOf(rows: Rows): string {
  return JSON.stringify([...rows].sort(([left], [right]) => left - right))
}

/** Compares the rows of every session, and continues from what is stored. */
async function verify(server: TestServer, models: readonly Model[], common: Common): Promise<void> {
  for (const model of models) {
    for (const table of tables) {
      const found = await stored(server, table, model.session)
      const rows = model.rows.get(table) as Rows
      const next = model.pending?.table === table ? model.pending.rows : rows
      check(found === textOf(rows) || found === textOf(next), `${table}: ${found}, not ${textOf(rows)}`)
      if (found === textOf(next)) model.rows.set(table, next)
    }
    model.pending = null
  }
  for (const table of tables) {
    const expected = models.reduce((sum, { rows }) => sum + (rows.get(table)?.size ?? 0), 0)
    const { body } = await server.exec(`select count() from ${table}`)
    check(
      Number(body.dataset?.[0]?.[0]) === expected,
      `${table}: count() is ${body.dataset?.[0]?.[0]}, not ${expected}`,
    )
  }
  const { body } = await server.exec('select v from upsert_common')
  const value = Number(body.dataset?.[0]?.[0] ?? 0)
  check((body.dataset?.length ?? 0) <= 1, 'the common row is there twice')
  check(
    value >= common.answered && value <= common.sent,
    `the common row is ${value}, not ${common.answered} to ${common.sent}`,
  )
  common.answered = value
  common.sent = value
}

async function round(server: TestServer, models: readonly Model[], common: Common, kills: boolean): Promise<void> {
  const each = Math.ceil(Number(values.statements) / sessions)
  let over = false
  let failure: unknown
  const running = models.map(async (model) => {
    const entered = model.session % 2 === 0 ? Promise.resolve(httpRun(server)) : pgRun(server)
    const working = entered.catch(unanswered).then((run) => work(model, run, common, each, () => over))
    await working.catch((error: unknown) => {
      if (error instanceof Unanswered && over) return
      over = true
      failure ??= error
    })
  })
  const ended = Promise.all(running)
  const checkpoints = (async () => {
    while (!over) {
      await server.exec('checkpoint').catch(() => null)
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 300 * random()))])
    }
  })()
  if (kills) await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500 + 3000 * random()))])
  else await ended
  over = true
  if (kills) await server.end('SIGKILL')
  await ended
  await checkpoints
  if (failure !== undefined) throw failure
}

async function main(): Promise<void> {
  process.stdout.write(`seed ${values.seed}\n`)
  const server = new TestServer([`storage.flush.rows=${values['flush-rows']}`])
  const models = Array.from({ length: sessions }, (_, index): Model => {
    return { session: index + 1, rows: new Map(tables.map((table) => [table, new Map()])), pending: null }
  })
  const common = { sent: 0, answered: 0 }
  try {
    await server.start()
    await server.exec(
      'create table upsert_days (k long primary key, v long, ts timestamp) timestamp(ts) partition by day',
    )
    await server.exec('create table upsert_plain (k long, v long, unique (k))')
    await server.exec(
      'create table upsert_enforced (k long, v long, ts timestamp, primary key (k, ts) enforced) timestamp(ts) partition by day',
    )
    await server.exec('create table upsert_common (k int primary key, v long)')
    for (let index = 0; index < Number(values.rounds); index++) {
      const kills = index + 1 < Number(values.rounds)
      await round(server, models, common, kills)
      if (kills) await server.start()
      await verify(server, models, common)
      process.stdout.write(`round ${index + 1}: ${common.answered} increments\n`)
    }
    process.stdout.write('every row is that of the model\n')
  } finally {
    await server.remove()
  }
}

await main()
