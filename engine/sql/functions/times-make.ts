// SQL functions of PostgreSQL that build dates, timestamps and times of day from their fields (make_date(),
// make_timestamp(), ..) or compute the time between two timestamps in years, months, days and time of day (age()). Also
// date(), and date_trunc() with a time zone.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType, dateKinds, textKinds, timeKinds } from '../../types/column-types.js'
import {
  daysFromCivil,
  daysInMonth,
  floorDivide,
  partsOf,
  type TimestampUnit,
  ticksPerMicro,
} from '../../types/timestamp-calendar.js'
import { fromZone, timeZone, toZone } from '../../types/timestamp-zone.js'
import type { Value } from '../../types/value.js'
import type { CallSite, ScalarFunction } from './function-types.js'
import { dateTrunc, truncatesClock } from './times.js'

const dayMicros = 86_400_000_000n

const day = (): DataType => dataType('DATE', dateKinds.day)
const timeOfDay = (): DataType => dataType('STRING', textKinds.time)
const zoned = (): DataType => dataType('TIMESTAMP', timeKinds.zoned)

// Building from fields ----------------------------------------------------------------------------------------------

function daysOf([year, month, dayOfMonth]: readonly Value[]): number {
  const [y, m, d] = [Number(year), Number(month), Number(dayOfMonth)]
  const isDay = y !== 0 && Math.abs(y) <= 290_000 && m >= 1 && m <= 12 && d >= 1
  const civil = y < 0 ? y + 1 : y
  if (!isDay || d > daysInMonth(civil, m)) throw new SqlError(`date field value out of range: ${y}-${m}-${d}`, 0)
  return daysFromCivil(civil, m, d)
}

function microsOfDay([hour, minute, second]: readonly Value[]): bigint {
  const [h, m, s] = [Number(hour), Number(minute), Number(second)]
  const micros = BigInt(h * 3600 + m * 60) * 1_000_000n + BigInt(Math.round(s * 1e6))
  const isTime = h >= 0 && h <= 24 && m >= 0 && m < 60 && s >= 0 && s <= 60 && micros <= dayMicros
  if (!isTime) throw new SqlError(`time field value out of range: ${h}:${m}:${s}`, 0)
  return micros
}

function microsOf(args: readonly Value[]): bigint {
  return BigInt(daysOf(args)) * dayMicros + microsOfDay(args.slice(3))
}

function zoneNamed(name: Value | undefined): NonNullable<ReturnType<typeof timeZone>> {
  const zone = timeZone(String(name))
  if (zone === null) throw new SqlError(`invalid timezone: ${String(name)}`, 0)
  return zone
}

const two = (number: bigint): string => String(number).padStart(2, '0')

/** `14:07:09.5` */
function clockText(micros: bigint): string {
  const seconds = micros / 1_000_000n
  const fraction = String(micros % 1_000_000n)
    .padStart(6, '0')
    .replace(/0+$/, '')
  const clock = `${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}`
  return fraction === '' ? clock : `${clock}.${fraction}`
}

const dateParts = ['INT', 'INT', 'INT'] as const
const clockParts = ['INT', 'INT', 'DOUBLE'] as const

// Ages --------------------------------------------------------------------------------------------------------------

export interface Age {
  readonly months: number
  readonly days: number
  readonly micros: bigint
}

function unitOf({ argTypes }: CallSite, index: number): TimestampUnit {
  return argTypes[index]?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
}

function microsAt(ticks: Value | undefined, site: CallSite, index: number): bigint {
  if (site.argTypes[index]?.name === 'DATE') return (ticks as bigint) * 1000n
  return floorDivide(ticks as bigint, ticksPerMicro(unitOf(site, index)))
}

/**
 * The difference in whole calendar months, then days, then time of day. Days are those of the month of the earlier
 * timestamp.
 */
function ageBetween(later: bigint, earlier: bigint): Age {
  if (later < earlier) {
    const { months, days, micros } = ageBetween(earlier, later)
    return { months: -months, days: -days, micros: -micros }
  }
  const [to, from] = [partsOf(later, 'TIMESTAMP'), partsOf(earlier, 'TIMESTAMP')]
  let micros = later - BigInt(to.days) * dayMicros - (earlier - BigInt(from.days) * dayMicros)
  let days = to.day - from.day
  let months = (to.year - from.year) * 12 + to.month - from.month
  if (micros < 0n) {
    micros += dayMicros
    days--
  }
  if (days < 0) {
    days += daysInMonth(from.year, from.month)
    months--
  }
  return { months, days, micros }
}

/** The format in which PostgreSQL prints an interval: `1 year 2 mons 4 days 12:00:00`. */
export function ageText({ months, days, micros }: Age): string {
  const [years, rest] = [Math.trunc(months / 12), months % 12]
  const counted = (count: number, unit: string): string[] =>
    count === 0 ? [] : [`${count} ${unit}${count === 1 ? '' : 's'}`]
  const words = [...counted(years, 'year'), ...counted(rest, 'mon'), ...counted(days, 'day')]
  if (micros === 0n && words.length > 0) return words.join(' ')
  return [...words, micros < 0n ? `-${clockText(-micros)}` : clockText(micros)].join(' ')
}

const ageParts: Readonly<Record<string, (age: Age) => number>> = {
  year: ({ months }) => Math.trunc(months / 12),
  month: ({ months }) => months % 12,
  quarter: ({ months }) => Math.trunc((months % 12) / 3) + 1,
  day: ({ days }) => days,
  hour: ({ micros }) => Number(micros / 3_600_000_000n),
  minute: ({ micros }) => Number((micros / 60_000_000n) % 60n),
  second: ({ micros }) => Number(micros % 60_000_000n) / 1e6,
  // PostgreSQL counts 365.25 days a year and 30 days a month.
  epoch: ({ months, days, micros }) =>
    Math.trunc(months / 12) * 31_557_600 + (months % 12) * 2_592_000 + days * 86_400 + Number(micros) / 1e6,
}

function ageOf([later, earlier]: readonly Value[], site: CallSite, at = 0): Age {
  return ageBetween(microsAt(later, site, at), microsAt(earlier, site, at + 1))
}

// Functions ---------------------------------------------------------------------------------------------------------

const made: readonly ScalarFunction[] = [
  {
    name: 'make_date',
    takes: dateParts,
    gives: day,
    description: 'A date from year, month and day.',
    example: ['make_date(2024, 3, 5)', '2024-03-05'],
    eval: (args) => BigInt(daysOf(args)) * 86_400_000n,
  },
  {
    name: 'make_time',
    takes: clockParts,
    gives: timeOfDay,
    description: 'A time of day from hour, minute and seconds.',
    example: ['make_time(14, 7, 9.5)', '14:07:09.5'],
    eval: (args) => clockText(microsOfDay(args)),
  },
  {
    name: 'make_timestamp',
    takes: [...dateParts, ...clockParts],
    gives: 'TIMESTAMP',
    description: 'A timestamp from year, month, day, hour, minute and seconds.',
    example: ['make_timestamp(2024, 3, 5, 14, 7, 9.5)', '2024-03-05T14:07:09.500000Z'],
    eval: microsOf,
  },
  {
    name: 'make_timestamptz',
    takes: [...dateParts, ...clockParts],
    gives: zoned,
    description: 'The same as a timestamp with time zone, UTC.',
    example: ['make_timestamptz(2024, 3, 5, 14, 7, 9.5)', '2024-03-05T14:07:09.500000Z'],
    eval: microsOf,
  },
  {
    name: 'make_timestamptz',
    takes: [...dateParts, ...clockParts, 'TEXT'],
    gives: zoned,
    description: 'The same for the local time of a zone.',
    example: ["make_timestamptz(2024, 3, 5, 14, 7, 9.5, 'Europe/Berlin')", '2024-03-05T13:07:09.500000Z'],
    eval: (args) => fromZone(microsOf(args), zoneNamed(args[6])),
  },
]

const timestamps = ['TIME', 'DATE'] as const
const pairs = timestamps.flatMap((later) => timestamps.map((earlier) => [later, earlier] as const))

function agesOf(pair: readonly ['TIME' | 'DATE', 'TIME' | 'DATE'], index: number): ScalarFunction[] {
  const [later, earlier] = ["'2024-03-05T12:00:00Z'::timestamp", "'2023-01-01'::timestamp"]
  return [
    {
      name: 'age',
      takes: pair,
      gives: 'STRING',
      description: 'Years, months, days and time of day between two timestamps, as text.',
      example: index === 0 ? [`age(${later}, ${earlier})`, '1 year 2 mons 4 days 12:00:00'] : null,
      eval: (args, site) => ageText(ageOf(args, site)),
    },
    {
      name: 'age_part',
      takes: ['TEXT', ...pair],
      gives: 'DOUBLE',
      description: 'A field of the age; implements `extract(year from age(later, earlier))`.',
      example: index === 0 ? [`age_part('day', ${later}, ${earlier})`, '4.0'] : null,
      eval: ([part, ...times], site) => {
        const found = ageParts[String(part).toLowerCase()]
        if (found === undefined) throw new SqlError(`unsupported part of an age: ${String(part)}`, 0)
        return found(ageOf(times, site, 1))
      },
    },
  ]
}

const days = timestamps.map(
  (type): ScalarFunction => ({
    name: 'date',
    takes: [type],
    gives: day,
    description: 'The date of a timestamp.',
    example: type === 'TIME' ? ["date('2024-03-05T14:07:09Z'::timestamp)", '2024-03-05'] : null,
    eval: ([ts], site) => floorDivide(microsAt(ts, site, 0), dayMicros) * 86_400_000n,
  }),
)

export const timeMakers: readonly ScalarFunction[] = [
  ...made,
  ...days,
  {
    name: 'date_trunc',
    takes: ['TEXT', 'TIME', 'TEXT'],
    gives: (args) => args[1]?.type ?? dataType('TIMESTAMP'),
    description: 'Truncates a timestamp to a unit in the local time of a zone.',
    example: ["date_trunc('day', '2024-03-05T23:30:00Z'::timestamp, 'Europe/Berlin')", '2024-03-05T23:00:00.000000Z'],
    eval: ([part, ts, zoneName], site) => {
      const zone = zoneNamed(zoneName)
      const scale = ticksPerMicro(unitOf(site, 1))
      const micros = microsAt(ts, site, 1)
      const name = String(part).toLowerCase()
      const start = dateTrunc(name, toZone(micros, zone), 'TIMESTAMP')
      if (start === null) return null
      // As in PostgreSQL, units of hours and less keep the UTC offset of the timestamp, so that a repeated hour at the
      // end of DST stays distinct.
      return (truncatesClock(name) ? start - zone.offsetAt(micros) : fromZone(start, zone)) * scale
    },
  },
  ...pairs.flatMap(agesOf),
  ...timestamps.map(
    (type): ScalarFunction => ({
      name: 'age',
      takes: [type],
      gives: 'STRING',
      description: 'The age at the start of the current day.',
      example: null,
      volatility: 'statement',
      eval: ([ts], site) => {
        const { nowMicros } = site.context
        return ageText(ageBetween(floorDivide(nowMicros, dayMicros) * dayMicros, microsAt(ts, site, 0)))
      },
    }),
  ),
]
