// Goal: Grafana's QuestDB plug-in works with this server: its dashboards show data, and its editor finds tables and columns.
// Method: the statements go over the wire as the plug-in's driver sends them (lib/pq: start-up parameters, simple queries,
// results as text), after the macros are expanded as the plug-in expands them. The statements of the editor and of the
// query builder are those of version 0.1.8.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pluginDashboard, pluginDashboards } from '../../deploy/plugin-dashboards.js'
import { int32, RawClient, type ServerMessage } from '../gateways/pgwire/raw-client.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { dashboardOf, instant } from '../support/grafana.js'
import { command, TestServer } from '../support/server.js'

/** Types by their numbers on the wire. The plug-in makes a time of `timestamp`, and a label of everything that is text. */
const types = new Map([
  [16, 'bool'],
  [20, 'int8'],
  [23, 'int4'],
  [701, 'float8'],
  [1043, 'text'],
  [1114, 'timestamp'],
])
const day = 86_400_000
const week = { from: '2026-03-02T00:00:00.000Z', to: '2026-03-09T00:00:00.000Z', intervalMs: 1_800_000 }

interface Range {
  readonly from: string
  readonly to: string
  readonly intervalMs: number
}

interface Result {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly (string | null)[])[]
}

const server = new TestServer(['memory.bytes=512m', 'query.threads=1'])
let client: RawClient

beforeAll(async () => {
  await server.start()
  execFileSync(process.execPath, [command, 'demo', '--url', `http://${server.address('http')}`])
  // A line that cannot be stored is one of the things that the dashboards show.
  expect((await server.write('sensors_seen value=1i')).status).toBe(204)
  expect((await server.write('sensors_seen value="x"')).status).toBe(400)
  await server.rows(`CREATE USER grafana WITH PASSWORD 'reads-only-7' READ`)
  client = await connected('grafana', 'reads-only-7')
})

afterAll(async () => {
  client.socket.destroy()
  await server.remove()
})

/** Logs in with the start-up parameters of lib/pq. */
async function connected(user: string, password: string): Promise<RawClient> {
  const client = new RawClient(server.login.port)
  const parameters = {
    user,
    database: 'qdb',
    application_name: 'grafana:12.3.0;questdb-questdb-datasource:0.1.8',
    client_encoding: 'UTF8',
    datestyle: 'ISO, MDY',
    extra_float_digits: '2',
  }
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}\0${value}\0`)
  const body = Buffer.concat([int32(196_608), Buffer.from(`${pairs.join('')}\0`)])
  client.socket.write(Buffer.concat([int32(body.length + 4), body]))
  await client.until('R')
  client.send('p', `${password}\0`)
  await client.until('Z')
  return client
}

/** Runs a statement without parameters, which lib/pq sends as a simple query. */
async function queried(sql: string): Promise<Result> {
  client.send('Q', `${sql}\0`)
  let columns: Result['columns'] = []
  const rows: Result['rows'][number][] = []
  let error = ''
  for (;;) {
    const message = await client.next()
    if (message === null) throw new Error(`the connection is closed: ${sql}`)
    if (message.type === 'T') columns = columnsOf(message)
    if (message.type === 'D') rows.push(rowOf(message))
    if (message.type === 'E') error = message.body.toString('utf8').replaceAll('\0', ' ')
    if (message.type === 'Z') break
  }
  if (error !== '') throw new Error(`${error}\n${sql}`)
  return { columns, rows }
}

function columnsOf({ body }: ServerMessage): Result['columns'] {
  const columns = []
  for (let index = 2; index < body.length; ) {
    const end = body.indexOf(0, index)
    const type = body.readInt32BE(end + 7)
    columns.push({ name: body.toString('utf8', index, end), type: types.get(type) ?? String(type) })
    index = end + 19
  }
  return columns
}

function rowOf({ body }: ServerMessage): (string | null)[] {
  const row = []
  for (let index = 2; index < body.length; ) {
    const length = body.readInt32BE(index)
    const start = index + 4
    row.push(length < 0 ? null : body.toString('utf8', start, start + length))
    index = start + Math.max(length, 0)
  }
  return row
}

/** `query.Interval` of the plug-in as the unit of SAMPLE BY: whole hours, seconds or milliseconds. */
function sampleByInterval(intervalMs: number): string {
  const hours = Math.trunc(intervalMs / 3_600_000)
  const seconds = Math.trunc(intervalMs / 1000)
  if (hours >= 24 && hours * 3_600_000 === intervalMs) return `${Math.trunc(hours / 24)}d`
  if (hours > 0) return `${hours}h`
  return seconds > 0 ? `${seconds}s` : `${Math.max(intervalMs, 1)}T`
}

function expanded(sql: string, { from, to, intervalMs }: Range): string {
  const cast = (text: string): string => `cast(${Date.parse(text)}000 as timestamp)`
  return sql
    .replaceAll('$__sampleByInterval', sampleByInterval(intervalMs))
    .replace(/\$__timeFilter\(\s*([^)]*?)\s*\)/g, `$1 >= ${cast(from)} AND $1 <= ${cast(to)}`)
    .replaceAll('$__fromTime', cast(from))
    .replaceAll('$__toTime', cast(to))
}

test.each(pluginDashboards)('%s is current: npm run docs', (name) => {
  const text = (path: string): string => readFileSync(join(repositoryRoot, 'deploy', path), 'utf8')
  expect(text(`grafana-questdb/${name}.json`)).toBe(pluginDashboard(text(`grafana/${name}.json`)))
})

test.each(pluginDashboards)('every panel of %s has data', async (name) => {
  const { time, templating, panels } = dashboardOf(`grafana-questdb/${name}.json`)
  const range = { from: instant(time.from), to: instant(time.to), intervalMs: week.intervalMs }
  const variables = new Map<string, string>()
  for (const { name, type, query } of templating.list) {
    if (type !== 'query') continue
    // With several values the plug-in writes them as a list of strings.
    variables.set(name, (await queried(query)).rows.map(([value]) => `'${value}'`).join(','))
  }
  const empty: string[] = []
  for (const { title, targets } of panels) {
    for (const { rawSql, format } of targets) {
      const sql = expanded(rawSql, range).replace(/\$(\w+)/g, (whole, name: string) => variables.get(name) ?? whole)
      expect(sql, title).not.toContain('$')
      const { columns, rows } = await queried(sql)
      if (rows.length === 0) empty.push(title)
      if (format === 0) expectSeries({ columns, rows })
    }
  }
  expect(empty, 'panels without data').toEqual([])
})

/** Time first and ascending, then at most names, then numbers: else Grafana does not draw lines. */
function expectSeries({ columns, rows }: Result): void {
  expect(columns[0]).toEqual({ name: 'time', type: 'timestamp' })
  expect(columns.slice(1).map(({ type }) => type)).not.toContain('timestamp')
  expect(columns.some(({ type }) => type === 'float8' || type === 'int8')).toBe(true)
  const times = rows.map(([time]) => Date.parse(`${time}Z`))
  expect(times.every(Number.isFinite)).toBe(true)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
}

test.each([
  [250, '250T'],
  [30_000, '30s'],
  [1_800_000, '1800s'],
  [5_400_000, '1h'],
  [day, '1d'],
])('an interval of %d ms is SAMPLE BY %s', async (intervalMs, text) => {
  expect(sampleByInterval(intervalMs)).toBe(text)
  const sql =
    'SELECT ts AS time, room, avg(temperature) FROM readings WHERE $__timeFilter(ts) SAMPLE BY $__sampleByInterval'
  const result = await queried(expanded(`${sql} ORDER BY time`, { ...week, intervalMs }))
  expect(result.rows.length).toBeGreaterThan(20)
  expectSeries(result)
})

test('the connection test', async () => {
  expect(await queried(';')).toEqual({ columns: [], rows: [] })
})

test('the editor finds tables and columns', async () => {
  const tables = await queried('select table_name, partitionBy, designatedTimestamp, walEnabled, dedup  from tables()')
  expect(tables.columns.map(({ type }) => type)).toEqual(['text', 'text', 'text', 'bool', 'bool'])
  expect(tables.rows).toContainEqual(['readings', 'DAY', 'ts', 't', 't'])
  const fields = await queried(`select "column", type, designated from table_columns('readings')`)
  expect(fields.columns.map(({ type }) => type)).toEqual(['text', 'text', 'bool'])
  expect(fields.rows.slice(0, 3)).toEqual([
    ['ts', 'TIMESTAMP', 't'],
    ['sensor', 'SYMBOL', 'f'],
    ['room', 'SYMBOL', 'f'],
  ])
  const all = await queried(
    'select table_name, ordinal_position, column_name, data_type from information_schema.columns',
  )
  expect(all.rows).toContainEqual(['readings', '1', 'ts', 'timestamp without time zone'])
})

test('ad hoc filters find columns and values', async () => {
  const tags = 'select column_name, data_type, table_name from information_schema.columns'
  expect((await queried(tags)).rows).toContainEqual(['room', 'character varying', 'readings'])
  expect((await queried(`${tags} WHERE table_name IN ('doors')`)).rows.map(([name]) => name)).toContain('room')
  expect((await queried('select distinct room from readings limit 1000')).rows).toContainEqual(['freezer-1'])
  const panel = 'SELECT ts AS time, room, avg(temperature) FROM readings WHERE $__timeFilter(ts) SAMPLE BY 1h'
  const sql = expanded(`SELECT * FROM (${panel}) WHERE  room = 'freezer-1' `, week)
  expect((await queried(sql)).rows).toHaveLength(168)
})

const aggregates =
  'sum avg min max count count_distinct first first_not_null last last_not_null ksum nsum stddev stddev_pop var_pop'
const trend = 'SELECT ts as time,  avg(temperature) mean FROM "readings" WHERE $__timeFilter(ts)'

test.each([
  'SELECT * FROM "readings" WHERE  $__timeFilter(ts) ORDER BY ts DESC LIMIT 100',
  'SELECT ts, sensor, temperature FROM "readings" LATEST ON ts PARTITION BY sensor',
  'SELECT * FROM "readings" WHERE  ts >= $__fromTime AND ts < $__toTime LATEST ON ts PARTITION BY room, sensor',
  `SELECT sensor FROM "readings" WHERE  room IN ( 'freezer-1', 'dock-1' ) AND NOT ( room LIKE 'x%' ) AND room ~ 'o' LIMIT 2, 5`,
  `SELECT room FROM "readings" WHERE  temperature IS NOT NULL AND room NOT ILIKE 'X%' OR NOT ( $__timeFilter(ts) )`,
  `SELECT room, ${aggregates.split(' ').map((name) => `${name}(temperature) ${name}_of_it`)} FROM "readings" GROUP BY room`,
  `${trend} SAMPLE BY $__sampleByInterval FILL ( NULL ) ALIGN TO CALENDAR ORDER BY time ASC LIMIT 100`,
  `${trend} SAMPLE BY $__sampleByInterval FILL ( LINEAR ) ALIGN TO CALENDAR TIME ZONE 'UTC'`,
  `${trend} SAMPLE BY $__sampleByInterval FILL ( PREV ) ALIGN TO CALENDAR WITH OFFSET '00:00'`,
  `${trend} SAMPLE BY $__sampleByInterval ALIGN TO FIRST OBSERVATION`,
  'SELECT ts as time, room, avg(temperature), max(temperature) warmest FROM "readings" WHERE $__timeFilter(ts) SAMPLE BY $__sampleByInterval FILL ( NULL, PREV ) ALIGN TO CALENDAR',
])('the query builder: %s', async (sql) => {
  const result = await queried(expanded(sql, week))
  expect(result.rows.length).toBeGreaterThan(0)
  if (sql.includes('SAMPLE BY')) expectSeries(result)
})

test('the provisioned data source has the keys that the plug-in reads', () => {
  const text = readFileSync(join(repositoryRoot, 'deploy/docker/datasource-questdb.yaml'), 'utf8')
  const known =
    'server port username tlsMode timeout queryTimeout maxOpenConnections maxIdleConnections maxConnectionLifetime timeInterval tlsConfigurationMethod'
  const keys = [...text.matchAll(/^ {6}(\w+): /gm)].map(([, key = '']) => key)
  expect(keys.slice(0, 4)).toEqual(['server', 'port', 'username', 'tlsMode'])
  expect(keys.filter((key) => !known.split(' ').includes(key))).toEqual([])
  expect(text).toContain('secureJsonData: { password: ')
})

test('the compose file installs one version of the plug-in, and mounts what exists', () => {
  const folder = join(repositoryRoot, 'deploy/docker')
  const text = readFileSync(join(folder, 'compose.questdb.yaml'), 'utf8')
  expect(text).toMatch(/GF_PLUGINS_PREINSTALL_SYNC: questdb-questdb-datasource@\d+\.\d+\.\d+$/m)
  expect(text).toMatch(/image: grafana\/grafana:\d+\.\d+\.\d+$/m)
  const mounted = [...text.matchAll(/^ +- (\.\S+?):/gm)].map(([, path = '']) => join(folder, path))
  expect(mounted.filter((path) => existsSync(path))).toHaveLength(3)
})
