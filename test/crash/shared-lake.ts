// `node dist/test/crash/shared-lake.js --python P [--engine pyiceberg].. [--kills n] [--rows n] [--seed n]
// [--version3 supported|refused]`: two servers append to one Iceberg table through the external catalog in
// $PENSTOCK_CATALOG. The object store is the S3 service in $PENSTOCK_S3, or a folder.
//
// The first kill (SIGKILL) hits a server whose rows are in its log and not yet in a snapshot. Then both servers add a
// column, one updates rows and the other deletes some. The later kills hit one of the two servers at random times
// around its commits. At the end of each round every query engine named by --engine reads the table. The counts, sums,
// minima and maxima that it computes must be those of the rows of both servers together.
//
// With --version3 supported, the table is raised to format version 3 before the first kill, and another one is created
// with nanoseconds. With --version3 refused, the catalog has version 2 alone: commits of such tables stop, and go on
// when the tables ask for version 2 again.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { randomNumbers } from '../bench/line-template.js'
import { TestServer } from '../support/server.js'
import { catalogUrl, figuresIn, s3Url, sharedLakeSettings, tablesUrl, untilInLake } from '../support/shared-servers.js'

const { values } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    engine: { type: 'string', multiple: true, default: ['pyiceberg'] },
    kills: { type: 'string', default: '4' },
    rows: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
    version3: { type: 'string', default: '' },
  },
})

const rows = Number(values.rows)
const random = randomNumbers(Number(values.seed))
const begun = performance.now()
/** Rows from here on are counted on their own, for which engines skip files. */
const since = '2024-01-03T00:00:00'

/** What is compared: over both servers, counts and sums are added. */
const figures = [
  ['count', '*'],
  ...['b', 'n', 'l', 'd', 'de'].map((column) => ['sum', column]),
  ...['b', 'ts', 's', 'v', 'u', 'ip', 'n', 'more'].map((column) => ['count', column]),
  ...['ts', 'da', 's', 'v', 'n', 'l', 'f', 'd', 'de'].flatMap((column) => [
    ['min', column],
    ['max', column],
  ]),
] as const
const times = new Set(['ts', 'da'])

function say(text: string): void {
  process.stdout.write(`${((performance.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}\n`)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function insert(server: TestServer, first: number, count: number): Promise<unknown> {
  return server.rows(
    `insert into t (ts, s, v, b, n, l, f, d, da, de, u, ip) select dateadd('s', (x * 37)::int, '2024-01-01'::timestamp),` +
      ` 's' || x % 9, case when x % 11 = 0 then null else 'v' || x end, (x % 100)::byte, (x + ${first})::int,` +
      ` x * 1000007, x / 4.0f, x / 8.0, (x * 86400000)::date, (x || '.1234')::decimal(20, 4), rnd_uuid4(), rnd_ipv4()` +
      ` from long_sequence(${count})`,
  )
}

/** What the catalog answers, without blanks. */
async function loaded(table: string): Promise<string> {
  return (await (await fetch(`${tablesUrl}/${table}`)).text()).replaceAll(/\s/g, '')
}

/** Rows of the current snapshot, as the catalog has it. */
async function committedRows(table: string): Promise<number> {
  const text = await loaded(table)
  const current = /"current-snapshot-id":(\d+)/.exec(text)?.[1]
  const at = text.indexOf(`"snapshot-id":${current},`, text.indexOf('"snapshots"'))
  return Number(/"total-records":"(\d+)"/.exec(text.slice(at))?.[1])
}

/** The figures over the rows of all servers. */
async function expected(servers: readonly TestServer[], where: string): Promise<(number | string)[]> {
  const columns = figures.map(([name, column]) => {
    const figure = column === '*' ? 'count()' : `${name}(${column})`
    if (!times.has(column) || name === 'count') return figure
    return column === 'da' ? `${figure}::long * 1000` : `${figure}::long`
  })
  const found = await Promise.all(servers.map((server) => server.rows(`select ${columns.join()} from t${where}`)))
  return figures.map(([name], at) => {
    const parts = found.map(([row]) => row?.[at]).filter((value) => value !== null && value !== undefined)
    const sorted = [...parts].sort((x, y) => (typeof x === 'string' && Number.isNaN(Number(x)) ? (x < String(y) ? -1 : 1) : Number(x) - Number(y))) // biome-ignore format: one call
    if (name === 'min') return String(sorted[0])
    if (name === 'max') return String(sorted.at(-1))
    return parts.reduce<number>((sum, value) => sum + Number(value), 0)
  })
}

function isSame(one: unknown, other: unknown): boolean {
  const [x, y] = [Number(one), Number(other)]
  if (Number.isNaN(x) || Number.isNaN(y)) return String(one) === String(other)
  return Math.abs(x - y) <= 1e-9 * Math.max(1, Math.abs(x))
}

async function compare(servers: readonly TestServer[], what: string): Promise<void> {
  for (const server of servers) await untilInLake(server, 't')
  for (const from of [null, since]) {
    const wanted = await expected(servers, from === null ? '' : ` where ts >= '${from}'`)
    for (const engine of values.engine) {
      const found = figuresIn({ python: values.python, engine, table: 't', figures, since: from })
      const at = figures.findIndex((_, index) => !isSame(wanted[index], found[index]))
      if (at >= 0) throw new Error(`${what}: ${figures[at]?.join(' ')} is ${String(found[at])} in ${engine}, not ${String(wanted[at])}`) // biome-ignore format: one call
      say(`${what}: ${String(found[0])} rows in ${engine}${from === null ? '' : ` since ${from}`}`)
    }
  }
}

/** The table gets format version 3, and another one is created with it. */
async function raise([one, two]: readonly [TestServer, TestServer]): Promise<void> {
  await one.rows('alter table t set lake on format version 3')
  await untilInLake(one, 't')
  await Promise.all([insert(one, 7 * rows, 100), insert(two, 8 * rows, 100)])
  await compare([one, two], 'raised to format version 3')
  if (!(await loaded('t')).includes('"format-version":3')) throw new Error('the table has not format version 3')
  const create = 'create table n (ts timestamp_ns, x long) timestamp(ts) partition by day lake on format version 3'
  const nanos = `select ('2024-01-01T00:00:00.000000007Z'::timestamp_ns::long + x * 60000000007)::timestamp_ns, x from long_sequence(1000)`
  for (const server of [one, two]) {
    await server.rows(create)
    await server.rows(`insert into n ${nanos}`)
    await untilInLake(server, 'n')
  }
  await one.rows('update n set x = x + 1 where x < 10')
  await two.rows('delete from n where x > 990')
  for (const server of [one, two]) await untilInLake(server, 'n')
  if (!(await loaded('n')).includes('"type":"timestamptz_ns"')) throw new Error('n has no nanoseconds in the catalog')
  const found = await committedRows('n')
  if (found !== 1990) throw new Error(`n has ${found} rows in the catalog, not 1990`)
  if (!values.engine.includes('pyiceberg')) return
  const wanted = [['count', '*'], ['sum', 'x']] as const // biome-ignore format: one line
  const read = figuresIn({ python: values.python, engine: 'pyiceberg', table: 'n', figures: wanted })
  if (String(read) !== `1990,${2 * 500_500 + 9 - 9955}`) throw new Error(`n is read as ${String(read)}`)
  say('nanoseconds, 1990 rows in pyiceberg')
}

/** The catalog has format version 2 alone. */
async function refuse([one, two]: readonly [TestServer, TestServer]): Promise<void> {
  const failure = async (table: string): Promise<string> => {
    const end = performance.now() + 60_000
    for (;;) {
      const [row] = await one.rows(`select failure from lake_tables() where table_name = '${table}'`)
      if (String(row?.[0]).includes('the catalog gives the table no format version 3')) return String(row?.[0])
      if (performance.now() > end) throw new Error(`the catalog refuses nothing: ${String(row)}`)
      await pause(100)
    }
  }
  await one.rows('create table r (ts timestamp, x long) timestamp(ts) partition by day lake on format version 3')
  await one.rows("insert into r values ('2024-01-01', 1)")
  say(`a new table: ${await failure('r')}`)
  await one.rows('alter table t set lake on format version 3')
  await insert(one, 7 * rows, 100)
  say(`a table that is there: ${await failure('t')}`)
  const [counts] = await one.rows('select (select count() from r), (select count() from t)')
  if (String(counts) !== `1,${rows + 100}`) throw new Error(`ingestion has stopped: ${String(counts)}`)
  for (const table of ['r', 't']) {
    await one.rows(`alter table ${table} set lake off`)
    await one.rows(`alter table ${table} set lake on`)
    await untilInLake(one, table)
  }
  await compare([one, two], 'in version 2 again')
}

async function run(servers: readonly [TestServer, TestServer]): Promise<void> {
  const create =
    'create table t (ts timestamp, s symbol, v varchar, b byte, n int, l long, f float, d double, da date,' +
    ' de decimal(20, 4), u uuid, ip ipv4, more int) timestamp(ts) partition by day lake on'
  await Promise.all(servers.map((server) => server.rows(create)))
  await Promise.all(servers.map((server, index) => insert(server, index * rows, rows)))
  await compare(servers, 'both have inserted')
  if (values.version3 === 'supported') await raise(servers)
  if (values.version3 === 'refused') await refuse(servers)

  const [one, two] = servers
  const before = await committedRows('t')
  await insert(two, 5 * rows, rows)
  await two.end('SIGKILL')
  const after = await committedRows('t')
  if (after !== before) throw new Error(`the rows are in a snapshot already: ${after}, not ${before}`)
  await insert(one, 6 * rows, 1000)
  await two.start()
  await compare(servers, 'killed between log and snapshot')

  await one.rows(`update t set n = n + 5 where s = 's1'`)
  await two.rows(`delete from t where s = 's2'`)
  await Promise.all(servers.map((server) => server.rows('alter table t add column extra int')))
  await Promise.all(servers.map((server) => server.rows(`insert into t (ts, extra, more) values ('2024-02-01', 7, 8)`)))
  await compare(servers, 'updated, deleted, another column')

  for (let kill = 1; kill <= Number(values.kills); kill++) {
    const [first, second] = kill % 2 === 0 ? [one, two] : [two, one]
    await Promise.all([insert(first, kill * rows, rows), insert(second, kill * rows, rows / 2)])
    const waitMs = Math.floor(random() * 2500)
    await pause(waitMs)
    await first.end('SIGKILL')
    await insert(second, 0, 100)
    await first.start()
    await compare(servers, `kill ${kill}, ${waitMs} ms behind the rows`)
  }
}

if (catalogUrl === '') throw new Error('PENSTOCK_CATALOG names no catalog')
const folder = mkdtempSync(join(tmpdir(), 'penstock-lake-'))
const servers = [new TestServer(sharedLakeSettings(folder)), new TestServer(sharedLakeSettings(folder))] as const
try {
  say(`${s3Url === '' ? 'a folder' : 'an S3 service'}, seed ${values.seed}`)
  await Promise.all(servers.map((server) => server.start()))
  await run(servers)
  say('each row is there exactly once')
} finally {
  await Promise.all(servers.map((server) => server.remove()))
  rmSync(folder, { recursive: true, force: true })
}
