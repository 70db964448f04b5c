// Goal: LZ4 blocks give what was packed, whole or in the frames of Hadoop; damaged ones are refused.

import { expect, test } from 'vitest'
import { parquetCodecs, unpackLz4 } from '../../pipeline/parquet-codecs.js'

// "ab" and a match of 18 bytes behind it, then "!".
const packed = Uint8Array.of(0x2e, 0x61, 0x62, 2, 0, 0x10, 0x21)
const text = `${'ab'.repeat(10)}!`

test('a block with a match that overlaps itself', () => {
  expect(Buffer.from(unpackLz4(packed, text.length)).toString()).toBe(text)
})

test('frames of Hadoop, and a plain block under the same name', async () => {
  const { LZ4 } = await parquetCodecs()
  const head = Buffer.alloc(8)
  head.writeUInt32BE(text.length, 0)
  head.writeUInt32BE(packed.length, 4)
  const framed = Buffer.concat([head, packed, head, packed])
  expect(Buffer.from(LZ4?.(framed, text.length * 2) ?? []).toString()).toBe(text + text)
  expect(Buffer.from(LZ4?.(packed, text.length) ?? []).toString()).toBe(text)
})

test('damage is noticed', () => {
  expect(() => unpackLz4(packed, text.length + 1)).toThrow('damaged')
  expect(() => unpackLz4(Uint8Array.of(0x1e, 0x61, 9, 0), 30)).toThrow('damaged')
  expect(() => unpackLz4(Uint8Array.of(0xf0, 0x61), 30)).toThrow('damaged')
})
