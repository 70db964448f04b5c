// Goal: DROP PARTITION of a table with materialized views succeeds if the table's parts were only compacted since the
// views have read them. If rows were added since then, the writer rejects the request as stale and drops nothing, even
// if a compaction has joined the new rows with old ones, or the new rows are of other buckets of the partition. Rows that
// come after that have later transactions than the sealed buckets, also after a restart.

import { expect, test } from 'vitest'
import { metricOf } from '../../../../engine/memory/metrics.js'
import type { Receipt } from '../../../../engine/storage/jobs/messages.js'
import { isLate, lateBounds, type Sealing } from '../../../../engine/storage/schema/materialized.js'
import { emptiedSchema } from '../../../../engine/storage/schema/schema.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { WriterHost } from '../writer-host.js'

/** As many parts as a compaction needs are one more. */
function startHost(): WriterHost {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const host = new WriterHost({ files: disk.files, parts: new Map(), merges: true, settings: { flushRows: 10 } })
  for (let part = 0; part < 3; part++) flush(host)
  expect(host.catalog.table('t')?.parts).toHaveLength(3)
  return host
}

/** Writes as many rows as a memtable has, and waits until they are in a part. */
function flush(host: WriterHost, firstNanos = 0): void {
  const before = metricOf(host.memory, 'flushes')
  host.write(Array.from({ length: 10 }, (_, row) => `t a=${row} ${firstNanos + row}\n`).join(''))
  for (let turns = 0; metricOf(host.memory, 'flushes') === before && turns < 5000; turns++) host.turn()
}

/** What a view reads now, and the request to seal it. */
function read(host: WriterHost): { readonly release: () => void; readonly drop: () => Receipt } {
  const tableId = host.tableId('t')
  const held = host.catalog.hold([tableId])
  const version = host.catalog.table('t')
  if (version === undefined) throw new Error('no table')
  const sealing: Sealing = {
    views: [{ viewId: 99, ranges: [['0', '1000']], adds: true }],
    needed: [['0', '1000']],
    parts: version.parts.map(({ id }) => [id, 0]),
    version: version.version,
    losing: [],
  }
  const partitions = [...new Set(version.parts.map(({ partition }) => partition))]
  return {
    release: () => held.release(),
    drop: () => host.change({ kind: 'partitions', tableId, operation: 'drop', partitions, sealing }),
  }
}

function compact(host: WriterHost): void {
  host.jobsRun = true
  host.settle()
  expect(host.catalog.table('t')?.parts).toHaveLength(1)
}

test('compacted parts are those that the views have read', () => {
  const host = startHost()
  flush(host)
  host.jobsRun = false
  host.settle()
  expect(host.catalog.table('t')?.parts).toHaveLength(4)
  const seen = read(host)
  compact(host)
  expect(seen.drop()).toMatchObject({ error: null })
  expect(seen.drop().isStale).toBe(true)
  host.settle()
  expect(host.rows('t')).toEqual([])
  seen.release()
})

test('rows that were compacted with those that the views have read are noticed', () => {
  const host = startHost()
  const [early, rowsBefore] = [read(host), 30]
  flush(host)
  compact(host)
  const late = read(host)
  expect(early.drop().isStale).toBe(true)
  expect(host.rows('t')).toHaveLength(rowsBefore + 10)
  expect(late.drop().isStale).toBeUndefined()
  host.settle()
  expect(host.rows('t')).toEqual([])
  early.release()
  late.release()
})

test('rows of other buckets of the partition are noticed', () => {
  const host = startHost()
  const early = read(host)
  flush(host, 5_000_000_000)
  expect(new Set(host.catalog.table('t')?.parts.map(({ partition }) => partition)).size).toBe(1)
  expect(early.drop().isStale).toBe(true)
  expect(host.rows('t')).toHaveLength(40)
  const late = read(host)
  expect(late.drop().isStale).toBeUndefined()
  host.settle()
  expect(host.rows('t')).toEqual([])
  early.release()
  late.release()
})

const dayMicros = 86_400_000_000n

/** The table and its part of the first day, and the requests to seal buckets of v with, or without, it. */
function sealedOf(host: WriterHost) {
  const version = host.catalog.table('t')
  if (version === undefined) throw new Error('no table')
  const viewId = host.tableId('v')
  const seal = (ranges: Sealing['needed'], partitions: readonly string[], losing: readonly number[] = []): Receipt => {
    const now = host.catalog.table('t')
    const gone = now?.parts.filter(({ partition }) => partitions.includes(partition)) ?? []
    const parts = gone.map(({ id }) => [id, 0] as const)
    const sealing = { views: [{ viewId, ranges, adds: true }], needed: [], parts, version: now?.version ?? 0, losing }
    return host.change({ kind: 'partitions', tableId: version.schema.id, operation: 'drop', partitions, sealing })
  }
  const bounds = () => lateBounds(host.catalog.table('t')?.schema ?? {}, { id: viewId })
  return { seal, bounds, viewId, parts: () => host.catalog.table('t')?.parts ?? [] }
}

test('rows that arrive after a restart are later than those of sealed buckets', () => {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const options = { files: disk.files, parts: new Map(), settings: { flushRows: 10 } }
  const host = new WriterHost(options)
  host.write('v a=1 1\n')
  flush(host, Number(dayMicros) * 3000)
  host.register([host.stage('t', [{ a: 1, timestamp: 5n }])])
  const { seal, parts } = sealedOf(host)
  const [loaded] = parts().filter(({ partition }) => partition === '1970-01-01')
  expect(loaded?.maxTxn).toBeGreaterThan(Math.max(...parts().flatMap((part) => (part === loaded ? [] : part.maxTxn))))
  expect(seal([['0', '1000']], [loaded?.partition ?? ''])).toMatchObject({ error: null })
  host.settle()
  host.close()
  const again = new WriterHost(options)
  flush(again)
  const later = sealedOf(again)
  const late = later.parts().filter((part) => isLate(later.bounds(), part))
  expect(late.map(({ rows }) => rows)).toEqual([10])
  again.close()
})

test('late rows that a view cannot add are late in none of its buckets', () => {
  const host = startHost()
  host.write('v a=1 1\n')
  const { seal, bounds, viewId, parts } = sealedOf(host)
  expect(seal([['0', '0']], []).isStale).toBeUndefined()
  flush(host)
  expect(parts().filter((part) => isLate(bounds(), part))).toHaveLength(1)
  expect(seal([['0', '1']], []).isStale).toBe(true)
  expect(seal([['0', '1']], [], [viewId]).isStale).toBeUndefined()
  host.settle()
  expect(bounds()).toHaveLength(2)
  expect(parts().filter((part) => isLate(bounds(), part))).toEqual([])
})

test('buckets that were sealed after a TRUNCATE get later rows', () => {
  const host = startHost()
  host.write('v a=1 1\n')
  const { seal } = sealedOf(host)
  seal([['0', '0']], [])
  host.settle()
  const schema = host.catalog.table('t')?.schema
  if (schema === undefined) throw new Error('no table')
  expect(schema.sealed).toMatchObject([{ adds: true }])
  expect(emptiedSchema(schema, 0)).toEqual(schema)
  expect(emptiedSchema(schema).sealed).toBeUndefined()
})
