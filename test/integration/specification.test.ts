// Goal: the server conforms to its specification, which this test contains as tables of expected values: settings with
// defaults, metrics, limits and the responses beyond them, error messages with positions, and status codes. Each row of
// a table is one check.
//
// All tests use one server. Limits are set in its configuration file and reloaded, as an operator would do it.

import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadSettings } from '../../deploy/settings/settings.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m', 'query.threads=1'])
const conf = join(server.root, 'conf', 'server.conf')

beforeAll(async () => {
  await server.start()
  await server.rows('create table t (ts timestamp, a long) timestamp(ts) partition by day')
  await server.rows('insert into t values (0, 1), (1, 2), (2, 3)')
})
afterAll(() => server.remove())

/** The statement takes long enough to be met while it runs. */
const slow = 'select count() from long_sequence(30000) a cross join long_sequence(300000) b where a.x + b.x < 0'

function url(path: string, parameters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(parameters).toString()
  return `http://${server.address('http')}${path}${query === '' ? '' : `?${query}`}`
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 600_000
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never became true: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function open(listener: 'http' | 'line protocol'): Promise<Socket> {
  const [host = '', port] = server.address(listener).split(':')
  const socket = connect({ host, port: Number(port) })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

describe('settings', () => {
  /** Key, the value that the specification writes, and whether that is the default. */
  const rows: readonly (readonly [string, string, 'default' | 'example'])[] = [
    ['http.net.bind.to', '0.0.0.0:9000', 'default'],
    ['http.min.enabled', 'true', 'example'],
    ['http.min.net.bind.to', '0.0.0.0:9003', 'default'],
    ['http.context.import', '/imp', 'default'],
    ['http.context.execute', '/exec', 'default'],
    ['http.context.export', '/exp', 'default'],
    ['http.pessimistic.health.check.enabled', 'true', 'example'],
    ['metrics.enabled', 'true', 'default'],
    ['query.tracing.enabled', 'true', 'example'],
    ['http.user', 'somebody', 'example'],
    ['http.password', 'secret', 'example'],
    ['http.security.enabled', 'true', 'example'],
    ['http.security.keystore.path', 'conf/keystore.p12', 'example'],
    ['http.security.keystore.password', 'secret', 'example'],
    ['http.security.readonly', 'true', 'example'],
    ['http.cors.enabled', 'true', 'example'],
    ['http.cors.allow.origin', 'https://app.example', 'example'],
    ['telemetry.enabled', 'true', 'default'],
    ['telemetry.queue.capacity', '512', 'default'],
    ['telemetry.hide.tables', 'true', 'example'],
    ['telemetry.table.ttl.weeks', '4', 'default'],
    ['log.sql.query.progress.exe', 'true', 'example'],
    ['http.json.query.max.response.rows', '10000', 'default'],
    ['http.security.max.response.rows', '10000', 'example'],
    ['http.net.connection.limit', '256', 'default'],
    ['http.json.query.connection.limit', '-1', 'default'],
    ['http.export.connection.limit', '-1', 'default'],
    ['http.ilp.connection.limit', '-1', 'default'],
    ['http.net.connection.timeout', '300000', 'default'],
    ['http.receive.buffer.size', '1048576', 'default'],
    ['http.send.buffer.size', '2097152', 'default'],
    ['http.export.default.timeout', '60s', 'default'],
    ['http.export.parquet.tmp.dir', 'tmp', 'default'],
  ]

  test.each(rows)('%s = %s (%s)', async (key, text, kind) => {
    const none = { file: null, environment: {}, assignments: [] }
    const defaults: Record<string, unknown> = loadSettings(none).values
    const changed: Record<string, unknown> = loadSettings({ ...none, assignments: [`${key}=${text}`] }).values
    expect(defaults).toHaveProperty([key])
    if (kind === 'default') expect(changed[key]).toEqual(defaults[key])
    else if (key !== 'http.min.enabled') expect(changed[key]).not.toEqual(defaults[key])
    const shown = await server.rows(`select value_source from (show parameters) where property_path = '${key}'`)
    expect(shown).toEqual([[expect.stringMatching(/^(default|conf)$/)]])
  })
})

test('docs/metrics.md has every metric of the server but those of the process', async () => {
  const text = await (await fetch(url('/metrics'))).text()
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name)
  const documented = readFileSync(join(repositoryRoot, 'docs/metrics.md'), 'utf8')
  expect(names.length).toBeGreaterThan(70)
  expect(names.filter((name) => !/^svc_(process|nodejs)_/.test(name) && !documented.includes(`\`${name}\``))).toEqual(
    [],
  )
})

describe('metrics after use', () => {
  const sessions: { close(): Promise<unknown> }[] = []
  let values = new Map<string, number>()
  const read = async (): Promise<Map<string, number>> => {
    const text = await (await fetch(url('/metrics'))).text()
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    )
  }

  beforeAll(async () => {
    const [host = '', port] = server.address('postgres').split(':')
    const client = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest' })
    await client.connect()
    const gone = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest' })
    await gone.connect()
    await gone.end()
    const line = await open('line protocol')
    line.write('m a=1i 1000\n')
    sessions.push({ close: () => client.end() }, { close: async () => line.destroy() })
    for (const socket of [await open('line protocol'), await open('http')]) socket.destroy()
    await server.untilRows("select count() from tables() where table_name = 'm'", [[1]])
    await server.exec('select a from t')
    await server.exec('select a from t')
    await server.exec('select a from')
    await server.exec('update t set a = a + 1')
    await server.exec('checkpoint')
    await until(async () => {
      values = await read()
      return values.get('svc_connections_closed_total{protocol="ilp"}') === 1
    })
  })
  afterAll(async () => {
    for (const session of sessions) await session.close()
  })

  test.each([
    ['svc_memory_tag_NATIVE_DEFAULT', 1_000_000],
    ['svc_memory_tag_NATIVE_MMAP', 1],
    ['svc_memory_jvm_heap_used', 1_000_000],
    ['svc_memory_jvm_heap_committed', 1_000_000],
    ['svc_memory_malloc_count', 1],
    ['svc_memory_free_count', 1],
    ['svc_connections_active{protocol="http"}', 1],
    ['svc_connections_active{protocol="pg"}', 1],
    ['svc_connections_active{protocol="ilp"}', 1],
    ['svc_connections_opened_total{protocol="http"}', 1],
    ['svc_connections_opened_total{protocol="pg"}', 2],
    ['svc_connections_opened_total{protocol="ilp"}', 2],
    ['svc_connections_closed_total{protocol="http"}', 1],
    ['svc_connections_closed_total{protocol="pg"}', 1],
    ['svc_connections_closed_total{protocol="ilp"}', 1],
    ['svc_queries_total{type="select"}', 2],
    ['svc_queries_total{type="insert"}', 1],
    ['svc_queries_total{type="update"}', 1],
    ['svc_query_error_counter', 1],
    ['svc_query_cache_hits', 1],
    ['svc_query_cache_misses', 1],
    ['svc_rows_written_total', 4],
    ['svc_wal_segments_total', 1],
    ['svc_commits_total', 2],
    ['svc_commit_duration_seconds_count', 2],
    ['svc_commit_duration_seconds_bucket{le="+Inf"}', 2],
  ])('%s is at least %i', (name, least) => {
    expect(values.get(name)).toBeGreaterThanOrEqual(least)
  })

  test.each([
    'svc_memory_tag_NATIVE_O3',
    'svc_wal_apply_lag_seconds',
    'svc_table_readers_active',
    'svc_table_writers_active',
  ])('%s is a number', (name) => expect(values.get(name)).toBeGreaterThanOrEqual(0))

  test.each(['svc_reader_leak_counter', 'svc_unhandled_errors'])('%s is 0', (name) => expect(values.get(name)).toBe(0))
})

const timeoutOf = (ms: number): string =>
  `Query timeout. Please add HTTP header 'Statement-Timeout' with timeout in ms [timeout=${ms}ms]`

describe('messages', () => {
  type Row = readonly [string, string, Readonly<Record<string, string>>, number, Record<string, unknown>]
  const codecs = 'NONE, SNAPPY, GZIP, LZ4, ZSTD, BROTLI, LZO'
  test.each<Row>([
    ['syntax', '/exec', { query: 'select a fro t where' }, 400, { error: /./, position: expect.any(Number) }],
    [
      'a missing table',
      '/exec',
      { query: 'select * from nope' },
      400,
      { error: 'table does not exist [table=nope]', position: 14 },
    ],
    [
      'a missing table',
      '/exp',
      { query: 'select * from nope' },
      400,
      { error: 'table does not exist [table=nope]', position: 14 },
    ],
    ['no SELECT', '/exp', { query: 'drop table t' }, 400, { error: '/exp endpoint only accepts SELECT', position: 0 }],
    ['the deadline of an export', '/exp', { query: slow, timeout: '20' }, 400, { error: timeoutOf(20), position: 0 }],
    [
      'a codec',
      '/exp',
      { query: 'select 1', fmt: 'parquet', compression_codec: 'ZIP' },
      400,
      { query: undefined, error: `invalid compression codec[ZIP], expected one of: ${codecs}`, position: 0 },
    ],
    ['no statement', '/exec', {}, 400, { query: '', error: /./, position: 0 }],
    ['a path of nobody', '/nope', {}, 404, {}],
  ])('%s, %s', async (_name, path, parameters, status, wanted) => {
    const answer = await fetch(url(path, parameters))
    expect(answer.status).toBe(status)
    if (status === 404) return
    const body = (await answer.json()) as Record<string, unknown>
    const expected: Record<string, unknown> = { query: parameters.query, ...wanted }
    if (expected.query === undefined) expect(body).not.toHaveProperty('query')
    else expect(body.query).toBe(expected.query)
    if (expected.error instanceof RegExp) expect(body.error).toMatch(expected.error)
    else expect(body.error).toBe(expected.error)
    expect(body.position).toEqual(expected.position)
  })

  test('the deadline of a statement', async () => {
    const answer = await fetch(url('/exec', { query: slow }), { headers: { 'Statement-Timeout': '15' } })
    expect([answer.status, await answer.json()]).toEqual([400, { query: slow, error: timeoutOf(15), position: 0 }])
  })
})

describe('limits', () => {
  const set = async (...lines: string[]): Promise<void> => {
    writeFileSync(conf, `${lines.join('\n')}\n`)
    process.kill(server.pid, 'SIGHUP')
    const [key = '', value = ''] = (lines.at(-1) ?? 'query.timeout=0').split('=')
    await until(async () => {
      const client = await fetchShown(key)
      return client === value
    })
  }
  /** Over the wire protocol: HTTP may be what is limited. */
  const fetchShown = async (key: string): Promise<unknown> => {
    const [host = '', port] = server.address('postgres').split(':')
    const client = new pg.Client({ host, port: Number(port), user: 'admin', password: 'quest' })
    await client.connect()
    const { rows } = await client.query(`select value from (show parameters) where property_path = '${key}'`)
    await client.end()
    return rows[0]?.value
  }

  test.each(['http.json.query.max.response.rows', 'http.security.max.response.rows'])('%s', async (key) => {
    await set(`${key}=7`)
    expect((await server.exec('select x from long_sequence(20)')).body.count).toBe(7)
    expect((await server.exec('select x from long_sequence(20)', { limit: '9' })).body.count).toBe(7)
    expect((await server.exec('select x from long_sequence(20)', { count: 'true' })).body.count).toBe(20)
    await set('query.timeout=0')
  })

  test.each([
    ['http.json.query.connection.limit', '/exec', { query: 'select 1' }, undefined],
    ['http.export.connection.limit', '/exp', { query: 'select 1' }, undefined],
    ['http.ilp.connection.limit', '/write', {}, 't a=1i\n'],
  ] as const)('%s: the one beyond it gets 503, and others go on', async (key, path, parameters, body) => {
    const ask = () => fetch(url(path, parameters), body === undefined ? {} : { method: 'POST', body })
    await set(`${key}=0`)
    const refused = await ask()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)])
    expect((await fetch(url('/'))).status).toBe(200)
    await set(`${key}=-1`)
    expect((await ask()).ok).toBe(true)
  })

  test('http.net.connection.limit: the one beyond it gets 503', async () => {
    await set('http.net.connection.limit=1')
    const held = await open('http')
    held.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    // Let in, unless a kept connection of the tests before has the place.
    await once(held, 'data')
    const refused = await open('http')
    refused.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const text = String((await once(refused, 'data'))[0])
    expect(text).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: \d+\r\n/i)
    held.destroy()
    refused.destroy()
    await set('http.net.connection.limit=256')
    await until(async () => (await fetch(url('/'))).status === 200)
  })

  test('http.net.connection.timeout: who is silent is closed', async () => {
    await set('http.net.connection.timeout=1000')
    const silent = await open('http')
    silent.resume()
    await once(silent, 'close')
    await set('http.net.connection.timeout=300000')
  })

  test('http.export.default.timeout and http.export.parquet.tmp.dir', async () => {
    await set('http.export.default.timeout=30ms')
    const answer = await fetch(url('/exp', { query: slow, fmt: 'parquet' }))
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([400, timeoutOf(30)])
    const folder = join(server.root, 'exports-of-mine')
    await set('http.export.default.timeout=60s', `http.export.parquet.tmp.dir=${folder}`)
    const file = await fetch(
      url('/exp', { query: 'select rnd_double() d from long_sequence(1000000)', fmt: 'parquet' }),
    )
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1', 0, 4)).toBe('PAR1')
    expect(existsSync(folder)).toBe(true)
    await set('query.timeout=0')
  })

  test('http.security.readonly, and what was set before is back', async () => {
    await set('http.security.readonly=true')
    const refused = await server.exec('insert into t values (9, 9)')
    expect(refused.status).toBe(403)
    appendFileSync(conf, '\n')
    await set('http.security.readonly=false')
    expect((await server.exec('insert into t values (9, 9)')).status).toBe(200)
  })
})

describe('what clients ask besides', () => {
  test.each([
    ['select 1', undefined],
    ['explain select 1', 'EXPLAIN'],
    ['insert into t values (0, 1)', 'INSERT'],
    ['insert into t select ts, a from t', 'INSERT AS SELECT'],
    ['create table u (a int)', 'CREATE TABLE'],
    ['create table u as (select * from t)', 'CREATE AS SELECT'],
    ['drop table t', 'DROP'],
    ['truncate table t', 'TRUNCATE'],
    ['checkpoint create', 'CHECKPOINT CREATE'],
    ['alter table t add column b int', 'ALTER TABLE'],
  ])('/api/v1/sql/validate of %s', async (query, queryType) => {
    const before = await server.rows('select count() from t')
    const answer = (await (await fetch(url('/api/v1/sql/validate', { query }))).json()) as Record<string, unknown>
    expect(answer).toMatchObject({ query, ...(queryType === undefined ? { timestamp: -1 } : { queryType }) })
    expect('queryType' in answer).toBe(queryType !== undefined)
    expect('columns' in answer).toBe(/^(select|explain)/.test(query))
    expect(await server.rows('select count() from t')).toEqual(before)
  })

  test.each([
    ["insert into t values ('2024-01-01', 1)", 'Insert into table rows: 1'],
    ['delete from t', 'Delete table: t'],
    ['create table planned (a int)', 'Create table: planned'],
  ])('explain=true of %s does nothing', async (query, line) => {
    const before = await server.rows('select count() from t')
    const answer = await (await fetch(url('/exec', { query, explain: 'true' }))).json()
    expect(answer).toMatchObject({ query, explain: { plan: [line] } })
    expect((await fetch(url('/exec', { query: 'drop table t', explain: 'true' }))).status).toBe(400)
    expect(await server.rows('select count() from t')).toEqual(before)
  })

  test.each([['/chk', { j: 't', f: 'json' }, '{"status":"Exists"}'] as const, ['/warnings', {}, '['] as const])(
    '%s answers plain JSON',
    async (path, parameters, begin) => {
      const response = await fetch(url(path, parameters))
      expect(response.headers.get('content-type')).toBe('application/json')
      expect((await response.text()).startsWith(begin)).toBe(true)
    },
  )
})
