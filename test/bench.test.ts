// Goal: the benchmark suites run and report figures, except kafka, parser and sql. Method: each suite runs with tiny
// input.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { repositoryRoot } from './support/docs/source-tree.js'

async function bench({ onTestFinished }: TestContext, args: readonly string[]): Promise<string> {
  const command = [join(repositoryRoot, 'dist/test/bench/main.js'), ...args]
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
  // A suite ends its servers when it is told to end.
  onTestFinished(() => void child.kill('SIGTERM'))
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const [status] = await once(child, 'close')
  expect(status, output).toBe(0)
  return output
}

/** All but `kafka`, whose broker takes longer to start than the rest together: .ci/run has it. */
const suites: readonly (readonly string[])[] = [
  ['lines', '--shape', 'cpu', '--protocol', 'tcp', '--rows', '15000'],
  ['lines', '--shape', 'trades', '--protocol', 'http', '--order', 'late', '--rows', '15000'],
  ['lines', '--shape', 'trades', '--order', 'shuffled', '--rows', '15000'],
  ['lines', '--shape', 'orders', '--runs', '2', '--rows', '5000'],
  ['lines', '--shape', 'random', '--seed', '3', '--runs', '2', '--rows', '2000'],
  ['scan', '--rows', '15000', '--peer', 'duckdb'],
  ['http', '--rows', '15000', '--repeats', '20', '--peer', 'duckdb'],
  ['spill', '--rows', '15000'],
  ['series', '--rows', '15000', '--series', '5000'],
  ['latency', '--repeats', '20'],
  ['clients', '--rows', '15000', '--repeats', '20'],
  ['views', '--rows', '15000'],
  ['upserts', '--rows', '15000', '--repeats', '20'],
  ['disk', '--rows', '15000'],
  ['pg', '--rows', '2000', '--repeats', '20'],
  ['qwp', '--rows', '3000'],
  ['start', '--repeats', '2'],
  ['first', '--rows', '2000', '--repeats', '2'],
  ['lake', '--rows', '15000'],
]

// Half of their time they wait for servers to come to rest.
for (const suite of suites) {
  test.concurrent(suite.join(' '), async (context) => {
    const output = await bench(context, suite)
    expect(output.trim().split('\n').length, output).toBeGreaterThan(1)
    expect(output).not.toMatch(/NaN|undefined|refused/)
  })
}
