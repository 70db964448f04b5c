// Goal: printing and parsing a timestamp gives the same timestamp, and rounding down to a unit gives a bucket that
// contains it. Conversion to a time zone and back gives the same instant, except in the hour that is repeated when
// clocks go back. Method: properties over random timestamps (fast-check prints the seed), and special cases.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  formatDate,
  formatTimestamp,
  parseDate,
  parseFileTimestamp,
  parseSpan,
  parseTimestamp,
} from '../../../engine/types/timestamp.js'
import { civilFromDays, daysFromCivil } from '../../../engine/types/timestamp-calendar.js'
import { floorTimestamp, nextBucket, parseSampleInterval } from '../../../engine/types/timestamp-floor.js'
import { formatByPattern, parseByPattern } from '../../../engine/types/timestamp-pattern.js'
import { fromZone, timeZone, toZone } from '../../../engine/types/timestamp-zone.js'

const micros = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n })

describe('text', () => {
  test('micros, nanos and millis read back', () => {
    fc.assert(
      fc.property(micros, (ts) => {
        expect(parseTimestamp(formatTimestamp(ts, 'TIMESTAMP'), 'TIMESTAMP')).toBe(ts)
        const nanos = (ts % 9_000_000_000_000_000n) * 1000n + 7n
        expect(parseTimestamp(formatTimestamp(nanos, 'TIMESTAMP_NS'), 'TIMESTAMP_NS')).toBe(nanos)
        expect(parseDate(formatDate(ts / 1000n))).toBe(ts / 1000n)
      }),
    )
  })

  test('what programs write is the first instant of the span that it names, and what is close to it as well', () => {
    const two = fc.integer({ min: 0, max: 62 }).map((number) => String(number).padStart(2, '0'))
    const day = fc
      .tuple(fc.constantFrom('2024', '1969', '0001', '9999', '20x4', '-024'), two, two)
      .map((all) => all.join('-'))
    const time = fc.tuple(two, two, two).map((all) => all.join(':'))
    const fraction = fc.constantFrom('', '', '.5', '.123456', '.123456789', '.1234567891', '.', ',25', '.x')
    const end = fc.constantFrom('', '', 'Z', '+00:00', '-00:00', '+02:00', '+0000', ' Z', 'ZZ', ' ')
    const unit = fc.constantFrom('TIMESTAMP' as const, 'TIMESTAMP_NS' as const)
    fc.assert(
      fc.property(day, fc.constantFrom('T', ' ', '_'), time, fraction, end, unit, (...parts) => {
        const [unitOfAll, text] = [parts[5], parts.slice(0, 5).join('')]
        const first = parseSpan(text, unitOfAll)?.lo
        const isReached = first !== undefined && first > -(2n ** 63n) && first < 2n ** 63n
        expect([text, parseTimestamp(text, unitOfAll)]).toEqual([text, isReached ? first : null])
      }),
      { numRuns: 3000 },
    )
  })

  test('the same instant as the runtime prints', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 4_000_000_000_000n }), (millis) => {
        expect(formatDate(millis)).toBe(new Date(Number(millis)).toISOString())
      }),
    )
  })

  test.each([
    ['2024', '2024-01-01T00:00:00.000000Z', '2024-12-31T23:59:59.999999Z'],
    ['2024-02', '2024-02-01T00:00:00.000000Z', '2024-02-29T23:59:59.999999Z'],
    ['2024-02-03T04', '2024-02-03T04:00:00.000000Z', '2024-02-03T04:59:59.999999Z'],
    ['2024-02-03 04:05:06.5', '2024-02-03T04:05:06.500000Z', '2024-02-03T04:05:06.599999Z'],
    ['2024-W01', '2024-01-01T00:00:00.000000Z', '2024-01-07T23:59:59.999999Z'],
    ['2024-01-01T10:00:00+02:00', '2024-01-01T08:00:00.000000Z', '2024-01-01T08:00:00.999999Z'],
    ['2024-02-03T04:05:06.+02', '2024-02-03T02:05:06.000000Z', '2024-02-03T02:05:06.999999Z'],
    // A Date of JDBC in Berlin.
    ['2024-01-01 +01', '2023-12-31T23:00:00.000000Z', '2024-01-01T22:59:59.999999Z'],
    ['2024-01-01T10+02', '2024-01-01T08:00:00.000000Z', '2024-01-01T08:59:59.999999Z'],
  ])('the span of %s', (text, lo, hi) => {
    const span = parseSpan(text, 'TIMESTAMP')
    expect([formatTimestamp(span?.lo ?? 0n, 'TIMESTAMP'), formatTimestamp(span?.hi ?? 0n, 'TIMESTAMP')]).toEqual([
      lo,
      hi,
    ])
  })

  test.each(['2024-01-01Z', '2024-01-01 ', ' 2024-01-01', '2024-01-01T10Z', '2024-01-01T10:00Z', '2024-01-01T24:00'])(
    '%s is a timestamp of files alone',
    (text) => {
      expect(parseTimestamp(text, 'TIMESTAMP')).toBeNull()
      expect(parseFileTimestamp(text, 'TIMESTAMP')).not.toBeNull()
    },
  )

  test.each(['2024-13-01', '2024-02-30', '2024-1-1', '2024-01-01T25', '2024-01-01T10:0', 'x', ''])(
    '%s is no timestamp',
    (text) => {
      expect(parseTimestamp(text, 'TIMESTAMP')).toBeNull()
    },
  )

  test('patterns read what they print', () => {
    const pattern = 'yyyy-MM-dd HH:mm:ss.SSSUUU'
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 253_402_300_799_999_999n }), (ts) => {
        expect(parseByPattern(formatByPattern(ts, 'TIMESTAMP', pattern), 'TIMESTAMP', pattern)).toBe(ts)
      }),
    )
  })
})

describe('calendar', () => {
  test('days and dates are inverse', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1_000_000, max: 3_000_000 }), (days) => {
        const { year, month, day } = civilFromDays(days)
        expect(daysFromCivil(year, month, day)).toBe(days)
      }),
    )
  })

  test('a bucket holds its timestamp', () => {
    const intervals = fc.constantFrom('1s', '5m', '2h', '1d', '3d', '1w', '1M', '5M', '1y', '7U', '250T')
    fc.assert(
      fc.property(micros, intervals, (ts, text) => {
        const interval = parseSampleInterval(text)
        if (interval === null) throw new Error('no interval')
        const start = floorTimestamp(ts, interval, 'TIMESTAMP')
        expect(start <= ts).toBe(true)
        expect(nextBucket(start, interval, 'TIMESTAMP') > ts).toBe(true)
        expect(floorTimestamp(start, interval, 'TIMESTAMP')).toBe(start)
      }),
    )
  })
})

describe('zones', () => {
  test('there and back, but for the hour that happens twice', () => {
    const zone = timeZone('America/New_York')
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2_000_000_000_000_000n }), (ts) => {
        if (zone === null) throw new Error('no zone')
        const back = fromZone(toZone(ts, zone), zone)
        expect([0n, 3_600_000_000n]).toContain(ts - back)
      }),
    )
  })

  test('fixed offsets and unknown names', () => {
    expect(timeZone('+02:00')?.offsetAt(0n)).toBe(7_200_000_000n)
    expect(timeZone('UTC')?.offsetAt(0n)).toBe(0n)
    expect(timeZone('Nope/Zone')).toBeNull()
  })
})
