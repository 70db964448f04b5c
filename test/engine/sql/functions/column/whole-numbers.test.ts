// Goal: the hash set of integers behind IN, and the bit map made from it, contain exactly the added numbers; there is
// no bit map for 64-bit numbers and for numbers too far apart. Method: random columns of numbers, in small and large
// ranges, compared with a JavaScript Set.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  hasValue,
  noNumbers,
  numberBits,
  withColumn,
} from '../../../../../engine/sql/functions/column/whole-numbers.js'

const near = fc.integer({ min: -3000, max: 3000 })
const anywhere = fc.integer({ min: -(2 ** 31) + 1, max: 2 ** 31 - 1 })

test('sets and their bits have the numbers of a column', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(near, near, anywhere)), fc.array(near), fc.boolean(), (mixed, close, isClose) => {
      const values = isClose ? close : mixed
      const set = withColumn(noNumbers(), Int32Array.from(values), false)
      const wanted = new Set(values)
      const bits = numberBits(set)
      if (isClose) expect(bits).toBeDefined()
      expect(set.size).toBe(wanted.size)
      for (const value of [...mixed, ...close, 0, -1, 7, 2 ** 31 - 1]) {
        expect(hasValue(set, value)).toBe(wanted.has(value))
        if (bits === undefined) continue
        const bit = value - bits.min
        const held = bit >= 0 && bit <= bits.last && (((bits.words[bit >>> 5] ?? 0) >>> (bit & 31)) & 1) === 1
        expect(held).toBe(wanted.has(value))
      }
    }),
    { numRuns: 500 },
  )
})

test('numbers that are wider, or too far apart, have no bits', () => {
  expect(numberBits(withColumn(noNumbers(), Int32Array.of(5, 1), true))).toBeUndefined()
  expect(numberBits(withColumn(noNumbers(), Int32Array.of(0, 2 ** 30), false))).toBeUndefined()
})
