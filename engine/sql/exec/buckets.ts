// Buckets of SAMPLE BY: which one holds a timestamp, and the next. Calendar alignment follows a zone's local time, shifted
// by an offset; FROM begins the grid; 'first' begins it at the first row.

import { assert } from '../../base/assert.js'
import { type TimestampUnit, ticksPerMicro } from '../../types/timestamp-calendar.js'
import { floorTimestamp, intervalTicks, nextBucket } from '../../types/timestamp-floor.js'
import { fromZone, type TimeZone, timeZone } from '../../types/timestamp-zone.js'
import type { Plan, SampleInterval } from '../plan/plan.js'

export type SamplePlan = Extract<Plan, { kind: 'sample' }>

/** Start inclusive, end exclusive, in ticks of the timestamp. */
export interface Bucket {
  readonly start: bigint
  readonly end: bigint
}

export interface Buckets {
  /** Ticks of each bucket where all are as long and leave no gaps; null: they follow the calendar, a zone, or the first row. */
  readonly step: bigint | null
  /** The bucket that holds the timestamp. With alignment 'first' the first call fixes the grid. */
  of(ts: bigint): Bucket
  next(bucket: Bucket): Bucket
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
  return zone === null ? local : zonedBuckets(local, zone, unit)
}

/** The calendar's own grid in UTC. */
export function calendarBuckets(interval: SampleInterval, unit: TimestampUnit): Buckets {
  return shiftedBuckets(interval, unit, 0n)
}

/** A grid that begins at a point in time; null: at the first timestamp that is asked for. */
function anchoredBuckets(anchor: bigint | null, interval: SampleInterval, unit: TimestampUnit): Buckets {
  let origin = anchor
  const from = (start: bigint): Bucket => ({ start, end: nextBucket(start, interval, unit) })
  const of = (ts: bigint): Bucket => {
    origin ??= ts
    return from(floorTimestamp(ts, interval, unit, origin))
  }
  return { step: anchor === null ? null : intervalTicks(interval, unit), of, next: ({ end }) => from(end) }
}

/** The calendar's own grid, moved by an offset. */
function shiftedBuckets(interval: SampleInterval, unit: TimestampUnit, offset: bigint): Buckets {
  const from = (start: bigint): Bucket => ({ start, end: nextBucket(start - offset, interval, unit) + offset })
  return {
    step: intervalTicks(interval, unit),
    of: (ts) => from(floorTimestamp(ts - offset, interval, unit) + offset),
    next: ({ end }) => from(end),
  }
}

/** Local buckets seen from UTC. Where local time is turned back, the repeated hour belongs to the bucket of its name. */
function zonedBuckets(local: Buckets, zone: TimeZone, unit: TimestampUnit): Buckets {
  const scale = ticksPerMicro(unit)
  const toLocal = (ts: bigint): bigint => ts + zone.offsetAt(floorMicros(ts, scale)) * scale
  const toUtc = (ts: bigint): bigint => {
    const micros = floorMicros(ts, scale)
    return fromZone(micros, zone) * scale + (ts - micros * scale)
  }
  const utc = ({ start, end }: Bucket): Bucket => ({ start: toUtc(start), end: toUtc(end) })
  return {
    step: null,
    of: (ts) => {
      const bucket = utc(local.of(toLocal(ts)))
      return ts >= bucket.start && ts < bucket.end ? bucket : { start: bucket.start, end: ts + 1n }
    },
    next: (bucket) => {
      const next = utc(local.of(toLocal(bucket.end)))
      return next.start >= bucket.end ? next : { start: bucket.end, end: next.end }
    },
  }
}

function floorMicros(ts: bigint, scale: bigint): bigint {
  const quotient = ts / scale
  return ts < 0n && quotient * scale !== ts ? quotient - 1n : quotient
}
