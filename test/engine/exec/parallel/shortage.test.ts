// Goal: when a query that several threads run in parallel is short of memory, its coordinator asks the worker threads
// to free theirs, waits while they do, and fails as soon as none of them holds any. Method: fake workers that run short
// of memory when the test says so. Only the test advances the clock, so no time-out ends the wait by chance.

import { expect, test } from 'vitest'
import { ResourceError } from '../../../../engine/base/errors.js'
import { type ChunkWorker, CoordinatorRun } from '../../../../engine/exec/parallel/coordinator.js'
import { initWorkQueue, WorkQueue } from '../../../../engine/exec/parallel/work-queue.js'
import { WorkerRun } from '../../../../engine/exec/parallel/worker-run.js'
import type { SharedMemory } from '../../../../engine/memory/shared-memory.js'
import type { Plan } from '../../../../engine/sql/plan/plan.js'

const address = 64
const memory = { u32: new Uint32Array(new SharedArrayBuffer(4096)) } as unknown as SharedMemory

/** `short` says whether memory is short now. */
function worker(short: () => boolean): ChunkWorker & { tries: number; held: number } {
  const self = {
    tries: 0,
    held: 0,
    begin: () => {
      self.tries++
    },
    step: () => {
      if (short()) throw new ResourceError('memory is short', 'memory')
      return false
    },
    result: () => 1024 + 64 * self.held++,
    recycle: () => {
      self.held--
    },
    drop: () => {},
  }
  return self
}

function coordinator(own: ChunkWorker, workers: number, merged: number[], nowMs = () => 0): CoordinatorRun {
  const parallelism = {
    ...{ threadId: 3, workers, chunkRowsMin: 1, inviteAfterMs: 1e9, inviteForMs: 1e9, nowMs },
    ...{ wake: () => {}, queue: () => address, invite: () => {}, invited: false },
  }
  const merge = (result: number): number => merged.push(result)
  return new CoordinatorRun(memory, parallelism, {
    ...{ plan: {} as Plan, worker: own, chunks: 4, merge },
    details: () => {
      throw new Error('nobody is invited')
    },
  })
}

function helperOf(own: ChunkWorker): WorkerRun {
  return new WorkerRun({ wake: () => {} }, new WorkQueue(memory, address, 4), own)
}

/** A coordinator with enough memory, and a helper of it. */
function pairOf(helping: ChunkWorker) {
  const merged: number[] = []
  const run = coordinator(
    worker(() => false),
    1,
    merged,
  )
  return { merged, run, queue: new WorkQueue(memory, address, 3), helper: helperOf(helping) }
}

function untilError(run: CoordinatorRun, stepsMax: number): unknown {
  for (let step = 0; step < stepsMax; step++) {
    try {
      run.step()
    } catch (error) {
      return error
    }
  }
  return null
}

test.each([0, 1])('without memory held by others it fails at once, with %i other threads', (workers) => {
  initWorkQueue(memory, address, 4, 3)
  const own = worker(() => true)
  expect(untilError(coordinator(own, workers, []), 10)).toBeInstanceOf(ResourceError)
  expect(own.tries).toBe(workers + 1)
})

test('it waits for a helper that holds memory, and uses what that has freed', () => {
  const helping = worker(() => false)
  const own = worker(() => helping.held > 0)
  const merged: number[] = []
  const run = coordinator(own, 1, merged)
  const helper = helperOf(helping)
  // The helper takes the first chunk, whose result the coordinator withdraws.
  while (helping.held === 0) helper.step()
  run.step()
  while (helping.held === 1) helper.step()
  expect(untilError(run, 20)).toBe(null)
  expect(helping.held).toBeGreaterThan(0)
  while (helper.step() !== 'idle');
  expect(helping.held).toBe(0)
  for (let step = 0; step < 100 && merged.length < 4; step++) run.step()
  expect(merged).toHaveLength(4)
})

test('it fails when memory is short after the helpers have freed theirs', () => {
  const helping = worker(() => false)
  const own = worker(() => true)
  const run = coordinator(own, 1, [])
  const helper = helperOf(helping)
  while (helping.held < 2) helper.step()
  run.step()
  run.step()
  expect(untilError(run, 50)).toBe(null)
  while (helper.step() !== 'idle');
  const before = own.tries
  expect(untilError(run, 50)).toBeInstanceOf(ResourceError)
  expect(own.tries - before).toBeLessThanOrEqual(3)
})

test('a helper that never frees its memory is waited for a second', () => {
  let ms = 0
  const helping = worker(() => false)
  const run = coordinator(
    worker(() => true),
    1,
    [],
    () => ms,
  )
  const helper = helperOf(helping)
  while (helping.held < 2) helper.step()
  run.step()
  run.step()
  expect(untilError(run, 50)).toBe(null)
  ms = 1000
  expect(untilError(run, 50)).toBeInstanceOf(ResourceError)
})

test('a helper that fails drops its chunk, and frees its results when they are merged', () => {
  let short = false
  let dropped = 0
  const helping = { ...worker(() => short), drop: () => void dropped++ }
  const { merged, run, queue, helper } = pairOf(helping)
  helper.step()
  short = true
  expect(() => helper.step()).toThrow(ResourceError)
  helper.fail()
  expect(dropped).toBe(1)
  expect(queue.isHeld).toBe(true)
  for (let step = 0; step < 100 && merged.length < 4; step++) run.step()
  expect(merged).toHaveLength(4)
  run.step()
  helper.freeMerged()
  expect(queue.isHeld).toBe(false)
})

test('a helper without room pauses, and holds nothing then', () => {
  let room = true
  const helping = { ...worker(() => false), hasRoom: () => room }
  const { merged, run, queue, helper } = pairOf(helping)
  expect(helper.step()).toBe('working')
  room = false
  expect(helper.step()).toBe('waiting')
  expect(queue.isHeld).toBe(true)
  while (merged.length < 2) run.step()
  run.step()
  expect(helper.step()).toBe('waiting')
  expect(queue.isHeld).toBe(false)
  room = true
  expect(helper.step()).toBe('working')
})
