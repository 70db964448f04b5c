// Goal: the text kernel agrees with its twin, and both with a regular expression. Method: random patterns and texts over
// a small alphabet, so that near misses are frequent.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TextPattern, textAnswers, textFlags, writeTextPattern } from '../../../engine/kernels/text.js'
import { kernelsAndTwins, testBase } from './kernel-support.js'

const both = kernelsAndTwins(16)
const entries = testBase + 4096
const texts = testBase + 8192
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
  for (const { memory } of [both.wasm, both.twin]) {
    writeTextPattern(memory, testBase, pattern)
    let at = texts
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
  if (text === null) return textAnswers.no
  if (ignoreCase && Buffer.byteLength(text) !== text.length) return textAnswers.undecided
  const middle = literals.length === 0 && !(start && end) ? '.*' : literals.join('.*')
  const regex = new RegExp(`^${start ? '' : '.*'}${middle}${end ? '' : '.*'}$`, ignoreCase ? 'is' : 's')
  return regex.test(text) ? textAnswers.yes : textAnswers.no
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
      for (const { memory, kernels } of [both.wasm, both.twin]) {
        kernels.text.matchTexts(testBase, entries, values.length, out)
        const answers = [...memory.u8.subarray(out, out + values.length)]
        expect(answers).toEqual(values.map((text) => wanted(text, literals, anchored.start, anchored.end, ignoreCase)))
      }
    }),
    { numRuns: 2000 },
  )
})
