// Goal: maps, lists of anything but numbers, and structs in lists of Parquet files and Iceberg tables are columns of
// JSON, with the values that their writer put there, at every level of nesting. A column that cannot be read does not
// keep others from being read. Method: files that DuckDB writes, whose JSON it computes itself.

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { column, openIcebergQueries } from '../support/lake/iceberg-queries.js'
import { putData, type WrittenTable, writeIceberg } from '../support/lake/iceberg-table.js'

const { folder, rows, failure, forget, close } = await openIcebergQueries()
const duckdb = await (await DuckDBInstance.create()).connect()

afterAll(async () => {
  duckdb.closeSync()
  await close()
})

beforeEach(() => {
  forget()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'data'), { recursive: true })
})

async function write(query: string, options = ''): Promise<void> {
  await duckdb.run(`copy (${query}) to '${join(folder, 'data/a.parquet')}' (format parquet${options})`)
}

function table(fields: WrittenTable['fields'], changes: Partial<WrittenTable> = {}): void {
  writeIceberg(folder, {
    location: '/former/place/t',
    fields,
    files: [{ name: 'data/a.parquet', rows: 1 }],
    ...changes,
  })
}

const file = "read_parquet('t/data/a.parquet')"

/** Values of `i` with NULLs, empty lists and lists of many lengths, some longer than a batch. */
const kinds: Readonly<Record<string, string>> = {
  texts:
    "case i % 5 when 0 then null when 1 then [] else list_transform(range(i % 70), e -> case when e % 4 = 3 then null else 'é\"' || e end) end",
  map: "case i % 4 when 0 then null when 1 then map {} else map {'k' || i: i, 'other': null} end",
  people: "case i % 3 when 0 then null else [{'name': 'n' || i, 'age': i}, null, {'name': null, 'age': null}] end",
  nest: "[['a'], null, [], ['b' || i, null]]",
  deep: "[{'tags': map {'x': [i, null], 'y': []}, 'at': {'hall': i % 2 = 0, 'note': null::varchar}}]",
  lists: "map {'of': [[1.5, i], [2.5]]}",
  one: "{'in': map {'a': {'b': i}}}.in",
}

test.each([2048, 100_000])('values are those of the writer, row groups of %i rows', async (groupRows) => {
  const columns = Object.entries(kinds).map(([name, value]) => `${value} "${name}"`)
  await write(`select i::int id, ${columns.join()} from range(5000) r(i)`, `, row_group_size ${groupRows}`)
  for (const name of Object.keys(kinds)) {
    const found = await rows(`select ${name}, id from ${file}`)
    const reader = await duckdb.runAndReadAll(
      `select to_json(${name})::varchar, id from '${join(folder, 'data/a.parquet')}'`,
    )
    const parsed = (all: readonly (readonly unknown[])[]): unknown[] =>
      all.map(([json, id]) => [id, typeof json === 'string' ? JSON.parse(json) : null])
    expect([name, parsed(found)]).toEqual([name, parsed(reader.getRowsJson())])
  }
  // Columns of different pages stay together.
  expect(await rows(`select count(), sum(id), count(texts), count(map) from ${file} where people is not null`)).toEqual(
    [[3333, 8_331_667, 2667, 2500]],
  )
  expect(await rows(`select map from ${file} where id = 6`)).toEqual([['{"k6":6,"other":null}']])
})

test('every type of value has its form in JSON', async () => {
  await write(`select [true, null] bo, [1::tinyint] ti, [9007199254740993::bigint] lo, ['2024-02-03'::date] da,
    ['2024-02-03 01:02:03.5'::timestamp] ts, [1.5::float, 'nan'::float] fl, {'d': ['inf'::double, 0.1]} db,
    [12.340::decimal(9, 3)] de, ['\\x01\\xFF'::blob] bi, ['6f0e4d0c-8a3c-4d38-9a55-3f0c6a7d1b11'::uuid] uu,
    map {1: 'a', 2: null} nu, map {'2024-02-03'::date: 1} ke, [map {'a': 1}] ma`)
  expect(await rows(`select bo, da, ts, de, bi, uu, nu, ke, ma from ${file}`)).toEqual([
    [
      ...['[true,null]', '["2024-02-03T00:00:00.000Z"]', '["2024-02-03T01:02:03.500000Z"]', '[12.340]', '["01ff"]'],
      ...['["6f0e4d0c-8a3c-4d38-9a55-3f0c6a7d1b11"]', '[[1,"a"],[2,null]]', '[["2024-02-03T00:00:00.000Z",1]]'],
      '[{"a":1}]',
    ],
  ])
  expect(await rows(`select ti, lo, fl from ${file}`)).toEqual([[[1], [9007199254740992], [1.5, null]]])
  await write("select [{'f': 1.5::float, 'l': 9007199254740993, 'x': 'nan'::double}] s")
  expect(await rows(`select * from ${file}`)).toEqual([['[{"f":1.5,"l":9007199254740993,"x":null}]']])
})

test('the smallest integers and keys that are NaN stay in JSON', async () => {
  await write(`select [{'i': (-2147483648)::int, 'l': (-9223372036854775808)::bigint, 's': 5::smallint}] s,
    map {(-2147483648)::int: [(-9223372036854775808)::bigint]} m, map {'nan'::double: 1} n`)
  expect(await rows(`select * from ${file}`)).toEqual([
    ['[{"i":-2147483648,"l":-9223372036854775808,"s":5}]', '[[-2147483648,[-9223372036854775808]]]', '[[null,1]]'],
  ])
})

test('a row that is too long for memory is an error, though its file is short', async () => {
  await write(`select list_transform(range(60000), e -> {'${'k'.repeat(600)}': null::bool}) t`)
  expect(await failure(`select length(t) from ${file}`)).toContain('a row has more than 33554432 characters of JSON')
  expect(await rows('select 1')).toEqual([[1]])
})

test('JSON functions, conditions and imports take them', async () => {
  await write("select i, map {'k': i} m, ['t' || i] t from range(100) r(i)")
  expect(await rows(`select sum(json_extract(m, '$.k')::long) from ${file} where t = '["t7"]' or i = 9`)).toEqual([
    [16],
  ])
  expect(await rows(`select count(), min(m), max(t) from ${file} where m like '%:9%'`)).toEqual([
    [11, '{"k":90}', '["t99"]'],
  ])
})

const map = { type: 'map', 'key-id': 4, key: 'string', 'value-id': 5, value: 'long', 'value-required': false }
const people = {
  type: 'list',
  'element-id': 7,
  'element-required': false,
  element: {
    type: 'struct',
    fields: [
      { id: 10, name: 'added', type: 'string' },
      { id: 8, name: 'called', type: 'string' },
      { id: 9, name: 'age', type: 'double' },
    ],
  },
}

test('iceberg() finds nested fields by their ids, also those that files lack, and under other names', async () => {
  await write(
    "select i::int id, map {'k': i::int} m, [{'name': 'n' || i, 'age': i::float, 'gone': 1}] p from range(50) r(i)",
    ', field_ids {id: 1, m: {__duckdb_field_id: 3, key: 4, value: 5}, p: {__duckdb_field_id: 6, element: {__duckdb_field_id: 7, name: 8, age: 9, gone: 11}}}',
  )
  const fields = [
    { id: 1, name: 'id', type: 'int' },
    { id: 3, name: 'counts', type: map },
    { id: 6, name: 'people', type: people },
    { id: 12, name: 'later', type: { type: 'list', 'element-id': 13, element: 'string' } },
  ]
  table(fields)
  expect(await rows("select * from iceberg('t') where id = 7")).toEqual([
    [7, '{"k":7}', '[{"added":null,"called":"n7","age":7.0}]', null],
  ])
  expect(await rows(`select count() from iceberg('t') where people like '%n1%' and counts is not null`)).toEqual([[11]])
  forget()
  table([
    ...fields.slice(0, 1),
    { id: 3, name: 'counts', type: { type: 'list', 'element-id': 5, element: 'string' } },
    { id: 6, name: 'place', type: { ...map, value: 'geometry' } },
  ])
  expect(await rows("select * from iceberg('t') where id = 7").catch(String)).toContain('VARCHAR')
})

test('iceberg() finds nested fields of files without ids by the name mapping', async () => {
  await write("select 1::int id, [{'before': 'a', 'x': 1}] s, [time '00:00:01'] t")
  const element = { type: 'struct', fields: [{ id: 4, name: 'now', type: 'string' }] }
  const mapping = [
    { 'field-id': 1, names: ['id'] },
    {
      'field-id': 2,
      names: ['s'],
      fields: [{ 'field-id': 3, names: ['element'], fields: [{ 'field-id': 4, names: ['before', 'now'] }] }],
    },
    { 'field-id': 5, names: ['t'], fields: [{ 'field-id': 6, names: ['element'] }] },
  ]
  table(
    [
      { id: 1, name: 'id', type: 'int' },
      { id: 2, name: 's', type: { ...people, 'element-id': 3, element } },
      { id: 5, name: 't', type: { ...people, 'element-id': 6, element: 'time' } },
    ],
    { properties: { 'schema.name-mapping.default': JSON.stringify(mapping) } },
  )
  // Times of day are microseconds.
  expect(await rows("select id, s, t[1] from iceberg('t')")).toEqual([[1, '[{"now":"a"}]', 1_000_000]])
})

test('a column of a type that is not supported is left out, and says why where it is named', async () => {
  const element = { type_length: 40, converted_type: 5, precision: 90, scale: 2 }
  const wide = { name: 'wide', physical: 7, element, encoding: 0, values: [Buffer.alloc(40), Buffer.alloc(40)] }
  putData(folder, 'data/a.parquet', [column('id', null, 1, [33, 34]), wide])
  expect(await rows(`select * from ${file}`)).toEqual([[33], [34]])
  expect(await failure(`select wide from ${file}`)).toContain(
    'the column cannot be read: DECIMAL(90,2) is not supported [column=wide]',
  )
  expect(await failure("select * from read_parquet('t/data/a.parquet', 'exact')")).toContain(
    'DECIMAL(90,2) is not supported [file=t/data/a.parquet, column=wide]',
  )
  putData(folder, 'data/a.parquet', [wide])
  expect(await failure(`select * from ${file}`)).toContain('DECIMAL(90,2) is not supported')
})
