// A view where a table is shown: its columns are those of its query, and it has no rows of its own.

import type { TableVersion } from '../../storage/schema.js'
import type { BindContext } from '../bind/bind-context.js'
import type { StoredView } from '../catalog.js'
import { defaultMaxUncommittedRows, defaultO3MaxLagMicros } from './table-options.js'

export function viewAsTable(view: StoredView, { viewColumns }: BindContext): TableVersion {
  const columns = viewColumns(view).map(({ name, type }, id) => ({ id, name, type, dropped: false }))
  return {
    schema: {
      id: view.id,
      name: view.name,
      version: 1,
      columns,
      timestampId: -1,
      partitionBy: 'NONE',
      bypassWal: true,
      dedupKeys: [],
      ttl: null,
      maxUncommittedRows: defaultMaxUncommittedRows,
      o3MaxLagMicros: defaultO3MaxLagMicros,
      createdMicros: view.createdMicros,
      view: view.sql,
    },
    version: 0,
    parts: [],
    generations: [],
    dictionaries: [],
  }
}
