// Goal: CREATE TABLE AS creates the whole table or none if the process or the machine crashes. Otherwise a retry with
// IF NOT EXISTS could find an empty table and insert nothing. Method: a simulated crash at every third disk operation
// of the statement in turn.

import { expect, test } from 'vitest'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

const rows = 300n
const statement = `create batch 40 table if not exists t as (
  select x::timestamp ts, x n, 's' || (x % 7) k from long_sequence(${rows})) timestamp(ts) partition by day`

function newDisk(seed: number): FaultyDisk {
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

async function open(disk: FaultyDisk): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files, settings: { flushRows: 100 }, walSegmentBytes: 16 * 1024 })
  await engine.settle()
  return engine
}

test('whole or absent', async () => {
  let [absent, whole] = [0, 0]
  for (let crash = 1; crash < 200; crash += 3) {
    const disk = newDisk(crash)
    let engine = await open(disk)
    const at = disk.operations + crash
    let stopped = false
    disk.inject((operation) => {
      if (operation.index !== at) return undefined
      stopped = true
      return { kind: 'crash' }
    })
    let done = false
    try {
      await engine.run(statement)
      done = true
    } catch (thrown) {
      if (!stopped) throw thrown
    }
    disk.inject(undefined)
    if (crash % 2 === 0) disk.kill()
    else disk.crash(crash)
    for (let start = 0; start < 2; start++) {
      engine = await open(disk)
      const table = engine.view.table('t')
      if (done) expect(table).toBeDefined()
      if (table === undefined) {
        absent++
        await engine.run(statement)
      } else whole++
      expect(await engine.rows('select count(), sum(n), count_distinct(k) from t')).toEqual([[rows, 45150n, 7n]])
      await engine.run('checkpoint')
      disk.kill()
    }
  }
  expect(absent).toBeGreaterThan(3)
  expect(whole).toBeGreaterThan(3)
})
