// Goal: a dashboard with its time range, refresh interval and variables is written to the URL and read back unchanged.
// Invalid values in a URL are ignored.

import { expect, test } from 'vitest'
import {
  type Address,
  addressFrom,
  fixedRange,
  hashOf,
  rangeNow,
  refreshMs,
} from '../../../../gateways/console/dashboards/dashboard-address.js'

test('a round trip', () => {
  const address: Address = {
    ...{ name: 'Kühlräume & 100 %', user: 'ann', range: '24h', refresh: '5s' },
    values: new Map([
      ['room', ['a', 'b&c=d']],
      ['text', ['']],
    ]),
  }
  expect(addressFrom(hashOf(address))).toEqual(address)
})

test('other addresses', () => {
  expect(addressFrom('#dashboards')).toBeNull()
  expect(addressFrom('#query')).toBeNull()
  expect(addressFrom('#dashboards?name=a&user=b&range=soon&refresh=1ms&var.Room=x&other=1')).toEqual({
    ...{ name: 'a', user: 'b', range: null, refresh: null, values: new Map([['room', ['x']]]) },
  })
})

test('ranges', () => {
  const [fromMs, toMs] = [Date.UTC(2026, 2, 2), Date.UTC(2026, 2, 9)]
  expect(rangeNow('7d', toMs)).toEqual({ fromMs, toMs })
  for (const range of ['2026-03-02/2026-03-09', '2026-03-02T00:00:00Z/2026-03-09T00:00', fixedRange(fromMs, toMs)])
    expect(rangeNow(range, 0)).toMatchObject({ fromMs, toMs })
  expect(rangeNow(fixedRange(5.2, 5.3), 0)).toMatchObject({ fromMs: 5, toMs: 6 })
  expect([refreshMs('off'), refreshMs('10s'), refreshMs('1h')]).toEqual([null, 10_000, 3_600_000])
})
