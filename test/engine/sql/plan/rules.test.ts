// Goal: planner rules never change the result of a query. Method: an interpreter runs the plans of recorded queries
// without LIMIT before and after the rules; single rules are checked on plans made for them.

import { describe, expect, test } from 'vitest'
import { bindQuery } from '../../../../engine/sql/bind/query.js'
import { nativeDialect } from '../../../../engine/sql/dialect.js'
import { parseStatement } from '../../../../engine/sql/parse/parse.js'
import type { Plan } from '../../../../engine/sql/plan/plan.js'
import { inputsOf } from '../../../../engine/sql/plan/walk-plan.js'
import { bindContext } from '../../../../engine/sql/statements/new-context.js'
import { keyText } from '../../../../engine/types/compare.js'
import { interpretQuery } from '../../../support/interpreter/plan.js'
import { MemoryDatabase } from '../../../support/memory-database.js'
import { readRecorded } from '../../../support/recorded.js'

const fixtures = new URL('../../../../test/engine/sql/fixtures/', import.meta.url)

function database(): MemoryDatabase {
  const result = new MemoryDatabase()
  for (const { sql } of readRecorded(new URL('tables.jsonl', fixtures))) result.run(sql)
  return result
}

const shared = database()

function planned(sql: string): Plan {
  const statement = shared.plan(sql)
  if (statement.kind !== 'query') throw new Error('a query is expected')
  return statement.query.plan
}

function nodes(plan: Plan): Plan[] {
  return [plan, ...inputsOf(plan).flatMap(nodes)]
}

function scanOf(sql: string): Extract<Plan, { kind: 'scan' }> {
  const scan = nodes(planned(sql)).find((node) => node.kind === 'scan')
  if (scan?.kind !== 'scan') throw new Error('a scan is expected')
  return scan
}

describe('the same rows with and without rules', () => {
  const cases = readRecorded(new URL('queries.jsonl', fixtures)).filter(
    ({ sql, error }) =>
      error === undefined &&
      /\bfrom (trades|sensors|nums|dims|quotes|alltypes|\()/.test(sql) &&
      !/limit|show|explain/.test(sql),
  )
  test.each(cases.map(({ sql }) => [sql]))('%s', (sql) => {
    const statement = parseStatement(sql)
    if (statement.kind !== 'query') return
    const context = bindContext({
      sql,
      catalog: shared.catalog(),
      parameters: [],
      dialect: nativeDialect,
      nowMicros: shared.nowMicros,
      user: 'admin',
    })
    const relation = bindQuery(statement, context)
    const bound = {
      plan: relation.plan,
      tables: context.tables.map(({ schema }) => schema.id),
      subqueries: context.subqueries,
      timestampIndex: -1,
    }
    const text = (rows: readonly (readonly Parameters<typeof keyText>[0][])[]): string[] =>
      rows.map((row) => row.map(keyText).join())
    const plain = text(interpretQuery(bound, shared.interpreterOptions(bound)))
    const withRules = text(shared.run(sql).rows)
    expect(withRules.toSorted()).toEqual(plain.toSorted())
  })
})

describe('time ranges', () => {
  const day = 86_400_000_000n
  const start = 1_704_067_200_000_000n

  test('an interval and a comparison meet in one range and leave the filter', () => {
    const scan = scanOf("select price from trades where ts in '2024-01-01' and ts > '2024-01-01T20' and price > 1")
    expect(scan.ranges).toEqual([{ lo: start + (day * 20n) / 24n + 1n, hi: start + day - 1n }])
    expect(scan.filter).toMatchObject({ kind: 'call', name: '>' })
  })

  test('a period gives a range each', () => {
    expect(scanOf("select price from trades where ts in '2024-01-01;1h;1d;3'").ranges).toHaveLength(3)
  })

  test('or with another column stays a filter', () => {
    const scan = scanOf("select price from trades where ts in '2024-01-01' or price > 1")
    expect(scan.ranges).toBeNull()
    expect(scan.filter).not.toBeNull()
  })

  test('not is the complement', () => {
    expect(scanOf("select price from trades where ts not in '2024-01-01'").ranges).toHaveLength(2)
  })
})

describe('columns and order', () => {
  test('a scan reads what is used', () => {
    expect(scanOf('select sum(price) from trades').columns.map(({ name }) => name)).toEqual(['price'])
    expect(scanOf('select count() from trades').columns).toEqual([])
    expect(scanOf("select side from trades where symbol = 'a'").columns.map(({ name }) => name)).toEqual([
      'symbol',
      'side',
    ])
  })

  test('aggregates that do not care let rows come in any order', () => {
    expect(scanOf('select sum(price) from trades').order).toBe('any')
    expect(scanOf('select first(price) from trades').order).toBe('ascending')
    expect(scanOf('select price from trades').order).toBe('ascending')
    expect(scanOf('select id from dims').order).toBe('any')
  })

  test('a sort by the timestamp is the direction of the scan', () => {
    const plan = planned('select * from trades order by ts desc limit 3')
    expect(nodes(plan).map(({ kind }) => kind)).not.toContain('sort')
    expect(scanOf('select * from trades order by ts desc limit 3').order).toBe('descending')
  })

  test('a limit bounds the sort below it', () => {
    const sort = nodes(planned('select * from trades order by price limit 2, 7')).find(({ kind }) => kind === 'sort')
    expect(sort).toMatchObject({ limit: 7 })
  })

  test('conditions move below joins', () => {
    const plan = planned(
      "select t.price, d.name from trades t join dims d on t.symbol = d.symbol where t.side = 'buy' and d.id > 1",
    )
    const filters = nodes(plan).map((node) => (node.kind === 'scan' ? node.filter : null))
    expect(filters.filter((filter) => filter !== null)).toHaveLength(2)
  })
})
