// Goal: the format of the write-ahead log does not change unnoticed. Method: the expected bytes are written down in
// this test. A changed format needs a new magic number or version; existing numbers are never reused.

import { expect, test } from 'vitest'
import { crc32 } from '../../../engine/base/checksum.js'
import { dataType } from '../../../engine/types/column-types.js'
import {
  frameBytes,
  frameHeaderBytes,
  groupFrameBytes,
  padBytes,
  parseFrameHeader,
  saltOf,
  sealFrame,
  sealGroupFrame,
  sealPadFrame,
} from '../../../engine/wal/frame.js'
import { decodeRows, encodeRows, type RowsTransaction } from '../../../engine/wal/frame-rows.js'
import { encodeSegmentHeader, parseSegmentHeader, segmentNumber, segmentPath } from '../../../engine/wal/segment.js'
import { encodeKafkaPosition } from '../../../engine/wal/source-position.js'
import { frameKinds } from '../../../engine/wal/types.js'

const logId = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8])
const salt = saltOf(logId)

/** 16 bytes a line. */
function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    lines.push(
      Buffer.from(bytes.subarray(at, at + 16))
        .toString('hex')
        .replace(/(.{8})(?=.)/g, '$1 '),
    )
  }
  return lines.join('\n')
}

test('the header of a segment', () => {
  const header = { number: 7, logId, startLsn: 0x1_2345_6788 }
  const bytes = encodeSegmentHeader(header)
  expect(bytes.length).toBe(8192)
  expect(hexDump(bytes.subarray(0, 48))).toMatchInlineSnapshot(`
    "5053574c 01000000 07000000 00000000
    01020304 05060708 88674523 01000000
    e9127add 00000000 00000000 00000000"
  `)
  expect(bytes.subarray(4096, 4096 + 48)).toEqual(bytes.subarray(0, 48))
  expect(parseSegmentHeader(bytes)).toEqual(header)
})

test('either copy of the header will do', () => {
  const header = { number: 7, logId, startLsn: 4096 }
  const bytes = encodeSegmentHeader(header)
  bytes.fill(0xff, 0, 4096)
  expect(parseSegmentHeader(bytes)).toEqual(header)
  bytes.fill(0xff, 4096)
  expect(parseSegmentHeader(bytes)).toBeUndefined()
  expect(parseSegmentHeader(bytes.subarray(0, 10))).toBeUndefined()
})

test('names of segments', () => {
  expect(segmentPath('/db/wal', 42)).toBe('/db/wal/0000000042.wal')
  expect(segmentNumber('0000000042.wal')).toBe(42)
  expect(segmentNumber('0000000042.wal.new')).toBeUndefined()
  expect(segmentNumber('aside')).toBeUndefined()
})

test('a frame', () => {
  const payload = Buffer.from('a row')
  const frame = new Uint8Array(frameBytes(payload.length)).fill(0xee)
  frame.set(payload, frameHeaderBytes)
  sealFrame(frame, frameKinds.rows, payload.length, 4096, salt)
  expect(hexDump(frame)).toMatchInlineSnapshot(`
    "50574631 05000000 10000000 172933b9
    00100000 00000000 77bdfd31 00000000
    6120726f 77000000"
  `)
  const expected = { length: 5, kind: frameKinds.rows, payloadCrc: crc32(payload), lsn: 4096 }
  expect(parseFrameHeader(frame, 4096, salt)).toEqual(expected)
  expect(parseFrameHeader(frame, 8192, salt)).toBeUndefined()
  expect(parseFrameHeader(frame, 4096, salt + 1)).toBeUndefined()
})

test('the beginning of a group, and its end', () => {
  const group = new Uint8Array(groupFrameBytes)
  sealGroupFrame(group, frameKinds.group, 12288, 8192, salt)
  expect(hexDump(group)).toMatchInlineSnapshot(`
    "50574631 10000000 01000000 18d3a1ef
    00300000 00000000 6f90ada0 00000000
    00300000 00000000 00200000 00000000"
  `)
  const pad = new Uint8Array(padBytes(4096 - 40))
  sealPadFrame(pad, 4096 - 40, salt)
  expect(hexDump(pad)).toMatchInlineSnapshot(`
    "50574631 08000000 04000000 69df2265
    d80f0000 00000000 73ef8667 00000000
    00000000 00000000"
  `)
})

test('a pad fills the block, or the next one when its header does not fit', () => {
  expect([0, 4096, 4064, 4072, 8].map(padBytes)).toEqual([0, 0, 32, 24 + 4096, 4088])
})

const transaction: RowsTransaction = {
  sourcePosition: encodeKafkaPosition({ connector: '', topic: 'ticks', partition: 3, offset: 77 }),
  ddl: [{ add: 'px' }],
  tables: [
    {
      tableId: 9,
      structureVersion: 2,
      transaction: 41,
      rowCount: 2,
      minTimestamp: 1000n,
      maxTimestamp: 2000n,
      symbols: [
        {
          columnId: 1,
          firstId: 5,
          count: 1,
          lengths: new Uint8Array([3, 0, 0, 0]),
          bytes: new Uint8Array(Buffer.from('IBM')),
        },
      ],
      columns: [
        { id: 0, type: dataType('TIMESTAMP'), values: fixed(new BigInt64Array([1000n, 2000n])) },
        { id: 1, type: dataType('SYMBOL'), values: fixed(new Int32Array([5, -1])) },
        { id: 4, type: dataType('DECIMAL', 10, 2), values: fixed(new BigInt64Array([1999n, -5n])) },
        {
          id: 7,
          type: dataType('VARCHAR'),
          values: {
            kind: 'packed',
            lengths: new Uint8Array(new Int32Array([2, -1]).buffer),
            bytes: new Uint8Array(Buffer.from('hi')),
          },
        },
      ],
    },
  ],
}

function fixed(values: BigInt64Array | Int32Array) {
  return { kind: 'fixed' as const, chunks: [new Uint8Array(values.buffer)] }
}

test('the payload of a rows frame', () => {
  const payload = Buffer.concat(encodeRows(transaction))
  expect(hexDump(payload)).toMatchInlineSnapshot(`
    "01000100 15000000 0e000000 01000000
    03000000 00000000 4d000000 00000000
    7469636b 73000000 5b7b2261 6464223a
    22707822 7d5d0000 09000000 02000000
    29000000 00000000 02000000 04000000
    e8030000 00000000 d0070000 00000000
    01000000 00000000 01000000 05000000
    01000000 03000000 03000000 00000000
    49424d00 00000000 00000000 08000000
    10000000 00000000 e8030000 00000000
    d0070000 00000000 01000000 0e000000
    08000000 00000000 05000000 ffffffff
    04000000 150a0200 10000000 00000000
    cf070000 00000000 fbffffff ffffffff
    07000000 0d000000 0a000000 00000000
    02000000 ffffffff 68690000 00000000"
  `)
  expect(decodeRows(new Uint8Array(payload))).toEqual(transaction)
})
