// Goal: lzoCompress writes LZO1X: a decoder written from the format's description decompresses its output.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lzoCompress } from '../../../engine/kernels/lzo.js'

/** The instructions that the encoder uses; anything else fails. */
function decode(stream: Uint8Array): number[] {
  const out: number[] = []
  let at = 0
  const next = (): number => stream[at++]!
  const literals = (count: number): void => {
    for (let index = 0; index < count; index++) out.push(next())
  }
  const long = (base: number): number => {
    let length = base
    while (stream[at] === 0) {
      length += 255
      at++
    }
    return length + next()
  }
  if (stream[0]! > 17) literals(next() - 17)
  for (;;) {
    const instruction = next()
    if (instruction === 0x11) {
      expect([next(), next(), at]).toEqual([0, 0, stream.length])
      return out
    }
    if (instruction < 16) {
      literals(instruction === 0 ? long(15) + 3 : instruction + 3)
      continue
    }
    expect(instruction).toBeGreaterThanOrEqual(0x20)
    expect(instruction).toBeLessThan(0x40)
    const length = (instruction & 31) === 0 ? long(31) + 2 : (instruction & 31) + 2
    const low = next()
    const distance = ((next() << 6) | (low >> 2)) + 1
    for (let index = 0; index < length; index++) out.push(out[out.length - distance] as number)
    literals(low & 3)
  }
}

test('gives the bytes back', () => {
  const repetitive = fc.array(fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.integer({ min: 1, max: 30 })), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(repetitive, (parts) => {
      const bytes = Buffer.concat(parts.flatMap(([part, times]) => Array.from({ length: times }, () => part)))
      expect(decode(lzoCompress(bytes))).toEqual([...bytes])
    }),
  )
})

test('runs of every length', () => {
  for (const length of [0, 1, 3, 4, 18, 19, 33, 34, 238, 239, 255, 273, 288, 289, 600, 20_000]) {
    const same = new Uint8Array(length).fill(7)
    const various = Uint8Array.from({ length }, (_, index) => (index * index * 31 + (index >> 3)) & 255)
    expect(decode(lzoCompress(same))).toEqual([...same])
    expect(decode(lzoCompress(various))).toEqual([...various])
  }
})
