// Goal: COMMIT of a transaction with COPYs that are too large for the log stores all of its rows in all tables, or none:
// readers never see a part of it, and a table that refuses its rows refuses those of the others. What cannot be stored
// together is rejected, and nothing of it is stored. Rows that were written to parts before COMMIT keep all values but
// those of columns that another session has dropped.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
// @ts-expect-error it has no types
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ResourceError } from '../../../../engine/base/errors.js'
import type { PgSession } from '../../../../gateways/pgwire/context.js'
import { boundRows, runTransaction } from '../../../../gateways/pgwire/transaction/transaction.js'
import { fakeEngine } from '../../../support/fake-engine.js'
import { TestServer } from '../../../support/server.js'

const server = TestServer.shared()
const rowsOfCopy = 4200
/** Text of more than 16 MiB. */
const lines = Array.from(
  { length: rowsOfCopy },
  (_, row) => `2024-01-01 00:00:00.${String(row).padStart(6, '0')}\t${'x'.repeat(4096)}\n`,
).join('')
const tables = ['a', 'b', 'c'] as const
let client: pg.Client
let other: pg.Client

beforeAll(async () => {
  await server.start()
  client = await server.connect()
  other = await server.connect()
})

beforeEach(async () => {
  await client.query('rollback')
  for (const table of tables) await client.query(`drop table if exists ${table}`)
  await client.query('drop table if exists keyed')
  for (const table of tables)
    await client.query(`create table ${table} (ts timestamp, s varchar) timestamp(ts) partition by day`)
  await client.query(
    'create table keyed (ts timestamp, s varchar) timestamp(ts) partition by day dedup upsert keys(ts)',
  )
})

afterAll(() => server.remove())

function copy(table: string): Promise<void> {
  return pipeline(Readable.from([lines]), client.query(copyFrom(`copy ${table} from stdin`)))
}

function dropped(table: string): object {
  return { code: '40001', message: `the table was dropped in the meantime [table=${table}]` }
}

async function counts(...names: readonly string[]): Promise<string> {
  const columns = names.map((name) => `(select count() from ${name}) ${name}`)
  const { rows } = await other.query(`select ${columns.join()}`)
  return Object.values(rows[0]).join(' ')
}

test('the rows of all tables appear at once, those of INSERT among them', async () => {
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y'), ('2024-01-02', 'z')")
  await copy('b')
  await copy('a')
  await client.query("insert into a values ('2024-01-03', 'y')")
  const seen = new Set<string>()
  let isDone = false
  const committed = client.query('commit').finally(() => {
    isDone = true
  })
  while (!isDone) seen.add(await counts(...tables))
  expect((await committed).command).toBe('COMMIT')
  const whole = `${rowsOfCopy * 2 + 1} ${rowsOfCopy} 2`
  expect([...seen].filter((state) => state !== '0 0 0' && state !== whole)).toEqual([])
  expect(await counts(...tables)).toBe(whole)
  expect((await other.query('select s from a limit -1')).rows).toEqual([{ s: 'y' }])
})

test('statements that name no table store nothing; a query of a table does, with a warning', async () => {
  const warnings: (string | undefined)[] = []
  const notice = ({ message }: { readonly message?: string | undefined }): void => void warnings.push(message)
  client.on('notice', notice)
  await client.query('begin')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await copy('a')
  for (const sql of ['select 1', 'show transaction isolation level', 'select version()', 'explain select 1'])
    await client.query(sql)
  await client.query('declare one cursor for select 1')
  expect(await counts('a', 'c')).toBe('0 0')
  expect(warnings).toEqual([])
  await client.query('rollback')
  expect(await counts('a', 'c')).toBe('0 0')
  await client.query('begin')
  await copy('a')
  expect((await client.query('select count() n from a')).rows).toEqual([{ n: String(rowsOfCopy) }])
  await client.query('rollback')
  client.off('notice', notice)
  expect(warnings).toEqual([
    'rows of the transaction are stored before this statement: ROLLBACK cannot take them back',
    'what of the transaction was stored before stays',
  ])
  expect(await counts('a')).toBe(`${rowsOfCopy}`)
})

test('a table that was dropped in the meantime refuses the rows of all', async () => {
  await client.query('begin')
  await copy('a')
  await copy('b')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await other.query('drop table b')
  await expect(client.query('commit')).rejects.toMatchObject(dropped('b'))
  expect(await counts('a', 'c')).toBe('0 0')
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await other.query('drop table c')
  await expect(client.query('commit')).rejects.toMatchObject(dropped('c'))
  expect(await counts('a')).toBe('0')
})

test('so does one whose rows are in memory', async () => {
  await client.query('begin')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  await other.query('drop table c')
  await expect(client.query('commit')).rejects.toMatchObject(dropped('c'))
  expect(await counts('keyed')).toBe('0')
})

test('rows lack a column that was dropped in the meantime, in memory and in parts', async () => {
  for (const isLarge of [false, true]) {
    await client.query('begin')
    await client.query("insert into c values ('2024-01-01', 'y')")
    if (isLarge) await copy('a')
    await other.query('alter table c drop column s')
    if (isLarge) await other.query('alter table a drop column s')
    await client.query('commit')
    expect((await other.query('select * from c')).rows).toHaveLength(1)
    expect((await other.query('select * from c')).fields.map(({ name }) => name)).toEqual(['ts'])
    if (isLarge) expect(await counts('a')).toBe(`${rowsOfCopy}`)
    // A column of the name is another one.
    await other.query('alter table c add column s varchar')
    expect((await other.query('select s from c')).rows).toEqual([{ s: null }])
    await other.query('truncate table c')
  }
})

test('a column whose type was changed in the meantime refuses the rows of all', async () => {
  await client.query('begin')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await copy('a')
  await other.query('alter table c alter column s type symbol')
  await expect(client.query('commit')).rejects.toThrow('the table has changed meanwhile, try again [table=c]')
  expect(await counts('a', 'c')).toBe('0 0')
})

test('rows of a table with DEDUP and a COPY that follows are stored together, in the log', async () => {
  await client.query('begin')
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  await copy('a')
  await client.query('commit')
  expect(await counts('a', 'keyed')).toBe(`${rowsOfCopy} 1`)
})

test('rows of a table with DEDUP after a large COPY are rejected, and nothing is stored', async () => {
  await client.query('begin')
  await copy('a')
  await client.query("insert into c values ('2024-01-01', 'y')")
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  await expect(client.query('commit')).rejects.toMatchObject({ code: '0A000' })
  expect(await counts('a', 'c', 'keyed')).toBe('0 0 0')
  await client.query("insert into keyed values ('2024-01-01', 'y')")
  expect(await counts('a', 'c', 'keyed')).toBe('0 0 1')
})

test('a column that another session adds after rows were written to parts gets the values of later rows', async () => {
  await client.query('begin')
  await client.query(
    `insert into a select timestamp_sequence('2024-01-01', 1), '${'x'.repeat(4096)}' from long_sequence(9000)`,
  )
  await other.query('alter table a add column n int')
  await client.query("insert into a (ts, n) values ('2024-02-01', 7)")
  await client.query('commit')
  expect(await counts('a')).toBe('9001')
  expect((await other.query('select s, n from a limit -1')).rows).toEqual([{ s: null, n: 7 }])
})

test('after rows could not be written to parts, a savepoint before them does not bring back some of the rows', async () => {
  const spill = (): Promise<boolean> => Promise.reject(new ResourceError('the disk is full'))
  const transaction = { ...fakeEngine().begin(), bytes: 40 * 1024 * 1024, spill }
  const savepoints = [{ name: 's', mark: transaction.mark(), held: 0, noted: 0, cursors: new Set() }]
  const pg = { transaction, savepoints, pendingSyncs: [], held: [], status: 'T' } as unknown as PgSession
  await expect(boundRows(pg)).rejects.toThrow('the disk is full')
  const back = { kind: 'transaction', action: 'rollback to', name: 's' } as Parameters<typeof runTransaction>[1]
  await expect(runTransaction(pg, back)).rejects.toThrow('too many rows follow the savepoint')
})
