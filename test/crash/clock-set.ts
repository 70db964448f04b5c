// `node dist/test/crash/clock-set.js [--port n]`: changes the machine's clock under a running server, by libfaketime,
// and checks that every thread has the new time within a second, and that durations are not affected.
//
// Method: the server starts ten years in the past, like a machine without a clock battery. Then the clock is corrected,
// set back by an hour, and corrected again. After each change, the following have the new time: now() and
// systimestamp(), in queries on the main thread and on query threads; the timestamps that the server gives to lines
// without one, over HTTP and TCP; now() in INSERT, over HTTP and the PostgreSQL protocol. All rows of a statement have
// the same now(), and the log reports the change. At the end the clock is set back by ten years while a query with a
// timeout of two seconds runs; it must end after about two seconds.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'

const { values } = parseArgs({ options: { port: { type: 'string', default: '17400' } } })
const port = Number(values.port)
const library = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path))
const root = mkdtempSync(join(tmpdir(), 'penstock-clock-'))
const timeFile = join(root, 'time')
/** Of both clocks; the server is asked a second behind each step. */
const toleranceMs = 50
const followMs = 1000
const hourMs = 3_600_000

let server: ChildProcess | null = null
process.on('exit', () => {
  server?.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}

function setClock(shiftMs: number): void {
  writeFileSync(timeFile, `${shiftMs < 0 ? '-' : '+'}${Math.abs(shiftMs) / 1000}\n`)
}

async function start(): Promise<void> {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const addresses = ['http.net.bind.to', 'line.tcp.net.bind.to', 'pg.net.bind.to', 'http.min.net.bind.to']
  const sets = addresses.flatMap((key, index) => ['--set', `${key}=127.0.0.1:${port + index}`])
  const env = {
    ...process.env,
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: timeFile,
    FAKETIME_NO_CACHE: '1',
    // Nobody sets the monotonic clock of a machine.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  }
  const args = [command, 'start', '-d', root, ...sets, '--set', 'query.threads=2']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  server = child
  let text = ''
  for await (const chunk of child.stdout) {
    text += chunk
    if (text.includes('Ctrl-C')) return
  }
  throw new Error('the server did not start')
}

async function rows(query: string, headers: Record<string, string> = {}): Promise<readonly (readonly unknown[])[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/exec?${new URLSearchParams({ query })}`, { headers })
  const { dataset, error } = (await answer.json()) as { dataset?: unknown[][]; error?: string }
  if (dataset === undefined && error !== undefined) throw new Error(`${query}: ${error}`)
  return dataset ?? []
}

async function sendLines(): Promise<void> {
  await fetch(`http://127.0.0.1:${port}/write`, {
    method: 'POST',
    body: 'stamped,by=http v=1i\nstamped,by=http v=2i\n',
  })
  const socket = connect(port + 1, '127.0.0.1')
  socket.end('stamped,by=tcp v=1i\n')
  await once(socket, 'close')
  await rows("insert into stamped (by, v, timestamp) select 'sql', x, now() from long_sequence(3)")
  const client = new pg.Client({ host: '127.0.0.1', port: port + 2, user: 'admin', password: 'quest', database: 'qdb' })
  await client.connect()
  await client.query("insert into stamped (by, v, timestamp) values ('pg', $1, now())", [1])
  await client.end()
}

async function expectTime(name: string, shiftMs: number): Promise<void> {
  let askedMs = Date.now()
  const expectNow = (what: string, text: unknown): void => {
    const ms = Date.parse(String(text)) - shiftMs
    const isWithin = ms > askedMs - toleranceMs && ms < Date.now() + toleranceMs
    check(isWithin, `${name}: ${what} is ${text}, asked at ${new Date(askedMs + shiftMs).toISOString()}`)
  }
  const [small = []] = await rows('select now(), systimestamp()')
  expectNow('now()', small[0])
  expectNow('systimestamp()', small[1])
  const large =
    'select min(a), max(a), min(b), max(b) from (select now() a, systimestamp() b from long_sequence(2000000))'
  askedMs = Date.now()
  const [spread = []] = await rows(large)
  check(spread[0] === spread[1], `${name}: a statement has two times, ${spread[0]} and ${spread[1]}`)
  expectNow('now() of a query thread', spread[0])
  expectNow('systimestamp() of a query thread', spread[3])
  await rows('truncate table stamped').catch(() => [])
  askedMs = Date.now()
  await sendLines()
  const found = await rows('select by, count(), min(timestamp), max(timestamp), count_distinct(timestamp) from stamped')
  check(found.length === 4, `${name}: rows came by ${found.length} ways of 4`)
  for (const [by, , first, last, distinct] of found) {
    expectNow(`the timestamp of rows by ${by}`, first)
    check(first === last && Number(distinct) === 1, `${name}: rows of one batch by ${by} are from ${first} to ${last}`)
  }
}

async function expectDeadline(shiftMs: number): Promise<void> {
  const begunMs = performance.now()
  const running = rows('select sum(rnd_double()) from long_sequence(100000000000)', { 'Statement-Timeout': '2000' })
  setTimeout(() => setClock(shiftMs), 500)
  const failure = await running.then(
    () => 'none',
    (error: Error) => error.message,
  )
  const tookMs = performance.now() - begunMs
  check(/timeout/.test(failure), `a deadline passed: ${failure}`)
  check(tookMs > 1900 && tookMs < 8000, `a deadline of 2 s took ${tookMs} ms when the clock was set`)
}

function steps(): number {
  // Each day has a file of its own.
  const strings = readdirSync(join(root, 'log'))
    .filter((file) => file.startsWith('stdout-'))
    .map((file) => readFileSync(join(root, 'log', file), 'utf8'))
  return strings.join('').split("the machine's clock was set").length - 1
}

async function main(): Promise<void> {
  if (library === undefined) {
    process.stdout.write('skipped: libfaketime is not there\n')
    return
  }
  const tenYearsMs = 10 * 365 * 24 * hourMs
  setClock(-tenYearsMs)
  await start()
  await expectTime('ten years in the past', -tenYearsMs)
  check(steps() === 0, 'nobody has set the clock yet')
  let reported = 0
  for (const [name, shiftMs] of [
    ['set right', 0],
    ['an hour back', -hourMs],
    ['right again', 0],
  ] as const) {
    setClock(shiftMs)
    await new Promise((resolve) => setTimeout(resolve, followMs))
    await expectTime(name, shiftMs)
    // The look of an idle main thread comes every second.
    await new Promise((resolve) => setTimeout(resolve, 200))
    check(steps() === ++reported, `${name}: the log tells of ${steps()} steps of ${reported}`)
    process.stdout.write(`${name}: every thread has the time\n`)
  }
  await expectDeadline(-tenYearsMs)
  process.stdout.write('a deadline is the same when the clock is set\n')
  const child = server
  if (child === null) return
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  check(code === 0, `the server ended with code ${code}`)
}

await main()
