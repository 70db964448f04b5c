// Goal: what loops over columns call gives what the interpreter gives, and rounding is that of decimal texts. Method:
// every function with a form over plain numbers, on ordinary and odd numbers; rounding against texts cut by hand.

import { describe, expect, test } from 'vitest'
import type { CallSite, TypePattern } from '../../../../engine/sql/functions/function-types.js'
import { roundDecimal } from '../../../../engine/sql/functions/math.js'
import { scalarFunctions } from '../../../../engine/sql/functions/registry/all.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { createRandom, type Random } from '../../../support/random.js'

const whole: ReadonlySet<TypePattern> = new Set(['BYTE', 'SHORT', 'INT'])

function someNumber(random: Random, type: TypePattern | undefined): number {
  if (type !== undefined && whole.has(type)) return random.between(-20, 20)
  const odd = [0, -0, 0.5, -0.5, 1e300, -1e-300, Number.POSITIVE_INFINITY, 1e15, 123_456_789.125]
  const value = random.pick([random.next() * 1000, -random.next(), random.between(-5000, 5000) / 100, ...odd])
  return type === 'FLOAT' ? Math.fround(value) : value
}

describe('functions over plain numbers', () => {
  const found = scalarFunctions.filter(({ numbers }) => numbers !== undefined)
  test('are many', () => {
    expect(found.length).toBeGreaterThan(30)
  })
  test.each(found.map((row) => [`${row.name}(${row.takes.join()})`, row] as const))('%s', (_, row) => {
    const random = createRandom(17)
    const site = { type: dataType('DOUBLE'), argTypes: [], position: 0, memo: new Map() } as unknown as CallSite
    for (let round = 0; round < 500; round++) {
      const args = row.takes.map((type) => someNumber(random, type))
      const exact = row.eval(args, site) ?? Number.NaN
      expect(row.numbers?.(args[0] as number, args[1] ?? 0)).toBe(exact)
    }
  })
})

/** Rounds a text without exponent, digit by digit. */
function roundedText(text: string, places: number, mode: Parameters<typeof roundDecimal>[2]): number {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const digits = whole + fraction.padEnd(20, '0')
  const kept = digits.slice(0, whole.length + places).padStart(1, '0')
  const rest = digits.slice(whole.length + places).padEnd(1, '0')
  const [tie, nothing] = [/^50*$/.test(rest), /^0*$/.test(rest)]
  const odd = Number(kept.at(-1)) % 2 === 1
  const half = rest >= '5' && (mode === 'halfUp' || !tie || odd)
  const up = mode === 'up' ? !nothing : mode !== 'down' && half
  const rounded = BigInt(kept) + (up ? 1n : 0n)
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
