// Goal: SQLite dumps are decoded to columns, in every form that versions of SQLite write; what is not supported is
// reported with its line number. Method: dumps are passed to the decoder as one block, as two blocks with many
// different boundaries, and byte by byte; all must give the expected tables and rows.

import { expect, test } from 'vitest'
import { DumpDecoder } from '../../../connectors/sqlite/dump-decoder.js'
import type { DumpEvent, DumpOptions, ProposedTable, ResolvedTable } from '../../../connectors/sqlite/messages.js'
import type { PackedColumn } from '../../../engine/engine.js'
import { type DataType, dataType, typeText } from '../../../engine/types/column-types.js'

interface Decoded {
  /** `name TYPE` of each column, with * at the designated timestamp. */
  readonly tables: Readonly<Record<string, string>>
  readonly rows: Readonly<Record<string, readonly unknown[][]>>
  readonly reports: readonly string[]
  readonly others: readonly DumpEvent[]
  readonly rejected: number
}

function decode(text: string | Buffer, cuts: number[] = [], changes: Partial<DumpOptions> = {}): Decoded {
  const proposals: ProposedTable[] = []
  const resolve = (proposal: ProposedTable): ResolvedTable => {
    proposals.push(proposal)
    const columns = proposal.columns.map(({ type }, columnId) => ({ columnId, type }))
    return { columns, timestamp: proposal.columns.findIndex(({ name }) => name === proposal.timestamp) }
  }
  const options = { tables: [], timestamps: [], partitionBy: 'DAY', unit: null, types: [], skipRows: true }
  const decoder = new DumpDecoder({ ...options, ...changes, resolve })
  const bytes = Buffer.from(text)
  const events: DumpEvent[] = []
  let from = 0
  for (const cut of [...cuts, bytes.length]) {
    events.push(...decoder.decode(bytes.subarray(from, cut), false))
    from = cut
  }
  events.push(...decoder.decode(Buffer.alloc(0), true))
  return summary(proposals, events)
}

function summary(proposals: readonly ProposedTable[], events: readonly DumpEvent[]): Decoded {
  const rows: Record<string, unknown[][]> = {}
  const reports: string[] = []
  let rejected = 0
  for (const event of events) {
    if (event.kind === 'report') {
      rejected += event.rows
      reports.push(`${event.report.line} ${event.report.table}: ${event.report.reason}`)
    }
    if (event.kind !== 'rows') continue
    const name = proposals[event.table]?.name ?? '?'
    const columns = event.rows.columns.map(({ type, values }) => valuesOf(type, values, event.rows.rows))
    const list = rows[name] ?? []
    for (let row = 0; row < event.rows.rows; row++) list.push(columns.map((values) => values[row]))
    rows[name] = list
  }
  const described = proposals.map(({ name, columns, timestamp }) => [
    name,
    columns
      .map((column) => `${column.name} ${typeText(column.type)}${column.name === timestamp ? '*' : ''}`)
      .join(', '),
  ])
  const others = events.filter(({ kind }) => kind === 'view' || kind === 'index')
  return { tables: Object.fromEntries(described), rows, reports, others, rejected }
}

function valuesOf({ name }: DataType, values: PackedColumn, rows: number): unknown[] {
  if (values.kind === 'fixed') {
    const view = new DataView(values.bytes.buffer, values.bytes.byteOffset)
    return Array.from({ length: rows }, (_, row) => {
      if (name === 'DOUBLE') return Number.isNaN(view.getFloat64(row * 8, true)) ? null : view.getFloat64(row * 8, true)
      if (name === 'BOOLEAN') return view.getUint8(row) === 1
      const long = view.getBigInt64(row * 8, true)
      if (long === -(2n ** 63n)) return null
      return name === 'TIMESTAMP' ? new Date(Number(long) / 1000).toISOString() : long
    })
  }
  let at = 0
  if (values.kind === 'strings') {
    return [...values.lengths].map((length) => {
      if (length < 0) return null
      const text = Buffer.from(values.bytes.subarray(at, at + length))
      at += length
      return name === 'BINARY' ? text.toString('hex') : text.toString('utf8')
    })
  }
  const strings: string[] = []
  const buffer = Buffer.from(values.strings)
  for (let index = 0; index < values.count; index++) {
    const bytes = buffer.readUInt32LE(at)
    strings.push(buffer.toString('utf8', at + 4, at + 4 + bytes))
    at += 4 + bytes
  }
  return [...values.ids].map((id) => (id < 0 ? null : strings[id]))
}

const dump = `PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
-- a comment; with a semicolon
CREATE TABLE IF NOT EXISTS "log data"(id INTEGER PRIMARY KEY, "a.b" TEXT /* x */, [r 1] REAL, \`raw\` BLOB, n, PRIMARY KEY(id));
INSERT INTO "log data" VALUES(1,'it''s',2.5,X'00fF',NULL);
INSERT INTO "log data" VALUES(-9007199254740993,replace(replace('a\\nb\\r','\\n',char(10)),'\\r',char(13)),-1e-3,x'','t;)(');
INSERT INTO "log data" VALUES(3,unistr('\\u00e9\\u000a\\\\'),-Inf,NULL,''), (4 , 'x'||char(9)||'y' , .5 , NULL , 'multi
line');
CREATE TABLE gen(a INTEGER, b INTEGER GENERATED ALWAYS AS (a*2) STORED, c TEXT) STRICT;
INSERT INTO gen(c,a) VALUES('only c',7);
INSERT OR IGNORE INTO gen VALUES(8,'d');
CREATE TABLE sqlite_sequence(name,seq);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('log data',4);
CREATE UNIQUE INDEX "i" ON gen(c DESC);
CREATE VIEW v AS SELECT ';' AS semi FROM gen;
CREATE TRIGGER t AFTER INSERT ON gen BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM gen; END;
COMMIT;
`

const wanted: Decoded = {
  tables: { 'log data': 'id LONG, a_b VARCHAR, r 1 DOUBLE, raw BINARY, n VARCHAR', gen: 'a LONG, c VARCHAR' },
  rows: {
    'log data': [
      [1n, "it's", 2.5, '00ff', null],
      [-9007199254740993n, 'a\nb\r', -0.001, '', 't;)('],
      [3n, 'é\n\\', Number.NEGATIVE_INFINITY, null, ''],
      [4n, 'x\ty', 0.5, null, 'multi\nline'],
    ],
    gen: [
      [7n, 'only c'],
      [8n, 'd'],
    ],
  },
  reports: ['4 log data: the column "a.b" becomes "a_b"', '17 : CREATE TRIGGER is not supported'],
  others: [
    { kind: 'view', name: 'v', query: "SELECT ';' AS semi FROM gen", line: 16 },
    { kind: 'index', line: 15, table: 1, column: 'c' },
  ],
  rejected: 0,
}

test('every form of a dump', () => {
  expect(decode(dump)).toEqual(wanted)
})

test('wherever it is cut', () => {
  const { length } = Buffer.from(dump)
  for (let cut = 1; cut < length; cut += 37) expect(decode(dump, [cut]), `cut at ${cut}`).toEqual(wanted)
  expect(
    decode(
      dump,
      Array.from({ length: length - 1 }, (_, at) => at + 1),
    ),
  ).toEqual(wanted)
})

test('types by affinity and values', () => {
  const many = Array.from(
    { length: 60 },
    (_, n) =>
      `INSERT INTO t VALUES('2024-01-0${(n % 9) + 1} 10:00:0${n % 10}.5',${1_700_000_000 + n},${1_700_000_000_000 + n},'s${n % 2}',${n % 2},${n},'t${n}',2460000.5);`,
  ).join('\n')
  const text = `CREATE TABLE t(at TEXT, unix DATETIME, ms INTEGER, name TEXT, ok BOOLEAN, x REAL, u, jd TIMESTAMP);\n${many}`
  const { tables, rows } = decode(text)
  expect(tables).toEqual({
    t: 'at TIMESTAMP*, unix TIMESTAMP, ms LONG, name SYMBOL, ok BOOLEAN, x DOUBLE, u VARCHAR, jd TIMESTAMP',
  })
  expect(rows['t']?.[1]).toEqual([
    ...['2024-01-02T10:00:01.500Z', '2023-11-14T22:13:21.000Z', 1_700_000_000_001n, 's1', true, 1, 't1'],
    '2023-02-25T00:00:00.000Z',
  ])
  const chosen = { timestamps: ['t.ms'], types: [{ column: 't.u', type: dataType('SYMBOL') }] }
  expect(decode(text, [], chosen).tables['t']).toContain('ms TIMESTAMP*, name SYMBOL, ok BOOLEAN, x DOUBLE, u SYMBOL')
  expect(decode(text, [], { timestamps: ['none'] }).tables['t']).not.toContain('*')
  expect(decode('CREATE TABLE e(a INT, b DOUBLE PRECISION, c VARCHAR(9), d BLOB, e DATE, f)').tables).toEqual({
    e: 'a LONG, b DOUBLE, c VARCHAR, d BINARY, e TIMESTAMP, f VARCHAR',
  })
})

test('a value that does not fit is reported with its line, and the rows around it are stored', () => {
  const good = Array.from({ length: 10_000 }, (_, n) => `INSERT INTO t VALUES(${n},1.5);`).join('\n')
  const text = `CREATE TABLE t(a INTEGER, b REAL);
${good}
INSERT INTO t VALUES('word',2);
INSERT INTO t VALUES(1,2,3);
INSERT INTO t VALUES(9223372036854775807,NULL);
INSERT INTO t VALUES(9223372036854775808,NULL);
INSERT INTO t VALUES(5,sqrt(2));
INSERT INTO t VALUES(6 7);
INSERT INTO nowhere VALUES(1);
INSERT INTO t SELECT 1,2;
UPDATE t SET a=1;
INSERT INTO t VALUES(12,4.5);
ROLLBACK; -- due to errors
INSERT INTO t VALUES(13,`
  const { rows, reports, rejected } = decode(text)
  expect(rows['t']).toHaveLength(10_002)
  expect(rows['t']?.slice(-2)).toEqual([
    [9223372036854775807n, null],
    [12n, 4.5],
  ])
  expect(rejected).toBe(5)
  expect(reports).toEqual([
    '10002 t: no LONG for the column a [value=word]',
    '10003 t: a row of 3 values for 2 columns',
    '10005 t: no LONG for the column a [value=9223372036854775808]',
    '10006 t: no DOUBLE for the column b [value=sqrt(2)]',
    '10007 t: a row of 1 values for 2 columns',
    '10008 nowhere: rows of a table whose CREATE TABLE is missing',
    '10009 : INSERT without VALUES is not supported: INSERT INTO t SELECT 1,2;',
    '10010 : unsupported statement: UPDATE t SET a=1;',
    '10012 : the dump is incomplete: SQLite could not read the whole database (ROLLBACK)',
    '10013 t: the dump ends within a row',
  ])
  expect(() => decode(text, [], { skipRows: false })).toThrow('line 10002, table t: no LONG for the column a')
})

test('names that no table may have, and only the wanted tables', () => {
  const text = `CREATE TABLE "a/b"("x y" INT, "-" INT, "_" INT);CREATE TABLE "a:b"(z);CREATE TABLE "  .. "(z);
    INSERT INTO "a/b" VALUES(1,2,3);INSERT INTO main."a:b" VALUES('z');`
  expect(Object.keys(decode(text).tables).sort()).toEqual(['_', 'a_b', 'a_b_2'])
  expect(decode(text).tables['a_b']).toBe('x y LONG, _ LONG, __2 LONG')
  expect(decode(text).rows['a_b_2']).toEqual([['z']])
  expect(Object.keys(decode(text, [], { tables: ['A:B'] }).tables)).toEqual(['a_b'])
})

test('bytes that are no UTF-8 are no text', () => {
  const text = Buffer.concat([
    Buffer.from("CREATE TABLE t(a TEXT);\nINSERT INTO t VALUES('"),
    Buffer.from([0xff]),
    Buffer.from("');\nINSERT INTO t VALUES('ü');"),
  ])
  const { rows, reports } = decode(text)
  expect(rows['t']).toEqual([['ü']])
  expect(reports[0]).toContain('2 t: no VARCHAR for the column a')
})
