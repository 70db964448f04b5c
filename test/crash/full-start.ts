// `node dist/test/crash/full-start.js [--port n] [--only name]`: starts on a file system without a free byte, or
// without a free inode. Mounts a tmpfs and an ext4 file system, which requires root; what cannot be mounted is skipped
// with a message.
//
// Method: a server stores rows in partitions and is killed; then other files fill the file system. On the full disk the
// server starts three times. Each time it answers queries and exports, refuses lines over HTTP and INSERTs over HTTP
// and the PostgreSQL protocol, and reports that in /warnings and metrics. With the setting `disk.free.bytes.min` 0 the
// refusals are not tested. It then accepts DROP PARTITION, TRUNCATE and DROP TABLE, which free space, and accepts rows
// again without a restart. After another kill, every row that was stored and not dropped exists. At the end the server
// starts on the full disk without its reserve (files that it creates in advance for this case), and must still answer
// queries.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { queryRows } from '../bench/processes.js'

const { values } = parseArgs({
  options: { port: { type: 'string', default: '17600' }, only: { type: 'string', default: '' } },
})
const ports = { http: Number(values.port), line: Number(values.port) + 1, pg: Number(values.port) + 2 }
const base = `http://127.0.0.1:${ports.http}`
const days = 8
const rowsADay = 8000
const responseMs = 10_000

interface Place {
  readonly name: string
  /** Null: it cannot be mounted here. */
  readonly mount: (folder: string) => boolean
  readonly fill: (folder: string) => void
  readonly floor: string
}

function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function run(command: string, ...parameters: string[]): boolean {
  return spawnSync(command, parameters).status === 0
}

const tmpfs =
  (options: string) =>
  (folder: string): boolean =>
    run('mount', '-t', 'tmpfs', '-o', options, 'penstock-full', folder)

const ext4 =
  (size: string, ...parameters: string[]) =>
  (folder: string): boolean => {
    const image = `${folder}.ext4`
    return (
      run('truncate', '-s', size, image) &&
      run('mkfs.ext4', '-q', '-F', '-m', '0', ...parameters, image) &&
      run('mount', '-o', 'loop', image, folder)
    )
  }

/** To the last byte, whatever the kernel keeps for itself. */
function fillBytes(folder: string): void {
  const file = openSync(join(folder, 'ballast'), 'a')
  for (let bytes = 1 << 20; bytes > 0; ) {
    try {
      writeSync(file, Buffer.alloc(bytes, 7))
    } catch {
      bytes >>= 1
    }
  }
  closeSync(file)
}

function fillInodes(folder: string): void {
  mkdirSync(join(folder, 'many'), { recursive: true })
  for (let count = 0; ; count++) {
    try {
      closeSync(openSync(join(folder, 'many', String(count)), 'a'))
    } catch {
      return
    }
  }
}

const places: readonly Place[] = [
  { name: 'tmpfs without bytes', mount: tmpfs('size=160m'), fill: fillBytes, floor: '1m' },
  { name: 'tmpfs without bytes, no floor', mount: tmpfs('size=160m'), fill: fillBytes, floor: '0' },
  { name: 'tmpfs without inodes', mount: tmpfs('size=160m,nr_inodes=2000'), fill: fillInodes, floor: '1m' },
  { name: 'tmpfs without inodes, no floor', mount: tmpfs('size=160m,nr_inodes=2000'), fill: fillInodes, floor: '0' },
  { name: 'ext4 without bytes', mount: ext4('200m'), fill: fillBytes, floor: '1m' },
  { name: 'ext4 without inodes', mount: ext4('200m', '-N', '1000'), fill: fillInodes, floor: '1m' },
]

async function startServer(root: string, floor: string): Promise<ChildProcess> {
  const command = new URL('../../deploy/cli.js', import.meta.url).pathname
  const sets = [
    ...[`http.net.bind.to=127.0.0.1:${ports.http}`, `line.tcp.net.bind.to=127.0.0.1:${ports.line}`],
    ...[`pg.net.bind.to=127.0.0.1:${ports.pg}`, 'http.min.enabled=false', 'memory.bytes=512m', 'metrics.enabled=true'],
    ...[`disk.free.bytes.min=${floor}`, 'telemetry.enabled=true'],
  ].flatMap((set) => ['--set', set])
  const child = spawn(process.execPath, [command, 'start', '-d', root, ...sets], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (let attempt = 0; attempt < 400; attempt++) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`)
    const isReady = await fetch(base).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return child
    await sleep(50)
  }
  child.kill('SIGKILL')
  throw new Error('the server does not answer')
}

async function kill(server: ChildProcess): Promise<void> {
  server.kill('SIGKILL')
  await once(server, 'exit')
}

async function statement(sql: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${base}/exec?query=${encodeURIComponent(sql)}`, {
    signal: AbortSignal.timeout(responseMs),
  })
  return { status: answer.status, text: await answer.text() }
}

async function demand(sql: string): Promise<void> {
  const { status, text } = await statement(sql)
  check(status === 200, `${sql}: ${status} ${text}`)
}

async function count(table: string): Promise<number> {
  return Number((await queryRows(ports.http, `select count() from ${table}`))[0]?.[0])
}

/** Rows that look like nothing that compresses. */
function fillTable(table: string, columns = 'rnd_str(40, 40, 0) s, rnd_double() d'): Promise<void> {
  const step = 86_400_000_000 / rowsADay
  return demand(
    `insert into ${table} select timestamp_sequence('2024-01-01', ${Math.floor(step)}L), ${columns} from long_sequence(${days * rowsADay})`,
  )
}

const names = ['kept', 'cut', 'emptied', 'gone', 'fresh'] as const

async function prepare(): Promise<void> {
  for (const name of names) {
    await demand(`create table ${name} (ts timestamp, s varchar, d double) timestamp(ts) partition by day`)
    if (name !== 'fresh') await fillTable(name)
  }
  await demand('checkpoint create')
  await demand('checkpoint release')
  // In memory and in the log alone.
  await demand("insert into kept values ('2024-02-01', 'late', 1)")
  await demand("insert into cut values ('2024-01-01T12:00:00', 'late', 1)")
  await demand("insert into fresh values ('2024-01-01', 'first', 1), ('2024-01-02', 'second', 2)")
}

/** Reads in every way, and is refused in every way to write. */
async function readAlone(floor: string): Promise<void> {
  check((await count('kept')) === days * rowsADay + 1, 'rows are missing')
  check((await count('fresh')) === 2, 'rows of the log are missing')
  for (const format of ['csv', 'parquet']) {
    const answer = await fetch(`${base}/exp?fmt=${format}&query=${encodeURIComponent('select * from kept')}`)
    const bytes = (await answer.arrayBuffer()).byteLength
    check(answer.status === 200 && bytes > days * rowsADay * 8, `no export as ${format}: ${answer.status}`)
  }
  if (floor !== '0') await beRefused()
}

async function beRefused(): Promise<void> {
  const client = new pg.Client({ host: '127.0.0.1', port: ports.pg, user: 'admin', password: 'quest', database: 'qdb' })
  client.on('error', () => {})
  await client.connect()
  check((await client.query('select count() from cut')).rows.length === 1, 'the wire does not answer')
  const refused = await client.query("insert into kept values ('2024-02-02', 'x', 1)").then(
    () => 'nothing',
    ({ code }: { code?: string }) => code ?? '',
  )
  check(refused.startsWith('53'), `the wire refused a row with ${refused}`)
  await client.end()
  const line = await fetch(`${base}/write`, { method: 'POST', body: 'kept s="x",d=1 1700000000000000000\n' })
  check(line.status === 503, `a line was answered with ${line.status}`)
  check(line.headers.get('retry-after') !== null, 'a line was refused without Retry-After')
  const { status, text } = await statement("insert into kept values ('2024-02-02', 'x', 1)")
  check(status === 503 && /full/.test(text), `INSERT was answered with ${status} ${text}`)
  const warnings = await (await fetch(`${base}/warnings`)).text()
  check(/writes are refused/.test(warnings), `/warnings says ${warnings}`)
  const metrics = await (await fetch(`${base}/metrics`)).text()
  check(/svc_writes_refused\{reason="disk"\} 1/.test(metrics), 'the metrics do not tell that writes are refused')
}

async function makeRoom(folder: string): Promise<void> {
  const free = () => statfsSync(folder).bavail * statfsSync(folder).bsize
  const before = free()
  await demand("alter table kept drop partition list '2024-01-01'")
  check((await count('kept')) === (days - 1) * rowsADay + 1, 'DROP PARTITION dropped other rows')
  await demand("alter table cut drop partition where ts < '2024-01-05'")
  check((await count('cut')) === (days - 4) * rowsADay, 'DROP PARTITION of parts and memory dropped other rows')
  await demand("alter table fresh drop partition list '2024-01-01'")
  check((await count('fresh')) === 1, 'DROP PARTITION of rows in memory dropped other rows')
  await demand('truncate table emptied')
  await demand('drop table gone')
  for (let waited = 0; free() < before + (days + 5) * rowsADay * 30; waited += 50) {
    check(waited < responseMs, `only ${free() - before} bytes were given back`)
    await sleep(50)
  }
}

async function untilStored(sql: string): Promise<void> {
  for (let waited = 0; ; waited += 100) {
    const { status, text } = await statement(sql)
    if (status === 200) return
    check(waited < responseMs, `rows are not taken again: ${text}`)
    await sleep(100)
  }
}

async function untilReserve(root: string): Promise<void> {
  const found = () => readdirSync(join(root, 'db')).includes('reserve') && readdirSync(join(root, 'db', 'reserve'))
  for (let waited = 0; ; waited += 50) {
    const list = found()
    if (list !== false && list.filter((name) => name.endsWith('.zeros')).length === 4) return
    check(waited < responseMs, 'no reserve was made')
    await sleep(50)
  }
}

async function verify(): Promise<void> {
  check((await count('kept')) === (days - 1) * rowsADay + 2, 'kept has lost rows')
  check((await count('cut')) === (days - 4) * rowsADay, 'cut has other rows')
  check((await count('fresh')) === 1, 'fresh has other rows')
  check((await count('emptied')) === 0, 'emptied is not empty')
  check((await statement('select * from gone')).status === 400, 'gone is there')
}

async function tryPlace(place: Place, folder: string): Promise<void> {
  const root = join(folder, 'root')
  mkdirSync(root)
  let server = await startServer(root, place.floor)
  try {
    await prepare()
    await untilReserve(root)
    await kill(server)
    place.fill(folder)
    for (let start = 0; start < 3; start++) {
      server = await startServer(root, place.floor)
      place.fill(folder)
      await sleep(300)
      await readAlone(place.floor)
      if (start < 2) await kill(server)
    }
    await makeRoom(folder)
    if (place.fill === fillInodes) for (let n = 0; n < 100; n++) rmSync(join(folder, 'many', String(n)))
    await untilStored("insert into kept values ('2024-02-02', 'again', 1)")
    await verify()
    await kill(server)
    server = await startServer(root, place.floor)
    await verify()
    await kill(server)
    // As an earlier version has left it.
    rmSync(join(root, 'db', 'reserve'), { recursive: true, force: true })
    place.fill(folder)
    server = await startServer(root, place.floor)
    place.fill(folder)
    await sleep(300)
    await verify()
    if (place.floor === '0') return
    check((await statement("insert into kept values ('2024-02-02', 'x', 1)")).status === 503, 'a full disk took a row')
  } finally {
    await kill(server).catch(() => {})
  }
}

for (const place of places.filter(({ name }) => name.includes(values.only))) {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-full-'))
  try {
    if (place.mount(folder)) {
      const begun = performance.now()
      await tryPlace(place, folder)
      process.stdout.write(`${place.name}: ${((performance.now() - begun) / 1000).toFixed(1)} s\n`)
    } else process.stdout.write(`${place.name}: skipped, it cannot be mounted here\n`)
  } catch (error) {
    process.stdout.write(`${place.name}: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  } finally {
    spawnSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
    rmSync(`${folder}.ext4`, { force: true })
  }
}
process.exit()
