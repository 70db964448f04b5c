// Goal: when the coordinator of a parallel query sends rows of a chunk to the client while it computes the chunk, the
// chunk is computed only once, even if the client stops reading in between. Method: a coordinator without worker
// threads, and a client that stops after each step.

import { expect, test } from 'vitest'
import { QueryArena } from '../../../../engine/exec/batch/query-arena.js'
import { type ChunkWorker, CoordinatorRun } from '../../../../engine/exec/parallel/coordinator.js'
import { singleThread } from '../../../../engine/exec/parallel/single-thread.js'
import { createBench } from '../exec-support.js'
import { makeDatabase, queryOfText } from '../statement-support.js'

const chunks = 4
const bench = createBench()
const arena = new QueryArena(bench.memory, bench.allocator)
const { plan } = queryOfText('select 1', makeDatabase(bench, []))

/** A chunk takes two steps. `begun` and `merged` are lists of chunks. */
function runWith(begun: number[], merged: number[]): CoordinatorRun {
  let current = -1
  let stepsLeft = 0
  const results = new Map<number, number>()
  const worker: ChunkWorker = {
    begin: (chunk) => {
      begun.push(chunk)
      current = chunk
      stepsLeft = 2
    },
    step: () => --stepsLeft > 0,
    result: () => {
      const address = arena.take(64)
      results.set(address, current)
      return address
    },
    recycle: (result) => {
      results.delete(result)
      arena.give(result)
    },
    drop: () => {},
    inPart: true,
  }
  const merge = (result: number): void => void merged.push(results.get(result) ?? -1)
  return new CoordinatorRun(bench.memory, singleThread(arena), {
    ...{ plan, worker, chunks, merge },
    details: () => ({ kind: 'chunks' }) as never,
  })
}

test('a chunk that is sent as it is computed', () => {
  for (const stopEvery of [1, 2, 3, 5]) {
    const begun: number[] = []
    const merged: number[] = []
    const run = runWith(begun, merged)
    for (let step = 1; step < 200 && run.step() !== 'done'; step++) if (step % stopEvery === 0) run.goIdle('written')
    expect(merged).toEqual(Array.from({ length: chunks }, (_, chunk) => chunk))
    expect(begun).toEqual(merged)
  }
})
