// Goal: the memory of operators grows with their rows and not with their columns: statements over hundreds and
// thousands of columns with few rows run with the memory of a small server. Method: the same statements over tables of
// 120 to 2,000 columns; DISTINCT, UNION and EXCEPT of very many columns, compared with DISTINCT of few; a Parquet
// export of many rows with minimal memory.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Encoding, Engine } from '../../../engine/engine.js'
import { parquetDefaults } from '../../../engine/exec/encode/parquet-encoding.js'
import { runs } from '../../support/runs.js'
import { executeOptions, openTestEngine, rowsFrom } from '../../support/test-engine.js'

const directory = mkdtempSync(join(tmpdir(), 'penstock-wide-'))
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(join(directory, 'wide'), { queryThreads: 2, memoryBytes: 1024 * 1024 * 1024 })
})

afterAll(async () => {
  await engine?.close()
  rmSync(directory, { recursive: true, force: true })
})

const values = ['x', 'x * 1.5', 'x::int', "'v' || x"]

async function makeTable(name: string, columns: number, rows: number, into = engine): Promise<void> {
  const list = Array.from({ length: columns }, (_, index) => `${values[index % values.length]} c${index}`)
  const first = `timestamp_sequence('2024-01-01', 1000000) ts, ('s' || (x % 10))::symbol sy`
  const query = `select ${first}, ${list.join(', ')} from long_sequence(${rows})`
  await into.execute(`create table ${name} as (${query}) timestamp(ts) partition by day`, executeOptions)
}

async function count(
  sql: string,
  encoding: Encoding = { kind: 'csv', delimiter: 44, header: false },
  from = engine,
): Promise<number> {
  const result = await from.execute(sql, { ...executeOptions, encoding })
  if (result.kind !== 'rows') throw new Error(`no rows [kind=${result.kind}]`)
  for await (const _ of result.blocks);
  return (await result.summary).rows
}

const parquet: Encoding = { ...parquetDefaults }

describe('hundreds of aggregates and windows with tables of their own', () => {
  const columns = 300
  const rows = runs(5000, 1000)
  const list = (one: (column: string) => string): string =>
    Array.from({ length: columns }, (_, index) => `${one(`c${index}`)} a${index}`).join(', ')
  const valuesOf = async (sql: string) => (await rowsFrom(engine, sql)) as unknown[][]

  beforeAll(() => makeTable('own', columns, rows))

  test('count_distinct and mode of each column', async () => {
    const [distinct] = await valuesOf(`select ${list((c) => `count_distinct(${c})`)} from own`)
    expect(distinct).toEqual(Array.from({ length: columns }, () => BigInt(rows)))
    const [beside] = await valuesOf(`select count(), max(c0), ${list((c) => `count_distinct(${c})`)} from own`)
    expect(beside?.slice(0, 3)).toEqual([BigInt(rows), BigInt(rows), BigInt(rows)])
    const modes = await valuesOf(`select ${list((c) => `mode(${c})`)} from own`)
    expect(modes[0]?.slice(0, 2)).toEqual([1n, 1.5])
  })

  test('the same by a key', async () => {
    const all = await valuesOf(`select sy, ${list((c) => `count_distinct(${c})`)} from own order by sy`)
    expect(all.length).toBe(10)
    for (const [, ...counts] of all) expect(new Set(counts)).toEqual(new Set([BigInt(rows / 10)]))
    const modes = await valuesOf(`select sy, ${list((c) => `mode(${c})`)} from own order by sy`)
    expect(modes.map(([, first]) => first)).toEqual([10n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n])
  })

  test('count_distinct of 200 columns in one pass', async () => {
    const counts = Array.from({ length: 200 }, (_, index) => `count_distinct(c${index}) a${index}`).join(', ')
    const wanted = Array.from({ length: 200 }, () => BigInt(rows))
    expect(await valuesOf(`select ${counts} from (select * from own limit ${rows})`)).toEqual([wanted])
    expect(await valuesOf(`select ${counts} from own sample by 1d`)).toEqual([wanted])
    // Each bucket counts anew what earlier ones have seen.
    const repeated = counts.replace(/\(c(\d+)\)/g, '(c$1::long % 7)').replaceAll('::long', '')
    const few = repeated
      .split(', ')
      .filter((_, index) => index % 4 === 0 || index % 4 === 2)
      .join(', ')
    const buckets = await valuesOf(`select ${few} from own sample by 10m`)
    for (const [first, ...more] of buckets) expect([first, new Set(more)]).toEqual([7n, new Set([7n])])
  })

  test('a partitioning of its own for each window function', async () => {
    const all = Array.from({ length: 600 }, (_, index) => `c${index}`)
    await makeTable('few', 600, 50)
    const some = all.map((c) => `row_number() over (partition by ${c} order by ts) r${c}`)
    expect(await count(`select ${some.join(', ')} from few`)).toBe(50)
    const sums = list((c) => `sum(c0) over (partition by ${c} order by ts)`)
    expect(await count(`select ${sums} from own`)).toBe(rows)
    const last = list((c) => `last_value(c0) over (partition by ${c})`)
    expect(await count(`select ${last} from own`)).toBe(rows)
  })

  test('a thousand groupings in one statement', async () => {
    const side = (index: number): string => `select c${index % columns} k, count() n from own`
    const sides = Array.from({ length: 1200 }, (_, index) => `${side((index % 75) * 4)} where c0 <= 20`)
    const [all] = await valuesOf(`select count(), sum(n), count_distinct(k) from (${sides.join(' union all ')})`)
    expect(all).toEqual([24_000n, 24_000n, 20n])
    const symbols = Array.from(
      { length: 300 },
      (_, index) => `select upper(sy || '${index}')::symbol k from own limit 2`,
    )
    const [strings] = await valuesOf(`select count(), count_distinct(k) from ((${symbols.join(') union all (')}))`)
    expect(strings).toEqual([600n, 600n])
  })
})

const widths = [
  [200, 3000],
  [2000, 1000],
  [120, 50],
  [600, 2000],
] as const

describe.each(widths.slice(0, runs(widths.length, 1)))('%s columns of %s rows', (columns, rows) => {
  const name = `w${columns}`
  const all = Array.from({ length: columns }, (_, index) => `c${index}`)

  beforeAll(() => makeTable(name, columns, rows))

  test.each<[string, number, Encoding?]>([
    [name, rows, parquet],
    [`${name} limit 50`, 50, parquet],
    [`${name} order by c1 desc`, rows, parquet],
    [`${name} where c0 % 2 = 0`, rows / 2, parquet],
    [name, rows],
    [name, rows, { kind: 'arrow' }],
    [name, rows, { kind: 'json', quoteLargeNumbers: false, geohashAsText: true } as Encoding],
    [name, rows, { kind: 'pg', binary: [] } as unknown as Encoding],
    [`${name} latest on ts partition by sy`, 10],
    [`${name} order by c1 desc limit 40`, 40],
    [`${name} order by c3`, rows],
    [`${name} order by ts desc`, rows],
    [`${name} where c0 % 2 = 0`, rows / 2],
    [`select distinct * from ${name}`, rows],
    [`select * from ${name} union select * from ${name}`, rows],
    [`select * from ${name} union all select * from ${name}`, rows * 2],
    [`select * from ${name} except select * from ${name}`, 0],
    [`select * from ${name} intersect select * from ${name}`, rows],
    [`select * from ${name} a asof join ${name} b`, rows],
    [`select * from ${name} a splice join ${name} b`, rows],
    [`select * from ${name} a join ${name} b on a.c0 = b.c0`, rows],
    [`select sy, ${all.map((column) => `max(${column})`).join(', ')} from ${name}`, 10],
    [
      `select ts, ${all.map((column) => `last(${column})`).join(', ')} from ${name} sample by 10s fill(prev)`,
      rows / 10,
    ],
    [`select *, row_number() over (partition by sy order by ts) from ${name}`, rows],
  ])('%s has %s rows', async (statement, wanted, encoding) => {
    expect(await count(statement, encoding)).toBe(wanted)
  })
})

test('rows with very many keys are distinguished like rows with few', async () => {
  const kinds = [
    'case when x % 7 = 0 then null else (x % 3)::long end',
    'case when x % 5 = 0 then 0.0 when x % 5 = 1 then -0.0 when x % 5 = 2 then null else 1.5 end',
    '(x % 2)::float',
    "case when x % 4 = 0 then null when x % 4 = 1 then '' else 'text ' || (x % 2) end",
    "('s' || (x % 3))::symbol",
    'x % 2 = 0',
    '(x % 3)::byte',
    "case when x % 2 = 0 then '11111111-1111-1111-1111-111111111111'::uuid else null end",
  ]
  const once = kinds.map((kind, index) => `${kind} a${index}`)
  const copies = Array.from({ length: 7 }, (_, copy) => kinds.map((kind, index) => `${kind} b${copy}_${index}`)).flat()
  await engine.execute(
    `create table keys as (select ${[...once, ...copies].join(', ')} from long_sequence(20000))`,
    executeOptions,
  )
  const few = once.map((_, index) => `a${index}`).join(', ')
  const wanted = await rowsFrom(engine, `select count() from (select distinct ${few} from keys)`)
  expect(await rowsFrom(engine, 'select count() from (select distinct * from keys)')).toEqual(wanted)
  expect(Number((wanted[0] as bigint[])[0])).toBeGreaterThan(50)
  await engine.execute('create table others as (select * from keys)', executeOptions)
  expect(await rowsFrom(engine, 'select count() from (keys union others)')).toEqual(wanted)
  expect(await rowsFrom(engine, 'select count() from (keys except others)')).toEqual([[0n]])
})

test('statements over hundreds of columns work with the least memory', async () => {
  const small = await openTestEngine(join(directory, 'least'), { queryThreads: 2, memoryBytes: 512 * 1024 * 1024 })
  try {
    for (const [columns, rows] of [
      [120, 50],
      [200, 3000],
      [600, 2000],
    ] as const)
      await makeTable(`w${columns}`, columns, rows, small)
    const csv: Encoding = { kind: 'csv', delimiter: 44, header: false }
    for (const [sql, rows, encodings] of [
      ['w120', 50, [parquet, csv]],
      ['w120 limit 40', 40, [parquet, csv]],
      ['w200 latest on ts partition by sy', 10, [parquet, csv]],
      ['w600 order by c1 desc', 2000, [csv]],
    ] as const)
      for (const encoding of encodings)
        expect(await count(sql, encoding, small).catch(String), `${sql} as ${encoding.kind}`).toBe(rows)
  } finally {
    await small.close()
  }
})

test('a Parquet file of 500,000 rows needs no more than the least memory', async () => {
  const small = await openTestEngine(join(directory, 'small'), { queryThreads: 2, memoryBytes: 512 * 1024 * 1024 })
  try {
    const columns = `timestamp_sequence('2024-01-01', 1000000) ts, x, rnd_double() d, ('s' || (x % 50))::symbol s,
      'a text of the row ' || x v, x::int i, (x % 1000)::short sh, x % 3 = 0 b, x * 1.5 e`
    const query = `select ${columns} from long_sequence(500000)`
    await small.execute(`create table big as (${query}) timestamp(ts) partition by month`, executeOptions)
    for (const sql of ['big', 'select * from big where x % 2 = 0']) {
      const result = await small.execute(sql, { ...executeOptions, encoding: parquet })
      if (result.kind !== 'rows') throw new Error(`no rows [kind=${result.kind}]`)
      for await (const _ of result.blocks);
      expect((await result.summary).rows).toBe(sql.includes('where') ? 250_000 : 500_000)
    }
  } finally {
    await small.close()
  }
})
