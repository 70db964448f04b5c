// Executes INSERT .. ON CONFLICT DO NOTHING for a table with DEDUP UPSERT KEYS, in which a row replaces the stored row
// with equal keys. It collects the rows to insert, runs a query that drops those whose keys are in the table, and
// inserts the rest. If two sessions insert the same key concurrently, both may find it missing; the table then contains
// the later row, as after any other INSERT.

import { ResourceError } from '../base/errors.js'
import type { AppenderColumn } from '../pg/column-appender.js'
import { ownRows } from '../pg/own-rows.js'
import { RowCollector } from '../pg/row-collector.js'
import type { PackedBatch, PackedRows, RowsInput } from '../storage/jobs/messages.js'
import { liveColumns, type TableVersion } from '../storage/schema/schema.js'
import type { Value } from '../types/value.js'
import type { Planned } from './plan-helpers.js'

export type InsertPacked = (tableId: number, batch: PackedBatch) => Promise<void>
type Rows = readonly (readonly Value[])[]

export interface InsertNewOperations {
  readonly version: TableVersion
  /** Runs an INSERT .. SELECT; `into` receives its rows instead of the table. */
  readonly select: (insert: Planned<'insertSelect'>, into: InsertPacked | undefined) => Promise<number>
  /** Plans the INSERT of the rows whose keys are new. */
  readonly plan: (version: TableVersion, rows: Rows) => Planned<'insertSelect'>
  readonly into: InsertPacked | undefined
}

/** Limit, since the rows are part of the plan of a query. */
export const gatheredRowsMax = 250_000

/** Returns the number of new rows. */
export async function insertNew({ insert }: Planned<'insertNew'>, operations: InsertNewOperations): Promise<number> {
  const { version, select, plan, into } = operations
  const batches = await gathered(insert, 'ON CONFLICT DO NOTHING', (source, take) => select(source, take))
  const rows = firstOfKeys(
    version,
    ownRows(
      version,
      batches.map(({ packed }) => packed),
    ),
  )
  return rows.length === 0 ? 0 : select(plan(version, rows), into)
}

/** Collects the rows of an INSERT; `select` runs it if they come from a query. */
export async function gathered<Source extends { readonly kind: string }>(
  insert: Source | Planned<'insert'>,
  what: string,
  select: (insert: Source, into: InsertPacked) => Promise<number>,
): Promise<PackedBatch[]> {
  const batches: PackedBatch[] = []
  let rows = 0
  const take = async (_: number, batch: PackedBatch): Promise<void> => {
    rows += batch.packed.rows
    if (rows > gatheredRowsMax) throw new ResourceError(`INSERT has too many rows for ${what} [max=${gatheredRowsMax}]`)
    batches.push(batch)
  }
  if (isOfValues(insert)) await take(insert.rows.tableId, packedValues(insert.rows))
  else await select(insert, take)
  return batches
}

function isOfValues(insert: { readonly kind: string }): insert is Planned<'insert'> {
  return insert.kind === 'insert'
}

/** Keeps the first of several rows with equal keys, as if each row was inserted by itself. */
function firstOfKeys({ schema }: TableVersion, rows: Rows): Rows {
  const keys = liveColumns(schema).flatMap(({ id }, index) => (schema.dedupKeys.includes(id) ? [index] : []))
  const seen = new Set<string>()
  return rows.filter((row) => {
    const key = JSON.stringify(keys.map((index) => (row[index] === null ? null : String(row[index]))))
    if (seen.has(key)) return false
    seen.add(key)
    return true
  })
}

export function packedValues({ tableId, rows, columns }: RowsInput): PackedBatch {
  const collector = new RowCollector()
  const appenders = columns.map(({ columnId, type }): AppenderColumn => ({ columnId, type, name: '', required: false }))
  const batch = collector.batch(tableId, '', appenders)
  for (const [index, { values }] of columns.entries()) {
    for (let row = 0; row < rows; row++) batch.columns[index]?.value(values[row] ?? null)
  }
  batch.rows = rows
  const { bytes } = collector
  const [table] = collector.take()
  const empty: PackedRows = { rows: 0, columns: [] }
  return { packed: table?.packed[0] ?? empty, bytes }
}
