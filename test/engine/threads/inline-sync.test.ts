// Goal: the writer thread syncs the log itself, instead of asking the log thread, only if no other request is waiting
// and none arrived during its last syncs (then it rarely tries); and syncs always happen in log order.

import { expect, test } from 'vitest'
import { InlineSync } from '../../../engine/threads/inline-sync.js'

/** Of so many syncs behind each other that are asked for in quiet moments: how many the writer does itself. */
function inlineSyncs(sync: InlineSync, from: number, count: number, newsCome: boolean): number {
  let inline = 0
  for (let sequence = from; sequence < from + count; sequence++) {
    if (sync.isInline(sequence, true)) {
      inline++
      sync.done(newsCome)
    } else sync.reported(sequence)
  }
  return inline
}

test('one client that waits for each commit has each synced at once', () => {
  expect(inlineSyncs(new InlineSync(), 1, 100, false)).toBe(100)
})

test('while something waits for the writer the log thread is asked', () => {
  const sync = new InlineSync()
  expect(sync.isInline(1, false)).toBe(false)
  sync.reported(1)
  expect(sync.isInline(2, true)).toBe(true)
})

test('no sync overtakes one that the log thread has not reported', () => {
  const sync = new InlineSync()
  expect(sync.isInline(1, false)).toBe(false)
  expect(sync.isInline(2, true)).toBe(false)
  sync.reported(1)
  expect(sync.isInline(3, true)).toBe(false)
  // One report for all before it.
  sync.reported(3)
  expect(sync.isInline(4, true)).toBe(true)
})

test('where news come during its syncs it tries ever more seldom, and returns when they stop', () => {
  const sync = new InlineSync()
  expect(inlineSyncs(sync, 1, 1000, true)).toBeLessThan(10)
  expect(inlineSyncs(sync, 1001, 100_000, true)).toBeLessThan(110)
  const from = 200_000
  expect(inlineSyncs(sync, from, 5000, false)).toBeGreaterThan(3000)
  expect(inlineSyncs(sync, from + 5000, 1000, false)).toBe(1000)
})
