// Goal: on a file system on which no file can be created, a server starts and answers queries, and accepts statements
// that free space, because it has created files in advance (the reserve) for their log and manifest records; then it
// accepts rows again. Without a reserve it can still be read. DROP PARTITION does not write rows in memory to data
// files.

import { expect, test } from 'vitest'
import { FileError } from '../../../engine/base/errors.js'
import type { Files } from '../../../engine/base/files.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

interface SmallDisk {
  readonly disk: FaultyDisk
  readonly files: Files
  isFull: boolean
  /** The manifest takes no record. */
  isManifestFull: boolean
}

/** Whose files refuse new names while it is full. */
function newDisk(): SmallDisk {
  const disk = createFaultyDisk(3)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const { files } = disk
  const demand = (path: string): void => {
    if (small.isFull && !files.exists(path)) throw new FileError(`no inode left [path=${path}]`, 'ENOSPC')
  }
  const small: SmallDisk = {
    disk,
    isFull: false,
    isManifestFull: false,
    files: {
      ...files,
      open: (path, mode) => {
        if (mode === 'create') demand(path)
        const file = files.open(path, mode)
        if (!path.startsWith('/db/manifest/')) return file
        const write: typeof file.write = (chunks, offset) => {
          if (small.isManifestFull) throw new FileError(`no block left [path=${path}]`, 'ENOSPC')
          file.write(chunks, offset)
        }
        return new Proxy(file, {
          get: (of, key) => {
            if (key === 'write') return write
            const value: unknown = Reflect.get(of, key)
            return typeof value === 'function' ? value.bind(of) : value
          },
        })
      },
      makeDirectory: (path) => {
        demand(path)
        files.makeDirectory(path)
      },
      freeBytes: (folder) => (small.isFull ? 0 : files.freeBytes(folder)),
    },
  }
  return small
}

async function open({ files }: SmallDisk): Promise<InlineEngine> {
  const engine = new InlineEngine({ files })
  await engine.settle()
  return engine
}

/** The writer's timers have their turn. */
async function pass(engine: InlineEngine, seconds: number): Promise<void> {
  for (let step = 0; step < seconds; step++) {
    engine.ms += 1000
    await engine.settle()
  }
}

function reserve({ disk }: SmallDisk): readonly string[] {
  return disk.files.exists('/db/reserve') ? disk.files.list('/db/reserve') : []
}

const whole = ['log-1.zeros', 'log-2.zeros', 'manifest-1.zeros', 'manifest-2.zeros']

async function filled(small: SmallDisk): Promise<InlineEngine> {
  const engine = await open(small)
  for (const name of ['t', 'gone', 'emptied']) {
    await engine.run(`create table ${name} (ts timestamp, k symbol, v int) timestamp(ts) partition by day wal`)
    await engine.run(`insert into ${name} values ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 2)`)
  }
  await engine.run('checkpoint create')
  await engine.run('checkpoint release')
  await engine.run(`insert into t values ('2024-01-03', 'c', 3), ('2024-01-02T01', 'd', 4)`)
  await pass(engine, 8)
  return engine
}

const select = 'select v from t'

test('starts, is read, makes room, and takes rows again', async () => {
  const small = newDisk()
  await filled(small)
  expect(reserve(small)).toEqual(whole)
  small.disk.kill()
  small.isFull = true
  let engine = await open(small)
  for (let start = 0; start < 3; start++) {
    expect(await engine.rows(select)).toEqual([[1], [2], [4], [3]])
    await pass(engine, 3)
    await expect(engine.run(`insert into t values ('2024-01-04', 'e', 5)`)).rejects.toThrow('the disk is')
    expect(reserve(small), 'nothing is drawn without need').toEqual(whole)
    small.disk.kill()
    engine = await open(small)
  }
  await engine.run(`alter table t drop partition list '2024-01-01'`)
  await engine.run('truncate table emptied')
  await engine.run('drop table gone')
  await pass(engine, 3)
  expect(await engine.rows(select)).toEqual([[2], [4], [3]])
  expect(small.disk.files.list('/db/1')).not.toContain('gone')
  expect(small.disk.files.list('/db').filter((name) => /^\d+$/.test(name)).length, 'files of the table').toBe(2)
  await expect(engine.run(`insert into t values ('2024-01-04', 'e', 5)`)).rejects.toThrow('the disk is full')
  // Behind a power cut on the full disk what was answered holds.
  small.disk.crash(1)
  engine = await open(small)
  expect(await engine.rows(select)).toEqual([[2], [4], [3]])
  expect(await engine.rows('select v from emptied')).toEqual([])
  small.isFull = false
  await pass(engine, 10)
  expect(reserve(small)).toEqual(whole)
  await engine.run(`insert into t values ('2024-01-04', 'e', 5)`)
  small.disk.crash(2)
  engine = await open(small)
  expect(await engine.rows(select)).toEqual([[2], [4], [3], [5]])
})

test('a disk that fills while the server runs takes DROP and TRUNCATE', async () => {
  const small = newDisk()
  const engine = await filled(small)
  small.isFull = true
  await engine.run('drop table gone')
  await engine.run(`alter table t drop partition list '2024-01-01'`)
  await engine.run('truncate table emptied')
  await pass(engine, 2)
  expect(await engine.rows(select)).toEqual([[2], [4], [3]])
  small.isFull = false
  await pass(engine, 10)
  await engine.run(`insert into t values ('2024-01-04', 'e', 5)`)
  expect(await engine.rows(select)).toEqual([[2], [4], [3], [5]])
})

test('a root without a reserve is read, and goes on when there is room', async () => {
  const small = newDisk()
  await filled(small)
  small.disk.files.removeDirectory('/db/reserve')
  small.disk.kill()
  small.isFull = true
  const engine = await open(small)
  expect(await engine.rows(select)).toEqual([[1], [2], [4], [3]])
  await expect(engine.run('drop table gone')).rejects.toThrow('the log cannot be written')
  await expect(engine.run(`alter table t drop partition list '2024-01-01'`)).rejects.toThrow('the disk is full')
  small.isFull = false
  await pass(engine, 3)
  await engine.run('drop table gone')
  await engine.run(`insert into t values ('2024-01-04', 'e', 5)`)
  expect(await engine.rows(select)).toEqual([[1], [2], [4], [3], [5]])
})

test('files of a table whose drop the manifest has not heard of stay for the next start', async () => {
  const small = newDisk()
  let engine = await filled(small)
  small.disk.files.removeDirectory('/db/reserve')
  small.isFull = true
  small.isManifestFull = true
  await engine.run('drop table gone')
  small.disk.kill()
  engine = await open(small)
  await expect(engine.rows('select v from gone')).rejects.toThrow('does not exist')
  small.disk.kill()
  small.isFull = false
  small.isManifestFull = false
  engine = await open(small)
  await expect(engine.rows('select v from gone')).rejects.toThrow('does not exist')
  expect(await engine.rows(select)).toEqual([[1], [2], [4], [3]])
})

test('statements that need a newer format of the manifest are refused while it cannot be written', async () => {
  const small = newDisk()
  const engine = await filled(small)
  small.isManifestFull = true
  await engine.run('drop table gone')
  await pass(engine, 2)
  const enable = 'alter table t dedup enable skip keys(ts)'
  for (let turn = 0; turn < 2; turn++)
    await expect(engine.run(enable)).rejects.toThrow('the manifest cannot be written')
  small.isManifestFull = false
  await pass(engine, 3)
  await engine.run(enable)
  await engine.run(`insert into t values ('2024-01-03', 'c', 7), ('2024-01-04', 'e', 5)`)
  expect(await engine.rows(select)).toEqual([[1], [2], [4], [3], [5]])
})

test('rows in memory of a dropped partition become no parts, the others stay', async () => {
  const small = newDisk()
  const engine = await open(small)
  await engine.run('create table t (ts timestamp, v int) timestamp(ts) partition by hour wal')
  const rows = Array.from({ length: 300 }, (_, hour) => `(${hour * 3_600_000_000}, ${hour})`)
  await engine.run(`insert into t values ${rows.join()}`)
  const opened = small.disk.counts.open
  await engine.run(`alter table t drop partition where ts < '1970-01-13'`)
  expect(small.disk.counts.open - opened, 'files').toBeLessThan(30)
  const left = Array.from({ length: 12 }, (_, index) => [288 + index])
  expect(await engine.rows(select)).toEqual(left)
  small.disk.crash(4)
  expect(await (await open(small)).rows(select)).toEqual(left)
})

test('DROP PARTITION does not flush what it is not about', async () => {
  const small = newDisk()
  const engine = await filled(small)
  const before = engine.jobKinds.length
  await engine.run(`alter table t drop partition list '2024-01-01'`)
  expect(engine.jobKinds.slice(before)).toEqual([])
  expect(await engine.rows(select)).toEqual([[2], [4], [3]])
})
