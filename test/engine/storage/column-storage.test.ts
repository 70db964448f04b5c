// Goal: PARQUET(..) of a column is in force in the parts (Parquet files) that are written after it: the encoding, the
// codec and the Bloom filter are those that it names, and the values stay the same. Method: random columns of every
// type, and statements whose results are compared with those of a table without PARQUET(..).

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeFiles } from '../../../engine/base/files.js'
import { pageRowsMax } from '../../../engine/base/limits.js'
import { xxh64 } from '../../../engine/kernels/xxh64.js'
import { checkDatabase } from '../../../engine/storage/maintenance/check.js'
import { pageCodecOf, pageCodecs } from '../../../engine/storage/part/parquet-codec.js'
import { encodings } from '../../../engine/storage/part/parquet-types.js'
import { type PartIndex, readPartIndex } from '../../../engine/storage/part/part-index.js'
import { writePart } from '../../../engine/storage/part/part-writer.js'
import {
  type ColumnCodec,
  type ColumnEncoding,
  type ColumnStorage,
  columnCodecs,
  type PartDescriptor,
  type TableSchema,
} from '../../../engine/storage/schema/schema.js'
import { dataType } from '../../../engine/types/column-types.js'
import { executeOptions, openTestEngine, rowsFrom } from '../../support/test-engine.js'
import {
  type Bench,
  bench,
  type Cell,
  cellsAt,
  drain,
  everyType,
  hexOfCell,
  random,
  randomCell,
  schemaOf,
  sourceOf,
  versionOf,
} from './part-support.js'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'column-storage-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const encodingNumbers: Readonly<Record<ColumnEncoding, number>> = {
  plain: encodings.plain,
  rle_dictionary: encodings.dictionary,
  delta_length_byte_array: encodings.deltaLength,
  delta_binary_packed: encodings.delta,
}

function write(bed: Bench, schema: TableSchema, columns: readonly (readonly Cell[])[]): PartDescriptor {
  const place = { partId: 1, partition: 'default', minTxn: 1, maxTxn: 2 }
  return drain(writePart(bed.tools, { schema, source: sourceOf(bed, schema, columns), ...place }))
}

function encodingsOf(type: string): ColumnEncoding[] {
  if (type === 'SYMBOL') return ['rle_dictionary']
  if (type === 'BOOLEAN' || type === 'ARRAY') return ['plain']
  if (['STRING', 'VARCHAR', 'BINARY'].includes(type)) return ['plain', 'rle_dictionary', 'delta_length_byte_array']
  const integers = ['INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'].includes(type)
  return ['plain', 'rle_dictionary', ...(integers ? (['delta_binary_packed'] as const) : [])]
}

const codecs = Object.keys(columnCodecs) as ColumnCodec[]

test.each(codecs)('every type and encoding with %s', (codec) => {
  const next = random(20261130)
  const bed = bench(root)
  const level = columnCodecs[codec] === null ? {} : { level: 1 }
  const columns = everyType.flatMap((type) =>
    encodingsOf(type.name).map((encoding) => {
      const bloomFilter = type.name === 'BOOLEAN' || type.name === 'ARRAY' ? {} : ({ bloomFilter: true } as const)
      return { type, storage: { encoding, codec, ...level, ...bloomFilter } satisfies ColumnStorage }
    }),
  )
  const plain = schemaOf(columns.map(({ type }) => type))
  const schema = {
    ...plain,
    columns: plain.columns.map((column, id) => ({ ...column, parquet: columns[id]?.storage ?? {} })),
  }
  const cells = columns.map(({ type }) =>
    Array.from({ length: codec === 'lz4_raw' ? 16_000 : 1_000 }, () => randomCell(type, next, 0.3)),
  )
  const part = write(bed, schema, cells)
  const handle = bed.access.open(part, versionOf(schema))
  const index = readPartIndex(nodeFiles(), join(root, part.file))
  for (const [id, { type, storage }] of columns.entries()) {
    const read: string[] = []
    for (let page = 0; page < handle.pageCount; page++) {
      const address = bed.access.pin(handle, id, page)
      read.push(...cellsAt(bed.memory, type, address, handle.firstRows[page + 1]! - handle.firstRows[page]!))
      bed.access.unpin(address)
    }
    const what = `${type.name} ${storage.encoding}`
    expect(read, what).toEqual(cells[id]?.map((cell) => hexOfCell(type, cell)))
    const stored = index.columns.get(id)
    expect(stored?.metadata.encoding, what).toBe(encodingNumbers[storage.encoding])
    expect(stored?.metadata.codec, what).toBe(pageCodecs[pageCodecOf(codec)])
    expect(stored?.bloom !== undefined, what).toBe(storage.bloomFilter === true)
  }
  bed.access.close()
})

test('a codec holds for a column with NULLs alone in the middle', () => {
  const bed = bench(root)
  const type = dataType('VARCHAR')
  const plain = schemaOf([type, type])
  const storage: ColumnStorage = { encoding: 'rle_dictionary', codec: 'gzip' }
  const schema = { ...plain, columns: plain.columns.map((column) => ({ ...column, parquet: storage })) }
  const rows = 5 * pageRowsMax
  const edges = Array.from({ length: rows }, (_, row) =>
    row < pageRowsMax || row >= rows - pageRowsMax ? Buffer.from(`text ${row % 7}`) : null,
  )
  const nulls = edges.map(() => null)
  const { columns } = readPartIndex(nodeFiles(), join(root, write(bed, schema, [edges, nulls]).file))
  for (const id of [0, 1]) expect(columns.get(id)?.metadata.codec).toBe(pageCodecs.gzip)
  bed.access.close()
})

test('a Bloom filter has every value, and few others, with and without a dictionary', () => {
  const bed = bench(root)
  const type = dataType('VARCHAR')
  const plain = schemaOf([type, type, dataType('LONG')])
  const schema = {
    ...plain,
    columns: plain.columns.map((column) => ({ ...column, parquet: { bloomFilter: true } as const })),
  }
  const texts = Array.from({ length: 30_000 }, (_, row) => Buffer.from(`text ${row}`))
  const few = texts.map((_, row) => Buffer.from(`few ${row % 100}`))
  const numbers = texts.map((_, row) => new Uint8Array(BigInt64Array.of(BigInt(row) * 1_000_003n).buffer))
  const part = write(bed, schema, [texts, few, numbers])
  const handle = bed.access.open(part, versionOf(schema))
  const { mayContain } = bed.access.keys(handle, 0)
  for (const [id, cells] of [texts, few, numbers].entries())
    expect(cells.filter((cell) => !mayContain(id, [xxh64(cell)]))).toEqual([])
  const others = texts.map((_, row) => xxh64(Buffer.from(`other ${row}`)))
  for (const id of [0, 1, 2])
    expect(others.filter((hash) => mayContain(id, [hash])).length).toBeLessThan(others.length * 0.02)
  expect(mayContain(0, [others[0] ?? 0n, xxh64(texts[7] ?? Buffer.alloc(0))])).toBe(true)
  bed.access.close()
})

const declared = `(a varchar parquet(plain, zstd(5), bloom_filter), b long parquet(delta_binary_packed, gzip(9)),
  c symbol capacity 256 parquet(rle_dictionary, snappy), d double parquet(default, brotli(3), bloom_filter),
  u uuid parquet(bloom_filter), n int parquet(default, uncompressed), ts timestamp parquet(rle_dictionary)) timestamp(ts)
  partition by day`

const clauses = /parquet\((?:[^()]|\(\d\))*\)/g

function partsOf(): PartIndex[] {
  const files = readdirSync(join(root, 'db'), { recursive: true }).map(String)
  return files
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => readPartIndex(nodeFiles(), join(root, 'db', name)))
}

test('statements over tables with and without PARQUET(..) have the same results', async () => {
  const engine = await openTestEngine(join(root, 'db'), { queryThreads: 1 })
  const run = (sql: string) => engine.execute(sql, executeOptions)
  try {
    await run(`create table t ${declared}`)
    await run(`create table o ${declared.replace(clauses, '')}`)
    const rows = `select 'v' || (x % 5000), x * 7, ('s' || (x % 9))::symbol, x / 3.0,
      ('00000000-0000-0000-0000-' || lpad(x::string, 12, '0'))::uuid, (x % 11)::int, (x * 1000000)::timestamp
      from long_sequence(40000)`
    for (const table of ['t', 'o']) await run(`insert into ${table} ${rows}`)
    await run('checkpoint')
    const [shown] = (await rowsFrom(engine, 'show create table t')) as [[string]]
    for (const clause of declared.match(clauses) ?? []) expect(shown[0].toLowerCase()).toContain(clause)
    for (const where of [
      '',
      "where a = 'v77'",
      "where a = 'nothing'",
      "where a in ('v1', 'none', 'v4999')",
      'where b = 7 or b = 14',
      "where u = '00000000-0000-0000-0000-000000000777'::uuid",
      "where u = '00000000-0000-0000-0000-00000000000a'::uuid",
      "where c = 's3' and n = 4",
      'where a = null',
    ]) {
      const query = (table: string) => rowsFrom(engine, `select * from ${table} ${where} order by ts`)
      expect(await query('t'), where).toEqual(await query('o'))
    }
    await run('alter table t alter column a set parquet(default)')
    await run('alter table t alter b set parquet(plain, bloom_filter)')
    const [changed] = (await rowsFrom(engine, 'show create table t')) as [[string]]
    expect(changed[0]).toContain('a VARCHAR,')
    expect(changed[0]).toContain('b LONG PARQUET(plain, BLOOM_FILTER)')
    await run('begin')
    await run('alter table t alter column n type long, alter column n set parquet(plain, snappy)')
    await run('commit')
    await run('alter table o alter column n type long')
    await run('alter table t alter column c type varchar, alter column c set parquet(default, brotli)')
    await run('alter table o alter column c type varchar')
    const [retyped] = (await rowsFrom(engine, 'show create table t')) as [[string]]
    expect(retyped[0]).toContain('n LONG PARQUET(plain, snappy)')
    expect(retyped[0]).toContain('c VARCHAR PARQUET(default, brotli)')
    await run(`update t set n = n + 1`)
    await run(`update o set n = n + 1`)
    await run('checkpoint')
    expect(await rowsFrom(engine, 'select * from t order by ts')).toEqual(
      await rowsFrom(engine, 'select * from o order by ts'),
    )
  } finally {
    await engine.close()
  }
  const stored = partsOf()
    .flatMap(({ columns, metadata }) => (metadata.table === 't' ? [...columns.values()] : []))
    .filter(({ metadata }) => metadata.name === 'b')
  expect(stored.some(({ metadata, bloom }) => metadata.encoding === encodings.plain && bloom !== undefined)).toBe(true)
  const { findings } = checkDatabase({ files: nodeFiles(), directory: join(root, 'db') })
  expect(findings).toEqual([])
})

const refused: readonly (readonly [string, string])[] = [
  ['create table e (a int parquet)', "'(' expected"],
  ['create table e (a int parquet())', "encoding, 'default' or 'bloom_filter' expected"],
  ['create table e (a int parquet(fast))', 'unknown encoding [encoding=fast'],
  ['create table e (a double parquet(delta_binary_packed))', 'the encoding is not for columns of this type'],
  ['create table e (a symbol parquet(plain))', 'the encoding is not for columns of this type'],
  ['create table e (a boolean parquet(bloom_filter))', 'a column of this type has no bloom filter'],
  ['create table e (a int parquet(plain, lzma))', 'unknown compression codec [codec=lzma'],
  ['create table e (a int parquet(plain, zstd(23)))', 'compression level out of range [codec=zstd, level=23'],
  ['create table e (a int parquet(plain, lz4_raw(1)))', 'the compression codec has no levels'],
  ['create table e (a int parquet(plain, zstd, 5))', "'bloom_filter' expected"],
  ['alter table t alter column x set parquet(plain)', "column 'x' does not exist"],
]

test('what cannot be stored is refused', async () => {
  const engine = await openTestEngine(join(root, 'db'))
  try {
    await engine.execute('create table t (a int)', executeOptions)
    for (const [sql, message] of refused)
      await expect(engine.execute(sql, executeOptions), sql).rejects.toThrow(message)
  } finally {
    await engine.close()
  }
})
