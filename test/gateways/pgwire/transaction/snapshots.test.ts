// Goal: a REPEATABLE READ transaction sees a snapshot of all tables from its first query, plus its own rows and
// changes; other sessions may share the snapshot. Ingestion continues meanwhile, and the snapshot is released when the
// transaction ends.

import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../../../support/server.js'

const server = new TestServer(['wal.commit.mode=nosync', 'query.threads=1', 'metrics.enabled=true'])
let reader: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  reader = await server.connect()
  other = await server.connect()
})

afterAll(() => server.remove())

beforeEach(async () => {
  await other.query('drop table if exists m; drop table if exists n')
  await other.query('create table m (ts timestamp, v long) timestamp(ts) partition by day wal')
  await other.query('create table n (v long)')
  await other.query("insert into m select dateadd('h', x::int, '2024-01-01'), x from long_sequence(100)")
  await other.query('insert into n values (1)')
})

const sums = 'select (select count(*) from m) c, (select sum(v) from m) s, (select sum(v) from n) n'

async function read(client = reader): Promise<string> {
  const { rows } = await client.query(sums)
  return `${rows[0].c} ${rows[0].s} ${rows[0].n}`
}

/** Tables that somebody reads. */
async function held(): Promise<string | undefined> {
  const text = await (await fetch(`http://${server.address('health')}/metrics`)).text()
  return /^svc_table_readers_active (\d+)/m.exec(text)?.[1]
}

/** New rows, early and late ones, changed and deleted ones, and files written anew. */
async function changeAll(): Promise<void> {
  await other.query("insert into m select dateadd('m', x::int, '2024-01-01'), 1000 from long_sequence(1000)")
  await other.query('checkpoint')
  await other.query('update m set v = v + 1')
  await other.query("delete from m where ts > '2024-01-03'")
  await other.query('update n set v = 7')
  await other.query('checkpoint')
}

test.each(['repeatable read', 'serializable'])(
  '%s: all queries of a transaction see the moment of the first',
  async (level) => {
    await reader.query(`begin isolation level ${level}`)
    expect(await read()).toBe('100 5050 1')
    await changeAll()
    expect(await read()).toBe('100 5050 1')
    const { rows } = await reader.query("select ts, v from m where ts > '2024-01-04' limit 1")
    expect(rows[0].v).toBe('73')
    expect((await reader.query('explain analyze select sum(v) from m')).rows.length).toBeGreaterThan(0)
    await reader.query('commit')
    expect(await read()).not.toMatch(/^100 /)
  },
)

test('read committed: each query sees what is there', async () => {
  await reader.query('begin')
  expect(await read()).toBe('100 5050 1')
  await other.query('update n set v = 7')
  expect(await read()).toBe('100 5050 7')
  await reader.query('rollback')
})

test('the transaction sees its own rows and changes above the moment, and what it stored at once', async () => {
  await reader.query('begin isolation level repeatable read')
  expect(await read()).toBe('100 5050 1')
  await other.query('insert into n values (100)')
  await reader.query('insert into n values (10)')
  expect(await read()).toBe('100 5050 11')
  await reader.query('update n set v = v + 1')
  expect(await read()).toBe('100 5050 13')
  await reader.query('alter table n add column w int')
  expect(await read()).toBe('100 5050 13')
  await reader.query('commit')
  expect(await read()).toBe('100 5050 114')
})

test('a table that others alter is refused, one that they make is read', async () => {
  await reader.query('begin isolation level repeatable read')
  expect(await read()).toBe('100 5050 1')
  await other.query('create table later (v int); insert into later values (5)')
  expect((await reader.query('select v from later')).rows).toEqual([{ v: 5 }])
  await other.query('drop table later')
  await other.query('alter table n add column w int')
  await expect(reader.query('select * from n')).rejects.toMatchObject({ code: '40001' })
  await reader.query('rollback')
})

test('COPY and portals read the moment', async () => {
  await reader.query('begin isolation level repeatable read')
  expect(await read()).toBe('100 5050 1')
  await other.query('truncate table m')
  await reader.query('declare c cursor for select v from m')
  expect((await reader.query('fetch 3 from c')).rows).toEqual([{ v: '1' }, { v: '2' }, { v: '3' }])
  await reader.query('rollback')
  expect((await reader.query('select count(*) c from m')).rows).toEqual([{ c: '0' }])
})

test('a moment is read by others while its transaction lasts', async () => {
  await reader.query('begin isolation level repeatable read')
  const { rows } = await reader.query('select pg_export_snapshot()')
  const id: string = rows[0].pg_export_snapshot
  expect(id).toMatch(/^[0-9A-F]{8}-00000001-1$/)
  await changeAll()
  const third = await server.connect()
  await third.query('begin transaction isolation level repeatable read read only')
  await third.query(`set transaction snapshot '${id}'`)
  expect(await read(third)).toBe('100 5050 1')
  await reader.query('commit')
  expect(await read(third)).toBe('100 5050 1')
  await third.query('commit')
  await third.query('begin isolation level repeatable read')
  await expect(third.query(`set transaction snapshot '${id}'`)).rejects.toMatchObject({ code: '22023' })
  await third.query('rollback')
  await third.end()
})

test('what cannot be is refused', async () => {
  await reader.query('begin')
  await expect(reader.query("set transaction snapshot 'x'")).rejects.toMatchObject({ code: '0A000' })
  await reader.query('rollback; begin isolation level serializable')
  await read()
  await expect(reader.query("set transaction snapshot 'x'")).rejects.toMatchObject({ code: '25001' })
  await reader.query('rollback; begin isolation level serializable')
  await read()
  await expect(reader.query('set transaction isolation level read committed')).rejects.toMatchObject({ code: '25001' })
  await reader.query('rollback')
})

test('a moment that is held for long keeps no memory of rows that came later', async () => {
  await reader.query('begin isolation level repeatable read')
  expect(await read()).toBe('100 5050 1')
  const used = async (): Promise<number> =>
    Number((await other.query("select bytes from memory_metrics() where memory_tag = 'NATIVE_MEMTABLE'")).rows[0].bytes)
  const more = async (): Promise<void> => {
    await other.query("insert into m select dateadd('s', x::int, '2024-02-01'), x from long_sequence(200000)")
    await other.query('checkpoint')
  }
  // The first go into the memory that the transaction reads.
  await more()
  const held = await used()
  for (let round = 0; round < 4; round++) await more()
  await expect.poll(used).toBeLessThan(held + 2_000_000)
  expect(await read()).toBe('100 5050 1')
  await reader.query('commit')
})

test('nothing stays held, also when the client goes', async () => {
  const gone = await server.connect()
  await gone.query('begin isolation level repeatable read')
  await gone.query('select pg_export_snapshot()')
  expect(await read(gone)).toBe('100 5050 1')
  expect(Number(await held())).toBeGreaterThan(0)
  gone.on('error', () => {})
  ;(gone as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
  await expect.poll(held).toBe('0')
})
