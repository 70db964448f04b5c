// Support of tests that run SQL texts over several tables, by the executor and by the row-at-a-time interpreter.

import { expect } from 'vitest'
import type { Catalog } from '../../../../engine/sql/catalog.js'
import type { Plan, PlanColumn, Query } from '../../../../engine/sql/plan/plan.js'
import { planStatement } from '../../../../engine/sql/statements/plan-statement.js'
import type { Value } from '../../../../engine/types/value.js'
import { interpretQuery } from '../../../support/plan-interpreter.js'
import { type Bench, makeTable, runQuery, type TestTable } from './exec-support.js'

/** Tables by name; ids are their places + 1. */
export interface Database {
  readonly bench: Bench
  readonly tables: readonly TestTable[]
}

export interface TableSpec {
  readonly name: string
  readonly columns: readonly PlanColumn[]
  readonly generations: readonly (readonly (readonly Value[])[])[]
  readonly timestampId: number
}

export function makeDatabase(bench: Bench, specs: readonly TableSpec[]): Database {
  const tables = specs.map(({ name, columns, generations, timestampId }, index) => {
    const table = makeTable(bench, columns, generations, timestampId)
    const { version } = table.snapshot
    const schema = { ...version.schema, id: index + 1, name }
    return { ...table, snapshot: { ...table.snapshot, version: { ...version, schema } } }
  })
  return { bench, tables }
}

function catalogOf(tables: readonly TestTable[]): Catalog {
  const versions = tables.map(({ snapshot }) => snapshot.version)
  return {
    table: (name) => versions.find(({ schema }) => schema.name === name),
    tables: () => versions,
    figures: () => {
      throw new Error('no figures here')
    },
    relation: () => undefined,
    view: () => undefined,
    views: () => [],
    activity: () => [],
    parameters: () => [],
  }
}

export function queryOfText(sql: string, { tables }: Database): Query {
  const planned = planStatement(sql, { catalog: catalogOf(tables), parameters: [], nowMicros: 1e15, user: 'admin' })
  if (planned.kind !== 'query') throw new Error('not a query')
  return planned.query
}

export function tablesOf(query: Query, { tables }: Database): TestTable[] {
  return query.tables.map((id) => tables[id - 1] as TestTable)
}

/** Rows as texts, doubles by 12 digits. */
export function shownRows(rows: readonly (readonly Value[])[]): string[] {
  return rows.map((row) =>
    row.map((value) => String(typeof value === 'number' ? Number(value.toPrecision(12)) + 0 : value)).join(' | '),
  )
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
  expect(shownRows(rows)).toEqual(shownRows(expected))
  return rows.length
}
