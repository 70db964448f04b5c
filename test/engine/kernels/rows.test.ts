// Goal: the WebAssembly kernel that stores strings of client rows agrees with the reference implementation: it writes
// address and length of each string into an 8-byte entry, concatenates the strings of entries, and moves them to a heap
// while they fit. Method: random strings in two memories, which must be equal afterwards.
// test/engine/pg/bind-rows.test.ts tests its functions for parameters.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const places = { state: testBase, lengths: testBase + 64, entries: testBase + 4096, strings: testBase + 16_384 }
const heap = testBase + 65_536
const packedLengths = testBase + 8192
const packed = testBase + 131_072

test('texts become entries and move, as long as there is room', () => {
  const { wasm, reference } = kernelsAndReferences()
  const strings = fc.array(fc.option(fc.uint8Array({ maxLength: 90 })), { maxLength: 50 })
  fc.assert(
    fc.property(strings, fc.integer({ min: 0, max: 3000 }), (rows, room) => {
      const moved = [wasm, reference].map(({ memory, kernels }) => {
        memory.u8.fill(0, heap, heap + 8192)
        let at = places.strings
        for (const [row, text] of rows.entries()) {
          memory.i32[(places.lengths >>> 2) + row] = text === null ? -1 : text.length
          if (text !== null) memory.u8.set(text, at)
          at += text?.length ?? 0
        }
        kernels.rows.entriesOf(places.lengths, rows.length, places.strings, places.entries)
        memory.u32.set([heap, heap + room], places.state >>> 2)
        const bytes = rows.reduce((sum, text) => sum + (text?.length ?? 0), 0)
        expect(kernels.rows.stringsBytes(places.entries, rows.length)).toBe(bytes)
        memory.u8.fill(0, packed, packed + 8192)
        expect(kernels.rows.packStrings(places.entries, rows.length, packedLengths, packed)).toBe(packed + bytes)
        expect([...memory.i32.subarray(packedLengths >>> 2).subarray(0, rows.length)]).toEqual(
          rows.map((text) => text?.length ?? -1),
        )
        expect(Buffer.from(memory.u8.slice(packed, packed + bytes))).toEqual(
          Buffer.concat(rows.flatMap((text) => (text === null ? [] : [text]))),
        )
        const count = kernels.rows.moveStrings(places.entries, rows.length, places.state)
        const found = Array.from({ length: count }, (_, row) => {
          const [address = 0, length = 0] = memory.i32.subarray((places.entries >>> 2) + row * 2)
          return length < 0 ? null : Buffer.from(memory.u8.slice(address, address + length)).toString('hex')
        })
        expect(found).toEqual(
          rows.slice(0, count).map((text) => (text === null ? null : Buffer.from(text).toString('hex'))),
        )
        return count
      })
      expect(moved[0]).toBe(moved[1])
      expect(sameBytes({ wasm, reference }, places.state, 8)).toBe(true)
      expect(sameBytes({ wasm, reference }, places.entries, rows.length * 8)).toBe(true)
    }),
  )
})
