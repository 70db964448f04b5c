// `node dist/test/crash/two-servers.js [--rounds n] [--port n]`: tries to start two servers on one root folder, in
// every known way, and checks that only one runs, and that the other one ends with a message without changing anything.
//
//   removed     tmp/ and the lock files are deleted under the running server
//   long        the path is longer than the address of a local socket, and TMPDIR differs
//   linked      the root folder, or db/, is reached by a symbolic link
//   at once     two starts at the same time after a killed server, `--rounds` times (60)
//   namespace   the second one is in another network namespace (unshare -n), and also in another process namespace
//   unknown     a lock file does not tell whether its holder lives: a start is refused while somebody touches the
//               file; otherwise it waits about 15 seconds and then succeeds
//
// The checks must not delay a start after kill -9.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '60' }, port: { type: 'string', default: '17300' } },
})
const rounds = Number(values.rounds)
const firstPort = Number(values.port)
const command = new URL('../../deploy/cli.js', import.meta.url).pathname
const refusal = 'another server uses the folder'
/** Servers beside each other have ports of their own: only the folder keeps them apart. */
const portsEach = 10

interface Attempt {
  readonly child: ChildProcess
  readonly text: () => string
  /** Whether it became ready; false when it ended. */
  readonly ready: Promise<boolean>
}

interface AttemptOptions {
  readonly ports: number
  readonly env?: NodeJS.ProcessEnv
  readonly through?: readonly string[]
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

function attempt(root: string, { ports, env = process.env, through = [] }: AttemptOptions): Attempt {
  const port = firstPort + ports * portsEach
  const sets = [
    `http.net.bind.to=127.0.0.1:${port}`,
    `http.min.net.bind.to=127.0.0.1:${port + 1}`,
    `line.tcp.net.bind.to=127.0.0.1:${port + 2}`,
    `pg.net.bind.to=127.0.0.1:${port + 3}`,
    'memory.bytes=256m',
  ].flatMap((set) => ['--set', set])
  const [program = '', ...args] = [...through, process.execPath, command, 'start', '-d', root, ...sets]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  running.add(child)
  let text = ''
  const ready = new Promise<boolean>((resolve) => {
    const gather = (chunk: Buffer): void => {
      text += chunk
      if (text.includes('Ctrl-C')) resolve(true)
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    child.once('close', () => {
      running.delete(child)
      resolve(false)
    })
  })
  return { child, text: () => text, ready }
}

async function startFirst(root: string): Promise<Attempt> {
  const first = attempt(root, { ports: 0 })
  check(await first.ready, `the first server did not start: ${first.text()}`)
  return first
}

async function expectRefused(name: string, root: string, options: AttemptOptions): Promise<void> {
  const second = attempt(root, options)
  check(!(await second.ready), `${name}: a second server runs on the folder`)
  check(second.text().includes(refusal), `${name}: the second server ended with: ${second.text()}`)
}

async function end({ child }: Attempt, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'close')
  child.kill(signal)
  await ended
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'penstock-two-'))
}

function lockFiles(root: string): string[] {
  return readdirSync(root).filter((name) => /^server\.\d+\.lock$/.test(name))
}

async function write(ports: number, rows: number): Promise<void> {
  const lines = Array.from({ length: rows }, (_, row) => `held value=${row}i ${1_700_000_000_000_000_000 + row * 1e6}`)
  const url = `http://127.0.0.1:${firstPort + ports * portsEach}/write`
  const answer = await fetch(url, { method: 'POST', body: lines.join('\n') })
  check(answer.status === 204, `a write was answered ${answer.status}`)
}

async function count(ports: number): Promise<number> {
  const url = `http://127.0.0.1:${firstPort + ports * portsEach}/exec?query=select+count()+from+held`
  const { dataset } = (await (await fetch(url)).json()) as { dataset: [[number]] }
  return dataset[0][0]
}

async function removed(): Promise<void> {
  const root = newFolder()
  const first = await startFirst(root)
  await write(0, 1000)
  for (const name of readdirSync(join(root, 'tmp'))) rmSync(join(root, 'tmp', name), { recursive: true })
  await expectRefused('removed socket', root, { ports: 1 })
  for (const name of lockFiles(root)) rmSync(join(root, name))
  rmSync(join(root, 'tmp'), { recursive: true })
  await expectRefused('removed lock file', root, { ports: 1 })
  await write(0, 1000)
  await end(first)
  const again = await startFirst(root)
  check((await count(0)) === 2000, 'rows of the first server are missing')
  await end(again, 'SIGTERM')
  check(lockFiles(root).length === 0, 'a clean end leaves no lock file')
  rmSync(root, { recursive: true })
}

async function long(): Promise<void> {
  const folder = newFolder()
  const root = join(folder, 'long'.repeat(30))
  const first = await startFirst(root)
  await expectRefused('long path', root, { ports: 1, env: { ...process.env, TMPDIR: newFolder() } })
  await end(first)
  rmSync(folder, { recursive: true })
}

async function linked(): Promise<void> {
  const folder = newFolder()
  const root = join(folder, 'root')
  const first = await startFirst(root)
  symlinkSync(root, join(folder, 'link'))
  await expectRefused('linked root', join(folder, 'link'), { ports: 1 })
  mkdirSync(join(folder, 'other'))
  symlinkSync(join(root, 'db'), join(folder, 'other', 'db'))
  await expectRefused('linked db', join(folder, 'other'), { ports: 1 })
  await end(first)
  rmSync(folder, { recursive: true })
}

async function atOnce(): Promise<void> {
  const root = newFolder()
  const first = await startFirst(root)
  await write(0, 1000)
  await end(first)
  for (let round = 1; round <= rounds; round++) {
    const both = [attempt(root, { ports: 0 }), attempt(root, { ports: 1 })] as const
    const ready = await Promise.all(both.map((one) => one.ready))
    check(ready.filter((one) => one).length === 1, `round ${round}: ${ready.filter((one) => one).length} servers run`)
    const ports = ready[0] ? 0 : 1
    const [winner, loser] = ready[0] ? both : [both[1], both[0]]
    check(loser.text().includes(refusal), `round ${round}: the second server ended with: ${loser.text()}`)
    check((await count(ports)) === 1000, `round ${round}: rows are missing`)
    // Only what is left behind by a kill is stale.
    await end(winner)
  }
  rmSync(root, { recursive: true })
}

/** Whether this process may make namespaces. */
function canUnshare(flags: readonly string[]): boolean {
  return spawnSync('unshare', [...flags, 'true']).status === 0
}

async function namespaces(): Promise<void> {
  const ways = [['-n'], ['-n', '--pid', '--fork', '--mount-proc', '--kill-child']].filter(canUnshare)
  if (ways.length === 0) process.stdout.write('other namespaces: skipped, unshare is missing or not permitted\n')
  for (const flags of ways) {
    const name = `unshare ${flags.join(' ')}`
    // A new network namespace has its loopback interface down.
    const through = ['unshare', ...flags, 'sh', '-c', 'ip link set lo up 2>/dev/null; exec "$@"', 'sh']
    const root = newFolder()
    const first = await startFirst(root)
    await expectRefused(name, root, { ports: 1, through })
    rmSync(join(root, 'tmp'), { recursive: true })
    await expectRefused(`${name}, tmp/ removed`, root, { ports: 1, through })
    await end(first)
    await end(await startFirst(root))
    await expectSoon(`${name}, behind kill -9`, root, { ports: 1, through })
    rmSync(root, { recursive: true })
  }
}

/** Starts without waiting for a holder that is dead. */
async function expectSoon(name: string, root: string, options: AttemptOptions): Promise<void> {
  const begunMs = performance.now()
  const server = attempt(root, options)
  check(await server.ready, `${name}: ${server.text()}`)
  check(!server.text().includes('waits'), `${name}: waited for the lock`)
  process.stdout.write(`${name}: ready after ${Math.round(performance.now() - begunMs)} ms\n`)
  await end(server)
}

/** A lock file of a machine that cannot be asked: with signs of life, then without. */
async function unknown(): Promise<void> {
  const root = newFolder()
  writeFileSync(join(root, 'server.7.lock'), 'not whole')
  const beating = setInterval(() => utimesSync(join(root, 'server.7.lock'), new Date(), new Date()), 500)
  await expectRefused('a holder that gives signs', root, { ports: 0 })
  clearInterval(beating)
  const begunMs = performance.now()
  const server = attempt(root, { ports: 0 })
  check(await server.ready, `a silent holder: ${server.text()}`)
  const seconds = (performance.now() - begunMs) / 1000
  check(seconds > 14 && seconds < 25, `a silent holder was waited for ${seconds} s`)
  check(
    readFileSync(join(root, 'server.8.lock'), 'utf8').includes(`"pid":${server.child.pid}`),
    'the lock names its holder',
  )
  check(lockFiles(root).length === 1, 'older lock files are removed')
  await end(server)
  await expectSoon('behind kill -9', root, { ports: 0 })
  rmSync(root, { recursive: true })
}

const ways = { removed, long, linked, 'at once': atOnce, namespaces, unknown }
for (const [name, way] of Object.entries(ways)) {
  const begunMs = performance.now()
  await way()
  process.stdout.write(`${name}: one server alone (${((performance.now() - begunMs) / 1000).toFixed(1)} s)\n`)
}
