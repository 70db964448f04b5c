// Relations that exist for tools: their columns are right, and there is nothing to show in them here. What other layers
// know better they register with the engine under the same name, which wins.

import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'

const lists: Record<string, string> = {
  reader_pool: 'table_name STRING, owner_thread_id LONG, last_access_timestamp TIMESTAMP, current_txn LONG',
  writer_pool: 'table_name STRING, owner_thread_id LONG, last_access_timestamp TIMESTAMP, ownership_reason STRING',
  memory_metrics: 'memory_tag STRING, bytes LONG',
  materialized_views:
    'view_name STRING, refresh_type STRING, base_table_name STRING, last_refresh_start_timestamp TIMESTAMP, last_refresh_finish_timestamp TIMESTAMP, view_sql STRING, view_table_dir_name STRING, invalidation_reason STRING, view_status STRING, refresh_period_hi TIMESTAMP, refresh_base_table_txn LONG, base_table_txn LONG, refresh_limit INT, refresh_limit_unit STRING, timer_time_zone STRING, timer_start TIMESTAMP, timer_interval INT, timer_interval_unit STRING, period_length INT, period_length_unit STRING, period_delay INT, period_delay_unit STRING',
  export_files: 'path VARCHAR, diskSize LONG, diskSizeHuman STRING, modifiedTime DATE',
  import_files: 'path VARCHAR, diskSize LONG, diskSizeHuman STRING, modifiedTime DATE',
}

export function emptyRelations(name: string): SystemRelation | undefined {
  if (name === 'checkpoint_status') {
    return { columns: columnList('in_progress BOOLEAN, started_at TIMESTAMP'), rows: () => [[false, null]] }
  }
  const list = lists[name]
  return list === undefined ? undefined : { columns: columnList(list), rows: () => [] }
}
