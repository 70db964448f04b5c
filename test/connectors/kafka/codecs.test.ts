// Goal: the compression codecs for Kafka record batches decompress what they compressed, also in the framing of the
// Java clients; a damaged batch is an error and does not affect later ones.

import { expect, test } from 'vitest'
import { gzipCodec, lz4Codec, snappyCodec, zstdCodec } from '../../../connectors/kafka/codecs.js'
import { createRandom } from '../../support/random.js'

const random = new Uint8Array(100_000)
createRandom(1).fill(random)
const samples = [Buffer.from('a record, a record, a record'), Buffer.from(random), Buffer.alloc(6 * 1024 * 1024, 'x')]

const codecs = [
  ['gzip', gzipCodec],
  ['snappy', snappyCodec],
  ['lz4', lz4Codec],
  ['zstd', zstdCodec],
] as const

test.each(codecs)('%s', async (_name, codec) => {
  for (const buffer of samples) {
    const packed = await codec.compress({ buffer })
    expect((await codec.decompress(packed)).equals(buffer)).toBe(true)
  }
})

test('snappy in blocks', async () => {
  const blocks = await Promise.all(samples.map((buffer) => snappyCodec.compress({ buffer })))
  const parts = blocks.flatMap((block) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(block.length)
    return [length, block]
  })
  const header = Buffer.from('82534e415050590000000001' + '00000001', 'hex')
  expect((await snappyCodec.decompress(Buffer.concat([header, ...parts]))).equals(Buffer.concat(samples))).toBe(true)
})

test.each(codecs)('%s: damaged batches are refused, and later ones are read', async (_name, codec) => {
  const buffer = Buffer.from('one record of many, '.repeat(50))
  const packed = await codec.compress({ buffer })
  const draw = createRandom(2)
  let refused = 0
  for (let round = 0; round < 100; round++) {
    const damaged = Buffer.from(packed)
    damaged[draw.below(packed.length)] = draw.below(256)
    const cut = damaged.subarray(0, round % 2 === 0 ? damaged.length : draw.below(damaged.length))
    await codec.decompress(cut).catch(() => refused++)
    expect((await codec.decompress(packed)).equals(buffer)).toBe(true)
  }
  expect(refused).toBeGreaterThan(40)
})

test('sizes that nobody can have are refused before memory is taken', async () => {
  const snappy = Buffer.from('ffffffff0f00', 'hex')
  await expect(snappyCodec.decompress(snappy)).rejects.toThrow('declares too many bytes')
  const zstd = Buffer.from('28b52ffdc00000000080000000000100000', 'hex')
  await expect(zstdCodec.decompress(zstd)).rejects.toThrow('its blocks cannot hold')
  // Members of gzip one behind the other are one text.
  const member = await gzipCodec.compress({ buffer: Buffer.alloc(32 * 1024 * 1024) })
  const bomb = Buffer.concat(Array.from({ length: 9 }, () => member))
  await expect(gzipCodec.decompress(bomb)).rejects.toThrow()
})
