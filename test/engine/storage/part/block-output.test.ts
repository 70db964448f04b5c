// Goal: the buffered writer of data files writes appended bytes in order, in whole aligned blocks except for the last
// write.

import { expect, test } from 'vitest'
import type { File } from '../../../../engine/base/files.js'
import { BlockOutput } from '../../../../engine/storage/part/part-writer.js'

const mib = 1024 * 1024

function recordingFile() {
  const content = Buffer.alloc(8 * mib)
  const writes: { readonly position: number; readonly bytes: number }[] = []
  const write: File['write'] = (chunks, position) => {
    let at = position
    for (const chunk of chunks) {
      content.set(chunk, at)
      at += chunk.length
    }
    writes.push({ position, bytes: at - position })
  }
  return { content, writes, file: { write } as File }
}

test.each([
  ['small pieces', [40, 500_000, 40, 500_000, 40, 500_000, 7]],
  ['a piece of several blocks behind a small one', [3, 3 * mib + 5, 9]],
  ['whole blocks', [mib, 2 * mib]],
  ['an empty piece', [0, 5, 0]],
])('%s', (_, sizes) => {
  const { content, writes, file } = recordingFile()
  const output = new BlockOutput(file)
  const chunks = sizes.map((size, index) => Buffer.alloc(size, index + 1))
  for (const chunk of chunks) {
    const bytes = Uint8Array.from(chunk)
    output.append(bytes)
    // The caller uses its room again.
    bytes.fill(0xee)
  }
  output.flush()
  const expected = Buffer.concat(chunks)
  expect(content.subarray(0, expected.length).equals(expected)).toBe(true)
  expect(writes.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(expected.length)
  const whole = Math.floor(expected.length / mib)
  expect(writes.slice(0, whole)).toEqual(
    Array.from({ length: whole }, (_, block) => ({ position: block * mib, bytes: mib })),
  )
  expect(writes.length).toBe(Math.ceil(expected.length / mib))
})

test('nothing is written of nothing', () => {
  const { writes, file } = recordingFile()
  new BlockOutput(file).flush()
  expect(writes).toEqual([])
})
