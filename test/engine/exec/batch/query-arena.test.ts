// Goal: the reserve of query memory serves only queries that have sent rows and need memory for the next ones. Neither
// a query that has sent nothing, nor work ahead of the next rows, gets memory from it. Method: arenas (memory of one
// query) that allocate until they are refused.

import { expect, test } from 'vitest'
import { QueryArena } from '../../../../engine/exec/batch/query-arena.js'
import { budgets } from '../../../../engine/memory/budgets.js'
import { createBench } from '../exec-support.js'

const { memory, allocator } = createBench(16)
const limit = allocator.limit(budgets.queries)
const bytes = 16 * 1024

/** Bytes that are left in the budget when the arena gets no more. */
function leftAfter(arena: QueryArena): number {
  for (;;) {
    try {
      arena.take(bytes)
    } catch {
      return limit - allocator.used(budgets.queries)
    }
  }
}

test('work ahead leaves the reserve to what is sent next', () => {
  const fresh = new QueryArena(memory, allocator)
  const reserve = leftAfter(fresh)
  expect(reserve).toBeGreaterThan(limit / 64)
  fresh.freeAll()
  const sending = new QueryArena(memory, allocator)
  sending.begun()
  const ahead = sending.child()
  ahead.isAhead = true
  expect(leftAfter(ahead)).toBe(reserve)
  expect(leftAfter(sending)).toBeLessThan(2 * bytes)
  ahead.freeAll()
  ahead.isAhead = false
  expect(leftAfter(ahead)).toBeLessThan(2 * bytes)
  sending.freeAll()
  expect(allocator.used(budgets.queries)).toBe(0)
})
