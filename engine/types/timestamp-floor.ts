// Computes time buckets: truncates a timestamp to n units, adds units to it, and counts the units between two
// timestamps. Units of fixed length are n (nanosecond), U (microsecond), T (millisecond), s, m (minute), h, d and w;
// months (M) and years (y) follow the calendar. Buckets are counted from 1970-01-01, weeks from Monday 1969-12-29,
// unless the caller gives another origin. Time zones are not handled here: callers convert to local time first.

import {
  addMonths,
  civilFromDays,
  daysFromCivil,
  floorDivide,
  floorModulo,
  partsOf,
  type TimestampUnit,
  ticksOfDays,
  ticksPerDay,
  ticksPerMicro,
} from './timestamp-calendar.js'

/** Units of SAMPLE BY: n U T s m h d w M y (nanoseconds to years). */
export interface SampleInterval {
  readonly count: number
  readonly unit: 'n' | 'U' | 'T' | 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y'
}

export type TimeUnit = SampleInterval['unit']

/** The first Monday before the epoch, in days. */
const firstMonday = -3

const microsPerUnit: Partial<Record<TimeUnit, bigint>> = {
  U: 1n,
  T: 1000n,
  s: 1_000_000n,
  m: 60_000_000n,
  h: 3_600_000_000n,
  d: 86_400_000_000n,
  w: 604_800_000_000n,
}

/** Ticks of one unit of fixed length, at least one; null for months and years. */
export function ticksPerUnit(unit: TimeUnit, timestamps: TimestampUnit): bigint | null {
  if (unit === 'n') return 1n
  const micros = microsPerUnit[unit]
  return micros === undefined ? null : micros * ticksPerMicro(timestamps)
}

/** Hours and less: durations that are independent of calendar and daylight saving time. */
export function isClockUnit(unit: TimeUnit): boolean {
  const ticks = ticksPerUnit(unit, 'TIMESTAMP_NS')
  return ticks !== null && ticks < ticksPerDay('TIMESTAMP_NS')
}

/** Ticks of an interval of fixed length. Nanoseconds below the resolution count as one tick. */
export function intervalTicks(interval: SampleInterval, timestamps: TimestampUnit): bigint | null {
  if (interval.unit === 'n' && timestamps === 'TIMESTAMP') {
    const ticks = BigInt(interval.count) / 1000n
    return ticks < 1n ? 1n : ticks
  }
  const unit = ticksPerUnit(interval.unit, timestamps)
  return unit === null ? null : unit * BigInt(interval.count)
}

/** Start of the bucket that contains the timestamp. `origin` shifts the grid of fixed units. */
export function floorTimestamp(
  ticks: bigint,
  interval: SampleInterval,
  timestamps: TimestampUnit,
  origin = 0n,
): bigint {
  const size = intervalTicks(interval, timestamps)
  if (size === null) return floorCalendar(ticks, interval, timestamps, origin)
  const base = interval.unit === 'w' && origin === 0n ? ticksOfDays(firstMonday, timestamps) : origin
  return base + floorDivide(ticks - base, size) * size
}

function floorCalendar(
  ticks: bigint,
  { count, unit }: SampleInterval,
  timestamps: TimestampUnit,
  origin: bigint,
): bigint {
  if (origin !== 0n) return floorFromOrigin(ticks, count * (unit === 'y' ? 12 : 1), timestamps, origin)
  const days = Number(floorDivide(ticks, ticksPerDay(timestamps)))
  const { year, month } = civilFromDays(days)
  if (unit === 'y')
    return ticksOfDays(daysFromCivil(1970 + Math.floor((year - 1970) / count) * count, 1, 1), timestamps)
  const index = Math.floor(((year - 1970) * 12 + month - 1) / count) * count
  const startYear = 1970 + Math.floor(index / 12)
  return ticksOfDays(daysFromCivil(startYear, index - (startYear - 1970) * 12 + 1, 1), timestamps)
}

function floorFromOrigin(ticks: bigint, months: number, timestamps: TimestampUnit, origin: bigint): bigint {
  const from = partsOf(origin, timestamps)
  const to = partsOf(ticks, timestamps)
  const distance = (to.year - from.year) * 12 + to.month - from.month
  let steps = Math.floor(distance / months)
  while (addMonths(origin, steps * months, timestamps) > ticks) steps--
  while (addMonths(origin, (steps + 1) * months, timestamps) <= ticks) steps++
  return addMonths(origin, steps * months, timestamps)
}

/** Start of the next bucket after the bucket that starts at `start`. */
export function nextBucket(start: bigint, interval: SampleInterval, timestamps: TimestampUnit): bigint {
  const size = intervalTicks(interval, timestamps)
  return size === null ? addUnits(start, interval.unit, interval.count, timestamps) : start + size
}

/** Adds units; months keep the day of the month where possible. */
export function addUnits(ticks: bigint, unit: TimeUnit, count: number, timestamps: TimestampUnit): bigint {
  if (unit === 'M') return addMonths(ticks, count, timestamps)
  if (unit === 'y') return addMonths(ticks, count * 12, timestamps)
  if (unit === 'n' && timestamps === 'TIMESTAMP') return ticks + BigInt(count) / 1000n
  return ticks + (ticksPerUnit(unit, timestamps) ?? 0n) * BigInt(count)
}

/** Absolute number of whole units between two timestamps. */
export function unitsBetween(left: bigint, right: bigint, unit: TimeUnit, timestamps: TimestampUnit): bigint {
  const [early, late] = left <= right ? [left, right] : [right, left]
  if (unit === 'M' || unit === 'y') {
    const months = monthsBetween(early, late, timestamps)
    return BigInt(unit === 'M' ? months : Math.trunc(months / 12))
  }
  if (unit === 'n' && timestamps === 'TIMESTAMP') return (late - early) * 1000n
  return (late - early) / (ticksPerUnit(unit, timestamps) ?? 1n)
}

function monthsBetween(early: bigint, late: bigint, timestamps: TimestampUnit): number {
  const from = partsOf(early, timestamps)
  const to = partsOf(late, timestamps)
  const months = (to.year - from.year) * 12 + to.month - from.month
  const restFrom = BigInt(from.day) * ticksPerDay(timestamps) + floorModulo(early, ticksPerDay(timestamps))
  const restTo = BigInt(to.day) * ticksPerDay(timestamps) + floorModulo(late, ticksPerDay(timestamps))
  return restTo < restFrom ? months - 1 : months
}

/** Parses `5m`, `h`, `1d`; null when it is not an interval. */
export function parseSampleInterval(text: string): SampleInterval | null {
  const match = /^(\d*)([nUuTsmhdwMy])$/.exec(text)
  if (match === null) return null
  const [, digits, suffix] = match
  const count = digits === '' || digits === undefined ? 1 : Number(digits)
  const unit = suffix === 'u' ? 'U' : suffix
  if (count < 1 || count > 2_147_483_647 || !isTimeUnit(unit)) return null
  return { count, unit }
}

const truncUnits: Readonly<Record<string, SampleInterval>> = {
  nanosecond: { count: 1, unit: 'n' },
  microsecond: { count: 1, unit: 'U' },
  millisecond: { count: 1, unit: 'T' },
  second: { count: 1, unit: 's' },
  minute: { count: 1, unit: 'm' },
  hour: { count: 1, unit: 'h' },
  day: { count: 1, unit: 'd' },
  week: { count: 1, unit: 'w' },
  month: { count: 1, unit: 'M' },
  quarter: { count: 3, unit: 'M' },
  year: { count: 1, unit: 'y' },
}

/** The interval of a unit of date_trunc(), singular or plural; null for units of several years and unknown ones. */
export function truncInterval(name: string): SampleInterval | null {
  return truncUnits[name.toLowerCase().replace(/s$/, '')] ?? null
}

export function isTimeUnit(unit: string | undefined): unit is TimeUnit {
  return unit !== undefined && unit.length === 1 && 'nUTsmhdwMy'.includes(unit)
}
