// Goal: a note is about one object, out of sight of copies, and is gone with it at the next scavenge.

import { getHeapSpaceStatistics } from 'node:v8'
import { expect, test } from 'vitest'
import { notesAbout } from '../../../engine/base/notes.js'

test('a note is about the object itself, not about its copies', () => {
  const sizes = notesAbout<object, number>()
  const names = notesAbout<object, string>()
  const plain = { a: 1 }
  const frozen = Object.freeze([1, 2])
  expect(sizes.get(plain)).toBe(undefined)
  sizes.set(plain, 5)
  sizes.set(frozen, 6)
  names.set(plain, 'plain')
  sizes.set(plain, 7)
  expect([sizes.get(plain), sizes.get(frozen), names.get(plain), names.get(frozen)]).toEqual([7, 6, 'plain', undefined])
  for (const copy of [{ ...plain }, structuredClone(plain), JSON.parse(JSON.stringify(plain)) as object]) {
    expect([sizes.get(copy), copy]).toEqual([undefined, { a: 1 }])
  }
})

test('what is noted about objects that are gone does not get old', () => {
  const lists = notesAbout<object, number[]>()
  const bytes = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0
  const note = (times: number): void => {
    for (let n = 0; n < times; n++) lists.set({ n }, new Array(100).fill(n))
  }
  note(10_000)
  const before = bytes()
  note(100_000)
  // 80 MB were noted; a WeakMap would have all of it there.
  expect(bytes() - before).toBeLessThan(20e6)
})
