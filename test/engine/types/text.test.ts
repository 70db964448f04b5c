// Goal: numbers, decimals, UUIDs, arrays and other types are formatted as clients expect, and parse back to the same
// value; operations on ranges of timestamps are those of sets. Method: properties over random values, and texts that
// another server of this dialect returned.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { complement, contains, intersect, normalise, parseIntervals, unite } from '../../../engine/types/interval.js'
import { formatDecimal, formatDouble, formatFloat, parseDecimal, parseDouble } from '../../../engine/types/number.js'
import {
  formatArray,
  formatGeohash,
  formatIpv4,
  formatLong256,
  formatUuid,
  parseArray,
  parseGeohash,
  parseIpv4,
  parseLong256,
  parseUuid,
} from '../../../engine/types/text.js'

describe('numbers', () => {
  test.each([
    [0, '0.0'],
    [-0, '-0.0'],
    [1, '1.0'],
    [0.001, '0.001'],
    [0.0001, '1.0E-4'],
    [1e10, '1.0E10'],
    [16777217, '1.6777217E7'],
    [9999999, '9999999.0'],
    [5e-324, '5.0E-324'],
    [1.7976931348623157e308, '1.7976931348623157E308'],
    [123.456, '123.456'],
  ])('%d is %s', (value, text) => {
    expect(formatDouble(value)).toBe(text)
  })

  test('doubles and floats read back', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) =>
        Object.is(parseDouble(formatDouble(value)), value),
      ),
    )
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) =>
        Object.is(Math.fround(parseDouble(formatFloat(value)) ?? Number.NaN), value),
      ),
    )
  })

  test('decimals read back', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
        fc.integer({ min: 0, max: 20 }),
        (value, scale) => {
          expect(parseDecimal(formatDecimal(value, scale), 76, scale)).toBe(value)
        },
      ),
    )
  })
})

describe('other types', () => {
  test('read back', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), (value) =>
        Object.is(parseUuid(formatUuid(value)), value),
      ),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (value) =>
        Object.is(parseLong256(formatLong256(value)), value),
      ),
    )
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (value) => Object.is(parseIpv4(formatIpv4(value)), value)),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 40n - 1n }), (value) =>
        Object.is(parseGeohash(formatGeohash(value, 40), 40), value),
      ),
    )
  })

  test('arrays', () => {
    const array = parseArray('{{1,2},{3,null}}')
    expect(array?.shape).toEqual([2, 2])
    expect(array === null ? '' : formatArray(array)).toBe('[[1.0,2.0],[3.0,null]]')
    expect(parseArray('{{1},{2,3}}')).toBeNull()
  })
})

describe('ranges', () => {
  const ranges = fc
    .array(fc.tuple(fc.bigInt({ min: 0n, max: 60n }), fc.bigInt({ min: 0n, max: 10n })))
    .map((pairs) => normalise(pairs.map(([lo, length]) => ({ lo, hi: lo + length }))))

  test('are sets of timestamps', () => {
    fc.assert(
      fc.property(ranges, ranges, fc.bigInt({ min: -5n, max: 80n }), (a, b, ts) => {
        expect(contains(intersect(a, b), ts)).toBe(contains(a, ts) && contains(b, ts))
        expect(contains(unite(a, b), ts)).toBe(contains(a, ts) || contains(b, ts))
        expect(contains(complement(a), ts)).toBe(!contains(a, ts))
      }),
    )
  })

  test('interval texts', () => {
    const count = (text: string): number => {
      const result = parseIntervals(text, 'TIMESTAMP', 0n)
      return 'error' in result ? -1 : result.ranges.length
    }
    expect(count('2024-01-01;1h;1d;7')).toBe(7)
    expect(count('2024-01-[01,03]')).toBe(2)
    expect(count('2024-01-[01..05];1h')).toBe(5)
    expect(count('2024-01-01;1x')).toBe(-1)
    expect(count('nope')).toBe(-1)
  })
})
