// Goal: after a crash of the machine, acknowledged requests are stored once and completely, all others completely or
// not at all. Method: random lines (some with new columns), transactions whose rows are parts of several tables,
// truncated and dropped tables, dropped partitions, flushes and checkpoints on a simulated disk. The machine stops at a
// random file operation, also during recovery; then the tables are compared with a model. A transaction with parts is
// also stopped at each of its file operations.

import { expect, test } from 'vitest'
import { createRandom, type Random } from '../../support/random.js'
import { createFaultyDisk, SimulatedCrash } from '../../support/simulator/faulty-files.js'
import { type PartStore, type Row, WriterHost } from './writer-host.js'

const seeds = Number(process.env['WRITER_CRASH_SEEDS'] ?? 60)
const firstSeed = Number(process.env['WRITER_CRASH_FIRST'] ?? 1)
const tables = ['alpha', 'beta', 'gamma'] as const

interface Request {
  readonly kind: 'write' | 'truncate' | 'drop' | 'partition'
  /** Rows by table: their unique numbers. */
  readonly rows: ReadonlyMap<string, readonly number[]>
  /** Whose partition is dropped. */
  readonly day?: number
  acknowledged: boolean
}

interface Life {
  readonly random: Random
  readonly requests: Request[]
  nextRow: number
}

test.each(Array.from({ length: seeds }, (_, index) => firstSeed + index))('seed %i', (seed) => {
  const random = createRandom(seed)
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const parts: PartStore = new Map()
  const life: Life = { random, requests: [], nextRow: 1 }
  const settings = { flushRows: random.pick([50, 300, 100_000]), relocatedBytesMax: random.pick([0, 8192, 1 << 20]) }
  const start = () =>
    new WriterHost({
      files: disk.files,
      parts,
      settings,
      walBytesMax: 96 * 1024,
      walSegmentBytes: 16 * 1024,
      merges: true,
    })
  for (let round = 0; round < 4; round++) {
    const crashAt = disk.operations + random.between(1, random.pick([30, 400]))
    disk.inject((operation) => (operation.index === crashAt ? { kind: 'crash' } : undefined))
    try {
      const host = start()
      check(host, life)
      for (let step = 0; step < 60; step++) act(host, life)
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    disk.inject(undefined)
    disk.crash(random.between(1, 1e9))
  }
  const host = start()
  check(host, life)
  host.checkpoint()
  host.settle()
  check(host, life)
})

test('parts of several tables are added together, wherever the machine stops', () => {
  const found = new Set<string>()
  for (let crashAt = 1; ; crashAt++) {
    const random = createRandom(crashAt)
    const disk = createFaultyDisk(crashAt)
    disk.files.makeDirectory('/db')
    disk.files.syncDirectory('/')
    const parts: PartStore = new Map()
    const host = new WriterHost({ files: disk.files, parts })
    expect(host.write(tables.map((table) => `${table},s=k0 v=0i 1704067200000000000`).join('\n')).error).toBe(null)
    const loads = tables.map((table, index) => host.stage(table, [loadedRow(random, index + 1)]))
    const first = disk.operations
    disk.inject(({ index }) => (index === first + crashAt ? { kind: 'crash' } : undefined))
    let isDone = false
    try {
      expect(host.register(loads).rows).toBe(3)
      isDone = true
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown
    }
    disk.inject(undefined)
    disk.crash(random.between(1, 1e9))
    const recovered = new WriterHost({ files: disk.files, parts })
    const rows = tables.map((table) => rowsOf(recovered, table).join()).join(' ')
    found.add(rows)
    if (!isDone) continue
    expect(rows, 'acknowledged').toBe('0,1 0,2 0,3')
    break
  }
  expect([...found].sort()).toEqual(['0 0 0', '0,1 0,2 0,3'])
})

test('parts are refused together', () => {
  const disk = createFaultyDisk(1)
  const parts: PartStore = new Map()
  disk.files.makeDirectory('/db')
  const host = new WriterHost({ files: disk.files, parts })
  host.write(tables.map((table) => `${table},s=k0 v=0i 1704067200000000000`).join('\n'))
  const loads = tables.map((table, index) => host.stage(table, [loadedRow(createRandom(1), index + 1)]))
  expect(host.change({ kind: 'dropTable', tableId: host.tableId('beta') }).error).toBe(null)
  expect(host.register(loads).error?.message).toBe('the table was dropped in the meantime [table=beta]')
  host.settle()
  expect([rowsOf(host, 'alpha'), rowsOf(host, 'gamma')]).toEqual([[0], [0]])
  for (const { file } of loads.flatMap((one) => one.parts)) expect(disk.files.exists(`/db/${file}`), file).toBe(false)
})

function act(host: WriterHost, life: Life): void {
  const { random } = life
  if (random.chance(0.1)) load(host, life)
  else if (random.chance(0.75)) write(host, life)
  else if (random.chance(0.3)) host.checkpoint()
  else if (random.chance(0.5)) change(host, life)
  else host.settle(random.between(1, 40))
}

function write(host: WriterHost, life: Life): void {
  const { random } = life
  const rows = new Map<string, number[]>()
  let text = ''
  for (let count = random.between(1, random.pick([3, 40])); count > 0; count--) {
    const table = random.pick(tables)
    const row = life.nextRow++
    rows.set(table, [...(rows.get(table) ?? []), row])
    const extra = random.chance(0.1) ? `,extra${random.between(0, 5)}="x"` : ''
    text += `${table},s=k${random.between(0, 200)} v=${row}i${extra} ${timeOf(random, row)}\n`
  }
  const request: Request = { kind: 'write', rows, acknowledged: false }
  life.requests.push(request)
  const id = host.lines(text)
  if (random.chance(0.3)) return
  expect(host.await(id).error).toBe(null)
  // Receipts come in the order of the requests.
  for (const earlier of life.requests) earlier.acknowledged = true
}

/** Several loads of one transaction, some of them of the same table. */
function load(host: WriterHost, life: Life): void {
  const { random } = life
  host.settle()
  for (const earlier of life.requests) earlier.acknowledged = true
  const existing = tables.filter((table) => host.catalog.table(table) !== undefined)
  if (existing.length === 0) return
  const rows = new Map<string, number[]>()
  const loads = Array.from({ length: random.between(1, 4) }, () => {
    const table = random.pick(existing)
    const numbers = Array.from({ length: random.between(1, 20) }, () => life.nextRow++)
    const staged = host.stage(
      table,
      numbers.map((row) => loadedRow(random, row)),
    )
    rows.set(table, [...(rows.get(table) ?? []), ...numbers])
    return staged
  })
  const request: Request = { kind: 'write', rows, acknowledged: false }
  life.requests.push(request)
  expect(host.register(loads).error).toBe(null)
  request.acknowledged = true
}

function loadedRow(random: Random, row: number): Row {
  return { timestamp: timeOf(random, row) / 1000n, s: `k${random.between(0, 200)}`, v: BigInt(row) }
}

/** Rows lie on three days, by their number. */
const daysMax = 3

function timeOf(random: Random, row: number): bigint {
  return 1704067200000000000n + BigInt((row % daysMax) * 86400 + random.between(0, 10)) * 1_000_000_000n
}

function change(host: WriterHost, life: Life): void {
  const table = life.random.pick(tables)
  host.settle()
  for (const earlier of life.requests) earlier.acknowledged = true
  const version = host.catalog.table(table)
  if (version === undefined) return
  const kind = life.random.pick(['truncate', 'drop', 'partition', 'partition'] as const)
  const day = life.random.between(0, daysMax - 1)
  const request: Request = { kind, rows: new Map([[table, []]]), day, acknowledged: false }
  life.requests.push(request)
  const tableId = version.schema.id
  if (kind === 'drop') host.change({ kind: 'dropTable', tableId })
  else if (kind === 'truncate') host.change({ kind: 'truncateTable', tableId })
  else host.change({ kind: 'partitions', tableId, operation: 'drop', partitions: [`2024-01-0${day + 1}`] })
  request.acknowledged = true
}

/** What is there must be what the requests up to some point behind the last acknowledged one have left. */
function check(host: WriterHost, life: Life): void {
  const present = new Map(tables.map((table) => [table, rowsOf(host, table)]))
  let possible = life.requests.findLastIndex(({ acknowledged }) => acknowledged) + 1
  for (; possible <= life.requests.length; possible++) {
    const model = modelOf(life.requests.slice(0, possible))
    if (tables.every((table) => same(model.get(table) ?? [], present.get(table) ?? []))) break
  }
  if (possible > life.requests.length) {
    const model = modelOf(life.requests.filter(({ acknowledged }) => acknowledged))
    expect(Object.fromEntries(present)).toEqual(
      Object.fromEntries(tables.map((table) => [table, model.get(table) ?? []])),
    )
  }
  // What lies behind was lost in the crash.
  life.requests.length = possible
  for (const request of life.requests) request.acknowledged = true
}

function rowsOf(host: WriterHost, table: string): number[] {
  if (host.catalog.table(table) === undefined) return []
  const rows = host.rows(table)
  expect(rows.filter(({ s }) => typeof s !== 'string' || !/^k[0-9]+$/.test(s))).toEqual([])
  return rows.map(({ v }) => Number(v)).sort((a, b) => a - b)
}

function modelOf(requests: readonly Request[]): Map<string, number[]> {
  const model = new Map<string, number[]>()
  for (const { kind, rows, day } of requests) {
    for (const [table, numbers] of rows) {
      const before = model.get(table) ?? []
      if (kind === 'write') model.set(table, [...before, ...numbers])
      else model.set(table, kind === 'partition' ? before.filter((row) => row % daysMax !== day) : [])
    }
  }
  return model
}

function same(x: readonly number[], y: readonly number[]): boolean {
  return x.length === y.length && x.every((value, index) => value === y[index])
}
