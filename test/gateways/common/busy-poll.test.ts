// Goal: the event loop stays awake behind a short answer, for a moment and only where somebody asks again.
// Method: a loop and a clock that turn when the test says so.

import { expect, test } from 'vitest'
import { BusyPoll } from '../../../gateways/common/busy-poll.js'

function openLoop(enabled = true, processors = 2) {
  let nowMs = 1
  let next: (() => void) | null = null
  let turns = 0
  const turn = (look: () => void): void => {
    next = look
  }
  const poll = new BusyPoll(enabled, { nowMs: () => nowMs, turn }, processors)
  /** Lets time pass in small steps; returns how many turns there were. */
  const pass = (ms: number): number => {
    const before = turns
    for (const end = nowMs + ms; nowMs < end; nowMs += 0.01) {
      const look = next
      next = null
      if (look === null) continue
      turns++
      look()
    }
    return turns - before
  }
  return { poll, pass }
}

test('it looks for a quarter of a millisecond behind an answer', () => {
  const { poll, pass } = openLoop()
  expect(pass(1)).toBe(0)
  poll.answered()
  expect(pass(0.2)).toBeGreaterThan(15)
  pass(0.1)
  expect(pass(1)).toBe(0)
})

test('it ends when somebody asks, and goes on behind the next answer', () => {
  const { poll, pass } = openLoop()
  for (let request = 0; request < 100; request++) {
    poll.answered()
    expect(pass(0.1)).toBeGreaterThan(5)
    poll.asked()
    expect(pass(0.1)).toBeLessThan(2)
  }
})

test('it is given up where nobody asks so soon, and tried again now and then', () => {
  const { poll, pass } = openLoop()
  let tried = 0
  for (let answer = 0; answer < 4 + 64 * 3; answer++) {
    poll.answered()
    if (pass(1) > 0) tried++
    poll.asked()
  }
  expect(tried).toBe(4 + 3)
  while (true) {
    poll.answered()
    if (pass(0.1) > 0) break
  }
  poll.asked()
  pass(0.1)
  poll.answered()
  expect(pass(0.1)).toBeGreaterThan(5)
})

test('it does not look where it is switched off, or has one processor', () => {
  for (const { poll, pass } of [openLoop(false), openLoop(true, 1)]) {
    poll.answered()
    expect(pass(1)).toBe(0)
  }
})
