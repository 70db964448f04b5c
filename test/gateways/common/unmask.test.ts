// Goal: unmasker() removes the masks of WebSocket frames in place: afterwards the payload is plain and the mask in the
// frame is zero. The result does not depend on how the stream is cut into chunks or on their alignment in memory.
// Method: property test over random frames, cuts and offsets.

import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { unmasker } from '../../../gateways/common/unmask.js'
import { createRandom } from '../../support/random.js'

interface Frame {
  readonly payload: Buffer
  readonly mask: Buffer | null
}

function bytesOf({ payload, mask }: Frame, isUnmasked: boolean): Buffer {
  const { length } = payload
  const head = Buffer.alloc(length > 0xffff ? 10 : length > 125 ? 4 : 2)
  head[0] = 0x82
  head[1] = (mask === null ? 0 : 0x80) | (length > 0xffff ? 127 : length > 125 ? 126 : length)
  if (length > 0xffff) head.writeBigUInt64BE(BigInt(length), 2)
  else if (length > 125) head.writeUInt16BE(length, 2)
  if (mask === null) return Buffer.concat([head, payload])
  if (isUnmasked) return Buffer.concat([head, Buffer.alloc(4), payload])
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ (mask[at & 3] ?? 0))])
}

test('frames are unmasked in place, however they are cut', () => {
  const seed = Date.now() % 1e9
  const { below, chance, pick, between } = createRandom(seed)
  for (let round = 0; round < 200; round++) {
    const frames = Array.from({ length: 1 + below(6) }, (): Frame => {
      const length = pick([below(4), below(126), between(126, 500), between(65_530, 65_540)])
      return { payload: randomBytes(length), mask: chance(1 / 8) ? null : randomBytes(4) }
    })
    const sent = Buffer.concat(frames.map((frame) => bytesOf(frame, false)))
    const unmask = unmasker()
    const chunks: Buffer[] = []
    for (let at = 0; at < sent.length; ) {
      const end = Math.min(sent.length, at + 1 + below(chance(0.5) ? 20 : 70_000))
      const shifted = Buffer.concat([Buffer.alloc(8 + below(8)), sent.subarray(at, end)])
      const chunk = shifted.subarray(shifted.length - (end - at))
      unmask(chunk)
      chunks.push(chunk)
      at = end
    }
    const plain = Buffer.concat(frames.map((frame) => bytesOf(frame, true)))
    expect(Buffer.concat(chunks).equals(plain), `seed ${seed}, round ${round}`).toBe(true)
  }
})
