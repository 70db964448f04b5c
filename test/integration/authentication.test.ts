// Goal: access control of every endpoint and protocol: requests without credentials, with wrong ones, as users with
// each right, and with a token, on a read-write and on a read-only server.
//
// Each row of the tables in this test names a request and the right that it requires. The expected response follows:
// 403 for unknown users and for users who lack the right, and no change where none is permitted.

import { createPrivateKey, sign } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { Sender } from '@questdb/nodejs-client'
import pg from 'pg'
// @ts-expect-error it has no types
import Cursor from 'pg-cursor'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestServer } from '../support/server.js'

const small = ['memory.bytes=600m', 'query.threads=1']
const settings = [
  ...small,
  'http.user=root',
  'http.password=s3cret',
  'pg.password=quest',
  'line.tcp.auth.required=true',
]
const multipart = { 'content-type': 'multipart/form-data; boundary=x' }
const file = '--x\r\nContent-Disposition: form-data; name="data"; filename="m.csv"\r\n\r\na,b\r\n1,2\r\n--x--\r\n'

interface Ask {
  readonly right: 'none' | 'read' | 'write' | 'admin'
  readonly method: string
  readonly path: string
  readonly body?: string
  readonly headers?: Record<string, string>
  /** Of who may. */
  readonly status?: number
}

const sql = (statement: string): string => `query=${encodeURIComponent(statement)}`
const asks: readonly Ask[] = [
  { right: 'none', method: 'GET', path: '/' },
  { right: 'none', method: 'GET', path: '/ping', status: 204 },
  { right: 'none', method: 'GET', path: '/settings' },
  { right: 'none', method: 'GET', path: '/warnings' },
  { right: 'none', method: 'GET', path: '/metrics' },
  { right: 'none', method: 'GET', path: '/nope', status: 404 },
  { right: 'read', method: 'GET', path: `/exec?${sql('select 1')}` },
  { right: 'read', method: 'HEAD', path: `/exec?${sql('select 1')}` },
  { right: 'read', method: 'POST', path: '/exec', body: sql('select 1') },
  { right: 'read', method: 'GET', path: `/api/v1/sql/execute?${sql('select 1')}` },
  { right: 'read', method: 'GET', path: `/api/v1/sql/validate?${sql('select 1')}` },
  { right: 'read', method: 'GET', path: `/exec?${sql('show tables')}` },
  { right: 'read', method: 'GET', path: `/exec?${sql('explain insert into m values (now(), 1)')}` },
  { right: 'read', method: 'GET', path: `/exp?${sql('select * from m')}` },
  { right: 'read', method: 'GET', path: `/exp?fmt=parquet&${sql('select * from m')}` },
  { right: 'read', method: 'GET', path: '/chk?j=m' },
  { right: 'write', method: 'POST', path: '/write', body: 'm a=1i\n', status: 204 },
  { right: 'write', method: 'POST', path: '/api/v2/write', body: 'm a=1i\n', status: 204 },
  { right: 'write', method: 'POST', path: '/imp?name=m2', body: file, headers: multipart },
  { right: 'write', method: 'PUT', path: '/settings?version=0', body: '{"a":1}' },
  { right: 'write', method: 'GET', path: `/exec?${sql('insert into m(ts, a) values (now(), 1)')}` },
  { right: 'write', method: 'POST', path: '/exec', body: sql('insert into m(ts, a) values (now(), 1)') },
  { right: 'write', method: 'GET', path: `/api/v1/sql/execute?${sql('create table if not exists n (a int)')}` },
  { right: 'write', method: 'GET', path: `/api/v1/sql/validate?${sql('insert into m(ts, a) values (now(), 1)')}` },
  { right: 'write', method: 'GET', path: `/exec?${sql('vacuum table m')}` },
  { right: 'admin', method: 'GET', path: `/exec?${sql('checkpoint create')}` },
  { right: 'admin', method: 'GET', path: `/exec?${sql("alter user spare with password 's'")}` },
  { right: 'admin', method: 'GET', path: `/exec?${sql('select reload_config()')}` },
]

const everyRight = ['read', 'write', 'admin'] as const
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
const strangers: readonly (readonly [string, string | undefined])[] = [
  ['nobody', undefined],
  ['a wrong password', basic('root:nope')],
  ['an unknown user', basic('ghost:s3cret')],
  ['no password', basic('reader:')],
  ['a wrong token', 'Bearer pst_nope'],
  ['half of it', 'Basic'],
]
const known: Record<string, { header: string; rights: readonly string[] }> = {
  root: { header: basic('root:s3cret'), rights: everyRight },
  reader: { header: basic('reader:r'), rights: ['read'] },
  writer: { header: basic('writer:w'), rights: ['write'] },
  both: { header: basic('both:b'), rights: ['read', 'write'] },
  chief: { header: basic('chief:c'), rights: everyRight },
  idle: { header: basic('idle:i'), rights: [] },
  token: { header: '', rights: ['read'] },
}

/** What changes something, or brings it onto the disk, by other ways than a plain INSERT. */
const waysRound = [
  'with x as (select now() t, 1 a) insert into m(ts, a) select t, a from x',
  "copy (select * from m) to 'out.csv'",
  "copy m to 'out.csv'",
  "copy m from 'out.csv'",
  'copy m from stdin',
  'create table w as (select 1 a)',
  'create view w as (select 1 a)',
  'update m set a = 1',
  'delete from m',
  'truncate table m',
  'drop table m',
  'rename table m to w',
  'alter table m drop column a',
  'vacuum table m',
  'checkpoint',
  'checkpoint create',
  'checkpoint release',
  'select * from (select reload_config())',
  'with x as (select reload_config() r) select * from x',
  'explain analyze select reload_config()',
  "create user w with password 'w'",
  'grant all to reader',
  'alter connector w pause',
] as const

const server = new TestServer(settings)
let key: { d: string; x: string; y: string } = { d: '', x: '', y: '' }

async function ask({ method, path, body, headers = {} }: Ask, authorization: string | undefined): Promise<Response> {
  const form = method === 'POST' && path === '/exec' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  return fetch(`http://${server.address('http')}${path}`, {
    method,
    headers: { ...form, ...headers, ...(authorization === undefined ? {} : { authorization }) },
    ...(body === undefined ? {} : { body }),
  })
}

async function run(statement: string): Promise<readonly (readonly unknown[])[]> {
  const path = `/exec?${sql(statement)}`
  const answer = await ask({ right: 'admin', method: 'GET', path }, known.root?.header)
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${statement}: ${text}`)
  return (JSON.parse(text) as { dataset?: unknown[][] }).dataset ?? []
}

beforeAll(async () => {
  await server.start()
  for (const statement of [
    'create table m (ts timestamp, a long) timestamp(ts) partition by day',
    "create user reader with password 'r' read",
    "create user writer with password 'w' write",
    "create user both with password 'b' read write",
    "create user chief with password 'c' admin",
    "create user idle with password 'i'",
    "create user spare with password 's'",
  ]) {
    await run(statement)
  }
  const [made] = await run('alter user reader create token type rest')
  known.token = { header: `Bearer ${made?.[1]}`, rights: ['read'] }
  const [pair] = await run('alter user writer create token type jwk')
  key = { x: String(pair?.[1]), y: String(pair?.[2]), d: String(pair?.[3]) }
  await run('alter user reader create token type jwk')
})
afterAll(() => server.remove())

function expected({ right, status = 200 }: Ask, rights: readonly string[], readOnly: boolean): number {
  if (right === 'none') return status
  if (readOnly && right !== 'read') return 403
  return rights.includes(right) ? status : 403
}

describe.each([
  ['no setting', []],
  ['HTTP and wire protocol', ['http.security.readonly=true', 'pg.security.readonly=true']],
  ['everything', ['security.readonly=true']],
])('read-only by %s', (_name, assignments) => {
  const readOnly = assignments.length > 0
  beforeAll(async () => {
    if (readOnly) await server.restartWith([...settings, ...assignments])
  })

  test('line protocol over TCP takes rows of who has a key, unless everything is read-only', async () => {
    const before = Number((await run('select count() from m'))[0]?.[0])
    const isClosed = assignments.includes('security.readonly=true')
    if (isClosed) {
      expect(await sendPlain('m a=66i\n')).toBe('closed')
      const [last] = await run(
        "select event, reason from sys.connection_log where protocol = 'ilp' order by ts desc limit 1",
      )
      expect(last).toEqual(['REJECT', 'rows are not accepted [setting=security.readonly]'])
    } else expect(await sendSigned('writer', key, 'm a=66i\n')).toBe('taken')
    const wanted = isClosed ? before : before + 1
    await until(async () => Number((await run('select count() from m'))[0]?.[0]) === wanted)
  })

  test.each(strangers)('%s gets 403 everywhere', async (_name, header) => {
    for (const one of asks) {
      const answer = await ask(one, header)
      expect(`${one.method} ${one.path} ${answer.status}`).toBe(`${one.method} ${one.path} 403`)
      await answer.arrayBuffer()
    }
  })

  test.each(Object.keys(known))('%s may what the rights say', async (name) => {
    const { header, rights } = known[name] as (typeof known)[string]
    for (const one of asks) {
      if (one.method === 'PUT' && rights.includes('write') && !readOnly && name !== 'root') continue
      const before = await run('select count() from m')
      const answer = await ask(one, header)
      const wanted = expected(one, rights, readOnly)
      expect(`${one.method} ${one.path} ${answer.status}`).toBe(`${one.method} ${one.path} ${wanted}`)
      await answer.arrayBuffer()
      if (wanted === 403) expect(await run('select count() from m')).toEqual(before)
    }
  })

  test.each([
    ['admin', 'quest', everyRight],
    ['reader', 'r', ['read']],
    ['writer', 'w', ['write']],
    ['idle', 'i', []],
  ])('the wire protocol as %s', async (user, password, rights: readonly string[]) => {
    const [host, port] = server.address('postgres').split(':')
    const client = new pg.Client({ host: host ?? '', port: Number(port), user, password })
    await client.connect()
    const outcome = async (statement: string): Promise<string> =>
      client.query(statement).then(
        () => 'ok',
        (error: { code?: string }) => error.code ?? 'none',
      )
    const may = (right: string): boolean => rights.includes(right) && (right === 'read' || !readOnly)
    const refused = (code: string): boolean => code === '42501' || code === '25006'
    for (const [right, statement] of [
      ['read', 'select count(*) from m'],
      ['write', 'insert into m(ts, a) values (now(), 5)'],
      ['write', 'create table if not exists o (a int)'],
      ['write', 'with x as (select now() t, 1 a) insert into m(ts, a) select t, a from x'],
      ['admin', "alter user idle with password 'i'"],
    ] as const) {
      const code = await outcome(statement)
      const wanted = statement.startsWith('with') ? may('write') && may('read') : may(right)
      if (user === 'idle' && right === 'admin') expect(code).toBe(readOnly ? code : 'ok')
      else expect(`${statement}: ${wanted ? code : refused(code)}`).toBe(`${statement}: ${wanted ? 'ok' : true}`)
    }
    await client.end()
  })

  test.each(readOnly ? ['admin', 'reader'] : ['reader'])('no statement of %s gets round it', async (user) => {
    const [host = '', port] = server.address('postgres').split(':')
    const password = user === 'admin' ? 'quest' : 'r'
    const before = [await run('select count(), sum(a) from m'), await run('select table_name from tables() order by 1')]
    const client = new pg.Client({ host, port: Number(port), user, password })
    await client.connect()
    await client.query('prepare held as insert into m(ts, a) values (now(), 9)').catch(() => {})
    const ways: Record<string, (text: string) => Promise<unknown>> = {
      simple: (text) => client.query(text),
      extended: (text) => client.query({ text, values: [], queryMode: 'extended' } as pg.QueryConfig),
      cursor: (text) => client.query(new Cursor(text)).read(1),
      'within others': (text) => client.query(`select 1; ${text}; select 2`),
    }
    for (const statement of waysRound) {
      for (const [way, run] of Object.entries(ways)) {
        const code = await run(statement).then(
          () => 'taken',
          (error: { code?: string }) => error.code,
        )
        expect(`${way}: ${statement}: ${code}`).toMatch(/: (42501|25006)$/)
      }
      const answer = await ask({ right: 'write', method: 'GET', path: `/exec?${sql(statement)}` }, known.reader?.header)
      const status = statement.startsWith('execute') ? 400 : 403
      expect(`${statement}: ${answer.status}`).toBe(`${statement}: ${status}`)
      await answer.arrayBuffer()
    }
    const executed = await client.query('execute held').catch((error: { code?: string }) => error.code)
    expect(['42501', '25006', '26000']).toContain(executed)
    await client.end()
    expect([
      await run('select count(), sum(a) from m'),
      await run('select table_name from tables() order by 1'),
    ]).toEqual(before)
  })

  test('the wire protocol refuses strangers', async () => {
    const [host, port] = server.address('postgres').split(':')
    for (const [user, password] of [
      ['admin', 'wrong'],
      ['ghost', 'quest'],
      ['root', 's3cret'],
    ] as const) {
      const client = new pg.Client({ host: host ?? '', port: Number(port), user, password })
      await expect(client.connect()).rejects.toMatchObject({ code: '28P01' })
    }
  })
})

test('the console comes without credentials and asks for them', async () => {
  const page = await fetch(`http://${server.address('http')}/console/`)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('<dialog id="sign-in"')
  const start = await fetch(`http://${server.address('http')}/`)
  expect(start.status).toBe(403)
  expect(start.headers.get('refresh')).toBe('0; url=/console/')
  expect(start.headers.get('www-authenticate')).toContain('Basic')
})

test('line protocol over TCP: only who has a key and may write', async () => {
  await server.restartWith(settings)
  const before = Number((await run('select count() from m'))[0]?.[0])
  expect(await sendSigned('writer', key, 'm a=77i\n')).toBe('taken')
  await until(async () => Number((await run('select count() from m where a = 77'))[0]?.[0]) === 1)
  const [host, port] = server.address('line protocol').split(':')
  const client = await Sender.fromConfig(`tcp::addr=${host}:${port};username=writer;token=${key.d}`)
  await client.connect()
  for (let row = 0; row < 100; row++) await client.table('m3').intColumn('a', row).at(BigInt(row), 'us')
  await client.flush()
  await until(async () => Number((await run("select count() from tables() where table_name = 'm3'"))[0]?.[0]) === 1)
  await until(async () => Number((await run('select count() from m3'))[0]?.[0]) === 100)
  await client.close()
  const other = { ...key, d: Buffer.from(Buffer.from(key.d, 'base64url').reverse()).toString('base64url') }
  expect(await sendSigned('reader', key, 'm a=78i\n')).toBe('closed')
  expect(await sendSigned('ghost', key, 'm a=78i\n')).toBe('closed')
  expect(await sendSigned('writer', other, 'm a=78i\n')).toBe('closed')
  expect(await sendPlain('m a=78i\n')).toBe('closed')
  expect(Number((await run('select count() from m'))[0]?.[0])).toBe(before + 1)
})

test('users outlive kill -9; a dropped one is gone at once', async () => {
  await server.end('SIGKILL')
  await server.start()
  const reads: Ask = { right: 'read', method: 'GET', path: `/exec?${sql('select 1')}` }
  expect((await ask(reads, known.reader?.header)).status).toBe(200)
  expect((await ask(reads, known.token?.header)).status).toBe(200)
  const [host, port] = server.address('postgres').split(':')
  const client = new pg.Client({ host: host ?? '', port: Number(port), user: 'reader', password: 'r' })
  const ended = new Promise((resolve) => client.once('end', resolve))
  client.on('error', () => {})
  await client.connect()
  await run('drop user reader')
  await ended
  expect((await ask(reads, known.reader?.header)).status).toBe(403)
  expect((await ask(reads, known.token?.header)).status).toBe(403)
})

/** `closed` when the server hangs up before the lines are gone for a while. */
async function sendSigned(keyId: string, { d, x, y }: typeof key, lines: string): Promise<'taken' | 'closed'> {
  const socket = await open()
  socket.write(`${keyId}\n`)
  const challenge = await new Promise<Buffer>((resolve) => {
    let seen = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      seen = Buffer.concat([seen, chunk])
      if (seen.includes(10)) resolve(seen.subarray(0, seen.indexOf(10)))
    })
  })
  expect(challenge.length).toBe(512)
  const privateKey = createPrivateKey({ key: { kty: 'EC', crv: 'P-256', d, x, y }, format: 'jwk' })
  socket.write(`${sign('sha256', challenge, privateKey).toString('base64')}\n${lines}`)
  return fate(socket)
}

async function sendPlain(lines: string): Promise<'taken' | 'closed'> {
  const socket = await open()
  socket.write(`${lines}${lines}${lines}`)
  return fate(socket)
}

async function open(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: server.linePort })
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

async function fate(socket: Socket): Promise<'taken' | 'closed'> {
  socket.resume()
  const closed = new Promise<'closed'>((resolve) => socket.once('close', () => resolve('closed')))
  const taken = new Promise<'taken'>((resolve) => setTimeout(() => resolve('taken'), 300))
  const outcome = await Promise.race([closed, taken])
  socket.destroy()
  return outcome
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 600_000; !(await condition()); ) {
    if (performance.now() > end) throw new Error('never became true')
  }
}
