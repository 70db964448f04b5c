// Decides which partitions are older than a given age, for TTL and storage policies. The age counts from the newest
// row, but at most from the present time: otherwise a single row dated in the future would expire all data.

import { partitionFinder, timestampsPerSecond } from './partition.js'
import type { PartitionAge, TableSchema } from './schema.js'

const microsPerHour = 3_600_000_000n

/** Whether the partition of a time has ended more than the age before the newest row. */
export function isOlder(
  schema: TableSchema,
  newest: bigint,
  nowMicros: bigint,
  age: PartitionAge,
): (ts: bigint) => boolean {
  const perMicro = timestampsPerSecond(schema) / 1_000_000n
  const now = nowMicros * perMicro
  const limit = before(newest < now ? newest : now, age, perMicro)
  const partitionOf = partitionFinder(schema)
  return (ts) => partitionOf(ts).to <= limit
}

/** How long rows are kept: the TTL, or DROP REMOTE of a storage policy that is enabled; null: for ever. */
export function lifeOf({ ttl, policy }: Pick<TableSchema, 'ttl' | 'policy'>): PartitionAge | null {
  return ttl ?? (policy?.enabled === true ? (policy.dropRemote ?? null) : null)
}

/** The start of the oldest partition that is not older. */
export function oldestKept(schema: TableSchema, newest: bigint, nowMicros: bigint, age: PartitionAge): bigint {
  const perMicro = timestampsPerSecond(schema) / 1_000_000n
  const now = nowMicros * perMicro
  return partitionFinder(schema)(before(newest < now ? newest : now, age, perMicro)).from
}

/** The moment that lies the age before. */
function before(ts: bigint, { value, unit }: PartitionAge, perMicro: bigint): bigint {
  if (unit === 'HOUR' || unit === 'DAY' || unit === 'WEEK') {
    const hours = { HOUR: 1, DAY: 24, WEEK: 168 }[unit]
    return ts - BigInt(value * hours) * microsPerHour * perMicro
  }
  const micros = ts / perMicro
  const date = new Date(Number(micros / 1000n))
  const months = unit === 'MONTH' ? value : value * 12
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() - months)
  const days = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, days))
  return (BigInt(date.getTime()) * 1000n + (micros % 1000n)) * perMicro
}
