// Relations of the system whose rows are made of catalog data at planning: tables(), table_columns('t'), ... Columns
// and their order are what clients of this dialect know.

import { SqlError } from '../../base/errors.js'
import type { BindContext } from '../bind/bind-context.js'
import { catalogRelation } from '../pg-catalog/relations.js'
import { activityRelation, viewsRelation } from './activity-relations.js'
import { emptyRelations } from './empty-relations.js'
import type { SystemRelation } from './relation-columns.js'
import { columnsRelation, partitionsRelation, partsRelation } from './table-relations.js'
import {
  isWalTable,
  tableNamesRelation,
  tableStorageRelation,
  tablesRelation,
  walTablesRelation,
} from './tables-relations.js'
import { viewAsTable } from './view-table.js'
import { allWalTransactions, walTransactionsRelation } from './wal-transactions.js'
import { functionsRelation, keywordsRelation, pgKeywordsRelation } from './word-relations.js'

export interface RelationRequest {
  readonly schema: string | null
  readonly name: string
  /** Constant arguments as text. */
  readonly args: readonly string[]
  /** Written as a function: `name()`. */
  readonly called: boolean
  /** Of the first argument, or of the name. */
  readonly position: number
  readonly context: BindContext
}

/** undefined when there is no relation of that name. */
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
  if (version === undefined) throw SqlError.tableMissing(table, position)
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
