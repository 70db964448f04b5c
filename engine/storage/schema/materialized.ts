// The additional members of a table's schema if the table is a materialized view: the view's definition, and the list
// of its stored buckets. A bucket is a time interval of the view's SAMPLE BY query; it is stored if the view's table
// has its rows.
//
// A bucket is listed as stored together with the parts (Parquet files) of the base table over which it was computed.
// Parts are immutable, apart from rows that upserts remove, and their ids are never reused. So a reader can decide from
// its snapshot alone, by comparing the parts of the base table then and now, which stored buckets are still correct:
// those that overlap no part that was added or removed since, and no rows in memtables of the base table. It computes
// the other buckets from the base table. Writers of the base table need not report anything.
//
// Invariants:
//   1. A bucket is listed only if no memtable of the base table had rows in it in the snapshot that it was computed
//      from, because a row in a memtable may disappear (TRUNCATE) without a change of the parts.
//   2. Rows of the view are replaced only in buckets that are not listed. So after a crash in between, readers compute
//      the bucket, and the view's rows for it do not matter.
//   3. A change of `columns` removes all buckets from the list, because the columns of the base table have another
//      meaning.

export interface MaterializedSchema {
  /** Text of the view's query. */
  readonly sql: string
  readonly baseId: number
  readonly baseName: string
  /** WITH BASE was written. */
  readonly withBase?: true
  readonly refresh: RefreshStrategy
  /** Automatic and incremental refreshes leave older buckets alone; null for no limit. */
  readonly limit: { readonly value: number; readonly unit: 'HOUR' | 'DAY' | 'WEEK' | 'MONTH' | 'YEAR' } | null
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
  readonly ranges: readonly (readonly [string, string])[]
  /** The parts of the base: [id, smallest timestamp, largest timestamp]. */
  readonly parts: readonly (readonly [number, string, string])[]
}
