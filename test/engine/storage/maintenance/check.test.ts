// Goal: `penstock check` finds any changed byte of a database; in log and manifest, as far as they were durable.
// Method: a database with every kind of file. Each byte of a data file (part), and many bytes of the other files, are
// flipped in turn, and the check must name the file.

import { beforeAll, expect, test } from 'vitest'
import type { Files } from '../../../../engine/base/files.js'
import { allRights } from '../../../../engine/base/rights.js'
import { copyDatabase } from '../../../../engine/storage/maintenance/backup.js'
import { checkDatabase, checkPart } from '../../../../engine/storage/maintenance/check.js'
import { readManifest } from '../../../../engine/storage/manifest/manifest.js'
import { encodeUsers, writeUsers } from '../../../../engine/storage/manifest/users.js'
import { replayWal } from '../../../../engine/wal/replay.js'
import { InlineEngine } from '../../../support/inline-engine.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'

const { files } = createFaultyDisk(5)
const segmentBytes = 64 * 1024

/** The same disk, but for one byte. */
function flipped(path: string, offset: number): Files {
  return {
    ...files,
    open: (opened, mode) => {
      const file = files.open(opened, mode)
      if (opened !== path) return file
      return Object.assign(Object.create(file) as typeof file, {
        read: (target: Uint8Array, position: number): number => {
          const count = file.read(target, position)
          const at = offset - position
          if (at >= 0 && at < count) target[at] = target[at]! ^ 0x10
          return count
        },
      })
    },
  }
}

function sizeOf(path: string): number {
  const file = files.open(path, 'read')
  try {
    return file.size()
  } finally {
    file.close()
  }
}

function contentOf(path: string): Buffer {
  const file = files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(file.size())
    file.read(bytes, 0)
    return bytes
  } finally {
    file.close()
  }
}

/** Offsets whose flip the check of the whole database does not find. */
function unnoticed(path: string, offsets: Iterable<number>, directory = '/db'): number[] {
  const missed: number[] = []
  for (const offset of offsets) {
    const { findings } = checkDatabase({ files: flipped(path, offset), directory })
    const name = path.slice(directory.length + 1)
    if (!findings.some(({ file }) => name.startsWith(file))) missed.push(offset)
  }
  return missed
}

/** Steps that divide no record's size meet every field. */
function* range(end: number, step = 1): Generator<number> {
  for (let at = 0; at < end; at += step) yield at
}

beforeAll(async () => {
  files.makeDirectory('/db')
  files.syncDirectory('/')
  const engine = new InlineEngine({ files, walSegmentBytes: segmentBytes })
  await engine.run(
    'create table t (ts timestamp, k symbol, n long, d double, s varchar) timestamp(ts) partition by day',
  )
  await engine.run(
    "insert into t select x::timestamp, 'k' || (x % 5), x, x / 3.0, 'text ' || x from long_sequence(300)",
  )
  await engine.run('checkpoint')
  await engine.run("insert into t select x::timestamp, 'm' || (x % 7), x, x / 3.0, 'text ' || x from long_sequence(20)")
  await engine.run('checkpoint')
  await engine.run("insert into t select x::timestamp, 'z', x, x / 3.0, 'text ' || x from long_sequence(20)")
  await engine.settle()
  writeUsers(
    files,
    '/db',
    encodeUsers([{ name: 'u', enabled: true, rights: allRights, password: null, tokens: [], lineKey: null }]),
  )
  expect(checkDatabase({ files, directory: '/db' }).findings).toEqual([])
})

test('of a part', () => {
  const [[tableId, table] = []] = readManifest(files, '/db/manifest').tables
  const part = table?.parts[0]
  if (tableId === undefined || part === undefined) throw new Error('there is no part')
  const path = `/db/${part.file}`
  const missed = [...range(part.bytes)].filter((at) => checkPart(flipped(path, at), '/db', tableId, part).length === 0)
  expect(missed).toEqual([])
})

test('of the symbols', () => {
  const name = files.list('/db/symbols')[0] as string
  expect(unnoticed(`/db/symbols/${name}`, range(sizeOf(`/db/symbols/${name}`), 3))).toEqual([])
})

test('of the users', () => {
  expect(unnoticed('/db/users.pus', range(sizeOf('/db/users.pus')))).toEqual([])
})

test('of the manifest, as far as a later frame says that it was durable', () => {
  const path = `/db/manifest/${files.list('/db/manifest')[0]}`
  expect(unnoticed(path, range(contentOf(path).lastIndexOf('PMFR'), 11))).toEqual([])
})

test('of a backup, whose manifest nothing was added to', () => {
  files.makeDirectory('/copy')
  copyDatabase({ files, source: '/db', manifest: '/db/manifest', target: '/copy' })
  const path = `/copy/manifest/${files.list('/copy/manifest')[0]}`
  expect(unnoticed(path, range(sizeOf(path), 3), '/copy')).toEqual([])
  expect(checkDatabase({ files, directory: '/copy' }).logFrames).toBeNull()
  expect(checkDatabase({ files, directory: '/db' }).logFrames).toBeGreaterThan(0)
})

test('of the log, as far as it was durable', () => {
  const { inventory, durableLsn } = replayWal(files, '/db/wal', () => {})
  expect(durableLsn).toBeGreaterThan(0)
  for (const { path, startLsn } of inventory.extents) {
    const end = Math.min(sizeOf(path), 8192 + durableLsn - startLsn)
    expect(unnoticed(path, range(end, 19))).toEqual([])
  }
})
