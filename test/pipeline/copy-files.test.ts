// Goal: COPY exports tables to files of its export directory and imports files of its import directory, and reaches no
// other file; each option is applied or rejected.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allRights } from '../../engine/base/rights.js'
import type { Engine, ExecuteOptions } from '../../engine/engine.js'
import { type Dialect, nativeDialect, postgresDialect } from '../../engine/sql/dialect.js'
import { copyRelations, fileCopier } from '../../pipeline/ingest.js'
import { executeOptions, openTestEngine } from '../support/test-engine.js'

const home = mkdtempSync(join(tmpdir(), 'penstock-copy-'))
const directories = { importRoot: join(home, 'import'), exportRoot: join(home, 'export'), spool: join(home, 'tmp') }
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(join(home, 'db'))
  engine.copier(fileCopier(engine, directories))
  for (const relation of copyRelations(directories)) engine.relation(relation)
  mkdirSync(directories.importRoot)
  mkdirSync(directories.exportRoot)
  await run(
    "create table t as (select x, 'n' || x s, dateadd('h', x::int, '2024-01-01'::timestamp) ts from long_sequence(50)) timestamp(ts) partition by day",
  )
})

afterAll(async () => {
  await engine.close()
  rmSync(home, { recursive: true, force: true })
})

async function execute(sql: string, dialect: Dialect): Promise<string> {
  const options: ExecuteOptions = {
    ...executeOptions,
    session: { user: 'admin', protocol: 'pg', dialect, readOnly: false, rights: allRights },
    encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true },
    rowsMax: 1000,
  }
  const result = await engine.execute(sql, options)
  if (result.kind !== 'rows') return result.kind === 'done' ? `${result.tag} ${result.rows}` : ''
  const blocks: Buffer[] = []
  for await (const block of result.blocks) blocks.push(Buffer.from(block))
  return Buffer.concat(blocks).toString()
}

const run = (sql: string): Promise<string> => execute(sql, postgresDialect)

test('a table goes to CSV and comes back', async () => {
  expect(await run("copy t to 'all.csv'")).toBe('COPY 50')
  expect(readFileSync(join(directories.exportRoot, 'all.csv'), 'utf8').split('\r\n')[1]).toBe(
    '1,"n1","2024-01-01T01:00:00.000000Z"',
  )
  expect(await run("copy back from 'all.csv' with header true timestamp 'ts' partition by month")).toBe('COPY 50')
  expect(await run('select count(), min(ts), max(s) from back')).toBe('[50,"2024-01-01T01:00:00.000000Z","n9"]')
  expect(await run("select partitionBy from tables() where table_name = 'back'")).toBe('["MONTH"]')
})

test('a query goes to Parquet', async () => {
  expect(
    await run("copy (select x, s from t where x <= 3) to 'sub/some' with format parquet compression_codec none"),
  ).toBe('COPY 3')
  const file = readFileSync(join(directories.exportRoot, 'sub/some.parquet'))
  const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.length)
  expect(await parquetReadObjects({ file: bytes as ArrayBuffer })).toEqual(
    [1, 2, 3].map((x) => ({ x: BigInt(x), s: `n${x}` })),
  )
  expect(await run('select path from export_files()')).toContain('sub/some.parquet')
})

test('options of an import', async () => {
  writeFileSync(join(directories.importRoot, 'odd.csv'), 'a;01/02/2024\nb;nonsense\nc;03/02/2024\n')
  const options = "header false delimiter ';' timestamp 'f1' format 'dd/MM/yyyy'"
  await expect(run(`copy odd from 'odd.csv' with ${options}`)).rejects.toThrow()
  expect(await run(`copy odd from 'odd.csv' with ${options} on error skip_row`)).toBe('COPY 2')
  expect(await run('select f0, f1 from odd')).toBe(
    '["a","2024-02-01T00:00:00.000000Z"],["c","2024-02-03T00:00:00.000000Z"]',
  )
})

test('times of a file, as imports over HTTP read them', async () => {
  const rows = '1706695872000,1\n2024-01-31T10:11:13.000Z,2\n1706695874,3\n'
  writeFileSync(join(directories.importRoot, 'times.csv.gz'), gzipSync(`ts,v\n${rows}`))
  expect(await run("copy named from 'times.csv.gz' with timestamp 'ts'")).toBe('COPY 3')
  expect(await run('select ts, v from named')).toBe(
    '["2024-01-31T10:11:12.000000Z",1],["2024-01-31T10:11:13.000000Z",2],["2024-01-31T10:11:14.000000Z",3]',
  )
  writeFileSync(join(directories.importRoot, 'small.csv'), 'ts,v\n86400,1\n5,2\n')
  await expect(run("copy small from 'small.csv' with timestamp 'ts'")).rejects.toThrow(
    /FORMAT 'epoch_ms'.* sets the unit of numbers/,
  )
  expect(await run("copy small from 'small.csv' with timestamp 'ts' format 'epoch_s'")).toBe('COPY 2')
  expect(await run('select ts from small where v = 1')).toBe('["1970-01-02T00:00:00.000000Z"]')
  writeFileSync(join(directories.importRoot, 'gaps.csv'), `ts,v\n${'2024-01-31 10:11:12,1\n'.repeat(3000)},2\n`)
  await expect(run("copy gaps from 'gaps.csv'")).rejects.toThrow(/missing .*: TIMESTAMP '' imports without/)
  expect(await run("copy gaps from 'gaps.csv' with timestamp ''")).toBe('COPY 3001')
  expect(await run("select designatedTimestamp from tables() where table_name = 'gaps'")).toBe('[null]')
})

test('a type of a large file that turns out too narrow late gives way', async () => {
  const rows = Array.from({ length: 500_000 }, (_, index) => `${index},${'x'.repeat(50)}\n`).join('')
  writeFileSync(join(directories.importRoot, 'late.csv'), `v,s\n${rows}18446744073709551615,y\n`)
  expect(await run("copy late from 'late.csv'")).toBe('COPY 500001')
  expect(await run("select v from late where s = 'y'")).toBe('["18446744073709551615"]')
})

test.each<[string, RegExp]>([
  ["copy t to '../out.csv'", /leads out/],
  ["copy t to '/tmp/out.csv'", /leads out/],
  ["copy x from '../db/manifest'", /leads out/],
  ["copy x from 'link/manifest'", /leads out/],
  ["copy t to 'link/out.csv'", /leads out/],
  ["copy x from 'nope.csv'", /file does not exist \[file=nope.csv\]/],
  ["copy x from 'all.parquet'", /file does not exist/],
  ["copy t to 'x' with format xml", /CSV and PARQUET/],
  ["copy t to 'x' with speed 9", /unknown option of COPY \[option=speed\]/],
  ["copy t to 'x' with format parquet compression_codec zip", /invalid compression codec/],
  ["copy t to 'x' with format parquet compression_codec gzip compression_level 11", /between 1 and 9/],
  [
    "copy x from 'all.csv' with partition by century",
    /invalid partitionBy \[value=CENTURY, known=NONE,HOUR,DAY,WEEK,MONTH,YEAR\]/,
  ],
  ["copy x from 'all.csv' with on error explode", /ON ERROR/],
  ["copy nope to 'x'", /table does not exist/],
  ["copy (select nope from t) to 'x'", /Invalid column: nope/],
  ["copy t to 'x' with (format csv, format csv)", /given twice/],
])('%s is refused', async (sql, message) => {
  const roots = [directories.importRoot, directories.exportRoot]
  for (const root of roots) {
    rmSync(join(root, 'link'), { force: true })
    symlinkSync(join(home, 'db'), join(root, 'link'))
  }
  await expect(run(sql)).rejects.toThrow(message)
  for (const root of roots) rmSync(join(root, 'link'), { force: true })
})

test('not over HTTP', async () => {
  await expect(execute("copy t to 'x.csv'", nativeDialect)).rejects.toThrow(
    /^COPY is not supported over HTTP: .*8812.*\/imp/,
  )
})

test('Parquet files of others come in, whatever their codec', async () => {
  const duckdb = await DuckDBInstance.create(':memory:')
  const writer = await duckdb.connect()
  for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4']) {
    const path = join(directories.importRoot, `others-${codec}.parquet`)
    await writer.run(`copy (
      select '2024-01-01'::timestamp + to_microseconds(i * 1000001) ts, i::tinyint b, i * 10000000000 l, i / 4 d,
        case when i % 3 = 1 then null when i % 3 = 2 then '' else 'a"b,' || i end s, '2020-02-03'::date dt, i % 2 = 0 t
      from range(100) r(i)) to '${path}' (format parquet, compression ${codec}, row_group_size 60)`)
    expect(await run(`copy "${codec}" from 'others-${codec}.parquet' timestamp 'ts'`)).toBe('COPY 100')
    expect(
      await run(`select count(), max(ts), sum(b), sum(l), sum(d), count(s), max(s), max(dt), count(t) from "${codec}"`),
    ).toBe(
      '[100,"2024-01-01T00:01:39.000099Z",4950,49500000000000,1237.5,67,"a\\"b,99","2020-02-03T00:00:00.000Z",100]',
    )
    expect(await run(`select count() from "${codec}" where s = ''`)).toBe('[33]')
  }
  writer.closeSync()
  duckdb.closeSync()
})

async function writeParquet(name: string, query: string): Promise<void> {
  const duckdb = await DuckDBInstance.create(':memory:')
  const writer = await duckdb.connect()
  await writer.run(`copy (${query}) to '${join(directories.importRoot, name)}.parquet' (format parquet)`)
  writer.closeSync()
  duckdb.closeSync()
}

test('rows of a Parquet file go into a table that is there, with its types', async () => {
  await run('create table typed (s symbol, x double, ts timestamp_ns) timestamp(ts) partition by day')
  await run("copy t to 'own.parquet'")
  expect(await run("copy typed from 'own.parquet'")).toBe('COPY 50')
  expect(await run('select count_distinct(s), sum(x), min(ts) from typed')).toBe(
    '[50,1275.0,"2024-01-01T01:00:00.000000000Z"]',
  )
})

test('what is no Parquet file is refused with a reason', async () => {
  writeFileSync(join(directories.importRoot, 'no.parquet'), 'PAR1 this is none PAR1')
  await expect(run("copy none from 'no.parquet'")).rejects.toThrow(/Parquet file cannot be read/)
  await writeParquet('plain', 'select 1 x')
  await expect(run("copy none from 'plain.parquet' with header true")).rejects.toThrow(/HEADER/)
})

test('maps and lists of texts are imported as JSON', async () => {
  await writeParquet('nested', "select map {'x': 1, 'y': null} m, ['a', 'b'] l, [1, 2] n")
  expect(await run("copy nested from 'nested.parquet'")).toBe('COPY 1')
  expect(await run('select m, l, n from nested')).toBe(
    `[${JSON.stringify('{"x":1,"y":null}')},${JSON.stringify('["a","b"]')},[1.0,2.0]]`,
  )
})

test('the fields of a struct become columns', async () => {
  await writeParquet('structs', "select {'x': i, 'in': {'y': 'a' || i}} s, i from range(3) r(i)")
  expect(await run("copy structs from 'structs.parquet'")).toBe('COPY 3')
  expect(await run('select s_x, s_in_y, i from structs')).toBe('[0,"a0",0],[1,"a1",1],[2,"a2",2]')
})

test('lists of numbers become arrays', async () => {
  await run("copy (select ARRAY[[1.0, 2.0], [3.0, 4.0]] a, x from t limit 3) to 'arrays'")
  expect(await run("copy arrays from 'arrays.parquet'")).toBe('COPY 3')
  expect(await run('select a[2, 1], x from arrays limit 1')).toBe('[3.0,1]')
  await writeParquet(
    'lists',
    'select case when i % 4 = 3 then null else [i, null, i * 2][:i % 4] end l from range(8) r(i)',
  )
  expect(await run("select * from read_parquet('lists.parquet')")).toBe(
    '[[]],[[1.0]],[[2.0,null]],[null],[[]],[[5.0]],[[6.0,null]],[null]',
  )
})

test('files and glob list what COPY can read, and nothing else', async () => {
  mkdirSync(join(directories.importRoot, 'lists'))
  writeFileSync(join(directories.importRoot, 'lists', 'one.csv'), 'a\n1\n')
  writeFileSync(join(directories.importRoot, 'lists', 'two.txt'), 'a\n12\n')
  expect(await run("select path, diskSize, diskSizeHuman from files('lists')")).toBe(
    '["one.csv",4,"4.0 B"],["two.txt",5,"5.0 B"]',
  )
  expect(await run("select path from glob('lists/*.csv')")).toBe('["lists/one.csv"]')
  expect(await run("select path from import_files() where path like 'lists/%'")).toBe(
    '["lists/one.csv"],["lists/two.txt"]',
  )
  expect(await run("select count() from files('/')")).toBe('[0]')
  expect(await run("select count() from files('../db')")).toBe('[0]')
  await expect(run('select * from files()')).rejects.toThrow('files() takes one text')
  await expect(run("select * from import_files('a')")).rejects.toThrow('import_files() takes no arguments')
})
