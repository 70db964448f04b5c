// Goal: the command line tool `penstock` works against a running server: imports of a SQLite dump, CSV and line
// protocol, exports and statements, with the exit codes and messages that scripts rely on.

import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { repositoryRoot } from '../support/docs/source-tree.js'
import { TestServer } from '../support/server.js'

const server = new TestServer(['memory.bytes=512m'])
const folder = mkdtempSync(join(tmpdir(), 'penstock-tool-'))

beforeAll(() => server.start())
afterAll(async () => {
  await server.remove()
  rmSync(folder, { recursive: true, force: true })
})

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

function tool(args: readonly string[], input = '', url = `http://${server.address('http')}`): Promise<Ended> {
  const command = join(repositoryRoot, 'dist/deploy/cli.js')
  const child = spawn(process.execPath, [command, ...args], { env: { ...process.env, PENSTOCK_URL: url } })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err += chunk))
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })))
}

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const dump = (from: number, rows: number): string => `BEGIN TRANSACTION;
CREATE TABLE readings(id INTEGER PRIMARY KEY, at TEXT, sensor TEXT, value REAL, raw BLOB);
${Array.from({ length: rows }, (_, n) => `INSERT INTO readings VALUES(${from + n},'2024-03-0${(n % 9) + 1} 00:00:00','s${n % 3}',${n / 4},X'0${n % 10}');`).join('\n')}
CREATE INDEX i ON readings(sensor);
CREATE VIEW hot AS SELECT sensor, value FROM readings WHERE value > 100;
CREATE VIEW odd AS SELECT sensor FROM readings WHERE value GLOB '1*';
COMMIT;
`

test('a dump becomes tables, by file, by standard input, and once more into the same table', async () => {
  const first = await tool(['import', '--from-sqlite', file('a.sql', dump(0, 30_000))])
  expect(first.err).toBe('')
  expect(first.code).toBe(0)
  expect(first.out).toContain('readings: 30000 rows, timestamp at, partition by DAY')
  expect(first.out).toContain('view hot')
  expect(first.out).toMatch(/line 30005, odd: rejected: /)
  const second = await tool(['import', '--from-sqlite', '-', '--json'], dump(30_000, 1000))
  expect(JSON.parse(second.out)).toMatchObject({ status: 'OK', rowsImported: 1000, rowsRejected: 0 })
  expect(
    await server.rows('select count(), sum(id), sum(value), count(raw), count_distinct(sensor) from readings'),
  ).toEqual([[31_000, (31_000 * 30_999) / 2, (30_000 * 29_999) / 8 + (1000 * 999) / 8, 31_000, 3]])
  expect(await server.rows("select type, indexed from table_columns('readings') where \"column\" = 'sensor'")).toEqual([
    ['SYMBOL', true],
  ])
  const gone = await tool(['import', file('b.sql.gz', gzipSync(dump(0, 10))), '--overwrite', '--partition-by', 'MONTH'])
  expect(gone.out).toContain('10 rows, timestamp at, partition by MONTH')
  expect(await server.rows('select count() from readings')).toEqual([[10]])
})

test('an import that ends at a bad row leaves nothing behind', async () => {
  const text = `CREATE TABLE bad(a INTEGER);\n${'INSERT INTO bad VALUES(1);\n'.repeat(10_001)}INSERT INTO bad VALUES('x');\n`
  const { code, err } = await tool(['import', '--from-sqlite', '-', '--atomicity', 'abort'], text)
  expect(code).toBe(1)
  expect(err).toBe('penstock: line 10003, table bad: no LONG for the column a [value=x]\n')
  expect((await server.rows('show tables')).flat()).not.toContain('bad')
  expect(
    (await server.rows('select table_name from all_tables()')).flat().filter((name) => /^__/.test(String(name))),
  ).toEqual([])
})

test('CSV and line protocol', async () => {
  const csv = await tool([
    'import',
    file('trips.csv', 'ts,n\n2024-01-01T00:00:00.000000Z,1\n'),
    '--header',
    '--timestamp',
    'ts',
    '--json',
  ])
  expect(csv.err).toBe('')
  expect(JSON.parse(csv.out)).toMatchObject({ status: 'OK', location: 'trips', rowsImported: 1, timestamp: 'ts' })
  const lines = await tool(['import', '-f', 'lines', '--precision', 's', '-'], 'w,c=o t=1 1\nw,c=o t=2 2\n')
  expect(lines.out).toBe('2 lines stored\n')
  expect(await server.rows('select count(), max(timestamp) from w')).toEqual([[2, '1970-01-01T00:00:02.000000Z']])
  const bad = await tool(['import', '-f', 'lines', '-'], 'w t=1 1\nw t=nope 2\n')
  expect(bad.code).toBe(1)
  expect(bad.err).toMatch(/line 2.*nothing was stored/s)
})

test('export verifies what it got, sql shows it', async () => {
  await tool(['sql'], "create table q(s string, n long); insert into q values('a,\"b', 1), (null, -2);")
  const target = join(folder, 'q.csv')
  const saved = await tool(['export', 'q', '-o', target])
  expect(saved).toEqual({ code: 0, out: '', err: `2 rows to ${target}\n` })
  expect(readFileSync(target, 'utf8')).toBe('"s","n"\r\n"a,""b",1\r\n,-2\r\n')
  expect((await tool(['export', 'select n from q', '-f', 'ndjson'])).out).toBe('{"n":1}\n{"n":-2}\n')
  const table = await tool(['sql', '-e', 'select s, n from q; select count() from q'])
  expect(table.out).toBe('s    | n\n-----+---\na,"b |  1\n     | -2\n(2 rows)\ncount()\n-------\n      2\n(1 row)\n')
  expect((await tool(['sql', '-f', 'csv', '-e', 'select s, n from q'])).out).toBe('s,n\n"a,""b",1\n,-2\n')
  expect(JSON.parse((await tool(['sql', '-f', 'json', '-e', 'select n from q'])).out)).toMatchObject({ count: 2 })
  const odd = "select 'a|b' t, 9007199254740993 n, null::int z, concat('x', chr(9), 'y', chr(10)) w"
  expect((await tool(['sql', odd, '-f', 'tsv'])).out).toBe('t\tn\tz\tw\na|b\t9007199254740993\t\tx\\ty\\n\n')
  expect((await tool(['sql', odd, '-f', 'jsonl'])).out).toBe(
    '{"t":"a|b","n":"9007199254740993","z":null,"w":"x\\ty\\n"}\n',
  )
  expect((await tool(['sql', 'select s, n from q', '-f', 'markdown'])).out).toBe(
    '| s | n |\n| --- | ---: |\n| a,"b | 1 |\n|  | -2 |\n',
  )
  expect((await tool(['sql', 'select s, n from q limit 1', '-f', 'vertical'])).out).toBe(
    '-- 1 --\ns | a,"b\nn | 1\n(1 row)\n',
  )
  expect((await tool(['sql', 'select 1', '-e', 'select 2'])).code).toBe(2)
})

test('exit status: 1 refused, 2 usage, 3 unreachable', async () => {
  expect(await tool(['sql', '-e', 'select nope'])).toMatchObject({
    code: 1,
    err: 'penstock: Invalid column: nope [position=7]\nline 1: select nope\n               ^\n',
  })
  expect((await tool(['export', 'nowhere'])).err).toMatch(/^penstock: table does not exist \[table=nowhere\]/)
  expect((await tool(['sql', '--nope'])).code).toBe(2)
  expect((await tool(['import', 'no-such-file.csv'])).code).toBe(2)
  expect((await tool(['import', '-f', 'csv', '-'])).code).toBe(2)
  expect(await tool(['sql', '-e', 'select 1'], '', 'http://127.0.0.1:1')).toMatchObject({ code: 3 })
})

test('the name of a file chooses the format of its results', async () => {
  const into = async (name: string, statement: string): Promise<string> => {
    const path = join(folder, name)
    expect((await tool(['sql', statement, '-o', path])).code).toBe(0)
    return readFileSync(path, 'latin1')
  }
  // One statement is exported: with all rows.
  expect((await into('all.csv', 'select x from long_sequence(20000)')).split('\n').length).toBe(20_002)
  expect((await into('all.parquet', 'select x from long_sequence(20000)')).slice(0, 4)).toBe('PAR1')
  expect(await into('all.tsv', "select 1 a, 'x' b")).toBe('"a"\t"b"\n1\tx\n'.replaceAll('\n', '\r\n'))
  expect(await into('all.jsonl', 'select 1 a')).toBe('{"a":1}\n')
  expect(await into('two.md', 'select 1 a; select 2 b')).toBe('| a |\n| ---: |\n| 1 |\n| b |\n| ---: |\n| 2 |\n')
  expect(await into('page.html', "select '<b>' a, 2 b")).toContain('<tr><td>&#60;b&#62;</td><td class="n">2</td></tr>')
  expect((await tool(['sql', 'select 1; select 2', '-o', join(folder, 'two.parquet')])).code).toBe(2)
  for (const name of ['zipped.csv.gz', 'zipped.json.gz']) await into(name, 'select 1 a')
  const unzipped = (name: string): string => gunzipSync(readFileSync(join(folder, name))).toString()
  expect(unzipped('zipped.csv.gz')).toBe('"a"\r\n1\r\n')
  expect(JSON.parse(unzipped('zipped.json.gz'))).toMatchObject({ dataset: [[1]] })
  for (const command of ['sql', 'export']) {
    const odd = await tool([command, 'select 1 a', '-o', join(folder, 'weekly.xlsx')])
    expect(odd).toMatchObject({ code: 2, err: expect.stringContaining('no format has the ending .xlsx: use .csv, ') })
    expect((await tool([command, 'select 1 a', '-f', 'csv', '-o', join(folder, 'weekly.xlsx')])).code).toBe(0)
    const missing = await tool([command, 'select 1 a', '-o', join(folder, 'none', 'a.csv')])
    expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('the folder does not exist: ') })
  }
})

test('damaged gzip files and files of another format are errors', async () => {
  const long = gzipSync(`a,b\n${Array.from({ length: 100_000 }, () => `${Math.random()},2\n`).join('')}`)
  for (const bad of [file('no.csv.gz', 'a,b\n1,2\n'), file('cut.csv.gz', long.subarray(0, long.length / 2))])
    expect(await tool(['import', bad])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`${bad}: the gzip stream is damaged: `),
    })
  const lines = await tool(['import', file('no.lp.gz', 'w t=1 1\n')])
  expect(lines).toMatchObject({ code: 1, err: expect.stringContaining('the gzip stream is damaged: ') })
  const words = file('words.csv', 'a,b\n1,2\n')
  expect(await tool(['import', words, '-f', 'parquet'])).toMatchObject({
    code: 1,
    err: `penstock: not a Parquet file [file=${words}]\n`,
  })
  const saved = join(folder, 'saved.parquet')
  await tool(['export', 'select x from long_sequence(3)', '-o', saved])
  expect((await tool(['import', saved, '-f', 'csv', '-t', 'saved_text'])).err).toContain('a Parquet file, and not CSV')
  expect((await tool(['import', saved, '-f', 'parquet', '-t', 'saved_rows'])).code).toBe(0)
  expect(await server.rows('select count() from saved_rows')).toEqual([[3]])
})

test('a reader of a pipe that has enough ends the tool silently', async () => {
  for (const args of [
    `sql -f csv 'select x from long_sequence(10000)'`,
    `export 'select x from long_sequence(1000000)'`,
  ]) {
    const line = `"${process.execPath}" "${join(repositoryRoot, 'dist/deploy/cli.js')}" ${args}`
    const child = spawn('bash', ['-c', `set -o pipefail; ${line} | head -1`], {
      env: { ...process.env, PENSTOCK_URL: `http://${server.address('http')}` },
    })
    let err = ''
    child.stderr.on('data', (chunk) => (err += chunk))
    expect(await new Promise((resolve) => child.on('close', resolve)), args).toBe(0)
    expect(err).toBe('')
  }
})

test('statements show every digit, say how many rows they changed, and whether there are more', async () => {
  const made = await tool(
    ['sql'],
    `create table whole(l long, n timestamp_ns, d decimal(38,2));
     insert into whole values (9007199254740993, '2024-01-01T00:00:00.000000001Z', 90071992547409930001.25m),
       (-9223372036854775807, null, null);
     update whole set d = 1m where l < 0; delete from whole where l = 0; insert into whole select * from whole where l < 0`,
  )
  const changes = ['OK, 2 rows inserted', 'OK, 1 row updated', 'OK, 0 rows deleted', 'OK, 1 row inserted']
  expect(made.out).toBe(`${['OK', ...changes].join('\n')}\n`)
  const select = 'select l, n, d from whole limit 1'
  expect((await tool(['sql', '-f', 'csv', '-e', select])).out).toBe(
    'l,n,d\n9007199254740993,2024-01-01T00:00:00.000000001Z,90071992547409930001.25\n',
  )
  const table = await tool(['sql', '-e', `${select}; select 'id 9007199254740993', 1.5, 0.1234567890123456`])
  for (const text of ['9007199254740993 |', 'id 9007199254740993  ', '0.1234567890123456'])
    expect(table.out).toContain(text)
  expect((await tool(['sql', '-f', 'json', '-e', 'select l from whole limit 1'])).out).toContain('[[9007199254740993]]')
  const cut = 'first 10,000 rows; there are more: penstock export writes all of them'
  expect((await tool(['sql', '-e', 'select x from long_sequence(10001)'])).out.endsWith(`(${cut})\n`)).toBe(true)
  expect((await tool(['sql', '-f', 'csv', '-e', 'select x from long_sequence(10001)'])).err).toBe(`${cut}\n`)
  expect((await tool(['sql', '-e', 'select x from long_sequence(10000)'])).out.endsWith('(10000 rows)\n')).toBe(true)
})

test('rejected rows, and the places of errors in files', async () => {
  await tool(['sql', 'create table skipped(a int, b int)'])
  const rows = file('skipped.csv', 'a,b\n1,2\nx,3\n4,y\n')
  const skipped = await tool(['import', rows, '--header', '--atomicity', 'skipRow'])
  expect(skipped.out).toMatch(/Rows imported {2}\| +1 /)
  expect(skipped.err).toBe(
    'line 3: not a value of type INT [column=a, value=x]\nline 4: not a value of type INT [column=b, value=y]\n',
  )
  const script = file('script.sql', 'select 1;\n\nselect 2,\n  nope;')
  expect((await tool(['sql', '--file', script])).err).toContain(`\n${script}, line 4:   nope\n`)
  expect(await tool(['sql', '\\d skipped'])).toMatchObject({
    code: 2,
    err: 'penstock: backslash commands are for the prompt: penstock sql without a statement\n',
  })
})

test('a misspelt statement is answered with what was meant', async () => {
  expect(await tool(['sql', '-e', 'selec 1'])).toMatchObject({
    code: 1,
    err: 'penstock: table does not exist [table=selec]; did you mean SELECT?\n',
  })
})

test('CSV with times of every kind, and options of the designated timestamp', async () => {
  const rows = 'ts,v\n1706695872000,1\n2024-01-31T10:11:13.000Z,2\n'
  const named = await tool(['import', file('epochs.csv', rows), '--timestamp', 'ts', '--json'])
  expect(JSON.parse(named.out)).toMatchObject({ rowsImported: 2, timestamp: 'ts' })
  const small = file('small.csv', 'ts,v\n5,1\n7,2\n')
  expect((await tool(['import', small, '--timestamp', 'ts'])).err).toContain(
    'unit=s, ms, us or ns sets the unit of numbers',
  )
  const unit = await tool(['import', small, '--timestamp', 'ts', '--unit', 's', '--json'])
  expect(JSON.parse(unit.out)).toMatchObject({ rowsImported: 2, timestamp: 'ts' })
  const none = await tool(['import', file('none.csv', 'ts,v\n2024-01-31,1\n'), '--timestamp=', '--json'])
  expect(JSON.parse(none.out)).not.toHaveProperty('timestamp')
  const zipped = file('raw', gzipSync('ts,v\n2024-01-31,1\n'))
  const table = await tool(['import', zipped, '--format', 'csv', '--table', 'zipped'])
  expect(table.out).toMatch(/Timestamp {2}\| +ts /)
})

test('paths that settings have moved are found', async () => {
  const moved = new TestServer([
    ...['memory.bytes=512m', 'http.context.execute=/run', 'http.context.export=/rows', 'http.context.import=/take'],
  ])
  try {
    await moved.start()
    const url = `http://${moved.address('http')}`
    expect((await fetch(`${url}/exec?query=select+1`)).status).toBe(404)
    const imported = await tool(['import', file('moved.csv', 'a,b\n1,2\n3,4\n')], '', url)
    expect([imported.err, imported.code]).toEqual(['', 0])
    expect((await tool(['sql', '-f', 'csv', '-e', 'select count() from moved'], '', url)).out).toContain('2')
    const out = join(folder, 'moved-out.csv')
    expect((await tool(['export', 'moved', '-o', out], '', url)).code).toBe(0)
    expect(readFileSync(out, 'utf8')).toContain('3')
  } finally {
    await moved.remove()
  }
})
