// Goal: rows that are packed into a reused memory block are read back as they were written, whatever the block
// contained before. Method: random batches in blocks of one pool, which reuses its buffers.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PackedColumn, PackedRows } from '../../../../engine/storage/jobs/messages.js'
import { BlockPool, blockBytes, readBlock, writeBlock } from '../../../../engine/storage/memtable/packed-block.js'
import { dataType } from '../../../../engine/types/column-types.js'

const bytes = fc.uint8Array({ maxLength: 300 })
const numbers = fc.int32Array({ maxLength: 40 })
const values: fc.Arbitrary<PackedColumn> = fc.oneof(
  bytes.map((bytes) => ({ kind: 'fixed', bytes }) as const),
  fc.tuple(numbers, bytes).map(([lengths, bytes]) => ({ kind: 'strings', lengths, bytes }) as const),
  fc
    .tuple(numbers, bytes, fc.nat(1000))
    .map(([ids, strings, count]) => ({ kind: 'symbols', ids, strings, count }) as const),
)
const type = fc.constantFrom(
  ...[
    dataType('DOUBLE'),
    dataType('SYMBOL'),
    dataType('DECIMAL', 76, 40),
    dataType('GEOHASH', 60),
    dataType('ARRAY', 2),
  ],
)
const batches: fc.Arbitrary<PackedRows[]> = fc.array(
  fc.record({
    rows: fc.nat(2 ** 31),
    columns: fc.array(fc.record({ columnId: fc.nat(2 ** 31), type, values }), { maxLength: 6 }),
  }),
  { maxLength: 4 },
)

test('rows come back', () => {
  const pool = new BlockPool()
  fc.assert(
    fc.property(batches, (sent) => {
      const block = pool.take(blockBytes(sent))
      writeBlock(block, sent)
      expect(readBlock(block)).toEqual(sent)
      pool.give(block)
    }),
  )
})

test('a block is as large as its rows, and has room for all of them', () => {
  const pool = new BlockPool()
  const sent: PackedRows[] = [
    {
      rows: 1,
      columns: [
        { columnId: 1, type: dataType('LONG'), values: { kind: 'fixed', bytes: new Uint8Array(300_001).fill(7) } },
      ],
    },
  ]
  const block = pool.take(blockBytes(sent))
  expect(block.byteLength).toBe(blockBytes(sent))
  writeBlock(block, sent)
  expect(readBlock(block)).toEqual(sent)
})
