// Goal: a double equals the constant with which it is compared if they differ by at most 1e-10; the bounds of that
// range are exact. Method: known numbers, and random ones whose neighbouring doubles are checked.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lastEqual } from '../../../../engine/sql/typing/tolerance.js'

test('the ends of what equals a number', () => {
  expect([lastEqual(0, -1), lastEqual(0, 1)]).toEqual([-1e-10, 1e-10])
  expect(lastEqual(0.3, 1)).toBeGreaterThan(0.1 + 0.2)
  expect([lastEqual(1e10, -1), lastEqual(1e10, 1)]).toEqual([1e10, 1e10])
  expect(lastEqual(Number.MAX_VALUE, 1)).toBe(Number.MAX_VALUE)
})

test('every double up to the end equals the number, and none behind it', () => {
  const number = fc.double({ min: -1e7, max: 1e7, noNaN: true }).filter((value) => Math.abs(value) > 1e-6)
  fc.assert(
    fc.property(number, fc.constantFrom(-1 as const, 1 as const), (value, direction) => {
      const last = lastEqual(value, direction)
      const beyond = last + direction * Math.max(Math.abs(last) * Number.EPSILON, Number.MIN_VALUE)
      expect(Math.abs(last - value)).toBeLessThanOrEqual(1e-10)
      expect(Math.abs(beyond - value)).toBeGreaterThan(1e-10)
    }),
  )
})
