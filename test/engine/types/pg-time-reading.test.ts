// Goal: to_timestamp() parses what PostgreSQL 15 parses by its patterns. Method: results recorded from PostgreSQL 15,
// with NULL in the place of its errors, since this server returns NULL for a text that does not match. Patterns of this
// server's own dialect keep their meaning.

import { expect, test } from 'vitest'
import { formatByPgPattern } from '../../../engine/types/pg-time-pattern.js'
import { parseByEitherPattern } from '../../../engine/types/pg-time-reading.js'

const recorded: readonly (readonly [text: string, pattern: string, time: string | null])[] = [
  ['2024-01-03 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US', '2024-01-03 00:00:00.000000'],
  ['2024-01-03', 'YYYY-MM-DD', '2024-01-03 00:00:00.000000'],
  ['2024-01-03 11:02:03.5', 'YYYY-MM-DD HH24:MI:SS.MS', '2024-01-03 11:02:03.500000'],
  ['2024-01-03 11:02:03.5', 'YYYY-MM-DD HH24:MI:SS.US', '2024-01-03 11:02:03.500000'],
  ['05 Dec 2000', 'DD Mon YYYY', '2000-12-05 00:00:00.000000'],
  ['20240131', 'YYYYMMDD', '2024-01-31 00:00:00.000000'],
  ['20240131235958', 'YYYYMMDDHH24MISS', '2024-01-31 23:59:58.000000'],
  ['2024-01-31T10:11:12', 'YYYY-MM-DD"T"HH24:MI:SS', '2024-01-31 10:11:12.000000'],
  ['2024-01-31T10:11:12Z', 'YYYY-MM-DD"T"HH24:MI:SS"Z"', '2024-01-31 10:11:12.000000'],
  ['2024-01-31T10:11:12', 'YYYY-MM-DDTHH24:MI:SS', '2024-01-31 00:01:12.000000'],
  ['  2024 01 31', 'YYYY-MM-DD', '2024-01-31 00:00:00.000000'],
  ['2024/1/5', 'YYYY/MM/DD', '2024-01-05 00:00:00.000000'],
  ['2024-1-5 3:4:5 PM', 'YYYY-MM-DD HH12:MI:SS AM', '2024-01-05 15:04:05.000000'],
  ['2024-1-5 12:04 am', 'YYYY-MM-DD HH:MI pm', '2024-01-05 00:04:00.000000'],
  ['2024-1-5 13:04 am', 'YYYY-MM-DD HH:MI pm', null],
  ['Friday, 05 January 2024', 'Day, DD Month YYYY', '2024-01-05 00:00:00.000000'],
  ['5 jan 24', 'DD MON YY', '2024-01-05 00:00:00.000000'],
  ['5 jan 69', 'DD MON YY', '2069-01-05 00:00:00.000000'],
  ['5 jan 70', 'DD MON YY', '1970-01-05 00:00:00.000000'],
  ['5 jan 985', 'DD MON YYY', '1985-01-05 00:00:00.000000'],
  ['2024-02-30', 'YYYY-MM-DD', null],
  ['2024-13-01', 'YYYY-MM-DD', null],
  ['2024', 'YYYY-MM-DD', '2024-01-01 00:00:00.000000'],
  ['2024-06', 'YYYY-MM', '2024-06-01 00:00:00.000000'],
  ['2024-060', 'YYYY-DDD', '2024-02-29 00:00:00.000000'],
  ['2024 366', 'YYYY DDD', '2024-12-31 00:00:00.000000'],
  ['2023 366', 'YYYY DDD', null],
  ['2024-W05-3', 'IYYY-"W"IW-ID', '2024-01-31 00:00:00.000000'],
  ['2024 05', 'IYYY IW MI', '2024-01-29 00:00:00.000000'],
  ['2024 05 00', 'YYYY WW MI', '2024-01-29 00:00:00.000000'],
  ['2024-01-03 11:02:03+02', 'YYYY-MM-DD HH24:MI:SSTZH', '2024-01-03 09:02:03.000000'],
  ['2024-01-03 11:02:03-05:30', 'YYYY-MM-DD HH24:MI:SSTZH:TZM', '2024-01-03 16:32:03.000000'],
  ['44-03-15 BC', 'YYYY-MM-DD BC', '0044-03-15 00:00:00.000000 BC'],
  ['2460371', 'J MI', '2024-03-01 00:00:00.000000'],
  ['2024-01-01 3661', 'YYYY-MM-DD SSSS', '2024-01-01 01:01:01.000000'],
  ['abc', 'YYYY-MM-DD', null],
  ['2024-01-03 junk', 'YYYY-MM-DD', '2024-01-03 00:00:00.000000'],
  ['2024-Jan-03', 'YYYY-MM-DD', null],
  ['3rd Jan 2024', 'DDth Mon YYYY', '2024-01-03 00:00:00.000000'],
  ['2024-01-03 25:00', 'YYYY-MM-DD HH24:MI', null],
  ['2024-01-03 10:61', 'YYYY-MM-DD HH24:MI', null],
  ['1/2/2024', 'MM/DD/YYYY', '2024-01-02 00:00:00.000000'],
  ['1/2/2024', 'FMMM/FMDD/YYYY', '2024-01-02 00:00:00.000000'],
  ['2024--01--03', 'YYYY-MM-DD', null],
  ['2024-01-03 10.11.12', 'YYYY-MM-DD HH24.MI.SS', '2024-01-03 10:11:12.000000'],
  ['2024-01-03  10:11', 'YYYY-MM-DD HH24:MI', '2024-01-03 10:11:00.000000'],
  ['2024-01-03 10:11', 'YYYY-MM-DD  HH24:MI', '2024-01-03 10:11:00.000000'],
  ['2024-01-03 10:11:12.123456', 'YYYY-MM-DD HH24:MI:SS.FF6', '2024-01-03 10:11:12.123456'],
  ['2024-01-03 10:11:12.12', 'YYYY-MM-DD HH24:MI:SS.FF3', '2024-01-03 10:11:12.120000'],
  ['2024-01-03 10:11', 'yyyy-mm-dd hh24:mi', '2024-01-03 10:11:00.000000'],
  ['20240103', 'yyyymmdd hh24', '2024-01-03 00:00:00.000000'],
  ['2024-01-03 10:11:60', 'YYYY-MM-DD HH24:MI:SS', null],
  ['Q1 2024-02', '"Q"Q YYYY-MM', '2024-02-01 00:00:00.000000'],
  ['12024-02-01', 'YYYY-MM-DD', '12024-02-01 00:00:00.000000'],
  ['2024年1月3', 'YYYY"年"MM"月"DD', '2024-01-03 00:00:00.000000'],
  ['2024 Sep 1', 'YYYY Month DD', null],
  ['2024 September 1', 'YYYY Month DD', '2024-09-01 00:00:00.000000'],
]

test.each(recorded)('%s by %s', (text, pattern, time) => {
  const micros = parseByEitherPattern(text, 'TIMESTAMP', pattern)
  const printed = time?.endsWith('BC') ? 'YYYY-MM-DD HH24:MI:SS.US BC' : 'YYYY-MM-DD HH24:MI:SS.US'
  expect(micros === null ? null : formatByPgPattern(micros, 'TIMESTAMP', printed, false)).toBe(time)
  const nanos = parseByEitherPattern(text, 'TIMESTAMP_NS', pattern)
  if (time === null || time.startsWith('2')) expect(nanos).toBe(micros === null ? null : micros * 1000n)
})

test('patterns of this dialect stay what they are', () => {
  expect(parseByEitherPattern('2024-01-15', 'TIMESTAMP', 'yyyy-MM-dd')).toBe(1_705_276_800_000_000n)
  expect(parseByEitherPattern('2024-03', 'TIMESTAMP', 'YYYY-ww')).toBe(1_705_276_800_000_000n)
  expect(parseByEitherPattern('MI 2024', 'TIMESTAMP', "'MI' yyyy")).toBe(1_704_067_200_000_000n)
})

test('what no column could hold, and an empty text, are no time', () => {
  expect(parseByEitherPattern('99999999999-01-01', 'TIMESTAMP', 'YYYY-MM-DD')).toBe(null)
  expect(parseByEitherPattern('', 'TIMESTAMP', 'YYYY-MM-DD')).toBe(null)
})
