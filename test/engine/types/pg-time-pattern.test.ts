// Goal: to_char() prints what PostgreSQL 15 prints. Method: results recorded from PostgreSQL 15.

import { expect, test } from 'vitest'
import { formatByPgPattern } from '../../../engine/types/pg-time-pattern.js'
import { parseTimestamp } from '../../../engine/types/timestamp.js'

const recorded: readonly (readonly [time: string, pattern: string, text: string])[] = [
  ['2024-03-01 13:05:09.123456', 'YYYY-MM-DD HH24:MI:SS.US', '2024-03-01 13:05:09.123456'],
  ['2024-03-01 13:05:09.123456', 'FMDay, FMDD Month YYYY', 'Friday, 1 March     2024'],
  ['2024-03-01 13:05:09.123456', 'DAY|Day|day|DY|Dy|dy', 'FRIDAY   |Friday   |friday   |FRI|Fri|fri'],
  [
    '2024-03-01 13:05:09.123456',
    'MONTH|Month|month|MON|Mon|mon|RM|rm',
    'MARCH    |March    |march    |MAR|Mar|mar|III |iii ',
  ],
  ['2024-03-01 13:05:09.123456', 'HH12:MI:SS AM|HH:MI pm|A.M.', '01:05:09 PM|01:05 pm|P.M.'],
  ['2024-03-01 13:05:09.123456', 'MS US FF1 FF3 FF6 SSSS', '123 123456 1 123 123456 47109'],
  ['2024-03-01 13:05:09.123456', 'Y,YYY YYY YY Y IYYY IYY IY I CC Q J', '2,024 024 24 4 2024 024 24 4 21 1 2460371'],
  ['2024-03-01 13:05:09.123456', 'DDD DD D IDDD ID W WW IW', '061 01 6 061 5 1 09 09'],
  ['2024-03-01 13:05:09.123456', 'DDth FMDDTH YYYYth HH24TH', '01st 1ST 2024th 13TH'],
  ['2024-03-01 13:05:09.123456', '"quoted \\"text\\"" "YYYY" x', 'quoted "text" YYYY x'],
  ['2024-03-01 13:05:09.123456', 'BC b.c. AD', 'AD a.d. AD'],
  ['2024-03-01 13:05:09.123456', 'TZ|TZH|TZM|OF', '|+00|00|+00'],
  ['2024-03-01 13:05:09.123456', 'FMHH24:FMMI:FMSS FM', '13:5:9 '],
  ['2024-03-01 13:05:09.123456', 'Yyyy Mm TmDD Tz', '4024 Mm Tm01 Tz'],
  ['1999-12-31 00:00:00', 'YYYY-MM-DD HH24:MI:SS.US', '1999-12-31 00:00:00.000000'],
  ['1999-12-31 00:00:00', 'FMDay, FMDD Month YYYY', 'Friday, 31 December  1999'],
  ['1999-12-31 00:00:00', 'DAY|Day|day|DY|Dy|dy', 'FRIDAY   |Friday   |friday   |FRI|Fri|fri'],
  ['1999-12-31 00:00:00', 'MONTH|Month|month|MON|Mon|mon|RM|rm', 'DECEMBER |December |december |DEC|Dec|dec|XII |xii '],
  ['1999-12-31 00:00:00', 'HH12:MI:SS AM|HH:MI pm|A.M.', '12:00:00 AM|12:00 am|A.M.'],
  ['1999-12-31 00:00:00', 'MS US FF1 FF3 FF6 SSSS', '000 000000 0 000 000000 0'],
  ['1999-12-31 00:00:00', 'Y,YYY YYY YY Y IYYY IYY IY I CC Q J', '1,999 999 99 9 1999 999 99 9 20 4 2451544'],
  ['1999-12-31 00:00:00', 'DDD DD D IDDD ID W WW IW', '365 31 6 362 5 5 53 52'],
  ['1999-12-31 00:00:00', 'DDth FMDDTH YYYYth HH24TH', '31st 31ST 1999th 00TH'],
  ['1999-12-31 00:00:00', '"quoted \\"text\\"" "YYYY" x', 'quoted "text" YYYY x'],
  ['1999-12-31 00:00:00', 'BC b.c. AD', 'AD a.d. AD'],
  ['1999-12-31 00:00:00', 'TZ|TZH|TZM|OF', '|+00|00|+00'],
  ['1999-12-31 00:00:00', 'FMHH24:FMMI:FMSS FM', '0:0:0 '],
  ['1999-12-31 00:00:00', 'Yyyy Mm TmDD Tz', '9999 Mm Tm31 Tz'],
  ['2021-01-03 12:00:00.5', 'YYYY-MM-DD HH24:MI:SS.US', '2021-01-03 12:00:00.500000'],
  ['2021-01-03 12:00:00.5', 'FMDay, FMDD Month YYYY', 'Sunday, 3 January   2021'],
  ['2021-01-03 12:00:00.5', 'DAY|Day|day|DY|Dy|dy', 'SUNDAY   |Sunday   |sunday   |SUN|Sun|sun'],
  [
    '2021-01-03 12:00:00.5',
    'MONTH|Month|month|MON|Mon|mon|RM|rm',
    'JANUARY  |January  |january  |JAN|Jan|jan|I   |i   ',
  ],
  ['2021-01-03 12:00:00.5', 'HH12:MI:SS AM|HH:MI pm|A.M.', '12:00:00 PM|12:00 pm|P.M.'],
  ['2021-01-03 12:00:00.5', 'MS US FF1 FF3 FF6 SSSS', '500 500000 5 500 500000 43200'],
  ['2021-01-03 12:00:00.5', 'Y,YYY YYY YY Y IYYY IYY IY I CC Q J', '2,021 021 21 1 2020 020 20 0 21 1 2459218'],
  ['2021-01-03 12:00:00.5', 'DDD DD D IDDD ID W WW IW', '003 03 1 371 7 1 01 53'],
  ['2021-01-03 12:00:00.5', 'DDth FMDDTH YYYYth HH24TH', '03rd 3RD 2021st 12TH'],
  ['2021-01-03 12:00:00.5', '"quoted \\"text\\"" "YYYY" x', 'quoted "text" YYYY x'],
  ['2021-01-03 12:00:00.5', 'BC b.c. AD', 'AD a.d. AD'],
  ['2021-01-03 12:00:00.5', 'TZ|TZH|TZM|OF', '|+00|00|+00'],
  ['2021-01-03 12:00:00.5', 'FMHH24:FMMI:FMSS FM', '12:0:0 '],
  ['2021-01-03 12:00:00.5', 'Yyyy Mm TmDD Tz', '1021 Mm Tm03 Tz'],
  ['0099-02-11 23:59:59.000001', 'YYYY-MM-DD HH24:MI:SS.US', '0099-02-11 23:59:59.000001'],
  ['0099-02-11 23:59:59.000001', 'FMDay, FMDD Month YYYY', 'Wednesday, 11 February  0099'],
  ['0099-02-11 23:59:59.000001', 'DAY|Day|day|DY|Dy|dy', 'WEDNESDAY|Wednesday|wednesday|WED|Wed|wed'],
  [
    '0099-02-11 23:59:59.000001',
    'MONTH|Month|month|MON|Mon|mon|RM|rm',
    'FEBRUARY |February |february |FEB|Feb|feb|II  |ii  ',
  ],
  ['0099-02-11 23:59:59.000001', 'HH12:MI:SS AM|HH:MI pm|A.M.', '11:59:59 PM|11:59 pm|P.M.'],
  ['0099-02-11 23:59:59.000001', 'MS US FF1 FF3 FF6 SSSS', '000 000001 0 000 000001 86399'],
  ['0099-02-11 23:59:59.000001', 'Y,YYY YYY YY Y IYYY IYY IY I CC Q J', '0,099 099 99 9 0099 099 99 9 01 1 1757261'],
  ['0099-02-11 23:59:59.000001', 'DDD DD D IDDD ID W WW IW', '042 11 4 045 3 2 06 07'],
  ['0099-02-11 23:59:59.000001', 'DDth FMDDTH YYYYth HH24TH', '11th 11TH 0099th 23RD'],
  ['0099-02-11 23:59:59.000001', '"quoted \\"text\\"" "YYYY" x', 'quoted "text" YYYY x'],
  ['0099-02-11 23:59:59.000001', 'BC b.c. AD', 'AD a.d. AD'],
  ['0099-02-11 23:59:59.000001', 'TZ|TZH|TZM|OF', '|+00|00|+00'],
  ['0099-02-11 23:59:59.000001', 'FMHH24:FMMI:FMSS FM', '23:59:59 '],
  ['0099-02-11 23:59:59.000001', 'Yyyy Mm TmDD Tz', '9099 Mm Tm11 Tz'],
]

test.each(recorded)('%s by %s', (time, pattern, text) => {
  const micros = parseTimestamp(time, 'TIMESTAMP') as bigint
  expect(formatByPgPattern(micros, 'TIMESTAMP', pattern, false)).toBe(text)
  expect(formatByPgPattern(micros * 1000n, 'TIMESTAMP_NS', pattern, false)).toBe(text)
})

test('a zone is named where there is one', () => {
  expect(formatByPgPattern(0n, 'TIMESTAMP', 'HH24 TZ tz', true)).toBe('00 UTC utc')
})
