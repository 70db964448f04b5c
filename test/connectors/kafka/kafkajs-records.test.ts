// Goal: our decoder of Kafka records, which replaces that of kafkajs, returns the same records. Method: random records,
// encoded by kafkajs.

import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BatchContext, decodeRecord } from '../../../connectors/kafka/kafkajs-records.js'

const require = createRequire(import.meta.url)
const folder = 'kafkajs/src/protocol'
const Decoder = require(`${folder}/decoder`)
const theirs = require(`${folder}/recordBatch/record/v0/decoder`)
const encode = require(`${folder}/recordBatch/record/v0`)

const bytes = fc.option(
  fc.uint8Array({ maxLength: 300 }).map((some) => Buffer.from(some)),
  { nil: null },
)
const records = fc.record({
  key: bytes,
  value: bytes,
  offsetDelta: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  timestampDelta: fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
  headers: fc.dictionary(
    fc.string({ minLength: 1, maxLength: 5 }),
    fc.oneof(fc.string({ maxLength: 9 }), fc.array(fc.string({ maxLength: 9 }), { minLength: 2, maxLength: 3 })),
    { maxKeys: 3 },
  ),
})

function context(rest: Partial<BatchContext> = {}): BatchContext {
  return {
    ...{ firstOffset: '9007199000000', firstTimestamp: '1700000000000', maxTimestamp: '1700000009999' },
    ...{ timestampType: 0, isControlBatch: false },
    ...rest,
  }
}

/** The record without its length, as kafkajs hands it on. */
function encoded(record: object): Buffer {
  return new Decoder(encode(record).buffer).readVarIntBytes()
}

test('random records', () => {
  fc.assert(
    fc.property(records, fc.constantFrom(0, 1), fc.boolean(), (record, timestampType, isControlBatch) => {
      const batch = context({ timestampType, isControlBatch })
      const buffer = encoded(record)
      const wanted = theirs(new Decoder(buffer), batch)
      const mine = decodeRecord(new Decoder(buffer), batch)
      expect(mine).toMatchObject({ key: wanted.key, value: wanted.value, isControlRecord: isControlBatch })
      expect([String(mine.offset), String(mine.timestamp)]).toEqual([wanted.offset, wanted.timestamp])
      expect({ ...mine.headers }).toEqual(wanted.headers)
      expect(mine.batchContext).toBe(batch)
    }),
  )
})

test('a record that is cut off', () => {
  const record = encoded({ key: Buffer.from('k'), value: Buffer.from('value'), offsetDelta: 7, timestampDelta: 300 })
  for (let length = 1; length < record.length; length++) {
    expect(() => decodeRecord(new Decoder(record.subarray(0, length)), context()), String(length)).toThrow(RangeError)
  }
})
