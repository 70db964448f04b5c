// Looks up system relations named in FROM, such as tables(), table_columns('t') and wal_transactions('t'), and computes
// their rows. This happens while planning, because query threads have no catalog. Names and order of the columns are
// part of the interface for existing clients and must not change.

import { SqlError } from '../../base/errors.js'
import type { RowTransaction } from '../../memory/transactions.js'
import { schemaStatements, type TableVersion } from '../../storage/schema/schema.js'
import type { Value } from '../../types/value.js'
import { relationNames, type SchemaChange, type TableStatistics } from '../catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import { columnList, type SystemRelation } from './relation-columns.js'
import { catalogRelation } from './relations.js'
import { columnsRelation, partitionsRelation, partsRelation } from './table-relations.js'
import {
  isWalTable,
  microsOf,
  tableNamesRelation,
  tableStorageRelation,
  tablesRelation,
  walTablesRelation,
} from './tables-relations.js'
import { viewAsTable } from './view-table.js'
import { functionsRelation, keywordsRelation, pgKeywordsRelation } from './word-relations.js'

export interface RelationRequest {
  readonly schema: string | null
  readonly name: string
  /** Constant arguments as strings. */
  readonly args: readonly string[]
  /** Written as a function: `name()`. */
  readonly called: boolean
  /** Position of the first argument, or of the name. */
  readonly position: number
  readonly context: BindContext
}

/** The relation of that name; undefined if there is none. */
export function systemRelation(request: RelationRequest): SystemRelation | undefined {
  const { schema, args, context } = request
  const name = request.name.toLowerCase()
  if (args.length === 1 && schema === null) return tableRelations(name, request)
  if (args.length > 0) return undefined
  if (schema !== null) {
    const lower = schema.toLowerCase()
    if (lower === 'pg_catalog' && name === 'pg_get_keywords') return pgKeywordsRelation()
    return catalogRelation({ schema: lower, name, called: request.called, context })
  }
  switch (name) {
    case 'tables':
      return tablesRelation(context)
    case 'all_tables':
      return tableNamesRelation(context)
    case 'wal_tables':
      return walTablesRelation(context)
    case 'table_storage':
      return tableStorageRelation(context)
    case 'functions':
      return functionsRelation()
    case 'keywords':
      return keywordsRelation()
    case 'wal_transactions':
      return allWalTransactions(context)
    case 'query_activity':
      return activityRelation(context)
    case 'query_progress':
      return progressRelation(context)
    case 'views':
      return viewsRelation(context)
    case 'pg_get_keywords':
      return pgKeywordsRelation()
    default:
      return emptyRelations(name) ?? catalogRelation({ schema: null, name, called: request.called, context })
  }
}

function tableRelations(name: string, { args, position, context }: RelationRequest): SystemRelation | undefined {
  const make = byTable[name]
  if (make === undefined) return undefined
  const table = args[0] ?? ''
  const view = make === columnsRelation ? context.catalog.view(table) : undefined
  const version = view === undefined ? context.catalog.table(table) : viewAsTable(view, context)
  if (version === undefined) throw SqlError.tableMissing(table, position, relationNames(context.catalog))
  if (make === walTransactionsRelation && !isWalTable(version))
    throw new SqlError(`table is not a WAL table: ${version.schema.name}`, position)
  return make(version, context)
}

const byTable: Record<string, typeof columnsRelation> = {
  table_columns: columnsRelation,
  table_partitions: partitionsRelation,
  table_parts: partsRelation,
  wal_transactions: walTransactionsRelation,
}

// Running queries, and the stored views.

function activityRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'query_id LONG, worker_id LONG, worker_pool STRING, username STRING, query_start TIMESTAMP, state_change TIMESTAMP, state STRING, is_wal BOOLEAN, query STRING',
    ),
    rows: () =>
      catalog.activity().map(({ queryId, user, startMicros, sql }) => {
        const start = BigInt(startMicros)
        return [BigInt(queryId), 0n, 'query', user, start, start, 'active', false, sql]
      }),
  }
}

/** Columns of their own, because those of query_activity() are part of the interface for existing clients. */
function progressRelation({ catalog }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'query_id LONG, username STRING, query_start TIMESTAMP, rows_read LONG, rows_total LONG, query STRING',
    ),
    rows: () =>
      catalog.activity().map(({ queryId, user, startMicros, rowsRead, sql }) => {
        const [read, total] = rowsRead ? [BigInt(rowsRead.read), BigInt(rowsRead.total)] : [null, null]
        return [BigInt(queryId), user, BigInt(startMicros), read, total, sql]
      }),
  }
}

/** The status of a view is invalid while its query does not bind, for example because a table was dropped. */
function viewsRelation({ catalog, viewShape }: BindContext): SystemRelation {
  return {
    columns: columnList(
      'view_name STRING, view_sql STRING, view_table_dir_name STRING, invalidation_reason STRING, view_status STRING, view_status_update_time TIMESTAMP',
    ),
    rows: () =>
      catalog.views().map((view) => {
        const valid = viewShape(view).columns.length > 0
        const reason = valid ? null : 'the query of the view does not compile'
        const made = BigInt(view.createdMicros)
        return [view.name, view.sql, `${view.name}~${view.id}`, reason, valid ? 'valid' : 'invalid', made]
      }),
  }
}

// Relations that exist for tools: they have the expected columns and no rows. Other layers may register a relation of
// the same name, which takes precedence.

const emptyRelationColumns: Record<string, string> = {
  reader_pool: 'table_name STRING, owner_thread_id LONG, last_access_timestamp TIMESTAMP, current_txn LONG',
  writer_pool: 'table_name STRING, owner_thread_id LONG, last_access_timestamp TIMESTAMP, ownership_reason STRING',
  backups:
    'status VARCHAR, progress_percent INT, start_ts TIMESTAMP, end_ts TIMESTAMP, backup_error VARCHAR, cleanup_error VARCHAR',
  memory_metrics: 'memory_tag STRING, bytes LONG',
  export_files: 'path VARCHAR, diskSize LONG, diskSizeHuman STRING, modifiedTime DATE',
  import_files: 'path VARCHAR, diskSize LONG, diskSizeHuman STRING, modifiedTime DATE',
}

function emptyRelations(name: string): SystemRelation | undefined {
  if (name === 'checkpoint_status') {
    return { columns: columnList('in_progress BOOLEAN, started_at TIMESTAMP'), rows: () => [[false, null]] }
  }
  const list = emptyRelationColumns[name]
  return list === undefined ? undefined : { columns: columnList(list), rows: () => [] }
}

// wal_transactions('t'): the transactions of a table. Storage counts row transactions. The catalog remembers after
// which row transaction each schema change since the start came; older schema changes are shown first. Bounds and row
// counts are known for the last transactions (memory/transactions.ts), timestamps only for those since the start.

const transactionColumns = columnList(
  'sequencerTxn LONG, timestamp TIMESTAMP, walId INT, segmentId INT, segmentTxn INT, structureVersion LONG, minTimestamp TIMESTAMP, maxTimestamp TIMESTAMP, rowCount LONG, alterCommandType SHORT',
)

/** Only the last transactions are shown, because a table may have millions. */
const transactionsShownMax = 10_000

function walTransactionsRelation(version: TableVersion, { catalog }: BindContext): SystemRelation {
  return { columns: transactionColumns, rows: () => transactionRows(version, catalog.statistics(version.schema.id)) }
}

/** Without an argument: the transactions of all tables, with a table_name column in front. */
function allWalTransactions({ catalog }: BindContext): SystemRelation {
  return {
    columns: [...columnList('table_name STRING'), ...transactionColumns],
    rows: () =>
      catalog
        .tables()
        .filter(isWalTable)
        .flatMap((version) =>
          transactionRows(version, catalog.statistics(version.schema.id)).map((row) => [version.schema.name, ...row]),
        ),
  }
}

function transactionRows(version: TableVersion, statistics: TableStatistics): Value[][] {
  const { schema } = version
  const { schemaChanges, transactions } = statistics
  // The positions of rewriting statements are not recorded, so these come last.
  const visibleTxn = statistics.visibleTxn + statistics.rewrites
  const forgotten = Math.max(0, schemaStatements(schema) - schemaChanges.length)
  const changes = [...new Array<SchemaChange>(forgotten).fill({ afterTxn: 0, micros: 0 }), ...schemaChanges]
  const rows: Value[][] = []
  const total = visibleTxn + changes.length
  let structure = 0
  let txn = 0
  for (let sequence = 1; sequence <= total; sequence++) {
    const next = changes[structure]
    const change = next !== undefined && next.afterTxn <= txn ? next : undefined
    if (change !== undefined) structure++
    else txn++
    if (total - sequence >= transactionsShownMax) continue
    const noted = change === undefined ? transactions.get(txn) : undefined
    const place = change === undefined ? [1, 0, txn - 1] : [-1, -1, -1]
    const micros = (change ?? noted)?.micros ?? 0
    const when = micros === 0 ? null : BigInt(micros)
    rows.push([BigInt(sequence), when, ...place, BigInt(structure), ...extentOf(version, noted), 0])
  }
  return rows
}

/** Values of minTimestamp, maxTimestamp and rowCount. */
function extentOf(version: TableVersion, noted: RowTransaction | undefined): Value[] {
  if (noted === undefined) return [null, null, null]
  return [microsOf(version, noted.minTs), microsOf(version, noted.maxTs), BigInt(noted.rows)]
}
