// SQL functions that list the state of tables: reader_pool(), the tables that statements are reading; writer_pool(),
// the tables with rows in memory that have not been written to Parquet files yet; storage_policies(), the tables with a
// policy for moving old partitions to object storage: its settings, and how many Parquet files are where.

import type { VirtualRelation } from '../api/statements.js'
import { systemClock } from '../base/clock.js'
import { lastWriteMicros } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { isRemoteOnly, type PartitionAge } from '../storage/schema/schema.js'
import { threadIds } from '../threads/wake.js'
import type { CatalogView } from './catalog-view.js'
import { dueParts } from './uploader.js'

export function tableRelations(view: CatalogView, memory: SharedMemory): VirtualRelation[] {
  return [
    policyRelation(view),
    {
      name: 'reader_pool',
      columns: [
        { name: 'table_name', type: 'STRING' },
        { name: 'owner_thread_id', type: 'LONG' },
        { name: 'last_access_timestamp', type: 'TIMESTAMP' },
        { name: 'current_txn', type: 'LONG' },
      ],
      rows: () =>
        view.read().map((version) => [version.schema.name, null, null, BigInt(view.visibleTransaction(version))]),
    },
    {
      name: 'writer_pool',
      columns: [
        { name: 'table_name', type: 'STRING' },
        { name: 'owner_thread_id', type: 'LONG' },
        { name: 'last_access_timestamp', type: 'TIMESTAMP' },
        { name: 'ownership_reason', type: 'STRING' },
      ],
      rows: () =>
        view
          .tables()
          .filter(({ memtables }) => memtables.length > 0)
          .map(({ schema, memtables }) => {
            const micros = Math.max(0, ...memtables.map(({ address }) => lastWriteMicros(memory, address)))
            return [schema.name, BigInt(threadIds.writer), micros === 0 ? null : BigInt(micros), 'rows in memory']
          }),
    },
  ]
}

/** A storage policy is a rule by which old partitions are uploaded to object storage. */
function policyRelation(view: CatalogView): VirtualRelation {
  return {
    name: 'storage_policies',
    columns: [
      { name: 'table_name', type: 'VARCHAR' },
      { name: 'enabled', type: 'BOOLEAN' },
      { name: 'to_parquet', type: 'VARCHAR' },
      { name: 'to_remote', type: 'VARCHAR' },
      { name: 'drop_local', type: 'VARCHAR' },
      { name: 'drop_remote', type: 'VARCHAR' },
      { name: 'parts', type: 'LONG' },
      { name: 'remote_parts', type: 'LONG' },
      { name: 'waiting_parts', type: 'LONG' },
      { name: 'local_parts', type: 'LONG' },
    ],
    rows: () =>
      view.tables().flatMap((version) => {
        const { schema, parts } = version
        const { policy } = schema
        if (policy == null) return []
        const remote = parts.filter((part) => part.remote !== undefined).length
        const local = parts.filter((part) => !isRemoteOnly(part)).length
        const waiting = dueParts(version, BigInt(Math.floor(systemClock.nowMicros()))).length
        return [
          [
            ...[schema.name, policy.enabled, ageText(policy.toParquet), ageText(policy.toRemote)],
            ...[ageText(policy.dropLocal ?? null), ageText(policy.dropRemote ?? null)],
            ...[BigInt(parts.length), BigInt(remote), BigInt(waiting), BigInt(local)],
          ],
        ]
      }),
  }
}

function ageText(age: PartitionAge | null): string | null {
  return age === null ? null : `${age.value} ${age.unit}${age.value === 1 ? '' : 'S'}`
}
