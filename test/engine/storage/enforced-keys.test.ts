// Goal: a table with PRIMARY KEY .. ENFORCED never has two rows with the same key. It rejects exactly those requests
// and lines whose key exists, and accepts a key again when its row has been removed. This holds wherever rows are
// stored: in one memtable, in several, in Parquet files, compacted or not, and after a crash. Method: random statements
// and lines, flushes, compactions and crashes of the whole engine, compared with a Map. Upserts need threads and real
// time, which this test simulates, so they are tested elsewhere (test/crash/upserts.ts).

import { expect, test } from 'vitest'
import type { Receipt } from '../../../engine/storage/jobs/messages.js'
import { InlineEngine, type InlineOptions } from '../../support/inline-engine.js'
import { createRandom, type Random } from '../../support/random.js'
import { createFaultyDisk, type FaultyDisk } from '../../support/simulator/faulty-files.js'

const seeds = Number(process.env['ENFORCED_SEEDS'] ?? 6)
const base = 1_704_067_200_000_000n
const duplicate = 'duplicate key value violates unique constraint "t_pkey"'

async function open(disk: FaultyDisk, options: Partial<InlineOptions> = {}): Promise<InlineEngine> {
  const engine = new InlineEngine({ files: disk.files, ...options })
  await engine.settle()
  return engine
}

function newDisk(seed: number): FaultyDisk {
  const disk = createFaultyDisk(seed)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

const create =
  'create table t (ts timestamp, k symbol, s varchar, v long, primary key (ts, k, s) enforced) timestamp(ts) partition by day'

interface Row {
  readonly ts: bigint
  readonly k: string
  readonly s: string
  readonly v: bigint
}

/** Key to value. */
type Model = Map<string, bigint>

const keyOf = ({ ts, k, s }: Omit<Row, 'v'>): string => [ts, k, s].join()

function newRows(random: Random, next: () => bigint): Row[] {
  const spread = random.pick([3, 60, 4000])
  const unit = random.pick([1n, 3_600_000_000n])
  return Array.from({ length: random.between(1, random.pick([1, 4, 40])) }, () => ({
    ts: base + BigInt(random.between(0, spread)) * unit,
    k: random.pick(['a', 'b', 'c']),
    s: random.pick(['x', 'y', 'a longer text than others']),
    v: next(),
  }))
}

/** Enters the rows and returns whether none of their keys was taken. */
function enter(model: Model, rows: readonly Row[]): boolean {
  const keys = rows.map(keyOf)
  if (new Set(keys).size < keys.length || keys.some((key) => model.has(key))) return false
  for (const row of rows) model.set(keyOf(row), row.v)
  return true
}

const values = (rows: readonly Row[]): string => rows.map(({ ts, k, s, v }) => `(${ts}L, '${k}', '${s}', ${v})`).join()

async function insert(engine: InlineEngine, model: Model, rows: readonly Row[]): Promise<void> {
  const isNew = enter(model, rows)
  const outcome = await engine.run(`insert into t values ${values(rows)}`).then(
    () => '',
    (error: Error) => error.message,
  )
  if (isNew) expect(outcome).toBe('')
  else expect(outcome).toContain(duplicate)
}

function linesOf(rows: readonly Row[]): string {
  return rows.map(({ ts, k, s, v }) => `t,k=${k} s="${s}",v=${v}i ${ts * 1000n}\n`).join('')
}

/** `listed`: as Kafka connectors send them: nothing is stored if a line is bad, and all bad lines are reported. */
type Kind = 'atomic' | 'listed' | 'partial' | 'stream'

async function sendLines(engine: InlineEngine, text: string, kind: Kind): Promise<Receipt> {
  const blocks = [new TextEncoder().encode(text)]
  const [atomic, partial, skipBadLines] = [kind !== 'stream', kind === 'partial', kind !== 'atomic']
  const ticket = engine.engine.lines({ blocks, precision: 'n', atomic, partial, skipBadLines, connectionId: 1 })
  return engine.until(ticket.receipt)
}

/** Lines, among them bad ones and such of another table; those with taken keys are reported with their numbers. */
async function lines(engine: InlineEngine, random: Random, model: Model, rows: readonly Row[]): Promise<void> {
  const kind = random.pick(['atomic', 'listed', 'partial', 'stream'] as const)
  if (kind === 'atomic') {
    const receipt = await sendLines(engine, linesOf(rows), kind)
    if (enter(model, rows)) expect(receipt.error).toBeNull()
    else expect(receipt.error?.message).toContain(duplicate)
    return
  }
  const refused: number[] = []
  const bad: number[] = []
  const before = new Map(model)
  let text = ''
  let line = 0
  for (const row of rows) {
    if (random.chance(0.2)) {
      text += random.pick(['\n', 'other v=1i\n', `other,k=z s="q" ${row.ts}\n`])
      line++
    }
    if (kind !== 'listed' && random.chance(0.1)) {
      text += 't,k=a v=oops\n'
      bad.push(++line)
    }
    text += linesOf([row])
    line++
    if (!enter(model, [row])) refused.push(line)
  }
  const receipt = await sendLines(engine, text, kind)
  if (kind === 'listed' && refused.length > 0) {
    expect(receipt.error?.name).toBe('RowError')
    model.clear()
    for (const [key, v] of before) model.set(key, v)
  } else expect(receipt.error).toBeNull()
  const found = receipt.rejects.filter(({ message }) => message.includes(duplicate)).map((reject) => reject.line)
  expect(found).toEqual(refused)
  expect(receipt.rejected).toBe(refused.length + bad.length)
  expect(receipt.rejects.map((reject) => reject.line).toSorted((a, b) => a - b)).toEqual(
    [...refused, ...bad].toSorted((a, b) => a - b),
  )
}

async function deleteSome(engine: InlineEngine, model: Model): Promise<void> {
  for (const key of [...model.keys()]) if (key.split(',')[1] === 'b') model.delete(key)
  await engine.run(`delete from t where k = 'b'`)
}

async function check(engine: InlineEngine, model: Model): Promise<void> {
  const shown = (await engine.rows('select ts, k, s, v from t')).map(([ts, k, s, v]) => `${ts},${k},${s}=${v}`)
  expect(shown.toSorted()).toEqual([...model].map(([key, v]) => `${key}=${v}`).toSorted())
}

test.each(Array.from({ length: seeds }, (_, index) => index + 1))('model, seed %i', async (seed) => {
  const random = createRandom(seed)
  const disk = newDisk(seed)
  const options = { settings: { flushRows: random.pick([150, 2000]) }, noCompactions: random.chance(0.4) }
  let engine = await open(disk, options)
  await engine.run(create)
  const model: Model = new Map()
  let value = 0n
  const next = (): bigint => ++value
  for (let step = 0; step < 60; step++) {
    engine.jobsRun = random.chance(0.7)
    const rows = newRows(random, next)
    const what = random.between(0, 9)
    if (what < 4) await insert(engine, model, rows)
    else if (what < 8) await lines(engine, random, model, rows)
    else {
      engine.jobsRun = true
      await deleteSome(engine, model)
    }
    if (random.chance(0.2)) {
      engine.jobsRun = true
      await engine.run('checkpoint')
    }
    if (random.chance(0.1)) await engine.settle()
    if (random.chance(0.3)) await check(engine, model)
    if (random.chance(0.08)) {
      disk.crash(step + 1)
      engine = await open(disk, options)
    }
  }
  engine.jobsRun = true
  await engine.settle()
  await check(engine, model)
})
