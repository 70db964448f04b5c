// `node dist/test/crash/log-damage.js [--rows all | short]`: damages or removes parts of the write-ahead log, in every
// way that users or disks do, and checks what the server reports. A table in this file lists the kinds of damage;
// `short` tries a few of them.
//
// Method: the log of a root folder gets four segments of 40 rows, one request per row: the server is killed after each
// of the first three, and after the last it is killed or stopped cleanly. Each kind damages a copy of that folder.
// Expected: `check` reports the damage before the start; the server starts; all rows outside of the damage exist, in
// order. If rows may be missing, `/warnings`, a metric, `check` and the health checks of both ports (with the setting
// that makes warnings unhealthy) report it, also after another restart, until somebody removes the damaged bytes that
// the server has kept in db/wal/aside. If the server knows that no row is missing, only `check` may report the damage.

import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { command, TestServer } from '../support/server.js'

const { values } = parseArgs({ options: { rows: { type: 'string', default: 'all' } } })
const settings = ['memory.bytes=400m', 'query.threads=1', 'http.pessimistic.health.check.enabled=true']
const segmentRows = 40
const headerBytes = 8192

interface Segment {
  readonly path: string
  /** End of the bytes that are not zero. */
  readonly usedBytes: number
}

type Damage = (segments: readonly Segment[], folder: string) => void

interface Row {
  readonly name: string
  readonly damage: Damage
  /** Rows that are left, at least and at most. */
  readonly rows: readonly [number, number]
  /** Rows may be missing, and the server says so. */
  readonly reported: boolean
  /** `check` has something to say before the start. */
  readonly found: boolean
  readonly short?: boolean
}

const all = 4 * segmentRows
const middle = (usedBytes: number): number => headerBytes + Math.floor((usedBytes - headerBytes) / 2)
const newest =
  (change: (segment: Segment) => void): Damage =>
  (segments) =>
    change(segments.at(-1) as Segment)
const second =
  (change: (segment: Segment) => void): Damage =>
  (segments) =>
    change(segments[1] as Segment)
const cut = ({ path, usedBytes }: Segment): void => truncateSync(path, middle(usedBytes))
const empty = ({ path }: Segment): void => truncateSync(path, 0)
const remove = ({ path }: Segment): void => rmSync(path)
/** Changes bytes in place. */
const patch = (path: string, change: (bytes: Buffer) => void): void => {
  const bytes = readFileSync(path)
  change(bytes)
  writeFileSync(path, bytes)
}
const zeroTail = ({ path, usedBytes }: Segment): void => patch(path, (bytes) => void bytes.fill(0, middle(usedBytes)))
const flip = (offset: number) => (bytes: Buffer) => {
  bytes[offset] = bytes[offset]! ^ 0x21
}
const frameMagic = Buffer.from('PWF1', 'latin1')
/** Flips a byte of a frame of rows: `offset` from its header. */
const flipFrame =
  (offset: number, from: 'middle' | 'end') =>
  ({ path, usedBytes }: Segment): void =>
    patch(path, (bytes) => {
      const isRows = (at: number): boolean => bytes.readUInt16LE(at + 8) === 16
      let at = from === 'end' ? bytes.lastIndexOf(frameMagic, usedBytes) : bytes.indexOf(frameMagic, middle(usedBytes))
      while (!isRows(at)) {
        at = from === 'end' ? bytes.lastIndexOf(frameMagic, at - 1) : bytes.indexOf(frameMagic, at + 1)
      }
      flip(at + offset)(bytes)
    })

// The last frame of a server that stopped in order is of the server's own events.
const table: readonly Row[] = [
  { name: 'nothing', damage: () => {}, rows: [all, all], reported: false, found: false, short: true },
  {
    name: 'newest segment cut in half',
    damage: newest(cut),
    rows: [120, 159],
    reported: true,
    found: true,
    short: true,
  },
  { name: 'newest segment emptied', damage: newest(empty), rows: [120, 120], reported: true, found: true, short: true },
  { name: 'newest segment gone', damage: newest(remove), rows: [120, 120], reported: true, found: true, short: true },
  { name: 'end of the newest segment zeroed', damage: newest(zeroTail), rows: [120, 159], reported: true, found: true },
  { name: 'segment in the middle cut in half', damage: second(cut), rows: [120, 159], reported: true, found: true },
  { name: 'segment in the middle emptied', damage: second(empty), rows: [120, 120], reported: true, found: true },
  {
    name: 'segment in the middle gone',
    damage: second(remove),
    rows: [120, 120],
    reported: true,
    found: true,
    short: true,
  },
  {
    name: 'oldest segment gone',
    damage: ([first]) => remove(first as Segment),
    rows: [120, 120],
    reported: true,
    found: true,
  },
  {
    name: 'last frame, byte of its header',
    damage: newest(flipFrame(5, 'end')),
    rows: [159, 160],
    reported: true,
    found: true,
  },
  {
    ...{ name: 'last frame, byte of its rows', damage: newest(flipFrame(90, 'end')) },
    ...{ rows: [159, 160], reported: true, found: true, short: true },
  },
  {
    name: 'frame in the middle',
    damage: second(flipFrame(90, 'middle')),
    rows: [159, 159],
    reported: true,
    found: true,
  },
  {
    ...{ name: 'one copy of a segment header', damage: newest(({ path }) => patch(path, flip(3))) },
    ...{ rows: [all, all], reported: false, found: true },
  },
  {
    name: 'both copies of a segment header',
    damage: newest(({ path }) => {
      patch(path, flip(3))
      patch(path, flip(4096 + 3))
    }),
    ...{ rows: [120, 120], reported: true, found: true },
  },
  {
    name: 'names of two segments exchanged',
    damage: ([, one, two]) => {
      const [a, b] = [(one as Segment).path, (two as Segment).path]
      renameSync(a, `${a}.x`)
      renameSync(b, a)
      renameSync(`${a}.x`, b)
    },
    ...{ rows: [all, all], reported: false, found: true, short: true },
  },
  {
    name: 'a copy of a segment under another name',
    damage: ([first], folder) => cpSync((first as Segment).path, join(folder, '0000000099.wal')),
    ...{ rows: [all, all], reported: true, found: true },
  },
  {
    name: 'a foreign file with the name of a segment',
    damage: (_, folder) => writeFileSync(join(folder, '0000000099.wal'), Buffer.alloc(20_000, 'not a log ')),
    ...{ rows: [all, all], reported: true, found: true },
  },
  {
    name: 'a foreign file with a name of its own',
    damage: (_, folder) => writeFileSync(join(folder, 'notes.txt'), 'not a log'),
    ...{ rows: [all, all], reported: false, found: false },
  },
  {
    name: 'all segments gone',
    damage: (segments) => segments.forEach(remove),
    ...{ rows: [0, 0], reported: true, found: true },
  },
]

function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message)
}

function segmentsOf(root: string): Segment[] {
  const folder = join(root, 'db/wal')
  return readdirSync(folder)
    .filter((name) => name.endsWith('.wal'))
    .map((name) => join(folder, name))
    .map((path) => ({ path, usedBytes: readFileSync(path).findLastIndex((byte) => byte !== 0) + 1 }))
    .filter(({ usedBytes }) => usedBytes > 0)
}

function segmentCount(root: string): number {
  return readdirSync(join(root, 'db/wal')).filter((name) => name.endsWith('.wal')).length
}

/** Four segments; the last one is of a server that was killed, or stopped in order. */
async function makeRoot(last: 'SIGKILL' | 'SIGTERM'): Promise<TestServer> {
  const server = new TestServer(settings)
  for (let segment = 0; segment < 4; segment++) {
    await server.start()
    if (segment === 0) {
      // With a row in a part the manifest knows the table, whatever becomes of the log.
      await server.rows('create table t (n long, timestamp timestamp) timestamp(timestamp) partition by day')
      await server.rows("insert into t values (-1, '1970-01-01')")
      await server.rows('checkpoint')
    }
    for (let row = 0; row < segmentRows; row++) {
      const n = segment * segmentRows + row
      const { status } = await server.write(`t n=${n}i ${(n + 1) * 1_000_000}\n`)
      check(status === 204, 'a row is acknowledged')
    }
    await server.end(segment === 3 ? last : 'SIGKILL')
  }
  return server
}

function findings(root: string): number {
  return spawnSync(process.execPath, [command, 'check', '-d', root]).status ?? -1
}

/** What the running server says: whether something is lost. */
async function reported(server: TestServer): Promise<boolean> {
  const http = `http://${server.address('http')}`
  const warnings = (await (await fetch(`${http}/warnings`)).json()) as { readonly tag: string }[]
  const metric = /^\S*wal_losses (\d+)$/m.exec(await (await fetch(`${http}/metrics`)).text())?.[1]
  const health = (await fetch(http)).status
  const minHealth = (await fetch(`http://${server.address('health')}`)).status
  const answers = [warnings.some(({ tag }) => tag === 'storage'), Number(metric) > 0, health === 500, minHealth === 500]
  check(
    answers.every((answer) => answer === answers[0]),
    `all say the same: ${JSON.stringify({ warnings, metric, health, minHealth })}`,
  )
  return answers[0] === true
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function numbers(server: TestServer): Promise<number[]> {
  const { status, body } = await server.exec('select n from t where n >= 0')
  if (status !== 200) return []
  return (body.dataset ?? []).map(([n]) => Number(n))
}

async function tryRow(source: TestServer, { name, damage, rows, reported: lost, found }: Row): Promise<void> {
  const server = new TestServer(settings)
  try {
    cpSync(join(source.root, 'db'), join(server.root, 'db'), { recursive: true })
    damage(segmentsOf(server.root), join(server.root, 'db/wal'))
    check(
      findings(server.root) === (found ? 1 : 0),
      `${name}: check says ${found ? 'damage' : 'nothing'} before the start`,
    )
    for (let start = 0; start < 2; start++) {
      await server.start()
      const left = await numbers(server)
      check(left.length >= rows[0] && left.length <= rows[1], `${name}: ${left.length} rows are left of ${all}`)
      check(
        left.every((n, at) => at === 0 || n > (left[at - 1] as number)),
        `${name}: rows are in order, each once`,
      )
      check((await reported(server)) === lost, `${name}: the running server says ${lost ? 'what is lost' : 'nothing'}`)
      await server.end()
      // What costs no row is found as long as the segment is there.
      check(findings(server.root) === (found ? 1 : 0), `${name}: check says ${found ? 'damage' : 'nothing'} afterwards`)
    }
    // A damaged segment is reported at each start as long as it is part of the log.
    await server.start()
    await server.rows('checkpoint')
    for (let wait = 0; wait < 100 && segmentCount(server.root) > 1; wait++) await sleep(100)
    await server.end()
    rmSync(join(server.root, 'db/wal/aside'), { recursive: true, force: true })
    await server.start()
    check(!(await reported(server)), `${name}: nothing is said when the notes were taken away`)
    console.log(`${name}: as expected`)
  } finally {
    await server.remove()
  }
}

for (const last of values.rows === 'short' ? (['SIGKILL'] as const) : (['SIGKILL', 'SIGTERM'] as const)) {
  const source = await makeRoot(last)
  try {
    console.log(`log of a server that ended by ${last}`)
    for (const row of table) if (values.rows === 'all' || row.short === true) await tryRow(source, row)
  } finally {
    await source.remove()
  }
}
