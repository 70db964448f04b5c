// Support for tests that run SQL statements over several tables and compare two implementations: the executor, and a
// simple interpreter that evaluates plans row by row (test/support/interpreter/plan.ts).

import { expect } from 'vitest'
import type { Catalog } from '../../../engine/sql/catalog.js'
import { nativeDialect } from '../../../engine/sql/dialect.js'
import type { Plan, PlanColumn, Query } from '../../../engine/sql/plan/plan.js'
import { planStatement } from '../../../engine/sql/statements/plan-statement.js'
import type { Value } from '../../../engine/types/value.js'
import { interpretQuery } from '../../support/interpreter/plan.js'
import { type Bench, makeTable, runQuery, type TestTable } from './exec-support.js'

/** Tables by name; ids are their places + 1. */
export interface Database {
  readonly bench: Bench
  readonly tables: readonly TestTable[]
}

export interface TableSpec {
  readonly name: string
  readonly columns: readonly PlanColumn[]
  readonly memtables: readonly (readonly (readonly Value[])[])[]
  readonly timestampId: number
  /** Ids of the columns of its PRIMARY KEY. */
  readonly key?: readonly number[]
}

export function makeDatabase(bench: Bench, specs: readonly TableSpec[]): Database {
  const tables = specs.map(({ name, columns, memtables, timestampId, key }, index) => {
    const table = makeTable(bench, columns, memtables, timestampId)
    const { version } = table.snapshot
    const keys = key === undefined ? [] : [{ id: 1, name: `${name}_key`, columnIds: key, primary: true }]
    const schema = { ...version.schema, id: index + 1, name, keys }
    return { ...table, snapshot: { ...table.snapshot, version: { ...version, schema } } }
  })
  return { bench, tables }
}

function catalogOf(tables: readonly TestTable[]): Catalog {
  const versions = tables.map(({ snapshot }) => snapshot.version)
  return {
    table: (name) => versions.find(({ schema }) => schema.name === name),
    tables: () => versions,
    statistics: () => {
      throw new Error('no figures here')
    },
    relation: () => undefined,
    view: () => undefined,
    views: () => [],
    activity: () => [],
    parameters: () => [],
    users: () => [],
  }
}

/** The query of a SELECT, or the one that finds the rows of a MERGE. */
export function queryOfText(sql: string, { tables }: Database): Query {
  const planned = planStatement(sql, {
    catalog: catalogOf(tables),
    parameters: [],
    dialect: nativeDialect,
    nowMicros: 1e15,
    user: 'admin',
  })
  if (planned.kind === 'upsert' && planned.source.kind === 'query') return planned.source.found.query
  if (planned.kind !== 'query') throw new Error('not a query')
  return planned.query
}

export function tablesOf(query: Query, { tables }: Database): TestTable[] {
  return query.tables.map((id) => tables[id - 1] as TestTable)
}

/** Doubles agree to 9 digits: sums of another order of additions differ in the last ones. */
function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  if (typeof a !== 'number' || typeof b !== 'number') return String(a) === String(b)
  return Object.is(a, b) || Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b))
}

/** The first differences, each as row, column, what came and what was expected. */
function differences(rows: readonly (readonly Value[])[], expected: readonly (readonly Value[])[]): string[] {
  const found: string[] = []
  if (rows.length !== expected.length) found.push(`${rows.length} rows instead of ${expected.length}`)
  for (const [index, row] of expected.entries()) {
    for (const [column, value] of row.entries()) {
      const came = rows[index]?.[column]
      if (!sameValue(came, value)) found.push(`row ${index} column ${column}: ${String(came)}, not ${String(value)}`)
      if (found.length >= 10) return found
    }
  }
  return found
}

/** Expects the same rows in the same order. */
export function expectSameRows(rows: readonly (readonly Value[])[], expected: readonly (readonly Value[])[]): void {
  expect(differences(rows, expected)).toEqual([])
}

/** Expects the same rows in the same order of both; `rewrite` changes the plan that both run. */
export function compareWithInterpreter(
  sql: string,
  database: Database,
  rewrite: (plan: Plan) => Plan = (plan) => plan,
): number {
  const planned = queryOfText(sql, database)
  const query = { ...planned, plan: rewrite(planned.plan) }
  const used = tablesOf(query, database)
  const expected = interpretQuery(query, {
    tables: used.map(({ columns, timestampId, rows }) => ({
      columnIds: columns.map((_, id) => id),
      timestampId,
      rows,
    })),
  })
  const { rows } = runQuery(database.bench, query, used)
  expect(differences(rows, expected)).toEqual([])
  return rows.length
}
