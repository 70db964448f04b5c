// Goal: the writer may delete the local copy of a part (Parquet file) that was uploaded to object storage. Whenever the
// machine crashes, each part of the table has its local copy; or the manifest says that it is remote, and there is a
// sidecar (a local file with its metadata). The next start removes local copies that a crash left behind. Method: rows
// are flushed, and parts are reported as uploaded and dropped, on a simulated disk that stops at a random file
// operation, also during recovery.

import { expect, test } from 'vitest'
import type { Files } from '../../../../engine/base/files.js'
import {
  isRemoteOnly,
  localFileOf,
  type PartDescriptor,
  sidecarFileOf,
} from '../../../../engine/storage/schema/schema.js'
import { createRandom } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'
import { createFaultyDisk, SimulatedCrash } from '../../../support/simulator/faulty-files.js'
import { type PartStore, WriterHost } from '../writer-host.js'

const settings = { flushRows: 50 }

function partsOf(host: WriterHost): readonly PartDescriptor[] {
  return host.catalog.table('t')?.parts ?? []
}

function uploaded(host: WriterHost, { id: partId }: PartDescriptor, only: boolean): void {
  const remote = { key: `key-${partId}`, checksum: partId, ...(only ? { only: true as const } : {}) }
  host.writer.receive({ kind: 'uploaded', tableId: host.tableId('t'), partId, remote })
}

/** What the object store's thread does before it reports a part. */
function writeSidecar(files: Files, part: PartDescriptor): void {
  const path = `/db/${sidecarFileOf(part)}`
  if (files.exists(path)) return
  const file = files.open(path, 'create')
  file.write([new Uint8Array(8)], 0)
  file.sync()
  file.close()
  files.syncDirectory(path.slice(0, path.lastIndexOf('/')))
}

test.each(Array.from({ length: runs(60, 10) }, (_, index) => index + 1))('seed %i', (seed) => {
  const random = createRandom(seed)
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const parts: PartStore = new Map()
  const start = (): WriterHost => new WriterHost({ files: disk.files, parts, settings })
  const dropped = new Set<number>()
  let rows = 0
  /** Rows of acknowledged writes. */
  let written = 0
  const check = (host: WriterHost): void => {
    for (const part of partsOf(host)) expect(disk.files.exists(`/db/${localFileOf(part)}`), part.file).toBe(true)
    const remote = new Set(partsOf(host).flatMap((part) => (isRemoteOnly(part) ? [part.id] : [])))
    for (const id of dropped) expect(remote.has(id)).toBe(true)
    if (written > 0) expect(host.rows('t').length).toBeGreaterThanOrEqual(written)
  }
  for (let round = 0; round < 4; round++) {
    const crashAt = disk.operations + random.between(1, 250)
    disk.inject((operation) => (operation.index === crashAt ? { kind: 'crash' } : undefined))
    try {
      const host = start()
      check(host)
      for (let step = 0; step < 30; step++) {
        const lines = Array.from({ length: 20 }, () => `t n=${rows++}i ${random.between(0, 5) * 86_400_000_000_000}\n`)
        if (host.write(lines.join('')).error === null) written += lines.length
        if (random.chance(0.3)) host.checkpoint()
        for (const part of partsOf(host)) {
          if (part.remote === undefined) uploaded(host, part, false)
          else if (!isRemoteOnly(part) && random.chance(0.5)) {
            writeSidecar(disk.files, part)
            uploaded(host, part, true)
          }
        }
        host.settle(40)
        check(host)
        for (const part of partsOf(host)) if (isRemoteOnly(part)) dropped.add(part.id)
      }
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    disk.inject(undefined)
    disk.crash(random.between(1, 1e9))
  }
  const host = start()
  check(host)
  host.settle()
  check(host)
  // The sweep of a start has removed what a crash has left of dropped files.
  for (const part of partsOf(host)) {
    if (isRemoteOnly(part)) expect(disk.files.exists(`/db/${part.file}`), part.file).toBe(false)
  }
})
