// Goal: a plan is cached when its text is used for the second time, until the catalog changes.

import { expect, test } from 'vitest'
import { PlanCache } from '../../../engine/session/plan-cache.js'
import type { PlannedStatement } from '../../../engine/sql/statements/planned.js'

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

function planOver(rows: number): QueryPlan {
  const values = { kind: 'values', columns: [], rows: new Array(rows).fill([]) }
  return {
    kind: 'query',
    query: { plan: values, tables: [], subqueries: [], timestampIndex: -1 },
  } as unknown as QueryPlan
}

const plan = planOver(1)

test('a text that comes again soon has its plan, and one that comes again late has it the third time', () => {
  const cache = new PlanCache()
  cache.set('soon', 1, plan)
  cache.set('late', 1, plan)
  expect(cache.get('soon', 1)).toBe(plan)
  for (let n = 0; n < 100; n++) cache.set(`select ${n}`, 1, plan)
  expect([cache.get('soon', 1), cache.get('late', 1), cache.get('select 0', 1)]).toEqual([plan, undefined, undefined])
  cache.set('late', 1, plan)
  for (let n = 0; n < 100; n++) cache.set(`select 1 + ${n}`, 1, plan)
  expect([cache.get('late', 1), cache.get('late', 2), cache.get('late', 1)]).toEqual([plan, undefined, undefined])
})

test('many texts that come once do not displace those that are used, those that come again do', () => {
  const cache = new PlanCache()
  cache.set('used', 1, plan)
  cache.get('used', 1)
  for (let n = 0; n < 5000; n++) cache.set(`select ${n}`, 1, plan)
  expect(cache.get('used', 1)).toBe(plan)
  for (let n = 0; n < 5000; n++) {
    cache.set(`again ${n}`, 1, plan)
    cache.get(`again ${n}`, 1)
  }
  expect([cache.get('used', 1), cache.get('again 4999', 1)]).toEqual([undefined, plan])
  cache.clear()
  expect(cache.get('again 4999', 1)).toBe(undefined)
})

test('neither secrets nor long texts are kept', () => {
  const cache = new PlanCache()
  for (const sql of [`select '${'x'.repeat(20_000)}'`, "create user u with password 'abc'"]) {
    for (let time = 0; time < 3; time++) cache.set(sql, 1, plan)
    expect(cache.get(sql, 1)).toBe(undefined)
  }
})

test('plans that hold many rows are kept for the last few texts alone', () => {
  const cache = new PlanCache()
  const large = planOver(5000)
  for (let time = 0; time < 3; time++) {
    for (let n = 0; n < 10; n++) {
      cache.set(`large ${n}`, 1, large)
      expect(cache.get(`large ${n}`, 1)).toBe(large)
    }
  }
  const retained = Array.from({ length: 10 }, (_, n) => cache.get(`large ${n}`, 1)).filter(
    (found) => found !== undefined,
  )
  expect(retained.length).toBeGreaterThan(0)
  expect(retained.length).toBeLessThanOrEqual(4)
})
