// Buckets of SAMPLE BY: which one holds a timestamp, and the next. Calendar alignment follows a zone's local time, shifted
// by an offset; FROM begins the grid; 'first' begins it at the first row.
//
// Where a zone's clocks are changed, buckets shorter than a day follow PostgreSQL's date_trunc(unit, timestamp, zone): the
// hour that clocks repeat has buckets of its own. Buckets of days and more are named by their local date alone.

import { assert } from '../../base/assert.js'
import type { Plan, SampleInterval } from '../../sql/plan/plan.js'
import { microsPerDay, type TimestampUnit, ticksPerMicro } from '../../types/timestamp-calendar.js'
import { floorTimestamp, intervalTicks, nextBucket } from '../../types/timestamp-floor.js'
import { fromZone, type TimeZone, timeZone } from '../../types/timestamp-zone.js'

export type SamplePlan = Extract<Plan, { kind: 'sample' }>

/** Start inclusive, end exclusive, in ticks of the timestamp. */
export interface Bucket {
  readonly start: bigint
  readonly end: bigint
}

/**
 * Times from `from` until before `end`, all of which belong to the bucket that begins at `start`. A bucket is one stretch,
 * but where a zone's local time jumps: turned back, it comes to the same buckets a second time.
 */
export interface Stretch extends Bucket {
  readonly from: bigint
}

export interface Buckets {
  /** Ticks of each bucket where all are as long and leave no gaps; null: they follow the calendar, a zone, or the first row. */
  readonly step: bigint | null
  /** The stretch that holds the timestamp. With alignment 'first' the first call fixes the grid. */
  of(ts: bigint): Stretch
  /** The bucket that begins next. */
  next(bucket: Bucket): Stretch
  /** Where the last one of the buckets ends that a later stretch comes back to, from this one on; null: none does soon. */
  repeatedUntil(stretch: Stretch): bigint | null
}

/** Buckets as groups: the n-th begins n steps behind the origin. */
export interface BucketGrid {
  readonly origin: bigint
  readonly step: bigint
  readonly count: number
}

export function createBuckets(plan: SamplePlan, unit: TimestampUnit): Buckets {
  const { align, interval, from } = plan
  if (align.kind === 'first') return anchoredBuckets(null, interval, unit)
  const zone = align.zone === null ? null : timeZone(align.zone)
  assert(align.zone === null || zone !== null, 'the binder checks the time zone')
  const scale = ticksPerMicro(unit)
  const offset = align.offsetMicros * scale
  const anchor = from === null || zone === null ? from : from + zone.offsetAt(floorMicros(from, scale)) * scale
  const local = anchor === null ? shiftedBuckets(interval, unit, offset) : anchoredBuckets(anchor, interval, unit)
  if (zone === null) return local
  const size = intervalTicks(interval, unit)
  const day = BigInt(microsPerDay) * scale
  return size !== null && size < day ? clockBuckets(local, zone, unit, size) : zonedBuckets(local, zone, unit)
}

/** The calendar's own grid in UTC. */
export function calendarBuckets(interval: SampleInterval, unit: TimestampUnit): Buckets {
  return shiftedBuckets(interval, unit, 0n)
}

/** A grid that begins at a point in time; null: at the first timestamp that is asked for. */
function anchoredBuckets(anchor: bigint | null, interval: SampleInterval, unit: TimestampUnit): Buckets {
  let origin = anchor
  const from = (start: bigint): Stretch => ({ start, end: nextBucket(start, interval, unit), from: start })
  const of = (ts: bigint): Stretch => {
    origin ??= ts
    return from(floorTimestamp(ts, interval, unit, origin))
  }
  const step = anchor === null ? null : intervalTicks(interval, unit)
  return { step, of, next: ({ end }) => from(end), repeatedUntil: () => null }
}

/** The calendar's own grid, moved by an offset. */
function shiftedBuckets(interval: SampleInterval, unit: TimestampUnit, offset: bigint): Buckets {
  const from = (start: bigint): Stretch => {
    return { start, end: nextBucket(start - offset, interval, unit) + offset, from: start }
  }
  return {
    step: intervalTicks(interval, unit),
    of: (ts) => from(floorTimestamp(ts - offset, interval, unit) + offset),
    next: ({ end }) => from(end),
    repeatedUntil: () => null,
  }
}

/** The times of one local bucket under one offset. */
interface ClockPart {
  /** Where the local bucket begins, in local time. */
  readonly local: bigint
  readonly start: bigint
  readonly from: bigint
  readonly end: bigint
  /** The offset changes at `end`, where the local bucket may go on. */
  readonly changes: boolean
}

/**
 * Local buckets of `size` ticks, less than a day, seen from UTC. A bucket begins where its local time would begin under the
 * offset that holds for its rows, so that starts ascend and a repeated hour has buckets of its own. A bucket goes on behind
 * a change of the offset where its start would not come behind the last one, or, of more than an hour, where the clocks
 * still show it.
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
  const of = (ts: bigint): Stretch => {
    let part = partAt(ts)
    const { start, from } = startOf(part)
    while (part.changes) {
      const behind = partAt(part.end)
      if (startOf(behind).start !== start) break
      part = behind
    }
    return { start, end: part.end, from }
  }
  return { step: null, of, next: ({ end }) => of(end), repeatedUntil: () => null }
}

/**
 * Local days, weeks, months and years seen from UTC. Where local time is turned back over midnight, the repeated time
 * belongs to the buckets of its name; one that begins in an hour that is left out begins with the hour behind it.
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
  const of = (ts: bigint): Stretch => {
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
    repeatedUntil: (stretch) => {
      const [offset, later] = [offsetAt(stretch.from), offsetAt(stretch.end + day)]
      if (later >= offset) return null
      const change = changeBefore(stretch.end + day, stretch.from, offsetAt)
      const bucket = local.of(stretch.from + offset)
      const behind = change + offset
      if (bucket.end <= change + later || (bucket.start <= change + later && bucket.end >= behind)) return null
      return of(behind - later - 1n).end
    },
  }
}

/** When the offset became what it is at a time; at an earlier one it was another. */
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
