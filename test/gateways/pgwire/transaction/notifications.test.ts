// Goal: LISTEN and NOTIFY work between sessions as in PostgreSQL. A notification is delivered once and in order, when
// its transaction has committed: to an idle session at once, to others when they become idle. Queues are bounded.

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
let listener: pg.Client
let sender: pg.Client
let heard: string[] = []

async function connect(): Promise<pg.Client> {
  const made = new pg.Client(server.login)
  made.on('error', () => {})
  made.on('notification', ({ channel, payload }) => heard.push(`${channel}:${payload}`))
  await made.connect()
  return made
}

/** What has been heard until a notification of now. */
async function heardBy(client = listener): Promise<string[]> {
  await client.query('listen until_now')
  const last = new Promise<void>((resolve) => {
    const look = ({ channel }: pg.Notification): void => {
      if (channel !== 'until_now') return
      client.off('notification', look)
      resolve()
    }
    client.on('notification', look)
  })
  await sender.query('notify until_now')
  await last
  return heard.splice(0).filter((one) => !one.startsWith('until_now'))
}

beforeAll(async () => {
  await server.start()
  listener = await connect()
  sender = await connect()
})

beforeEach(async () => {
  await listener.query('unlisten *')
  heard = []
})

afterAll(async () => {
  await listener?.end()
  await sender?.end()
  await server.remove()
})

test('who listens hears of it, by whom, and nobody else does', async () => {
  await listener.query('LISTEN Orders')
  await listener.query('listen "Orders"')
  const pid = (await sender.query('select pg_backend_pid() p')).rows[0].p
  const first = new Promise<pg.Notification>((resolve) => listener.once('notification', resolve))
  await sender.query("notify ORDERS, 'a ''b'''")
  expect(await first).toMatchObject({ channel: 'orders', payload: "a 'b'", processId: pid })
  await sender.query(`notify "Orders"; notify others, 'x'`)
  expect(await heardBy()).toEqual(["orders:a 'b'", 'Orders:'])
  expect((await listener.query('select pg_listening_channels() c order by c')).rows.map(({ c }) => c)).toEqual([
    'Orders',
    'orders',
    'until_now',
  ])
  await listener.query('unlisten orders')
  await sender.query(`notify orders; notify "Orders", '2'`)
  expect(await heardBy()).toEqual(['Orders:2'])
})

test('pg_notify() takes values, also of a prepared statement again and again', async () => {
  await listener.query('listen c')
  for (const value of ['1', '2', '2'])
    await sender.query({ name: 'tell', text: 'select pg_notify($1, $2)', values: ['c', value] })
  await sender.query("select pg_notify('c', 'x' || 'y')")
  await sender.query("select pg_notify('c', 'x' || 'y')")
  expect(await heardBy()).toEqual(['c:1', 'c:2', 'c:2', 'c:xy', 'c:xy'])
})

test('pg_notify() of rows tells each, and pg_terminate_backend() ends the sessions that a query finds', async () => {
  await listener.query('listen c')
  const told = await sender.query("select pg_notify('c', x::text), x * 2 twice from long_sequence(3) order by x desc")
  expect(told.rows.map(({ twice }) => twice)).toEqual(['6', '4', '2'])
  await sender.query("begin; select pg_notify('c', x::text) from long_sequence(2); rollback")
  expect(await heardBy()).toEqual(['c:3', 'c:2', 'c:1'])
  const third = await connect()
  const ended = new Promise<string>((resolve) => third.on('error', ({ message }) => resolve(message)))
  const { rows } = await third.query('select pg_backend_pid() pid')
  const found = await sender.query('select pg_terminate_backend(pid) done from pg_stat_activity where pid = $1', [
    rows[0].pid,
  ])
  expect(found.rows).toEqual([{ done: true }])
  expect(await ended).toMatch('terminating connection')
})

test('EXPLAIN, PREPARE and CREATE VIEW tell nobody, set nothing and end no session', async () => {
  await listener.query('listen c')
  const acts = ["pg_notify('c', 'told')", "set_config('a.b', 'set', false)", 'pg_terminate_backend(pg_backend_pid())']
  for (const [index, call] of acts.entries()) {
    await sender.query(`explain select ${call}`)
    await sender.query(`prepare p${index} as select ${call}`)
    await sender.query(`create view v${index} as select ${call} x`)
    await sender.query(`drop view v${index}`)
  }
  const { rows } = await sender.query("select current_setting('a.b', true) b")
  expect(rows).toEqual([{ b: null }])
  await sender.query("explain analyze select pg_notify('c', 'analyzed')")
  expect(await heardBy()).toEqual(['c:analyzed'])
})

test('within a transaction it waits for COMMIT, once each, and ROLLBACK forgets it', async () => {
  await listener.query('listen c')
  await sender.query("begin; notify c, '1'; notify c, '2'; notify c, '1'")
  expect(heard).toEqual([])
  await sender.query("savepoint s; notify c, '3'; rollback to s; notify c, '4'")
  await sender.query('commit')
  await sender.query("begin; notify c, '5'; rollback")
  await sender.query("begin; notify c, '6'")
  await expect(sender.query('select nope')).rejects.toThrow()
  await sender.query('commit')
  await expect(sender.query("notify c, '7'; select nope")).rejects.toThrow()
  expect(await heardBy()).toEqual(['c:1', 'c:2', 'c:4'])
})

test('LISTEN of a transaction that is rolled back listens to nothing', async () => {
  await listener.query('begin; listen c; rollback')
  await sender.query('notify c')
  await listener.query('begin; listen c')
  await sender.query("notify c, '2'")
  await listener.query('commit')
  await sender.query("notify c, '3'")
  expect(await heardBy()).toEqual(['c:3'])
})

test('who is in a transaction hears of it behind its end, own notifications included', async () => {
  await listener.query('listen c')
  await listener.query('begin')
  await sender.query("notify c, '1'")
  await listener.query("notify c, 'own'")
  expect(heard).toEqual([])
  await listener.query('commit')
  expect(heard).toEqual(['c:1', 'c:own'])
})

test('rows of the transaction are there when the notification comes', async () => {
  await sender.query('create table told (n int)')
  await listener.query('listen c')
  const seen = new Promise((resolve) =>
    listener.once('notification', () => resolve(listener.query('select count() n from told'))),
  )
  await sender.query('begin; insert into told values (1), (2); notify c; commit')
  expect(await seen).toMatchObject({ rows: [{ n: '2' }] })
})

test('what PostgreSQL refuses is refused', async () => {
  const refused = (sql: string, values: string[] = []): Promise<unknown> =>
    sender.query(sql, values).then(
      () => null,
      ({ code, message }) => `${code} ${message}`,
    )
  expect(await refused(`notify c, '${'x'.repeat(8000)}'`)).toBe('22023 payload string too long')
  expect(await refused(`notify c, '${'x'.repeat(7999)}'`)).toBe(null)
  expect(await refused("select pg_notify('', 'x')")).toBe('22023 channel name cannot be empty')
  expect(await refused('select pg_notify($1, $2)', ['c'.repeat(64), ''])).toBe('22023 channel name too long')
  expect(await refused("select 1 + length(pg_notify(x::text, '')) from long_sequence(2)")).toMatch('takes constants')
  expect(await refused('notify')).toMatch('channel name expected')
})

test('a listener that takes nothing is named to who would overfill its queue, and ending it helps', async () => {
  const stuck = await connect()
  const pid = (await stuck.query('listen c')).command && (await stuck.query('select pg_backend_pid() p')).rows[0].p
  await stuck.query('begin')
  const payload = 'x'.repeat(7000)
  const fill = async (): Promise<string> => {
    for (let sent = 0; sent < 2000; sent += 100) {
      const notes = Array.from({ length: 100 }, (_, index) => `notify c, '${sent + index}${payload}'`).join(';')
      try {
        await sender.query(notes)
      } catch (error) {
        return String(error)
      }
    }
    return ''
  }
  expect(await fill()).toMatch(
    `too many notifications are queued for a session that does not read them [process=${pid}`,
  )
  await sender.query(`select pg_terminate_backend(${pid})`)
  await expect(stuck.query('select 1')).rejects.toThrow()
  await sender.query("notify c, 'free'")
})

test('who has left is forgotten, and DISCARD ALL listens to nothing', async () => {
  const other = await connect()
  await other.query('listen c')
  await other.end()
  await listener.query('listen c')
  await listener.query('discard all')
  await sender.query('notify c')
  expect(await heardBy()).toEqual([])
})
