// Goal: the LRU cache keeps the most recently used entries, within its limits for the number and the total size of
// entries.

import { expect, test } from 'vitest'
import { Lru } from '../../../engine/base/lru.js'

function kept(lru: Lru<string, number>, keys: string): string {
  return [...keys].filter((key) => lru.get(key) !== undefined).join('')
}

test('reading an entry keeps it, and the least recently used one makes room', () => {
  const lru = new Lru<string, number>({ countMax: 3, weightMax: 100 })
  for (const [index, key] of [...'abc'].entries()) lru.set(key, index, 1)
  expect(lru.get('a')).toBe(0)
  lru.set('d', 3, 1)
  expect(kept(lru, 'abcd')).toBe('acd')
  lru.clear()
  expect(kept(lru, 'abcd')).toBe('')
})

test('heavy entries make others go, and one above the limit is not kept', () => {
  const lru = new Lru<string, number>({ countMax: 10, weightMax: 10 })
  for (const key of 'abc') lru.set(key, 0, 3)
  lru.set('d', 0, 4)
  expect(kept(lru, 'abcd')).toBe('bcd')
  lru.set('b', 1, 1)
  lru.set('e', 0, 2)
  expect(kept(lru, 'bcde')).toBe('bcde')
  lru.set('e', 0, 11)
  expect(kept(lru, 'bcde')).toBe('bcd')
})
