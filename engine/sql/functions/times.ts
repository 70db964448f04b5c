// SQL functions on timestamps: fields, tests of the day, truncation, arithmetic, time zones. Parameters declared as TIME
// accept timestamps in microseconds and in nanoseconds; a result that is a timestamp has the unit of the argument.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { castValue } from '../../types/convert.js'
import { longOrNull } from '../../types/number.js'
import {
  daysFromCivil,
  daysInMonth,
  floorDivide,
  floorModulo,
  isLeapYear,
  isoDayOfWeek,
  isoWeek,
  partsOf,
  type TimestampParts,
  type TimestampUnit,
  ticksOfDays,
  ticksPerMicro,
} from '../../types/timestamp-calendar.js'
import {
  addUnits,
  floorTimestamp,
  isClockUnit,
  isTimeUnit,
  nextBucket,
  parseSampleInterval,
  type TimeUnit,
  truncInterval,
  unitsBetween,
} from '../../types/timestamp-floor.js'
import { fromZone, parseOffset, timeZone, toZone } from '../../types/timestamp-zone.js'
import type { Value } from '../../types/value.js'
import { dateaddColumn } from './column/times.js'
import { type BoundArgument, type CallSite, isNullConstant, type ScalarFunction } from './function-types.js'

const sample = "'2024-03-31T13:45:30.123456Z'::timestamp"

/** A function that tests the day of a timestamp. `shown`: its result for the sample. */
function partTest(
  name: string,
  description: string,
  test: (parts: TimestampParts) => boolean,
  shown = true,
): ScalarFunction {
  return {
    name,
    takes: ['TIME'],
    gives: 'BOOLEAN',
    description,
    example: [`${name}(${sample})`, String(shown)],
    eval: ([ts]: readonly [bigint], site) =>
      test(partsOf(ts, site.argTypes[0]?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP')),
  }
}

function isMonthEnd({ year, month, day }: TimestampParts): boolean {
  return day === daysInMonth(year, month)
}

const dayTests: readonly ScalarFunction[] = [
  partTest('is_leap_year', 'Whether the year has 366 days.', ({ year }) => isLeapYear(year)),
  partTest('is_end_of_month', 'Whether the day is the last one of its month.', isMonthEnd),
  partTest(
    'is_end_of_quarter',
    'Whether the day is the last one of its quarter.',
    (p) => p.month % 3 === 0 && isMonthEnd(p),
  ),
  partTest('is_end_of_year', 'Whether the day is December 31.', ({ month, day }) => month === 12 && day === 31, false),
  partTest('is_start_of_month', 'Whether the day is the first one of its month.', ({ day }) => day === 1, false),
  partTest(
    'is_start_of_quarter',
    'Whether the day is the first one of its quarter.',
    (p) => p.month % 3 === 1 && p.day === 1,
    false,
  ),
  partTest('is_start_of_year', 'Whether the day is January 1.', ({ month, day }) => month === 1 && day === 1, false),
]

function unitOf(site: CallSite, index: number): TimestampUnit {
  return site.argTypes[index]?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
}

/** A function that returns a field of a timestamp. The result is constant within one `unit`. */
function partRow(
  name: string,
  description: string,
  shown: string,
  part: (parts: TimestampParts) => number,
  unit?: TimeUnit,
): ScalarFunction {
  return {
    name,
    takes: ['TIME'],
    gives: 'INT',
    description,
    example: [`${name}(${sample})`, shown],
    eval: ([ts]: readonly [bigint], site) => part(partsOf(ts, unitOf(site, 0))),
    ...(unit === undefined ? {} : { constantWithin: () => ({ count: 1, unit }) }),
  }
}

const parts: ScalarFunction[] = [
  partRow('year', 'Year.', '2024', (p) => p.year, 'y'),
  partRow('quarter', 'Quarter of the year, 1 to 4.', '1', (p) => Math.ceil(p.month / 3), 'M'),
  partRow('month', 'Month, 1 to 12.', '3', (p) => p.month, 'M'),
  partRow('day', 'Day of the month.', '31', (p) => p.day, 'd'),
  partRow('hour', 'Hour of the day.', '13', (p) => p.hour, 'h'),
  partRow('minute', 'Minute of the hour.', '45', (p) => p.minute, 'm'),
  partRow('second', 'Second of the minute.', '30', (p) => p.second, 's'),
  partRow('millis', 'Milliseconds of the second.', '123', (p) => Math.floor(p.nanos / 1e6)),
  partRow('micros', 'Microseconds of the millisecond.', '456', (p) => Math.floor(p.nanos / 1e3) % 1000),
  partRow('nanos', 'Nanoseconds of the microsecond.', '0', (p) => p.nanos % 1000),
  partRow('day_of_week', 'Day of the week, Monday is 1.', '7', (p) => isoDayOfWeek(p.days), 'd'),
  partRow('day_of_week_sunday_first', 'Day of the week, Sunday is 1.', '1', (p) => (isoDayOfWeek(p.days) % 7) + 1, 'd'),
  partRow('days_in_month', 'Number of days in the month.', '31', (p) => daysInMonth(p.year, p.month), 'M'),
  partRow('week_of_year', 'ISO week.', '13', (p) => isoWeek(p.days).week, 'd'),
  ...dayTests,
]

// extract(part from ts) ---------------------------------------------------------------------------------------------

const extracts: Record<string, (p: TimestampParts) => number> = {
  century: (p) => Math.ceil(p.year / 100),
  day: (p) => p.day,
  decade: (p) => Math.floor(p.year / 10),
  dow: (p) => isoDayOfWeek(p.days) % 7,
  doy: (p) => p.days - daysFromCivil(p.year, 1, 1) + 1,
  hour: (p) => p.hour,
  isodow: (p) => isoDayOfWeek(p.days),
  isoyear: (p) => isoWeek(p.days).year,
  microseconds: (p) => Math.floor(p.nanos / 1000) % 1_000_000,
  millennium: (p) => Math.ceil(p.year / 1000),
  milliseconds: (p) => Math.floor(p.nanos / 1e6),
  minute: (p) => p.minute,
  month: (p) => p.month,
  nanoseconds: (p) => p.nanos,
  quarter: (p) => Math.ceil(p.month / 3),
  second: (p) => p.second,
  // Timestamps are in UTC.
  timezone: () => 0,
  timezone_hour: () => 0,
  timezone_minute: () => 0,
  week: (p) => isoWeek(p.days).week,
  year: (p) => p.year,
}

/** The unit within which a field is constant. Smaller fields change too often to be worth it. */
const extractUnits: Readonly<Record<string, TimeUnit>> = {
  century: 'y',
  day: 'd',
  decade: 'y',
  dow: 'd',
  doy: 'd',
  hour: 'h',
  isodow: 'd',
  isoyear: 'd',
  millennium: 'y',
  minute: 'm',
  month: 'M',
  quarter: 'M',
  second: 's',
  week: 'd',
  year: 'y',
}

function constantText(argument: BoundArgument | undefined): string | undefined {
  return typeof argument?.constant === 'string' && !argument.described ? argument.constant : undefined
}

/** `days` is `day`, as in PostgreSQL. */
export function partNamed(text: string): string {
  return text.toLowerCase().replace(/^(year|month|week|day|hour|minute|second|decade)s$/, '$1')
}

function extractName(name: string): ScalarFunction {
  return {
    name,
    takes: ['TEXT', 'TIME'],
    gives: (args) => dataType(partNamed(constantText(args[0]) ?? '') === 'epoch' ? 'LONG' : 'INT'),
    description: 'A field of a timestamp: year, month, day, hour, minute, second, week, dow, doy, epoch, ...',
    example: name === 'extract' ? [`extract(year from ${sample})`, '2024'] : [`date_part('hour', ${sample})`, '13'],
    check: (args) => {
      const written = constantText(args[0])?.toLowerCase()
      const part = written === undefined ? undefined : partNamed(written)
      if (part !== undefined && part !== 'epoch' && extracts[part] === undefined) {
        throw new SqlError(`unsupported timestamp part: ${written}`, args[0]?.position ?? 0)
      }
    },
    eval: ([part, ts]: readonly [Value, bigint], site) => {
      const unit = unitOf(site, 1)
      const wanted = partNamed(String(part))
      if (wanted === 'epoch') return ts / (ticksPerMicro(unit) * 1_000_000n)
      return extracts[wanted]?.(partsOf(ts, unit)) ?? null
    },
    constantWithin: ([part]) => {
      const unit = typeof part === 'string' ? extractUnits[partNamed(part)] : undefined
      return unit === undefined ? null : { count: 1, unit }
    },
  }
}

// Rounding ----------------------------------------------------------------------------------------------------------

/** Units of several years: length, and the year at which counting starts. Centuries and millennia start with year 1. */
const truncYears: Record<string, readonly [number, number]> = {
  decade: [10, 0],
  century: [100, 1],
  millennium: [1000, 1],
}

/** Whether date_trunc() truncates to a unit of the clock, that is, hours or less. */
export function truncatesClock(name: string): boolean {
  const interval = truncInterval(name)
  return interval !== null && isClockUnit(interval.unit)
}

/** The truncated timestamp; null for an unknown unit. */
export function dateTrunc(name: string, ticks: bigint, unit: TimestampUnit): bigint | null {
  const interval = truncInterval(name)
  if (interval !== null) return floorTimestamp(ticks, interval, unit)
  const years = truncYears[name === 'centuries' ? 'century' : name.replace(/s$/, '')]
  if (years === undefined) return null
  const { year } = partsOf(ticks, unit)
  const [length, first] = years
  return ticksOfDays(daysFromCivil(Math.floor((year - first) / length) * length + first, 1, 1), unit)
}

function checkInterval(args: readonly BoundArgument[]): void {
  const text = isNullConstant(args[0]) ? 'null' : constantText(args[0])
  // Only dateadd() accepts the unit `u`.
  if (text !== undefined && (parseSampleInterval(text) === null || text.endsWith('u')))
    throw new SqlError(args.length > 2 ? `Invalid unit: ${text}` : `invalid unit '${text}'`, args[0]?.position ?? 0)
}

/**
 * The row of date_bin() or its like: scope/interval-shift.ts turns widths into microseconds and adds missing origins.
 */
function binRow(name: string, origin: string): ScalarFunction {
  return {
    name,
    takes: ['LONG', 'TIME', 'TIME'],
    gives: (args) => args[1]?.type ?? dataType('TIMESTAMP'),
    description: `Start of the bucket that contains the timestamp. The width is an interval (\`${name}('5 minutes', ts, origin)\`) or microseconds. ${origin}`,
    example: [`${name}('15 minutes', ${sample}, '2001-01-01T00:05:00Z')`, '2024-03-31T13:35:00.000000Z'],
    eval: ([stride, ts, origin]: readonly [bigint, bigint, bigint], site) => {
      const unit = unitOf(site, 1)
      const length = stride * ticksPerMicro(unit)
      if (length <= 0n) throw new SqlError('stride must be greater than zero', site.position)
      const from = castValue(origin, site.argTypes[2] ?? dataType(unit), dataType(unit)) as bigint
      return ts - floorModulo(ts - from, length)
    },
  }
}

const rounding: ScalarFunction[] = [
  {
    name: 'date_trunc',
    takes: ['TEXT', 'TIME'],
    gives: (args) => args[1]?.type ?? dataType('TIMESTAMP'),
    description: 'Truncates a timestamp to a unit: hour, day, week, month, quarter, year, decade, century, ...',
    example: [`date_trunc('month', ${sample})`, '2024-03-01T00:00:00.000000Z'],
    check: (args) => {
      const text = isNullConstant(args[0]) ? 'null' : constantText(args[0])
      if (text !== undefined && dateTrunc(text.toLowerCase(), 0n, 'TIMESTAMP') === null) {
        throw new SqlError(`invalid unit '${text}'`, args[0]?.position ?? 0)
      }
    },
    eval: ([part, ts]: readonly [Value, bigint], site) => dateTrunc(String(part).toLowerCase(), ts, unitOf(site, 1)),
    constantWithin: ([part]) => (typeof part === 'string' ? truncInterval(part) : null),
  },
  {
    ...floorRow(['TEXT', 'TIME'], (text, ts, _rest, unit) => floorBy(text, ts, unit, null)),
    constantWithin: ([text]) => (typeof text === 'string' ? parseSampleInterval(text) : null),
  },
  floorRow(['TEXT', 'TIME', 'TIME'], (text, ts, [origin], unit) => floorBy(text, ts, unit, origin as bigint | null)),
  floorRow(['TEXT', 'TIME', 'TIME', 'TEXT', 'TEXT'], (text, ts, rest, unit) => floorInZone(text, ts, rest, unit)),
  binRow('date_bin', 'Without an origin, buckets are counted from 1970-01-01.'),
  binRow(
    'time_bucket',
    'Without an origin, buckets are counted from Monday, 2000-01-03; those of months from 2000-01-01.',
  ),
  {
    name: 'timestamp_ceil',
    takes: ['TEXT', 'TIME'],
    gives: (args) => args[1]?.type ?? dataType('TIMESTAMP'),
    description: 'Start of the next bucket.',
    example: [`timestamp_ceil('h', ${sample})`, '2024-03-31T14:00:00.000000Z'],
    check: checkInterval,
    eval: ([text, ts]: readonly [Value, bigint], site) => {
      const interval = parseSampleInterval(String(text))
      if (interval === null) return null
      const unit = unitOf(site, 1)
      const start = floorTimestamp(ts, interval, unit)
      return start === ts ? start : nextBucket(start, interval, unit)
    },
  },
]

function checkFloor(args: readonly BoundArgument[]): void {
  checkInterval(args)
  const [offset, zone] = [constantText(args[3]), constantText(args[4])]
  if (offset !== undefined && parseOffset(offset) === null)
    throw new SqlError(`invalid offset: ${offset}`, args[3]?.position ?? 0)
  if (zone !== undefined && timeZone(zone) === null)
    throw new SqlError(`invalid timezone: ${zone}`, args[4]?.position ?? 0)
}

type FloorRest = (text: string, ts: bigint, rest: readonly Value[], unit: TimestampUnit) => bigint | null

function floorRow(takes: ScalarFunction['takes'], apply: FloorRest): ScalarFunction {
  return {
    name: 'timestamp_floor',
    takes,
    gives: (args) => args[1]?.type ?? dataType('TIMESTAMP'),
    description:
      'Start of the bucket (`5m`, `1h`, `d`, `M`) that contains the timestamp, counted from an origin; with a zone, in local time.',
    example: takes.length === 2 ? [`timestamp_floor('5m', ${sample})`, '2024-03-31T13:45:00.000000Z'] : null,
    check: checkFloor,
    seesNull: true,
    eval: ([text, ts, origin = null, ...rest], site) => {
      if (typeof text !== 'string' || typeof ts !== 'bigint') return null
      const unit = unitOf(site, 1)
      const from = origin === null ? null : castValue(origin, site.argTypes[2] ?? dataType(unit), dataType(unit))
      return apply(text, ts, [from, ...rest], unit)
    },
  }
}

/** Recorded behaviour: timestamps before the origin belong to the bucket that begins at it. */
function floorBy(text: string, ts: bigint, unit: TimestampUnit, origin: bigint | null): bigint | null {
  const interval = parseSampleInterval(text)
  if (interval === null) return null
  return origin !== null && ts < origin ? origin : floorTimestamp(ts, interval, unit, origin ?? 0n)
}

function floorInZone(
  text: string,
  ts: bigint,
  [origin, offset, zoneName]: readonly Value[],
  unit: TimestampUnit,
): bigint | null {
  const zone = typeof zoneName === 'string' ? timeZone(zoneName) : timeZone('UTC')
  const shift = typeof offset === 'string' ? parseOffset(offset) : 0n
  if (zone === null || shift === null) return null
  const scale = ticksPerMicro(unit)
  const sub = floorModulo(ts, scale)
  const local = (toZone((ts - sub) / scale, zone) - shift) * scale + sub
  const start = floorBy(text, local, unit, origin as bigint | null)
  return start === null ? null : start + shift * scale
}

// Arithmetic --------------------------------------------------------------------------------------------------------

const arithmetic: ScalarFunction[] = [
  {
    name: 'present_time',
    takes: ['TIME'],
    gives: 'FIRST',
    description: 'The timestamp, or an error if it is NULL; implements `(query) timestamp(ts)`.',
    example: null,
    seesNull: true,
    eval: ([ts = null], { position }) => {
      if (ts === null) throw new SqlError('a designated timestamp cannot be NULL', position)
      return ts
    },
  },
  {
    name: 'dateadd',
    takes: ['CHAR', 'INT', 'TIME'],
    gives: (args) => args[2]?.type ?? dataType('TIMESTAMP'),
    description: 'Adds a number of units (n u T s m h d w M y).',
    example: [`dateadd('M', 1, ${sample})`, '2024-04-30T13:45:30.123456Z'],
    check: ([unit, stride]) => {
      checkUnit(unit)
      if (isNullConstant(stride)) throw new SqlError('`null` is not a valid stride', stride?.position ?? 0)
    },
    eval: ([code, count, ts]: readonly [Value, number, bigint], site) => {
      const unit = unitOfCode(String(code))
      return isTimeUnit(unit) ? addUnits(ts, unit, count, unitOf(site, 2)) : null
    },
    column: dateaddColumn,
  },
  {
    name: 'dateadd',
    takes: ['CHAR', 'INT', 'TIME', 'TEXT'],
    gives: (args) => args[2]?.type ?? dataType('TIMESTAMP'),
    description: 'Adds a number of units in the calendar of a time zone.',
    example: null,
    check: (args) => {
      checkUnit(args[0])
      checkZone(args[3])
    },
    eval: ([code, count, ts, zoneName]: readonly [Value, number, bigint, Value], site) => {
      const unit = unitOfCode(String(code))
      const zone = timeZone(String(zoneName))
      if (!isTimeUnit(unit) || zone === null) return null
      const resolution = unitOf(site, 2)
      const scale = ticksPerMicro(resolution)
      const ticks = ts
      // Hours and smaller units have a fixed length, which time zones do not change.
      if (isClockUnit(unit)) return addUnits(ticks, unit, count, resolution)
      const local = ticks + zone.offsetAt(floorDivide(ticks, scale)) * scale
      const moved = addUnits(local, unit, count, resolution)
      // Out of range, which is an error, so there is no zone offset.
      if (longOrNull(moved) === null) return moved
      const micros = floorDivide(moved, scale)
      return fromZone(micros, zone) * scale + (moved - micros * scale)
    },
  },
  {
    name: 'datediff',
    takes: ['CHAR', 'TIME', 'TIME'],
    gives: ([unit, ...times]) =>
      isTimeUnit(diffUnitOfCode(constantText(unit) ?? 's'))
        ? dataType('LONG')
        : finestTime(times.map(({ type }) => type)),
    description: 'Whole units between two timestamps, without sign.',
    example: [`datediff('h', '2024-01-01'::timestamp, ${sample})`, '2173'],
    eval: ([code, a, b], site) => {
      const unit = diffUnitOfCode(String(code))
      const times = site.argTypes.slice(1)
      const finest = finestTime(times)
      const [start, end] = [a, b].map((value, index) => castValue(value ?? null, times[index] ?? finest, finest))
      if (!isTimeUnit(unit) || typeof start !== 'bigint' || typeof end !== 'bigint') return null
      return unitsBetween(start, end, unit, finest.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP')
    },
    total: true,
  },
]

/** The type that keeps all digits of both. */
function finestTime(types: readonly DataType[]): DataType {
  return dataType(types.some(({ name }) => name === 'TIMESTAMP_NS') ? 'TIMESTAMP_NS' : 'TIMESTAMP')
}

function checkUnit(argument: BoundArgument | undefined): void {
  const unit = constantText(argument)
  if (unit === undefined || isTimeUnit(unitOfCode(unit))) return
  throw new SqlError(`invalid time period [unit=${unit}]`, argument?.position ?? 0)
}

function checkZone(argument: BoundArgument | undefined): void {
  if (isNullConstant(argument)) throw new SqlError('timezone must not be null', argument?.position ?? 0)
  const zone = constantText(argument)
  if (zone !== undefined && timeZone(zone) === null)
    throw new SqlError(`invalid timezone: ${zone}`, argument?.position ?? 0)
}

function unitOfCode(text: string): string {
  return text === 'H' ? 'h' : diffUnitOfCode(text)
}

function diffUnitOfCode(text: string): string {
  return text === 'u' ? 'U' : text
}

// Zones -------------------------------------------------------------------------------------------------------------

function zoneRow(name: 'to_timezone' | 'to_utc', description: string, shown: string): ScalarFunction {
  const move = name === 'to_timezone' ? toZone : fromZone
  return {
    name,
    takes: ['TIME', 'TEXT'],
    gives: 'FIRST',
    description,
    example: [`${name}(${sample}, 'Europe/Berlin')`, shown],
    check: (args) => checkZone(args[1]),
    eval: ([ts, name]: readonly [bigint, Value], site) => {
      const zone = timeZone(String(name))
      if (zone === null) return null
      const scale = ticksPerMicro(unitOf(site, 0))
      const rest = floorModulo(ts, scale)
      return move((ts - rest) / scale, zone) * scale + rest
    },
  }
}

const zones: ScalarFunction[] = [
  zoneRow('to_timezone', 'Converts UTC to the local time of a zone.', '2024-03-31T15:45:30.123456Z'),
  zoneRow('to_utc', 'Converts the local time of a zone to UTC.', '2024-03-31T11:45:30.123456Z'),
]

export const timeFunctions: readonly ScalarFunction[] = [
  ...parts,
  extractName('extract'),
  extractName('date_part'),
  ...rounding,
  ...arithmetic,
  ...zones,
]
