// Goal: what an operator uses on a running server: metrics on both ports, reloaded settings, system tables, traced
// connections, cancelled queries, logs, and health checks that respond while the main thread is busy.

import { appendFileSync, existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { Agent, fetch as fetchOver } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['query.tracing.enabled=true', 'memory.bytes=512m'])
const conf = join(server.root, 'conf', 'server.conf')

beforeAll(() => server.start())
afterAll(() => server.remove())

async function scalar(sql: string): Promise<unknown> {
  return (await server.rows(sql))[0]?.[0]
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 600_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never became true: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function log(): string {
  return readFileSync(join(server.root, 'log', 'penstock-latest.log'), 'utf8')
}

async function metric(name: string, port: 'http' | 'health' = 'http'): Promise<number> {
  const text = await (await fetch(`http://${server.address(port)}/metrics`)).text()
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  )
}

test('metrics count what happens, on both ports', async () => {
  const before = await metric('svc_rows_written_total')
  expect((await server.write('counted v=1i\ncounted v=2i\n')).status).toBe(204)
  expect(await metric('svc_rows_written_total')).toBe(before + 2)
  expect(await metric('svc_rows_written_total', 'health')).toBe(before + 2)
  expect(await metric('svc_commits_total')).toBeGreaterThan(0)
  expect(await metric('svc_commit_duration_seconds_count')).toBeGreaterThan(0)
  const errors = await metric('svc_query_error_counter')
  await server.exec('select nope')
  expect(await metric('svc_query_error_counter')).toBe(errors + 1)
  expect(await metric('svc_unhandled_errors')).toBe(0)
})

test('settings reload by reload_config() and by SIGHUP; mistakes change nothing', async () => {
  expect((await server.exec('select x from long_sequence(20)')).body.count).toBe(20)
  appendFileSync(conf, '\nhttp.json.query.max.response.rows = 7\nquery.threads = 3\n')
  expect(await scalar('select reload_config()')).toBe(true)
  expect((await server.exec('select x from long_sequence(20)')).body.count).toBe(7)
  const source =
    "select value, value_source, reloadable from (show parameters) where property_path = 'http.json.query.max.response.rows'"
  expect(await server.rows(source)).toEqual([['7', 'conf', true]])
  expect(log()).toContain('query.threads requires a restart to change')
  writeFileSync(conf, 'http.json.query.max.response.rows = many\n')
  expect(await scalar('select reload_config()')).toBe(false)
  expect((await server.exec('select x from long_sequence(20)')).body.count).toBe(7)
  writeFileSync(conf, 'log.sql.query.progress.exe = true\n')
  process.kill(server.pid, 'SIGHUP')
  await until(async () => (await server.exec('select x from long_sequence(20)')).body.count === 20)
})

test('events are kept, without texts, and can be hidden', async () => {
  await server.exec('create table told (v int, ts timestamp) timestamp(ts) partition by day')
  await server.write('told_by_line v=1i\n')
  await until(async () => {
    const events = await server.rows('select distinct event, origin from telemetry')
    return ['DB_START SERVER', 'TABLE_CREATE HTTP', 'TABLE_CREATE ILP', 'QUERY_EXEC HTTP'].every((wanted) =>
      events.some((row) => row.join(' ') === wanted),
    )
  })
  writeFileSync(conf, 'log.sql.query.progress.exe = true\ntelemetry.hide.tables = true\n')
  expect(await scalar('select reload_config()')).toBe(true)
  expect((await server.exec('select * from telemetry')).body.error).toBe('table does not exist [table=telemetry]')
  expect(await scalar("select count() from tables() where table_name = 'telemetry'")).toBe(0)
  writeFileSync(conf, 'log.sql.query.progress.exe = true\n')
  expect(await scalar('select reload_config()')).toBe(true)
  expect(Number(await scalar('select count() from telemetry'))).toBeGreaterThan(0)
  expect((await server.rows('show create database')).join()).not.toContain('telemetry')
})

test('one connection is traced, another is not', async () => {
  const run = async (agent: Agent, query: string) => {
    const url = `http://${server.address('http')}/exec?${new URLSearchParams({ query })}`
    await (await fetchOver(url, { dispatcher: agent })).text()
  }
  const traced = new Agent({ connections: 1, pipelining: 1 })
  const other = new Agent({ connections: 1, pipelining: 1 })
  await run(traced, 'SET query.trace = true')
  await run(traced, 'select 41 + 1')
  await run(other, 'select 40 + 2')
  await run(traced, "select 'my password' p")
  await until(async () => Number((await server.exec('select count() from _query_trace')).body.dataset?.[0]?.[0]) >= 3)
  const strings = await server.rows('select query_text, execution_micros > 0, principal from _query_trace')
  expect(strings).toContainEqual(['select 41 + 1', true, 'admin'])
  const all = JSON.stringify(strings)
  expect(all).not.toContain('40 + 2')
  expect(all).not.toContain('my password')
  await Promise.all([traced.close(), other.close()])
})

test('a running query is shown and can be cancelled', async () => {
  const slow = 'select count() from long_sequence(30000) a cross join long_sequence(300000) b where a.x + b.x < 0'
  const answer = server.exec(slow)
  let id: unknown
  await until(async () => {
    id = await scalar(
      `select query_id from query_activity() where query like '%cross join%' and query not like '%activity%'`,
    )
    return id !== undefined
  })
  expect((await server.exec(`cancel query ${id}`)).body.ddl).toBe('OK')
  const { status, body } = await answer
  expect([status, body.error]).toEqual([400, 'cancelled by user'])
  expect((await server.exec('cancel query 999999')).status).toBe(400)
})

test('statements are logged in the form that the specification gives, secrets are not', async () => {
  await server.exec('select 1 + 1 logged')
  await server.exec("select 'the password of all' p")
  await until(async () => log().includes('[exe] select 1 + 1 logged'))
  expect(log()).toMatch(
    /^\d{4}-\d\d-\d\dT[\d:.]+Z I \w+ \[exe\] select 1 \+ 1 logged \[cached=(true|false), time=[\d.]+ms\]$/m,
  )
  expect(log()).not.toContain('the password of all')
  for (const line of log().trimEnd().split('\n')) expect(line).toMatch(/^\S+Z [IWEC] \w+ ./)
  const folder = join(server.root, 'log')
  expect(readlinkSync(join(folder, 'penstock-latest.log'))).toMatch(/^stdout-\d{4}-\d\d-\d\d\.txt$/)
  expect(readdirSync(folder).every((name) => /^(stdout-[\d-]+\.txt|penstock-latest\.log)$/.test(name))).toBe(true)
})

test('queries and INSERTs of the wire protocol are logged as well', async () => {
  const client = new pg.Client(server.login)
  await client.connect()
  await client.query('select 2 + 2 wired')
  await client.query("select 'the passphrase of all' p")
  await client.query('create table wired_rows (a int)')
  await client.query('insert into wired_rows values (7)')
  await client.query('select a from wired_rows where a = $1', [7])
  await client.query('begin')
  await client.end()
  const expected = [
    'select 2 + 2 wired',
    'create table wired_rows (a int)',
    'insert into wired_rows values (7)',
    'select a from wired_rows where a = $1',
    'begin',
  ]
  for (const sql of expected) await until(async () => log().includes(` I pg [exe] ${sql} [cached=false, time=`))
  expect(log()).not.toContain('the passphrase of all')
})

const medianOf = (values: readonly number[]): number =>
  values.toSorted((x, y) => x - y)[Math.floor(values.length / 2)] ?? Number.NaN

test('health checks answer within 50 ms while the server is stopped from working, and are not logged', async () => {
  const health = `http://${server.address('health')}/`
  const ask = async (): Promise<number> => {
    const start = performance.now()
    expect(await (await fetch(health)).text()).toBe('OK')
    return performance.now() - start
  }
  await ask()
  const before = log()
  // On a machine that has other work, what it takes beside an idle server.
  const calm: number[] = []
  for (let index = 0; index < 20; index++) calm.push(await ask())
  // A statement of many columns keeps the main thread busy with planning.
  const big = `select ${Array.from({ length: 8000 }, (_, index) => `${index} + 1`).join(', ')}`
  const busy = fetch(`http://${server.address('http')}/exec`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: big }),
  }).then((answer) => answer.text())
  const times: number[] = []
  for (let index = 0; index < 40; index++) {
    times.push(await ask())
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await busy
  expect(medianOf(times)).toBeLessThan(Math.max(50, 10 * medianOf(calm)))
  expect(log().replace(before, '')).not.toContain('health')
})

test('the connection log tells who came and went', async () => {
  const rows = await server.rows("select distinct protocol, event from sys.connection_log where protocol = 'http'")
  expect(rows).toContainEqual(['http', 'OPEN'])
  expect(rows).toContainEqual(['http', 'CLOSE'])
  expect(Number(await scalar("select count() from sys.connections where state = 'querying'"))).toBe(1)
  expect(Number(await scalar('select sum(bytes) from memory_metrics()'))).toBeGreaterThan(1_000_000)
})

test('the stop is the last event, and another start finds it', async () => {
  await server.restart()
  const events = await server.rows("select event from telemetry where event in ('DB_START', 'DB_STOP')")
  expect(events.map(([event]) => event)).toEqual(['DB_START', 'DB_STOP', 'DB_START'])
  expect(existsSync(conf)).toBe(true)
})
