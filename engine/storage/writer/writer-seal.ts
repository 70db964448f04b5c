// Seals buckets of materialized views: from then on they are read as stored, although their base table has lost the
// rows of dropped partitions (schema/materialized.ts). Checks that the table has the same rows for these buckets as when
// the views stored them, and makes the table's new schema, which the manifest record that removes the partitions
// contains.
//
// Rows that arrive for sealed buckets later are added to them by a refresh (engine/views/sealed-rows.ts), with a
// replacement of the view's rows (writer-replace.ts). Partitions are not dropped before that, unless the view cannot
// add them.
//
// A compaction changes parts and no rows. The writer remembers each one until no reader holds an older version of the
// table, so it finds the parts that the views have read, although compactions have replaced them since.

import { assert } from '../../base/assert.js'
import { blockAt, blockCount, blockRows, blockTimes } from '../../memory/column-layout.js'
import type { Removal } from '../jobs/messages.js'
import { changesDedup } from '../schema/draft.js'
import {
  type BucketRange,
  isLate,
  type LateBound,
  lateBounds,
  overlaps,
  type SealedBuckets,
  type Sealing,
} from '../schema/materialized.js'
import { mergedPart } from '../schema/merged-parts.js'
import { type DetachedPart, extentOf, type PartDescriptor, rowsOf, type TableSchema } from '../schema/schema.js'
import type { WriterState } from './writer-state.js'
import type { Compacted, PartExtent, WriterTable } from './writer-table.js'

/** The rows of larger memtables are not searched. */
const searchedRowsMax = 1_000_000
/** Sealed ranges of a view that a schema lists one by one. */
const rangesMax = 100

/**
 * Whether the table has the same rows, of those on which the buckets depend and of the partitions of `gone`, as when the
 * buckets were stored, apart from rows that may be late, and no late rows would be lost with `gone`.
 */
export function isAsStored(
  state: WriterState,
  table: WriterTable,
  sealing: Sealing,
  gone: readonly PartDescriptor[],
): boolean {
  assert(table.schema.timestampId >= 0, 'S2: buckets are those of a table with a designated timestamp')
  const ranges = sealing.needed.map(rangeOf)
  const leaving = new Set(gone.map(({ partition }) => partition))
  const { asOf = Number.POSITIVE_INFINITY } = sealing
  const isNeeded = (part: Pick<PartDescriptor, 'partition' | 'minTs' | 'maxTs'>): boolean =>
    leaving.has(part.partition) || ranges.some((range) => overlaps(range, part))
  const parts = partsBefore(table, sealing.version)
    .filter((part) => isNeeded(part) && part.minTxn <= asOf)
    .map(({ id, removed }) => `${id}:${removed}`)
  const expected = new Set(sealing.parts.map(([id, removed]) => `${id}:${removed}`))
  if (parts.length !== expected.size || parts.some((part) => !expected.has(part))) return false
  // A compaction may have joined earlier and later rows.
  if (table.parts.some((part) => part.minTxn <= asOf && part.maxTxn > asOf && isNeeded(part))) return false
  return (sealing.asOf !== undefined || !inMemory(state, table, ranges)) && !losesLate(state, table, sealing, gone)
}

/** Whether memtables may have rows in the ranges. */
function inMemory({ options: { memory } }: WriterState, table: WriterTable, ranges: readonly BucketRange[]): boolean {
  return table.memtables.some(({ memtable: { address } }) => {
    for (let index = 0; index < blockCount(memory, address); index++) {
      const block = blockAt(memory, address, index)
      if (blockRows(memory, block) === 0) continue
      const times = blockTimes(memory, block)
      if (ranges.some((range) => overlaps(range, times))) return true
    }
    return false
  })
}

/**
 * Whether parts with rows that sealed buckets lack are among `gone`, or have rows in buckets that are being sealed: then
 * they would be late in some buckets of the view, and not in others.
 */
function losesLate(
  { catalog }: WriterState,
  { schema, parts }: WriterTable,
  { views, losing, asOf = Number.POSITIVE_INFINITY }: Sealing,
  gone: readonly PartDescriptor[],
): boolean {
  return (schema.sealed ?? []).some(({ viewId }) => {
    const view = catalog.byId.get(viewId)
    if (view === undefined || view.schema.materialized?.live !== undefined || losing.includes(viewId)) return false
    const bounds = lateBounds(schema, view.schema)
    const added = (views.find((one) => one.viewId === viewId)?.ranges ?? []).map(rangeOf)
    const late = parts.filter((part) => isLate(bounds, part))
    // Later rows are late in all buckets.
    return late.some(
      (part) => gone.includes(part) || (part.minTxn <= asOf && added.some((range) => overlaps(range, part))),
    )
  })
}

/** Which rows of the table sealed buckets have: as the writer knows it, and as the manifest has it durably. */
export function lateBoundsOf({ catalog, manifest }: WriterState, { schema }: WriterTable): readonly LateBound[] {
  return (schema.sealed ?? []).flatMap(({ viewId }) => {
    const newest = catalog.byId.get(viewId)?.schema
    if (newest === undefined || newest.materialized?.live !== undefined) return []
    const durable = manifest.tables.get(viewId)?.schema
    return [newest, ...(durable === undefined ? [] : [durable])].flatMap((view) => lateBounds(schema, view))
  })
}

/** The same, as the writer knows it. */
function newestBounds({ catalog }: WriterState, { schema }: WriterTable): readonly LateBound[] {
  return (schema.sealed ?? []).flatMap(({ viewId }) => {
    const view = catalog.byId.get(viewId)?.schema
    return view === undefined || view.materialized?.live !== undefined ? [] : lateBounds(schema, view)
  })
}

/** The parts that may have rows that sealed buckets lack. */
export function latePartsOf(state: WriterState, table: WriterTable): ReadonlySet<PartDescriptor> {
  const bounds = newestBounds(state, table)
  return new Set(bounds.length === 0 ? [] : table.parts.filter((part) => isLate(bounds, part)))
}

/** Whether views that are not live have sealed buckets of the table. */
export function hasSealedBuckets(state: WriterState, table: WriterTable): boolean {
  return newestBounds(state, table).length > 0
}

/** Whether an upsert removes rows that sealed buckets lack. */
export function removesLate(state: WriterState, table: WriterTable, { parts, memtables }: Removal): boolean {
  const bounds = newestBounds(state, table)
  if (bounds.length === 0) return false
  assert(table.schema.timestampId >= 0, 'S2: buckets are those of a table with a designated timestamp')
  const left = new Set(parts.map(([id]) => id))
  if (table.parts.some((part) => left.has(part.id) && isLate(bounds, part))) return true
  return memtables.some(([id, rows]) => {
    const memtable = table.memtables.find((entry) => entry.memtable.id === id)?.memtable
    return (
      memtable !== undefined && rows.some((row) => isWithin(bounds, memtable.timeOf(row, table.schema.timestampId)))
    )
  })
}

function isWithin(ranges: readonly BucketRange[], ts: bigint): boolean {
  return ranges.some((range) => overlaps(range, { minTs: ts, maxTs: ts }))
}

/** What a compaction has written, with the parts that are joined in it if views may need to know and no row was left out. */
export function compactedParts(
  { catalog }: WriterState,
  table: WriterTable,
  before: TableSchema,
  written: readonly PartDescriptor[],
  from: readonly PartDescriptor[],
): readonly PartDescriptor[] {
  const schemas = [...catalog.byId.values()].map(({ schema }) => schema)
  const [only, ...more] = written
  // After DEDUP ENABLE, rows that the job has kept may be superseded.
  if (changesDedup(before, table.schema) || !schemas.some(({ materialized }) => materialized?.baseId === table.id))
    return written
  const rows = rowsOf(from)
  assert(rowsOf(written) <= rows, 'S2: a compaction adds no rows')
  if (only === undefined || more.length > 0 || only.rows !== rows) return written
  const listed = new Set(schemas.flatMap(({ stored }) => (stored?.parts ?? []).map(([id]) => id)))
  return [mergedPart(only, from, listed)]
}

/** To be called before the next version, and before the marks of the replaced parts are taken. */
export function noteCompaction(
  table: WriterTable,
  from: readonly PartDescriptor[],
  to: readonly PartDescriptor[],
): void {
  const noted: Compacted = { version: table.version + 1, from: extentsOf(table, from), to: to.map(({ id }) => id) }
  table.compactions = [...table.compactions, noted]
  table.retire(() => {
    table.compactions = table.compactions.filter((one) => one !== noted)
  })
}

/** The parts as they would be without the compactions since this version. */
function partsBefore(table: WriterTable, version: number): readonly PartExtent[] {
  const parts = new Map(extentsOf(table, table.parts).map((part) => [part.id, part]))
  for (const { version: since, from, to } of table.compactions.toReversed()) {
    // A part that has changed since is not the one that the compaction has written.
    if (since <= version || !to.every((id) => parts.get(id)?.removed === 0)) continue
    for (const id of to) parts.delete(id)
    for (const part of from) parts.set(part.id, part)
  }
  return [...parts.values()]
}

function extentsOf({ marks }: WriterTable, parts: readonly PartDescriptor[]): PartExtent[] {
  return parts.map(({ id, partition, minTs, maxTs, minTxn }) => ({
    ...{ id, partition, minTs, maxTs, minTxn, removed: marks.get(id)?.count ?? 0 },
  }))
}

/**
 * The schema with these buckets sealed as of the table's last transaction, or that of the request. Views that do not exist
 * are forgotten.
 */
export function sealedSchema(state: WriterState, table: WriterTable, sealing: Sealing): TableSchema {
  const { schema } = table
  const { asOf, views } = sealing
  const transaction = asOf ?? table.transaction
  const before = new Map(schema.sealed?.map((sealed) => [sealed.viewId, sealed] as const))
  for (const { viewId, ranges: wanted, adds, least } of views) {
    const later = asOf === undefined || least === undefined ? null : firstLater(table, BigInt(least), asOf)
    const ranges = later === null ? wanted : wanted.flatMap((range) => upTo(range, later))
    for (const [first, last] of ranges) assert(BigInt(first) <= BigInt(last), 'P2: buckets end after they begin')
    assert(viewId !== schema.id, 'S2: a table keeps the buckets of other tables')
    const added = ranges.map(([first, last]) => [first, last, transaction] as const)
    const known = raised(state, table, viewId, sealing.losing.includes(viewId))
    const all = { ...before.get(viewId), viewId, ranges: bounded([...known, ...added]) }
    before.set(viewId, adds ? { ...all, adds } : all)
  }
  const sealed = [...before.values()].filter(
    ({ viewId, ranges }) => state.catalog.byId.has(viewId) && ranges.length > 0,
  )
  const detached = lackedParts(schema, sealing)
  return { ...schema, sealed, ...(detached === undefined ? {} : { detached }) }
}

/** The first timestamp after `least` that a row of a later transaction may have; null for none. */
function firstLater(table: WriterTable, least: bigint, asOf: number): bigint | null {
  let found: bigint | null = null
  const see = (ts: bigint): boolean => {
    if (ts > least && (found === null || ts < found)) found = ts
    return false
  }
  for (const { minTxn, minTs, maxTs } of table.parts)
    if (minTxn > asOf && maxTs > least) see(minTs > least ? minTs : least + 1n)
  for (const { memtable } of table.memtables) {
    const range = memtable.timeRange()
    if (range === undefined || range.max <= least) continue
    if (memtable.rows > searchedRowsMax) see(range.min > least ? range.min : least + 1n)
    else memtable.anyTime(table.schema.timestampId, see)
  }
  return found
}

/** The range without timestamps from `end` on. */
function upTo([first, last]: readonly [string, string], end: bigint): (readonly [string, string])[] {
  if (BigInt(last) < end) return [[first, last]]
  return BigInt(first) < end ? [[first, `${end - 1n}`]] : []
}

/** Detached parts, with the views whose buckets are being sealed without their rows. */
function lackedParts({ detached }: TableSchema, { views }: Sealing): TableSchema['detached'] {
  return detached?.map((part) => {
    const extent = extentOf(part)
    assert(extent.minTs <= extent.maxTs, 'T1: the rows of a part ascend by time')
    const lacking = views.filter(({ ranges }) => ranges.some((range) => overlaps(rangeOf(range), extent)))
    const lackedBy = [...new Set([...(part.lackedBy ?? []), ...lacking.map(({ viewId }) => viewId)])]
    return lackedBy.length === 0 ? part : { ...part, lackedBy }
  })
}

/** The schema that counts the rows of attached parts that sealed buckets lack and that are not late rows. */
export function withAttached(
  { catalog }: WriterState,
  schema: TableSchema,
  attached: readonly DetachedPart[],
): TableSchema {
  if (schema.sealed === undefined) return schema
  const sealed = schema.sealed.map((one) => {
    const view = catalog.byId.get(one.viewId)?.schema
    const bounds = view === undefined ? [] : lateBounds(schema, view)
    const lacked = attached.filter(
      (part) => part.lackedBy?.includes(one.viewId) === true && !isLate(bounds, extentOf(part)),
    )
    const rows = rowsOf(lacked)
    return rows === 0 ? one : { ...one, attached: (one.attached ?? 0) + rows }
  })
  return { ...schema, sealed }
}

/** The schema that counts a statement which replaces these parts; undefined if no sealed bucket may have rows of them. */
export function withSealedChange({ schema, parts }: WriterTable, replaced: readonly number[]): TableSchema | undefined {
  const left = new Set(replaced)
  const gone = parts.filter(({ id }) => left.has(id))
  assert(gone.length === replaced.length, 'S2: replaced parts belong to the table')
  const isChanged = ({ ranges }: SealedBuckets): boolean =>
    ranges.map(rangeOf).some((range) => gone.some((part) => overlaps(range, part)))
  if (schema.sealed?.some(isChanged) !== true) return undefined
  const sealed = schema.sealed.map((one) => (isChanged(one) ? { ...one, changes: (one.changes ?? 0) + 1 } : one))
  return { ...schema, sealed }
}

/**
 * The view's sealed ranges: those that lack no rows of the table have all rows up to its last transaction. `isLosing`:
 * the rows of parts that the ranges lack are left out, since they would be late in some buckets and not in others.
 */
function raised(state: WriterState, table: WriterTable, viewId: number, isLosing: boolean): SealedBuckets['ranges'] {
  const { schema, transaction } = table
  const view = state.catalog.byId.get(viewId)?.schema
  if (view === undefined) return []
  const detached = (schema.detached ?? []).map(extentOf)
  return lateBounds(schema, view).map((bound) => {
    const late = [...table.parts, ...detached].filter((part) => isLate([bound], part))
    const known = isLosing ? Math.max(bound.transaction, ...late.map(({ maxTxn }) => maxTxn)) : bound.transaction
    const lacks = (!isLosing && late.length > 0) || inMemory(state, table, [bound])
    return [`${bound.lo}`, `${bound.hi}`, lacks ? known : transaction]
  })
}

/** The oldest ranges become one where they are adjacent, if they have the rows up to the same transaction. */
function bounded(ranges: SealedBuckets['ranges']): SealedBuckets['ranges'] {
  if (ranges.length <= rangesMax) return ranges
  const sorted = [...ranges].sort(([x], [y]) => (BigInt(x) < BigInt(y) ? -1 : 1))
  const merged: (readonly [string, string, number])[] = []
  for (const range of sorted) {
    const last = merged.at(-1)
    const isAdjacent = last !== undefined && BigInt(last[1]) + 1n === BigInt(range[0]) && last[2] === range[2]
    if (isAdjacent) merged[merged.length - 1] = [last[0], range[1], last[2]]
    else merged.push(range)
  }
  return merged
}

function rangeOf([first, last]: readonly [first: string, last: string, ...rest: unknown[]]): BucketRange {
  return { lo: BigInt(first), hi: BigInt(last) }
}
