// Writes one data file of an Iceberg table: runs a query for the rows of the parts (Parquet files of the table) that
// the data file represents. A query thread encodes the rows as a Parquet file with Iceberg's types, which is then
// uploaded to the object store.

import { randomUUID } from 'node:crypto'
import type { ReadSnapshot } from '../api/session.js'
import { internalSession } from '../api/session.js'
import type { ExecuteOptions, StatementResult } from '../api/statements.js'
import { parquetDefaults } from '../exec/encode/parquet-encoding.js'
import type { CommittedTable } from '../lake/committed-table.js'
import { metricsOf } from '../lake/file-metrics.js'
import { lakeQuery } from '../lake/lake-columns.js'
import { type LakeUnit, unitSnapshot } from '../lake/lake-units.js'
import type { DataFile } from '../lake/manifest-files.js'
import { hidesRows } from '../storage/memtable/removed-rows.js'
import type { TableSnapshot } from '../storage/schema/schema.js'
import type { StoreClient } from '../threads/store-client.js'
import { internalStatement } from './open-refresher.js'

export interface LakeFileOptions {
  readonly store: Pick<StoreClient, 'append' | 'parquetFooter' | 'uploadSpooled' | 'discard'>
  readonly execute: (sql: string, options: ExecuteOptions) => Promise<StatementResult>
  /** Of files that are being written. */
  readonly directory: string
}

/** Null: the unit has no rows. Rejects with StoreError, or with the error of the query. */
export async function writeLakeFile(
  { store, execute, directory }: LakeFileOptions,
  table: Pick<CommittedTable, 'key' | 'uri' | 'columns' | 'placeOf'>,
  snapshot: TableSnapshot,
  unit: LakeUnit,
): Promise<DataFile | null> {
  const { schema } = snapshot.version
  const columns = table.columns(schema)
  const path = `${directory}/${randomUUID()}.parquet`
  try {
    const session = { ...internalSession('system'), snapshot: oneTable(schema.id, unitSnapshot(snapshot, unit.parts)) }
    const encoding = { ...parquetDefaults, fieldIds: columns.map(({ fieldIds }) => fieldIds) }
    const sql = lakeQuery(schema, columns)
    const result = await execute(sql, { ...internalStatement, session, encoding, signal: null })
    if (result.kind !== 'rows') throw new Error('the query of a data file returns no rows')
    await spool(store, path, result.blocks)
    const metrics = metricsOf(columns, await store.parquetFooter(path))
    requireRows(snapshot, unit, metrics.rows)
    if (metrics.rows === 0) return null
    const [first] = unit.parts
    const name = `data/${first?.partition ?? 'default'}/${unit.name}-${randomUUID()}.parquet`
    const { bytes } = await store.uploadSpooled(path, table.key(name))
    return { path: table.uri(name), bytes, ...metrics, ...table.placeOf(schema, unit.parts) }
  } finally {
    await store.discard(path)
  }
}

/** A snapshot in which the session sees this table alone. */
export function oneTable(tableId: number, snapshot: TableSnapshot): ReadSnapshot {
  return { snapshotOf: (id) => (id === tableId ? snapshot : undefined), release: () => {} }
}

/**
 * Passes the blocks to the object store's thread. Blocks in shared memory are not copied on the way: each one stays
 * until the next one is requested.
 */
async function spool(
  store: Pick<StoreClient, 'append'>,
  path: string,
  blocks: AsyncIterable<Uint8Array>,
): Promise<void> {
  for await (const block of blocks) await store.append(path, block)
}

/** Every row of the parts is in the file, unless some are superseded. */
function requireRows({ version }: TableSnapshot, { parts, name }: LakeUnit, rows: number): void {
  const all = parts.reduce((sum, part) => sum + part.rows, 0)
  if (hidesRows(version) ? rows <= all : rows === all) return
  throw new Error(
    `a data file has other rows than its parts [table=${version.schema.name}, unit=${name}, rows=${rows}]`,
  )
}
