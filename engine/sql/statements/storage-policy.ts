// Plans the clauses that say how long rows are kept and where: TTL, which drops old partitions, and storage policies,
// which at given ages convert partitions to Parquet, upload them, drop the local files and drop the uploaded ones.
// Returns the schema change, or throws SqlError: a table has only one of the two, ages must be multiples of the
// partition unit, and the stages of a policy must be in order. Also plans LAKE ON, with a format version of Iceberg, and
// LAKE OFF.

import { randomUUID } from 'node:crypto'
import { SqlError } from '../../base/errors.js'
import type { SchemaChange } from '../../storage/jobs/messages.js'
import {
  type LakeTable,
  liveColumns,
  type PartitionUnit,
  type StoragePolicy,
  type TableSchema,
} from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'

type Changes = Extract<SchemaChange, { kind: 'alterTable' }>['changes']

const hoursOf: Partial<Record<ast.TimeToLive['unit'], number>> = { hour: 1, day: 24, week: 168 }
const monthsOf: Partial<Record<ast.TimeToLive['unit'], number>> = { month: 1, year: 12 }
/** Of a month, to compare ages of different units. */
const hoursPerMonth = 730.5

const twoLimits = 'a table has a TTL or a storage policy, not both'

/** What the action changes of the schema. Throws SqlError. */
export function retentionChanges(action: ast.RetentionAction, schema: TableSchema): Changes {
  switch (action.kind) {
    case 'set ttl':
      if (schema.partitionBy === 'NONE') {
        throw new SqlError('cannot set TTL on a non-partitioned table', action.ttl.position)
      }
      if (action.ttl.count > 0 && schema.policy != null) throw new SqlError(twoLimits, action.position)
      return { ttl: ttlOf(action.ttl, schema.partitionBy) }
    case 'set policy':
      if (schema.ttl !== null) throw new SqlError(twoLimits, action.policy.position)
      return {
        policy: policyOf(action.policy, schema.partitionBy),
        ...(schema.lake === undefined ? { lake: newLake() } : {}),
      }
    case 'change policy':
      return { policy: changedPolicy(action, schema) }
    case 'set lake':
      return lakeChange(action.lake, schema)
  }
}

function lakeChange({ on, formatVersion }: ast.LakeClause, schema: TableSchema): Changes {
  if (!on) return { lake: null }
  const { lake, name } = schema
  if (lake == null) return { lake: newLake(formatVersion?.number) }
  if (formatVersion === null || formatVersion.number === (lake.formatVersion ?? 2)) return {}
  if (formatVersion.number === 2)
    throw new SqlError(
      `Iceberg permits no lower format version: SET LAKE OFF, then ON makes another Iceberg table [table=${name}]`,
      formatVersion.position,
    )
  // Iceberg permits no change of microseconds to nanoseconds, so such a table becomes another one.
  const hasOtherTypes = liveColumns(schema).some(({ type }) => type.name === 'TIMESTAMP_NS')
  return { lake: hasOtherTypes ? { ...newLake(3), replaces: lake.uuid } : { ...lake, formatVersion: 3 } }
}

/** Another Iceberg table than any before it. */
export function newLake(formatVersion: 2 | 3 = 2): LakeTable {
  return { uuid: randomUUID(), ...(formatVersion === 3 ? { formatVersion } : {}) }
}

/** TTL, policy and lake of CREATE TABLE. Throws SqlError. */
export function newRetention(
  { lake, ...kept }: Pick<ast.CreateTable, 'ttl' | 'policy' | 'lake'>,
  unit: PartitionUnit,
): Pick<TableSchema, 'ttl' | 'policy' | 'lake'> {
  // Tables with a policy are in the lake, if it is not said otherwise.
  if (lake?.on === true || (lake === null && kept.policy !== null))
    return { ...newLimits(kept, unit), lake: newLake(lake?.formatVersion?.number) }
  return { ...newLimits(kept, unit), ...(lake === null ? {} : { lake: null }) }
}

function newLimits(
  { ttl, policy }: Pick<ast.CreateTable, 'ttl' | 'policy'>,
  unit: PartitionUnit,
): Pick<TableSchema, 'ttl' | 'policy'> {
  if (ttl !== null && ttl.count > 0 && unit === 'NONE') {
    throw new SqlError('cannot set TTL on a non-partitioned table', ttl.position)
  }
  if (policy === null) return { ttl: ttlOf(ttl, unit) }
  if (ttl !== null && ttl.count > 0) throw new SqlError(twoLimits, policy.position)
  return { ttl: null, policy: policyOf(policy, unit) }
}

function changedPolicy(
  { change, position }: Extract<ast.RetentionAction, { kind: 'change policy' }>,
  { policy, name }: TableSchema,
): StoragePolicy | null {
  if (change === 'drop') return null
  if (policy == null) throw new SqlError(`table has no storage policy [table=${name}]`, position)
  return { ...policy, enabled: change === 'enable' }
}

function policyOf({ stages, position }: ast.StoragePolicyClause, partitionBy: PartitionUnit): StoragePolicy {
  if (partitionBy === 'NONE') throw new SqlError('storage policies are for partitioned tables', position)
  let previous: ast.PolicyStage | null = null
  const order = ['to parquet', 'to remote', 'drop local', 'drop remote']
  for (const stage of stages) {
    const { kind, age } = stage
    if (age.count === 0) throw new SqlError('the age of a partition must be positive', age.position)
    if (!isMultiple(age, partitionBy)) {
      throw new SqlError('the age must be an integer multiple of partition size', age.position)
    }
    if (previous !== null) {
      const words = `${kind.toUpperCase()} comes before ${previous.kind.toUpperCase()}`
      if (previous.kind === kind) throw new SqlError(`duplicate stage: ${kind.toUpperCase()}`, stage.position)
      if (order.indexOf(kind) < order.indexOf(previous.kind) || hours(age) < hours(previous.age)) {
        throw new SqlError(`wrong order in a storage policy: ${words}`, stage.position)
      }
    }
    previous = stage
  }
  const dropRemote = stages.find(({ kind }) => kind === 'drop remote')
  const dropLocal = stages.find(({ kind }) => kind === 'drop local')
  if (dropRemote !== undefined && dropLocal === undefined) {
    throw new SqlError('DROP REMOTE needs DROP LOCAL before it: it ends the life of the rows', dropRemote.position)
  }
  if (dropLocal !== undefined && !stages.some(({ kind }) => kind === 'to remote')) {
    throw new SqlError('DROP LOCAL needs TO REMOTE before it: rows would be lost', dropLocal.position)
  }
  const ageOf = (wanted: ast.PolicyStage['kind']) => {
    const stage = stages.find(({ kind }) => kind === wanted)
    return stage === undefined ? null : spanOf(stage.age)
  }
  return {
    ...{ toParquet: ageOf('to parquet'), toRemote: ageOf('to remote') },
    ...(dropLocal === undefined ? {} : { dropLocal: ageOf('drop local') }),
    ...(dropRemote === undefined ? {} : { dropRemote: ageOf('drop remote') }),
    enabled: true,
  }
}

/**
 * Whether the age is a multiple of the partition unit, since whole partitions expire. Months count as a multiple of any
 * shorter unit.
 */
function isMultiple({ count, unit }: ast.TimeToLive, partitionBy: PartitionUnit): boolean {
  const partition = partitionBy.toLowerCase() as ast.TimeToLive['unit']
  const partitionHours = hoursOf[partition]
  const ageHours = hoursOf[unit]
  if (partitionHours !== undefined) return ageHours === undefined || (count * ageHours) % partitionHours === 0
  return ageHours === undefined && (count * (monthsOf[unit] ?? 1)) % (monthsOf[partition] ?? 1) === 0
}

function hours({ count, unit }: ast.TimeToLive): number {
  return count * (hoursOf[unit] ?? (monthsOf[unit] ?? 1) * hoursPerMonth)
}

function ttlOf(ttl: ast.TimeToLive | null, partitionBy: PartitionUnit): TableSchema['ttl'] {
  if (ttl === null || ttl.count === 0) return null
  if (!isMultiple(ttl, partitionBy))
    throw new SqlError('TTL value must be an integer multiple of partition size', ttl.position)
  return spanOf(ttl)
}

function spanOf({ count, unit }: ast.TimeToLive): NonNullable<TableSchema['ttl']> {
  return { value: count, unit: unit.toUpperCase() as NonNullable<TableSchema['ttl']>['unit'] }
}
