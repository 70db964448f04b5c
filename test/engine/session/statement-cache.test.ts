// Goal: the statement cache returns a cached plan until a table or other object changes, and its size is bounded.
// Method: the test itself provides the plans, in the place of the planner. Executions with parameters are in
// prepared-plans.test.ts, descriptions and syntax trees in prepared-strings.test.ts.

import { expect, test } from 'vitest'
import { StatementCache } from '../../../engine/session/statement-cache.js'
import { nativeDialect, postgresDialect } from '../../../engine/sql/dialect.js'
import type { PlannedStatement } from '../../../engine/sql/statements/planned.js'

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

function planOver(rows: number): QueryPlan {
  const values = { kind: 'values', columns: [], rows: new Array(rows).fill([]) }
  return {
    kind: 'query',
    query: { plan: values, tables: [], subqueries: [], timestampIndex: -1 },
    cacheable: true,
  } as unknown as QueryPlan
}

const plan = planOver(1)
const request = (sql: string, epoch = 1, dialect = nativeDialect) =>
  ({ sql, parsed: undefined, parameters: [], dialect, epoch }) as const

/** Plans unless the plan is known, as the planner does; whether it was. */
function run(cache: StatementCache, sql: string, planned = plan): boolean {
  const known = cache.get(request(sql))
  if (known === null) cache.plan(request(sql), () => planned)
  return known !== null
}

test('a plan is good for one epoch and one dialect', () => {
  const cache = new StatementCache()
  expect([run(cache, 'a'), run(cache, 'a')]).toEqual([false, true])
  expect(cache.get(request('a', 1, postgresDialect))).toBe(null)
  expect(cache.get(request('a', 1))).toBe(plan)
  expect(cache.get(request('a', 2))).toBe(null)
  expect(cache.get(request('a', 1))).toBe(null)
  run(cache, 'a')
  cache.clear()
  expect(run(cache, 'a')).toBe(false)
})

test('texts that are used stay, those that were not used for long make room', () => {
  const cache = new StatementCache()
  run(cache, 'used')
  run(cache, 'once')
  for (let n = 0; n < 1000; n++) {
    run(cache, `select ${n}`)
    if (n % 100 === 0) expect(run(cache, 'used')).toBe(true)
  }
  expect([run(cache, 'used'), run(cache, 'once')]).toEqual([true, false])
})

test('secrets, long texts and plans that cannot be used again are not kept', () => {
  const cache = new StatementCache()
  for (const sql of [`select '${'x'.repeat(20_000)}'`, "select 'password'"]) {
    run(cache, sql)
    expect(run(cache, sql)).toBe(false)
  }
  run(cache, 'select now()', { ...plan, cacheable: false })
  expect(run(cache, 'select now()')).toBe(false)
})

test('plans that hold many rows displace each other', () => {
  const cache = new StatementCache()
  const large = planOver(10_000)
  for (let n = 0; n < 20; n++) {
    run(cache, `large ${n}`, large)
    expect(run(cache, `large ${n}`)).toBe(true)
  }
  const known = Array.from({ length: 20 }, (_, n) => cache.get(request(`large ${n}`)) !== null)
  expect(known.filter((isKnown) => isKnown)).toHaveLength(6)
  run(cache, 'too large', planOver(100_000))
  expect(run(cache, 'too large')).toBe(false)
})
