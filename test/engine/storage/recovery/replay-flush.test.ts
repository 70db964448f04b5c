// Goal: at a start, the log is replayed with less memory than its rows take: memtables are flushed during the replay,
// and no row is lost or duplicated if the machine crashes at any time.

import { describe, expect, test } from 'vitest'
import { InlineEngine, type InlineOptions } from '../../../support/inline-engine.js'
import { createFaultyDisk, type FaultyDisk, SimulatedCrash } from '../../../support/simulator/faulty-files.js'

const MIB = 1024 * 1024
const ts = 1_704_067_200_000_000n

function newDisk(): FaultyDisk {
  const disk = createFaultyDisk(3)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

function lines(table: string, from: number, to: number): string {
  let text = ''
  for (let row = from; row < to; row++) {
    const at = (ts + BigInt((row * 7919) % 100_000)) * 1000n
    text += `${table},s=k${row % 97} v=${row}i,d=${row}.5,t="some text of row ${row}" ${at}\n`
  }
  return text
}

/** Rows that nobody has flushed. */
async function fill(disk: FaultyDisk, rows: number): Promise<void> {
  const engine = new InlineEngine({ files: disk.files, memtableBytes: 48 * MIB, walBytesMax: 64 * MIB })
  engine.jobsRun = false
  for (let from = 0; from < rows; from += 2000) {
    expect((await engine.lines(lines('a', from, from + 1500) + lines('b', from, from + 500))).error).toBe(null)
  }
}

const small: Partial<InlineOptions> = { memtableBytes: 4 * MIB, settings: { flushRows: 20_000 }, walBytesMax: 64 * MIB }

async function check(engine: InlineEngine, rows: number): Promise<void> {
  const numbers = (share: number): bigint => {
    let sum = 0n
    for (let from = 0; from < rows; from += 2000) for (let row = from; row < from + share; row++) sum += BigInt(row)
    return sum
  }
  const count = BigInt(rows / 2000)
  expect(await engine.rows('select count(), sum(v) from a')).toEqual([[count * 1500n, numbers(1500)]])
  expect(await engine.rows('select count(), sum(v) from b')).toEqual([[count * 500n, numbers(500)]])
  const [distinct] = await engine.rows('select count_distinct(s), count_distinct(t) from a')
  expect(distinct).toEqual([97n, count * 1500n])
}

describe('replay', () => {
  test('flushes when the memory is smaller than the log', async () => {
    const disk = newDisk()
    await fill(disk, 60_000)
    disk.kill()
    const engine = new InlineEngine({ files: disk.files, ...small })
    const parts = engine.view.table('a')?.parts ?? []
    expect(parts.length).toBeGreaterThan(0)
    await check(engine, 60_000)
    expect((await engine.lines(lines('a', 0, 1))).error).toBe(null)
    disk.crash(5)
    const again = new InlineEngine({ files: disk.files, ...small })
    expect(await again.rows('select count() from a')).toEqual([[45_001n]])
  })

  test('says so when nothing may be flushed', async () => {
    const disk = newDisk()
    await fill(disk, 20_000)
    disk.kill()
    expect(() => new InlineEngine({ files: disk.files, ...small, memtableBytes: MIB / 16 })).toThrow(
      'the memory does not suffice to replay the log',
    )
  })

  test('a crash within is harmless', async () => {
    const disk = newDisk()
    await fill(disk, 40_000)
    disk.kill()
    for (let round = 0; round < 12; round++) {
      const crashAt = disk.operations + 3 + round * 17
      disk.inject((operation) => (operation.index === crashAt ? { kind: 'crash' } : undefined))
      try {
        new InlineEngine({ files: disk.files, ...small })
      } catch (thrown) {
        if (!(thrown instanceof SimulatedCrash)) throw thrown
      }
      disk.inject(undefined)
      disk.crash(round + 1)
    }
    await check(new InlineEngine({ files: disk.files, ...small }), 40_000)
  })

  test('dedup and truncated tables', async () => {
    const disk = newDisk()
    const first = new InlineEngine({ files: disk.files, memtableBytes: 48 * MIB, walBytesMax: 64 * MIB })
    first.jobsRun = false
    await first.run(
      'create table a (s symbol, v long, d double, t varchar, timestamp timestamp) timestamp(timestamp) partition by day dedup upsert keys(timestamp)',
    )
    await first.lines(lines('b', 0, 4000))
    await first.run('truncate table b')
    for (let round = 0; round < 12; round++) {
      expect((await first.lines(lines('a', round * 10, round * 10 + 4000))).error).toBe(null)
    }
    const before = await first.rows('select count(), sum(v) from a')
    disk.kill()
    const engine = new InlineEngine({ files: disk.files, ...small, settings: { flushRows: 6000 } })
    expect((engine.view.table('a')?.parts ?? []).length).toBeGreaterThan(0)
    expect(await engine.rows('select count(), sum(v) from a')).toEqual(before)
    expect(await engine.rows('select count() from b')).toEqual([[0n]])
  })
})
