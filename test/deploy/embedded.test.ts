// Goal: a database opened in-process by `import { open } from 'penstock'` stores and returns values of every type,
// rejects invalid folders, and keeps acknowledged rows when its process is killed; the documented examples run.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BatchColumn, Database, InputValue } from '../../deploy/embedded/api.js'
import { repositoryRoot } from '../support/docs/source-tree.js'

const built = join(repositoryRoot, 'dist/deploy/embedded/index.js')
const { open, DatabaseError } = (await import(built)) as typeof import('../../deploy/embedded/index.js')
const settings = { 'memory.bytes': '512m', 'query.threads': 1, 'telemetry.enabled': false }
const folder = mkdtempSync(join(tmpdir(), 'penstock-embedded-'))
let db: Database

beforeAll(async () => {
  db = await open(join(folder, 'root'), { settings })
})

afterAll(async () => {
  await db.close()
  rmSync(folder, { recursive: true, force: true })
})

async function rows(sql: string, parameters: readonly InputValue[] = []): Promise<unknown[]> {
  return (await db.query(sql, parameters)).rows()
}

/** What a rejected promise says. */
async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(DatabaseError)
  const { code, position, message } = error as InstanceType<typeof DatabaseError>
  return `${code} ${position} ${message}`
}

test('values of every type come back', async () => {
  await db.execute(
    `create table every (ts timestamp, bool boolean, byte byte, short short, int int, long long, float float, double double,
      char char, string string, varchar varchar, symbol symbol, uuid uuid, ipv4 ipv4, long256 long256, geo geohash(4c),
      decimal decimal(20,4), nanos timestamp_ns, date date, binary binary, list double[], grid double[][])
      timestamp(ts) partition by day`,
  )
  const full = {
    ...{ ts: 1_767_261_600_000_000n, bool: true, byte: -5, short: 300, int: -70_000, long: 2n ** 62n, float: 0.5 },
    ...{ double: -1e300, char: 'x', string: 'straße', varchar: '😀', symbol: 'a', ipv4: '10.1.2.3' },
    ...{ uuid: '123e4567-e89b-12d3-a456-426614174000', long256: '0x1f', geo: 'u4pr', decimal: '-12345.6789' },
    ...{ nanos: 1_767_261_600_123_456_789n, date: 86_400_000n, binary: Uint8Array.of(0, 255) },
    ...{
      list: [1, null, 3],
      grid: [
        [1, 2],
        [3, 4],
      ],
    },
  }
  const columns = Object.fromEntries(Object.entries(full).map(([name, value]) => [name, [value, null]]))
  expect(await db.ingestColumns('every', { ...columns, ts: [full.ts, full.ts + 1n] })).toBe(2)
  const [first, second] = await rows('select * from every order by ts')
  expect(first).toEqual(full)
  const absent = Object.fromEntries(Object.keys(full).map((name) => [name, null]))
  expect(second).toEqual({ ...absent, ts: full.ts + 1n, bool: false, byte: 0, short: 0, char: '' })
})

test('batches have typed arrays, and the values that rows have', async () => {
  const result = await db.query("select x, x * 0.5 half, 'n' || x name from long_sequence(100_000)")
  expect(result.columns.map(({ type }) => type)).toEqual(['LONG', 'DOUBLE', 'STRING'])
  let [count, sum] = [0, 0]
  for await (const { rows, columns } of result.batches()) {
    const [x, half, name] = columns as [BatchColumn, BatchColumn, BatchColumn]
    expect([x.data?.length, half.data?.length, name.data]).toEqual([rows, rows, null])
    for (const value of half.data as Float64Array) sum += value
    expect(name.get(rows - 1)).toBe(`n${x.get(rows - 1)}`)
    expect(() => x.get(rows)).toThrow(RangeError)
    count += rows
  }
  expect([count, sum]).toEqual([100_000, 2_500_025_000])
  expect(await refusal(result.rows())).toBe('SQL undefined the rows of a result can be read only once')
})

test('parameters have the types that the statement wants', async () => {
  expect(
    await rows('select $1::int + 1 a, $2 b, $3 c, $4 = $5 d, $6::timestamp e', [
      ...[41, 'text', null, 1.5, 1.5],
      new Date('2026-01-01T00:00:00.001Z'),
    ]),
  ).toEqual([{ a: 42, b: 'text', c: null, d: true, e: 1_767_225_600_001_000n }])
})

test('lines are one transaction, a stream is stored while it comes', async () => {
  expect(
    await db.ingestLines('cpu,host=a usage=1i 1767261600000\ncpu,host=b usage=2i 1767261600001\n', { precision: 'ms' }),
  ).toBe(2)
  expect(await refusal(db.ingestLines('cpu,host=c usage=3i\ncpu,host=c usage=oops\n'))).toMatch(/^ROW 2 /)
  expect(await rows('select count() n from cpu')).toEqual([{ n: 2n }])
  async function* stream(last: string): AsyncGenerator<string> {
    for (let i = 0; i < 10_000; i++)
      yield `stream,host=h${i % 3} value=${i}i ${1_767_261_600_000_000_000n + BigInt(i)}\n`
    yield last
  }
  expect(await db.ingestLines(stream(''))).toBe(10_000)
  expect(await refusal(db.ingestLines(stream('stream value=oops\n')))).toMatch(/^ROW /)
  expect(await refusal(db.ingestLines('a b=1 1', { precision: 'h' as 'ms' }))).toBe(
    'SQL undefined no such precision [value=h]',
  )
})

describe('columns that do not fit', () => {
  beforeAll(async () => {
    await db.execute('create table strict (ts timestamp, i int, d double default 5) timestamp(ts) partition by day')
  })
  const ts = [1n, 2n]
  test.each<[string, Record<string, ArrayLike<InputValue>>, string]>([
    ['nowhere', { ts }, 'SQL 0 table does not exist [table=nowhere]'],
    ['strict', { ts, no: [1, 2] }, 'SQL undefined column does not exist [table=strict, column=no]'],
    ['strict', { ts, d: ts, i: [1] }, 'SQL undefined columns differ in length [column=i, length=1, others=2]'],
    ['strict', { i: [1, 2], d: ts }, 'SQL undefined the designated timestamp is missing [column=ts]'],
    ['strict', { ts }, 'SQL undefined a column with a default needs values here; INSERT fills it [column=d]'],
    ['strict', { ts: [1n, null], d: ts }, 'ROW 2 designated timestamp cannot be NULL [column=ts, row=2]'],
    [
      'strict',
      { ts: [1n, -1n], d: ts },
      'ROW 2 designated timestamp before 1970-01-01 is not allowed [column=ts, row=2]',
    ],
    ['strict', { ts, d: ts, i: [1, 'x'] }, 'ROW 2 value does not fit its column [column=i, type=INT, row=2, value=x]'],
    [
      'strict',
      { ts, d: ts, i: [1, 2 ** 40] },
      'ROW 2 value does not fit its column [column=i, type=INT, row=2, value=1099511627776]',
    ],
  ])('%s: %o', async (table, columns, expected) => {
    expect(await refusal(db.ingestColumns(table, columns))).toBe(expected)
    expect(await rows('select count() n from strict')).toEqual([{ n: 0n }])
  })
})

test('statements that are wrong, slow or cancelled', async () => {
  expect(await refusal(db.query('select nothing from long_sequence(1)'))).toBe('SQL 7 Invalid column: nothing')
  expect(await refusal(db.query('create table made (a int)'))).toBe('SQL 0 the statement has no rows; use execute()')
  expect(await refusal(db.query('select * from made'))).toMatch(/^SQL 14 table does not exist/)
  expect(await refusal(db.execute('select 1; select 2'))).toBe('SQL 10 only one statement is allowed')
  expect(await refusal(db.execute(''))).toBe('SQL 0 there is no statement')
  const endless = 'select count() from long_sequence(1_000_000) a cross join long_sequence(1_000_000) b'
  const all = (options: object): Promise<unknown> => db.query(endless, [], options).then((result) => result.rows())
  expect(await refusal(all({ timeoutSeconds: 0.2 }))).toMatch(/^TIMEOUT /)
  expect(await refusal(all({ signal: AbortSignal.timeout(200) }))).toMatch(/^CANCELLED /)
})

test('a result that is left ends its query', async () => {
  for await (const row of await db.query('select x from long_sequence(100_000_000)')) {
    expect(row).toEqual({ x: 1n })
    break
  }
  const unread = await db.query('select x from long_sequence(100_000_000)')
  await unread.close()
  await expect.poll(() => rows('select count() n from query_activity()')).toEqual([{ n: 1n }])
})

test('statements tell their rows', async () => {
  await db.execute('create table told (ts timestamp, v long) timestamp(ts) partition by day')
  expect(await db.execute('insert into told values (1, 1), (2, 2)')).toEqual({
    command: 'INSERT',
    rows: 2,
    notices: [],
  })
  expect(await rows('insert into told values (3, 3) returning v')).toEqual([{ v: 3n }])
  expect(await db.execute('update told set v = 0 where v > 1')).toEqual({ command: 'UPDATE', rows: 2, notices: [] })
  expect(await db.execute('delete from told where v = 0 returning v')).toEqual({
    command: 'DELETE',
    rows: 2,
    notices: [],
  })
  // Its columns are known when a query has run.
  const pivoted = "(select ts, 'n' k, v from told) pivot (max(v) for k in (select 'n') group by ts)"
  expect(await rows(`insert into told select * from ${pivoted} returning v`)).toEqual([{ v: 1n }])
})

test('one process at a time has a folder, and it opens again', async () => {
  expect(await refusal(open(join(folder, 'root'), { settings }))).toMatch(
    /^RESOURCE undefined another server uses the folder/,
  )
  expect(await refusal(open(join(folder, 'other'), { settings: { 'no.such': 1 } }))).toMatch(/unknown setting/)
  const second = await open(join(folder, 'second'), { settings })
  await second.ingestLines('kept value=1')
  await second.close()
  expect(await refusal(second.query('select 1'))).toBe('CLOSED undefined the database is closed')
  const again = await open(join(folder, 'second'), { settings })
  expect(await (await again.query('select value from kept')).rows()).toEqual([{ value: 1 }])
  await again.close()
})

test('acknowledged rows survive a kill', async () => {
  const root = join(folder, 'killed')
  const program = `
    import { open } from ${JSON.stringify(built)}
    const db = await open(${JSON.stringify(root)}, { settings: ${JSON.stringify(settings)} })
    for (let i = 0; ; i++) { await db.ingestLines('killed value=' + i + 'i'); console.log(i) }`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  for await (const chunk of child.stdout) {
    output += chunk
    if (output.split('\n').length > 20) break
  }
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  const last = Number(output.trimEnd().split('\n').at(-1))
  const reopened = await open(root, { settings })
  const [row] = await (await reopened.query('select count() n, max(value) last from killed')).rows()
  expect(Number(row?.n)).toBe(Number(row?.last) + 1)
  expect(Number(row?.last)).toBeGreaterThanOrEqual(last)
  await reopened.close()
})

test('the documented examples run, and end by themselves', async () => {
  const text = readFileSync(join(repositoryRoot, 'docs/embedding.md'), 'utf8')
  const examples = [...text.matchAll(/```js\n(.*?)```/gs)].map(([, code = '']) => code)
  const outputs: string[] = []
  for (const code of examples) {
    const placed = code.replaceAll("'./", `'${folder}/`)
    const run = promisify(execFile)(process.execPath, ['--no-deprecation', '--input-type=module', '-e', placed], {
      cwd: repositoryRoot,
    })
    outputs.push((await run).stdout)
  }
  expect(outputs).toEqual([
    'Oslo 3.5\nRome 18.1\n',
    "{ command: 'CREATE TABLE', rows: 0, notices: [] }\n",
    "3\n[ { 'count()': 4n, 'sum(size)': 10n } ]\n",
    '625012500\n',
    'SQL 14 table does not exist [table=nowhere]\n',
  ])
})

// Line protocol, binary parameters and COPY BINARY store infinite values; what expressions compute is never infinite.
test('an infinite minimum or maximum is NULL, by any plan', async () => {
  await db.execute(
    'create table endless (ts timestamp, k symbol, d double, f float, n long) timestamp(ts) partition by day',
  )
  const valueAt = (n: number): string =>
    n % 3 === 0 ? `${n % 2 === 0 ? '-' : ''}Infinity` : n === 2 ? 'Infinity' : `${n % 3 === 1 ? n : -n}`
  const lines = Array.from({ length: 999 }, (_, n) => {
    return `endless,k=${'abc'[n % 3]} d=${valueAt(n)},f=${valueAt(n)},n=${n}i ${n + 1}000000000\n`
  })
  await db.ingestLines(lines.join(''))
  const key = { a: [null, null], b: [1, 997], c: [-998, null] }
  const byKey = Object.entries(key).map(([k, [low, high]]) => ({ k, low, high }))
  for (const place of ['in memory', 'in parts']) {
    for (const c of ['d', 'f']) {
      const extremes = `min(${c}) low, max(${c}) high`
      const whole = [{ low: null, high: null }]
      const plans: readonly (readonly [sql: string, expected: readonly unknown[]])[] = [
        [`select ${extremes} from endless`, whole],
        [`select ${extremes} from endless where n > 3 and k != 'x'`, whole],
        [`select ${extremes} from (select * from endless order by n limit 900)`, whole],
        [`select ${extremes} from endless a join (select n from endless) b on a.n = b.n`, whole],
        [`select ${extremes} from endless sample by 1d`, whole],
        [`select k, ${extremes} from endless order by k`, byKey],
        [`select k, ${extremes} from endless where n >= 0 group by k order by k`, byKey],
        [
          `select low, high from (select k, ${extremes}, string_agg(k, '') from endless) order by k`,
          byKey.map(({ k: _, ...both }) => both),
        ],
        [
          `select 'abc'::varchar s, low, high from (select n % 3 g, ${extremes} from endless) order by g`,
          byKey.map(({ low, high }) => ({ s: 'abc', low, high })),
        ],
        [`select distinct min(${c}) over () low, max(${c}) over () high from endless`, whole],
        [
          `select distinct k, min(${c}) over (partition by k) low, max(${c}) over (partition by k) high from endless order by k`,
          byKey,
        ],
        [
          `select k, min(${c}) over (partition by k order by n) low, max(${c}) over (partition by k order by n) high from endless order by n desc limit 3`,
          byKey.toReversed(),
        ],
        [
          `select k, min(${c}) over (order by n rows 2 preceding) low, max(${c}) over (order by n rows 2 preceding) high from endless order by n desc limit 1`,
          [{ k: 'c', low: null, high: 997 }],
        ],
      ]
      for (const [sql, expected] of plans) expect(await rows(sql), `${place}: ${sql}`).toEqual(expected)
    }
    await db.execute('checkpoint')
  }
  await db.execute('drop table endless')
})
