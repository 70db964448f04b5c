// Goal: the stage that cuts a stream of line protocol into blocks keeps lines whole and in order, however the stream is
// split into chunks, even if binary values contain newlines; only a block of one long line exceeds the block size, and
// a slow reader stops the writer.
//
// Method: random lines (text, binary doubles, arrays and decimals, constructed to contain newlines and marks) are
// joined, split at random positions and sent through the stage, and each block is compared with the known ends of
// lines. fast-check prints its seed.

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lastLineEnd as lastLineEndOf } from '../../engine/lines/line-ends.js'
import { blockPool } from '../../pipeline/block-pool.js'
import { type LineRefusal, lineBlocks } from '../../pipeline/line-blocks.js'
import type { LineBlock } from '../../pipeline/line-cutter.js'

const lineBytesMax = 1 << 20
const lastLineEnd = (bytes: Buffer): number => lastLineEndOf(bytes, { lineBytesMax, final: false }).end

const double = fc
  .array(fc.constantFrom(0x0a, 0x0e, 0x10, 0x3d, 0x20, 0x00, 0x41), { minLength: 8, maxLength: 8 })
  .map((bytes) => Buffer.concat([Buffer.from('d==\x10', 'latin1'), Buffer.from(bytes)]))
const array = fc
  .tuple(fc.constantFrom(1, 2, 10), fc.constantFrom(0, 1, 10), fc.constantFrom(0x0a, 0x3d, 0x10, 0x0e, 0x42))
  .map(([rows, columns, fill]) => {
    const head = Buffer.from([0x61, 0x3d, 0x3d, 0x0e, 10, 2, rows, 0, 0, 0, columns, 0, 0, 0])
    return Buffer.concat([head, Buffer.alloc(rows * columns * 8, fill)])
  })
const decimal = fc
  .array(fc.constantFrom(0x0a, 0x17, 0x10, 0x3d, 0x00, 0x41), { maxLength: 32 })
  .map((bytes) => Buffer.concat([Buffer.from([0x64, 0x3d, 0x3d, 0x17, 10, bytes.length]), Buffer.from(bytes)]))
const characters = fc.oneof(fc.string(), fc.constantFrom('\n', '"', '\\', '=', ',', ' ', 'm x="', '\n#'))
const text = fc
  .array(characters, { maxLength: 8 })
  .map((parts) => Buffer.from(`t="${parts.join('').replace(/["\\]/g, '\\$&')}"`))
const line = fc.array(fc.oneof(text, double, array, decimal), { minLength: 1, maxLength: 4 }).map((fields) => {
  const parts = fields.flatMap((field) => [field, Buffer.from(',')]).slice(0, -1)
  return Buffer.concat([Buffer.from('m '), ...parts, Buffer.from(' 1\n')])
})

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let at = 0
  for (let turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    chunks.push(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
  return chunks
}

interface Gathered {
  readonly blocks: Buffer[]
  readonly refusals: Error[]
}

async function gather(chunks: readonly Buffer[], blockBytesMax: number, lineBytesMax = 1 << 20): Promise<Gathered> {
  const gathered: Gathered = { blocks: [], refusals: [] }
  const stage = lineBlocks({ blockBytesMax, lineBytesMax, pool: blockPool(blockBytesMax, 2) })
  const read = async (items: AsyncIterable<LineBlock | LineRefusal>): Promise<void> => {
    for await (const item of items) {
      if ('refusal' in item) {
        gathered.refusals.push(item.refusal)
        throw item.refusal
      }
      gathered.blocks.push(Buffer.from(item.bytes))
      item.bytes.fill(0x58)
      item.release()
    }
  }
  await pipeline(Readable.from(chunks), stage, read).catch((error) => {
    if (gathered.refusals.length === 0) throw error
  })
  return gathered
}

describe('lines', () => {
  test('come out whole and in order, however they are cut', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 30 }),
        sizes,
        fc.integer({ min: 64, max: 600 }),
        async (lines, cuts, max) => {
          const bytes = Buffer.concat(lines)
          const { blocks, refusals } = await gather(cut(bytes, cuts), max)
          expect(refusals).toEqual([])
          expect(Buffer.concat(blocks).equals(bytes)).toBe(true)
          const ends = new Set<number>()
          let end = 0
          for (const { length } of lines) {
            end += length
            ends.add(end)
          }
          let at = 0
          for (const block of blocks) {
            at += block.length
            expect(ends.has(at)).toBe(true)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  test('of a fast sender make blocks of nearly the full size', async () => {
    const bytes = Buffer.from('weather,city=Oslo temperature=3.5 1700000000000000000\n'.repeat(4000))
    const { blocks } = await gather(cut(bytes, [8192]), 65_536)
    expect(blocks.every(({ length }) => length <= 65_536)).toBe(true)
    expect(Buffer.concat(blocks).equals(bytes)).toBe(true)
  })

  test('longer than a block go alone, and the lines behind them are not kept back', async () => {
    const bytes = Buffer.from(`m v="${'x'.repeat(5000)}"\nm v=1i\nm v=2i\n`)
    const { blocks } = await gather(cut(bytes, [1000]), 1024)
    expect(blocks.map(({ length }) => length)).toEqual([5007, 14])
  })

  test('longer than the limit end the stream behind the lines before', async () => {
    const bytes = Buffer.from(`m v=1i\n${'x'.repeat(5000)}`)
    const { blocks, refusals } = await gather(cut(bytes, [100]), 1024, 2000)
    expect(Buffer.concat(blocks).toString()).toBe('m v=1i\n')
    expect(refusals[0]?.message).toBe('line is too long [bytesMax=2000]')
  })

  test('longer than the limit are refused also when their end arrives with the byte that is too many', async () => {
    for (const size of [2000, 2001]) {
      const bytes = Buffer.from(`${'x'.repeat(size - 1)}\nm v=1i\n`)
      const { refusals } = await gather([bytes], 1024, 2000)
      expect(refusals.length).toBe(size === 2000 ? 0 : 1)
    }
  })

  test('without their end are dropped and reported', async () => {
    const { blocks, refusals } = await gather([Buffer.from('m v=1i\nm v=12')], 1024)
    expect(Buffer.concat(blocks).toString()).toBe('m v=1i\n')
    expect(refusals[0]?.message).toContain('connection closed within a line')
  })
})

test('a newline within a double or an array ends no line', () => {
  const inDouble = Buffer.from('m d==\x10\n\n\n\n\n\n\n\n 1\nm d==\x10\n\n\n', 'latin1')
  expect(lastLineEnd(inDouble)).toBe(inDouble.indexOf(' 1\n') + 3)
  const inArray = Buffer.from('m a==\x0e\n\x01\x02\0\0\0\n\n\n\n\n\n\n\n\n\n\n', 'latin1')
  expect(lastLineEnd(inArray)).toBe(0)
})

test('a newline within a decimal ends no line, nor does its scale or its length', () => {
  const row = 'm d==\x17\n\n\n\n\n\n\n\n\n\n\n\n 1\n'
  expect(lastLineEnd(Buffer.from(row, 'latin1'))).toBe(row.length)
  for (let cut = 6; cut < row.length; cut++) expect(lastLineEnd(Buffer.from(row.slice(0, cut), 'latin1'))).toBe(0)
})

test('a mark within the bytes of a double is none', () => {
  const line = Buffer.from('m d==\x10\nabcd==\x10 1\n', 'latin1')
  expect(lastLineEnd(line)).toBe(line.length)
})

test('a newline that a backslash hides ends no line', () => {
  const head = 'm v=1i 1\n'
  expect(lastLineEnd(Buffer.from(`${head}m text="a\\\n`))).toBe(head.length)
  expect(lastLineEnd(Buffer.from(`m text="a\\\nb\\\n`))).toBe(0)
  expect(lastLineEnd(Buffer.from('m text="a\\\nb" 1\nm te'))).toBe('m text="a\\\nb" 1\n'.length)
  expect(lastLineEnd(Buffer.from('m,tag=a\\\\\n'))).toBe('m,tag=a\\\\\n'.length)
  const doubleEndsInBackslash = Buffer.from('m d==\x10abcdefg\\\n', 'latin1')
  expect(lastLineEnd(doubleEndsInBackslash)).toBe(doubleEndsInBackslash.length)
})

test('blocks end at lines wherever the chunks of a text with line ends are cut', async () => {
  const line = 'm,tag=a\\ b text="one\\\n\\\ntwo\\\\" 1\n'
  const bytes = Buffer.from(line.repeat(3))
  for (let at = 1; at < bytes.length; at++) {
    const { blocks, refusals } = await gather([bytes.subarray(0, at), bytes.subarray(at)], 1024)
    expect(refusals).toEqual([])
    expect(Buffer.concat(blocks).equals(bytes)).toBe(true)
    expect(blocks.every(({ length }) => length % line.length === 0)).toBe(true)
  }
})

test('the careful path takes linear time', () => {
  const head = Buffer.from('m a==\x0e\n\x01\x01\0\0\0\0\0\0\0\0\0\0\0 1\n', 'latin1')
  const bytes = Buffer.concat([head, Buffer.from('m v=1i,w=2i,text="some text" 1\n'.repeat(200_000))])
  const begun = process.cpuUsage()
  expect(lastLineEnd(bytes)).toBe(bytes.length)
  // 6 MB and 200,000 lines; searching to the end for each line takes minutes.
  expect(process.cpuUsage(begun).user).toBeLessThan(5_000_000)
})

test('a reader that stops holds the writer after a block or two', async () => {
  const blockBytesMax = 1024
  const stage = lineBlocks({ blockBytesMax, lineBytesMax: 1 << 20, pool: blockPool(blockBytesMax, 2) })
  const chunk = Buffer.from('m v=1i\n'.repeat(100))
  let written = 0
  while (written < 100 && stage.writableLength < blockBytesMax) {
    stage.write(Buffer.from(chunk))
    written++
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(written).toBeLessThan(10)
  stage.destroy()
})

describe('a newline within a quoted value', () => {
  test('ends no line', () => {
    const row = 'm v="a\nb",w=1i 1\n'
    for (let cut = 3; cut < row.length; cut++) expect(lastLineEnd(Buffer.from(row.slice(0, cut)))).toBe(0)
    expect(lastLineEnd(Buffer.from(row))).toBe(row.length)
  })

  test('ends none where the text holds escaped quotes, or ends in an equals sign', () => {
    for (const text of ['say \\"hi\\"\n', 'YWJj==', 'a=\n', '\\\\', ', \n']) {
      const row = `m v="${text}" 1\n`
      expect(lastLineEnd(Buffer.from(`${row}m v="x`))).toBe(row.length)
      expect(lastLineEnd(Buffer.from(row.slice(0, -4)))).toBe(0)
    }
  })

  test('ends the line of a quote that opens nothing: in tags, names, comments and unquoted values', () => {
    for (const row of ['m,t="a v=1i 1\n', 'm,t=5" v=1i 1\n', '"m v=1i 1\n', '# it says v="a\n', 'm v=5" 1\n']) {
      expect(lastLineEnd(Buffer.from(`${row}m v="x\n`))).toBe(row.length)
    }
  })

  test('ends the line of a quote that is closed in the wrong place', () => {
    const stray = 'm v="a 1\n'
    expect(lastLineEnd(Buffer.from(`${stray}m v="b" 1\n`))).toBe(stray.length + 10)
    expect(lastLineEnd(Buffer.from(`${stray}m v="b`))).toBe(stray.length)
    expect(lastLineEnd(Buffer.from('m v="a"b 1\nm'))).toBe(11)
  })

  test('comes out whole, however long the text and small the chunks', async () => {
    const rows = `m v="${'line\nsays \\"x\\"\n'.repeat(2000)}" 1\nm v=1i 2\n`
    const { blocks, refusals } = await gather(cut(Buffer.from(rows), [700]), 1024)
    expect(refusals).toEqual([])
    expect(blocks.map(({ length }) => length)).toEqual([rows.length - 9, 9])
  })

  test('keeps the lines behind a stray quote back until the limit of a line at most', async () => {
    const stray = 'm v="a 1\n'
    const line = 'm v=1i 2\n'
    const { blocks, refusals } = await gather(cut(Buffer.from(stray + line.repeat(400)), [90]), 1024, 2000)
    expect(refusals).toEqual([])
    expect(Buffer.concat(blocks).toString()).toBe(stray + line.repeat(400))
    expect(blocks[0]?.length).toBeLessThanOrEqual(1024)
  })

  test('keeps them back until the end of the stream at most', async () => {
    const rows = 'm v="a 1\nm v=1i 2\n'
    const { blocks, refusals } = await gather(cut(Buffer.from(`${rows}m v=`), [5]), 1024)
    expect(Buffer.concat(blocks).toString()).toBe(rows)
    expect(refusals[0]?.message).toContain('[bytes=4]')
  })
})
