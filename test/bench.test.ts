// Goal: no benchmark rots: each suite runs with tiny input and reports figures.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { repositoryRoot } from './support/source-tree.js'

const children = new Set<ReturnType<typeof spawn>>()

/** A suite ends its servers when it is told to end. */
afterEach(() => {
  for (const child of children) child.kill('SIGTERM')
})

async function bench(...args: readonly string[]): Promise<string> {
  const command = [join(repositoryRoot, 'dist/test/bench/main.js'), ...args]
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const [status] = await once(child, 'close')
  children.delete(child)
  expect(status, output).toBe(0)
  return output
}

/** All but `kafka`, whose broker takes longer to start than the rest together: .ci/run has it. */
const suites: readonly (readonly string[])[] = [
  ['lines', '--shape', 'cpu', '--protocol', 'tcp', '--rows', '20000'],
  ['lines', '--shape', 'trades', '--protocol', 'http', '--order', 'late', '--rows', '20000'],
  ['lines', '--shape', 'trades', '--order', 'shuffled', '--rows', '20000'],
  ['scan', '--rows', '20000', '--peer', 'duckdb'],
  ['http', '--rows', '20000', '--repeats', '20', '--peer', 'duckdb'],
  ['latency', '--repeats', '20'],
  ['disk', '--rows', '20000'],
  ['pg', '--rows', '2000', '--repeats', '20'],
  ['start', '--repeats', '2'],
]

for (const suite of suites) {
  test(suite.join(' '), { timeout: 120_000 }, async () => {
    const output = await bench(...suite)
    expect(output.trim().split('\n').length, output).toBeGreaterThan(1)
    expect(output).not.toMatch(/NaN|undefined|refused/)
  })
}
