// Goal: MERGE gives the same result whichever side of its join is the hash table. For a large target table the hash
// table is built from the source, and target rows without a matching key are skipped (exec/join/join-wanted.ts). For a
// small target table it is built from the target.
//
// Method: the same MERGE runs on a large table and on a small one, which contains every 50th row of the large one.
// Sources contain only keys of the small table and new keys. Afterwards the rows of these keys are equal in both
// tables, and the other rows of the large table have not changed.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../../engine/engine.js'
import { openTestEngine, rowsFrom } from '../../support/test-engine.js'

const rows = 80_000
const columns = 'k long, i int, name varchar, s symbol, v long, n long, ts timestamp'
const values = `x * 7919, cast(x % 1000 as int), concat('name', x), concat('s', x / 1000), x, x,
  cast(1704067200000000 + x * 1000000 as timestamp)`
const kinds = {
  long: ['k'],
  text: ['name'],
  'symbol and number': ['s', 'i'],
}

const directory = mkdtempSync(join(tmpdir(), 'penstock-merge-'))
let engine: Engine
const run = (sql: string): Promise<unknown[]> => rowsFrom(engine, sql)
const rowsOf = async (sql: string): Promise<string[]> =>
  (await run(sql)).map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))

beforeAll(async () => {
  engine = await openTestEngine(directory)
})

afterAll(async () => {
  await engine.close()
  rmSync(directory, { recursive: true })
})

for (const [kind, key] of Object.entries(kinds)) {
  test(`a large table is merged like a small one, by ${kind}`, async () => {
    const id = kind.replaceAll(' ', '_')
    const [large, small, source] = [`large_${id}`, `small_${id}`, `source_${id}`]
    for (const table of [large, small])
      await run(`create table ${table} (${columns}, unique (${key.join()})) timestamp(ts) partition by day`)
    await run(`insert into ${large} select ${values} from long_sequence(${rows})`)
    // Keys with NULLs, and rows in parts (Parquet files) as well as in memory.
    await run('checkpoint')
    await run(`insert into ${large} (n, v, ts) values (100000, 1, '2024-03-01')`)
    await run(`insert into ${small} select * from ${large} where n % 50 = 0`)
    await run(`create table ${source} (${columns}) timestamp(ts) partition by day`)
    await run(`insert into ${source} select * from ${small} where n % 100 = 0`)
    // New rows, one of them without a key.
    await run(`insert into ${source} select k + 1, i + 1, concat(name, 'x'), concat(s, 'x'), v, 200000 + n * 50, ts
      from ${small} where n % 400 = 0`)
    await run(`insert into ${source} (n, v, ts) values (300000, 5, '2024-03-02')`)
    const on = key.map((name) => `t.${name} = s.${name}`).join(' and ')
    const changed: number[] = []
    for (const table of [large, small]) {
      const returned = await rowsOf(`merge into ${table} t using ${source} s on ${on}
        when matched and s.n % 300 = 0 then delete
        when matched and t.v % 200 = 0 then update set v = t.v + s.v, name = concat(t.name, '!')
        when not matched then insert (k, i, name, s, v, n, ts) values (s.k, s.i, s.name, s.s, s.v, s.n, s.ts)
        returning n, v`)
      changed.push(returned.length)
    }
    expect(changed[0]).toBeGreaterThan(400)
    expect(changed[0]).toBe(changed[1])
    const all = 'k, i, name, s, v, n, ts'
    const own = await rowsOf(`select ${all} from ${large} where n % 50 = 0 order by ts, n, v`)
    expect(own).toEqual(await rowsOf(`select ${all} from ${small} order by ts, n, v`))
    const others = await rowsOf(`select count(), sum(v), sum(k) from ${large} where n % 50 <> 0`)
    expect(others).toEqual(
      await rowsOf(`select count(), sum(x), sum(x * 7919) from long_sequence(${rows}) where x % 50 <> 0`),
    )
  }, 60_000)
}

test('a row that two rows of the source match is an error on either side', async () => {
  await run(`create table twice as (select * from large_long where n % 10 = 1 limit 2) timestamp(ts) partition by day`)
  await run('insert into twice select * from twice')
  for (const table of ['large_long', 'small_long']) {
    const merge = `merge into ${table} t using (select * from twice union all select k, i, name, s, v, n, ts from
      (select * from small_long limit 1) cross join long_sequence(2)) s on t.k = s.k
      when matched then update set v = 1`
    await expect(run(merge)).rejects.toThrow('MERGE command cannot affect row a second time')
  }
})
