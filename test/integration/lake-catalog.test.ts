// Goal: two servers append to one Iceberg table through an external REST catalog, and the table has the rows of both,
// each once. This holds when the servers change their rows or add and change columns, when the catalog answers with
// errors, and when a server is killed. Method: a catalog in memory that checks commits as the protocol requires, and
// fails when the test says so.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CatalogMetadata, currentSchemaOf, snapshotOf } from '../../engine/lake/catalog-metadata.js'
import { committed, openTestCatalog } from '../support/lake/rest-catalog.js'
import { readShared, rowIds, sharedFiles } from '../support/lake/shared-lake.js'
import { createRandom } from '../support/random.js'
import { TestServer } from '../support/server.js'

const folder = mkdtempSync(join(tmpdir(), 'penstock-catalog-'))
const catalog = await openTestCatalog()
const settings = [
  `object.store.url=file://${folder}`,
  `lake.catalog.url=${catalog.url}`,
  'lake.catalog.warehouse=main',
  `lake.catalog.client.id=${catalog.client.id}`,
  `lake.catalog.client.secret=${catalog.client.secret}`,
  'lake.catalog.timeout=300ms',
  'lake.commit.lag=1s',
  'telemetry.enabled=false',
]
const [one, two] = [new TestServer(settings), new TestServer(settings)]

beforeAll(() => Promise.all([one.start(), two.start()]))

afterAll(async () => {
  await Promise.all([one.remove(), two.remove()])
  await catalog.close()
  rmSync(folder, { recursive: true, force: true })
})

async function run(server: TestServer, sql: string): Promise<void> {
  const { status, text } = await server.exec(sql)
  expect([status, text]).toEqual([200, expect.anything()])
}

function metadataOf(table: string): CatalogMetadata {
  const found = catalog.tables.get(`qdb.${table}`)
  if (found === undefined) throw new Error(`the catalog has no such table [table=${table}]`)
  return found
}

/** Resolves with true, or with the last failure. */
async function until(isDone: () => Promise<boolean> | boolean, seconds = 60): Promise<boolean> {
  for (let attempt = 0; attempt < seconds * 10; attempt++) {
    if (await isDone()) return true
    await new Promise((later) => setTimeout(later, 100))
  }
  return false
}

async function untilCommitted(server: TestServer, table: string): Promise<void> {
  const sql = `select state, failure from lake_tables() where table_name = '${table}'`
  let calm = 0
  const isCommitted = await until(async () => {
    const [row] = await server.rows(sql)
    calm = row?.[0] === 'committed' ? calm + 1 : 0
    return calm > 3
  })
  if (!isCommitted) throw new Error(`no commit: ${String(await server.rows(sql))}`)
}

async function failureOf(server: TestServer, table: string, text: string): Promise<void> {
  const sql = `select failure from lake_tables() where table_name = '${table}'`
  const isSo = await until(async () => String((await server.rows(sql))[0]?.[0]).includes(text))
  expect([isSo, await server.rows(sql)]).toEqual([true, [[expect.stringContaining(text)]]])
}

/** The figures of the table are the sums of those of both servers. */
async function expectBoth(table: string, figures: string): Promise<void> {
  const wanted = [0, 0, 0]
  for (const server of [one, two]) {
    await untilCommitted(server, table)
    const [row = []] = await server.rows(`select ${figures} from ${table}`)
    for (const [index, value] of row.entries()) wanted[index] = (wanted[index] ?? 0) + Number(value)
  }
  const [found = []] = await readShared(metadataOf(table), figures.replaceAll('count()', 'count(*)'))
  expect(found.map(Number)).toEqual(wanted.slice(0, found.length))
}

const insert = (server: TestServer, first: number, count = 500): Promise<void> =>
  run(
    server,
    `insert into t (ts, s, x) select dateadd('m', (x * 7)::int, '2024-01-01'::timestamp), 's' || x % 5, x + ${first} from long_sequence(${count})`,
  )

/** No two rows have the same id, and files have the ids that they had before. */
function expectRowIds(table: string, before: ReadonlyMap<string, unknown> = new Map()): ReadonlyMap<string, unknown> {
  const metadata = metadataOf(table)
  expect(metadata['format-version']).toBe(3)
  const ids = rowIds(metadata)
  const ranges = [...ids.values()].sort(([x], [y]) => x - y)
  for (const [at, [first]] of ranges.entries()) {
    const [former, rows] = ranges[at - 1] ?? [0, 0]
    expect(first).toBeGreaterThanOrEqual(former + rows)
  }
  const [last, rows] = ranges.at(-1) ?? [0, 0]
  expect(last + rows).toBeLessThanOrEqual(metadata['next-row-id'] ?? 0)
  for (const [path, range] of before) if (ids.has(path)) expect(ids.get(path)).toEqual(range)
  return ids
}

const nanoRows = (first: number): string =>
  `select ('2024-01-01T00:00:00.000000007Z'::timestamp_ns::long + x * 600000000007)::timestamp_ns, x + ${first} from long_sequence(500)`

test('two servers append to one table, which the first of them creates', async () => {
  const create = 'create table t (ts timestamp, s symbol, x long, a double[]) timestamp(ts) partition by day lake on'
  await Promise.all([run(one, create), run(two, create)])
  await Promise.all([insert(one, 0), insert(two, 1000)])
  await expectBoth('t', 'count(), sum(x)')
  const metadata = metadataOf('t')
  expect(currentSchemaOf(metadata).fields.map(({ id, name, type }) => [id, name, type])).toEqual([
    [1, 'ts', 'timestamptz'],
    [2, 's', 'string'],
    [3, 'x', 'long'],
    [4, 'a', { type: 'list', 'element-id': 5, element: 'double', 'element-required': true }],
  ])
  expect(snapshotOf(metadata)?.summary).toMatchObject({ operation: 'append', 'total-records': '1000' })
  expect(Object.keys(metadata.properties ?? {}).filter((name) => name.startsWith('penstock.'))).toHaveLength(2)
})

test('the catalog of the server says where the tables are', async () => {
  const get = async (path: string): Promise<unknown> =>
    (await fetch(`http://${one.address('http')}/iceberg/v1/${path}`)).json()
  expect(await get('namespaces')).toEqual({ namespaces: [] })
  expect(await get('namespaces/qdb/tables')).toMatchObject({
    error: { code: 404, message: expect.stringContaining(catalog.url) },
  })
})

async function fieldIds(table: string): Promise<number[]> {
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const { fileURLToPath } = await import('node:url')
  const duckdb = await (await DuckDBInstance.create()).connect()
  const [file] = sharedFiles(metadataOf(table))
  const rows = await duckdb.runAndReadAll(
    `select field_id from parquet_schema('${fileURLToPath(file?.path ?? '')}') where field_id is not null`,
  )
  duckdb.closeSync()
  return rows.getRows().map(([id]) => Number(id))
}

// Each of the following has a table of its own, so that they wait for commits at the same time.
describe.concurrent('one table', () => {
  test('each server changes its own rows; columns that both have; manifests of another program', async () => {
    {
      await run(one, "update t set x = x + 1 where s = 's1'")
      await run(two, "delete from t where s = 's2'")
      await expectBoth('t', 'count(), sum(x)')
      await run(one, "alter table t drop partition list '2024-01-02'")
      await insert(two, 5000, 100)
      await expectBoth('t', 'count(), sum(x)')
      const operations = metadataOf('t').snapshots?.map(({ summary }) => summary['operation'])
      expect(operations).toEqual(expect.arrayContaining(['append', 'overwrite', 'delete']))
    }
    {
      await Promise.all([run(one, 'alter table t add column n int'), run(two, 'alter table t add column n int')])
      for (const server of [one, two]) await run(server, "insert into t (ts, n) values ('2024-02-01', 7)")
      await expectBoth('t', 'count(), sum(n)')
      const names = (): string[] => currentSchemaOf(metadataOf('t')).fields.map(({ name }) => name)
      expect(names()).toEqual(['ts', 's', 'x', 'a', 'n'])
      await run(one, 'alter table t drop column n')
      await untilCommitted(one, 't')
      expect(names()).toContain('n')
      await run(two, 'alter table t drop column n')
      await untilCommitted(two, 't')
      // A server says with its next rows that it has the column no more, and the other one drops the field with its own.
      for (const server of [one, two, one]) {
        await insert(server, 0, 10)
        await untilCommitted(server, 't')
      }
      expect(await until(() => !names().includes('n'), 20)).toBe(true)
    }
    {
      const before = metadataOf('t')
      const snapshot = snapshotOf(before)
      const id = '8219438290482394821'
      // It lists the same manifests once more.
      const update = {
        action: 'add-snapshot',
        snapshot: {
          ...snapshot,
          ...{
            'snapshot-id': id,
            'sequence-number': before['last-sequence-number'] + 1,
            summary: { operation: 'append' },
          },
        },
      }
      const ref = { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id }
      catalog.tables.set('qdb.t', committed(before, [], [update, ref]))
      await insert(one, 100, 50)
      await expectBoth('t', 'count(), sum(x)')
      expect(metadataOf('t').snapshots?.find((next) => next['parent-snapshot-id'] === id)).toBeDefined()
    }
  })

  test('a wider type of one server widens the field, and no server renames what others have', async () => {
    await run(one, 'create table w (ts timestamp, v int) timestamp(ts) partition by day lake on')
    await run(one, "insert into w values ('2024-01-01', 1)")
    await untilCommitted(one, 'w')
    await run(two, 'create table w (ts timestamp, v long) timestamp(ts) partition by day lake on')
    await run(two, "insert into w values ('2024-01-01', 5000000000)")
    await expectBoth('w', 'count(), sum(v)')
    expect(currentSchemaOf(metadataOf('w')).fields.map(({ type }) => type)).toEqual(['timestamptz', 'long'])
    await run(one, "insert into w values ('2024-01-01', 2)")
    await expectBoth('w', 'count(), sum(v)')
    await run(one, 'rename table w to w2')
    await failureOf(one, 'w2', 'other servers commit to the table')
    await run(one, 'drop table w2')
    expect(catalog.tables.has('qdb.w')).toBe(true)
  })

  test('a conflict of types stops the commits of that table, not its ingestion', async () => {
    await run(one, 'create table c (ts timestamp, v double) timestamp(ts) partition by day lake on')
    await run(one, "insert into c values ('2024-01-01', 1.5)")
    await untilCommitted(one, 'c')
    await run(two, 'create table c (ts timestamp, v varchar) timestamp(ts) partition by day lake on')
    await run(two, "insert into c values ('2024-01-01', 'text')")
    await failureOf(two, 'c', 'the column is string here and double in the catalog [column=v]')
    await run(two, "insert into c values ('2024-01-02', 'more')")
    expect(await two.rows('select count() from c')).toEqual([[2]])
    // They follow the next look at all tables.
    const warnings = async (): Promise<string> => (await fetch(`http://${two.address('http')}/warnings`)).text()
    const isTold = await until(async () =>
      (await warnings()).includes('the column is string here and double in the catalog'),
    )
    expect([isTold, await warnings()]).toEqual([true, expect.any(String)])
    await run(two, 'drop table c')
  })

  test('a table is renamed, taken out of the lake, dropped in the catalog, and changed by another program', async () => {
    {
      const [file] = sharedFiles(metadataOf('t'))
      const footer = readFileSync(new URL(file?.path ?? '')).toString('latin1')
      expect(footer.slice(-8)).toContain('PAR1')
      await run(one, 'create table f (ts timestamp, a double[], b int) timestamp(ts) partition by day lake on')
      await run(one, "insert into f values ('2024-01-01', ARRAY[1.0], 7)")
      await untilCommitted(one, 'f')
      expect(await fieldIds('f')).toEqual([1, 2, 4, 3])
    }
    await run(one, 'rename table f to g')
    expect(await until(() => catalog.tables.has('qdb.g') && !catalog.tables.has('qdb.f'))).toBe(true)
    await run(one, "insert into g values ('2024-01-02', ARRAY[2.0], 8)")
    await untilCommitted(one, 'g')
    expect(await readShared(metadataOf('g'), 'count(*), sum(b)')).toEqual([['2', '15']])
    await run(one, 'alter table g set lake off')
    await run(one, 'alter table g set lake on')
    await untilCommitted(one, 'g')
    expect(await readShared(metadataOf('g'), 'count(*), sum(b)')).toEqual([['2', '15']])
    catalog.tables.delete('qdb.g')
    await run(one, "insert into g values ('2024-01-03', ARRAY[2.0], 1)")
    await failureOf(one, 'g', 'the catalog does not have the table any more')
    await run(one, 'alter table g set lake off')
    await run(one, 'alter table g set lake on')
    await untilCommitted(one, 'g')
    expect(await readShared(metadataOf('g'), 'count(*), sum(b)')).toEqual([['3', '16']])
    {
      const before = metadataOf('g')
      const [first] = before.snapshots ?? []
      await run(one, "insert into g values ('2024-01-04', ARRAY[2.0], 100)")
      await untilCommitted(one, 'g')
      const after = metadataOf('g')
      const back = {
        action: 'set-snapshot-ref',
        'ref-name': 'main',
        type: 'branch',
        'snapshot-id': first?.['snapshot-id'],
      }
      catalog.tables.set('qdb.g', committed(after, [], [back]))
      await run(one, "insert into g values ('2024-01-05', ARRAY[2.0], 1000)")
      await failureOf(one, 'g', 'another program has replaced files of this server')
      catalog.tables.set('qdb.g', after)
      await untilCommitted(one, 'g')
      expect(await readShared(metadataOf('g'), 'count(*), sum(b)')).toEqual([['5', '1116']])
    }
  })
})

describe.concurrent('format version 3', () => {
  test('both servers give ids to rows; a server whose table has microseconds is told what to do', async () => {
    const create = 'create table n (ts timestamp_ns, x long) timestamp(ts) partition by day lake on format version 3'
    await Promise.all([run(one, create), run(two, create)])
    await Promise.all([run(one, `insert into n ${nanoRows(0)}`), run(two, `insert into n ${nanoRows(1000)}`)])
    await expectBoth('n', 'count(), sum(x)')
    expect(currentSchemaOf(metadataOf('n')).fields.map(({ type }) => type)).toEqual(['timestamptz_ns', 'long'])
    const before = expectRowIds('n')
    await Promise.all([run(one, 'update n set x = x + 1 where x < 50'), run(two, 'delete from n where x % 300 = 0')])
    await expectBoth('n', 'count(), sum(x)')
    expectRowIds('n', before)
    await run(one, create.replace('table n', 'table n2'))
    await run(one, `insert into n2 ${nanoRows(0)}`)
    await untilCommitted(one, 'n2')
    await run(two, 'create table n2 (ts timestamp_ns, x long) timestamp(ts) partition by day lake on')
    await run(two, `insert into n2 ${nanoRows(1000)}`)
    await failureOf(two, 'n2', 'timestamptz_ns in the catalog: set LAKE ON FORMAT VERSION 3 [column=ts]')
    await run(two, 'alter table n2 set lake on format version 3')
    await expectBoth('n2', 'count(), sum(x)')
    expectRowIds('n2')
  })

  test('a table of version 2 is raised with its files, whose rows keep their ids from then on', async () => {
    const create = 'create table v (ts timestamp, x long) timestamp(ts) partition by day lake on'
    await Promise.all([run(one, create), run(two, create)])
    const add = (server: TestServer, first: number): Promise<void> =>
      run(
        server,
        `insert into v select dateadd('m', (x * 7)::int, '2024-01-01'::timestamp), x + ${first} from long_sequence(500)`,
      )
    await Promise.all([add(one, 0), add(two, 1000)])
    await expectBoth('v', 'count(), sum(x)')
    const before = metadataOf('v')
    await run(one, 'alter table v set lake on format version 3')
    expect(await until(() => metadataOf('v')['format-version'] === 3)).toBe(true)
    expect(metadataOf('v')['table-uuid']).toBe(before['table-uuid'])
    expect(sharedFiles(metadataOf('v'))).toEqual(sharedFiles(before))
    await add(two, 5000)
    await expectBoth('v', 'count(), sum(x)')
    let ids = expectRowIds('v')
    // Manifests that were written in version 2 are written again.
    for (const change of ["alter table v drop partition list '2024-01-02'", 'update v set x = x + 1 where x < 40']) {
      await run(one, change)
      await run(two, change)
      await expectBoth('v', 'count(), sum(x)')
      ids = expectRowIds('v', ids)
    }
  })

  test('where the catalog does not support it, commits stop with the reason, and ingestion does not', async () => {
    for (const [table, answer] of [['r', 'refused'], ['i', 'ignored']] as const) catalog.version3.set(`qdb.${table}`, answer) // biome-ignore format: one line
    const create = (table: string): string =>
      `create table ${table} (ts timestamp, x long) timestamp(ts) partition by day lake on format version 3`
    await run(one, create('r'))
    await run(one, create('i'))
    await run(one, "insert into r values ('2024-01-01', 1)")
    const words = 'the catalog gives the table no format version 3: '
    await failureOf(one, 'r', `${words}the catalog answers 400: Unsupported format version: v3`)
    await failureOf(one, 'i', `${words}its answer is a table of version 2 [table=qdb.i]`)
    await run(one, "insert into r values ('2024-01-02', 2)")
    expect(await one.rows('select count() from r')).toEqual([[2]])
    const warnings = async (): Promise<string> => (await fetch(`http://${one.address('http')}/warnings`)).text()
    expect(await until(async () => (await warnings()).includes(words))).toBe(true)
    catalog.version3.clear()
    for (const table of ['r', 'i']) await untilCommitted(one, table)
    expect(await readShared(metadataOf('r'), 'count(*), sum(x)')).toEqual([['2', '3']])

    await run(one, 'create table r2 (ts timestamp, x long) timestamp(ts) partition by day lake on')
    await run(one, "insert into r2 values ('2024-01-01', 1)")
    await untilCommitted(one, 'r2')
    catalog.version3.set('qdb.r2', 'refused')
    await run(one, 'alter table r2 set lake on format version 3')
    await failureOf(one, 'r2', `${words}the catalog answers 400: Unsupported format version: v3`)
    expect(await readShared(metadataOf('r2'), 'count(*), sum(x)')).toEqual([['1', '1']])
    await run(one, 'alter table r2 set lake off')
    await run(one, 'alter table r2 set lake on')
    await run(one, "insert into r2 values ('2024-01-02', 2)")
    await untilCommitted(one, 'r2')
    expect(await readShared(metadataOf('r2'), 'count(*), sum(x)')).toEqual([['2', '3']])
  })

  test('microseconds do not become nanoseconds in a table that the catalog has', async () => {
    await run(one, 'create table k (ts timestamp_ns, x long) timestamp(ts) partition by day lake on')
    await run(one, `insert into k ${nanoRows(0)}`)
    await untilCommitted(one, 'k')
    await run(one, 'alter table k set lake on format version 3')
    const words = 'the column is timestamptz_ns here and timestamptz in the catalog'
    await failureOf(one, 'k', `${words}: drop the table there, and it is created again [column=ts]`)
    expect(metadataOf('k')['format-version']).toBe(2)
    catalog.tables.delete('qdb.k')
    await untilCommitted(one, 'k')
    expect(currentSchemaOf(metadataOf('k')).fields.map(({ type }) => type)).toEqual(['timestamptz_ns', 'long'])
    expectRowIds('k')
    expect(await readShared(metadataOf('k'), 'count(*), sum(x)')).toEqual([['500', '125250']])
  })
})

test('faults of the catalog and kills leave the rows of both servers, each once', async () => {
  const random = createRandom(1)
  const commits = catalog.commits()
  for (let round = 0; round < 2; round++) {
    catalog.fault = (method) => {
      if (random.chance(0.03)) catalog.expireTokens()
      if (!random.chance(method === 'POST' ? 0.4 : 0.1)) return null
      const applied = random.chance(0.5)
      if (random.chance(0.3)) return { applied, answer: 'hang' }
      if (random.chance(0.3)) return { applied, answer: 'reset' }
      return random.chance(0.3) ? { applied: false, answer: 409 } : { applied, answer: random.chance(0.5) ? 500 : 503 }
    }
    await Promise.all([insert(one, round * 1000), insert(two, round * 1000 + 500)])
    await new Promise((later) => setTimeout(later, 300 + random.next() * 1200))
    // Everything that the current snapshot names is there.
    expect(sharedFiles(metadataOf('t')).length).toBeGreaterThan(0)
    await (round % 2 === 0 ? one : two).restart('SIGKILL')
  }
  catalog.fault = null
  await expectBoth('t', 'count(), sum(x)')
  expect(catalog.commits()).toBeGreaterThan(commits)
})

test('a commit whose response is lost, and which cannot be looked up, has its rows once', async () => {
  await run(one, 'create table l (ts timestamp, v int) timestamp(ts) partition by day lake on')
  await run(one, "insert into l values ('2024-01-01', 1)")
  await untilCommitted(one, 'l')
  const commits = catalog.commits()
  // Once its commit was applied, the catalog does not answer.
  catalog.fault = (method, path) => {
    if (!path.endsWith('/tables/l')) return null
    return catalog.commits() > commits ? { applied: false, answer: 503 } : { applied: method === 'POST', answer: 503 }
  }
  await run(one, "insert into l values ('2024-01-02', 2)")
  await failureOf(one, 'l', '503')
  expect(catalog.commits()).toBe(commits + 1)
  catalog.fault = null
  await untilCommitted(one, 'l')
  await run(one, "insert into l values ('2024-01-03', 4)")
  await untilCommitted(one, 'l')
  expect(await readShared(metadataOf('l'), 'count(*), sum(v)')).toEqual([['3', '7']])
})
