// Goal: the engine's clock follows the system's clock within a second however that is adjusted, adds microseconds to
// its milliseconds, goes back only when a change of the system's clock is reported as a step, and is the same on all
// threads; measured durations are not affected. Method: a simulated machine, whose true time the test advances and
// whose system clock it sets and slows or speeds up.

import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { AnchoredClock, newAnchor, systemClock, systemTime, type TimeSource } from '../../../engine/base/clock.js'
import { createRandom } from '../../support/random.js'

const hourMicros = 3_600_000_000

class Machine implements TimeSource {
  micros = 5_000_000
  wallMicros = 1_700_000_000_123_456
  /** How long a reading of the wall clock takes: the thread may be interrupted. */
  interruptMicros = 0

  pass(micros: number, slew = 1): void {
    this.micros += micros
    this.wallMicros += micros * slew
  }

  readonly wallMs = (): number => {
    this.pass(this.interruptMicros)
    const now = Math.floor(this.wallMicros / 1000)
    this.pass(this.interruptMicros)
    return now
  }

  readonly monotonicMs = (): number => this.micros / 1000
  readonly guessMicros = (): number => this.wallMicros
}

test('microseconds between the milliseconds of the system', () => {
  const machine = new Machine()
  const clock = new AnchoredClock(machine)
  for (let turn = 0; turn < 1000; turn++) {
    expect(Math.abs(clock.nowMicros() - machine.wallMicros)).toBeLessThanOrEqual(1)
    machine.pass(1237)
  }
})

test.each([
  ['forward', 5 * 8760 * hourMicros],
  ['back', -8760 * hourMicros],
  ['by a tenth of a second', 100_000],
])('a clock that is set %s is followed within a second, and reported', (_name, step) => {
  const machine = new Machine()
  const clock = new AnchoredClock(machine)
  const steps: number[] = []
  clock.onStep((micros) => steps.push(micros))
  const begunMs = clock.monotonicMs()
  clock.nowMicros()
  machine.wallMicros += step
  machine.pass(1_000_000)
  expect(Math.abs(clock.nowMicros() - machine.wallMicros)).toBeLessThan(1000)
  expect(steps.map((micros) => Math.round(micros / 10_000))).toEqual([step / 10_000])
  machine.pass(1_000_000)
  clock.nowMicros()
  expect(steps.length).toBe(1)
  expect(clock.monotonicMs() - begunMs).toBe(2000)
})

test('slewing and interrupted readings never turn it back, and are no steps', () => {
  const random = createRandom(7)
  for (const slew of [1 - 500e-6, 1 + 500e-6]) {
    const machine = new Machine()
    const clock = new AnchoredClock(machine)
    const steps: number[] = []
    clock.onStep((micros) => steps.push(micros))
    let last = clock.nowMicros()
    for (let turn = 0; turn < 50_000; turn++) {
      machine.interruptMicros = random.chance(0.1) ? random.below(20_000) : 0
      machine.pass(random.below(random.pick([10, 1000, 100_000])), slew)
      const now = clock.nowMicros()
      expect(now).toBeGreaterThanOrEqual(last)
      last = now
      expect(Math.abs(now - machine.wallMicros)).toBeLessThan(3000)
    }
    expect(steps).toEqual([])
  }
})

test('threads with one anchor agree, whichever of them compares', () => {
  const machine = new Machine()
  const anchor = newAnchor()
  const [one, other] = [new AnchoredClock(machine, anchor), new AnchoredClock(machine, anchor)]
  const random = createRandom(3)
  for (let turn = 0; turn < 1000; turn++) {
    if (random.chance(0.05)) machine.wallMicros += random.pick([-1, 1]) * hourMicros
    machine.pass(random.below(600_000))
    const first = random.chance(0.5) ? [one, other] : [other, one]
    expect(first[0]?.nowMicros()).toBe(first[1]?.nowMicros())
  }
})

test('the real clock is the system’s, and the monotonic one that of other threads', async () => {
  expect(Math.abs(systemClock.nowMicros() / 1000 - Date.now())).toBeLessThan(5)
  const program = `
    const { parentPort } = require('node:worker_threads')
    const origin = Math.max(...[1, 2, 3].map(() => Number(process.hrtime.bigint()) / 1e6 - performance.now()))
    parentPort.once('message', () => parentPort.postMessage(origin + performance.now()))`
  const worker = new Worker(program, { eval: true })
  await new Promise((resolve) => worker.once('online', resolve))
  const before = systemTime.monotonicMs()
  const there = new Promise<number>((resolve) => worker.once('message', resolve))
  worker.postMessage(null)
  const at = await there
  expect(at).toBeGreaterThanOrEqual(before)
  expect(at).toBeLessThanOrEqual(systemTime.monotonicMs())
  await worker.terminate()
})
