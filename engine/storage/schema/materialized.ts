// The additional members of a table's schema if the table is a materialized view: the view's definition, and the list
// of its stored buckets. A bucket is a time interval of the view's SAMPLE BY query; it is stored if the view's table
// has its rows. A live view stores the result of window functions; its buckets are ranges of its rows.
//
// A bucket is listed as stored together with the parts (Parquet files) of the base table over which it was computed.
// Parts are immutable, apart from rows that upserts remove, and their ids are never reused. So a reader can decide from
// its snapshot alone, by comparing the parts of the base table then and now, which stored buckets are still correct:
// those that overlap no part that was added or removed since, and no rows in memtables of the base table. It computes
// the other buckets from the base table. Writers of the base table need not report anything; but compactions note which
// parts they have joined (merged-parts.ts), so that buckets stay correct.
//
// Invariants:
//   1. A bucket is listed only if no memtable of the base table had rows in it in the snapshot that it was computed
//      from, because a row in a memtable may disappear (TRUNCATE) without a change of the parts.
//   2. Rows of the view are replaced only in buckets that are not listed. So after a crash in between, readers compute
//      the bucket, and the view's rows for it do not matter.
//   3. A change of `columns` removes all buckets from the list, because the columns of the base table have another
//      meaning.
//   4. A bucket whose rows DROP PARTITION or a TTL removes from the base table is sealed: it is stored before, and the
//      manifest record that removes the partition notes in the base table's schema that the bucket is read as stored
//      from then on (SealedBuckets), whatever the parts say. TRUNCATE of the base table ends that.
//   5. A sealed bucket has the rows of the base up to a transaction (LateBound). Rows are added to it in the log record
//      that also moves this transaction on (StoredBuckets.addedTo), so a replay adds each of them once. No part has rows
//      of a sealed bucket from both sides of this transaction: compactions do not join such parts (mixesLate), and
//      UPDATE and DELETE keep the transactions of the parts that they rewrite.

import { allOfTime, normalise } from '../../types/interval.js'

export interface MaterializedSchema {
  /** Text of the view's query. */
  readonly sql: string
  readonly baseId: number
  readonly baseName: string
  /** WITH BASE was written. */
  readonly withBase?: true
  readonly refresh: RefreshStrategy
  /** Which hidden columns the view has: engine/sql/plan/view-states.ts. Absent in views of earlier versions: 1. */
  readonly stateRule?: 2 | 3 | 4
  /** Automatic and incremental refreshes leave older buckets alone; null for no limit. */
  readonly limit: { readonly value: number; readonly unit: 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR' } | null
  /** Set for a live view, which has a row for each row of its base. */
  readonly live?: LiveSchema
}

/** A live view stores the result of window functions. What is said of buckets holds for ranges of its rows. */
export interface LiveSchema {
  /** As written, such as `1s`. */
  readonly flushEvery: string
  readonly inMemory: string | null
  /** The timestamp of START FROM in the unit of the base; null for BEGINNING. */
  readonly start: string | null
  /** FROM and WHERE of the query. */
  readonly source: string
  readonly frames: LiveFrames
}

const lengthMicros = { ms: 1000, s: 1_000_000, m: 60_000_000, h: 3_600_000_000, d: 86_400_000_000 } as const

/** Of `100ms`, `5s`, `1m`. */
export function liveLengthMicros(text: string): number {
  const [, digits = '0', unit = 's'] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? []
  return Number(digits) * (Object.entries(lengthMicros).find(([name]) => name === unit)?.[1] ?? 0)
}

/** How far the window functions of a live view look back. */
export interface LiveFrames {
  /** The longest frame of RANGE, in units of the designated timestamp. */
  readonly ticks: string
  /** The longest frame of ROWS, or offset of lag(), in rows of a partition. */
  readonly rows: number
  /** The columns by which windows of ROWS and lag() are partitioned. */
  readonly keys: readonly (readonly string[])[]
  /** Anchored windows begin again at the boundaries of these buckets. */
  readonly anchors: readonly StoredGrid[]
}

interface TimeLength {
  readonly count: number
  readonly unit: 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'
}

/** When buckets are stored. It never decides what a query returns. */
export interface RefreshStrategy {
  readonly kind: 'immediate' | 'manual' | 'timer'
  /** The first refresh is not made at CREATE. */
  readonly deferred: boolean
  /** Of a timer; null otherwise. */
  readonly every: TimeLength | null
  /** Microseconds since the epoch at which the timer begins; null for the epoch. */
  readonly startMicros: number | null
  readonly timeZone: string | null
  /** Only buckets of periods that are over are stored. `length: null`: the period is the view's own bucket. */
  readonly period: {
    readonly length: TimeLength | null
    readonly timeZone: string | null
    readonly delay: TimeLength | null
  } | null
}

/** Numbers of 64 bits are strings, because schemas are stored as JSON. */
export interface StoredBuckets {
  /** Number of changes of this object, which count as versions of the schema but not as statements. */
  readonly changes: number
  /** When the last refresh began and ended, in microseconds since the epoch. */
  readonly startMicros: number
  readonly finishMicros: number
  /** Set if the log does not sync commits: what is listed is valid in this process only. */
  readonly process?: string
  /** What the view's query reads of the base's schema: see engine/views/view-sides.ts. */
  readonly columns: string
  /** Time ranges [first, last] of whole buckets. */
  readonly ranges: readonly StoredRange[]
  /** The parts of the base: [id, smallest timestamp, largest timestamp]. */
  readonly parts: readonly (readonly [number, string, string])[]
  /**
   * The buckets of the view, and of the views that it reads, for when its query does not bind any more. Absent in
   * records of earlier versions.
   */
  readonly grid?: readonly StoredGrid[]
  /** By the TTL of the view, buckets that start earlier are no longer in it. */
  readonly expired?: string
  /** Of a view over views: their sealed buckets, and what had expired, when the buckets were stored. */
  readonly between?: readonly (readonly [sealed: readonly StoredRange[], expired: string | null])[]
  /** Of a view over views: where sealed buckets of these have got late rows, or left them out, since. Absent: nowhere. */
  readonly outdated?: readonly StoredRange[]
  /**
   * Of a live view with frames of ROWS: to compute rows from the timestamp `at` on, rows of the base from `from` on are
   * enough. In order of time.
   */
  readonly marks?: readonly (readonly [at: string, from: string])[]
  /** Rows of the base up to this transaction are in the sealed buckets, or were left out of them. */
  readonly addedTo?: number
  /** How many rows were left out of sealed buckets. */
  readonly omitted?: number
  /** Ranges with all buckets that have a state of values that is not kept. There may be other buckets in them. */
  readonly unkept?: readonly StoredRange[]
}

type StoredRange = readonly [first: string, last: string]

interface StoredGrid {
  readonly interval: { readonly count: number; readonly unit: 'n' | 'U' | 'T' | TimeLength['unit'] }
  readonly zone: string | null
  readonly offsetMicros: string
}

/** Buckets of one view of the table that outlive the rows from which they were computed. */
export interface SealedBuckets {
  readonly viewId: number
  /** Time ranges of whole buckets, and the table's last transaction whose rows are in them. */
  readonly ranges: readonly (readonly [first: string, last: string, transaction: number])[]
  /**
   * Later rows are added. Absent of live views, of views whose aggregates do not combine, and in records of earlier
   * versions: later rows are left out, and have come after the last of the ranges was sealed.
   */
  readonly adds?: true
  /** How many statements (UPDATE, DELETE) have rewritten parts with rows in these ranges. */
  readonly changes?: number
  /** Rows of partitions that have come back after their buckets were sealed without them: they stay left out. */
  readonly attached?: number
}

/** A request to seal buckets together with the removal of partitions. */
export interface Sealing {
  readonly views: readonly {
    readonly viewId: number
    readonly ranges: readonly StoredRange[]
    /** Its aggregates combine, so later rows can be added. */
    readonly adds: boolean
    /** Of a live view, where it loses rows: with `asOf`, it is sealed up to there in any case. */
    readonly least?: string
  }[]
  /** Times of the rows on which these buckets depend: of a live view, also earlier ones. */
  readonly needed: readonly StoredRange[]
  /**
   * The parts with rows at these times, or of the partitions that are removed, when the buckets were stored, and how many
   * rows upserts had removed.
   */
  readonly parts: readonly (readonly [id: number, removed: number])[]
  /** The version of the base table that the views have read. */
  readonly version: number
  /**
   * Rows of later transactions are late rows, and parts with such rows stay. Absent: there must be none with these
   * times, and the buckets have the rows up to the last transaction.
   */
  readonly asOf?: number
  /** Views that cannot add rows to their sealed buckets now: what the partitions have of such rows is left out. */
  readonly losing: readonly number[]
}

export interface BucketRange {
  readonly lo: bigint
  readonly hi: bigint
}

/** The buckets of the view that are read as stored whatever the base table has. */
export function sealedRanges(
  { sealed = [] }: { readonly sealed?: readonly SealedBuckets[] },
  view: number,
): BucketRange[] {
  const own = sealed.find(({ viewId }) => viewId === view)
  return normalise(own?.ranges.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) })) ?? [])
}

/** Whether rows can be added to sealed buckets of the view, if the table has no DEDUP keys. */
export function addsToSealed({ sealed = [] }: { readonly sealed?: readonly SealedBuckets[] }, view: number): boolean {
  return sealed.some(({ viewId, adds }) => viewId === view && adds === true)
}

/** Whole buckets, with all that have a state of values that is not kept: no rows can be added to these. */
export function unkeptRanges(stored: StoredBuckets | undefined): BucketRange[] {
  return normalise(stored?.unkept?.map(([lo, hi]) => ({ lo: BigInt(lo), hi: BigInt(hi) })) ?? [])
}

/** What the TTL of the view has left. */
export function keptRange({ stored }: { readonly stored?: StoredBuckets }): BucketRange {
  return stored?.expired === undefined ? allOfTime : { lo: BigInt(stored.expired), hi: allOfTime.hi }
}

/** Sealed buckets, which have the rows of the base up to the transaction and lack later ones. */
export interface LateBound extends BucketRange {
  readonly transaction: number
}

interface PartExtent {
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly maxTxn: number
}

export function lateBounds(
  { sealed = [] }: { readonly sealed?: readonly SealedBuckets[] },
  { id, stored }: { readonly id: number; readonly stored?: StoredBuckets },
): LateBound[] {
  const own = sealed.find(({ viewId }) => viewId === id)
  if (own === undefined) return []
  const all = own.adds === true ? [] : own.ranges.map(([, , transaction]) => transaction)
  const least = Math.max(stored?.addedTo ?? 0, ...all)
  return own.ranges.map(([lo, hi, transaction]) => ({
    ...{ lo: BigInt(lo), hi: BigInt(hi), transaction: Math.max(least, transaction) },
  }))
}

/** Transactions of the table up to which sealed buckets have its rows: later rows are those of later transactions. */
export function sealedTransactions(
  { sealed = [] }: { readonly sealed?: readonly SealedBuckets[] },
  schemaOf: (viewId: number) => { readonly stored?: StoredBuckets } | undefined,
): number[] {
  return sealed.flatMap(({ viewId, ranges }) => [
    ...ranges.map(([, , transaction]) => transaction),
    schemaOf(viewId)?.stored?.addedTo ?? 0,
  ])
}

/** Whether the part may have rows that sealed buckets lack. */
export function isLate(bounds: readonly LateBound[], part: PartExtent): boolean {
  return bounds.some((bound) => overlaps(bound, part) && part.maxTxn > bound.transaction)
}

/** Whether sealed buckets may have rows of some of the parts and lack rows of others. */
export function mixesLate(bounds: readonly LateBound[], parts: readonly PartExtent[]): boolean {
  return bounds.some((bound) => {
    if (!parts.some((part) => overlaps(bound, part))) return false
    const late = parts.filter(({ maxTxn }) => maxTxn > bound.transaction).length
    return late > 0 && late < parts.length
  })
}

/** Whether the part may have rows in the range. */
export function overlaps({ lo, hi }: BucketRange, { minTs, maxTs }: Pick<PartExtent, 'minTs' | 'maxTs'>): boolean {
  return minTs <= hi && lo <= maxTs
}
