// Goal: a lost or damaged symbol dictionary (strings of a SYMBOL column by id) is reconstructed permanently from data
// files and log; if that is impossible the server does not start. No symbol ever becomes another string.

import { expect, test } from 'vitest'
import { CorruptionError } from '../../../../engine/base/errors.js'
import { InlineEngine } from '../../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk } from '../../../support/simulator/faulty-files.js'

const base = 1_704_067_200_000_000n
const query = 'select v, k, l from t order by v'

async function open(disk: FaultyDisk): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files })
  await engine.settle()
  return engine
}

/** Days of rows in parts; `k` comes to new texts from day to day, `l` has NULLs. */
async function filled(): Promise<FaultyDisk> {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const engine = await open(disk)
  await engine.run('create table t (ts timestamp, k symbol, v long, l symbol) timestamp(ts) partition by day')
  for (let day = 0; day < 3; day++) {
    const rows = Array.from({ length: 20 }, (_, row) => {
      const ts = base + BigInt(day) * 86_400_000_000n + BigInt(row)
      return `(${ts}L, 'key ${day * 10 + row}', ${day * 20 + row}, ${row % 3 === 0 ? 'null' : `'ü${row % 2}'`})`
    })
    await engine.run(`insert into t values ${rows.join()}`)
    await engine.run('checkpoint')
    await engine.settle()
  }
  return disk
}

function symbolFiles({ files }: FaultyDisk): string[] {
  return files.list('/db/symbols').map((name) => `/db/symbols/${name}`)
}

function cut({ files }: FaultyDisk, path: string): void {
  const file = files.open(path, 'write')
  file.truncate(20)
  file.sync()
  file.close()
}

test.each([
  ['lost', (disk: FaultyDisk) => symbolFiles(disk).forEach((path) => void disk.files.remove(path))],
  ['damaged', (disk: FaultyDisk) => symbolFiles(disk).forEach((path) => void cut(disk, path))],
])('a dictionary that is %s comes back, and is on the disk again', async (_, harm) => {
  const disk = await filled()
  const before = await (await open(disk)).rows(query)
  expect(before.length).toBe(60)
  disk.kill()
  harm(disk)
  const engine = await open(disk)
  expect(await engine.rows(query)).toEqual(before)
  expect(
    engine.logged.filter((line) => line.includes('its symbols were found in the data files and the log [table=t]')),
  ).toHaveLength(2)
  await engine.run(`insert into t values (${base}L, 'fresh', 100, 'key 1')`)
  // The parts are not asked again.
  await engine.run(`alter table t drop partition list '2024-01-01'`)
  const after = await engine.rows(query)
  disk.kill()
  const again = await open(disk)
  expect(await again.rows(query)).toEqual(after)
  expect(again.logged.filter((line) => line.includes('symbols'))).toEqual([])
})

/**
 * The parts of the last day are gone, and with them some of the symbols; the frames that brought those are in the log.
 */
async function withoutParts(): Promise<{ disk: FaultyDisk; rows: (readonly unknown[])[] }> {
  const disk = await filled()
  const engine = await open(disk)
  await engine.run(`alter table t drop partition list '2024-01-03'`)
  await engine.settle()
  const rows = await engine.rows(query)
  disk.kill()
  for (const path of symbolFiles(disk)) disk.files.remove(path)
  return { disk, rows }
}

test('a symbol that no part has comes out of the log', async () => {
  const { disk, rows } = await withoutParts()
  const engine = await open(disk)
  expect(await engine.rows(query)).toEqual(rows)
  await engine.run(`insert into t values (${base}L, 'key 29', 100, 'fresh')`)
  expect(await engine.rows('select k, l from t where v = 100')).toEqual([['key 29', 'fresh']])
  expect(engine.logged.filter((line) => line.includes('its symbols were found'))).toHaveLength(2)
})

test('a symbol that neither parts nor log have is not made up: the start is refused', async () => {
  const { disk } = await withoutParts()
  for (const name of disk.files.list('/db/wal')) if (name.endsWith('.wal')) disk.files.remove(`/db/wal/${name}`)
  const opened = open(disk).then(() => 'opened')
  await expect(opened).rejects.toThrow(CorruptionError)
})
