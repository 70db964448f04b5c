// Goal: a table with LAKE ON FORMAT VERSION 3 is an Iceberg table of that version, whose TIMESTAMP_NS columns keep their
// nanoseconds. A table of version 2 gets version 3 without a moment in which the catalog lacks it. Method: the rows of
// the Iceberg table, read by DuckDB and by iceberg(), equal those of the SQL table.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { currentSchema } from '../../engine/lake/table-metadata.js'
import { dataFiles, loadTable, readLake, untilCommitted } from '../support/lake/lake-reader.js'
import { TestServer } from '../support/server.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-lake3-'))
const server = new TestServer([
  ...[`object.store.url=file://${folder}`, 'lake.commit.lag=1s', 'telemetry.enabled=false'],
])

beforeAll(() => server.start())

afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

async function run(sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

async function created(table: string): Promise<string> {
  return (await server.exec(`show create table ${table}`)).text
}

async function locationOf(table: string): Promise<unknown> {
  return (await server.rows(`select location from lake_tables() where table_name = '${table}'`))[0]?.[0]
}

async function fieldsOf(table: string): Promise<unknown[]> {
  const { metadata } = await untilCommitted(server, table)
  return currentSchema(metadata).fields.map(({ id, name, type }) => [id, name, type])
}

/** Of the column: what DuckDB, which has microseconds with a zone, and iceberg() find is what SQL finds. */
async function expectSame(table: string, column = 'ts'): Promise<void> {
  const { metadata, location } = await untilCommitted(server, table)
  const figures = `count(), sum(x), count(${column}), min(${column})::long::varchar, max(${column})::long::varchar`
  const [wanted = []] = await server.rows(`select ${figures} from ${table}`)
  expect(await locationOf(table)).toBe(metadata.location)
  const read = (name: string) => server.rows(`select ${figures} from iceberg('${name}')`)
  expect(await read(location)).toEqual([wanted])
  // The newest version of a folder is looked up every few seconds.
  await expect.poll(() => read(metadata.location), { timeout: 20_000 }).toEqual([wanted])
  const micros = wanted.map((value, index) => (index < 3 ? String(value) : String(BigInt(String(value)) / 1000n)))
  const found = await readLake(
    metadata,
    `count(*), sum(x), count(${column}), epoch_us(min(${column})), epoch_us(max(${column}))`,
  )
  expect(found.map((row) => row.map(String))).toEqual([micros])
}

const rows = (first: string): string =>
  `select ('${first}'::timestamp_ns::long + x * 1000000007)::timestamp_ns, x from long_sequence(1000)`

test('nanoseconds are in the lake, also after UPDATE and a restart', async () => {
  await run('create table t (ts timestamp_ns, x long) timestamp(ts) partition by day lake on format version 3')
  expect(await created('t')).toContain('PARTITION BY DAY LAKE ON FORMAT VERSION 3')
  await run(`insert into t ${rows('2024-01-01T00:00:00.123456789Z')}`)
  await expectSame('t')
  expect(await fieldsOf('t')).toEqual([
    [1, 'ts', 'timestamptz_ns'],
    [2, 'x', 'long'],
  ])
  await run('update t set x = x + 1 where x < 10')
  await expectSame('t')
  await server.restart()
  await run("insert into t values ('2024-02-01T00:00:00.000000001Z', 5)")
  await expectSame('t')
  const { metadata } = await untilCommitted(server, 't')
  expect(metadata['format-version']).toBe(3)
  const given = metadata.snapshots.reduce((sum, snapshot) => sum + (snapshot['added-rows'] ?? 0), 0)
  expect(metadata['next-row-id']).toBe(given)
  const ranges = dataFiles(metadata).map(({ firstRowId = -1, rows: count }) => [firstRowId, firstRowId + count])
  ranges.sort(([x = 0], [y = 0]) => x - y)
  for (const [at, [first = 0]] of ranges.entries()) expect(first).toBeGreaterThanOrEqual(ranges[at - 1]?.[1] ?? 0)
  expect(ranges.at(-1)?.[1]).toBeLessThanOrEqual(given)
  expect(await server.rows("select format_version, state from lake_tables() where table_name = 't'")).toEqual([
    [3, 'committed'],
  ])
})

test('a table without nanoseconds stays the same Iceberg table, with its files', async () => {
  await run('create table m (ts timestamp, x long) timestamp(ts) partition by month lake on')
  await run("insert into m values ('2024-01-01', 1), ('2024-02-01', 2)")
  const before = await untilCommitted(server, 'm')
  await run('alter table m set lake on format version 3')
  const after = await untilCommitted(server, 'm')
  expect(after.metadata).toMatchObject({ 'format-version': 3, 'table-uuid': before.metadata['table-uuid'] })
  expect(dataFiles(after.metadata).map(({ path }) => path)).toEqual(dataFiles(before.metadata).map(({ path }) => path))
  await run('alter table m add column n timestamp_ns')
  await run("insert into m values ('2024-03-01', 3, '2024-03-01T00:00:00.000000009Z')")
  await untilCommitted(server, 'm')
  expect(await fieldsOf('m')).toContainEqual([3, 'n', 'timestamptz_ns'])
  await expectSame('m', 'n')
})

test('a table with nanoseconds becomes another Iceberg table, and the catalog never lacks it', async () => {
  await run('create table u (ts timestamp_ns, x long) timestamp(ts) partition by day lake on')
  await run(`insert into u ${rows('2024-01-01T00:00:00.5Z')}`)
  const before = await untilCommitted(server, 'u')
  expect(before.metadata['format-version']).toBe(2)
  await run('alter table u set lake on format version 3')
  const versions = new Set<number>()
  const locations = new Set<unknown>()
  for (let isDone = false; !isDone; ) {
    locations.add(await locationOf('u'))
    const loaded = await loadTable(server, 'u')
    if (loaded === null) throw new Error('the catalog lacks the table')
    versions.add(loaded.metadata['format-version'])
    isDone = loaded.metadata['format-version'] === 3
  }
  expect([...versions]).toContain(3)
  await expectSame('u')
  const { metadata } = await untilCommitted(server, 'u')
  expect(metadata['table-uuid']).not.toBe(before.metadata['table-uuid'])
  expect(locations).toContain(before.metadata.location)
  expect([before.metadata.location, metadata.location]).toEqual(expect.arrayContaining([...locations]))
  await server.restart('SIGKILL')
  await expectSame('u')
})

test('a lower version is refused, and LIKE keeps the version', async () => {
  const { text } = await server.exec('alter table t set lake on format version 2')
  expect(text).toContain('Iceberg permits no lower format version: SET LAKE OFF, then ON makes another Iceberg table')
  await run('alter table t set lake on')
  expect(await created('t')).toContain('LAKE ON FORMAT VERSION 3')
  await run('create table t2 (like t)')
  expect(await created('t2')).toContain('LAKE ON FORMAT VERSION 3')
  await run(
    'create table p (ts timestamp, x long) timestamp(ts) partition by day storage policy(to remote 30d) lake on format version 3',
  )
  expect(await created('p')).toContain('LAKE ON FORMAT VERSION 3')
  for (const wrong of ['4', '1', "'3'", ''])
    expect((await server.exec(`alter table t set lake on format version ${wrong}`)).text).toContain(
      'format version 2 or 3 of Iceberg expected',
    )
})
