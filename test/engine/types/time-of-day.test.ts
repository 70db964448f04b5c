// Goal: times of day are parsed as PostgreSQL parses them, and equal times become equal strings.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { microsOfTimeOfDay, timeOfDayText, writtenTimeOfDay } from '../../../engine/types/time-of-day.js'

test.each([
  ['10:00', '10:00:00'],
  ['1:2:3.50', '01:02:03.5'],
  [' 23:59:59.1234567 ', '23:59:59.123457'],
  ['24:00', '24:00:00'],
  ['12:30 am', '00:30:00'],
  ['12:30PM', '12:30:00'],
  ['2024-01-02 10:00:00', '10:00:00'],
  ['10:00:00+02', '10:00:00'],
  ['10:00:00Z', '10:00:00'],
  ['24:00:01', null],
  ['25:00', null],
  ['10:60', null],
  ['13:00 pm', null],
  ['10', null],
  ['abc', null],
])('%s', (text, time) => {
  expect(writtenTimeOfDay(text)).toBe(time)
})

test('what is printed is read again', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 86_400_000_000n }), (micros) => {
      expect(microsOfTimeOfDay(timeOfDayText(micros))).toBe(micros)
    }),
  )
})
