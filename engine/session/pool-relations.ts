// The SQL functions reader_pool(), which lists the tables that statements are reading, and writer_pool(), which lists
// the tables with rows in memory that have not been written to parts yet.

import type { VirtualRelation } from '../api/statements.js'
import { lastWriteMicros } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { threadIds } from '../threads/wake.js'
import type { CatalogView } from './catalog-view.js'
import { policyRelation } from './policy-relation.js'

export function poolRelations(view: CatalogView, memory: SharedMemory): VirtualRelation[] {
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
          .filter(({ generations }) => generations.length > 0)
          .map(({ schema, generations }) => {
            const micros = Math.max(0, ...generations.map(({ address }) => lastWriteMicros(memory, address)))
            return [schema.name, BigInt(threadIds.writer), micros === 0 ? null : BigInt(micros), 'rows in memory']
          }),
    },
  ]
}
