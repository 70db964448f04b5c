// Rows of the system relations materialized_views() and live_views(): one for each view, with its refresh strategy and
// the state of its refreshes.

import type { VirtualRelation } from '../api/statements.js'
import { columnList, rowOf } from '../sql/relations/relation-columns.js'
import {
  type BucketRange,
  type LiveSchema,
  type MaterializedSchema,
  overlaps,
  type RefreshStrategy,
  sealedRanges,
  unkeptRanges,
} from '../storage/schema/materialized.js'
import type { TableSchema, TableVersion } from '../storage/schema/schema.js'
import { allOfTime, intersect } from '../types/interval.js'
import { formatTimestamp } from '../types/timestamp.js'
import type { Value } from '../types/value.js'
import { lateParts } from './view-ranges.js'

const columns = columnList(
  `view_name STRING, refresh_type STRING, base_table_name STRING, last_refresh_start_timestamp TIMESTAMP,
  last_refresh_finish_timestamp TIMESTAMP, view_sql STRING, view_table_dir_name STRING, invalidation_reason STRING,
  view_status STRING, refresh_period_hi TIMESTAMP, refresh_base_table_txn LONG, base_table_txn LONG, refresh_limit INT,
  refresh_limit_unit STRING, timer_time_zone STRING, timer_start TIMESTAMP, timer_interval INT,
  timer_interval_unit STRING, period_length INT, period_length_unit STRING, period_delay INT, period_delay_unit STRING,
  sealed_buckets STRING, omitted_rows LONG, omitted_changes LONG`,
)

export const materializedColumns: VirtualRelation['columns'] = columns.map(({ name, type }) => ({
  name,
  type: type.name,
}))

export interface ViewStatus {
  readonly failure: string | null
  readonly refreshing: boolean
  /** End of the last period that is over; null without PERIOD. */
  readonly periodHi: bigint | null
  /** Transactions of the base: at the last refresh since the start, and now. */
  readonly refreshed: number | null
  readonly current: number | null
  /** The table below the view; undefined if it is missing. */
  readonly base: TableVersion | undefined
  /** Late rows are added to sealed buckets. */
  readonly adds: boolean
}

const unitNames = { s: 'SECOND', m: 'MINUTE', h: 'HOUR', d: 'DAY', w: 'WEEK', M: 'MONTH', y: 'YEAR' } as const

export function materializedRow(
  schema: TableSchema,
  { sql, baseName, refresh, limit }: MaterializedSchema,
  { failure, refreshing, periodHi, refreshed, current, base, adds }: ViewStatus,
): Value[] {
  const { id, name, stored } = schema
  const { kind, every, startMicros, timeZone, period } = refresh
  const micros = (value: number | undefined): Value => (value === undefined ? null : BigInt(Math.floor(value)))
  const unit = (length: RefreshStrategy['every']): Value => (length === null ? null : unitNames[length.unit])
  const [length, delay] = [period?.length ?? null, period?.delay ?? null]
  const known: Record<string, Value> = {
    view_name: name,
    refresh_type: kind,
    base_table_name: baseName,
    last_refresh_start_timestamp: micros(stored?.startMicros),
    last_refresh_finish_timestamp: micros(stored?.finishMicros),
    view_sql: sql,
    view_table_dir_name: `${name}~${id}`,
    invalidation_reason: failure,
    view_status: failure !== null ? 'invalid' : refreshing ? 'refreshing' : 'valid',
    refresh_period_hi: periodHi,
    refresh_base_table_txn: refreshed === null ? null : BigInt(refreshed),
    base_table_txn: current === null ? null : BigInt(current),
    refresh_limit: limit?.value ?? 0,
    refresh_limit_unit: limit?.unit ?? null,
    timer_time_zone: timeZone,
    timer_start: startMicros === null ? null : BigInt(startMicros),
    timer_interval: every?.count ?? 0,
    timer_interval_unit: unit(every),
    period_length: length?.count ?? 0,
    period_length_unit: unit(length),
    period_delay: delay?.count ?? 0,
    period_delay_unit: unit(delay),
    sealed_buckets: base === undefined ? null : sealedText(id, base),
    omitted_rows: base === undefined ? null : omittedSealed(schema, base, adds),
    omitted_changes: base === undefined ? null : omittedChanges(id, base),
  }
  return rowOf(columns, known)
}

/** `2024-01-01T00:00:00.000000Z..2024-01-07T23:59:59.999999Z, ..`: the buckets that have outlived rows of the base. */
function sealedText(viewId: number, { schema }: TableVersion): Value {
  const unit = schema.columns[schema.timestampId]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
  const text = (ts: bigint): string => (ts <= allOfTime.lo ? '' : formatTimestamp(ts, unit))
  const ranges = sealedRanges(schema, viewId)
  return ranges.length === 0 ? null : ranges.map(({ lo, hi }) => `${text(lo)}..${text(hi)}`).join(', ')
}

/** None are left out of a view without sealed buckets, as after TRUNCATE of the table. */
function omittedSealed(view: TableSchema, base: TableVersion, adds: boolean): bigint {
  if (sealedRanges(base.schema, view.id).length === 0) return 0n
  const closed = adds ? unkeptRanges(view.stored) : [allOfTime]
  return BigInt(view.stored?.omitted ?? 0) + attachedRows(view.id, base) + lateRows(view, base, closed)
}

/** Rows of parts that may be in sealed buckets of these ranges, and that no refresh has looked at since they came. */
function lateRows(view: TableSchema, base: TableVersion, ranges: readonly BucketRange[]): bigint {
  const closed = intersect(ranges, sealedRanges(base.schema, view.id))
  return lateParts({ view, base })
    .filter((part) => closed.some((range) => overlaps(range, part)))
    .reduce((sum, { rows }) => sum + BigInt(rows), 0n)
}

/** Rows of partitions that were detached when the buckets were sealed. */
function attachedRows(viewId: number, { schema }: Pick<TableVersion, 'schema'>): bigint {
  return BigInt(schema.sealed?.find((sealed) => sealed.viewId === viewId)?.attached ?? 0)
}

function omittedChanges(viewId: number, { schema }: TableVersion): bigint {
  return BigInt(schema.sealed?.find((sealed) => sealed.viewId === viewId)?.changes ?? 0)
}

/** Later rows of the base in sealed buckets of a live view. Parts are counted as a whole, rows in memory not yet. */
function omittedRows(viewId: number, { schema, parts }: TableVersion): bigint {
  const ranges = schema.sealed?.find((sealed) => sealed.viewId === viewId)?.ranges ?? []
  const sealed = ranges.map(([lo, hi, transaction]) => ({ lo: BigInt(lo), hi: BigInt(hi), transaction }))
  const late = parts.filter(({ minTs, maxTs, minTxn }) =>
    sealed.some(({ lo, hi, transaction }) => minTs <= hi && lo <= maxTs && minTxn > transaction),
  )
  return late.reduce((sum, { rows }) => sum + BigInt(rows), attachedRows(viewId, { schema }))
}

// live_views() ---------------------------------------------------------------------------------------------------------

const liveList = columnList(
  `view_name STRING, view_table_dir_name STRING, base_table_name STRING, view_sql STRING, view_status STRING,
  invalidation_reason STRING, flush_every_interval LONG, flush_every_interval_unit STRING, in_memory_interval LONG,
  in_memory_interval_unit STRING, lag_seqtxn LONG, lag_micros LONG, last_processed_seqtxn LONG,
  view_lower_bound_timestamp TIMESTAMP, frozen_ranges STRING, omitted_rows LONG`,
)

export const liveColumns: VirtualRelation['columns'] = liveList.map(({ name, type }) => ({
  name,
  type: type.name,
}))

interface LiveStatus {
  readonly failure: string | null
  /** Transactions of the base: at the last refresh since the start, and now. */
  readonly refreshed: number | null
  readonly current: number | null
  /** The table below the view; undefined if it is missing. */
  readonly base: TableVersion | undefined
  readonly nowMicros: number
}

const units = { ms: 'MILLISECOND', s: 'SECOND', m: 'MINUTE', h: 'HOUR', d: 'DAY' } as const

function lengthOf(text: string): readonly [Value, Value] {
  const [, digits = '0', unit = 's'] = /^(\d+)(\w+)$/.exec(text) ?? []
  return [BigInt(digits), Object.entries(units).find(([name]) => name === unit)?.[1] ?? null]
}

export function liveRow(
  { id, name, stored, columns: own, timestampId }: TableSchema,
  { sql, baseName }: MaterializedSchema,
  { flushEvery, inMemory, start }: LiveSchema,
  { failure, refreshed, current, base, nowMicros }: LiveStatus,
): Value[] {
  const [flush, flushUnit] = lengthOf(flushEvery)
  const [memory, memoryUnit] = lengthOf(inMemory ?? flushEvery)
  const isNanos = own.find((column) => column.id === timestampId)?.type.name === 'TIMESTAMP_NS'
  return rowOf(liveList, {
    view_name: name,
    view_table_dir_name: `${name}~${id}`,
    base_table_name: baseName,
    view_sql: sql,
    view_status: failure !== null ? 'invalid' : stored === undefined ? 'seeding' : 'active',
    invalidation_reason: failure,
    flush_every_interval: flush,
    flush_every_interval_unit: flushUnit,
    in_memory_interval: memory,
    in_memory_interval_unit: memoryUnit,
    lag_seqtxn: refreshed === null || current === null ? null : BigInt(current - refreshed),
    lag_micros: stored === undefined ? null : BigInt(Math.floor(Math.max(0, nowMicros - stored.finishMicros))),
    last_processed_seqtxn: refreshed === null ? null : BigInt(refreshed),
    view_lower_bound_timestamp: start === null ? null : BigInt(start) / (isNanos ? 1000n : 1n),
    frozen_ranges: base === undefined ? null : sealedText(id, base),
    omitted_rows: base === undefined ? null : omittedRows(id, base),
  })
}
