// Goal: when a query thread is terminated, its memory is freed once, with the help of the list of its allocations (the
// ledger); memory that other threads still read is freed when they have read it. A thread is terminated only if it has
// worked on the same overdue query without interruption from one check to the next. A background job of a terminated
// thread is run again on another thread. The job fails only if it causes terminations itself. Method: random
// allocations and frees, compared with a set; a query pool with threads that never respond.
// test/interop/extreme_arguments.py tests this with a whole server.

import { expect, test } from 'vitest'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { budgets } from '../../../engine/memory/budgets.js'
import { Ledger, ledgerBytes, recorded } from '../../../engine/memory/ledger.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { noteActivity } from '../../../engine/threads/activity.js'
import { QueryPool } from '../../../engine/threads/query-pool.js'
import { type Overdue, QueryWatch } from '../../../engine/threads/query-watch.js'

const MIB = 1024 * 1024

function heap() {
  const memory = createSharedMemory(256 * MIB)
  initializeHeap(memory, { limits: [MIB, MIB, MIB, 128 * MIB, MIB] })
  const allocator = createAllocator(memory, 0)
  const address = allocator.allocateOrThrow(ledgerBytes, budgets.queries)
  memory.u8.fill(0, address, address + ledgerBytes)
  return { memory, allocator, address, ledger: new Ledger(memory, address) }
}

test('a ledger lists what was taken and not given back', () => {
  const { allocator, ledger } = heap()
  const own = recorded(allocator, ledger)
  const held = new Set<number>()
  let state = 7
  for (let round = 0; round < 20_000; round++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const [first] = held
    if (state % 3 === 0 && first !== undefined) {
      own.free(first)
      held.delete(first)
    } else held.add(own.allocateOrThrow(64 + (state % 2000), budgets.queries))
  }
  expect(new Set(ledger.addresses())).toEqual(held)
  own.free(own.allocateOrThrow(100, budgets.cache))
  expect(ledger.addresses().length).toBe(held.size)
})

test('a dead thread gives everything back but what readers have', async () => {
  const { memory, allocator, address, ledger } = heap()
  const own = recorded(allocator, ledger)
  const freed: number[] = []
  const settled: number[] = []
  const pool = new QueryPool({
    memory,
    jobDone: () => {},
    jobFailed: () => {},
    threadSettled: (threadId, list) => settled.push(threadId, list),
  })
  const post = (message: { kind: string; addresses?: readonly number[] }): void => {
    if (message.kind === 'free') freed.push(...(message.addresses ?? []))
  }
  pool.addThread({ threadId: 3, post, terminate: async () => {} })
  const request = { query: { plan: { kind: 'values', columns: [], rows: [] }, subqueries: [] }, timeoutMs: 5 } as never
  const read = pool.run(request, () => {})
  const stuck = pool.run(request, () => {})
  const [scratch, block] = [own.allocateOrThrow(5000, budgets.queries), own.allocateOrThrow(500, budgets.queries)]
  pool.receive(3, { kind: 'block', queryId: read.queryId, address: block, bytes: 10, rows: 1 })
  const blocks = read.blocks[Symbol.asyncIterator]()
  await blocks.next()
  pool.addThread({ threadId: 4, post, terminate: async () => {} })
  pool.threadEnded(3, new Error('ended'), stuck.queryId, address)
  await expect(stuck.summary).rejects.toThrow('Query timeout')
  await expect(read.summary).rejects.toThrow('another query did not stop')
  expect(freed).toEqual([scratch])
  expect(settled).toEqual([3, address])
  await expect(blocks.next()).rejects.toThrow('another query did not stop')
  expect(freed).toEqual([scratch, block])
})

function poolOfJobs() {
  const { memory } = heap()
  const posted: [threadId: number, jobId: number][] = []
  const failed: number[] = []
  const done: number[] = []
  const pool = new QueryPool({
    memory,
    jobDone: (jobId) => done.push(jobId),
    jobFailed: (jobId) => failed.push(jobId),
  })
  const addThread = (threadId: number): void => {
    const post = (message: { kind: string; jobId?: number }): void => {
      if (message.kind === 'job') posted.push([threadId, message.jobId ?? 0])
    }
    pool.addThread({ threadId, post, terminate: async () => {} })
  }
  return { pool, addThread, posted, failed, done }
}

test('jobs of a thread that was ended for a query are run again, however often', () => {
  const { pool, addThread, posted, failed, done } = poolOfJobs()
  addThread(3)
  for (const kind of ['flush', 'merge', 'rewrite'] as const) pool.runJob(posted.length + 1, { kind } as never)
  for (let threadId = 3; threadId < 10; threadId++) {
    addThread(threadId + 1)
    pool.threadEnded(threadId, new Error('ended'), 77, 0)
  }
  expect(failed).toEqual([])
  expect(posted.slice(-3)).toEqual([
    [10, 1],
    [10, 2],
    [10, 3],
  ])
  pool.receive(10, { kind: 'jobDone', jobId: 2, result: { parts: [] } })
  expect(done).toEqual([2])
  addThread(11)
  pool.threadEnded(10, new Error('ended'), 77, 0)
  expect(posted.slice(-2)).toEqual([
    [11, 1],
    [11, 3],
  ])
})

test('a job that threads die of fails in the end', () => {
  const { pool, addThread, posted, failed } = poolOfJobs()
  addThread(3)
  pool.runJob(1, { kind: 'rewrite' } as never)
  for (let threadId = 3; threadId < 6; threadId++) {
    expect(failed).toEqual([])
    addThread(threadId + 1)
    pool.threadEnded(threadId, new Error('out of memory'), 0, 0)
  }
  expect(failed).toEqual([1])
  expect(posted.length).toBe(3)
})

test('the watch ends a thread that is at an overdue query from one look to the next', () => {
  const { memory } = heap()
  const ended: Overdue[] = []
  let overdue: Overdue[] = []
  const watch = new QueryWatch({ memory, overdue: () => overdue, end: (found) => ended.push(found) })
  const working = noteActivity(memory, 5)
  working(12)
  watch.look()
  watch.look()
  expect(ended).toEqual([])
  overdue = [{ threadId: 5, queryId: 12 }]
  watch.look()
  working(0)
  working(12)
  watch.look()
  working(13)
  watch.look()
  working(12)
  watch.look()
  expect(ended).toEqual([])
  watch.look()
  expect(ended).toEqual(overdue)
  watch.close()
})
