// Goal: timestamps in the compressed form of QWP (columnar protocol over WebSocket), which stores how much the
// difference between neighbours changes, are decoded to the values that were encoded; a message that ends within them
// is rejected. Method: random runs of equal differences, with changes of all sizes between the runs.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NetworkError } from '../../../engine/base/errors.js'
import { decodeGorilla } from '../../../engine/qwp/gorilla.js'
import { readHeader, readTable, WireReader } from '../../../engine/qwp/message.js'
import { qwpMessage } from '../../support/qwp-messages.js'

const change = fc.constantFrom(1, -1, 63, -64, 64, -65, 255, -256, 256, 2047, -2048, 2048, 2 ** 31 - 1, -(2 ** 31))
const runs = fc.array(fc.record({ length: fc.nat(60), change }), { maxLength: 12 })

function timesOf(first: bigint, steps: readonly { length: number; change: number }[]): bigint[] {
  const times = [first, first + 1000n]
  let step = 1000n
  for (const run of steps) {
    for (let index = 0; index < run.length; index++) times.push((times.at(-1) ?? 0n) + step)
    step += BigInt(run.change)
    times.push((times.at(-1) ?? 0n) + step)
  }
  return times
}

function decoded(message: Uint8Array): bigint[] {
  const reader = new WireReader(message, new DataView(message.buffer, 0, message.length), 0, message.length)
  const { flags } = readHeader(reader)
  const { columns, rows } = readTable(reader, flags, { rowsMax: 1e6 })
  const [column] = columns
  expect([reader.at, column?.gorilla]).toEqual([message.length, rows > 2])
  const words = new Uint32Array(rows * 2)
  if (column?.gorilla === true) decodeGorilla(reader.u8, reader.view, column.at, rows, words, 0)
  return [...new BigInt64Array(words.buffer)]
}

function messageOf(times: readonly bigint[]): Uint8Array {
  return qwpMessage([{ name: 't', columns: [{ name: '', type: 'TIMESTAMP', values: times }] }], { gorilla: true })
}

test('times of runs', () => {
  fc.assert(
    fc.property(fc.constantFrom(0n, 1_704_067_200_000_000n, 2n ** 62n), runs, (first, steps) => {
      const times = timesOf(first, steps)
      fc.pre(times.length > 2)
      expect(decoded(messageOf(times))).toEqual(times)
    }),
    { numRuns: 300 },
  )
})

test('times that are cut', () => {
  const whole = messageOf(timesOf(0n, [{ length: 70, change: 5000 }]))
  for (const bytes of [1, 2, 8, 12]) {
    const cut = whole.slice(0, whole.length - bytes)
    new DataView(cut.buffer).setUint32(8, cut.length - 12, true)
    expect(() => decoded(cut)).toThrow(NetworkError)
  }
})
