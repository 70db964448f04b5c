// SQL functions that test the day of a time: leap years, the first and the last days of months, quarters and years.

import { daysInMonth, isLeapYear, partsOf, type TimestampParts } from '../../types/timestamp-calendar.js'
import type { ScalarFunction } from './function-types.js'

const sample = "'2024-03-31T13:45:30.123456Z'::timestamp"

/** `shown`: the result for the sample. */
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

export const dayTests: readonly ScalarFunction[] = [
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
