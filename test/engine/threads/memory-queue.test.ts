// Goal: queries that each fit into memory all succeed, however many run at once; a query that waits for memory can be
// cancelled and ends at its deadline; a query that has returned rows is never restarted. Method: an engine with 29 MB
// for queries, of which each query needs more than half; and a pool of fake query threads that respond as the test
// tells them.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorRecord, ResourceError } from '../../../engine/base/errors.js'
import type { Engine } from '../../../engine/engine.js'
import type { RunQuery } from '../../../engine/exec/run/messages.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { budgets } from '../../../engine/memory/budgets.js'
import { isCancelFlagSet } from '../../../engine/memory/cancel-flags.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { MemoryQueue } from '../../../engine/threads/memory-queue.js'
import type { ToQueryHost } from '../../../engine/threads/messages.js'
import { QueryPool } from '../../../engine/threads/query-pool.js'
import { executeOptions, openTestEngine, rowsFrom } from '../../support/test-engine.js'

const MIB = 1024 * 1024
const rows = 180_000
const directory = mkdtempSync(join(tmpdir(), 'memory-queue-'))
let engine: Engine
beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  await rowsFrom(
    engine,
    `create table t as (select x, (x * 7919) % 1000003 k, timestamp_sequence(0, 1000000) ts from long_sequence(${rows}))
      timestamp(ts) partition by month`,
  )
})
afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

const sum = (BigInt(rows) * BigInt(rows + 1)) / 2n
const large: [string, unknown[]][] = [
  [
    'select count(), sum(n), sum(m) from (select k, count() n, sum(x) m from t group by k)',
    [[BigInt(rows), BigInt(rows), sum]],
  ],
  ['select sum(r) from (select k, row_number() over (order by k) r from t)', [[sum]]],
  ['select count(), sum(a.x) from t a join t b on a.k = b.k', [[BigInt(rows), sum]]],
  [`select x from t order by k, ts limit ${rows - 1}, ${rows}`, []],
]

test('queries that fit alone answer, however many there are', async () => {
  const expected = new Map<string, unknown[]>()
  for (const [sql, known] of large) {
    const alone = await rowsFrom(engine, sql)
    if (known.length > 0) expect(alone).toEqual(known)
    expected.set(sql, alone)
  }
  const requested = Array.from({ length: 5 }, () => large.map(([sql]) => sql)).flat()
  const answers = await Promise.all(requested.map((sql) => rowsFrom(engine, sql)))
  answers.forEach((answer, index) => expect(answer).toEqual(expected.get(requested[index] as string)))
})

test('rows are inserted once', async () => {
  await rowsFrom(engine, 'create table u (k long, n long)')
  const inserts = Array.from({ length: 5 }, () =>
    rowsFrom(engine, 'insert into u select k, count() n from t group by k'),
  )
  await Promise.all([...inserts, ...large.map(([sql]) => rowsFrom(engine, sql))])
  expect(await rowsFrom(engine, 'select count(), sum(n) from u')).toEqual([[BigInt(rows * 5), BigInt(rows * 5)]])
})

const shortage = errorRecord(ResourceError.outOfMemory('queries', 1))

/** A query pool with one thread, which does nothing by itself. */
function openPool() {
  const memory = createSharedMemory(256 * MIB)
  initializeHeap(memory, { limits: [MIB, MIB, MIB, 64 * MIB, MIB] })
  const posted: ToQueryHost[] = []
  const pool = new QueryPool({ memory, jobDone: () => {}, jobFailed: () => {} })
  pool.addThread({ threadId: 3, post: (message) => posted.push(message), terminate: async () => {} })
  const run = (timeoutMs = 0) => {
    const request = { query: { plan: { kind: 'values', columns: [], rows: [] }, subqueries: [] }, timeoutMs } as never
    const state = { ended: 0 }
    const running = pool.run(request, () => state.ended++)
    running.summary.catch(() => {})
    const fail = (): void => pool.receive(3, { kind: 'error', queryId: running.queryId, error: shortage })
    const end = (): void =>
      pool.receive(3, { kind: 'end', queryId: running.queryId, rows: 0, cut: false, executeMs: 1 })
    const attempts = (): RunQuery[] =>
      posted.filter((message): message is RunQuery => message.kind === 'run' && message.queryId === running.queryId)
    return { ...running, running, state, fail, end, attempts }
  }
  const take = (): { give(): void } => {
    const allocator = createAllocator(memory, 5)
    const address = allocator.allocateOrThrow(48 * MIB, budgets.queries)
    return { give: () => allocator.free(address) }
  }
  return { memory, pool, posted, run, take }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
}

test('each waits for its turn, and who comes meanwhile has a share', async () => {
  const { run, take, memory } = openPool()
  const [other, first, second] = [run(), run(), run()]
  const held = take()
  first.fail()
  second.fail()
  expect(first.attempts().length).toBe(1)
  const late = run()
  expect(late.attempts()[0]?.memoryMax).toBeLessThan(4 * MIB)
  held.give()
  await until(() => first.attempts().length === 2)
  expect(isCancelFlagSet(memory, first.running.queryId)).toBe(false)
  expect(first.attempts()[1]).toMatchObject({ spentMs: expect.any(Number) })
  expect(first.attempts()[1]?.memoryMax).toBeUndefined()
  expect(second.attempts().length).toBe(1)
  late.fail()
  first.end()
  expect(first.state.ended).toBe(1)
  expect(second.attempts().length).toBe(2)
  second.end()
  expect(late.attempts().length).toBe(2)
  late.end()
  expect([other.state.ended, second.state.ended, late.state.ended]).toEqual([0, 1, 1])
  expect(run().attempts()[0]?.memoryMax).toBeUndefined()
})

test('who waits is cancelled at once, or when its time is over', async () => {
  const { run, take } = openPool()
  const [, first, second] = [run(), run(), run(30)]
  const held = take()
  first.fail()
  second.fail()
  first.running.cancel('the client disconnected')
  await expect(first.running.summary).rejects.toThrow('the client disconnected')
  await expect(second.running.summary).rejects.toThrow('Query timeout')
  expect([first.state.ended, second.state.ended]).toEqual([1, 1])
  held.give()
  expect(run().attempts()[0]?.memoryMax).toBeUndefined()
  expect([first.attempts().length, second.attempts().length]).toEqual([1, 1])
})

test('what is too large alone, or was seen in part, fails', async () => {
  const { run, pool } = openPool()
  const alone = run()
  alone.fail()
  await expect(alone.running.summary).rejects.toThrow('out of memory [budget=queries')
  const [other, seen, large] = [run(), run(), run()]
  pool.receive(3, { kind: 'rows', queryId: seen.running.queryId, rows: [[1]] })
  seen.fail()
  await expect(seen.running.summary).rejects.toThrow('out of memory [budget=queries')
  large.fail()
  expect(large.attempts().length).toBe(2)
  // Beside one that was there before and has no bound, a turn proves nothing.
  large.fail()
  expect(large.attempts().length).toBe(3)
  other.end()
  large.fail()
  expect(large.attempts().length).toBe(4)
  large.fail()
  await expect(large.running.summary).rejects.toThrow('out of memory [budget=queries')
})

test('a query that held memory may have ended before the shortage is reported', async () => {
  const { run } = openPool()
  const [first, starved, later] = [run(), run(), run()]
  first.end()
  later.end()
  starved.fail()
  expect(starved.attempts().length).toBe(2)
  const alone = run()
  starved.end()
  alone.fail()
  expect(alone.attempts().length).toBe(2)
})

test('a turn proves nothing when others kept an eighth of what is free at rest', () => {
  let used = 8 * MIB
  const queue = new MemoryQueue({ used: () => used, limit: () => 32 * MIB })
  const turn = (held: number): boolean[] => {
    used = (8 + held) * MIB
    let started = false
    const query = { turns: 0, deadlineMs: Number.POSITIVE_INFINITY, start: () => (started = true), expire: () => {} }
    queue.join(query)
    expect(started).toBe(true)
    const crowded = [queue.crowdedBy(0), queue.crowdedBy(1)]
    queue.leave(query)
    return crowded
  }
  expect(turn(4)).toEqual([true, true])
  expect(turn(2.5)).toEqual([false, true])
  expect(turn(1)).toEqual([false, false])
})

test('a query that waits for a slow reader answers when the reader is done', async () => {
  const slow = await engine.execute(`select x from t order by k, ts`, executeOptions)
  if (slow.kind !== 'rows') throw new Error('a query gives rows')
  const values = slow.values[Symbol.asyncIterator]()
  let read = ((await values.next()).value ?? []).length
  const waiting = large.map(([sql]) => rowsFrom(engine, sql))
  for (let next = await values.next(); next.done !== true; next = await values.next()) read += next.value.length
  expect(read).toBe(rows)
  for (const [index, answer] of (await Promise.all(waiting)).entries())
    if (index < 3) expect(answer).toEqual(large[index]?.[1])
})
