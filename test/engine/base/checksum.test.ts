// Goal: combineCrc32(), which computes the CRC-32 of two concatenated byte sequences from their checksums and the
// length of the second, agrees with the checksum of the concatenation, for lengths from 0 to 1,000,003.

import { expect, test } from 'vitest'
import { combineCrc32, crc32 } from '../../../engine/base/checksum.js'

test.each([0, 1, 7, 255, 256, 65_537, 1_000_003])('%s bytes behind others', (bytes) => {
  const all = Uint8Array.from({ length: 21 + bytes }, (_, index) => (index * 197) ^ (index >>> 7))
  const [first, second] = [all.subarray(0, 21), all.subarray(21)]
  expect(combineCrc32(crc32(first), crc32(second), bytes)).toBe(crc32(all))
  expect(combineCrc32(0, crc32(second), bytes)).toBe(crc32(second))
})
