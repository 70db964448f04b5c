// Goal: values of PostgreSQL's type interval are parsed as PostgreSQL parses them, and printing and parsing again gives
// the same interval.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatSpan, microsOfSpan, shiftsOf, spanProblem } from '../../../engine/types/span.js'

const hour = 3_600_000_000n

describe('spans of time', () => {
  test.each([
    ['1 day 02:00', 26n * hour],
    ['-1 days -02:00:00', -26n * hour],
    ['-1 day +02:00', -22n * hour],
    ['0 years 0 mons 1 days 2 hours 0 mins 0.5 secs', 26n * hour + 500_000n],
    ['1.5 days', 36n * hour],
    ['1 week', 168n * hour],
    ['90 minutes ago', -hour - hour / 2n],
    ['P1DT2H', 26n * hour],
    ['-PT0.000001S', -1n],
    ['PT36H', 36n * hour],
    ['5', 5_000_000n],
    ['00:00:00', 0n],
  ])('%s', (text, micros) => {
    expect(microsOfSpan(text)).toBe(micros)
  })

  test('what has no length of its own is none', () => {
    expect(['1 month', 'P1Y', 'abc', '', 'P', '1 fortnight', '1 day 2'].map(microsOfSpan)).toEqual(Array(7).fill(null))
    expect(shiftsOf('1 month 0 days')).toEqual([
      { unit: 'M', count: 1 },
      { unit: 'd', count: 0 },
    ])
    expect(spanProblem('2 mons')).toMatch(/^months and years differ/)
    expect(spanProblem('abc')).toBe('invalid input syntax for type interval: "abc"')
  })

  test('what is printed is read again', () => {
    expect(formatSpan(-26n * hour - 1n)).toBe('-1 days -02:00:00.000001')
    expect(formatSpan(24n * hour)).toBe('1 day')
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), (micros) => {
        expect(microsOfSpan(formatSpan(micros))).toBe(micros)
      }),
    )
  })
})
