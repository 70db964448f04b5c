// Goal: the reserve of query memory serves only queries that have sent rows and need memory for the next ones; a query
// that has sent nothing gets half of it at most, by small allocations. Work ahead of the next rows gets no memory when
// half of the memory of all queries is used. Method: arenas (memory of one query) that allocate until they are refused.

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

test('work ahead leaves half of the memory to what is sent next', () => {
  const fresh = new QueryArena(memory, allocator)
  const reserve = leftAfter(fresh)
  expect(reserve).toBeGreaterThan(limit / 64)
  fresh.freeAll()
  const sending = new QueryArena(memory, allocator)
  sending.begun()
  const ahead = sending.child()
  ahead.isAhead = true
  expect(ahead.hasRoomAhead).toBe(true)
  expect(Math.abs(leftAfter(ahead) - limit / 2)).toBeLessThan(2 * bytes)
  expect(ahead.hasRoomAhead).toBe(false)
  expect(leftAfter(sending)).toBeLessThan(2 * bytes)
  ahead.freeAll()
  ahead.isAhead = false
  expect(leftAfter(ahead)).toBeLessThan(2 * bytes)
  sending.freeAll()
  expect(allocator.used(budgets.queries)).toBe(0)
})
