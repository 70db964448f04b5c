// Goal: the command that starts the server runs it as one process, which is ready soon and ends on a signal. A wrong
// setting ends it with a message; a second server on the same root folder is rejected.

import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'

const command = join(repositoryRoot, 'deploy/penstock.js')
const anyPorts = ['http.net.bind.to', 'http.min.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to'].flatMap(
  (key) => ['--set', `${key}=127.0.0.1:0`],
)

interface Running {
  readonly child: ChildProcess
  readonly output: () => string
  readonly ended: Promise<number | null>
}

const started: ChildProcess[] = []

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

function run(args: readonly string[]): Running {
  return watched(spawn(process.execPath, [command, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }))
}

function watched(child: ChildProcessByStdio<null, Readable, Readable>): Running {
  started.push(child)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { child, output: () => output, ended }
}

function newRoot(): string {
  return mkdtempSync(join(tmpdir(), 'penstock-root-'))
}

/** Resolves with the printed text once the server is ready. */
async function ready({ child, output, ended }: Running): Promise<string> {
  const printed = new Promise<string>((resolve) => {
    const look = (): void => {
      if (output().includes('Ctrl-C')) resolve(output())
    }
    child.stdout?.on('data', look)
  })
  const failed = ended.then((status) => {
    throw new Error(`ended with ${status}: ${output()}`)
  })
  return Promise.race([printed, failed])
}

function addressOf(text: string, name: string): string {
  const match = new RegExp(`^ {2}${name} +(\\S+)$`, 'm').exec(text)
  return match?.[1] ?? ''
}

test('it serves until a signal ends it', async () => {
  const root = newRoot()
  const server = run(['start', '-d', root, ...anyPorts])
  const text = await ready(server)
  const base = `http://${addressOf(text, 'http')}`
  expect(await (await fetch(`${base}/`)).text()).toBe('OK')
  expect(await (await fetch(`http://${addressOf(text, 'health')}/`)).text()).toBe('OK')
  expect((await fetch(`${base}/write`, { method: 'POST', body: 'weather,city=Oslo temperature=3.5' })).status).toBe(204)
  const answer = await (await fetch(`${base}/exec?query=select+city,temperature+from+weather`)).text()
  expect(JSON.parse(answer).dataset).toEqual([['Oslo', 3.5]])

  const second = run(['start', '-d', root, ...anyPorts])
  expect(await second.ended).toBe(1)

  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
  const log = readFileSync(join(root, 'log', 'penstock-latest.log'), 'utf8')
  expect(log).toMatch(/^\S+Z I server ready /m)
  expect(log).toMatch(/^\S+Z I server ended$/m)
})

test.skipIf(process.platform === 'win32')('it ends when npm, which started it, was ended', async () => {
  const root = newRoot()
  // npm runs scripts in a shell, which ends at a signal and passes nothing on.
  const line = `"${process.execPath}" "${command}" start -d "${root}" ${anyPorts.join(' ')}; exit $?`
  const env = { ...process.env, npm_lifecycle_event: 'start' }
  const server = watched(spawn('sh', ['-c', line], { env, stdio: ['ignore', 'pipe', 'pipe'] }))
  await ready(server)
  server.child.kill('SIGTERM')
  // Its output is closed when the server has ended, too.
  await server.ended
  const log = readFileSync(join(root, 'log', 'penstock-latest.log'), 'utf8')
  expect(log).toMatch(/ npm has ended: shutting down$/m)
  expect(log).toMatch(/ server ended$/m)
})

test.each(['start', 'check', 'repair'])(
  '%s rejects an empty path, which a variable that is not set gives',
  async (name) => {
    const { ended, output } = run([name, '-d', ''])
    expect(await ended).toBe(2)
    expect(output()).toContain('the path is empty')
  },
)

test('a bad setting ends the start with its place', async () => {
  const root = newRoot()
  const first = run(['start', '-d', root, '--set', 'no.such=1'])
  expect(await first.ended).toBe(1)
  expect(first.output()).toContain('penstock: unknown setting: no.such [--set no.such]')
  const path = join(root, 'conf', 'server.conf')
  writeFileSync(path, '\nquery.threads = many\n')
  const second = run(['start', '-d', root])
  expect(await second.ended).toBe(1)
  expect(second.output()).toContain(`bad value of query.threads: 'many'`)
  expect(second.output()).toContain(`[file=${path}, line=2]`)
})

test('a port in use ends the start', async () => {
  const server = run(['start', '-d', newRoot(), ...anyPorts])
  const address = addressOf(await ready(server), 'http')
  const other = run(['start', '-d', newRoot(), ...anyPorts, '--set', `http.net.bind.to=${address}`])
  expect(await other.ended).toBe(1)
  expect(other.output()).toContain(`cannot listen on ${address}`)
})

/** Of no passwd file. */
const stranger = 54_321

test.runIf(process.getuid?.() === 0)(
  'without a home the root has to be named, and then the server starts',
  async () => {
    const cli = join(repositoryRoot, 'dist/deploy/cli.js')
    const env = { PATH: process.env.PATH, PENSTOCK_HTTP_USR: 'x' }
    const begin = (...args: string[]): Running =>
      watched(
        spawn(process.execPath, [cli, 'start', ...args, ...anyPorts], {
          ...{ uid: stranger, gid: stranger, env, stdio: ['ignore', 'pipe', 'pipe'] },
        }),
      )
    const unnamed = begin()
    expect(await unnamed.ended).toBe(2)
    expect(unnamed.output()).toContain("required option '-d, --dir <root>' not specified")
    const root = newRoot()
    chownSync(root, stranger, stranger)
    const named = begin('-d', root)
    const printed = await ready(named)
    expect(printed).toContain(
      'WARNING: no setting has the environment variable PENSTOCK_HTTP_USR, perhaps PENSTOCK_HTTP_USER is meant',
    )
    named.child.kill('SIGTERM')
    expect(await named.ended).toBe(0)
  },
)
