// Goal: the string kernel (WebAssembly) agrees with its reference implementation, and both with JavaScript. Method:
// random patterns and strings over a small alphabet, so that near misses are frequent.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  anyByte,
  type TextPattern,
  textFlags,
  textOrders,
  textResults,
  undecidedBytes,
  writeTextPattern,
} from '../../../engine/kernels/text.js'
import { intMin } from '../../../engine/types/number.js'
import { kernelsAndReferences, testBase } from './kernel-support.js'

/** From 1, in characters; 0 without one. */
function placeOf(text: string, wanted: string): number {
  return text.includes(wanted) ? [...text.slice(0, text.indexOf(wanted))].length + 1 : 0
}

const both = kernelsAndReferences(16)
const entries = testBase + 4096
const strings = testBase + 8192
const out = testBase + 65_536

const letters = fc.constantFrom('a', 'b', 'A', 'é', '%', 'ab')
const literal = fc
  .array(fc.constantFrom('a', 'b', 'A', 'ab'), { minLength: 1, maxLength: 20 })
  .map((parts) => parts.join(''))
const patterns = fc.record({
  literals: fc.array(literal, { maxLength: 3 }),
  start: fc.boolean(),
  end: fc.boolean(),
  ignoreCase: fc.boolean(),
})
const rows = fc.array(fc.option(fc.array(letters, { maxLength: 60 }).map((parts) => parts.join(''))), { maxLength: 30 })

function laidOut(pattern: TextPattern, values: readonly (string | null)[]): void {
  for (const { memory } of [both.wasm, both.reference]) {
    writeTextPattern(memory, testBase, pattern)
    let at = strings
    values.forEach((value, row) => {
      const bytes = Buffer.from(value ?? '')
      memory.u32[(entries >>> 2) + row * 2] = at
      memory.i32[(entries >>> 2) + row * 2 + 1] = value === null ? -1 : bytes.length
      memory.u8.set(bytes, at)
      at += bytes.length
    })
  }
}

function wanted(
  text: string | null,
  literals: readonly string[],
  start: boolean,
  end: boolean,
  ignoreCase: boolean,
): number {
  if (text === null) return textResults.no
  if (ignoreCase && Buffer.byteLength(text) !== text.length) return textResults.undecided
  const middle = literals.length === 0 && !(start && end) ? '.*' : literals.join('.*')
  const regex = new RegExp(`^${start ? '' : '.*'}${middle}${end ? '' : '.*'}$`, ignoreCase ? 'is' : 's')
  return regex.test(text) ? textResults.yes : textResults.no
}

test('patterns of literals match as regular expressions do', () => {
  fc.assert(
    fc.property(patterns, rows, ({ literals, start, end, ignoreCase }, values) => {
      // A pattern without % and without literals is the empty one: both ends are anchored, or neither.
      const anchored = literals.length === 0 ? { start: start && end, end: start && end } : { start, end }
      const shown = ignoreCase ? literals.map((text) => text.toLowerCase()) : literals
      const flags =
        (anchored.start ? textFlags.anchoredStart : 0) |
        (anchored.end ? textFlags.anchoredEnd : 0) |
        (ignoreCase ? textFlags.ignoreCase : 0)
      laidOut({ literals: shown.map((text) => new Uint8Array(Buffer.from(text))), flags }, values)
      for (const { memory, kernels } of [both.wasm, both.reference]) {
        kernels.text.matchStrings(testBase, entries, values.length, out)
        const answers = [...memory.u8.subarray(out, out + values.length)]
        expect(answers).toEqual(values.map((text) => wanted(text, literals, anchored.start, anchored.end, ignoreCase)))
      }
    }),
    { numRuns: 2000 },
  )
})

const members = testBase + 61_440
const constants = testBase + 63_488
const heap = testBase + 131_072

/** Constants as entries, in both memories. */
function laidMembers(values: readonly (string | null)[]): void {
  for (const { memory } of [both.wasm, both.reference]) {
    let at = constants
    values.forEach((value, row) => {
      const bytes = Buffer.from(value ?? '')
      memory.u32[(members >>> 2) + row * 2] = at
      memory.i32[(members >>> 2) + row * 2 + 1] = value === null ? -1 : bytes.length
      memory.u8.set(bytes, at)
      at += bytes.length
    })
  }
}

const words = fc.option(
  fc.array(fc.constantFrom('a', 'b', 'B', 'é', '😀', 'abcdefgh'), { maxLength: 12 }).map((parts) => parts.join('')),
)
const nothing: TextPattern = { literals: [], flags: 0 }

test('comparisons with constants are those of UTF-8', () => {
  fc.assert(
    fc.property(
      fc.array(words, { maxLength: 30 }),
      fc.array(words, { minLength: 1, maxLength: 4 }),
      (values, wanted) => {
        laidOut(nothing, values)
        laidMembers(wanted)
        const other = Buffer.from(wanted[0] ?? '')
        for (const { memory, kernels } of [both.wasm, both.reference]) {
          kernels.text.memberStrings(entries, values.length, members, wanted.length, out)
          expect([...memory.u8.subarray(out, out + values.length)]).toEqual(
            values.map((v) => (wanted.includes(v) ? 1 : 0)),
          )
          for (const order of [textOrders.less, textOrders.equal | textOrders.greater | textOrders.missing]) {
            kernels.text.orderStrings(entries, values.length, constants, other.length, order, out)
            const holds = (v: string): boolean => ((order >> (Buffer.compare(Buffer.from(v), other) + 1)) & 1) === 1
            const expected = values.map((v) => ((v === null ? order >= textOrders.missing : holds(v)) ? 1 : 0))
            expect([...memory.u8.subarray(out, out + values.length)]).toEqual(expected)
          }
        }
      },
    ),
    { numRuns: 1000 },
  )
})

test('characters are those of UTF-16, and texts that are not ASCII are left', () => {
  const place = fc.integer({ min: -12, max: 12 })
  fc.assert(
    fc.property(fc.array(words, { maxLength: 30 }), place, place, fc.boolean(), (values, from, to, upper) => {
      laidOut(nothing, values)
      const ascii = (v: string): boolean => Buffer.byteLength(v) === v.length
      const decided = (of: (v: string) => string): (string | number)[] =>
        values.map((v) => (v === null ? -1 : ascii(v) ? of(v) : undecidedBytes))
      const left = values.filter((v) => v !== null && !ascii(v)).length
      for (const { memory, kernels } of [both.wasm, both.reference]) {
        const results = (): (string | number)[] =>
          values.map((_, row) => {
            const start = memory.u32[(out >>> 2) + row * 2]!
            const bytes = memory.i32[(out >>> 2) + row * 2 + 1]!
            return bytes < 0 ? bytes : Buffer.from(memory.u8.slice(start, start + bytes)).toString()
          })
        kernels.text.textUnits(entries, values.length, out)
        expect([...memory.i32.subarray(out >>> 2, (out >>> 2) + values.length)]).toEqual(
          values.map((v) => v?.length ?? -1),
        )
        expect(kernels.text.sliceStrings(entries, values.length, from, to, out)).toBe(left)
        expect(results()).toEqual(decided((v) => v.slice(from, to)))
        expect(kernels.text.foldStrings(entries, values.length, upper ? 1 : 0, heap, out)).toBe(left)
        expect(results()).toEqual(decided((v) => (upper ? v.toUpperCase() : v.toLowerCase())))
        const bytes = values.reduce((sum, v) => sum + Buffer.byteLength(v ?? ''), 0)
        expect(kernels.text.stringsBytes(entries, values.length)).toBe(bytes)
      }
    }),
    { numRuns: 1000 },
  )
})

test('_ is any character of ASCII, and other texts are left', () => {
  const parts = fc
    .array(fc.constantFrom('_', 'a', 'b', '_b'), { minLength: 1, maxLength: 4 })
    .map((some) => some.join(''))
  fc.assert(
    fc.property(fc.array(parts, { minLength: 1, maxLength: 3 }), fc.boolean(), rows, (literals, whole, values) => {
      const bytes = (text: string): Uint8Array => Uint8Array.from(text, (c) => (c === '_' ? anyByte : c.charCodeAt(0)))
      const anchors = whole ? textFlags.anchoredStart | textFlags.anchoredEnd : 0
      laidOut({ literals: literals.map(bytes), flags: textFlags.wildcards | anchors }, values)
      const middle = literals.join('.*').replaceAll('_', '.')
      const regex = new RegExp(whole ? `^${middle}$` : middle, 's')
      const expected = values.map((text) => {
        if (text === null) return textResults.no
        if (Buffer.byteLength(text) !== text.length) return textResults.undecided
        return regex.test(text) ? textResults.yes : textResults.no
      })
      for (const { memory, kernels } of [both.wasm, both.reference]) {
        kernels.text.matchStrings(testBase, entries, values.length, out)
        expect([...memory.u8.subarray(out, out + values.length)]).toEqual(expected)
      }
    }),
    { numRuns: 1000 },
  )
})

test('texts are found, trimmed, joined and replaced as JavaScript does', () => {
  const some = fc
    .array(fc.constantFrom('a', 'b', ' ', 'é', '😀', 'ab'), { maxLength: 10 })
    .map((parts) => parts.join(''))
  const column = fc.array(fc.option(some), { minLength: 12, maxLength: 12 })
  fc.assert(
    fc.property(
      column,
      column.filter(([first]) => first !== null && first !== ''),
      (values, others) => {
        laidOut(nothing, values)
        laidMembers(others)
        const [needle = '', other] = others as string[]
        const [from, to] = [needle, other ?? ''].map((text) => Buffer.from(text)) as [Buffer, Buffer]
        for (const { memory, kernels } of [both.wasm, both.reference]) {
          const { text } = kernels
          const results = (): (string | null)[] =>
            values.map((_, row) => {
              const start = memory.u32[(out >>> 2) + row * 2]!
              const bytes = memory.i32[(out >>> 2) + row * 2 + 1]!
              return bytes < 0 ? null : Buffer.from(memory.u8.slice(start, start + bytes)).toString()
            })
          text.findInStrings(entries, values.length, constants, from.length, out)
          const places = [...memory.i32.subarray(out >>> 2, (out >>> 2) + values.length)]
          expect(places).toEqual(values.map((v) => (v === null ? intMin : placeOf(v, needle))))
          text.trimStrings(entries, values.length, 3, out)
          expect(results()).toEqual(values.map((v) => v?.replace(/^ +| +$/g, '') ?? null))
          text.trimStrings(entries, values.length, 1, out)
          expect(results()).toEqual(values.map((v) => v?.replace(/^ +/, '') ?? null))
          memory.u32.set([entries, members], (testBase + 2048) >>> 2)
          text.joinStrings(testBase + 2048, 2, values.length, heap, out)
          expect(results()).toEqual(values.map((v, row) => (v ?? '') + (others[row] ?? '')))
          text.replaceInStrings(
            entries,
            values.length,
            constants,
            from.length,
            constants + from.length,
            to.length,
            heap,
            out,
          )
          expect(results()).toEqual(values.map((v) => v?.replaceAll(needle, () => other ?? '') ?? null))
        }
      },
    ),
    { numRuns: 1000 },
  )
})

test('texts are moved behind each other, and their words have the order of their bytes', () => {
  const size = 16
  const some = fc
    .array(fc.constantFrom('a', 'b', '\0', 'é', '\u{10ffff}', '12345678'), { maxLength: 20 })
    .map((parts) => parts.join(''))
  const column = fc.array(fc.option(some), { minLength: size, maxLength: size })
  const missing = -(2n ** 63n)
  fc.assert(
    fc.property(column, fc.constantFrom(0, 8, 16), (values, from) => {
      const bytes = values.map((value) => (value === null ? null : Buffer.from(value)))
      for (const { memory, kernels } of [both.wasm, both.reference]) {
        const { text } = kernels
        laidOut(nothing, values)
        text.textWords(entries, size, from, missing, out)
        const words = bytes.map((value) => {
          if (value === null) return missing
          const eight = Buffer.alloc(8)
          value.subarray(from).copy(eight)
          return eight.readBigUInt64BE() - 2n ** 63n
        })
        expect([...memory.i64.subarray(out >>> 3, (out >>> 3) + size)]).toEqual(words)
        const moved = bytes.reduce((sum, value) => sum + Math.ceil((value?.length ?? 0) / 8) * 8, 0)
        expect(text.movedBytes(entries, size)).toBe(moved)
        text.moveStrings(entries, size, heap, heap - 8)
        memory.u8.fill(1, strings, strings + 4096)
        const copies = values.map((_, row) => {
          const length = memory.i32[(entries >>> 2) + row * 2 + 1]!
          const start = memory.u32[(entries >>> 2) + row * 2]! + heap - 8
          return length < 0 ? null : length === 0 ? '' : Buffer.from(memory.u8.slice(start, start + length)).toString()
        })
        expect(copies).toEqual(values)
      }
    }),
    { numRuns: 1000 },
  )
})
