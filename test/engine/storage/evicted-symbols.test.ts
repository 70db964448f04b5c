// Goal: the dictionaries of SYMBOL columns may together need more memory than there is. The writer then evicts
// dictionaries, and reloads them when they are needed: by lines, queries, transactions, schema changes, imports, and
// when the server starts with less memory than before. No row is lost or duplicated, also by a crash in such a start,
// and each row keeps its symbol. If a dictionary's file is damaged, the error is reported, and other tables work.

import { describe, expect, test } from 'vitest'
import { InlineEngine, type InlineOptions } from '../../support/inline-engine.js'
import { runs } from '../../support/runs.js'
import { createFaultyDisk, type FaultyDisk, SimulatedCrash } from '../../support/simulator/faulty-files.js'

const MIB = 1024 * 1024
const columns = 4
const perColumn = 6000

function newDisk(): FaultyDisk {
  const disk = createFaultyDisk(7)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  return disk
}

function lines(table: number, from: number, to: number): string {
  let text = ''
  for (let row = from; row < to; row++) {
    const symbols = Array.from({ length: columns }, (_, column) => `s${column}=t${table}c${column}_symbol_${row}`)
    text += `wide${table},${symbols.join(',')} v=${row}i ${1_700_000_000_000_000_000n + BigInt(row) * 1_000_000n}\n`
  }
  return text
}

async function write(engine: InlineEngine, table: number, from = 0, to = perColumn): Promise<void> {
  for (let row = from; row < to; row += 1000) {
    for (let attempt = 0; ; attempt++) {
      const { error } = await engine.lines(lines(table, row, Math.min(row + 1000, to)))
      if (error === null) break
      // A flush under way gives memory back.
      expect([error.message, attempt < 20]).toEqual([expect.stringContaining('memory'), true])
      await engine.settle()
    }
  }
}

/** Symbols are those of their rows. */
async function check(engine: InlineEngine, table: number, rows = perColumn): Promise<void> {
  const all = await engine.rows(
    `select count(), count_distinct(s0), count_distinct(s3), min(s1), sum(v) from wide${table}`,
  )
  const count = BigInt(rows)
  expect(all).toEqual([[count, count, count, `t${table}c1_symbol_0`, (count * (count - 1n)) / 2n]])
  const last = rows - 1
  expect(await engine.rows(`select v, s2 from wide${table} where s3 = 't${table}c3_symbol_${last}'`)).toEqual([
    [BigInt(last), `t${table}c2_symbol_${last}`],
  ])
}

/** Strings and entries of a table take 1 MB, its hash tables up to 4 MB. */
const little: Omit<InlineOptions, 'files'> = { memtableBytes: 5 * MIB, walBytesMax: 64 * MIB }
const large: Omit<InlineOptions, 'files'> = { memtableBytes: 48 * MIB, walBytesMax: 64 * MIB }

describe('symbols that take more than the memory', () => {
  test.each([false, true].slice(0, runs(2, 1)))(
    'tables are written and read in turn (small queries: %s)',
    async (inline) => {
      const disk = newDisk()
      const engine = new InlineEngine({ files: disk.files, ...little, inline })
      for (let table = 0; table < 8; table++) await write(engine, table)
      for (let table = 0; table < 8; table++) await check(engine, table)
      for (let table = 0; table < 8; table++) {
        await write(engine, table, perColumn, perColumn + 500)
        await check(engine, (table + 3) % 8, (table + 3) % 8 <= table ? perColumn + 500 : perColumn)
      }
      disk.kill()
      const again = new InlineEngine({ files: disk.files, ...little, inline })
      for (let table = 0; table < 8; table++) await check(again, table, perColumn + 500)
    },
  )

  test('changes, transactions and joins find them', async () => {
    const engine = new InlineEngine({ files: newDisk().files, ...little })
    for (let table = 0; table < 6; table++) await write(engine, table)
    expect(await engine.rows('select count() from wide0 a join wide0 b on (s1)')).toEqual([[BigInt(perColumn)]])
    await engine.run("update wide1 set s0 = 'changed' where v < 10")
    expect(await engine.rows("select count() from wide1 where s0 = 'changed'")).toEqual([[10n]])
    expect(await engine.rows("select v from wide1 where s0 = 't1c0_symbol_10'")).toEqual([[10n]])
    await engine.run('alter table wide2 alter column s0 type varchar')
    expect(await engine.rows("select v from wide2 where s0 = 't2c0_symbol_7'")).toEqual([[7n]])
    await engine.run('alter table wide3 drop column s0')
    expect(await engine.rows("select v from wide3 where s1 = 't3c1_symbol_7'")).toEqual([[7n]])
    await engine.run('insert into wide4 select * from wide4 limit 5')
    expect(await engine.rows("select count() from wide4 where s1 = 't4c1_symbol_4'")).toEqual([[2n]])
    await engine.run('create table copied as (select s0, s1, v from wide5)')
    expect(await engine.rows("select v from copied where s1 = 't5c1_symbol_99'")).toEqual([[99n]])
    await engine.run('drop table wide5')
    await check(engine, 0)
  })

  test('a file that is damaged meanwhile is reported, and other tables work', async () => {
    const disk = newDisk()
    const engine = new InlineEngine({ files: disk.files, ...little })
    for (let table = 0; table < 8; table++) await write(engine, table)
    const path = '/db/symbols/1-0.symbols'
    expect(disk.files.exists(path)).toBe(true)
    disk.damage(path, 40, new Uint8Array([255]))
    await expect(engine.rows('select s0 from wide0')).rejects.toThrow('symbols of the table cannot be reloaded')
    await check(engine, 7)
    await check(engine, 1)
  })
})

describe('a start with less memory than at the crash', () => {
  async function crashed(): Promise<FaultyDisk> {
    const disk = newDisk()
    const engine = new InlineEngine({ files: disk.files, ...large })
    engine.jobsRun = false
    for (let table = 0; table < 8; table++) await write(engine, table)
    disk.kill()
    return disk
  }

  test('replays all symbols', async () => {
    const disk = await crashed()
    const engine = new InlineEngine({ files: disk.files, ...little })
    for (let table = 0; table < 8; table++) await check(engine, table)
    await write(engine, 3, perColumn, perColumn + 500)
    await check(engine, 3, perColumn + 500)
    disk.crash(3)
    const again = new InlineEngine({ files: disk.files, ...little })
    for (let table = 0; table < 8; table++) await check(again, table, table === 3 ? perColumn + 500 : perColumn)
  })

  test('a crash within is harmless', async () => {
    const disk = await crashed()
    for (let round = 0; round < runs(10, 5); round++) {
      const crashAt = disk.operations + 5 + round * 23
      disk.inject((operation) => (operation.index === crashAt ? { kind: 'crash' } : undefined))
      try {
        new InlineEngine({ files: disk.files, ...little })
      } catch (thrown) {
        if (!(thrown instanceof SimulatedCrash)) throw thrown
      }
      disk.inject(undefined)
      disk.crash(round + 1)
    }
    const engine = new InlineEngine({ files: disk.files, ...little })
    for (let table = 0; table < 8; table++) await check(engine, table)
  })

  test('rows that are carried further on come once', async () => {
    const disk = newDisk()
    // The log is so short that rows of the small tables are carried again and again.
    const first = new InlineEngine({ files: disk.files, ...large, walBytesMax: 2 * MIB, walSegmentBytes: MIB / 2 })
    await write(first, 0, 0, 1000)
    await write(first, 1, 0, 1000)
    for (let from = 0; from < 3; from++) await write(first, 2 + from)
    expect(first.jobKinds.length).toBeGreaterThan(0)
    disk.kill()
    const engine = new InlineEngine({ files: disk.files, memtableBytes: 2 * MIB })
    for (const table of [0, 1]) await check(engine, table, 1000)
    for (let from = 0; from < 3; from++) await check(engine, 2 + from)
  })
})
