// Executes CREATE TABLE AS, which creates the table first, and INSERT: VALUES, SELECT, ON CONFLICT DO NOTHING and
// RETURNING. Not here: ON CONFLICT for tables with declared keys (upserts.ts), and INSERTs of literals alone, which
// need no plan (insertLiterals() in plan-helpers.ts).

import type { RowTransaction } from '../api/engine.js'
import type { ExecuteOptions, ResultColumn, RowsResult } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { insertWindowBytes } from '../base/limits.js'
import { ownRows } from '../pg/own-rows.js'
import { rowlessScope } from '../sql/bind/expression.js'
import type { Query } from '../sql/plan/plan.js'
import type { ConflictChanges } from '../sql/statements/conflict-changes.js'
import { bindContext } from '../sql/statements/new-context.js'
import { type PlanOptions, planInsertNew } from '../sql/statements/plan-statement.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { PackedRows, Receipt, RowsInput, SchemaChange, TableReplacement } from '../storage/jobs/messages.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { RunningQuery } from '../threads/query-pool.js'
import type { UpsertTurns } from '../threads/upsert-turns.js'
import type { Value } from '../types/value.js'
import type { PinnedSnapshots } from './catalog-view.js'
import type { InlineExecution } from './inline-execution.js'
import { gathered, type InsertPacked, insertNew, packedValues } from './insert-new.js'
import { type InsertTarget, insertSelect, undoOnFailure } from './insert-select.js'
import { allRows, type Planned, type RunOptions, rowsOf } from './plan-helpers.js'
import type { BeginList } from './rewrite-returning.js'
import type { SeenTables } from './seen-tables.js'

/** What these statements need of the engine. */
export interface InsertOperations extends SeenTables {
  readonly byName: (name: string) => TableVersion | undefined
  readonly planOptions: (options: ExecuteOptions) => PlanOptions
  readonly run: (sql: string, query: Query, options: RunOptions) => RunningQuery
  readonly begin: () => RowTransaction
  readonly store: (rows: RowsInput) => Promise<number>
  readonly change: (change: SchemaChange) => Promise<Receipt>
  readonly lister: BeginList
  /** Plans the statement again. */
  readonly again: () => PlannedStatement | Promise<PlannedStatement>
  readonly hold: (tableIds: readonly number[]) => Pick<PinnedSnapshots, 'snapshots' | 'release'>
  readonly replace: (tables: readonly TableReplacement[]) => Promise<Receipt>
  /** A result whose rows are known. */
  readonly list: (columns: readonly ResultColumn[], rows: readonly (readonly Value[])[]) => RowsResult
  readonly turns: UpsertTurns
  readonly conflicts: ConflictChanges
  /** Finds stored rows without a query. */
  readonly inline: InlineExecution | null
}

type Rows = Planned<'insert' | 'insertSelect' | 'insertNew' | 'createTableAs'>

/** Returns the number of rows. */
export async function insertRows(
  sql: string,
  planned: Rows,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<number> {
  switch (planned.kind) {
    case 'insert':
      return insertValues(planned.rows, options, operations)
    case 'insertSelect':
      return fromQuery(sql, planned, options, operations)
    case 'insertNew':
      return insertNew(planned, {
        version: operations.required(planned.tableId),
        select: (insert, into) =>
          fromQuery(sql, insert, into === undefined ? options : { ...options, into }, operations),
        plan: (version, rows) => planInsertNew(version, rows, operations.planOptions(options)),
        into: options.into,
      })
    case 'createTableAs':
      return createTableAs(sql, planned, options, operations)
  }
}

async function insertValues(rows: RowsInput, { into }: ExecuteOptions, { store }: InsertOperations): Promise<number> {
  if (into === undefined) return store(rows)
  await into(rows.tableId, packedValues(rows))
  return rows.rows
}

async function createTableAs(
  sql: string,
  planned: Planned<'createTableAs'>,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<number> {
  const { change } = planned
  const receipt = await operations.change({ ...change, schema: { ...change.schema, unfinished: true } })
  if (receipt.existed) return 0
  const created = operations.byName(change.schema.name)
  assert(created !== undefined, 'M1: a created table is published before its receipt')
  const tableId = created.schema.id
  const filling = fromQuery(sql, { ...planned, tableId }, options, operations).then(async (rows) => {
    await operations.change({ kind: 'finishTable', tableId })
    return rows
  })
  return undoOnFailure(filling, () => operations.change({ kind: 'dropTable', tableId }))
}

type FromQuery = InsertTarget & Pick<Planned<'insertSelect'>, 'query'>

function fromQuery(
  sql: string,
  planned: FromQuery,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<number> {
  return fillTable(sql, planned, operations.byId(planned.tableId), options, operations)
}

/** Inserts the rows of a query into a table that may not be stored yet. */
export async function fillTable(
  sql: string,
  planned: FromQuery,
  version: TableVersion | undefined,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<number> {
  const quiet = { ...options, ...allRows, windowBytes: insertWindowBytes }
  return insertSelect(planned, {
    ...options,
    scope: () => rowlessScope(bindContext({ sql, ...operations.planOptions(options) })),
    run: (encoding) => operations.run(sql, planned.query, { ...quiet, encoding }),
    version,
    begin: operations.begin,
    insert: operations.store,
  })
}

export function returningRows(
  sql: string,
  returning: Planned<'insertReturning'>,
  options: ExecuteOptions,
  operations: InsertOperations,
): Promise<RowsResult> {
  const { tableId } = returning
  return insertReturning(returning, {
    version: operations.required(tableId),
    select: (insert, into) => insertRows(sql, insert, { ...options, into }, operations),
    begin: operations.lister,
    into: options.into,
    store: (packed) => operations.store(rowsOf(tableId, packed)),
  })
}

// INSERT .. RETURNING. The rows are collected and converted as they will be stored; the query of the RETURNING list
// starts over them; then they are stored. So errors in the list are reported before anything is stored, and sub-queries
// in it do not see the new rows.

type Returning = Planned<'insertReturning'>

interface ReturningOperations {
  readonly version: TableVersion
  /** Runs an INSERT that reads; `into` receives its rows. */
  readonly select: (insert: Planned<'insertSelect' | 'insertNew'>, into: InsertPacked) => Promise<number>
  readonly begin: BeginList
  /** Receives the rows instead of the table. */
  readonly into: InsertPacked | undefined
  readonly store: (packed: readonly PackedRows[]) => Promise<unknown>
}

/** Resolves when the rows are stored. */
async function insertReturning(
  { insert, tableId, returning }: Returning,
  { version, select, begin, into, store }: ReturningOperations,
): Promise<RowsResult> {
  const batches = await gathered(insert, 'RETURNING', select)
  const rows = batches.reduce((sum, { packed }) => sum + packed.rows, 0)
  const packed = batches.map((batch) => batch.packed)
  const result = begin(returning, version, ownRows(version, packed))
  try {
    if (into === undefined && rows > 0) await store(packed)
    else for (const batch of batches) await into?.(tableId, batch)
  } catch (error) {
    await abandon(result)
    throw error
  }
  return Object.assign(result, { inserted: rows })
}

async function abandon({ blocks, summary }: RowsResult): Promise<void> {
  summary.catch(() => {})
  await blocks[Symbol.asyncIterator]().return?.()
}
