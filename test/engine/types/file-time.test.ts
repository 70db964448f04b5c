// Goal: the parser of timestamps in imported files reads the formats of ISO 8601, with common variants, and numbers
// (time since 1970, whose unit is given or follows from the size) as the right instant. It rejects other texts, and
// reports digits that the column cannot store. What JavaScript's toISOString() writes is compared with Date.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { epochScale, epochUnit, looksLikeTime, parseFileTime } from '../../../engine/types/file-time.js'
import { formatTimestamp } from '../../../engine/types/timestamp.js'

function shown(text: string, scale?: Parameters<typeof parseFileTime>[2]): string | null {
  const time = parseFileTime(text, 'TIMESTAMP_NS', scale)
  return time === null ? null : formatTimestamp(time.ticks, 'TIMESTAMP_NS')
}

describe('texts', () => {
  test.each([
    ['2024-01-31T10:11:12.123456789+02:00', '2024-01-31T08:11:12.123456789Z'],
    ['2024-01-31 10:11:12.5-0330', '2024-01-31T13:41:12.500000000Z'],
    ['2024-01-31t10:11:12z', '2024-01-31T10:11:12.000000000Z'],
    ['2024-01-31T10:11:12,25', '2024-01-31T10:11:12.250000000Z'],
    ['2024-01-31T10:11+01', '2024-01-31T09:11:00.000000000Z'],
    [' 2024-01-31 ', '2024-01-31T00:00:00.000000000Z'],
    ['2024-01-31 10:11:12 UTC', '2024-01-31T10:11:12.000000000Z'],
    ['20240131T101112Z', '2024-01-31T10:11:12.000000000Z'],
    ['20240131T101112.5+0100', '2024-01-31T09:11:12.500000000Z'],
    ['20240131T1011', '2024-01-31T10:11:00.000000000Z'],
    ['20240131', '2024-01-31T00:00:00.000000000Z'],
    ['2024-W05-3', '2024-01-31T00:00:00.000000000Z'],
    ['2024-031', '2024-01-31T00:00:00.000000000Z'],
    ['2024-366T01:00:00Z', '2024-12-31T01:00:00.000000000Z'],
    ['2024-01', '2024-01-01T00:00:00.000000000Z'],
    ['2024', '2024-01-01T00:00:00.000000000Z'],
    ['+002024-01-31T10:11:12.000Z', '2024-01-31T10:11:12.000000000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000000000Z'],
    ['2024-01-31T24:00', '2024-02-01T00:00:00.000000000Z'],
    ['1969-12-31T23:59:59.9Z', '1969-12-31T23:59:59.900000000Z'],
  ])('%s', (text, instant) => {
    expect(shown(text)).toBe(instant)
  })

  test.each([
    ...[
      '2024-13-01',
      '2024-02-30',
      '2024-1-1',
      '2024-366x',
      '2023-366',
      '20241301',
      '31.01.2024',
      '01/31/2024',
      '10:11:12',
    ],
    ...['2024-01-31T25:00', '2024-01-31T10:11:61', '2024-01-31T10:11:12+24:00', '', 'x', 'null', '1.2.3', '-', 'e5'],
  ])('%s is no time', (text) => {
    expect(parseFileTime(text, 'TIMESTAMP')).toBeNull()
  })

  test('whatever toISOString writes is read as its instant', () => {
    const bound = 250_000 * 31_556_952_000
    fc.assert(
      fc.property(fc.integer({ min: -bound, max: bound }), (millis) => {
        const text = new Date(millis).toISOString()
        expect([text, parseFileTime(text, 'TIMESTAMP')?.ticks]).toEqual([text, BigInt(millis) * 1000n])
      }),
    )
  })

  test('digits that the column cannot hold are reported', () => {
    expect(parseFileTime('2024-01-31T10:11:12.1234567Z', 'TIMESTAMP')?.cut).toBe(true)
    expect(parseFileTime('2024-01-31T10:11:12.123456000Z', 'TIMESTAMP')?.cut).toBe(false)
    expect(parseFileTime('2024-01-31T10:11:12.1234567Z', 'TIMESTAMP_NS')?.cut).toBe(false)
    expect(parseFileTime('1706695872000000001', 'TIMESTAMP')?.cut).toBe(true)
  })

  test('a column of years, months or codes is none of times', () => {
    for (const text of ['2024', '2024-01', '2024-W05', '2024-031', '20240131', '1706695872', '1234-56-78'])
      expect([text, looksLikeTime(text)]).toEqual([text, false])
    for (const text of ['2024-01-31', '2024-01-31 10:11', '20240131T101112Z', '2024-W05-3'])
      expect([text, looksLikeTime(text)]).toEqual([text, true])
  })
})

describe('numbers', () => {
  const instant = '2024-01-31T10:11:12.000000000Z'

  test.each([
    '1706695872',
    '1706695872000',
    '1706695872000000',
    '1706695872000000000',
    '1.706695872e9',
    '1706695872.0',
    '+1706695872',
  ])('the size of %s tells its unit', (text) => {
    expect(shown(text)).toBe(instant)
  })

  test('a fraction belongs to the unit', () => {
    expect(shown('1706695872.25')).toBe('2024-01-31T10:11:12.250000000Z')
    expect(shown('1706695872000.5')).toBe('2024-01-31T10:11:12.000500000Z')
    expect(shown('-1706695872.5')).toBe('1915-12-02T13:48:47.500000000Z')
  })

  test('small numbers need a unit, all but zero', () => {
    expect(shown('86400')).toBeNull()
    expect(shown('0')).toBe('1970-01-01T00:00:00.000000000Z')
    expect(shown('86400', 's')).toBe('1970-01-02T00:00:00.000000000Z')
    expect(shown('2024', 'ms')).toBe('1970-01-01T00:00:02.024000000Z')
    expect(shown('20240131', 'us')).toBe('1970-01-01T00:00:20.240131000Z')
    expect(shown('7', 'ns')).toBe('1970-01-01T00:00:00.000000007Z')
  })

  test('what 64 bits do not reach is no time', () => {
    expect(parseFileTime('99999999999999999999', 'TIMESTAMP_NS')).toBeNull()
    expect(parseFileTime('1e300', 'TIMESTAMP')).toBeNull()
    expect(parseFileTime('9'.repeat(300), 'TIMESTAMP')).toBeNull()
  })

  test('patterns and words of units', () => {
    expect(['epoch', 'epoch_s', 'epoch_ms', 'Epoch-Micros', 'unix ns'].map(epochScale)).toEqual([
      'auto',
      's',
      'ms',
      'us',
      'ns',
    ])
    expect(['yyyy-MM-dd', 'epoch_days', 's'].map(epochScale)).toEqual([null, null, null])
    expect(['s', 'MS', 'micros', 'nanoseconds', 'h'].map(epochUnit)).toEqual(['s', 'ms', 'us', 'ns', null])
  })
})
