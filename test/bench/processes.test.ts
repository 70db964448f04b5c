// Goal: the processes that a bench has started end with it, also when a signal or an error ends the bench.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'

const module = pathToFileURL(join(repositoryRoot, 'dist/test/bench/processes.js')).href
/** A server that answers, and never ends by itself. */
const served =
  "require('node:http').createServer((_, answer) => answer.end()).listen(0, '127.0.0.1', function () { console.log('ready') })"
let bench: ChildProcess | null = null

afterEach(() => void bench?.kill('SIGKILL'))

/** Starts a bench that starts the server, prints its process id, and then does this. Gives the id back. */
async function started(then: string): Promise<number> {
  const ports = '{ httpPort: 1, linePort: 0, pgPort: 0 }'
  const program = `import { startServer } from '${module}'
    const server = await startServer('x', process.execPath, ['-e', ${JSON.stringify(served)}], ${ports}, { readyText: 'ready' })
    console.log(server.pid)
    ${then}`
  bench = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'ignore'] })
  if (bench.stdout === null) return 0
  for await (const line of createInterface({ input: bench.stdout })) return Number(line)
  return 0
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s', async (signal) => {
  const pid = await started('setInterval(() => {}, 1000)')
  expect(runs(pid)).toBe(true)
  const ended = bench === null ? null : once(bench, 'exit')
  bench?.kill(signal)
  await ended
  await expect.poll(() => runs(pid)).toBe(false)
})

test('an error', async () => {
  const pid = await started("setTimeout(() => { throw new Error('a bench fails') }, 100)")
  expect(pid).toBeGreaterThan(0)
  await expect.poll(() => runs(pid)).toBe(false)
})
