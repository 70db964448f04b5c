// Goal: everything that the writer has acknowledged can be read at once and after a restart: rows by line protocol and
// INSERT, schema changes, flushed rows; also if memory is exhausted or the disk fails. The rows of a transaction become
// visible in all its tables at the same time, in commit mode `sync` not before they are on disk.

import { describe, expect, test } from 'vitest'
import type { TableSchema } from '../../../engine/storage/schema/schema.js'
import { dataType } from '../../../engine/types/column-types.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'
import { type HostOptions, type PartStore, WriterHost } from './writer-host.js'

const ts = 1704067200000000n

function newDisk(): FaultyDisk {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

interface World {
  readonly disk: FaultyDisk
  readonly parts: PartStore
  host: WriterHost
  restart(kind?: 'kill' | 'crash' | 'close'): WriterHost
}

function world(options: Partial<HostOptions> = {}): World {
  const disk = newDisk()
  const parts: PartStore = new Map()
  const start = () => new WriterHost({ files: disk.files, parts, walSegmentBytes: 256 * 1024, ...options })
  const made: World = {
    disk,
    parts,
    host: start(),
    restart: (kind = 'crash') => {
      if (kind === 'close') made.host.close()
      if (kind === 'crash') disk.crash(7)
      else disk.kill()
      made.host = start()
      return made.host
    },
  }
  return made
}

function line(table: string, index: number, extra = ''): string {
  return `${table},s=k${index % 50} v=${index}i,t="text ${index}"${extra} ${ts * 1000n + BigInt(index) * 1000n}\n`
}

function lines(table: string, from: number, to: number): string {
  let text = ''
  for (let index = from; index < to; index++) text += line(table, index)
  return text
}

function expected(from: number, to: number) {
  return Array.from({ length: to - from }, (_, n) => ({
    s: `k${(from + n) % 50}`,
    v: BigInt(from + n),
    t: `text ${from + n}`,
    timestamp: ts + BigInt(from + n),
  }))
}

const tableSchema: Omit<TableSchema, 'id' | 'version'> = {
  name: 'made',
  columns: [
    { id: 0, name: 'k', type: dataType('SYMBOL'), dropped: false },
    { id: 1, name: 'v', type: dataType('INT'), dropped: false },
    { id: 2, name: 'ts', type: dataType('TIMESTAMP'), dropped: false },
  ],
  timestampId: 2,
  partitionBy: 'DAY',
  bypassWal: false,
  dedupKeys: [],
  ttl: null,
  maxUncommittedRows: 1,
  o3MaxLagMicros: 1,
  createdMicros: 0,
}

describe('lines', () => {
  test.each(['crash', 'kill', 'close'] as const)('rows are there at once and after %s', (kind) => {
    const { host, restart } = world()
    for (let batch = 0; batch < 10; batch++) {
      expect(host.write(lines('a', batch * 100, batch * 100 + 100) + line('b', batch))).toMatchObject({
        rows: 101,
        error: null,
      })
    }
    expect(host.rows('a')).toEqual(expected(0, 1000))
    const after = restart(kind)
    expect(after.rows('a')).toEqual(expected(0, 1000))
    expect(after.rows('b')).toEqual(expected(0, 10))
    expect(after.write(lines('a', 1000, 1010)).error).toBe(null)
    expect(restart().rows('a')).toEqual(expected(0, 1010))
  })

  test('nothing is visible or answered before the sync returned', () => {
    const { host, restart } = world()
    host.write(line('a', 0))
    host.logRuns = false
    const request = host.lines(lines('a', 1, 5))
    for (let turn = 0; turn < 200; turn++) host.turn()
    expect(host.rows('a')).toEqual(expected(0, 1))
    expect(host.receipts.has(request)).toBe(false)
    host.logRuns = true
    expect(host.await(request).rows).toBe(4)
    expect(host.rows('a')).toEqual(expected(0, 5))
    expect(restart().rows('a')).toEqual(expected(0, 5))
  })

  test('an atomic request of several blocks is all or nothing, over all its tables', () => {
    const { host, restart } = world()
    const good = host.write([lines('a', 0, 500), line('b', 0), lines('a', 500, 900)])
    expect(good).toMatchObject({ rows: 901, error: null })
    const bad = host.write([lines('a', 900, 950), line('c', 0), `${line('a', 950, ',fresh=1i')}a v=bad\n`])
    expect(bad).toMatchObject({ rows: 0, error: { name: 'RowError', place: 53 }, lsn: 0 })
    expect(host.catalog.table('c')).toBe(undefined)
    const after = restart()
    expect(after.rows('a')).toEqual(expected(0, 900))
    expect(after.catalog.table('c')).toBe(undefined)
    expect(after.catalog.table('a')?.schema.columns.map(({ name }) => name)).toEqual(['s', 'v', 't', 'timestamp'])
  })

  test('without atomicity the rows around bad lines stay', () => {
    const { host, restart } = world()
    const receipt = host.write([`${line('a', 0)}a v=bad\n${line('a', 1)}`, `junk\n${line('a', 2)}`], {
      atomic: false,
      skipBadLines: true,
    })
    expect(receipt).toMatchObject({ rows: 3, error: null })
    expect(receipt.rejects.map((reject) => reject.line)).toEqual([2, 4])
    expect(restart().rows('a')).toEqual(expected(0, 3))
  })

  test.each(['async', 'nosync'] as const)('mode %s answers at once and survives an orderly close', (commitMode) => {
    const { host, restart } = world({ commitMode })
    host.logRuns = false
    expect(host.write(lines('a', 0, 10)).rows).toBe(10)
    host.logRuns = true
    expect(restart('close').rows('a')).toEqual(expected(0, 10))
  })
})

describe('inserts and schema changes', () => {
  test('a table is made, filled, changed, renamed, truncated, dropped; each step survives', () => {
    const { restart, ...rest } = world()
    let { host } = rest
    expect(host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: false }).error).toBe(null)
    expect(host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: true }).existed).toBe(true)
    expect(host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: false }).error?.name).toBe('SqlError')
    const tableId = host.tableId('made')
    const columns = [
      { columnId: 0, type: dataType('SYMBOL'), values: ['x', null, 'y'] },
      { columnId: 1, type: dataType('INT'), values: [1, 2, null] },
      { columnId: 2, type: dataType('TIMESTAMP'), values: [ts, ts + 1n, ts + 2n] },
    ]
    expect(host.insert([{ tableId, rows: 3, columns }])).toMatchObject({ rows: 3, error: null })
    const rows = [
      { k: 'x', v: 1, ts },
      { v: 2, ts: ts + 1n },
      { k: 'y', v: -(2 ** 31), ts: ts + 2n },
    ]
    expect(host.rows('made')).toEqual(rows)
    host = restart()
    expect(host.rows('MADE')).toEqual(rows)
    host.change({ kind: 'addColumn', tableId, column: { name: 'extra', type: dataType('DOUBLE') }, ifNotExists: false })
    host.change({ kind: 'dropColumn', tableId, columnId: 1 })
    host.change({ kind: 'renameColumn', tableId, columnId: 0, name: 'key' })
    host.change({ kind: 'renameTable', tableId, name: 'other' })
    host.write(`other,key=z extra=1.5 ${ts * 1000n}\n`)
    const changed = [{ key: 'x', ts }, { ts: ts + 1n }, { key: 'y', ts: ts + 2n }, { key: 'z', extra: 1.5, ts }]
    expect(host.rows('other')).toEqual(changed)
    expect(host.catalog.table('made')).toBe(undefined)
    host = restart()
    expect(host.rows('other')).toEqual(changed)
    host.change({ kind: 'truncateTable', tableId })
    expect(host.rows('other')).toEqual([])
    host = restart()
    expect(host.rows('other')).toEqual([])
    host.change({ kind: 'dropTable', tableId })
    expect(host.catalog.table('other')).toBe(undefined)
    host = restart()
    expect(host.catalog.tables()).toEqual([])
    expect(host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: false }).error).toBe(null)
    expect(host.tableId('made')).toBeGreaterThan(tableId)
  })

  test('SET TYPE holds from the next start on, and from every one behind it', () => {
    const { host, restart } = world()
    host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: false })
    const tableId = host.tableId('made')
    expect(host.change({ kind: 'alterTable', tableId, changes: { bypassWalNext: true } }).error).toBe(null)
    const bypasses = (of: typeof host) => of.catalog.table('made')?.schema.bypassWal
    expect(bypasses(host)).toBe(false)
    const next = restart()
    expect(bypasses(next)).toBe(true)
    next.change({ kind: 'addColumn', tableId, column: { name: 'x', type: dataType('INT') }, ifNotExists: false })
    expect(bypasses(next)).toBe(true)
    expect(bypasses(restart('crash'))).toBe(true)
  })

  test('a row without designated timestamp is refused', () => {
    const { host } = world()
    host.change({ kind: 'createTable', schema: tableSchema, ifNotExists: false })
    const tableId = host.tableId('made')
    const receipt = host.insert([{ tableId, rows: 1, columns: [{ columnId: 1, type: dataType('INT'), values: [1] }] }])
    expect(receipt.error?.message).toContain('designated timestamp')
    expect(host.rows('made')).toEqual([])
  })

  test('DEDUP keeps the last row of each key', () => {
    const { host, restart } = world()
    host.change({ kind: 'createTable', schema: { ...tableSchema, dedupKeys: [2, 0] }, ifNotExists: false })
    const at = ts * 1000n
    host.write(`made,k=a v=1i ${at}\nmade,k=b v=2i ${at}\nmade,k=a v=3i ${at}\n`)
    host.write(`made,k=b v=4i ${at}\nmade v=5i ${at}\nmade v=6i ${at}\n`)
    const retained = [
      { k: 'a', v: 3, ts },
      { k: 'b', v: 4, ts },
      { v: 6, ts },
    ]
    expect(host.rows('made')).toEqual(retained)
    expect(restart().rows('made')).toEqual(retained)
  })
})

describe('flush', () => {
  test('generations become parts, memory and log go, restarts agree', () => {
    const made = world({ settings: { flushRows: 500 } })
    let { host } = made
    const idle = host.allocator.used(1)
    for (let batch = 0; batch < 40; batch++) host.write(lines('a', batch * 100, batch * 100 + 100))
    host.settle()
    expect(host.catalog.table('a')?.parts.length).toBeGreaterThanOrEqual(7)
    expect(host.rows('a')).toEqual(expected(0, 4000))
    expect(host.checkpoint().error).toBe(null)
    host.settle()
    expect(host.catalog.table('a')?.memtables).toEqual([])
    // What is left: dictionaries.
    expect(host.allocator.used(1) - idle).toBeLessThan(16 * 1024)
    host = made.restart()
    expect(host.rows('a')).toEqual(expected(0, 4000))
    host.write(lines('a', 4000, 4100))
    expect(made.restart().rows('a')).toEqual(expected(0, 4100))
  })

  test('truncate and drop take parts away, on disk too', () => {
    const made = world()
    let { host } = made
    host.write(lines('a', 0, 100) + lines('b', 0, 10))
    host.checkpoint()
    host.write(lines('a', 100, 200))
    const { files } = made.disk
    const below = (folder: string): string[] =>
      (files.exists(folder) ? files.list(folder) : []).map((name) => `${folder}/${name}`)
    const tableFolders = [host.tableId('a'), host.tableId('b')].map((id) => `/db/${id}`)
    const partFiles = (): string[] => tableFolders.flatMap(below).flatMap(below)
    expect(partFiles()).toHaveLength(2)
    host.change({ kind: 'truncateTable', tableId: host.tableId('a') })
    host.write(lines('a', 200, 210))
    host.change({ kind: 'dropTable', tableId: host.tableId('b') })
    host.settle()
    expect(partFiles()).toEqual([])
    host = made.restart()
    expect(host.rows('a')).toEqual(expected(200, 210))
    expect(host.catalog.table('b')).toBe(undefined)
  })

  test('memory and files of a dropped table stay until no job uses them', () => {
    const { host, disk } = world({ settings: { flushRows: 500 } })
    const idle = host.allocator.used(1)
    host.jobsRun = false
    host.write(lines('a', 0, 600))
    host.settle()
    expect(host.jobs.map(({ job }) => job.kind)).toEqual(['flush'])
    const folder = `/db/${host.tableId('a')}`
    disk.files.makeDirectory(folder)
    const read = host.allocator.used(1)
    host.change({ kind: 'dropTable', tableId: host.tableId('a') })
    host.settle()
    // The job still reads rows and texts of symbols, and syncs the folder of its parts.
    expect(host.allocator.used(1)).toBe(read)
    expect(disk.files.exists(folder)).toBe(true)
    host.jobsRun = true
    host.settle()
    expect(host.allocator.used(1)).toBe(idle)
    expect(disk.files.exists(folder)).toBe(false)
    expect(disk.files.list('/db').filter((name) => name.startsWith('part'))).toEqual([])
  })

  test('a log above its limit is trimmed: large tables are flushed, small ones carried', () => {
    const made = world({
      walBytesMax: 1024 * 1024,
      walSegmentBytes: 128 * 1024,
      settings: { relocatedBytesMax: 64 * 1024 },
    })
    let { host } = made
    for (let table = 0; table < 5; table++) host.write(lines(`small${table}`, 0, 3))
    for (let batch = 0; batch < 300; batch++) {
      host.write(lines('big', batch * 100, batch * 100 + 100))
      if (batch % 50 === 0) host.write(lines('small0', 3 + batch, 4 + batch))
    }
    host.settle()
    expect(host.writer.metrics.walBytes).toBeLessThan(1536 * 1024)
    expect(host.catalog.table('small1')?.parts).toEqual([])
    host = made.restart()
    expect(host.rows('big')).toEqual(expected(0, 30_000))
    expect(host.rows('small1')).toEqual(expected(0, 3))
    expect(host.rows('small0').length).toBe(9)
  })

  test('a stream of wide rows with one value each is committed in chunks that fit into the memory', () => {
    const made = world()
    const { host } = made
    const rows = 8000
    const text = Array.from({ length: rows }, (_, n) => `wide c${n % 400}=${n}i ${(n + 1) * 1000}\n`).join('')
    const receipt = host.write(text, { atomic: false })
    expect(receipt.error).toBe(null)
    expect(receipt.rows).toBe(rows)
    const stored = host.rows('wide')
    expect(stored.length).toBe(rows)
    expect(stored[4321]?.[`c${4321 % 400}`]).toBe(4321n)
    expect(made.restart().rows('wide').length).toBe(rows)
  })

  test('memtables that are full stop ingest until a flush has returned memory, and never for ever', () => {
    const made = world({ memtableBytes: 2 * 1024 * 1024, settings: { flushRows: 1e9 } })
    const { host } = made
    let sent = 0
    for (let batch = 0; batch < 100; batch++, sent += 500) {
      expect(host.write(lines('a', sent, sent + 500)).error).toBe(null)
    }
    expect(host.rows('a').length).toBe(sent)
    expect(host.catalog.table('a')?.parts.length).toBeGreaterThan(1)
    const huge = Array.from({ length: 20 }, (_, n) => lines('a', n * 2000, n * 2000 + 2000))
    expect(host.write(huge).error?.name).toBe('ResourceError')
    expect(host.write(lines('a', sent, sent + 5)).error).toBe(null)
    expect(host.rows('a').length).toBe(sent + 5)
    expect(made.restart().rows('a').length).toBe(sent + 5)
  })
})

describe('a disk that refuses', () => {
  test('writes are refused, reads go on, and it recovers by itself', () => {
    const made = world()
    const { host, disk } = made
    host.write(lines('a', 0, 10))
    disk.inject((operation) =>
      operation.kind === 'sync' || operation.kind === 'write' ? { kind: 'error', code: 'EIO' } : undefined,
    )
    const waiting = host.lines(lines('a', 10, 20))
    for (let turn = 0; turn < 50; turn++) host.turn()
    expect(host.rows('a')).toEqual(expected(0, 10))
    expect(host.write(lines('a', 20, 30)).error?.name).toBe('ResourceError')
    disk.inject(undefined)
    expect(host.await(waiting).error).toBe(null)
    expect(host.write(lines('a', 20, 30)).error).toBe(null)
    expect(host.rows('a')).toEqual(expected(0, 30))
    expect(made.restart().rows('a')).toEqual(expected(0, 30))
  })

  test('a manifest that cannot be written postpones the flush, and a checkpoint reports it', () => {
    const made = world()
    const { host, disk } = made
    host.write(lines('a', 0, 10))
    host.jobsRun = false
    host.settle()
    disk.inject((operation) =>
      operation.path.includes('manifest') && operation.kind === 'write' ? { kind: 'error', code: 'ENOSPC' } : undefined,
    )
    host.jobsRun = true
    host.writer.receive({ kind: 'checkpoint', requestId: 900 })
    expect(host.await(900).error?.name).toBe('FileError')
    expect(host.rows('a')).toEqual(expected(0, 10))
    for (let turn = 0; turn < 5000; turn++) host.turn()
    expect(disk.files.list('/db/manifest').length).toBe(1)
    disk.inject(undefined)
    expect(host.checkpoint().error).toBe(null)
    expect(host.rows('a')).toEqual(expected(0, 10))
    expect(made.restart().rows('a')).toEqual(expected(0, 10))
  })
})

describe('readers see a transaction in all its tables or in none, whenever they hear of it', () => {
  const seenDuring = (host: WriterHost, send: () => void, turns = 60): [number, number][] => {
    const seen: [number, number][] = []
    host.hears = false
    send()
    for (let turn = 0; turn < turns; turn++) {
      host.turn()
      if (turn % 10 === 9) host.hear()
      const now: [number, number] = [host.rows('a').length, host.rows('b').length]
      if (seen.at(-1)?.join() !== now.join()) seen.push(now)
    }
    host.hears = true
    return seen
  }
  const prepared = (): WriterHost => {
    const { host } = world()
    host.write(lines('a', 0, 10) + lines('b', 0, 10))
    host.checkpoint()
    host.settle()
    // Only this table has a memtable.
    host.write(lines('a', 10, 11))
    return host
  }

  test('one of which has no memtable', () => {
    const host = prepared()
    const seen = seenDuring(host, () => host.lines(lines('a', 11, 13) + lines('b', 10, 12)))
    expect(seen).toEqual([
      [11, 10],
      [13, 12],
    ])
  })

  test('one of which has a new column, with all of its rows', () => {
    const { host } = world()
    host.write(lines('a', 0, 2) + lines('b', 0, 2))
    const columns = (): number => host.catalog.table('b')?.schema.columns.length ?? 0
    const before = columns()
    const seen: string[] = []
    host.hears = false
    host.lines(`${lines('a', 2, 4)}b,s=s1 fresh=1i 3000000000000\n`)
    for (let turn = 0; turn < 60; turn++) {
      host.turn()
      if (turn % 10 === 9) host.hear()
      const now = `${host.rows('a').length} ${host.rows('b').length} ${columns() - before}`
      if (seen.at(-1) !== now) seen.push(now)
    }
    expect(seen).toEqual(['2 2 0', '4 3 1'])
  })

  test('one of which is new', () => {
    const { host } = world()
    host.write(lines('a', 0, 2))
    const seen: string[] = []
    host.hears = false
    host.lines(lines('a', 2, 4) + lines('b', 0, 3))
    for (let turn = 0; turn < 60; turn++) {
      host.turn()
      if (turn % 10 === 9) host.hear()
      const now = `${host.rows('a').length} ${host.catalog.table('b') === undefined ? 'none' : host.rows('b').length}`
      if (seen.at(-1) !== now) seen.push(now)
    }
    expect(seen).toEqual(['2 none', '4 3'])
  })

  test('and later rows of its memtables wait until then', () => {
    const host = prepared()
    const seen = seenDuring(host, () => {
      host.lines(lines('a', 11, 12) + lines('b', 10, 11))
      for (let turn = 0; turn < 9; turn++) host.turn()
      host.lines(lines('a', 12, 14) + lines('b', 11, 12))
    })
    expect(seen).toEqual([
      [11, 10],
      [12, 11],
      [14, 12],
    ])
  })

  test('one of which has a memtable that they do not know yet', () => {
    const host = prepared()
    const seen = seenDuring(host, () => {
      host.lines(lines('b', 10, 11))
      host.lines(lines('a', 11, 13) + lines('b', 11, 13))
    })
    expect(seen).toEqual([
      [11, 10],
      [13, 13],
    ])
  })
})
