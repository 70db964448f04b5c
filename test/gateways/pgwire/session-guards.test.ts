// Goal: PostgreSQL sessions can be bound to their TLS connection (SCRAM channel binding), can resume an earlier TLS
// session, are reported as encrypted, end after their idle time-outs, and show durations among their settings as
// PostgreSQL does. Notices name what IF EXISTS and IF NOT EXISTS skip.

import { createHash, X509Certificate } from 'node:crypto'
import { type EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serverEndPoint } from '../../../gateways/common/channel-binding.js'
import { repositoryRoot } from '../../support/docs/source-tree.js'
import { TestServer } from '../../support/server.js'

const keys = join(repositoryRoot, 'test/support/keys')
const server = new TestServer([
  'query.threads=1',
  'pg.auth.method=scram-sha-256',
  'pg.security.enabled=true',
  `pg.security.keystore.path=${join(keys, 'rsa-cert.pem')},${join(keys, 'rsa-key.pem')}`,
])

beforeAll(() => server.start())
afterAll(() => server.remove())

async function connected(options: Partial<pg.ClientConfig> = {}): Promise<pg.Client> {
  const login = { ...server.login, ...options }
  const client = new pg.Client(login)
  const { connection } = client as unknown as { readonly connection: EventEmitter }
  connection.on('authenticationSASL', (message: { readonly mechanisms: string[] }) => {
    offered = message.mechanisms
  })
  await client.connect()
  return client
}

/** Mechanisms, at the last connection. */
let offered: string[] = []

const encrypted = { ssl: { rejectUnauthorized: false } }
const mine = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'

test.each([true, false])('encrypted, bound to the channel: %s', async (enableChannelBinding) => {
  const client = await connected({ ...encrypted, enableChannelBinding } as pg.ClientConfig)
  expect(offered).toEqual(['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256'])
  expect((await client.query(mine)).rows).toEqual([{ ssl: true }])
  await client.end()
  const wrong = connected({ ...encrypted, enableChannelBinding, password: 'wrong' } as pg.ClientConfig)
  await expect(wrong).rejects.toMatchObject({ code: '28P01' })
})

// A context for each connection would take milliseconds of the event loop, and its tickets would be worthless.
test('connections share the secure context, so that a client can resume its TLS session', async () => {
  const { host, port } = server.login
  const options = { host, port, rejectUnauthorized: false, ALPNProtocols: ['postgresql'] }
  const first = connect(options)
  const [session] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  const second = connect({ ...options, session })
  await once(second, 'secureConnect')
  expect(second.isSessionReused()).toBe(true)
  second.destroy()
  const client = await connected({ ssl: { rejectUnauthorized: false, session } })
  expect(offered).toEqual(['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256'])
  const { connection } = client as unknown as { readonly connection: { readonly stream: TLSSocket } }
  expect(connection.stream.isSessionReused()).toBe(true)
  await client.end()
})

test('without encryption there is nothing to bind to', async () => {
  const client = await connected({ enableChannelBinding: true } as pg.ClientConfig)
  expect(offered).toEqual(['SCRAM-SHA-256'])
  expect((await client.query(mine)).rows).toEqual([{ ssl: false }])
  await client.end()
})

test('the end point is the hash that the certificate is signed with', () => {
  const raw = (name: string): Buffer => new X509Certificate(readFileSync(join(keys, name))).raw
  for (const name of ['cert.pem', 'rsa-cert.pem'])
    expect(serverEndPoint(raw(name))).toEqual(createHash('sha256').update(raw(name)).digest())
  const certificate = raw('cert.pem')
  for (let bytes = 0; bytes < 40; bytes++) expect(serverEndPoint(certificate.subarray(0, bytes))).toBeNull()
})

test('durations are shown with their unit', async () => {
  const client = await connected()
  const shown = async (value: string): Promise<unknown> => {
    await client.query(`set statement_timeout = ${value}`)
    return (await client.query('show statement_timeout')).rows[0].statement_timeout
  }
  expect([await shown('5000'), await shown("'90s'"), await shown("'2min'"), await shown('0')]).toEqual([
    '5s',
    '90s',
    '2min',
    '0',
  ])
  await client.query('set lock_timeout = 1500')
  const { rows } = await client.query(
    "select setting, unit, current_setting('lock_timeout') c from pg_settings where name = 'lock_timeout'",
  )
  expect(rows).toEqual([{ setting: '1500', unit: 'ms', c: '1500ms' }])
  await expect(client.query("set idle_session_timeout = 'x'")).rejects.toMatchObject({ code: '22023' })
  await client.end()
})

test.each([
  ['idle_in_transaction_session_timeout', '25P03', 'begin'],
  ['idle_session_timeout', '57P05', 'select 1'],
])('silence longer than %s ends the session', async (name, code, last) => {
  const client = await connected()
  const other = await connected()
  const ended = once(client, 'error')
  client.on('error', () => {})
  await client.query(`set ${name} = 100`)
  await client.query(last)
  expect((await ended)[0]).toMatchObject({ code, severity: 'FATAL' })
  expect((await other.query('select 1 a')).rows).toEqual([{ a: 1 }])
  await other.end()
})

test('notices name what IF EXISTS and IF NOT EXISTS skip', async () => {
  const client = await connected()
  const notices: (string | undefined)[] = []
  client.on('notice', ({ code, message }) => notices.push(`${code} ${message}`))
  for (const text of ['create table if not exists told (a int)', 'drop table if exists told, untold'])
    for (let times = 0; times < 2; times++) await client.query(text)
  expect(notices).toEqual([
    '42P07 relation "told" already exists, skipping',
    '00000 table "untold" does not exist, skipping',
    '00000 table "told" does not exist, skipping',
    '00000 table "untold" does not exist, skipping',
  ])
  await client.end()
})
