// The function lake_tables(): lists the tables with LAKE ON, which are also Iceberg tables in object storage: their
// files and rows there, and whether the newest changes are committed.

import type { VirtualRelation } from '../api/statements.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { CommittedTable } from './committed-table.js'
import { formatVersionOf } from './lake-columns.js'

interface LakeRow {
  readonly version: TableVersion
  readonly table: CommittedTable | null
  /** While the table is not open. */
  readonly location: string | null
  readonly isRunning: boolean
  /** The lake lacks no change. */
  readonly isCommitted: boolean
  readonly progress: readonly [done: number, all: number]
  readonly failure: string | null
}

export function lakeRelation(tables: () => readonly LakeRow[]): VirtualRelation {
  return {
    name: 'lake_tables',
    columns: [
      { name: 'table_name', type: 'VARCHAR' },
      { name: 'location', type: 'VARCHAR' },
      { name: 'metadata_version', type: 'LONG' },
      { name: 'snapshot_id', type: 'LONG' },
      { name: 'files', type: 'LONG' },
      { name: 'rows', type: 'LONG' },
      { name: 'state', type: 'VARCHAR' },
      { name: 'files_written', type: 'LONG' },
      { name: 'files_to_write', type: 'LONG' },
      { name: 'failure', type: 'VARCHAR' },
      { name: 'format_version', type: 'INT' },
    ],
    rows: () =>
      tables().map(({ version, table, location, isRunning, isCommitted, progress, failure }) => {
        const files = [...(table?.files.values() ?? [])]
        const state = isRunning ? 'committing' : isCommitted ? 'committed' : 'waiting'
        return [
          ...[version.schema.name, table?.location ?? location, BigInt(table?.version ?? 0)],
          ...[table?.snapshotId ?? null, BigInt(files.length)],
          ...[BigInt(files.reduce((sum, { rows }) => sum + rows, 0)), state],
          ...[BigInt(progress[0]), BigInt(progress[1]), failure, formatVersionOf(version.schema)],
        ]
      }),
  }
}
