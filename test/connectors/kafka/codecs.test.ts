// Goal: the compressions of Kafka give back what they took, in the framing of the Java clients, too.

import { expect, test } from 'vitest'
import { lz4Codec, snappyCodec, zstdCodec } from '../../../connectors/kafka/codecs.js'
import { createRandom } from '../../support/random.js'

const random = new Uint8Array(100_000)
createRandom(1).fill(random)
const samples = [Buffer.from('a record, a record, a record'), Buffer.from(random), Buffer.alloc(6 * 1024 * 1024, 'x')]

test.each([
  ['snappy', snappyCodec],
  ['lz4', lz4Codec],
  ['zstd', zstdCodec],
])('%s', async (_name, codec) => {
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
