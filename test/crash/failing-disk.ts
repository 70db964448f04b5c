// `node dist/test/crash/failing-disk.js [--points n] [--port n]`: starts a server on a disk that fails permanently from
// the n-th call in db/ on, for about `--points` (40) evenly spaced n. Within seconds the process must end, with the
// reason on its terminal and in its log; or it becomes ready, if it did not need the failing call. Then the disk works
// again, and a start finds every row.
//
// Method: failing-disk.c, compiled here, is loaded into the server and counts its calls. The root folder comes from a
// killed server, so there is a log to replay. Without a compiler the test reports that and ends.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { queryRows } from '../bench/processes.js'

const { values } = parseArgs({
  options: { points: { type: 'string', default: '40' }, port: { type: 'string', default: '17500' } },
})
const port = Number(values.port)
const source = new URL('../../../test/crash/failing-disk.c', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'penstock-failing-'))
const library = join(folder, 'failing-disk.so')
const stateFile = join(folder, 'state')
const root = join(folder, 'root')
const rows = 1000
const endMs = 20_000
/** Of a root; its sockets stay. */
const copying = { recursive: true, verbatimSymlinks: true, filter: (path: string) => !path.endsWith('.sock') }

let running: ChildProcess | null = null
process.on('exit', () => {
  running?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}

type Outcome = 'ready' | 'ended' | 'neither'

interface Server {
  readonly child: ChildProcess
  readonly text: () => string
  readonly outcome: Promise<Outcome>
}

/** `failFrom` 0: never. */
function start(of: string, failFrom: number): Server {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const addresses = ['http.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to', 'http.min.net.bind.to']
  const sets = addresses.flatMap((key, index) => ['--set', `${key}=127.0.0.1:${port + index}`])
  const state = Buffer.alloc(16)
  state.writeBigUInt64LE(BigInt(failFrom), 8)
  writeFileSync(stateFile, state)
  const env = { ...process.env, LD_PRELOAD: library, DISK_STATE: stateFile, DISK_ROOT: join(of, 'db') }
  const args = [command, 'start', '-d', of, ...sets, '--set', 'memory.bytes=256m']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  running = child
  let text = ''
  const outcome = new Promise<Outcome>((resolve) => {
    const gather = (chunk: Buffer): void => {
      text += chunk
      if (text.includes('Ctrl-C')) resolve('ready')
    }
    child.stdout.on('data', gather)
    child.stderr.on('data', gather)
    child.once('close', () => resolve('ended'))
    setTimeout(() => resolve('neither'), endMs).unref()
  })
  return { child, text: () => text, outcome }
}

async function kill({ child }: Server): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'close')
  child.kill('SIGKILL')
  await ended
}

function calls(): number {
  const state = Buffer.alloc(16)
  const file = openSync(stateFile, 'r')
  readSync(file, state)
  closeSync(file)
  return Number(state.readBigUInt64LE(0))
}

async function fill(): Promise<void> {
  const server = start(root, 0)
  check((await server.outcome) === 'ready', `the first start failed: ${server.text()}`)
  const lines = Array.from(
    { length: rows },
    (_, row) => `failing,key=k${row % 7} v=${row}i ${1_700_000_000_000_000_000 + row}`,
  )
  await fetch(`http://127.0.0.1:${port}/write`, { method: 'POST', body: lines.join('\n') })
  await queryRows(port, 'checkpoint create')
  await fetch(`http://127.0.0.1:${port}/write`, {
    method: 'POST',
    body: lines.join('\n').replaceAll('failing', 'logged'),
  })
  await kill(server)
}

function logOf(of: string): string {
  const strings = readdirSync(join(of, 'log')).filter((name) => name.startsWith('stdout-'))
  return strings.map((name) => readFileSync(join(of, 'log', name), 'utf8')).join('')
}

async function failAt(call: number): Promise<Outcome> {
  const copy = join(folder, 'copy')
  cpSync(root, copy, copying)
  writeFileSync(join(copy, 'log', 'stdout-2000-01-01.txt'), '')
  for (const name of readdirSync(join(copy, 'log'))) rmSync(join(copy, 'log', name))
  const failing = start(copy, call)
  const outcome = await failing.outcome
  const text = failing.text()
  const { exitCode } = failing.child
  await kill(failing)
  check(outcome !== 'neither', `failing from call ${call} on: it neither ends nor is ready: ${text}\n${logOf(copy)}`)
  if (outcome === 'ended') {
    check(exitCode === 1, `failing from call ${call} on: it ended with code ${exitCode}`)
    check(text.includes('EIO'), `failing from call ${call} on: the terminal does not say why: ${text}`)
    check(/ C .*EIO/.test(logOf(copy)), `failing from call ${call} on: the log does not say why: ${logOf(copy)}`)
  }
  const again = start(copy, 0)
  check((await again.outcome) === 'ready', `behind call ${call} a start fails: ${again.text()}`)
  for (const table of ['failing', 'logged']) {
    const [[count] = []] = await queryRows(port, `select count() from ${table}`)
    check(Number(count) === rows, `behind call ${call} ${table} has ${count} rows`)
  }
  await kill(again)
  rmSync(copy, { recursive: true })
  return outcome
}

async function main(): Promise<void> {
  const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' })
  if (compiled.status !== 0) {
    process.stdout.write(`skipped: ${compiled.error?.message ?? compiled.stderr}\n`)
    return
  }
  await fill()
  cpSync(root, join(folder, 'copy'), copying)
  const counted = start(join(folder, 'copy'), 0)
  check((await counted.outcome) === 'ready', counted.text())
  const total = calls()
  await kill(counted)
  rmSync(join(folder, 'copy'), { recursive: true })
  const step = Math.max(1, total / Number(values.points))
  const outcomes: Record<Outcome, number> = { ready: 0, ended: 0, neither: 0 }
  // The last ones are the end of the start, behind "recovered".
  for (let call = total; call >= 1; call -= step) outcomes[await failAt(Math.round(call))]++
  check(outcomes.ended > 0, 'no start has failed')
  process.stdout.write(`${total} calls of a start; failing from one on: ${outcomes.ended} ended with the reason, `)
  process.stdout.write(`${outcomes.ready} had no need of them; every row was there afterwards\n`)
}

await main()
