// Goal: both Zstandard libraries (that of Node and a WebAssembly module) decompress what they compressed. Incomplete
// frames, and frames that would expand beyond the limit, are rejected before memory is allocated; a damaged frame does
// not affect later ones.
//
// Method: seeded random frames, damaged in named ways, each followed by a valid one.

import { createRequire } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { libraryOfNode, libraryOfWasm, zstd, zstdOver } from '../../../engine/base/zstd.js'
import { createRandom } from '../../support/random.js'

const MIB = 1024 * 1024
const seed = 5

/** What this Node has: node:zlib's from 22.15 on. */
const libraries = [
  { name: 'WebAssembly', library: libraryOfWasm() },
  { name: 'node:zlib', library: libraryOfNode() },
].flatMap(({ name, library }) => (library === null ? [] : [{ name, library }]))

/** A frame that declares `size` in eight bytes, with the blocks given. */
function frame(size: bigint, ...blocks: readonly { type: number; size: number; bytes: Uint8Array }[]): Buffer {
  const header = Buffer.alloc(14)
  header.writeUInt32LE(0xfd2fb528, 0)
  header.writeUInt8(0xc0, 4)
  header.writeUInt8(0x50, 5)
  header.writeBigUInt64LE(size, 6)
  const parts = blocks.map((block, index) => {
    const head = Buffer.alloc(3)
    head.writeUIntLE(block.size * 8 + block.type * 2 + (index === blocks.length - 1 ? 1 : 0), 0, 3)
    return Buffer.concat([head, block.bytes])
  })
  return Buffer.concat([header, ...parts])
}

const run = (size: number): { type: number; size: number; bytes: Uint8Array } => ({
  type: 1,
  size,
  bytes: Buffer.from('x'),
})

describe.each(libraries)('$name', ({ library }) => {
  const packer = zstdOver(library)

  test('what was compressed comes back, of several frames and frames to skip, too', () => {
    const random = createRandom(seed)
    const noise = new Uint8Array(300_000)
    random.fill(noise)
    const strings = [Buffer.alloc(0), Buffer.from('a'), Buffer.from('some text '.repeat(100_000)), Buffer.from(noise)]
    for (const text of strings) {
      for (const level of [1, 3, 19]) {
        const packed = packer.compress(text, level)
        expect(Buffer.from(packer.decompress(packed, text.length)).equals(text)).toBe(true)
        expect(Buffer.from(packer.decompress(packed, 10 * MIB)).equals(text)).toBe(true)
      }
    }
    const skipped = Buffer.from('502a4d1803000000aabbcc', 'hex')
    const frames = strings.flatMap((text) => [skipped, packer.compress(text, 1)])
    expect(Buffer.from(packer.decompress(Buffer.concat(frames), 10 * MIB)).equals(Buffer.concat(strings))).toBe(true)
  })

  test('frames that do not declare a size', () => {
    const undeclared = Buffer.concat([Buffer.from('28b52ffd0050', 'hex'), frame(0n, run(100_000), run(3)).subarray(14)])
    expect(packer.decompress(undeclared, 100_003)).toHaveLength(100_003)
    expect(packer.decompress(undeclared, 200 * MIB)).toHaveLength(100_003)
    expect(() => packer.decompress(undeclared, 100_002)).toThrow()
  })

  test('more than is allowed is refused', () => {
    const packed = packer.compress(Buffer.alloc(MIB, 'x'), 3)
    expect(() => packer.decompress(packed, MIB - 1)).toThrow('larger than is allowed [bytes=1048575]')
    expect(() => packer.decompress(Buffer.concat([packed, packed]), MIB * 2 - 1)).toThrow('larger than is allowed')
    const bomb = frame(128n * 1024n * 4096n, ...Array.from({ length: 4096 }, () => run(128 * 1024)))
    expect(() => packer.decompress(bomb, 100 * MIB)).toThrow('larger than is allowed')
  })

  test.each([
    ['no bytes', Buffer.alloc(0), 'there are no bytes'],
    ['other bytes', Buffer.from('these are no frames'), 'its first bytes are other ones'],
    ['a size of 2^63', frame(2n ** 63n, run(5)), 'its blocks cannot hold'],
    ['the size that stands for an error', frame(2n ** 64n - 2n, run(5)), 'its blocks cannot hold'],
    ['a size of 3 GiB', frame(3n * 2n ** 30n, run(5)), 'its blocks cannot hold'],
    ['a reserved block', frame(5n, { type: 3, size: 5, bytes: Buffer.from('x') }), 'of no known kind'],
    ['a block of 2 MiB', frame(5n, run(2 * MIB - 1)), 'of no known kind'],
    ['a cut header', frame(5n, run(5)).subarray(0, 10), 'it is cut off'],
    ['a cut block', frame(5n, run(5)).subarray(0, 17), 'it is cut off'],
    ['a frame to skip that is cut', Buffer.from('502a4d18ffffffff', 'hex'), 'it is cut off'],
  ])('%s', (_what, bytes, message) => {
    const good = packer.compress(Buffer.from('good'), 3)
    expect(() => packer.decompress(bytes, 1024 * MIB)).toThrow(message)
    expect(Buffer.from(packer.decompress(good, 4)).toString()).toBe('good')
  })

  test('damaged frames leave nothing behind', () => {
    const random = createRandom(seed)
    const text = Buffer.from(Array.from({ length: 2000 }, (_, index) => `row ${index * 7919} `).join(''))
    const good = Buffer.from(packer.compress(text, 3))
    let refused = 0
    for (let round = 0; round < 400; round++) {
      const damaged = Buffer.from(good)
      const hits = 1 + random.below(4)
      for (let hit = 0; hit < hits; hit++) damaged[random.below(round % 2 === 0 ? 20 : good.length)] = random.below(256)
      const bytes = round % 3 === 0 ? damaged.subarray(0, random.below(good.length)) : damaged
      try {
        packer.decompress(bytes, 4 * MIB)
      } catch {
        refused++
      }
      expect(Buffer.from(packer.decompress(good, text.length)).equals(text), `seed ${seed}, round ${round}`).toBe(true)
      expect(Buffer.from(packer.decompress(packer.compress(text, 1), text.length)).equals(text)).toBe(true)
    }
    expect(refused).toBeGreaterThan(200)
  })

  test('memory that large frames took is garbage afterwards', async () => {
    const text = Buffer.alloc(100 * MIB, 'x')
    const before = process.memoryUsage().rss
    for (let round = 0; round < 4; round++) {
      expect(packer.decompress(packer.compress(text, 1), text.length)).toHaveLength(text.length)
    }
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const grown = (): number => {
      collect()
      return process.memoryUsage().rss - before
    }
    // Each round takes 200 MiB and more within the library.
    await expect.poll(grown).toBeLessThan(300 * MIB)
  })
})

test('a module that others initialise is not ours', async () => {
  const require = createRequire(import.meta.url)
  const others = require('@bokuweb/zstd-wasm') as typeof import('@bokuweb/zstd-wasm')
  const ours = zstdOver(libraryOfWasm())
  const text = Buffer.from('what is packed while another one loads '.repeat(1000))
  for (let round = 0; round < 5; round++) {
    const loading = others.init()
    const packed = ours.compress(text, 3)
    await loading
    expect(Buffer.from(ours.decompress(packed, text.length)).equals(text)).toBe(true)
  }
})

test('one is loaded for the thread', () => {
  expect(zstd()).toBe(zstd())
})
