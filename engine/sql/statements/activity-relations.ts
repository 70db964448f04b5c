// What runs now, and the views of the catalog.

import type { BindContext } from '../bind/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'

export function activityRelation({ catalog }: BindContext): SystemRelation {
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

/** A view whose query no longer binds (a table of it is gone) is invalid until it does. */
export function viewsRelation({ catalog, viewShape }: BindContext): SystemRelation {
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
