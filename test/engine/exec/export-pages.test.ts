// Goal: a text export of a whole table, for which several threads read pages directly from the Parquet files, returns
// the same rows as an export with a filter, which one thread reads through the cache of decoded pages. Method: files
// with several pages and columns of every encoding, with and without NULLs; whole tables and time ranges; once more
// with cached pages. Also: the row ranges into which a table is divided cover its rows in order.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../../engine/engine.js'
import { cutRows } from '../../../engine/exec/scan/morsel-list.js'
import { createRandom } from '../../support/random.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'penstock-export-'))
const rows = 200_000
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(directory, { queryThreads: 2 })
  const columns = `('2024-01-01'::timestamp + x * 700000) ts, 's' || (x % 7) few, (x % 4000)::varchar many,
    case when x % 5 = 0 then null else x * 3 end l, (x % 9) / 4.0 d, x % 3 = 0 b, (x % 100)::short sh, x::int i,
    case when x % 11 = 0 then null else 'text "' || x || '"' end v, null::double nothing`
  await engine.execute(
    `create table t as (select ${columns} from long_sequence(${rows})), cast(few as symbol), cast(many as symbol) timestamp(ts) partition by day`,
    executeOptions,
  )
  await engine.execute('checkpoint', executeOptions)
  await engine.execute("insert into t (ts, v) values ('2030-01-01', 'of a memtable')", executeOptions)
})

afterAll(async () => {
  await engine?.close()
  rmSync(directory, { recursive: true, force: true })
})

async function csv(
  sql: string,
  window: { readonly skip?: number; readonly rowsMax?: number } = {},
  blocks: string[] = [],
): Promise<string> {
  const encoding = { kind: 'csv', delimiter: 44, header: true } as const
  const result = await engine.execute(sql, { ...executeOptions, encoding, ...window })
  if (result.kind !== 'rows') throw new Error(`no rows [kind=${result.kind}]`)
  for await (const block of result.blocks) blocks.push(Buffer.from(block).toString())
  return blocks.join('')
}

function partFiles(): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.parquet'))
}

test('pages that are read past the cache have the rows of those in it', async () => {
  const plain = 'select * from t where ts is not null and i + 0 = i or i is null'
  for (const window of [{}, { skip: 100_000, rowsMax: 90_000 }]) {
    const exported = await csv('t', window)
    expect(exported === (await csv(plain, window))).toBe(true)
    expect(exported === (await csv('t', window))).toBe(true)
  }
  const whole = await csv('t')
  expect(whole.split('\r\n')).toHaveLength(rows + 3)
  expect(whole.slice(-40)).toContain('"of a memtable"')
})

test('an interval has the rows that lie in it', async () => {
  const bounds = [
    ['2024-01-01T00:00:00.7', '2024-01-02T13:00:00.1'],
    ['2024-01-01T05:06:07.3', '2024-01-01T23:59:59.9'],
    ['2023-01-01', '2024-01-02'],
    ['2024-01-01T12:00:00', '2031-01-01'],
  ] as const
  for (const [from, to] of bounds) {
    for (const window of [{}, { skip: 1000, rowsMax: 70_000 }]) {
      const exported = await csv(`t where ts >= '${from}' and ts < '${to}'`, window)
      const computed = `t where ts::long >= '${from}'::timestamp::long and ts::long < '${to}'::timestamp::long`
      expect(exported.length).toBeGreaterThan(2_000_000)
      expect(exported === (await csv(computed, window)), `${from} ${JSON.stringify(window)}`).toBe(true)
    }
  }
})

test('names of columns leave before the parts are opened', async () => {
  const others = new Set(partFiles())
  await engine.execute(
    'create table lost as (select x::timestamp ts, x from long_sequence(200000)) timestamp(ts) partition by day',
    executeOptions,
  )
  await engine.execute('checkpoint', executeOptions)
  for (const file of partFiles()) if (!others.has(file)) rmSync(join(directory, file))
  const seen: string[] = []
  await expect(csv('lost', {}, seen)).rejects.toThrow('could not open')
  expect(seen).toEqual(['"ts","x"\r\n'])
})

test('cuts cover the rows, and leave pages whole where they can', () => {
  const random = createRandom(7)
  for (let round = 0; round < 300; round++) {
    const morsels = Array.from({ length: 1 + random.below(12) }, () => ({ rows: 1 + random.below(50) }))
    const count = morsels.reduce((sum, morsel) => sum + morsel.rows, 0)
    const first = random.below(count)
    const end = first + random.below(count - first + 1)
    const rowsMax = 1 + random.below(80)
    const cuts = cutRows(morsels, { first, end }, rowsMax)
    expect(cuts[0]).toBe(first)
    expect(cuts.at(-1)).toBe(end)
    let morselEnd = 0
    const ends = new Set(morsels.map((morsel) => (morselEnd += morsel.rows)))
    cuts.slice(1).forEach((cut, index) => {
      expect(cut).toBeGreaterThan(cuts[index] as number)
      expect(cut - (cuts[index] as number)).toBeLessThanOrEqual(rowsMax)
      if (rowsMax >= 50 && cut !== end) expect(ends.has(cut)).toBe(true)
    })
  }
})
