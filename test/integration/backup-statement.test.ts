// Goal: the SQL statement BACKUP, to a folder and to an object store, while rows are inserted. `penstock restore`
// restores what was there, the server continues to serve, and a second simultaneous backup is refused. A backup that is
// aborted, is killed with the server, or cannot write to its destination reports the reason in backups(); after a kill
// the previous backup is intact.

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openS3Service } from '../support/lake/s3-service.js'
import { command, TestServer } from '../support/server.js'

const service = await openS3Service()
const folder = mkdtempSync(join(tmpdir(), 'penstock-backup-'))
afterAll(async () => {
  await service.close()
  rmSync(folder, { recursive: true, force: true })
})

const keys = [
  `object.store.s3.endpoint=${service.endpoint}`,
  `object.store.access.key.id=${service.accessKeyId}`,
  `object.store.secret.access.key=${service.secretAccessKey}`,
  'object.store.retry.time=200ms',
]
const last = 'select status, progress_percent, end_ts > start_ts, backup_error, cleanup_error from backups() limit -1'
const complete = [['backup complete', 100, true, null, null]]

function tool(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) =>
    execFile(process.execPath, [command, ...args], (error, out, err) =>
      resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    ),
  )
}

/** Of a server over a restored copy. */
async function restored(place: string, query: string): Promise<readonly (readonly unknown[])[]> {
  const copy = new TestServer()
  try {
    expect(await tool('restore', place, '-d', copy.root)).toMatchObject({ code: 0, err: '' })
    await copy.start()
    return await copy.rows(query)
  } finally {
    await copy.remove()
  }
}

/** How many rows a restored copy has, all of whose checksums are right. */
async function restoredRows(...args: readonly string[]): Promise<unknown> {
  const root = mkdtempSync(join(folder, 'restored-'))
  const { out, err } = await tool('restore', ...args, '--json', '-d', root)
  expect(err).toBe('')
  return (JSON.parse(out) as { rows: unknown }).rows
}

async function fill(server: TestServer): Promise<void> {
  await server.rows('create table a (ts timestamp, k symbol, n long) timestamp(ts) partition by day')
  await server.rows('create table "b.c" (ts timestamp, n long) timestamp(ts) partition by day')
  await server.rows("insert into a select (x * 1000000000)::timestamp, 's' || x % 7, x from long_sequence(3000)")
  await server.rows('insert into "b.c" values (0, 7)')
  await server.rows("create user reader with password 'r' read")
}

test('a folder: progress, one at a time, rights, restored by the tool', async () => {
  const server = new TestServer([`backup.object.store=file://${folder}/plant`])
  await server.start()
  await fill(server)
  expect((await server.exec('select * from backups()')).body.columns).toEqual([
    { name: 'status', type: 'VARCHAR' },
    { name: 'progress_percent', type: 'INT' },
    { name: 'start_ts', type: 'TIMESTAMP' },
    { name: 'end_ts', type: 'TIMESTAMP' },
    { name: 'backup_error', type: 'VARCHAR' },
    { name: 'cleanup_error', type: 'VARCHAR' },
  ])
  const { body } = await server.exec('backup database')
  expect(body.columns).toEqual([{ name: 'backup_timestamp', type: 'TIMESTAMP' }])
  expect((await server.exec('backup table a')).body.error).toMatch(
    /^a backup is running already \[started=.*percent=\d+\]/,
  )
  expect((await server.exec('checkpoint create')).body.error).toMatch(/^a backup runs, which has a checkpoint/)
  await server.rows("insert into a values (now(), 'late', -1)")
  await server.untilRows(last, complete)
  expect(await server.rows('select start_ts from backups()')).toEqual(body.dataset)
  expect(await server.rows('backup abort')).toEqual([['not running', null]])
  expect(await server.rows('select * from checkpoint_status()')).toEqual([[false, null]])
  expect((await tool('check', '-d', `${folder}/plant`)).code).toBe(0)
  expect(await restored(`${folder}/plant`, 'select count(), sum(n) from a union all select 1, n from "b.c"')).toEqual([
    [3000, 4501500],
    [1, 7],
  ])

  await server.rows('backup table a, "b.c"')
  await server.untilRows(last, complete)
  expect(await restoredRows(`${folder}/plant/tables/a`)).toBe(3001)
  expect(await restoredRows(`${folder}/plant/tables/b%2Ec`)).toBe(1)

  expect((await server.exec('backup table nope')).body).toMatchObject({ error: /./, position: 13 })
  await server.rows('create materialized view m as select ts, sum(n) n from a sample by 1d')
  expect((await server.exec('backup table m')).body.error).toMatch(/^a materialized view is part of BACKUP DATABASE/)
  await server.rows('checkpoint create')
  expect((await server.exec('backup database')).body.error).toMatch(/^a checkpoint is kept/)
  await server.rows('checkpoint release')
  const reader = await server.connect({ user: 'reader', password: 'r' })
  await expect(reader.query('backup database')).rejects.toThrow(/admin/)
  await reader.end()
  const admin = await server.connect()
  await admin.query('begin')
  await expect(admin.query('backup database')).rejects.toThrow(/inside a transaction block/)
  await admin.query('rollback')
  expect((await admin.query({ text: 'backup abort', name: 'prepared' })).rows).toEqual([
    { status: 'not running', backup_id: null },
  ])
  await server.remove()
})

test('aborted, killed, without room, without a place', async () => {
  const server = new TestServer([`backup.object.store=file://${folder}/other`])
  await server.start()
  await fill(server)
  await server.rows('backup database')
  await server.untilRows(last, complete)
  await server.rows('insert into a select (x * 1000000000)::timestamp, null, x from long_sequence(100000)')

  const [started] = await server.rows('backup database')
  expect(await server.rows('backup abort')).toEqual([['aborted', started?.[0]]])
  expect(await server.rows('select status, backup_error from backups() limit -1')).toEqual([
    ['backup failed', 'aborted'],
  ])
  expect(await server.rows('select * from checkpoint_status()')).toEqual([[false, null]])

  await server.rows('backup database')
  await server.end('SIGKILL')
  expect((await tool('check', '-d', `${folder}/other`)).code).toBe(0)
  await server.start()
  expect(await server.rows('select status, backup_error from backups() limit -1')).toEqual([
    ['backup failed', 'the server ended during the backup'],
  ])
  await server.rows('backup database')
  await server.untilRows(last, complete)
  expect(await restoredRows(`${folder}/other`)).toBeGreaterThanOrEqual(103_001)

  rmSync(`${folder}/other`, { recursive: true, force: true })
  writeFileSync(`${folder}/other`, 'a file, and no folder')
  await server.rows('backup database')
  await server.untilRows('select status from backups() limit -1', [['backup failed']])
  const [[failure]] = (await server.rows('select backup_error from backups() limit -1')) as [[string]]
  expect(failure).toContain(`${folder}/other`)
  await server.rows("insert into a values (now(), 'x', 1)")
  await server.remove()

  const without = new TestServer()
  await without.start()
  expect((await without.exec('backup database')).body.error).toBe(
    'there is no place for backups [setting=backup.object.store]',
  )
  await without.remove()
})

test('an object store: several backups, which share parts; one that is away', async () => {
  const url = `s3://${service.bucket}/backups`
  const server = new TestServer([`backup.object.store=${url}`, 'backup.cleanup.keep.latest.n=2', ...keys])
  const read = [url, ...keys.flatMap((key) => ['--set', key])]
  await server.start()
  await fill(server)
  const times: string[] = []
  for (const status of ['backup complete', 'backup complete', 'cleanup complete']) {
    const [row] = await server.rows('backup database')
    times.push(String(row?.[0]))
    await server.untilRows('select status, backup_error, cleanup_error from backups() limit -1', [[status, null, null]])
    await server.rows("insert into a values (0, 'more', 0)")
    await server.rows('checkpoint')
  }
  const telemetry = Number(await restoredRows(...read)) - 3003
  expect(telemetry).toBeGreaterThanOrEqual(0)
  expect(Number(await restoredRows(...read, '--at', times[1] ?? ''))).toBeLessThan(telemetry + 3003)
  const none = join(folder, 'none')
  mkdirSync(none)
  expect((await tool('restore', ...read, '--at', times[0] ?? '', '-d', none)).err).toContain('there is no such backup')

  await server.rows('backup table "b.c"')
  await server.untilRows(last, complete)
  expect(await restoredRows(`${url}/tables/b%2Ec`, ...read.slice(1))).toBe(1)

  const part = [...service.objects.keys()].find((key) => key.endsWith('.parquet')) ?? ''
  const object = service.objects.get(part)
  service.objects.delete(part)
  expect((await tool('restore', ...read, '-d', none)).err).toContain('there is no such object')
  expect(existsSync(join(none, 'db', 'manifest'))).toBe(false)
  if (object !== undefined) service.objects.set(part, object)

  await service.close()
  await server.rows('backup database')
  await server.untilRows('select status from backups() limit -1', [['backup failed']])
  expect((await server.rows('select backup_error from backups() limit -1'))[0]?.[0]).toMatch(/./)
  expect((await tool('restore', ...read, '-d', none)).code).toBe(1)
  await server.remove()
})
