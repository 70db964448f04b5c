// Goal: SQL functions that round numbers act on the decimal representation of a number, not on its binary one. Method:
// numbers of few digits, compared with strings that the test rounds digit by digit.

import { expect, test } from 'vitest'
import { roundDecimal } from '../../../../engine/sql/functions/math.js'
import { createRandom } from '../../../support/random.js'

/** Rounds a decimal string without exponent, digit by digit. */
function roundedText(text: string, places: number, mode: Parameters<typeof roundDecimal>[2]): number {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const digits = whole + fraction.padEnd(20, '0')
  const retained = digits.slice(0, whole.length + places).padStart(1, '0')
  const rest = digits.slice(whole.length + places).padEnd(1, '0')
  const [tie, nothing] = [/^50*$/.test(rest), /^0*$/.test(rest)]
  const odd = Number(retained.at(-1)) % 2 === 1
  const half = rest >= '5' && (mode === 'halfUp' || !tie || odd)
  const up = mode === 'up' ? !nothing : mode !== 'down' && half
  const rounded = BigInt(retained) + (up ? 1n : 0n)
  return Number(`${text.startsWith('-') ? '-' : ''}${rounded}e${-places}`)
}

test('rounding is that of the shortest decimal text', () => {
  const random = createRandom(23)
  for (let round = 0; round < 40_000; round++) {
    const digits = random.below(7)
    const value =
      random.pick([1, -1]) * (random.chance(0.3) ? random.next() * 1e6 : random.below(10_000_000) / 10 ** digits)
    const text = String(value)
    if (text.includes('e')) continue
    const places = random.between(-2, 6)
    const whole = text.replace('-', '').split('.')[0]?.length ?? 0
    if (whole + places < 1) continue
    for (const mode of ['halfUp', 'halfEven', 'up', 'down'] as const)
      expect([value, places, mode, roundDecimal(value, places, mode)]).toEqual([
        value,
        places,
        mode,
        roundedText(text, places, mode),
      ])
  }
})

test.each([
  [1.005, 2, 'halfUp', 1.01],
  [2.675, 2, 'halfUp', 2.68],
  [-2.5, 0, 'halfUp', -3],
  [2.5, 0, 'halfEven', 2],
  [0.285, 2, 'halfEven', 0.28],
  [1.21, 1, 'up', 1.3],
  [1.3, 1, 'up', 1.3],
  [1e-30, 2, 'up', 0.01],
  [8.7, 1, 'down', 8.7],
  [123_456_789_012_345.6, 1, 'down', 123_456_789_012_345.6],
  [1e22, -17, 'halfUp', 1e22],
  [45, -1, 'halfEven', 40],
  [12_345, -2, 'up', 12_400],
] as const)('%d at %d places, %s', (value, places, mode, rounded) => {
  expect(roundDecimal(value, places, mode)).toBe(rounded)
})
