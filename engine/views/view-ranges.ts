// Determines which buckets of a materialized view are stored and still correct, given snapshots of the view and its
// base table. storage/schema/materialized.ts describes what is recorded about stored buckets, and why this is enough.
//
//   dirty   buckets with rows in memtables of the base table, with rows that were removed, or that overlap a part
//           (Parquet file) that was added or removed since the bucket was stored, unless a compaction has only joined
//           parts; of a view over a view, also those whose rows there were sealed or expired since,
//           or got late rows after that
//   clean   the recorded ranges without the dirty buckets
//   sealed  buckets that have outlived rows of the base: read as stored in any case
//   kept    what the TTL of the view has left
//
// No bucket extends across the boundary of two ranges. With a time zone, buckets around a change of the UTC offset may
// have rows on both sides of their start, so there the dirty range is extended until no bucket does.

import type { ReadSnapshot } from '../api/session.js'
import { type Buckets, createBuckets } from '../exec/aggregate/buckets.js'
import { blockAt, blockCount, blockRows, blockTimes } from '../memory/column-layout.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { parseStatement } from '../sql/parse/parse.js'
import type { TimeRange, ViewBuckets } from '../sql/plan/plan.js'
import {
  isLate,
  keptRange,
  lateBounds,
  type MaterializedSchema,
  type StoredBuckets,
  sealedRanges,
  unkeptRanges,
} from '../storage/schema/materialized.js'
import { changedParts } from '../storage/schema/merged-parts.js'
import type {
  ColumnSchema,
  PartDescriptor,
  TableSchema,
  TableSnapshot,
  TableVersion,
} from '../storage/schema/schema.js'
import { allOfTime, complement, intersect, normalise, unite } from '../types/interval.js'
import { microsPerDay, type TimestampUnit, ticksPerMicro } from '../types/timestamp-calendar.js'
import { timeZone } from '../types/timestamp-zone.js'
import { type BucketGrid, liveGrid } from './live-grid.js'

/** Identifies this process in records that only it may trust. */
export const thisProcess = `${process.pid}-${Date.now()}`

/** A view, the views that it reads by way of each other, and the table below them. */
export interface ViewInputs {
  readonly view: TableSchema
  /** The view that it reads, then the view that this one reads, and so on; empty over a table. */
  readonly between: readonly TableSchema[]
  readonly base: TableVersion
}

/** A view in a snapshot. */
export interface SeenView {
  readonly snapshot: ReadSnapshot
  readonly view: TableSnapshot
  readonly base: TableSnapshot
  readonly inputs: ViewInputs
  readonly levels: readonly ViewBuckets[]
  /** With marks that are right for the parts of the base. */
  readonly grid: BucketGrid
}

/** Undefined if a table of the chain is missing. */
export function inputsOfView(
  view: TableSchema,
  byId: (tableId: number) => TableVersion | undefined,
): ViewInputs | undefined {
  const between: TableSchema[] = []
  for (let { materialized } = view; ; ) {
    const next = byId(materialized?.baseId ?? -1)
    if (next === undefined) return undefined
    if (next.schema.materialized === undefined) return { view, between, base: next }
    between.push(next.schema)
    materialized = next.schema.materialized
  }
}

/** The stored ranges of the view that are still right, if the base has rows in `memory` besides its parts. */
export function cleanRanges(
  inputs: ViewInputs,
  grid: BucketGrid,
  memory: readonly TimeRange[] = [],
): readonly TimeRange[] {
  return isOfColumns(inputs) ? trustedRanges(inputs, grid, memory) : []
}

/** The ranges that were stored of the columns that the base has now, whatever has changed since. */
export function listedRanges(inputs: ViewInputs): readonly TimeRange[] {
  return isOfColumns(inputs) ? ofThisProcess(inputs.view) : []
}

function isOfColumns(inputs: ViewInputs): boolean {
  return inputs.view.stored?.columns === columnsRead(inputs)
}

function ofThisProcess({ stored }: TableSchema): readonly TimeRange[] {
  if (stored === undefined || (stored.process !== undefined && stored.process !== thisProcess)) return []
  return rangesOfList(stored.ranges)
}

/** The same as cleanRanges(), of the columns that the base had when the buckets were stored. */
export function trustedRanges(
  { view, between, base }: ViewInputs,
  grid: BucketGrid,
  memory: readonly TimeRange[] = [],
): readonly TimeRange[] {
  const { stored } = view
  const listed = ofThisProcess(view)
  if (stored === undefined || listed.length === 0) return []
  const { addedRanges, grown, removed } = changedParts(stored.parts, base.parts)
  const added = [...addedRanges, ...grown, ...memory, ...sealedBetween(stored, between, base.schema)]
  const reached = [
    ...added.map((range) => grid.whole(range)),
    ...[...removed, ...markedRanges(base), ...expiredBetween(stored, between)].map((range) => withoutRows(grid, range)),
  ]
  return intersect(listed, complement(normalise(reached)))
}

/** What changes if rows in the range are removed. */
export function withoutRows(grid: BucketGrid, range: TimeRange): TimeRange {
  return grid.live?.withoutRows(range) ?? grid.whole(range)
}

/**
 * The ranges that a query reads from the view, and those that it computes. `combines`: it also reads late rows of sealed
 * buckets.
 */
export function sidesOf(
  inputs: ViewInputs,
  grid: BucketGrid,
  memory: readonly TimeRange[],
  combines = false,
): ViewSides {
  const kept = [keptRange(inputs.view)]
  const clean = cleanRanges(inputs, grid, memory)
  const sealed = sealedRanges(inputs.base.schema, inputs.view.id)
  const adding = intersect(sealed, complement(unkeptRanges(inputs.view.stored)))
  const late = combines ? intersect(intersect(adding, kept), lateRanges(inputs, grid, memory)) : []
  const all = unite(clean, sealed)
  const computed = intersect(complement(all), kept)
  const stored = intersect(intersect(all, kept), complement(late))
  return { stored, computed, input: inputOf(rightGrid(grid, clean), computed), late }
}

/** The parts of the base with rows that sealed buckets of the view lack. */
export function lateParts({ view, base }: Pick<ViewInputs, 'view' | 'base'>): readonly PartDescriptor[] {
  const bounds = lateBounds(base.schema, view)
  return base.parts.filter((part) => isLate(bounds, part))
}

function lateRanges(inputs: ViewInputs, grid: BucketGrid, memory: readonly TimeRange[]): TimeRange[] {
  const parts = lateParts(inputs).map(({ minTs, maxTs }) => ({ lo: minTs, hi: maxTs }))
  return normalise([...parts, ...memory].map((range) => grid.whole(range)))
}

/** Without the marks of a live view (live-grid.ts) that changes outside of the clean ranges have made wrong. */
export function rightGrid(grid: BucketGrid, clean: readonly TimeRange[]): BucketGrid {
  return grid.live?.keeping(clean) ?? grid
}

export type ViewSides = Readonly<Record<'stored' | 'computed' | 'input' | 'late', readonly TimeRange[]>>

/** The rows of the base that the query reads to compute the ranges. The grid: see rightGrid(). */
export function inputOf({ live }: BucketGrid, ranges: readonly TimeRange[]): readonly TimeRange[] {
  return live === undefined ? ranges : normalise(ranges.map((range) => live.input(range)))
}

/** What a query reads that is content with what is stored: also buckets that have changed since. */
export function storedAlone(view: TableSchema, base: TableSchema | undefined): readonly TimeRange[] {
  const { stored } = view
  if (stored === undefined) return []
  return intersect(unite(ofThisProcess(view), base === undefined ? [] : sealedRanges(base, view.id)), [keptRange(view)])
}

/** The same for a query of the base that reads these ranges of its rows. `isOfValues`: it needs states of values. */
export function sidesOfRows(
  inputs: ViewInputs,
  grid: BucketGrid,
  memory: readonly TimeRange[],
  { rows, isOfValues }: { readonly rows: readonly TimeRange[]; readonly isOfValues: boolean },
): ViewSides {
  const left = [
    ...complement(rows).map((range) => wholeWithin(grid, range)),
    ...sealedRanges(inputs.base.schema, inputs.view.id),
    ...(isOfValues ? unkeptRanges(inputs.view.stored) : []),
  ]
  const stored = intersect(
    cleanRanges(inputs, grid, memory),
    intersect([keptRange(inputs.view)], complement(normalise(left))),
  )
  const computed = complement(stored)
  return { stored, computed, input: computed, late: [] }
}

/** Bounds that lie within the buckets are moved: the first bucket is included, and so is the last one. */
export function wholeWithin(grid: BucketGrid, { lo, hi }: TimeRange): TimeRange {
  return {
    lo: lo <= allOfTime.lo ? allOfTime.lo : grid.whole({ lo, hi: lo }).lo,
    hi: hi >= allOfTime.hi ? allOfTime.hi : grid.whole({ lo: hi, hi }).hi,
  }
}

/**
 * Identifies the query and those columns of the base that it may read, by id and type. A column whose name occurs in
 * the text counts as read, which is more than needed and never less. If FROM gives columns other names, all count.
 */
export function columnsRead({ view: { materialized }, between, base }: ViewInputs): string {
  const texts: string[] = []
  const queries = [materialized, ...between.map((schema) => schema.materialized)]
  for (const [index, query] of queries.entries()) {
    const source = between[index] ?? base.schema
    texts.push(columnsOf(query, source))
  }
  return texts.length === 1 ? (texts[0] ?? '') : JSON.stringify(texts)
}

function columnsOf(query: MaterializedSchema | undefined, source: TableSchema): string {
  const sql = query?.sql ?? ''
  const text = sql.toLowerCase()
  const isRenamed = query !== undefined && namesColumns(query)
  const isRead = ({ id, name, dropped }: ColumnSchema): boolean =>
    !dropped && (id === source.timestampId || isRenamed || text.includes(name.toLowerCase()))
  const read = source.columns.filter(isRead).map(({ id, name, type, declared }) => [id, name, type, declared ?? null])
  // The DEDUP keys decide which rows of a part are superseded.
  const skips = source.dedupSkips === true ? [true] : []
  return JSON.stringify([source.id, source.name.toLowerCase(), sql, read, source.dedupKeys, ...skips])
}

const named = new WeakMap<MaterializedSchema, boolean>()

/** Whether the query is one of `table as t(a, b)`. */
function namesColumns(query: MaterializedSchema): boolean {
  const known = named.get(query)
  if (known !== undefined) return known
  const statement = parseStatement(query.sql)
  const from = statement.kind === 'query' && statement.body.kind === 'select' ? statement.body.from : null
  const names = from?.kind === 'table' && from.columnAliases.length > 0
  named.set(query, names)
  return names
}

/** What a record notes of the views between: their sealed buckets, and where their TTL cuts. */
export function notedBetween(
  between: readonly TableSchema[],
  base: TableSchema,
): NonNullable<StoredBuckets['between']> {
  return between.map((view) => [sealedRanges(base, view.id).map(textOf), view.stored?.expired ?? null])
}

export function changedBetween(stored: StoredBuckets, between: readonly TableSchema[], base: TableSchema): TimeRange[] {
  return [...sealedBetween(stored, between, base), ...expiredBetween(stored, between)]
}

/** Buckets of views between that were sealed since, or are no longer, and where sealed ones have got late rows. */
function sealedBetween(
  { between: noted = [], outdated }: StoredBuckets,
  between: readonly TableSchema[],
  base: TableSchema,
): TimeRange[] {
  const sealings = notedBetween(between, base).flatMap(([sealed], index) => {
    const [now, before] = [rangesOfList(sealed), rangesOfList(noted[index]?.[0])]
    return [...intersect(now, complement(before)), ...intersect(before, complement(now))]
  })
  return [...rangesOfList(outdated), ...sealings]
}

/** Buckets of views between that their TTL has removed since. */
function expiredBetween({ between: noted = [] }: StoredBuckets, between: readonly TableSchema[]): TimeRange[] {
  return between.flatMap(({ stored }, index) => {
    const [expired, before] = [stored?.expired ?? null, noted[index]?.[1] ?? null]
    return expired === before ? [] : [{ lo: allOfTime.lo, hi: largest(expired, before) - 1n }]
  })
}

export function rangesOfList(list: StoredBuckets['ranges'] = []): TimeRange[] {
  return list.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) }))
}

/** How lists have a range. */
export function textOf({ lo, hi }: TimeRange): StoredBuckets['ranges'][number] {
  return [`${lo}`, `${hi}`]
}

function largest(...bounds: readonly (string | null)[]): bigint {
  return bounds.reduce((most, bound) => (bound !== null && BigInt(bound) > most ? BigInt(bound) : most), allOfTime.lo)
}

/** Parts of which upserts remove rows: they change without a new id until a compaction. */
export function markedRanges({ removals, parts }: TableVersion): TimeRange[] {
  const marked = new Set(removals?.map(([partId]) => partId))
  return parts.flatMap(({ id, minTs, maxTs }) => (marked.has(id) ? [{ lo: minTs, hi: maxTs }] : []))
}

/** Ranges of the rows in memtables, visible or not: they may be wider than the visible rows need. */
export function memtableRanges({ version, visibleRows }: TableSnapshot, memory: SharedMemory): TimeRange[] {
  const ranges: TimeRange[] = []
  version.memtables.forEach(({ address }, index) => {
    let left = visibleRows[index] ?? 0
    for (let block = 0; block < blockCount(memory, address) && left > 0; block++) {
      const found = blockAt(memory, address, block)
      const { minTs, maxTs } = blockTimes(memory, found)
      ranges.push({ lo: minTs, hi: maxTs })
      left -= blockRows(memory, found)
    }
  })
  return ranges
}

// Buckets -----------------------------------------------------------------------------------------------------------

/** What a view over this base reads and stores together. `levels`: its buckets, and those of the views that it reads. */
export function viewGrid(view: TableSchema, levels: readonly ViewBuckets[], base: TableSchema): BucketGrid {
  const { live } = view.materialized ?? {}
  if (live === undefined) return bucketGrid(levels, base)
  const below = levels.length === 0 ? null : bucketGrid(levels, base)
  return liveGrid(live.frames, view, below, (anchor) => gridOf(anchor, unitOf(base)))
}

/** The buckets of a view over this base, which contain those of the views that it reads. */
function bucketGrid(levels: readonly ViewBuckets[], base: TableSchema): BucketGrid {
  const unit = unitOf(base)
  const grids = levels.map((level) => gridOf(level, unit)).reverse()
  const [only, ...more] = grids
  return only !== undefined && more.length === 0 ? only : { whole: (range) => wholeOfAll(grids, range) }
}

function unitOf({ columns, timestampId }: TableSchema): TimestampUnit {
  return columns.find(({ id }) => id === timestampId)?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
}

const stepsMax = 64

/** Buckets of all grids: around a change of the UTC offset, the end of one may be within another. */
function wholeOfAll(grids: readonly BucketGrid[], range: TimeRange): TimeRange {
  let wider = range
  for (let step = 0; step < stepsMax; step++) {
    const next = grids.reduce((found, grid) => grid.whole(found), wider)
    if (next.lo === wider.lo && next.hi === wider.hi) return wider
    wider = next
  }
  return allOfTime
}

function gridOf({ interval, zone, offsetMicros }: ViewBuckets, unit: TimestampUnit): BucketGrid {
  const buckets = createBuckets({ align: { kind: 'calendar', zone, offsetMicros }, interval, from: null }, unit)
  return zone === null ? plainGrid(buckets) : zonedGrid(buckets, zone, unit)
}

function plainGrid(buckets: Buckets): BucketGrid {
  return {
    whole: ({ lo, hi }) => {
      const last = buckets.of(hi)
      return { lo: buckets.of(lo).start, hi: last.end - 1n }
    },
  }
}

/** No UTC offset changes so near to a boundary that a bucket could have rows on both sides of it. */
const calmDays = [-2, -1, 0, 1, 2]
const stepDays = 4n

function zonedGrid(buckets: Buckets, zoneName: string, unit: TimestampUnit): BucketGrid {
  const zone = timeZone(zoneName)
  const scale = ticksPerMicro(unit)
  const day = BigInt(microsPerDay) * scale
  const isCalm = (ts: bigint): boolean => {
    const offsets = calmDays.map((days) => zone?.offsetAt((ts + BigInt(days) * day) / scale))
    return new Set(offsets).size === 1
  }
  return {
    whole: ({ lo, hi }) => {
      let first = buckets.of(lo).start
      while (!isCalm(first)) first = buckets.of(first - stepDays * day).start
      let end = buckets.of(hi).end
      while (!isCalm(end)) end = buckets.of(end + stepDays * day).end
      return { lo: first, hi: end - 1n }
    },
  }
}
