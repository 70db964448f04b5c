// Goal: a lazily created abort signal calls its listeners once, with the first reason, and its AbortSignal agrees with
// it whenever it is requested.

import { expect, test } from 'vitest'
import { LazySignal } from '../../../gateways/common/lazy-signal.js'

test('listeners hear of the first abort alone, and know its reason', () => {
  const signal = new LazySignal()
  const heard: unknown[] = []
  const listener = (): void => void heard.push(signal.reason)
  const removed = (): void => void heard.push('removed')
  signal.addEventListener('abort', listener)
  signal.addEventListener('abort', removed)
  signal.removeEventListener('abort', removed)
  expect(signal.aborted).toBe(false)
  signal.abort('first')
  signal.abort('second')
  expect([heard, signal.aborted, signal.reason]).toEqual([['first'], true, 'first'])
})

test('a listener that removes others, or comes behind the abort, changes nothing', () => {
  const signal = new LazySignal()
  const heard: string[] = []
  const second = (): void => void heard.push('second')
  signal.addEventListener('abort', () => {
    heard.push('first')
    signal.removeEventListener('abort', second)
  })
  signal.addEventListener('abort', second)
  signal.abort()
  signal.addEventListener('abort', () => heard.push('late'))
  signal.abort()
  expect(heard).toEqual(['first', 'second'])
})

test.each(['before', 'behind'])('the AbortSignal that is asked for %s the abort has its reason', (when) => {
  const late = new LazySignal()
  if (when === 'behind') late.abort('gone')
  const { signal } = late
  late.abort('gone')
  expect([signal.aborted, signal.reason]).toEqual([true, 'gone'])
  expect(late.signal).toBe(signal)
})
