// Goal: the planner rule that removes constant rows (rows of a list of values or of a catalog relation) that cannot
// match a condition changes no result, whatever joins, filters and groups are above them. A catalog query about one
// table keeps only the rows of that table. Method: an interpreter runs random queries over lists of values, and catalog
// queries, before and after the rule.

import { describe, expect, test } from 'vitest'
import { bindQuery } from '../../../../engine/sql/bind/query.js'
import { postgresDialect } from '../../../../engine/sql/dialect.js'
import { parseStatement } from '../../../../engine/sql/parse/parse.js'
import type { Plan, Query } from '../../../../engine/sql/plan/plan.js'
import { plansOf } from '../../../../engine/sql/plan/walk-plan.js'
import { bindContext } from '../../../../engine/sql/statements/new-context.js'
import { keyText } from '../../../../engine/types/compare.js'
import { interpretQuery } from '../../../support/interpreter/plan.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

const database = new MemoryDatabase()
database.dialect = postgresDialect
for (let index = 0; index < 20; index++)
  database.run(`create table t${index} (id bigint primary key, a text, b double precision, c timestamp)`)

function rowsOf(query: Query): string[] {
  return interpretQuery(query, database.interpreterOptions(query))
    .map((row) => row.map(keyText).join())
    .toSorted()
}

/** The results before and after the rules. */
function bothOf(sql: string): readonly [Query, Query] {
  const statement = parseStatement(sql)
  if (statement.kind !== 'query') throw new Error('a query is expected')
  const { nowMicros, dialect } = database
  const context = bindContext({ sql, catalog: database.catalog(), parameters: [], nowMicros, user: 'admin', dialect })
  const { plan } = bindQuery(statement, context)
  const tables = context.tables.map(({ schema }) => schema.id)
  const bound = { plan, tables, subqueries: context.subqueries, timestampIndex: -1 }
  const planned = database.plan(sql)
  if (planned.kind !== 'query') throw new Error('a query is expected')
  return [bound, planned.query]
}

function valuesIn(query: Query): Extract<Plan, { kind: 'values' }>[] {
  return plansOf(query).flatMap((plan) => (plan.kind === 'values' ? [plan] : []))
}

// Random queries -----------------------------------------------------------------------------------------------------

function randomFrom(seed: number): (count: number) => number {
  let state = seed * 2_654_435_761 + 1
  return (count) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % count
  }
}

type Random = ReturnType<typeof randomFrom>

function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[random(items.length)] as Item
}

/** Column a has integers, b strings and c booleans, with NULLs where the type has one. */
function listOf(random: Random, name: string): string {
  const span = pick(random, [3, 8, 30])
  const rows = Array.from({ length: pick(random, [0, 1, 18, 40]) + 1 }, () => {
    const a = random(6) === 0 ? 'null' : String(random(span))
    const b = random(6) === 0 ? 'null' : `'t${random(span)}'`
    return `(${a}::int, ${b}, ${random(2) === 0})`
  })
  return `(select * from (values ${rows.join(', ')}) as v(a, b, c)) as ${name}`
}

const joins = ['join', 'left join', 'right join', 'full join'] as const

function conditionOf(random: Random, names: readonly string[]): string {
  const name = pick(random, names)
  return pick(random, [
    `${name}.a = ${random(8)}`,
    `${name}.a in (1, 2, ${random(8)})`,
    `${name}.a is null`,
    `${name}.b like 't${random(3)}%'`,
    `${name}.b <> 't1'`,
    `not ${name}.c`,
    `(${name}.a > 2 or ${name}.b is null)`,
    `coalesce(${name}.a, 1) = 1`,
  ])
}

function queryOf(random: Random): string {
  const names = ['x', 'y', 'z', 'w'].slice(0, 2 + random(3))
  const sources = names.map((name, index) => {
    if (index === 0) return listOf(random, name)
    const other = pick(random, names.slice(0, index))
    const column = pick(random, ['a', 'b', 'c'])
    const further = random(4) === 0 ? ` and ${conditionOf(random, [name])}` : ''
    return `${pick(random, joins)} ${listOf(random, name)} on ${other}.${column} = ${name}.${column}${further}`
  })
  const conditions = Array.from({ length: random(3) }, () => conditionOf(random, names))
  const where = conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
  const from = `from ${sources.join(' ')}${where}`
  const last = names.at(-1)
  switch (random(4)) {
    case 0:
      return `select x.a, count(*) n, max(${last}.b) m ${from} group by x.a`
    case 1:
      return `select distinct x.b, ${last}.a ${from}`
    case 2:
      return `select * from (select x.a k, ${last}.b v ${from}) q where k = ${random(5)}`
    default:
      return `select x.*, ${last}.* ${from}`
  }
}

describe('random queries over lists of values', () => {
  const seeds = Number(process.env['NARROW_SEEDS'] ?? 150)
  test(`${seeds} queries give the same rows`, () => {
    let narrowed = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const sql = queryOf(randomFrom(seed))
      const [bound, planned] = bothOf(sql)
      const rows = (query: Query): number => valuesIn(query).reduce((sum, plan) => sum + plan.rows.length, 0)
      if (rows(planned) < rows(bound)) narrowed++
      expect(rowsOf(planned), sql).toEqual(rowsOf(bound))
    }
    expect(narrowed).toBeGreaterThan(seeds / 4)
  })
})

// The catalog -------------------------------------------------------------------------------------------------------

const attributes = `from pg_namespace n join pg_class c on c.relnamespace = n.oid join pg_attribute a on a.attrelid = c.oid
  join pg_type t on a.atttypid = t.oid left join pg_attrdef d on a.attrelid = d.adrelid and a.attnum = d.adnum`

describe('relations of the catalog', () => {
  test.each([
    [
      `select c.relname, a.attname, t.typname, d.adbin ${attributes} where n.nspname = 'public' and c.relname = 't7'`,
      40,
    ],
    [
      `select c.relname, a.attname ${attributes} where c.relname like 't1_' and a.attnum > 0 and not a.attisdropped`,
      400,
    ],
    ["select i.indkey from pg_index i join pg_class c on c.oid = i.indrelid where c.relname = 't3'", 4],
    [
      `select x.relname, y.attname from pg_attribute y join pg_class x on x.oid = y.attrelid
        join pg_constraint k on k.conrelid = x.oid where k.contype = 'f'`,
      0,
    ],
    ["select a.attname from pg_attribute a where a.attrelid = 't5'::regclass and a.attnum > 0", 4],
    [
      "select c.relname from pg_class c where c.oid in (select attrelid from pg_attribute where attname = 'relname')",
      8000,
    ],
  ])('%s', (sql, most) => {
    const [bound, planned] = bothOf(sql)
    expect(rowsOf(planned)).toEqual(rowsOf(bound))
    expect(valuesIn(planned).reduce((sum, { rows }) => sum + rows.length, 0)).toBeLessThanOrEqual(most)
  })

  test('what is an error for a row that is left is one when the query runs', () => {
    const sql = "select relname from pg_class where relname like 't%' and 1 / (length(relname) - length(relname)) > 0"
    expect(() => database.plan(sql)).not.toThrow()
  })
})
