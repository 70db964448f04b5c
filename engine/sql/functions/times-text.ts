// SQL functions: parsing and formatting of timestamps, the clock (now(), today(), ..), time intervals, and timestamp
// sequences.

import { SqlError } from '../../base/errors.js'
import { dataType, isZoned, textKinds } from '../../types/column-types.js'
import { formatByPgPattern } from '../../types/pg-time-pattern.js'
import { parseByEitherPattern } from '../../types/pg-time-reading.js'
import { timeOfDayProblem, writtenTimeOfDay } from '../../types/time-of-day.js'
import { parseTimestamp } from '../../types/timestamp.js'
import { floorDivide, microsPerDay, type TimestampUnit, ticksPerDay } from '../../types/timestamp-calendar.js'
import { constantUnit, formatByPattern, parseByPattern } from '../../types/timestamp-pattern.js'
import { fromZone, timeZone, toZone } from '../../types/timestamp-zone.js'
import type { IntervalValue, Value } from '../../types/value.js'
import { type BoundArgument, type CallSite, isNullConstant, type ScalarFunction } from './function-types.js'

function parseRows(name: string, unit: TimestampUnit): ScalarFunction[] {
  return [
    {
      name,
      takes: ['TEXT'],
      gives: unit,
      description: 'Parses the standard format, or a number in the unit of the type; NULL for other text.',
      example: null,
      eval: ([text]) => timeOfText(String(text), unit),
    },
    {
      name,
      takes: ['TEXT', 'TEXT'],
      gives: unit,
      description:
        "Parses text by a pattern, also one of PostgreSQL ('YYYY-MM-DD HH24:MI:SS'); NULL for text that does not match.",
      example:
        unit === 'TIMESTAMP'
          ? ["to_timestamp('02/01/2024 13:14', 'dd/MM/yyyy HH:mm')", '2024-01-02T13:14:00.000000Z']
          : null,
      eval: ([text, pattern]) => parseByEitherPattern(String(text), unit, String(pattern)),
    },
  ]
}

function timeOfText(text: string, unit: TimestampUnit): bigint | null {
  return parseTimestamp(text, unit) ?? countedTime(text)
}

/** The end of year 9999, the last one with four digits. */
const secondsMax = 253_402_300_800

function secondsTime(text: string): bigint | null {
  if (!/^\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*$/.test(text)) return null
  return Math.abs(Number(text)) < secondsMax ? BigInt(Math.round(Number(text) * 1e6)) : null
}

const reading: ScalarFunction[] = [
  ...parseRows('to_timestamp', 'TIMESTAMP'),
  ...parseRows('to_timestamp_ns', 'TIMESTAMP_NS'),
  {
    name: 'to_timestamp',
    takes: ['DOUBLE'],
    gives: 'TIMESTAMP',
    description: 'The timestamp of seconds since the epoch; NULL out of range.',
    example: ['to_timestamp(1704067200.5)', '2024-01-01T00:00:00.500000Z'],
    eval: ([seconds]) => {
      const micros = Math.round(Number(seconds) * 1e6)
      return Math.abs(micros) < 2 ** 63 ? BigInt(micros) : null
    },
  },
  {
    name: 'to_timestamp_of',
    takes: ['TEXT'],
    gives: 'TIMESTAMP',
    description:
      'The timestamp of seconds since the epoch, or of text that to_timestamp() parses; implements `to_timestamp($1)` with a string for clients of PostgreSQL.',
    example: ["to_timestamp_of('1704067200.5')", '2024-01-01T00:00:00.500000Z'],
    eval: ([text]) => secondsTime(String(text)) ?? timeOfText(String(text), 'TIMESTAMP'),
  },
  {
    name: 'to_date',
    takes: ['TEXT', 'TEXT'],
    gives: 'DATE',
    description:
      "Parses text by a pattern, also one of PostgreSQL ('YYYY-MM-DD HH24:MI:SS'); NULL for text that does not match.",
    example: ["to_date('2024-01-02', 'yyyy-MM-dd')", '2024-01-02T00:00:00.000Z'],
    eval: ([text, pattern]) => {
      const micros = parseByEitherPattern(String(text), 'TIMESTAMP', String(pattern))
      return micros === null ? null : floorDivide(micros, 1000n)
    },
  },
  {
    name: 'to_pg_date',
    takes: ['TEXT'],
    gives: 'DATE',
    description: 'Parses a date of the format yyyy-MM-dd; NULL for other text.',
    example: ["to_pg_date('2024-01-02')", '2024-01-02T00:00:00.000Z'],
    eval: ([text]) => {
      const micros = parseByPattern(String(text), 'TIMESTAMP', 'yyyy-MM-dd')
      return micros === null ? null : floorDivide(micros, 1000n)
    },
  },
]

const printing: ScalarFunction[] = [
  {
    name: 'to_str',
    takes: ['TIME', 'TEXT'],
    gives: 'STRING',
    description: 'Formats a timestamp by a pattern.',
    example: ["to_str('2024-03-31T13:45:30Z'::timestamp, 'yyyy-MM-dd HH:mm:ss')", '2024-03-31 13:45:30'],
    check: checkFormat,
    eval: ([ts, pattern]: readonly [bigint, Value], site) =>
      formatByPattern(ts, site.argTypes[0]?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP', String(pattern)),
    constantWithin: ([, pattern]) => {
      const unit = typeof pattern === 'string' ? constantUnit(pattern) : undefined
      return unit === undefined ? null : { count: 1, unit }
    },
  },
  {
    name: 'to_str',
    takes: ['DATE', 'TEXT'],
    gives: 'STRING',
    description: 'Formats a date by a pattern.',
    example: null,
    check: checkFormat,
    eval: ([date, pattern]: readonly [bigint, Value]) => formatByPattern(date * 1000n, 'TIMESTAMP', String(pattern)),
  },
]

const pgPrinting = (['TIME', 'DATE'] as const).map(
  (type): ScalarFunction => ({
    name: 'to_char',
    takes: [type, 'TEXT'],
    gives: 'STRING',
    description: 'Formats a timestamp by a pattern of PostgreSQL.',
    example:
      type === 'TIME'
        ? ["to_char('2024-03-01T13:45:30Z'::timestamp, 'FMDay, DD Mon HH12:MI AM')", 'Friday, 01 Mar 01:45 PM']
        : null,
    eval: ([ts, pattern]: readonly [bigint, Value], { argTypes }) => {
      const [timed] = argTypes
      const ticks = timed?.name === 'DATE' ? ts * 1000n : ts
      const unit = timed?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
      return formatByPgPattern(ticks, unit, String(pattern), timed !== undefined && isZoned(timed))
    },
  }),
)

const timesOfDay = (['TIME', 'DATE'] as const).map(
  (type): ScalarFunction => ({
    name: 'time',
    takes: [type],
    gives: () => dataType('STRING', textKinds.time),
    description: "The time of day in the format of PostgreSQL's type time.",
    example: type === 'TIME' ? ["time('2024-03-01T13:45:30.250Z'::timestamp)", '13:45:30.25'] : null,
    eval: ([ts]: readonly [bigint], { argTypes }) => {
      const ticks = type === 'DATE' ? ts * 1000n : ts
      const unit = argTypes[0]?.name === 'TIMESTAMP_NS' ? 'TIMESTAMP_NS' : 'TIMESTAMP'
      return formatByPattern(ticks, unit, 'HH:mm:ss.SSSUUU').replace(/\.?0+$/, '')
    },
  }),
)

const writtenTimes: ScalarFunction[] = [
  {
    name: 'time',
    takes: ['TEXT'],
    gives: () => dataType('STRING', textKinds.time),
    description: 'Parses a time of day and normalises its format, so that equal times are equal strings.',
    example: ["time('9:30')", '09:30:00'],
    eval: ([text], { position }) => {
      const time = writtenTimeOfDay(String(text))
      if (time === null) throw new SqlError(timeOfDayProblem(String(text)), position)
      return time
    },
  },
]

/** A string of four digits has been parsed as a year before. */
function countedTime(text: string): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const count = BigInt(text)
  return BigInt.asIntN(64, count) === count ? count : null
}

function checkFormat([, pattern]: readonly BoundArgument[]): void {
  if (isNullConstant(pattern)) throw new SqlError('format must not be null', pattern?.position ?? 0)
}

// The clock ---------------------------------------------------------------------------------------------------------

function clockRow(name: string, gives: 'TIMESTAMP' | 'TIMESTAMP_NS' | 'DATE', statement: boolean): ScalarFunction {
  return {
    name,
    takes: [],
    gives,
    description: statement ? 'The time at which the statement started.' : 'The time of the call.',
    example: null,
    volatility: statement ? 'statement' : 'row',
    eval: (_args, { context }) => {
      const micros = statement ? context.nowMicros : context.clockMicros()
      return gives === 'DATE' ? floorDivide(micros, 1000n) : gives === 'TIMESTAMP' ? micros : micros * 1000n
    },
  }
}

/** `current_timestamp(3)`: with that many digits of the second. */
function clockWithDigits(name: string): ScalarFunction {
  return {
    name,
    takes: ['INT'],
    gives: 'TIMESTAMP',
    description: 'The time at which the statement started, with a given number of digits of the second.',
    example: null,
    volatility: 'statement',
    eval: ([digits], { context }) => {
      const size = 10n ** BigInt(6 - Math.min(6, Math.max(0, Number(digits))))
      return floorDivide(context.nowMicros, size) * size
    },
  }
}

function dayRows(name: string, offset: number): ScalarFunction[] {
  const row = (takes: ScalarFunction['takes']): ScalarFunction => ({
    name,
    takes,
    gives: 'INTERVAL',
    description: 'The whole day as an interval, in UTC or a time zone; NULL for an unknown zone.',
    example: null,
    seesNull: true,
    volatility: 'statement',
    eval: ([zone], site) => dayInterval(offset, zone, site),
  })
  return [row([]), row(['TEXT'])]
}

function dayInterval(offset: number, zoneName: Value | undefined, { context }: CallSite): IntervalValue | null {
  const zone = timeZone(typeof zoneName === 'string' ? zoneName : 'UTC')
  if (zone === null) return null
  const perDay = ticksPerDay('TIMESTAMP')
  const start = (floorDivide(toZone(context.nowMicros, zone), perDay) + BigInt(offset)) * perDay
  return { lo: fromZone(start, zone), hi: fromZone(start + BigInt(microsPerDay), zone) - 1n }
}

const clock: ScalarFunction[] = [
  clockRow('now', 'TIMESTAMP', true),
  clockRow('now_ns', 'TIMESTAMP_NS', true),
  clockRow('current_timestamp', 'TIMESTAMP', true),
  clockRow('statement_timestamp', 'TIMESTAMP', true),
  clockRow('transaction_timestamp', 'TIMESTAMP', true),
  clockRow('clock_timestamp', 'TIMESTAMP', false),
  clockRow('systimestamp', 'TIMESTAMP', false),
  clockRow('systimestamp_ns', 'TIMESTAMP_NS', false),
  clockRow('sysdate', 'DATE', false),
  clockWithDigits('current_timestamp'),
  clockWithDigits('localtimestamp'),
  ...dayRows('today', 0),
  ...dayRows('yesterday', -1),
  ...dayRows('tomorrow', 1),
]

// Intervals and sequences -------------------------------------------------------------------------------------------

const intervals: ScalarFunction[] = [
  {
    name: 'interval',
    takes: ['TIMESTAMP', 'TIMESTAMP'],
    gives: 'INTERVAL',
    description: 'The interval between two timestamps, both inclusive.',
    example: null,
    eval: ([lo, hi]: readonly [bigint, bigint], { position }) => {
      if (lo > hi) throw new SqlError('invalid interval boundaries', position)
      return { lo: lo, hi: hi }
    },
  },
  {
    name: 'interval_start',
    takes: ['INTERVAL'],
    gives: 'TIMESTAMP',
    description: 'Start of an interval.',
    example: ["interval_start(interval('2024-01-01', '2024-01-02'))", '2024-01-01T00:00:00.000000Z'],
    eval: ([interval]: readonly [IntervalValue]) => interval.lo,
  },
  {
    name: 'interval_end',
    takes: ['INTERVAL'],
    gives: 'TIMESTAMP',
    description: 'End of an interval.',
    example: ["interval_end(interval('2024-01-01', '2024-01-02'))", '2024-01-02T00:00:00.000000Z'],
    eval: ([interval]: readonly [IntervalValue]) => interval.hi,
  },
]

function sequenceRow(name: string, unit: TimestampUnit): ScalarFunction {
  return {
    name,
    takes: [unit, 'LONG'],
    gives: dataType(unit).name,
    description: 'Timestamps that increase by a step from row to row.',
    example: null,
    volatility: 'row',
    eval: ([start, step]: readonly [bigint, bigint], { memo }) => {
      const value = (memo.get('next') as bigint | undefined) ?? start
      memo.set('next', value + step)
      return value
    },
  }
}

export const timeTextFunctions: readonly ScalarFunction[] = [
  ...reading,
  ...printing,
  ...pgPrinting,
  ...timesOfDay,
  ...writtenTimes,
  ...clock,
  ...intervals,
  sequenceRow('timestamp_sequence', 'TIMESTAMP'),
  sequenceRow('timestamp_sequence_ns', 'TIMESTAMP_NS'),
]
