// Presents a view as a table without rows that has the result columns of the view's query, so that system relations
// which list tables and views treat both alike. Also makes the schema objects under which the catalog stores views,
// sequences and enumerations, because it stores every object as a table schema.

import type { TableSchema, TableVersion } from '../../storage/schema/schema.js'
import type { StoredView } from '../catalog.js'
import type { BindContext } from '../scope/bind-context.js'
import { defaultMaxUncommittedRows, defaultO3MaxLagMicros } from './table-options.js'

export function viewAsTable(view: StoredView, { viewShape }: BindContext): TableVersion {
  const shape = viewShape(view)
  const columns = shape.columns.map(({ name, type }, id) => {
    const column = { id, name, type, dropped: false }
    return type.name === 'SYMBOL' ? { ...column, symbol: { capacity: 0, cached: false } } : column
  })
  const { id, name, sql, createdMicros } = view
  return {
    schema: { ...viewSchema(name, sql, createdMicros), id, version: 1, columns, timestampId: shape.timestampIndex },
    version: 0,
    parts: [],
    memtables: [],
    dictionaries: [],
  }
}

/** The schema under which a view is stored. */
export function viewSchema(name: string, sql: string, createdMicros: number): Omit<TableSchema, 'id' | 'version'> {
  return { ...entrySchema(name, createdMicros), view: sql }
}

/** The schema of an entry without columns and rows: a view, a sequence or an enumeration. */
export function entrySchema(name: string, createdMicros: number): Omit<TableSchema, 'id' | 'version'> {
  return {
    name,
    columns: [],
    timestampId: -1,
    partitionBy: 'NONE',
    bypassWal: true,
    dedupKeys: [],
    ttl: null,
    maxUncommittedRows: defaultMaxUncommittedRows,
    o3MaxLagMicros: defaultO3MaxLagMicros,
    createdMicros,
  }
}
