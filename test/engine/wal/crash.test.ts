// Goal: every frame (record) that the write-ahead log has acknowledged in mode sync, or has called durable in the other
// modes, survives any crash, once and in order; nothing after a torn tail is replayed; a damaged frame costs only
// itself. Method: random runs on a simulated disk (simulation.ts); `npm test` runs some of the seeds.

import { expect, test } from 'vitest'
import { createLogLoop } from '../../../engine/wal/log-loop.js'
import { openWal } from '../../../engine/wal/open.js'
import { runs } from '../../support/runs.js'
import { type FaultyDisk, operationKinds } from '../../support/simulator/faulty-files.js'
import { type SimulationOptions, simulate } from './simulation.js'

const modules = { openWal, createLogLoop }

function runSeeds(from: number, count: number, options: Partial<SimulationOptions>): void {
  for (let seed = from; seed < from + count; seed++) {
    try {
      simulate({ modules, seed, ...options })
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
}

test('mode sync: acknowledged frames survive crashes, failures and crashes within the recovery', () => {
  const disks: FaultyDisk[] = []
  runSeeds(1, runs(1200, 400), { onDisk: (disk) => void disks.push(disk) })
  const struck = new Set(disks.flatMap((disk) => [...disk.struck]))
  // The log uses neither truncate nor removeDirectory nor freeBytes nor lock.
  const used = operationKinds.filter((kind) => disks.some((disk) => disk.counts[kind] > 0))
  expect([...struck].sort()).toEqual([...used].sort())
  expect(used).toEqual(
    expect.arrayContaining([
      'open',
      'read',
      'write',
      'sync',
      'rename',
      'remove',
      'list',
      'size',
      'makeDirectory',
      'syncDirectory',
    ]),
  )
})

test('mode async: what is durable survives', () => runSeeds(10_000, runs(200, 100), { mode: 'async' }))

test('mode nosync: what is durable survives', () => runSeeds(20_000, runs(200, 100), { mode: 'nosync' }))

test('damage before the durable position costs only the frames it hit', () =>
  runSeeds(30_000, runs(400, 200), { damage: true, rounds: 1 }))
