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
  await expect(snappyCodec.decompress(snappy)).rejects.toThrow(beyond)
  const zstd = Buffer.from('28b52ffdc00000000080000000000100000', 'hex')
  await expect(zstdCodec.decompress(zstd)).rejects.toThrow('its blocks cannot hold')
  // Members of gzip one behind the other are one text.
  const member = await gzipCodec.compress({ buffer: Buffer.alloc(32 * 1024 * 1024) })
  const bomb = Buffer.concat(Array.from({ length: 9 }, () => member))
  await expect(gzipCodec.decompress(bomb)).rejects.toThrow(beyond)
  // Blocks of Snappy, each of an allowed size: 200 MiB and 200 MiB.
  const blocks = ['8080806400', '8080806400'].map((bytes) => `00000005${bytes}`).join('')
  const framed = Buffer.from(`82534e415050590000000001${'00000001'}${blocks}`, 'hex')
  await expect(snappyCodec.decompress(framed)).rejects.toThrow(beyond)
  // 65 blocks of LZ4, each 4 MiB of one letter.
  await expect(lz4Codec.decompress(lz4Bomb(65))).rejects.toThrow(beyond)
  expect((await lz4Codec.decompress(lz4Bomb(3))).equals(Buffer.alloc(12 * 1024 * 1024, 'x'))).toBe(true)
})

test('a batch of LZ4 may have many small blocks, whose bytes are counted', async () => {
  // By their size alone these blocks could hold 320 MiB.
  const block = Buffer.concat([Buffer.from([0xf0, 255, 255, 255, 0]), Buffer.alloc(780, 'y')])
  const batch = lz4Frame(Array.from({ length: 1700 }, () => block))
  expect(batch.length * 255).toBeGreaterThan(256 * 1024 * 1024)
  expect((await lz4Codec.decompress(batch)).length).toBe(1700 * 780)
})

test('batches that are cut off or in another form say so', async () => {
  const packed = await lz4Codec.compress({ buffer: Buffer.from('a record') })
  await expect(lz4Codec.decompress(packed.subarray(0, packed.length - 4))).rejects.toThrow('cut off [codec=lz4]')
  await expect(lz4Codec.decompress(Buffer.alloc(20, 1))).rejects.toThrow('does not begin as an LZ4 frame')
  const header = Buffer.from('82534e415050590000000001' + '00000001' + '000000ff' + '00', 'hex')
  await expect(snappyCodec.decompress(header)).rejects.toThrow('cut off [codec=snappy]')
})

const beyond = 'a compressed record batch holds more bytes than are allowed'

/** A frame without checksums of its content, of blocks of up to 4 MiB. */
function lz4Frame(blocks: readonly Buffer[]): Buffer {
  const parts = blocks.flatMap((block) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(block.length)
    return [length, block]
  })
  return Buffer.concat([Buffer.from('04224d186070' + '73', 'hex'), ...parts, Buffer.alloc(4)])
}

/** Each block is one literal, a match of its repetitions, and the last five literals. */
function lz4Bomb(count: number): Buffer {
  const repeated = 4 * 1024 * 1024 - 6 - 4 - 15
  const lengths = Buffer.alloc(Math.floor(repeated / 255) + 1, 255)
  lengths[lengths.length - 1] = repeated % 255
  const block = Buffer.concat([Buffer.from([0x1f, 0x78, 1, 0]), lengths, Buffer.from([0x50]), Buffer.alloc(5, 'x')])
  return lz4Frame(Array.from({ length: count }, () => block))
}
