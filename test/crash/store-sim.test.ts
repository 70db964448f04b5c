// Goal: whatever the object store does, and whenever the machine stops, no Iceberg snapshot refers to a missing object,
// no query result lacks the rows of a part (Parquet file of a table), and no object is deleted while something refers
// to it. Method: deterministic simulation (store-sim.ts lists the properties).
//
//   SIM_SEED=17 npx vitest run test/crash/store-sim.test.ts      replays one seed, and tells what it does
//   SIM_STORE_SEEDS=2000 SIM_FIRST=500 npx vitest ...            more of them; .ci/run has some

import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createRandom } from '../support/random.js'
import { newStoreSimStats, simulateStore } from './store-sim.js'

const only = process.env['SIM_SEED']
const first = Number(only ?? process.env['SIM_FIRST'] ?? 1)
const seeds = only === undefined ? Number(process.env['SIM_STORE_SEEDS'] ?? 3) : 1
const hoursMs = 24 * 3600 * 1000

const real = { randomUUID: crypto.randomUUID, randomInt: crypto.randomInt }
const realRandom = Math.random

beforeAll(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
})

afterAll(() => {
  vi.useRealTimers()
  Object.assign(crypto, real)
  Math.random = realRandom
  syncBuiltinESMExports()
})

/** Names of objects, and delays of commits, follow from the seed. */
function seedNames(seed: number): void {
  const random = createRandom(seed)
  const hex = (digits: number): string =>
    random
      .below(16 ** digits)
      .toString(16)
      .padStart(digits, '0')
  Object.assign(crypto, {
    randomUUID: () => `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(8)}${hex(4)}`,
    randomInt: (from: number, to: number) => random.between(from, to - 1),
  })
  syncBuiltinESMExports()
  Math.random = () => random.next()
}

test(
  `${seeds} seeds from ${first}`,
  async () => {
    const stats = newStoreSimStats()
    const cpu = process.cpuUsage()
    const trace = only === undefined ? {} : { trace: (text: string) => process.stdout.write(`${text}\n`) }
    for (let seed = first; seed < first + seeds; seed++) {
      seedNames(seed)
      try {
        await simulateStore({ seed, stats, ...trace })
      } catch (cause) {
        throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
      }
    }
    const { user, system } = process.cpuUsage(cpu)
    console.log(`${((user + system) / 1000 / seeds).toFixed(1)} CPU-ms a seed`, JSON.stringify(stats))
    if (seeds < 100) return
    for (const count of Object.values(stats)) expect(count).toBeGreaterThan(seeds / 10)
  },
  hoursMs,
)
