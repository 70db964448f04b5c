// Goal: an INSERT of literals stores the same rows, or is rejected with the same error at the same position, whether
// the fast byte scanner or the SQL parser reads it. Method: random texts of literals, ordinary and unusual, for columns
// of every type. Each runs as it is, and again after a comment, which only the SQL parser supports.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SqlError } from '../../../engine/base/errors.js'
import type { Engine } from '../../../engine/engine.js'
import { createRandom, type Random } from '../../support/random.js'
import { executeOptions, openTestEngine, rowsFrom } from '../../support/test-engine.js'

const comment = '/**/'
const columns = [
  ...['ts timestamp', 'bo boolean', 'by byte', 'sh short', 'i int', 'l long', 'f float', 'd double', 'c char'],
  ...['st string', 'v varchar', 'sy symbol', 'da date', 'ns timestamp_ns', 't2 timestamp', 'u uuid', 'ip ipv4'],
  ...['de decimal(10,3)', 'g geohash(5c)', 'l2 long256'],
]

const directory = mkdtempSync(join(tmpdir(), 'penstock-literals-'))
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(directory)
  for (const table of ['bytes', 'parsed']) {
    await engine.execute(
      `create table ${table} (${columns.join(', ')}) timestamp(ts) partition by year`,
      executeOptions,
    )
  }
})

afterAll(async () => {
  await engine?.close()
  rmSync(directory, { recursive: true, force: true })
})

function rowsOf(table: string): Promise<unknown[]> {
  return rowsFrom(engine, `select * from ${table}`)
}

/** What came of the statement. */
async function outcome(sql: string, shift: number): Promise<unknown> {
  try {
    const result = await engine.execute(sql, executeOptions)
    return result.kind === 'done' ? { tag: result.tag, rows: result.rows } : result.kind
  } catch (error) {
    if (!(error instanceof SqlError)) throw error
    return { error: error.message.replaceAll(/bytes|parsed/g, 'table'), at: Math.max(0, error.position - shift) }
  }
}

const usual: Record<string, readonly string[]> = {
  ts: ["'2024-01-02T03:04:05.123456Z'", "'2024-01-02 03:04:05'", '1704164645000000', "'2024-01-02'::timestamp"],
  bo: ['true', 'FALSE', "'true'", "'f'"],
  by: ['1', '-128', '127', "'12'"],
  sh: ['300', '-32768', "'7'"],
  i: ['1', '-5', '2147483647', "'42'"],
  l: ['1', '9007199254740993', '-123456789012345', "'17'"],
  f: ['1.5', '-0.1', '3', '1e3', "'2.5'"],
  d: ['0.1', '-123.456789', '42', '1e-7', "'6.25'", '-0.0'],
  c: ["'a'", "'é'"],
  st: ["'text'", "''", "'x'", "'it''s'", "'日本'", 'null'],
  v: ["'text'", "''", "'x'", "'it''s'", "'日本'", 'null'],
  sy: ["'A'", "'BB'", "''", "'it''s'", 'null'],
  da: ["'2024-01-02'", "'2024-01-02T03:04:05.123Z'", '1704164645000', 'null'],
  ns: ["'2024-01-02T03:04:05.123456789Z'", "'2024-01-02 03:04:05'", '1704164645000000', 'null'],
  t2: ["'2024-01-02T03:04:05Z'", "'1969-01-02'", '0', '-1', 'null', "'2024-01-02T03:04:05+02:00'"],
  u: ["'11111111-2222-3333-4444-555555555555'", 'null'],
  ip: ["'1.2.3.4'", 'null'],
  de: ['1.5', '2', "'3.25'", 'null'],
  g: ["'sp052'", 'null'],
  l2: ["'0x1234'", 'null'],
}

const strange = [
  ...['null', 'NULL', "''", "'x'", "'12'", '12', '-1', '1.5', '-1.5', 'true', 'abs(-1)', "'a' || 'b'", '1 + 2', '(1)'],
  ...['1e5', '0x1f', '99999999999999999999', '1L', '1_000', "'2024-01-02'::timestamp", "'1'::int", 'cast(1 as long)'],
  ...["E'a\\\\n'", "'un", '"quoted"', 'default', '', '- 5', '+5', '.5', '5.', '1.5f', 'nulls', "'nan'", 'NaN'],
  ...['999999999999.9999', '123456789012345678', "'2024-13-01'", "'1960-01-01'", '-', "'a' 'b'", "'x'::varchar"],
]

/** Types that are always parsed come less often. */
const plainColumns = 15

function textOf(random: Random, table: string): string {
  const among = random.chance(0.3) ? columns : columns.slice(0, plainColumns)
  const chosen = among.filter((_, index) => index === 0 || random.chance(0.25)).map((column) => column.split(' ')[0])
  const odd = random.chance(0.3)
  const calm = !odd && random.chance(0.6)
  const literal = (name: string): string => {
    const list = calm
      ? (usual[name] as readonly string[]).slice(0, 2)
      : odd && random.below(12) === 0
        ? strange
        : (usual[name] as readonly string[])
    return list[random.below(list.length)] as string
  }
  const blank = (): string => (random.below(10) === 0 ? ' \n' : '')
  const tuples = Array.from({ length: 1 + random.below(3) }, () => {
    const values = chosen.map((name) => `${blank()}${literal(name as string)}${blank()}`)
    if (odd && random.below(20) === 0) values.pop()
    return `(${values.join(random.below(2) === 0 ? ', ' : ',')})`
  })
  const end = odd ? [';', '', ' ; ', ',', ' x', ';;'][random.below(6)] : ''
  return `insert into ${table} (${chosen.join(', ')}) values ${tuples.join(', ')}${end}`
}

test('random texts', async () => {
  const random = createRandom(7)
  const transaction = engine.begin()
  let stored = 0
  let asBytes = 0
  for (let round = 0; round < 800; round++) {
    const text = textOf(random, 'bytes')
    const read = await outcome(text, 0)
    const parsed = await outcome(
      comment + text.replace('bytes', 'parsed'),
      comment.length + 'parsed'.length - 'bytes'.length,
    )
    expect(read, text).toEqual({ ...(parsed as object) })
    if ('tag' in (read as object)) stored++
    const bytes = Buffer.from(text)
    if ((await transaction.insertText(bytes, 0, bytes.length, executeOptions.session)) > 0) asBytes++
  }
  expect(asBytes).toBeGreaterThan(150)
  expect(stored).toBeGreaterThan(300)
  expect(await rowsOf('bytes')).toEqual(await rowsOf('parsed'))
})

test('long texts whose rows are written in any way', async () => {
  await rowsFrom(engine, 'create table long_bytes (ts timestamp, l long, v varchar, r long, n timestamp) timestamp(ts)')
  await rowsFrom(
    engine,
    'create table long_parsed (ts timestamp, l long, v varchar, r long, n timestamp) timestamp(ts)',
  )
  const tuples = Array.from({ length: 3000 }, (_, index) => {
    const time = index % 3 === 0 ? `${index}` : `dateadd('s', ${index % 7}, ${index}::timestamp)`
    const long = index % 1000 < 400 ? `${index}` : `abs(-${index}) + (1 - 1)`
    const text = index % 5 === 0 ? `'a)' || '(''b'` : `'plain, (${index}'`
    return `(${time}, ${long}, ${text}, rnd_long(), now())`
  })
  const insert = (table: string, last = ''): string =>
    `insert into ${table} (ts, l, v, r, n) values\n ${tuples.join(',\n ')}${last}`
  expect(insert('long_bytes').length).toBeGreaterThan(160 * 1024)
  const bytes = Buffer.from(insert('long_bytes'))
  const read = await engine.begin().insertText(bytes, 0, bytes.length, executeOptions.session)
  expect(read).toBe(3000)
  const done = { tag: 'INSERT', rows: 3000 }
  expect(await outcome(insert('long_bytes', ' ; '), 0)).toEqual(done)
  expect(await outcome(comment + insert('long_parsed'), comment.length)).toEqual(done)
  const stored = (table: string): Promise<unknown[]> => rowsFrom(engine, `select ts, l, v from ${table}`)
  expect(await stored('long_bytes')).toEqual(await stored('long_parsed'))
  // One time, and random values that go on.
  expect(await rowsFrom(engine, 'select count(distinct n), count(distinct r) from long_bytes')).toEqual([[1n, 3000n]])
  for (const last of [
    ", (1, 2, 'x', 3)",
    ', (1, nothing, null, 0, 0)',
    ' x',
    ", (1, 2, 'x', 3, 0), ",
    ", (-1, 2, 'x', 3, 0)",
  ]) {
    const shift = comment.length + 'parsed'.length - 'bytes'.length
    expect(await outcome(insert('long_bytes', last), 0)).toEqual(
      await outcome(comment + insert('long_parsed', last), shift),
    )
  }
  expect(await rowsFrom(engine, 'select count() from long_bytes')).toEqual([[3000n]])
})
