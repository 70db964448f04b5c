// Computes the time buckets of SAMPLE BY: the bucket of a timestamp, and the bucket after a given one. With ALIGN TO
// CALENDAR, buckets begin at round local times of a time zone, shifted by an offset; with ALIGN TO FIRST OBSERVATION,
// the first bucket begins at the first row. With FROM, one bucket begins at the given time, and all other buckets are
// aligned to that bucket.
//
// Around changes of the UTC offset, buckets shorter than a day behave like PostgreSQL's date_trunc(unit, timestamp,
// zone): a repeated hour has buckets of its own. Buckets of a day or more are identified by their local date.

import { assert } from '../../base/assert.js'
import type { Plan } from '../../sql/plan/plan.js'
import { microsPerDay, type TimestampUnit, ticksPerMicro } from '../../types/timestamp-calendar.js'
import { floorTimestamp, intervalTicks, nextBucket, type SampleInterval } from '../../types/timestamp-floor.js'
import { fromZone, type TimeZone, timeZone } from '../../types/timestamp-zone.js'

export type SamplePlan = Extract<Plan, { kind: 'sample' }>

/** The unit of the timestamps. */
export function unitOf({ columns }: SamplePlan): TimestampUnit {
  return columns[0]?.type.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
}

/** `start` inclusive, `end` exclusive, in ticks of the timestamp. */
export interface Bucket {
  readonly start: bigint
  readonly end: bigint
}

/**
 * The timestamps from `from` to before `end`, all in the bucket that begins at `start`. A bucket is one stretch, unless
 * the local time is turned back: then later timestamps belong to the same buckets again.
 */
export interface BucketRange extends Bucket {
  readonly from: bigint
}

export interface Buckets {
  /**
   * Ticks of a bucket if all buckets are equally long and without gaps; null if they depend on the calendar, a time
   * zone, or the first row.
   */
  readonly step: bigint | null
  /**
   * The stretch that contains the timestamp. With alignment to the first observation, the first call fixes the grid.
   */
  of(ts: bigint): BucketRange
  /** The bucket that begins next. */
  next(bucket: Bucket): BucketRange
  /** From this stretch on, the end of the last bucket that a later stretch repeats; null if none is repeated soon. */
  repeatedUntil(range: BucketRange): bigint | null
}

/** Buckets as group ids: the n-th bucket begins n steps after the origin. */
export interface BucketGrid {
  readonly origin: bigint
  readonly step: bigint
  readonly count: number
}

export function createBuckets(plan: Pick<SamplePlan, 'align' | 'interval' | 'from'>, unit: TimestampUnit): Buckets {
  const { align, interval, from } = plan
  if (align.kind === 'first') return anchoredBuckets(null, interval, unit)
  const zone = align.zone === null ? null : timeZone(align.zone)
  assert(align.zone === null || zone !== null, 'B1: the time zone of buckets is known')
  const scale = ticksPerMicro(unit)
  const offset = align.offsetMicros * scale
  const anchor = from === null || zone === null ? from : from + zone.offsetAt(floorMicros(from, scale)) * scale
  const local = anchor === null ? shiftedBuckets(interval, unit, offset) : anchoredBuckets(anchor, interval, unit)
  if (zone === null) return local
  const size = intervalTicks(interval, unit)
  const day = BigInt(microsPerDay) * scale
  return size !== null && size < day ? clockBuckets(local, zone, unit, size) : zonedBuckets(local, zone, unit)
}

/** The calendar grid in UTC. */
export function calendarBuckets(interval: SampleInterval, unit: TimestampUnit): Buckets {
  return shiftedBuckets(interval, unit, 0n)
}

/** A grid that begins at `anchor`; null: at the first timestamp that is looked up. */
function anchoredBuckets(anchor: bigint | null, interval: SampleInterval, unit: TimestampUnit): Buckets {
  let origin = anchor
  const from = (start: bigint): BucketRange => ({ start, end: nextBucket(start, interval, unit), from: start })
  const of = (ts: bigint): BucketRange => {
    origin ??= ts
    return from(floorTimestamp(ts, interval, unit, origin))
  }
  const step = anchor === null ? null : intervalTicks(interval, unit)
  return { step, of, next: ({ end }) => from(end), repeatedUntil: () => null }
}

/** The calendar grid, shifted by an offset. */
function shiftedBuckets(interval: SampleInterval, unit: TimestampUnit, offset: bigint): Buckets {
  const from = (start: bigint): BucketRange => {
    return { start, end: nextBucket(start - offset, interval, unit) + offset, from: start }
  }
  return {
    step: intervalTicks(interval, unit),
    of: (ts) => from(floorTimestamp(ts - offset, interval, unit) + offset),
    next: ({ end }) => from(end),
    repeatedUntil: () => null,
  }
}

/** The part of a local bucket during which the UTC offset is constant. */
interface ClockPart {
  /** Start of the local bucket, in local time. */
  readonly local: bigint
  readonly start: bigint
  readonly from: bigint
  readonly end: bigint
  /** The UTC offset changes at `end`, where the local bucket may continue. */
  readonly changes: boolean
}

/**
 * Buckets of local time, `size` ticks long and shorter than a day, as UTC. The start of a bucket is computed with the
 * UTC offset of its rows, so starts ascend and a repeated hour has buckets of its own. A bucket continues after a
 * change of the offset if its start would not come after the previous one, or, for buckets longer than an hour, if it
 * is still the same local bucket.
 */
function clockBuckets(local: Buckets, zone: TimeZone, unit: TimestampUnit, size: bigint): Buckets {
  const scale = ticksPerMicro(unit)
  const isLong = size > BigInt(microsPerDay / 24) * scale
  const offsetAt = (ts: bigint): bigint => zone.offsetAt(floorMicros(ts, scale)) * scale
  const partAt = (ts: bigint): ClockPart => {
    const offset = offsetAt(ts)
    const cell = local.of(ts + offset)
    const [first, last] = [cell.start - offset, cell.end - offset - 1n]
    const end = offsetAt(last) === offset ? last + 1n : changeBefore(last, ts, offsetAt)
    const from = offsetAt(first) === offset ? first : changeBefore(ts, first, offsetAt)
    return { local: cell.start, start: first, from, end, changes: offsetAt(end) !== offset }
  }
  const startOf = (part: ClockPart): Pick<ClockPart, 'start' | 'from'> => {
    if (part.start >= part.from) return part
    const interrupted = partAt(part.from - 1n)
    const before = startOf(interrupted)
    const goesOn = isLong ? interrupted.local === part.local : part.start <= before.start
    if (goesOn) return before
    return isLong ? { start: part.from, from: part.from } : part
  }
  const of = (ts: bigint): BucketRange => {
    let part = partAt(ts)
    const { start, from } = startOf(part)
    while (part.changes) {
      const after = partAt(part.end)
      if (startOf(after).start !== start) break
      part = after
    }
    return { start, end: part.end, from }
  }
  return { step: null, of, next: ({ end }) => of(end), repeatedUntil: () => null }
}

/**
 * Local days, weeks, months and years as UTC. If local time is turned back across midnight, the repeated time belongs
 * to the buckets of its local date. A bucket that would begin within a skipped hour begins after it.
 */
function zonedBuckets(local: Buckets, zone: TimeZone, unit: TimestampUnit): Buckets {
  const scale = ticksPerMicro(unit)
  const day = BigInt(microsPerDay) * scale
  const offsetAt = (ts: bigint): bigint => zone.offsetAt(floorMicros(ts, scale)) * scale
  const startOf = (name: bigint): bigint => {
    const micros = floorMicros(name, scale)
    const ts = fromZone(micros, zone) * scale + (name - micros * scale)
    return ts + offsetAt(ts) === name ? ts : changeBefore(ts, ts - day, offsetAt)
  }
  const of = (ts: bigint): BucketRange => {
    const offset = offsetAt(ts)
    const { start, end } = local.of(ts + offset)
    const [first, last] = [start - offset, end - offset - 1n]
    return {
      start: startOf(start),
      end: offsetAt(last) === offset ? end - offset : changeBefore(last, ts, offsetAt),
      from: offsetAt(first) === offset ? first : changeBefore(ts, first, offsetAt),
    }
  }
  return {
    step: null,
    of,
    next: ({ start }) => of(startOf(local.of(start + offsetAt(start)).end)),
    repeatedUntil: (range) => {
      const [offset, later] = [offsetAt(range.from), offsetAt(range.end + day)]
      if (later >= offset) return null
      const change = changeBefore(range.end + day, range.from, offsetAt)
      const bucket = local.of(range.from + offset)
      const after = change + offset
      if (bucket.end <= change + later || (bucket.start <= change + later && bucket.end >= after)) return null
      return of(after - later - 1n).end
    },
  }
}

/** The timestamp at which the UTC offset became what it is at `ts`; at `earlier` it was different. */
function changeBefore(ts: bigint, earlier: bigint, offsetAt: (ts: bigint) => bigint): bigint {
  const offset = offsetAt(ts)
  let [before, since] = [earlier, ts]
  while (since - before > 1n) {
    const middle = (before + since) >> 1n
    if (offsetAt(middle) === offset) since = middle
    else before = middle
  }
  return since
}

function floorMicros(ts: bigint, scale: bigint): bigint {
  const quotient = ts / scale
  return ts < 0n && quotient * scale !== ts ? quotient - 1n : quotient
}
