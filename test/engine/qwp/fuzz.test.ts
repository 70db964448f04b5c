// Goal: the writer survives any bytes in the place of a QWP message (columnar binary protocol): it responds, goes on
// running, and stores valid messages afterwards. Method: messages are cut, changed at random places, given wrong
// lengths, or replaced by garbage; a failure prints the seed.

import { expect, test } from 'vitest'
import { type ColumnSpec, qwpMessage } from '../../support/qwp-messages.js'
import { createRandom } from '../../support/random.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'
import { WriterHost } from '../storage/writer-host.js'

const second = 1_000_000n

function newHost(): WriterHost {
  const { files } = createFaultyDisk(1)
  files.makeDirectory('/db')
  return new WriterHost({ files, parts: new Map(), walSegmentBytes: 1024 * 1024 })
}

const columns: ColumnSpec[] = [
  { name: 'b', type: 'BOOLEAN', values: [true, null, false] },
  { name: 'l', type: 'LONG', values: [1n, null, 3n] },
  { name: 's', type: 'SYMBOL', values: ['a', 'b', null] },
  { name: 'v', type: 'VARCHAR', values: ['ä', null, ''] },
  { name: 'g', type: 'GEOHASH', values: [1n, 2n, 3n], parameter: 12 },
  { name: 'd', type: 'DECIMAL128', values: [1n, null, -3n], parameter: 2 },
  { name: 'a', type: 'DOUBLE_ARRAY', values: [{ shape: [1, 2], values: [1, 2] }, null, { shape: [0, 3], values: [] }] },
  { name: 't', type: 'TIMESTAMP', values: [5n, 6n, 9n] },
  { name: '', type: 'TIMESTAMP', values: [second, 2n * second, 3n * second + 7n] },
]
const ids: ColumnSpec[] = [
  { name: 'k', type: 'SYMBOL', values: ['', '', ''], ids: [0, 1, 0] },
  { name: '', type: 'TIMESTAMP', values: [second, 2n * second, 3n * second + 7n] },
]

const samples = [
  qwpMessage([{ name: 'x', columns }], { gorilla: true }),
  qwpMessage([{ name: 'x', columns }]),
  qwpMessage([{ name: 'y', columns: ids }], { delta: { first: 0, strings: ['p', 'q'] }, gorilla: true }),
]
const good = qwpMessage([{ name: 'good', columns: ids }], { delta: { first: 0, strings: ['p', 'q'] } })

/** Sends the bytes, and then a good message of another connection. */
function survives(writer: WriterHost, bytes: Uint8Array, name: string): void {
  const { error } = writer.qwp([bytes])
  if (error !== null) expect(error.name, name).toMatch(/^(NetworkError|RowError|GapError|ResourceError)$/)
  expect(writer.qwp([good], { connectionId: 2 }).error, name).toBeNull()
}

test('cut at every byte', () => {
  const writer = newHost()
  for (const sample of samples) {
    for (let length = 1; length < sample.length; length++) {
      survives(writer, sample.slice(0, length), `plain ${length}`)
      const cut = sample.slice(0, length)
      // The announced length is right: what lacks is found within the columns.
      if (length >= 12) new DataView(cut.buffer).setUint32(8, length - 12, true)
      survives(writer, cut, `announced ${length}`)
      if (length >= 12) expect(writer.qwp([cut]).error, `announced ${length}`).not.toBeNull()
    }
  }
})

test('changed at random', () => {
  const random = createRandom(44)
  const writer = newHost()
  for (let round = 0; round < 3000; round++) {
    const bytes = samples[random.below(samples.length)]?.slice() ?? new Uint8Array(0)
    for (let changes = 1 + random.below(3); changes > 0; changes--) {
      bytes[12 + random.below(bytes.length - 12)] = random.below(256)
    }
    survives(writer, bytes, `round ${round}`)
  }
})

test('garbage', () => {
  const random = createRandom(45)
  const writer = newHost()
  for (let round = 0; round < 300; round++) {
    const bytes = Uint8Array.from({ length: 1 + random.below(200) }, () => random.below(256))
    if (round % 2 === 0) bytes.set(samples[0]?.slice(0, Math.min(12, bytes.length)) ?? [])
    if (bytes.length >= 12) new DataView(bytes.buffer).setUint32(8, bytes.length - 12, true)
    survives(writer, bytes, `round ${round}`)
  }
})
