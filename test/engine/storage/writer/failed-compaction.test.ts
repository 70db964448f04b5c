// Goal: a compaction that fails for lack of memory does not delay flushes, and is tried again later. A compaction that
// fails because of a disk error does delay flushes.

import { expect, test } from 'vitest'
import { errorRecord, FileError, ResourceError } from '../../../../engine/base/errors.js'
import { metricOf, writeRefusals } from '../../../../engine/memory/metrics.js'
import { createFaultyDisk } from '../../../support/simulator/faulty-files.js'
import { WriterHost } from '../writer-host.js'

/** A host whose table has so many parts that the next one starts a compaction. */
function startHost(): WriterHost {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const host = new WriterHost({ files: disk.files, parts: new Map(), merges: true, settings: { flushRows: 10 } })
  for (let part = 0; part < 3; part++) flush(host)
  expect(host.catalog.table('t')?.parts).toHaveLength(3)
  return host
}

/** Writes as many rows as a memtable has; returns the milliseconds until they are in a part. */
function flush(host: WriterHost): number {
  const before = metricOf(host.memory, 'flushes')
  host.write(Array.from({ length: 10 }, (_, row) => `t a=${row} ${row}\n`).join(''))
  const begin = host.ms
  while (metricOf(host.memory, 'flushes') === before && host.ms < begin + 5000) host.turn()
  return host.ms - begin
}

test('a compaction without memory leaves flushes alone and is tried again', () => {
  const host = startHost()
  host.mergeError = errorRecord(new ResourceError('out of memory'))
  flush(host)
  for (let turn = 0; turn < 20; turn++) host.turn()
  expect(metricOf(host.memory, 'failedJobs')).toBe(1)
  for (let more = 0; more < 5; more++) expect(flush(host)).toBeLessThan(100)
  expect(metricOf(host.memory, 'failedJobs')).toBe(1)
  expect(metricOf(host.memory, 'refusal')).toBe(writeRefusals.none)
  host.mergeError = undefined
  host.ms += 11_000
  flush(host)
  host.settle()
  expect(metricOf(host.memory, 'merges')).toBeGreaterThan(0)
  expect(host.catalog.table('t')?.parts.length).toBeLessThan(10)
  expect(host.rows('t')).toHaveLength(100)
})

test('a compaction that the disk fails delays flushes', () => {
  const host = startHost()
  host.mergeError = errorRecord(new FileError('cannot write x: EIO', 'EIO'))
  flush(host)
  for (let turn = 0; turn < 20; turn++) host.turn()
  expect(flush(host)).toBeGreaterThan(500)
})
