// Goal: tick expressions (short texts that stand for time ranges in WHERE, such as '2024-01-[10..12]' or '$today')
// give the right ranges. The clock is fixed at Wednesday, 2024-03-06T10:30:00Z.

import { expect, test } from 'vitest'
import { parseIntervals } from '../../../engine/types/interval.js'
import { formatTimestamp, parseTimestamp } from '../../../engine/types/timestamp.js'

const now = parseTimestamp('2024-03-06T10:30:00Z', 'TIMESTAMP') ?? 0n

function shown(text: string): string[] | string {
  const result = parseIntervals(text, 'TIMESTAMP', now)
  if ('error' in result) return result.error
  const brief = (ticks: bigint) =>
    formatTimestamp(ticks, 'TIMESTAMP')
      .replace(/(:00)?\.000000Z$/, '')
      .replace('.999999Z', '+')
  return result.ranges.map(({ lo, hi }) => `${brief(lo)} ${brief(hi)}`)
}

const day = (date: string) => `${date}T00:00 ${date}T23:59:59+`

test.each<[string, string[] | string]>([
  ['2024-01-[10,15]', [day('2024-01-10'), day('2024-01-15')]],
  ['2024-01-[10..12]', ['2024-01-10T00:00 2024-01-12T23:59:59+']],
  ['[2024-01-15,2024-03-20]', [day('2024-01-15'), day('2024-03-20')]],
  ['[2024-01-[01,03],2024-02-01]', [day('2024-01-01'), day('2024-01-03'), day('2024-02-01')]],
  ['2024-01-15T[09:30,14:00];1h', ['2024-01-15T09:30 2024-01-15T10:29:59+', '2024-01-15T14:00 2024-01-15T14:59:59+']],
  ['2024-01-15T09:30@America/New_York;6h30m', ['2024-01-15T14:30 2024-01-15T20:59:59+']],
  [
    '2024-07-15T[09:00@Europe/Berlin,12:00];1h',
    ['2024-07-15T07:00 2024-07-15T07:59:59+', '2024-07-15T12:00 2024-07-15T12:59:59+'],
  ],
  ['2024-01-[01..07]#Mon,Fri', [day('2024-01-01'), day('2024-01-05')]],
  ['2024-01-[05..08]#workday', [day('2024-01-05'), day('2024-01-08')]],
  [
    '2024-01-[05..08]T09:30@Europe/Berlin#weekend;30m',
    ['2024-01-06T08:30 2024-01-06T08:59:59+', '2024-01-07T08:30 2024-01-07T08:59:59+'],
  ],
  ['2024-W01#Sun', [day('2024-01-07')]],
  ['$today', [day('2024-03-06')]],
  ['$yesterday', [day('2024-03-05')]],
  ['$tomorrow', [day('2024-03-07')]],
  ['$today - 2d', [day('2024-03-04')]],
  ['$now-2h..$now', ['2024-03-06T08:30 2024-03-06T10:30']],
  ['$now - 30m;10m', ['2024-03-06T10:00 2024-03-06T10:09:59+']],
  ['$today-2d..$today', ['2024-03-04T00:00 2024-03-06T23:59:59+']],
  ['$today+3bd', [day('2024-03-11')]],
  ['$today..$today+3bd', ['2024-03-06T00:00 2024-03-08T23:59:59+', day('2024-03-11')]],
  ['$todayT09:30;1h', ['2024-03-06T09:30 2024-03-06T10:29:59+']],
  [
    '[$today,$yesterday]T[08:00,09:00];1m',
    [
      '2024-03-05T08:00 2024-03-05T08:00:59+',
      '2024-03-05T09:00 2024-03-05T09:00:59+',
      '2024-03-06T08:00 2024-03-06T08:00:59+',
      '2024-03-06T09:00 2024-03-06T09:00:59+',
    ],
  ],
  // Repeats that join are one span, which begins on a Monday.
  ['2024-01-[01..14]#Mon;1d;1d;2', ['2024-01-01T00:00 2024-01-02T23:59:59+', '2024-01-08T00:00 2024-01-09T23:59:59+']],
  ['2024-01-[01..13]#Mon;1h;1d;2', ['2024-01-01T00:00 2024-01-01T00:59:59+', '2024-01-08T00:00 2024-01-08T00:59:59+']],
  ['2024-01-01#Tue;1h;1d;2', ['2024-01-02T00:00 2024-01-02T00:59:59+']],
  ['[2024-01-01;1h;1d;3,2024-01-10]#Wed', ['2024-01-03T00:00 2024-01-03T00:59:59+', day('2024-01-10')]],
  ['2024-W[1,3]-[1..2]', ['2024-01-01T00:00 2024-01-02T23:59:59+', '2024-01-15T00:00 2024-01-16T23:59:59+']],
  ['2024-01-01T[9,10]:30', ['2024-01-01T09:30 2024-01-01T09:30:59+', '2024-01-01T10:30 2024-01-01T10:30:59+']],
  // The clock goes forward in the night: 25 hours on the wall are 24.
  ['2024-03-09T10@America/New_York;25h', ['2024-03-09T15:00 2024-03-10T14:59:59+']],
  [
    '2024-03-09T10@America/New_York;1h;1d;2',
    ['2024-03-09T15:00 2024-03-09T15:59:59+', '2024-03-10T14:00 2024-03-10T14:59:59+'],
  ],
  ['$now-2h..$now;1h', ['2024-03-06T08:30 2024-03-06T10:30']],
  ['$nope', 'Invalid date: $nope'],
  ['2024-01-01#Fun', 'Unknown day name: Fun'],
  ['2024-01-01#XNYS', 'exchange calendars are not supported, list the days instead: XNYS'],
  ['2024-01-[01..05]#Mon, xhkg', 'exchange calendars are not supported, list the days instead: xhkg'],
  ['2024-01-01@Nowhere/City', 'invalid timezone: Nowhere/City'],
  ['2024-01-[01', "Unclosed '[' in interval"],
  ['2024-01-01]', 'Invalid date: 2024-01-01]'],
])('%s', (text, expected) => {
  expect(shown(text)).toEqual(expected)
})

test('alternatives have a limit', () => {
  expect(shown('[2000..9999]-[01..12]-[01..28]T[00..23]:[00..59]')).toMatch(/Invalid date|too many/)
})
