// Goal: times of day and dates, in text and binary format, and values of the catalog's types int2vector and oidvector,
// in binary format, are encoded for clients as PostgreSQL encodes them.

import { expect, test } from 'vitest'
import { dataType, dateKinds, textKinds } from '../../../engine/types/column-types.js'
import { wireForm } from '../../../engine/types/pg-encode-value.js'

const day = dataType('DATE', dateKinds.day)
const timeOfDay = dataType('STRING', textKinds.time)
const hex = (bytes: Uint8Array | string | null): string | null =>
  bytes === null ? null : Buffer.from(bytes as Uint8Array).toString('hex')

test('times of day; what is none of them is NULL in binary', () => {
  const [text, binary] = [wireForm(timeOfDay, false), wireForm(timeOfDay, true)]
  expect([text('10:11:12.5'), hex(binary('10:11:12.5'))]).toEqual(['10:11:12.5', '0000000889d9f120'])
  expect(hex(binary('10:11'))).toBe('00000008891b3500')
  expect(hex(binary('00:00:00.000001'))).toBe('0000000000000001')
  expect([text('noon'), binary('noon')]).toEqual(['noon', null])
})

test('a day has no time of day, and in binary the days since 2000', () => {
  const [text, binary] = [wireForm(day, false), wireForm(day, true)]
  for (const [written, days] of [
    ['2000-01-02', 1],
    ['1999-12-31', -1],
    ['2024-03-05', 8830],
  ] as const) {
    const millis = BigInt(Date.parse(written))
    expect(text(millis)).toBe(written)
    expect(Buffer.from(binary(millis) as Uint8Array).readInt32BE(0)).toBe(days)
  }
  expect(text(null)).toBeNull()
})

test('vectors of the catalog are arrays that begin at 0', () => {
  const [places, oids] = [textKinds.places, textKinds.oids].map((kind) => wireForm(dataType('STRING', kind), true))
  // dimensions | NULLs | type | length | lower bound | (bytes | value)*
  expect(hex(places?.('3 1') ?? null)).toBe(
    ['00000001', '00000000', '00000015', '00000002', '00000000', '00000002', '0003', '00000002', '0001'].join(''),
  )
  expect(hex(oids?.('26') ?? null)).toBe(
    ['00000001', '00000000', '0000001a', '00000001', '00000000', '00000004', '0000001a'].join(''),
  )
})
