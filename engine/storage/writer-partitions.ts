// Partitions as a whole: DROP, DETACH, ATTACH PARTITION and TTL. Each is one record of the manifest; there is no frame in
// the log, because all rows that it is about are in parts then.
//
// A detached partition's parts stay where they are; the schema lists them, so that they are neither read nor removed.

import { errorRecord, FileError, SqlError } from '../base/errors.js'
import { partitionFinder, timestampsPerSecond } from './partition.js'
import type { DetachedPart, PartDescriptor, TableSchema } from './schema.js'
import { beginRewrite, endRewrite, replaceParts } from './writer-rewrite.js'
import { answerNow, enqueue, type Rewriting, receiptOf, refusal, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type Operation = 'drop' | 'detach' | 'attach'

/** Answers the request when the record is durable. */
export function changePartitions(
  state: WriterState,
  requestId: number,
  table: WriterTable,
  operation: Operation,
  names: readonly string[],
): void {
  alone(state, table, requestId, () => {
    const wanted = new Set(names)
    const { schema } = table
    if (operation === 'attach') attach(state, table, wanted)
    else {
      const gone = table.parts.filter(({ partition }) => wanted.has(partition))
      if (operation === 'drop') {
        if (gone.length > 0) table.rewrites++
        removeParts(state, table, gone)
      } else if (gone.length > 0) replaceAll(state, table, gone, [], withDetached(schema, gone))
    }
    enqueue(state, { receipts: [receiptOf(requestId, {})] })
  })
}

/** Runs the work when everything before it is flushed, nothing else changes the table, and no request is half read. */
function alone(state: WriterState, table: WriterTable, requestId: number, work: () => void): void {
  const rewriting: Rewriting = {
    ...{ table, program: null, schema: () => table.stableSchema, parts: () => [], waiting: [] },
    written: () => state.later.push(() => endRewrite(state, rewriting, () => answered(state, requestId, work))),
    failed: (error) => endRewrite(state, rewriting, () => answerNow(state, refusal(requestId, error))),
  }
  beginRewrite(state, rewriting)
}

function answered(state: WriterState, requestId: number, work: () => void): void {
  try {
    work()
  } catch (thrown) {
    if (!(thrown instanceof FileError || thrown instanceof SqlError)) throw thrown
    answerNow(state, refusal(requestId, errorRecord(thrown)))
  }
}

/** Throws FileError. */
function removeParts(state: WriterState, table: WriterTable, gone: readonly PartDescriptor[]): void {
  if (gone.length === 0) return
  const ids = gone.map(({ id }) => id)
  replaceParts(state, table, ids, [])
  enqueue(state, { versions: [table.nextVersion()] })
}

/** Parts out and in, with a schema that says so. The files stay. Throws FileError. */
function replaceAll(
  state: WriterState,
  table: WriterTable,
  gone: readonly PartDescriptor[],
  added: readonly PartDescriptor[],
  schema: TableSchema,
): void {
  const ids = gone.map(({ id }) => id)
  replaceParts(state, table, ids, added, schema)
  state.catalog.replaceSchema(table, schema)
  enqueue(state, { versions: [table.nextVersion()] })
}

/** Throws SqlError when a partition is not there to be attached, or has rows. */
function attach(state: WriterState, table: WriterTable, wanted: ReadonlySet<string>): void {
  const { schema, parts } = table
  const detached = schema.detached ?? []
  for (const name of wanted) {
    if (!detached.some(({ partition }) => partition === name)) {
      throw new SqlError(`could not attach partition, it is not detached [table=${schema.name}, partition=${name}]`, 0)
    }
    if (parts.some(({ partition }) => partition === name)) {
      throw new SqlError(`could not attach partition, it exists [table=${schema.name}, partition=${name}]`, 0)
    }
  }
  const added = detached.filter(({ partition }) => wanted.has(partition)).map(partOf)
  const { detached: _, ...rest } = schema
  const left = detached.filter(({ partition }) => !wanted.has(partition))
  const next = { ...rest, version: schema.version + 1, ...(left.length === 0 ? {} : { detached: left }) }
  replaceAll(state, table, [], added, next)
}

function withDetached(schema: TableSchema, parts: readonly PartDescriptor[]): TableSchema {
  const added = parts.map(({ minTs, maxTs, ...part }) => ({ ...part, minTs: String(minTs), maxTs: String(maxTs) }))
  return { ...schema, version: schema.version + 1, detached: [...(schema.detached ?? []), ...added] }
}

function partOf({ minTs, maxTs, ...part }: DetachedPart): PartDescriptor {
  return { ...part, minTs: BigInt(minTs), maxTs: BigInt(maxTs) }
}

// TTL ---------------------------------------------------------------------------------------------------------------

/**
 * Drops partitions that end before the newest row's time less the TTL; a row from the future does not count beyond now. Rows in memory go with their parts:
 * a generation that holds such rows is flushed.
 */
export function enforceTtl(state: WriterState): void {
  const { clock } = state.options
  if (clock.monotonicMs() < state.retryAtMs) return
  for (const table of state.catalog.byId.values()) {
    if (table.schema.ttl === null || table.schema.timestampId < 0) continue
    const isExpired = expiry(table, BigInt(clock.nowMicros()))
    const { open } = table
    const oldest = open?.memtable.timeRange()?.min
    if (open?.state === 'open' && oldest !== undefined && isExpired(oldest)) open.state = 'frozen'
    if (table.parts.length === 0 || state.rewriting.has(table)) continue
    try {
      removeParts(
        state,
        table,
        table.parts.filter(({ maxTs }) => isExpired(maxTs)),
      )
    } catch (thrown) {
      // Put off: the next round tries again.
      if (!(thrown instanceof FileError)) throw thrown
    }
  }
}

/** Whether the partition of a time has ended before what the table keeps. */
function expiry({ schema, parts, generations }: WriterTable, nowMicros: bigint): (ts: bigint) => boolean {
  const perMicro = timestampsPerSecond(schema) / 1_000_000n
  let newest = 0n
  for (const { maxTs } of parts) if (maxTs > newest) newest = maxTs
  for (const { memtable } of generations) {
    const range = memtable.timeRange()
    if (range !== undefined && range.max > newest) newest = range.max
  }
  const now = nowMicros * perMicro
  const limit = before(newest < now ? newest : now, schema, perMicro)
  const partitionOf = partitionFinder(schema)
  return (ts) => partitionOf(ts).to <= limit
}

const microsPerHour = 3_600_000_000n

/** The moment that lies the TTL before. */
function before(ts: bigint, { ttl }: TableSchema, perMicro: bigint): bigint {
  const { value, unit } = ttl ?? { value: 0, unit: 'HOUR' }
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
