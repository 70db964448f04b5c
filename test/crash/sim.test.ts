// Goal: whatever the machine does, at whatever time, nothing acknowledged or shown is lost, duplicated or torn, and the
// server starts again. Method: deterministic simulation. The whole engine runs on one thread under a seeded scheduler,
// with a simulated disk, and is compared with a model (sim.ts lists the properties).
//
//   SIM_SEED=17 npx vitest run test/crash/sim.test.ts      replays one seed, and tells what it does
//   SIM_SEEDS=100000 SIM_FIRST=5000 npx vitest ...         a soak; a short one is in .ci/run

import { expect, test } from 'vitest'
import { engineOperations } from '../support/simulator/faulty-files.js'
import { createSimMemory } from '../support/simulator/host.js'
import { newSimStats, simulate } from './sim.js'

const only = process.env['SIM_SEED']
const first = Number(only ?? process.env['SIM_FIRST'] ?? 1)
const seeds = only === undefined ? Number(process.env['SIM_SEEDS'] ?? 48) : 1
const hoursMs = 24 * 3600 * 1000

test(
  `${seeds} seeds from ${first}`,
  () => {
    const sim = createSimMemory()
    const stats = newSimStats()
    const startMs = performance.now()
    const cpu = process.cpuUsage()
    // The simulated disk refuses and the engine catches all the time, and nobody reads where; one seed alone tells it.
    if (only === undefined) Error.stackTraceLimit = 0
    const trace = only === undefined ? {} : { trace: (text: string) => process.stdout.write(`${text}\n`) }
    for (let seed = first; seed < first + seeds; seed++) {
      try {
        simulate({ seed, sim, stats, ...trace })
      } catch (cause) {
        throw new Error(`seed ${seed}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
      }
    }
    const { user, system } = process.cpuUsage(cpu)
    const perSeed = `${((user + system) / 1000 / seeds).toFixed(1)} CPU-ms a seed`
    console.log(`${perSeed}, ${((performance.now() - startMs) / 1000).toFixed(1)} s`, JSON.stringify(stats))
    if (seeds < 500) return
    expect(stats.operations).toBeGreaterThanOrEqual(200 * seeds)
    // Each seed has at least one, and so has each kind of operation.
    expect(stats.recoveryCrashes).toBeGreaterThan(seeds)
    // Asking for free space is never aimed at: crashes after some number of operations strike it.
    expect(Object.keys(stats.struck).sort()).toEqual([...engineOperations, 'freeBytes'].sort())
    expect(stats.flushes).toBeGreaterThan(10 * seeds)
    expect(stats.merges).toBeGreaterThan(seeds / 4)
  },
  hoursMs,
)
