// Goal: binary parameters of PostgreSQL types that this server stores as strings (addresses, times with zone, JSONB,
// lists) are decoded to the strings that PostgreSQL would print. Parameters of any type that cannot be stored, such as
// infinite times and invalid NUMERIC values, are rejected.

import { expect, test } from 'vitest'
import { dataType } from '../../../engine/types/column-types.js'
import { decodeParameter } from '../../../engine/types/pg-decode-value.js'
import { wireForm } from '../../../engine/types/pg-encode-value.js'
import { oids } from '../../../engine/types/pg-oids.js'

function decoded(oid: number, hex: string): unknown {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  return decodeParameter(bytes, true, { oid, type: dataType('STRING') }, 0).value
}

test.each([
  [oids.inet, '02 20 00 04 0a000001', '10.0.0.1'],
  [oids.inet, '02 08 00 04 0a000000', '10.0.0.0/8'],
  [oids.cidr, '02 20 01 04 0a000001', '10.0.0.1/32'],
  [oids.inet, '03 80 00 10 00000000000000000000000000000001', '::1'],
  [oids.inet, '03 80 00 10 00000000000000000000000000000000', '::'],
  [oids.inet, '03 80 00 10 20010db8000000000001000000000001', '2001:db8::1:0:0:1'],
  [oids.inet, '03 80 00 10 00010000000000020000000000000003', '1:0:0:2::3'],
  [oids.inet, '03 80 00 10 00010000000200030004000500060007', '1:0:2:3:4:5:6:7'],
  [oids.cidr, '03 0a 01 10 fe800000000000000000000000000000', 'fe80::/10'],
])('an address, oid %i: %s', (oid, hex, text) => expect(decoded(oid, hex)).toBe(text))

test('an address of another length is refused', () => {
  expect(() => decoded(oids.inet, '02 20 00 04 0a0000')).toThrow('invalid value of a parameter')
  expect(() => decoded(oids.inet, '03 20 00 04 0a000001')).toThrow('invalid value of a parameter')
})

test.each([
  [oids.timestamp, '7fffffffffffffff'],
  [oids.timestamptz, '7fffffffffffffff'],
  [oids.date, '7fffffff'],
  [oids.date, '80000000'],
])('infinity is no time here, oid %i: %s', (oid, hex) => {
  const shown = hex.startsWith('8') ? '-infinity' : 'infinity'
  expect(() => decoded(oid, hex)).toThrow(new RegExp(`^invalid value of a parameter .* value=${shown}\\]$`))
})

test('the year 1 as asyncpg sends it, -infinity, leaves as it came', () => {
  const value = decoded(oids.timestamp, '8000000000000000') as bigint
  const sent = wireForm(dataType('TIMESTAMP'), true)(value)
  expect(Buffer.from(sent as Uint8Array).toString('hex')).toBe('8000000000000000')
})

test('numbers of NUMERIC that no type holds, and signs that there are not, are refused, not stored as NULL', () => {
  expect(() => decoded(oids.numeric, '0001 00c8 0000 0000 0001')).toThrow('invalid value of a parameter')
  expect(() => decoded(oids.numeric, '0001 0000 1234 0000 0001')).toThrow('invalid value of a parameter')
  expect(decoded(oids.numeric, '0001 0000 4000 0000 0001')).toBe(-1n)
})

test('JSONB of another version is refused', () => {
  expect(decoded(oids.jsonb, '01 7b7d')).toBe('{}')
  expect(() => decoded(oids.jsonb, '02 7b7d')).toThrow('invalid value of a parameter')
})

test.each([
  [oids.timetz, '0000000889d9f120 00000000', '10:11:12.5+00'],
  [oids.timetz, '0000000888365340 ffffe3e0', '10:10:45+02'],
  [oids.timetz, '0000000000000000 00004d58', '00:00:00-05:30'],
])('a time with its zone, oid %i: %s', (oid, hex, text) => expect(decoded(oid, hex)).toBe(text))

const listOf = (element: number, ...values: readonly string[]) => {
  const four = (value: number) => value.toString(16).padStart(8, '0')
  const header = [1, 0, element, values.length, 1].map(four).join('')
  return header + values.map((hex) => four(hex.length / 2) + hex).join('')
}

test.each([
  [oids.byteaArray, listOf(oids.bytea, '0001', 'ff'), '{"\\\\x0001","\\\\xff"}'],
  [oids.jsonbArray, listOf(oids.jsonb, '017b7d'), '{"{}"}'],
  [oids.timeArray, listOf(oids.time, '0000000000000001'), '{00:00:00.000001}'],
  [oids.inetArray, listOf(oids.inet, '022000040a000001'), '{10.0.0.1}'],
])('a list of what is a text here, oid %i', (oid, hex, text) => expect(decoded(oid, hex)).toBe(text))
