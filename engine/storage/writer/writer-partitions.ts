// DROP, DETACH and ATTACH PARTITION, and TTL. Memtables that may contain rows of the partitions are flushed first. Then
// all these rows are in Parquet files (parts), and one record of the manifest (the list of all files) performs the
// change. For DROP, the flush does not write the rows of the dropped partitions (MemtableEntry.leaving), and its
// manifest record also removes their parts. If there are no such parts and memory contains little, nothing is flushed:
// a log record that repeats the remaining rows (a relocation frame) replaces them (writer-drop-rows.ts).
//
// DROP and TTL free space, so on a full disk they may use the reserve, files that were written in advance for this
// case. Parts are then removed before anything is flushed.
//
// Buckets of materialized views can outlive the partitions. The request of a DROP lists these buckets, and the manifest
// record that removes the partitions also marks them (writer-seal.ts). The TTL of a table with views is enforced by the
// refresher of the views (engine/views), in the same way.
//
// The parts of a detached partition stay where they are. The schema lists them, so they are neither read nor removed.

import { errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { metricOf, writeRefusals } from '../../memory/metrics.js'
import { isFull } from '../../wal/reserve.js'
import type { Lsn } from '../../wal/types.js'
import type { Receipt } from '../jobs/messages.js'
import { formats } from '../manifest/manifest-format.js'
import type { Memtable } from '../memtable/memtable.js'
import { isOlder, lifeOf } from '../schema/age.js'
import type { Sealing } from '../schema/materialized.js'
import { partitionFinder, partitionNamer } from '../schema/partition.js'
import {
  type DetachedPart,
  enforcedKey,
  isRemoteOnly,
  type PartDescriptor,
  type PartitionAge,
  type TableSchema,
} from '../schema/schema.js'
import { withReserve } from './free-space.js'
import { dropMemtableRows } from './writer-drop-rows.js'
import { requireFormat } from './writer-manifest.js'
import { beginRewrite, endRewrite, replaceParts } from './writer-rewrite.js'
import { isAsStored, sealedSchema, withAttached } from './writer-seal.js'
import { enqueue, type Rewriting, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/** How long a statement on a full disk waits for the space of removed parts, whose files readers may keep open. */
const timeoutMs = 10_000

/** The rows of larger memtables are not searched. */
const askedRowsMax = 1_000_000

type Operation = 'drop' | 'detach' | 'attach'

/** Responds to the request when the record is durable. */
export function changePartitions(
  state: WriterState,
  requestId: number,
  table: WriterTable,
  operation: Operation,
  names: readonly string[],
  sealing?: Sealing,
): void {
  const { wal } = state
  if (wal.state === 'poisoned' && wal.failure !== null && isFull(wal.failure) && state.pending.length > 0) {
    throw new ResourceError('the disk is full: what was written before cannot be stored, nor can it be dropped')
  }
  const wanted = new Set(names)
  const partsOf = (): readonly PartDescriptor[] => table.parts.filter(({ partition }) => wanted.has(partition))
  const done = (): void => enqueue(state, { receipts: [receiptOf(requestId, {})] })
  const away = operation === 'detach' ? partsOf().find(isRemoteOnly) : undefined
  if (away !== undefined) {
    throw new SqlError(
      `a partition whose rows are only in object storage cannot be detached [table=${table.schema.name}, partition=${away.partition}]`,
      0,
    )
  }
  if (sealing !== undefined) {
    dropSealed(state, requestId, table, partsOf, sealing)
    return
  }
  if (operation === 'drop' && partsOf().length === 0 && dropFromMemory(state, requestId, table, wanted)) return
  // Earlier memtables are flushed too, because memtables are flushed in order.
  const last = table.memtables.findLastIndex(({ memtable }) => mayHold(table, memtable, wanted))
  const memtables = table.memtables.slice(0, last + 1)
  for (const entry of memtables) if (entry.state === 'open') entry.state = 'frozen'
  if (operation === 'attach') {
    alone(state, table, requestId, memtables, () => {
      attach(state, table, wanted)
      done()
    })
    return
  }
  if (operation === 'drop') {
    if (memtables.length > 0 && metricOf(state.options.memory, 'refusal') !== writeRefusals.none) {
      if (!attempt(state, requestId, () => removeParts(state, table, partsOf()))) return
    }
    leaveOut(memtables.at(-1), wanted)
  }
  alone(state, table, requestId, memtables, () => {
    const gone = partsOf()
    if (operation === 'drop') {
      if (gone.length > 0 || memtables.length > 0) table.rewrites++
      removeParts(state, table, gone)
    } else if (gone.length > 0) replaceAll(state, table, gone, [], withDetached(table.schema, described(table, gone)))
    done()
  })
}

/** Drops partitions of whose buckets the views have stored all rows; none of these rows is in memory. */
function dropSealed(
  state: WriterState,
  requestId: number,
  table: WriterTable,
  partsOf: () => readonly PartDescriptor[],
  sealing: Sealing,
): void {
  requireFormat(state, sealing.views.some(({ adds }) => adds) ? formats.lateSealed : formats.sealedBuckets)
  alone(state, table, requestId, [], () => {
    const { asOf = Number.POSITIVE_INFINITY } = sealing
    const gone = partsOf().filter(({ minTxn }) => minTxn <= asOf)
    if (!isAsStored(state, table, sealing, gone)) {
      sendReceiptNow(state, receiptOf(requestId, { isStale: true }))
      return
    }
    if (gone.length > 0) table.rewrites++
    replaceAll(state, table, gone, [], sealedSchema(state, table, sealing))
    enqueue(state, { receipts: [receiptOf(requestId, {})] })
  })
}

/** Drops partitions that have no parts. */
function dropFromMemory(
  state: WriterState,
  requestId: number,
  table: WriterTable,
  wanted: ReadonlySet<string>,
): boolean {
  if (!table.memtables.some(({ memtable }) => mayHold(table, memtable, wanted))) return false
  const find = partitionFinder(table.schema)
  const receipts = (lsn: Lsn): Receipt[] => [receiptOf(requestId, { lsn })]
  return dropMemtableRows(state, table, (timestamp) => wanted.has(find(timestamp).name), receipts)
}

/** Whether the memtable may hold rows of one of the partitions; exact unless it has very many rows. */
function mayHold({ schema }: WriterTable, memtable: Memtable, wanted: ReadonlySet<string>): boolean {
  const range = memtable.timeRange()
  if (range === undefined || !overlaps(schema, range, wanted)) return false
  if (memtable.rows > askedRowsMax) return true
  const find = partitionFinder(schema)
  return memtable.anyTime(schema.timestampId, (timestamp) => wanted.has(find(timestamp).name))
}

/** Whether rows in this time range may belong to one of the partitions. Partition names of one unit sort by time. */
function overlaps(
  schema: TableSchema,
  range: { readonly min: bigint; readonly max: bigint },
  wanted: ReadonlySet<string>,
): boolean {
  const nameOf = partitionNamer(schema)
  const [first, last] = [nameOf(range.min), nameOf(range.max)]
  // This does not hold for years before 0 and after 9999.
  if (!/^\d{4}(-|$)/.test(first) || !/^\d{4}(-|$)/.test(last)) return true
  return [...wanted].some((name) => (first <= name && name <= last) || !/^\d{4}(-|$)/.test(name))
}

/** Makes the flush skip these partitions. If it has already started, their parts are removed afterwards. */
function leaveOut(entry: MemtableEntry | undefined, wanted: ReadonlySet<string>): void {
  if (entry?.state !== 'frozen') return
  entry.leaving = new Set([...(entry.leaving ?? []), ...wanted])
}

/** Runs `work` when the memtables are flushed, no other change of the table and no request is in progress. */
function alone(
  state: WriterState,
  table: WriterTable,
  requestId: number,
  memtables: readonly MemtableEntry[],
  work: () => void,
): void {
  const rewriting: Rewriting = {
    ...{ table, program: null, schema: () => table.stableSchema, parts: () => [], waiting: [] },
    written: () => state.later.push(() => endRewrite(state, rewriting, () => attempt(state, requestId, work))),
    failed: (error) => endRewrite(state, rewriting, () => sendReceiptNow(state, refusal(requestId, error))),
  }
  beginRewrite(state, rewriting, memtables, state.options.clock.monotonicMs() + timeoutMs)
}

/** Runs the work; returns false if it failed and the request was answered. */
function attempt(state: WriterState, requestId: number, work: () => void): boolean {
  try {
    withReserve(state, work)
    return true
  } catch (thrown) {
    if (!(thrown instanceof FileError || thrown instanceof SqlError)) throw thrown
    sendReceiptNow(state, refusal(requestId, errorRecord(refusedByDisk(thrown))))
    return false
  }
}

/** The error for the client of a statement that frees space: on a full disk a general one, not one about a file. */
function refusedByDisk(thrown: FileError | SqlError): Error {
  if (!(thrown instanceof FileError && isFull(thrown))) return thrown
  return new ResourceError('the disk is full, and the reserve is used up: there is no space to record the removal')
}

/** Throws FileError. */
function removeParts(state: WriterState, table: WriterTable, gone: readonly PartDescriptor[]): void {
  if (gone.length === 0) return
  const ids = gone.map(({ id }) => id)
  replaceParts(state, table, ids, [])
  enqueue(state, { versions: [table.nextVersion()] })
}

/** Replaces parts and the schema in one record; the files stay. Throws FileError. */
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

/** Throws SqlError if a partition is not detached, or exists in the table. */
function attach(state: WriterState, table: WriterTable, wanted: ReadonlySet<string>): void {
  const { schema, parts } = table
  const detached = schema.detached ?? []
  for (const name of wanted) {
    if (!detached.some(({ partition }) => partition === name)) {
      throw new SqlError(`could not attach partition, it is not detached [table=${schema.name}, partition=${name}]`, 0)
    }
    // Rows that arrived during the flush may have keys of the partition's rows.
    const arrived =
      enforcedKey(schema) !== undefined &&
      table.memtables.some(({ memtable }) => mayHold(table, memtable, new Set([name])))
    if (arrived || parts.some(({ partition }) => partition === name)) {
      throw new SqlError(`could not attach partition, it exists [table=${schema.name}, partition=${name}]`, 0)
    }
  }
  const back = detached.filter(({ partition }) => wanted.has(partition))
  const added = back.map(partOf)
  const { detached: _, ...rest } = schema
  const left = detached.filter(({ partition }) => !wanted.has(partition))
  const next = { ...rest, version: schema.version + 1, ...(left.length === 0 ? {} : { detached: left }) }
  table.restoreMarks(added)
  replaceAll(state, table, [], added, withAttached(state, next, back))
}

/** The descriptors with all removed rows. */
function described(table: WriterTable, parts: readonly PartDescriptor[]): PartDescriptor[] {
  const marked = new Map(table.describedMarks(table.transaction).map((part) => [part.id, part]))
  return parts.map((part) => marked.get(part.id) ?? part)
}

function withDetached(schema: TableSchema, parts: readonly PartDescriptor[]): TableSchema {
  const added = parts.map(({ minTs, maxTs, ...part }) => ({ ...part, minTs: String(minTs), maxTs: String(maxTs) }))
  return { ...schema, version: schema.version + 1, detached: [...(schema.detached ?? []), ...added] }
}

function partOf({ minTs, maxTs, lackedBy: _, ...part }: DetachedPart): PartDescriptor {
  return { ...part, minTs: BigInt(minTs), maxTs: BigInt(maxTs) }
}

// TTL ---------------------------------------------------------------------------------------------------------------

/**
 * Drops partitions that ended longer ago than the TTL, measured from the newest row (or from now, if that is in the
 * future). This includes rows in memory: a memtable with expired rows is relocated without them, or flushed.
 */
export function enforceTtl(state: WriterState): void {
  const { clock } = state.options
  if (clock.monotonicMs() < state.retryAtMs) return
  const bases = new Set([...state.catalog.byId.values()].map(({ schema }) => schema.materialized?.baseId))
  for (const table of state.catalog.byId.values()) {
    const age = lifeOf(table.schema)
    if (age === null || table.schema.timestampId < 0) continue
    if (bases.has(table.id) || table.schema.materialized !== undefined) continue
    const isExpired = expiry(table, BigInt(clock.nowMicros()), age)
    const { open } = table
    const oldest = open?.memtable.timeRange()?.min
    if (open?.state === 'open' && oldest !== undefined && isExpired(oldest)) {
      if (state.rewriting.has(table) || !dropMemtableRows(state, table, isExpired, () => [])) open.state = 'frozen'
    }
    if (table.parts.length === 0 || state.rewriting.has(table)) continue
    try {
      const gone = table.parts.filter(({ maxTs }) => isExpired(maxTs))
      withReserve(state, () => removeParts(state, table, gone))
    } catch (thrown) {
      // Retried in the next round.
      if (!(thrown instanceof FileError)) throw thrown
    }
  }
}

/** Whether the partition of a timestamp is expired. */
function expiry(
  { schema, parts, memtables }: WriterTable,
  nowMicros: bigint,
  age: PartitionAge,
): (ts: bigint) => boolean {
  let newest = 0n
  for (const { maxTs } of parts) if (maxTs > newest) newest = maxTs
  for (const { memtable } of memtables) {
    const range = memtable.timeRange()
    if (range !== undefined && range.max > newest) newest = range.max
  }
  return isOlder(schema, newest, nowMicros, age)
}
