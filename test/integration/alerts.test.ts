// Goal: the server evaluates alerts on its own schedule; their states are in sys.alerts and in a metric; an error stops
// one alert and no other; definitions survive a restart, and need the right to write.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'telemetry.enabled=false'])

beforeAll(async () => {
  await server.start()
  await server.exec('create table plant (ts timestamp, sensor symbol, v double) timestamp(ts) partition by day')
})
afterAll(() => server.remove())

async function define(body: unknown, headers: Record<string, string> = {}): Promise<readonly [number, string]> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await fetch(`http://${server.address('http')}/api/v1/alerts`, { method: 'PUT', body: text, headers })
  const { error = '' } = (await answer.json()) as { error?: string }
  return [answer.status, error]
}

async function remove(name: string): Promise<number> {
  const url = `http://${server.address('http')}/api/v1/alerts?name=${encodeURIComponent(name)}`
  return (await fetch(url, { method: 'DELETE' })).status
}

const untilState = (name: string, state: string): Promise<void> =>
  server.untilRows(`select state from sys.alerts where name = '${name}'`, [[state]], 60_000)

async function metric(name: string): Promise<string[]> {
  const text = await (await fetch(`http://${server.address('http')}/metrics`)).text()
  return text.split('\n').filter((line) => line.startsWith(name))
}

test('an alert fires while its query returns rows', async () => {
  const query = 'select sensor, max(v) v, max(ts) ts from plant where v > 5'
  expect(await define({ name: 'hot', query, every: '1s' })).toEqual([200, ''])
  await untilState('hot', 'inactive')
  await server.exec("insert into plant values ('2026-03-02T00:00:00Z', 'a', 7.5), ('2026-03-02T00:00:01Z', 'b', 9)")
  await untilState('hot', 'firing')
  expect(
    await server.rows("select rows, first_row, error, every, for, query, username from sys.alerts where name = 'hot'"),
  ).toEqual([[2, 'sensor=a, v=7.5, ts=2026-03-02T00:00:00.000000Z', null, '1s', '0s', query, 'admin']])
  expect(await metric('svc_alert_firing')).toEqual(['svc_alert_firing{alert="hot"} 1'])
  await server.exec('delete from plant')
  await untilState('hot', 'inactive')
  expect(await metric('svc_alert_firing')).toEqual(['svc_alert_firing{alert="hot"} 0'])
})

test('it is pending first if it says for how long', async () => {
  expect(await define({ name: 'patient', query: 'select 1', every: '1s', for: '1h' })).toEqual([200, ''])
  await untilState('patient', 'pending')
  expect(await define({ name: 'patient', query: 'select 1', every: '1s', for: '1s' })).toEqual([200, ''])
  await untilState('patient', 'firing')
  expect(await remove('patient')).toBe(200)
  expect(await remove('patient')).toBe(404)
  expect(await server.rows("select count() from sys.alerts where name = 'patient'")).toEqual([[0]])
})

test('an error is the state of one alert', async () => {
  await server.exec('create table short (ts timestamp, v long) timestamp(ts)')
  expect(await define({ name: 'broken', query: 'select * from short', every: '1s' })).toEqual([200, ''])
  expect(await define({ name: 'sound', query: 'select 1', every: '1s' })).toEqual([200, ''])
  await untilState('broken', 'inactive')
  await server.exec('drop table short')
  await untilState('broken', 'error')
  const rows = await server.rows("select error from sys.alerts where name = 'broken'")
  expect(rows).toEqual([['table does not exist [table=short]']])
  expect(await metric('svc_alert_failing')).toContain('svc_alert_failing{alert="broken"} 1')
  await untilState('sound', 'firing')
  await server.exec('create table short (ts timestamp, v long) timestamp(ts)')
  await untilState('broken', 'inactive')
})

test.each([
  ['{', 'the body is not JSON'],
  [[], 'an alert is a JSON object with name, query, every and for'],
  [{ query: 'select 1' }, 'an alert needs a name'],
  [{ name: 'x', query: ' ' }, 'an alert needs a query'],
  [{ name: 'x', query: 'select 1', often: '1s' }, 'unknown member of an alert [name=often]'],
  [{ name: 'x', query: 'select 1', every: '10' }, "'every' is a duration from 1s to 1d, such as 5m [value=10]"],
  [{ name: 'x', query: 'select 1', for: '8d' }, "'for' is a duration from 0s to 7d, such as 5m [value=8d]"],
  [{ name: 'x', query: 'select nope from plant' }, 'the query fails: Invalid column: nope'],
  [{ name: 'x', query: 'drop table plant' }, 'the query fails: '],
  [{ name: 'x', query: "insert into plant values (now(), 'a', 1)" }, 'the query fails: '],
  [{ name: 'x', query: "create user u with password 'p'" }, 'the query may contain a secret'],
])('%j is rejected', async (body, message) => {
  const [status, error] = await define(body)
  expect([status, error]).toEqual([400, expect.stringContaining(message)])
  expect(await server.rows("select count() from sys.alerts where name = 'x'")).toEqual([[0]])
})

test('a definition needs the right to write', async () => {
  await server.exec("create user reader with password 'r' read")
  const headers = { authorization: `Basic ${btoa('reader:r')}` }
  expect(await define({ name: 'x', query: 'select 1' }, headers)).toEqual([403, expect.stringContaining('right=write')])
})

test('definitions at the same time are all kept', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `together ${index}`)
  await Promise.all(names.map((name) => define({ name, query: 'select 1 where 1 = 2' })))
  const stored = readFileSync(join(server.root, 'conf/alerts.json'), 'utf8')
  expect(names.filter((name) => !stored.includes(`"${name}"`))).toEqual([])
  expect(await Promise.all(names.map(remove))).toEqual(names.map(() => 200))
})

test('a restart keeps the definitions', async () => {
  await server.restart('SIGKILL')
  await untilState('sound', 'firing')
  expect(await server.rows('select name from sys.alerts order by name')).toEqual([['broken'], ['hot'], ['sound']])
})

test('a file that cannot be read is kept, and stops nothing but definitions', async () => {
  const path = join(server.root, 'conf/alerts.json')
  const before = readFileSync(path, 'utf8')
  await server.end()
  writeFileSync(path, '{"version": 2}')
  await server.start()
  expect(await server.rows('select count() from sys.alerts')).toEqual([[0]])
  expect(await define({ name: 'x', query: 'select 1' })).toEqual([400, expect.stringContaining('cannot be read')])
  expect(readFileSync(path, 'utf8')).toBe('{"version": 2}')
  await server.end()
  writeFileSync(path, before)
  await server.start()
  await untilState('sound', 'firing')
})
