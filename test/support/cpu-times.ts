// Setup file of the test runner, used when the variable TEST_CPU names a file: appends a line for each test file, with
// its path and its CPU seconds. These include processes that it started and that have ended. Linux only.

import { appendFileSync, readFileSync } from 'node:fs'
import { afterAll, expect } from 'vitest'
import { repositoryRoot } from './docs/source-tree.js'

const ticksPerSecond = 100

/** User and system time of this process with all its threads, and of its children that have ended. */
function cpuSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / ticksPerSecond, 0)
}

const target = process.env['TEST_CPU'] ?? ''
const before = cpuSeconds()

afterAll(() => {
  const path = (expect.getState().testPath ?? '').replace(repositoryRoot, '')
  appendFileSync(target, `${(cpuSeconds() - before).toFixed(2).padStart(7)} ${path}\n`)
})
