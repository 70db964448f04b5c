// Goal: late rows are in sealed buckets of a materialized view (which have lost rows of their table) as they came, whatever
// statements change or remove them in the table afterwards, and whether the view was refreshed before these or not.
// Method: random late rows, UPDATE, DELETE, MERGE, ON CONFLICT and data changes in WITH, over two tables that differ in
// refreshes only; a model counts each row that was added. Then rows come in while UPDATE and MERGE run.
//
//   VIEW_SEED=7 npx vitest run test/engine/views/late-changes.test.ts     replays one seed
//   VIEW_SEEDS=50 VIEW_STEPS=200 npx vitest ...                           a long run

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EngineClient, engineClient } from '../../sql/clients.js'
import { createRandom } from '../../support/random.js'

const only = process.env['VIEW_SEED']
const seeds = only === undefined ? Number(process.env['VIEW_SEEDS'] ?? 2) : 1
const first = Number(only ?? 1)
const steps = Number(process.env['VIEW_STEPS'] ?? 25)

let client: EngineClient

beforeAll(async () => {
  client = await engineClient(true)
})

afterAll(() => client.close())

interface Row {
  readonly ts: string
  readonly n: number
}

const day = '2024-01-01'
const aggregates = 'count() c, sum(n) s, min(n) lo, max(n) hi, avg(n) mean'

/** A table with a bucket of a day that has lost an hour with one row. */
async function sealedTable(name: string): Promise<void> {
  await client.rows(`create table ${name} (k int primary key, ts timestamp, n long) timestamp(ts) partition by hour`)
  await client.rows(
    `create materialized view v${name} refresh manual as (select ts, ${aggregates} from ${name} sample by 1d)`,
  )
  await client.rows(`insert into ${name} values (-1, '${day}', 100), (-2, '2024-01-03', 0)`)
  await client.rows(`alter table ${name} drop partition list '${day}T00'`)
}

/** What the sealed bucket has, and the rows of the table. */
async function expectRows(
  table: string,
  added: readonly number[],
  stored: readonly Row[],
  after: string,
): Promise<void> {
  const sum = added.reduce((all, n) => all + n, 0)
  const expected = [added.length, sum, Math.min(...added), Math.max(...added)]
  const found = await client.rows(`select c, s, lo, hi from v${table} where ts = '${day}'`)
  expect(found, after).toBe(`[${expected.join(',')}]`)
  const total = stored.reduce<number | null>((all, { n }) => (all ?? 0) + n, null)
  expect(await client.rows(`select count(), sum(n) from ${table} where k > 0`), after).toBe(
    `[${stored.length},${total}]`,
  )
}

for (let seed = first; seed < first + seeds; seed++) {
  test(`late rows count once, as they came [seed=${seed}]`, async () => {
    const { below, pick, chance } = createRandom(seed + 70)
    const tables = [`often${seed}`, `never${seed}`]
    for (const table of tables) await sealedTable(table)
    const stored = new Map<number, Row>()
    const added = [100]
    const add = (k: number, row: Row): void => {
      stored.set(k, row)
      added.push(row.n)
    }
    const timeOf = (): string => `${day}T${String(1 + below(20)).padStart(2, '0')}:00:00.000000Z`
    const statements: Record<string, () => string | undefined> = {
      insert: () => {
        const rows = Array.from({ length: 1 + below(4) }, () => ({
          k: 1000 + added.length * 10 + below(10),
          n: below(90),
        }))
        const unique = rows.filter(({ k }, index) => rows.findIndex((other) => other.k === k) === index)
        const whole = unique.map(({ k, n }) => ({ k, n, ts: timeOf() }))
        for (const { k, n, ts } of whole) add(k, { ts, n })
        return `insert into # values ${whole.map(({ k, ts, n }) => `(${k}, '${ts}', ${n})`).join(', ')}`
      },
      checkpoint: () => 'checkpoint',
      update: () => {
        const least = below(90)
        for (const [k, row] of stored) if (row.n >= least) stored.set(k, { ...row, n: row.n + 1 })
        return `update # set n = n + 1 where k > 0 and n >= ${least}`
      },
      delete: () => {
        const [k] = pickKey()
        stored.delete(k)
        return `delete from # where k = ${k}`
      },
      merge: () => {
        const [k, known] = pickKey()
        const n = below(90)
        add(k, { ts: known?.ts ?? `${day}T05:00:00.000000Z`, n })
        return `merge into # using (select ${k} k, ${n} n) s on #.k = s.k when matched then update set n = s.n when not matched then insert (k, ts, n) values (s.k, '${day}T05:00:00.000000Z', s.n)`
      },
      conflict: () => {
        const [k, known] = pickKey()
        const [ts, n] = [timeOf(), below(90)]
        add(k, known === undefined ? { ts, n } : { ...known, n: n + known.n })
        return `insert into # values (${k}, '${ts}', ${n}) on conflict (k) do update set n = excluded.n + #.n`
      },
      with: () => {
        const [k, known] = pickKey()
        if (known !== undefined) add(k, { ...known, n: known.n + 5 })
        return `with gone as (delete from # where k = ${k} returning k, ts, n) insert into # select k, ts, n + 5 from gone`
      },
    }
    const pickKey = (): readonly [number, Row | undefined] => {
      const keys = [...stored.keys()]
      const k = chance(0.8) && keys.length > 0 ? pick(keys) : 900 + below(50)
      return [k, stored.get(k)]
    }
    for (let step = 0; step < steps; step++) {
      const kind = pick(['insert', 'insert', ...Object.keys(statements)])
      const statement = statements[kind]?.() ?? ''
      for (const table of tables) await client.rows(statement.replaceAll('#', table))
      await client.rows(`refresh materialized view v${tables[0]}`)
      for (const table of tables)
        await expectRows(table, added, [...stored.values()], `${table} after ${step}: ${statement}`)
    }
    for (const table of tables) await client.rows(`drop table ${table} cascade`)
  }, 240_000)
}

test('late rows that come while UPDATE and MERGE run', async () => {
  await sealedTable('busy')
  let [count, isDone] = [0, false]
  const arriving = async (): Promise<void> => {
    while (!isDone) {
      await client.rows(`insert into busy values (${++count}, '${day}T03', 1)`)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
  const changing = async (): Promise<number> => {
    while (count < 3) await new Promise((resolve) => setTimeout(resolve, 1))
    let added = 0
    for (let round = 0; round < 6; round++) {
      await client.rows(`update busy set n = n + 1000 where k > 0`)
      await client.rows(`merge into busy using (select 1 k) s on busy.k = s.k when matched then update set n = 1`)
      added++
    }
    isDone = true
    return added
  }
  const [merged] = await Promise.all([changing(), arriving()])
  const rows = count + merged
  expect(await client.rows(`select c, s from vbusy where ts = '${day}'`)).toBe(`[${rows + 1},${rows + 100}]`)
  await client.rows('drop table busy cascade')
}, 120_000)
