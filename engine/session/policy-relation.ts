// The SQL function storage_policies(): a row for each table with a storage policy (a rule by which old partitions are
// uploaded to object storage), with its stages and how far each has been carried out.

import type { VirtualRelation } from '../api/statements.js'
import { systemClock } from '../base/clock.js'
import type { PartitionAge } from '../storage/schema/schema.js'
import type { CatalogView } from './catalog-view.js'
import { dueParts } from './uploader.js'

export function policyRelation(view: CatalogView): VirtualRelation {
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
    ],
    rows: () =>
      view.tables().flatMap((version) => {
        const { schema, parts } = version
        const { policy } = schema
        if (policy == null) return []
        const remote = parts.filter((part) => part.remote !== undefined).length
        const waiting = dueParts(version, BigInt(Math.floor(systemClock.nowMicros()))).length
        return [
          [
            ...[schema.name, policy.enabled, ageText(policy.toParquet), ageText(policy.toRemote), null, null],
            ...[BigInt(parts.length), BigInt(remote), BigInt(waiting)],
          ],
        ]
      }),
  }
}

function ageText(age: PartitionAge | null): string | null {
  return age === null ? null : `${age.value} ${age.unit}${age.value === 1 ? '' : 'S'}`
}
