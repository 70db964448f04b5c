// SQL functions on intervals and periods: justify_hours() and the like, OVERLAPS, and isfinite().
//
// Our intervals are microseconds, without months. An interval with months, such as the result of age(), is a string.

import { SqlError } from '../../base/errors.js'
import { dataType, longKinds } from '../../types/column-types.js'
import { daysOf, shiftsOf } from '../../types/span.js'
import { microsPerDay } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type { ScalarFunction } from './function-types.js'
import { type Age, ageText } from './times-make.js'

const dayMicros = BigInt(microsPerDay)
const monthDays = 30

// Justified intervals -----------------------------------------------------------------------------------------------

function ageOfText(text: string): Age {
  const shifts = shiftsOf(text)
  if (shifts === null) throw new SqlError(`invalid input syntax for type interval: "${text.slice(0, 100)}"`, 0)
  const sum = (unit: string): number => shifts.reduce((all, part) => (part.unit === unit ? all + part.count : all), 0)
  return { months: sum('y') * 12 + sum('M'), days: sum('d'), micros: BigInt(sum('s')) * 1_000_000n + BigInt(sum('u')) }
}

function ageOfSpan(micros: bigint): Age {
  const { days, rest } = daysOf(micros)
  return { months: 0, days: Number(days), micros: rest }
}

/** 24 hours become a day; days and hours get the same sign. */
function justifyHours({ months, days, micros }: Age): Age {
  const whole = days + Number(micros / dayMicros)
  const rest = micros % dayMicros
  if (whole > 0 && rest < 0n) return { months, days: whole - 1, micros: rest + dayMicros }
  if (whole < 0 && rest > 0n) return { months, days: whole + 1, micros: rest - dayMicros }
  return { months, days: whole, micros: rest }
}

/** 30 days become a month; months and days get the same sign. */
function justifyDays({ months, days, micros }: Age): Age {
  const whole = months + Math.trunc(days / monthDays)
  const rest = days % monthDays
  if (whole > 0 && rest < 0) return { months: whole - 1, days: rest + monthDays, micros }
  if (whole < 0 && rest > 0) return { months: whole + 1, days: rest - monthDays, micros }
  return { months: whole, days: rest, micros }
}

/** Both, with one sign for all fields. A negative time of day may borrow from a month. */
function justifyInterval(age: Age): Age {
  const cut = justifyDays({ ...age, days: age.days + Number(age.micros / dayMicros), micros: age.micros % dayMicros })
  const { months, days, micros } = cut
  if (months > 0 && days === 0 && micros < 0n) return justifyHours({ months: months - 1, days: monthDays, micros })
  if (months < 0 && days === 0 && micros > 0n) return justifyHours({ months: months + 1, days: -monthDays, micros })
  return justifyHours(cut)
}

interface Justified {
  readonly name: string
  readonly description: string
  readonly apply: (age: Age) => Age
  readonly examples: readonly [ofSpan: ScalarFunction['example'], ofText: ScalarFunction['example']]
}

function justified({ name, description, apply, examples }: Justified): ScalarFunction[] {
  const [ofSpan, ofText] = examples
  return [
    {
      name,
      takes: ['LONG'],
      gives: 'STRING',
      description: `${description} Of microseconds, such as an interval or what lies between two times.`,
      example: ofSpan,
      eval: ([micros]: readonly [bigint]) => ageText(apply(ageOfSpan(micros))),
    },
    {
      name,
      takes: ['TEXT'],
      gives: 'STRING',
      description: `${description} Of a text, such as an age.`,
      example: ofText,
      eval: ([text]) => ageText(apply(ageOfText(String(text)))),
    },
  ]
}

const [hoursOfSpan, hoursOfText] = justified({
  name: 'justify_hours',
  description: 'A span of time whose 24 hours are days.',
  apply: justifyHours,
  examples: [null, ["justify_hours('1 mon 27:00:00')", '1 mon 1 day 03:00:00']],
}) as [ScalarFunction, ScalarFunction]

const justifying: readonly ScalarFunction[] = [
  // Our interval itself: its days have 24 hours already.
  {
    ...hoursOfSpan,
    gives: () => dataType('LONG', longKinds.span),
    example: ["justify_hours(interval '27 hours')", '1 day 03:00:00'],
    eval: ([micros = null]) => micros,
  },
  hoursOfText,
  ...justified({
    name: 'justify_days',
    description: 'A span of time whose 30 days are months, as a text.',
    apply: justifyDays,
    examples: [
      ["justify_days(interval '35 days')", '1 mon 5 days'],
      ["justify_days('1 mon -1 days')", '29 days'],
    ],
  }),
  ...justified({
    name: 'justify_interval',
    description: 'A span of time whose 24 hours are days and 30 days months, as a text.',
    apply: justifyInterval,
    examples: [
      ["justify_interval(interval '800 days 30 hours')", '2 years 2 mons 21 days 06:00:00'],
      ["justify_interval('1 mon -1 hour')", '29 days 23:00:00'],
    ],
  }),
]

// Periods -----------------------------------------------------------------------------------------------------------

type Timestamp = bigint | string

/** Both ends in ascending order; null if neither is known. */
function periodOf(one: Value, other: Value): readonly [start: Timestamp, end: Timestamp | null] | null {
  const [first, second] = [one, other] as (Timestamp | null)[]
  if (first === null || first === undefined) return second === null || second === undefined ? null : [second, null]
  if (second === null || second === undefined) return [first, null]
  return first <= second ? [first, second] : [second, first]
}

/** NULL, which is false as a BOOLEAN, if a missing end leaves the result unknown. */
function overlap([a = null, b = null, c = null, d = null]: readonly Value[]): boolean | null {
  const [one, other] = [periodOf(a, b), periodOf(c, d)]
  if (one === null || other === null) return null
  if (one[0] === other[0]) return one[1] === null || other[1] === null ? null : true
  const [earlier, later] = one[0] < other[0] ? [one, other] : [other, one]
  if (earlier[1] === null) return null
  if (later[0] < earlier[1]) return true
  return later[1] === null ? null : false
}

const overlaps = (['TIME', 'TEXT'] as const).map(
  (type): ScalarFunction => ({
    name: 'overlaps',
    takes: [type, type, type, type],
    gives: 'BOOLEAN',
    description:
      type === 'TIME'
        ? 'Whether two stretches of time share a moment, without their ends: written `(a, b) OVERLAPS (c, d)`; the second of a pair may be an interval.'
        : 'The same for times of day.',
    example:
      type === 'TIME'
        ? ["overlaps('2024-01-01'::timestamp, '2024-02-01', '2024-01-31', '2024-03-01')", 'true']
        : ["overlaps('10:00:00', '12:00:00', '12:00:00', '13:00:00')", 'false'],
    seesNull: true,
    eval: (args) => overlap(args),
  }),
)

export const spanFunctions: readonly ScalarFunction[] = [
  ...justifying,
  ...overlaps,
  {
    name: 'isfinite',
    takes: ['TIME'],
    gives: 'BOOLEAN',
    description:
      'Whether a timestamp, date or interval is finite: false only for NULL, since infinite values are read as NULL.',
    example: ["isfinite('2024-03-05'::timestamp)", 'true'],
    eval: () => true,
  },
]
