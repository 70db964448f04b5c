// Goal: if the write-ahead log cannot be written, not even to a new segment file, the writer thread reports the error
// code of the operating system. (A server that is still starting ends with this error.) When the disk works again, the
// writer continues without a restart.

import { expect, test } from 'vitest'
import { internalSession } from '../../../engine/api/session.js'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'

test.each(['EIO', 'ENOSPC'])('every call fails with %s from some moment on', async (code) => {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const engine = new InlineEngine({ files: disk.files })
  await engine.settle()
  await engine.run('create table t (ts timestamp, v long) timestamp(ts) partition by day')
  expect(engine.logFailures).toEqual([])

  disk.inject(() => ({ kind: 'error', code }))
  const stored = engine.engine.execute("insert into t values ('2024-01-01', 1)", {
    ...{
      session: internalSession('admin'),
      encoding: { kind: 'values' },
    },
    ...{
      parameters: [],
      skip: 0,
      rowsMax: 0,
      countAll: false,
      columns: null,
      timeoutMs: 0,
      signal: null,
      explain: false,
    },
  })
  for (let turn = 0; turn < 100; turn++) await engine.settle()
  expect(engine.logFailures.map(({ detail }) => detail)).toEqual([code])

  disk.inject(undefined)
  await engine.until(stored)
  expect(await engine.rows('select v from t')).toEqual([[1n]])
})
