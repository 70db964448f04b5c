// Goal: data that the server compresses in steps (GZIP, BROTLI) can be decompressed by node:zlib, for all sizes, and a
// query can be cancelled between two steps. Method: partly random data, of sizes from 0 to 1.1 MB and around the size
// of a step.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { brotliCodec, compressInSteps, gzipCodec } from '../../../../engine/exec/encode/stepped-zlib.js'
import { createRandom } from '../../../support/random.js'

const step = 16 * 1024

function text(bytes: number, seed: number): Uint8Array {
  const random = createRandom(seed)
  // Half of it repeats, so that windows matter.
  const text = new Uint8Array(bytes)
  for (let at = 0; at < bytes; at++) text[at] = at > 100 && at % 64 < 32 ? text[at - 64]! : random.below(256)
  return text
}

const sizes = [0, 1, step - 1, step, step + 1, 3 * step, 300_001, 1_100_000]

test.each([1, 6, 9])('gzip of level %s', (level) => {
  for (const [seed, bytes] of sizes.entries()) {
    const plain = text(bytes, seed)
    const packed = compressInSteps(gzipCodec(level), plain, () => {})
    expect(Buffer.compare(gunzipSync(packed), plain)).toBe(0)
  }
})

test.each([0, 5, 9])('brotli of quality %s', (level) => {
  for (const [seed, bytes] of sizes.entries()) {
    const plain = text(bytes, seed)
    const packed = compressInSteps(brotliCodec(level), plain, () => {})
    expect(Buffer.compare(brotliDecompressSync(packed), plain)).toBe(0)
  }
})

test('a query that is over ends within a page', () => {
  for (const codec of [gzipCodec(9), brotliCodec(5)]) {
    let requested = 0
    const alive = (): void => {
      if (++requested === 4) throw new Error('over')
    }
    expect(() => compressInSteps(codec, text(1_000_000, 3), alive)).toThrow('over')
    expect(requested).toBe(4)
  }
})
