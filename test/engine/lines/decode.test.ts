// Goal: line protocol is decoded into the expected rows, or fails with the exact error message, both by the WebAssembly
// kernel and by the general parser in TypeScript. Method: tables of values and errors, many of them recorded from other
// servers of this protocol, and test vectors of the official clients.

import { describe, expect, test } from 'vitest'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import vectors from './fixtures/client-vectors.json' with { type: 'json' }
import { lineHarness } from './line-harness.js'

const ts = '1704067200000000000'
const micros = 1704067200000000n

const paths = ['general', 'kernel'] as const

const values: readonly (readonly [string, unknown])[] = [
  ...(['T', 't', 'true', 'True', 'TRUE'].map((word) => [word, 1]) as [string, unknown][]),
  ...(['F', 'f', 'false', 'False', 'FALSE'].map((word) => [word, 0]) as [string, unknown][]),
  ['123i', 123n],
  ['007i', 7n],
  ['-1_000_000i', -1_000_000n],
  ['-9223372036854775808i', -(2n ** 63n)],
  ['9223372036854775807i', 2n ** 63n - 1n],
  ['1.5', 1.5],
  ['3', 3],
  ['1e5', 100000],
  ['-0.5', -0.5],
  ['0.1234567890123456789', 0.12345678901234568],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['1704067200000000t', micros],
  ['1704067200000m', micros],
  ['1704067200000000000n', micros * 1000n],
  ['0x1fi', '1f'.padStart(64, '0')],
  ['"abc"', 'abc'],
  ['""', ''],
  ['"a b,c=d"', 'a b,c=d'],
  ['"a\\"b"', 'a"b'],
  ['"a\\\\b"', 'a\\b'],
  ['"a\\\nb"', 'a\nb'],
  ['"a\nb\r\n\nc, d=e "', 'a\nb\r\n\nc, d=e '],
  ['"C:\\Users\\new\\,\\ \\="', 'C:\\Users\\new\\,\\ \\='],
  ['8u', 8n],
  ['9223372036854775807u', 2n ** 63n - 1n],
  ['"😀"', '😀'],
]

const invalid = (value: string, shown = value): readonly [string, string] => [
  `t v=${value} ${ts}\n`,
  `Could not parse entire line, field value is invalid. Field: v; value: ${shown}`,
]

const long = 'x'.repeat(128)
const errors: readonly (readonly [string, string])[] = [
  invalid('12ai'),
  invalid('1__0i'),
  invalid('_1i'),
  invalid('1_i'),
  invalid('1_0.5'),
  invalid('inf'),
  invalid('1.2.3'),
  invalid('+5i'),
  invalid('1e400'),
  invalid('u33d'),
  invalid('0xzzi'),
  invalid('0X1fi'),
  invalid('9223372036854775808i'),
  invalid('9223372036854775808u'),
  invalid('-8u'),
  invalid('8.5u'),
  invalid('"a"b'),
  invalid('"abc', ''),
  invalid('9223372036854775807m'),
  [`t v= ${ts}\n`, 'table: t; invalid column type: v'],
  [`t v=1.23d ${ts}\n`, 'table: t; decimal columns must be created manually: v'],
  [`t v=1i  ${ts}\n`, 'INVALID_FIELD_SEPARATOR'],
  // Behind `=` only a value or its escape: a lost space or backslash would make other values of it.
  [`t,a=x=y v=1i ${ts}\n`, 'INVALID_FIELD_SEPARATOR'],
  [`t,a== v=1i ${ts}\n`, 'INVALID_FIELD_SEPARATOR'],
  [`t,a=x\\ v=1i ${ts}\n`, 'INVALID_FIELD_SEPARATOR'],
  [`t v=1=2 ${ts}\n`, 'INVALID_FIELD_SEPARATOR'],
  [`t v=1i, w=2i\n`, 'INVALID_FIELD_SEPARATOR'],
  [`t v=1i "b"\n`, 'INVALID_FIELD_SEPARATOR'],
  [`\ufefft v=1i ${ts}\n`, 'table: \ufefft; invalid table name'],
  [`t \ufeffv=1i ${ts}\n`, 'table: t; invalid column name: \ufeffv'],
  [' ', 'No fields were provided'],
  [`t ${ts}\n`, `Could not parse entire line. Field value is missing: ${ts}`],
  ['t\n', 'No fields were provided'],
  ['t v=1i abc\n', 'Could not parse timestamp: abc'],
  ['t v=1i 1.5\n', 'Could not parse timestamp: 1.5'],
  ['t v=1i -1\n', 'table: t, timestamp: -1; designated timestamp before 1970-01-01 is not allowed'],
  [`t v ${ts}\n`, 'Could not parse entire line. Field value is missing: v'],
  [`t,sym v=1i ${ts}\n`, 'Could not parse entire line. Symbol value is missing: sym'],
  [`t,s=a,,u=b v=1i ${ts}\n`, 'Could not parse entire line. Symbol value is missing: '],
  ['t,\n', 'No fields were provided'],
  [`t v=1i,,x=2i ${ts}\n`, 'Could not parse entire line. Field value is missing: v'],
  [`t\\,c,s\\,y=a\\,b f\\=1=1i ${ts}\n`, 'table: t,c; invalid table name'],
  [`t/slash v=1i ${ts}\n`, 'INVALID_TABLE_NAME'],
  [`t?q v=1i ${ts}\n`, 'table: t?q; invalid table name'],
  [`t a.b=1i ${ts}\n`, 'table: t; invalid column name: a.b'],
  [`t a-b=1i ${ts}\n`, 'table: t; invalid column name: a-b'],
  [`${long} v=1i ${ts}\n`, `table: ${long}; invalid table name`],
  [`t ${long}=1i ${ts}\n`, `table: t; invalid column name: ${long}`],
]

/** The last column is the designated timestamp. */
function addTable(
  { catalog }: ReturnType<typeof lineHarness>,
  name: string,
  columns: readonly (readonly [string, DataType])[],
): void {
  catalog.add({
    ...{ id: 7, name, version: 1, partitionBy: 'DAY', bypassWal: false, dedupKeys: [], ttl: null },
    ...{ maxUncommittedRows: 1, o3MaxLagMicros: 1, createdMicros: 0 },
    columns: columns.map(([column, type], id) => ({ id, name: column, type, dropped: false })),
    timestampId: columns.length - 1,
  })
}

describe.each(paths)('%s path', (path) => {
  test.each(values)('a field %s', (text, value) => {
    const harness = lineHarness(path)
    for (let round = 0; round < 2; round++) {
      const { error, tables } = harness.decode(`t v=${text} ${ts}\nt v=${text} ${ts}\n`)
      expect(error).toBe(null)
      expect(tables['t']).toEqual([
        { v: value, timestamp: micros },
        { v: value, timestamp: micros },
      ])
    }
  })

  test.each(errors)('%j is refused', (text, message) => {
    const harness = lineHarness(path)
    const { error, tables, rejects } = harness.decode(text)
    expect(error).toBe(message)
    expect(rejects).toEqual([{ line: 1, message }])
    expect(tables).toEqual({})
    expect([...harness.catalog.byId]).toEqual([])
  })

  test('the bad line is counted over rows, blank lines and comments', () => {
    const harness = lineHarness(path)
    const good = `t v=1i ${ts}\n`
    expect(harness.decode(`${good}${good}\n# remark\n${good}t v=bad ${ts}\n${good}`).rejects[0]?.line).toBe(6)
    expect([...harness.catalog.byId]).toEqual([])
  })

  test('bad lines are skipped, or end the request and keep the rows before them', () => {
    const harness = lineHarness(path)
    const text = `t v=1i ${ts}\nt v=bad,w=1i ${ts}\nt v=3i ${ts}\nu\nt v=4i ${ts}\n`
    const skipping = harness.decode(text, { atomic: false, skipBadLines: true })
    expect(skipping.rejects.map(({ line }) => line)).toEqual([2, 4])
    expect(skipping.tables['t']?.map((row) => row['v'])).toEqual([1n, 3n, 4n])
    expect(harness.catalog.find('t')?.schema.columns.map(({ name }) => name)).toEqual(['v', 'timestamp'])
    const stopping = harness.decode(text, { atomic: false })
    expect(stopping.rejects.map(({ line }) => line)).toEqual([2])
    expect(stopping.tables['t']?.map((row) => row['v'])).toEqual([1n])
  })

  test('a backslash before an ordinary character is part of names and symbols', () => {
    const harness = lineHarness(path)
    const text = `t,path=C:\\Users\\new,unc=\\\\\\\\host\\\\share,say=\\"x v\\=1=1i ${ts}\n`
    const { error, tables } = harness.decode(text.repeat(2))
    expect(error).toBe(null)
    const row = { path: 'C:\\Users\\new', unc: '\\\\host\\share', say: '\\"x', 'v=1': 1n, timestamp: micros }
    expect(tables['t']).toEqual([row, row])
  })

  test.each([
    ['is not closed', `t v="a,w=1i ${ts}\n`],
    ['is closed in the next line', `t v="a ${ts}\nt v="b"\n`],
    ['is closed too early', `t v="a"b" ${ts}\n`],
    ['ends in a backslash', `t v="C:\\" ${ts}\n`],
  ])('of a quoted value that %s only the first line is refused', (_name, bad) => {
    const harness = lineHarness(path)
    const good = `t w=1i ${ts}\n`
    const lines = bad.split('\n').length - 1
    const { rejects, tables } = harness.decode(`${good}${bad}${good}${good}`, { atomic: false, skipBadLines: true })
    expect(rejects.map(({ line }) => line)).toEqual([2])
    expect(tables['t']?.length).toBe(2 + lines)
  })

  test('a bad line ends where its quoted values end', () => {
    const harness = lineHarness(path)
    const text = `t v=bad,w="x\nt v=7i ${ts}\n" ${ts}\nt v=1i ${ts}\n`
    const { rejects, tables } = harness.decode(text, { atomic: false, skipBadLines: true })
    expect(rejects.length).toBe(1)
    expect(tables['t']?.map((row) => row['v'])).toEqual([1n])
  })

  test('characters that names cannot have are replaced where a setting says so', () => {
    const harness = lineHarness(path, { nameReplacement: '_' })
    const good = `km/h,entity.id=a 0.005=1i,+Inf=2i,ok=3i ${ts}\n`
    const { error, tables } = harness.decode(`${good}${good}.a..b. v=1i ${ts}\n% v=1i ${ts}\n`)
    expect(error).toBe(null)
    const row = { entity_id: 'a', '0_005': 1n, _Inf: 2n, ok: 3n, timestamp: micros }
    expect(tables['km_h']).toEqual([row, row])
    expect(Object.keys(tables)).toEqual(['km_h', '_a_.b_', '_'])
    const { error: clash } = harness.decode(`t a.b=1i,a-b=2i ${ts}\n`)
    expect(clash).toBe('table: t; the names a.b and a-b both become a_b')
    expect(harness.decode(`t a.b=1i,A.B=2i ${ts}\n`).error).toBe(null)
  })

  test('a partial request stores the good lines together and shows the bad ones', () => {
    const harness = lineHarness(path)
    const text = `t v=1i ${ts}\nt v=bad ${ts}\nt v=3i ${ts}\nu\n`
    const options = { atomic: true, skipBadLines: true, partial: true }
    const { error, tables } = harness.decode(text, options)
    expect(error).toBe(null)
    expect(tables['t']?.map((row) => row['v'])).toEqual([1n, 3n])
    expect(harness.decoder.rejects.map(({ line, text: shown }) => [line, shown])).toEqual([
      [2, `t v=bad ${ts}`],
      [4, 'u'],
    ])
  })

  test('a line may lack its newline, end in CRLF, lack fields and timestamp', () => {
    const harness = lineHarness(path)
    const { error, tables } = harness.decode(`t,s=a v=1i ${ts}\r\n\r\nt,s=b\nt,s=c ${ts}\nt v=2i`)
    expect(error).toBe(null)
    expect(tables['t']).toEqual([
      { s: 'a', v: 1n, timestamp: micros },
      { s: 'b', v: -(2n ** 63n), timestamp: 1_000_000n },
      { s: 'c', v: -(2n ** 63n), timestamp: micros },
      { s: null, v: 2n, timestamp: 1_000_000n },
    ])
  })

  test('a comma may stand behind the last tag and the last field', () => {
    const harness = lineHarness(path)
    const row = { s: 'a', v: 1n, timestamp: micros }
    const text = `t,s=a v=1i ${ts}\nt,s=a, v=1i ${ts}\nt,s=a v=1i, ${ts}\nt,s=a, v=1i, ${ts}\nu, v=1i ${ts}\n`
    const { error, tables } = harness.decode(text)
    expect(error).toBe(null)
    expect(tables).toEqual({ t: [row, row, row, row], u: [{ v: 1n, timestamp: micros }] })
  })

  test('of duplicate names the first wins, names match without case, empty symbols are empty', () => {
    const harness = lineHarness(path)
    expect(harness.decode(`t,A=1,a=2 v=1i,V=2i ${ts}\nT,a= v=3i ${ts}\n`).tables['t']).toEqual([
      { A: '1', v: 1n, timestamp: micros },
      { A: '', v: 3n, timestamp: micros },
    ])
  })

  test('escapes in names and symbols; UTF-8', () => {
    const harness = lineHarness(path)
    const { tables } = harness.decode(`wl\\ space,s\\ y=a\\ b f\\ 1=1i ${ts}\nt,s=☃ v=1i ${ts}\n`)
    expect(tables).toEqual({
      'wl space': [{ 's y': 'a b', 'f 1': 1n, timestamp: micros }],
      t: [{ s: '☃', v: 1n, timestamp: micros }],
    })
  })

  test('names that are no UTF-8 are refused', () => {
    const line = (text: string) => Buffer.from(text, 'latin1')
    const { rejects } = lineHarness(path).decode(line('t \xff=1i 5\nt\xc3 v=1i 5\nt,\xff=a v=1i 5\n'), {
      ...{ atomic: false, skipBadLines: true },
    })
    expect(rejects.map(({ message }) => message)).toEqual([
      'table: t; invalid column name: \ufffd',
      'table: t\ufffd; invalid table name',
      'table: t; invalid column name: \ufffd',
    ])
  })

  test('a new table keeps nanoseconds when its first timestamp says so', () => {
    const harness = lineHarness(path)
    harness.decode(`n v=1i 1700000000000000001n\nn v=2i 1700000000000002t\nn v=3i 1700000000000000003\n`)
    harness.decode('m v=1i 1700000000000001t\nm v=2i 1700000000000002001n\n')
    const types = [...harness.catalog.byId.values()].map(({ schema }) => schema.columns[schema.timestampId]?.type.name)
    expect(types).toEqual(['TIMESTAMP_NS', 'TIMESTAMP'])
    harness.decode('k v=1i 1700000000000000001n\n', { allNanos: true })
    expect(harness.catalog.find('k')?.schema.columns[1]?.type.name).toBe('TIMESTAMP')
    const again = harness.decode(`n v=1i 1700000000000000001n\nn v=2i 1700000000000002t\nn v=3i 1700000000000000003\n`)
    expect(again.tables['n']?.map((row) => row['timestamp'])).toEqual([
      1700000000000000001n,
      1700000000000002000n,
      1700000000000000003n,
    ])
  })

  test('a time in the field of the designated column goes before the time of the line', () => {
    const harness = lineHarness(path)
    const times = (text: string) => harness.decode(text).tables['t']?.map((row) => row['timestamp'])
    const lines = 't v=1i,timestamp=7t 9000\nt v=1i,timestamp=8000n 9000\nt v=1i,timestamp= 9000\nt v=1i,timestamp=5i\n'
    for (let round = 0; round < 2; round++) expect(times(lines)).toEqual([7n, 8n, 9n, 5n])
    expect(harness.decode('t v=1i,timestamp=-7t 9000\n').error).toMatch('designated timestamp before 1970-01-01')
    // Nothing is left of the number of the line before.
    expect(times('t v=1i,timestamp=\n')).toEqual([1_000_000n])
  })

  test('units of the timestamp', () => {
    const harness = lineHarness(path)
    for (const [text, unitNanos] of [
      ['1704067200000', 1_000_000n],
      ['1704067200', 1_000_000_000n],
      ['28401120', 60_000_000_000n],
      ['473352', 3_600_000_000_000n],
      ['1704067200000000t', 1n],
      ['1704067200000m', 1n],
    ] as const) {
      expect(harness.decode(`t v=1i ${text}\nt v=1i ${text}\n`, { unitNanos }).tables['t']?.[1]?.['timestamp']).toBe(
        micros,
      )
    }
  })

  test('binary doubles and arrays', () => {
    const harness = lineHarness(path)
    const line = Buffer.alloc(200)
    let at = line.write('t d==')
    at = line.writeUInt8(16, at)
    at = line.writeDoubleLE(2.5, at)
    at += line.write(',a==', at)
    for (const byte of [14, 10, 2]) at = line.writeUInt8(byte, at)
    at = line.writeUInt32LE(1, at)
    at = line.writeUInt32LE(2, at)
    at = line.writeDoubleLE(10, at)
    at = line.writeDoubleLE(-0.5, at)
    at += line.write(` ${ts}\n`, at)
    const { error, tables } = harness.decode(Buffer.concat([line.subarray(0, at), line.subarray(0, at)]))
    expect(error).toBe(null)
    const array = Buffer.alloc(32)
    array.writeUInt32LE(2, 0)
    array.writeUInt32LE(1, 4)
    array.writeUInt32LE(2, 8)
    array.writeDoubleLE(10, 16)
    array.writeDoubleLE(-0.5, 24)
    expect(tables['t']?.[1]).toEqual({ d: 2.5, a: array.toString('hex'), timestamp: micros })
  })

  test('values into columns of every type', () => {
    const harness = lineHarness(path)
    const columns = [
      ['by', dataType('BYTE')],
      ['f', dataType('FLOAT')],
      ['c', dataType('CHAR')],
      ['u', dataType('UUID')],
      ['ip', dataType('IPv4')],
      ['g', dataType('GEOHASH', 20)],
      ['l2', dataType('LONG256')],
      ['de', dataType('DECIMAL', 10, 2)],
      ['da', dataType('DATE')],
      ['sy', dataType('SYMBOL')],
      ['i', dataType('INT')],
      ['ts', dataType('TIMESTAMP_NS')],
    ] as const
    addTable(harness, 'all', columns)
    const line =
      'all by=1i,f=2i,c="x",u="11111111-2222-3333-4444-555555555555",ip="1.2.3.4",g="u33d8",l2="0xff",de=1.25d,' +
      `da=1704067200000000t,sy=12i,i=t ${ts}\n`
    expect(harness.decode(line + line).tables['all']?.[1]).toEqual({
      by: 1,
      f: 2,
      c: 120,
      u: '11111111222233334444555555555555',
      ip: 0x01020304,
      g: 0b11010_00011_00011_01100,
      l2: 'ff'.padStart(64, '0'),
      de: 125n,
      da: 1704067200000n,
      sy: '12',
      i: 1,
      ts: micros * 1000n,
    })
    expect(harness.decode(`all by=300i ${ts}\n`).error).toBe(
      'table: all, column: by; line protocol value: 300 is out bounds of column type: BYTE',
    )
    for (const [field, from, to] of [
      ['u="x"', 'STRING', 'UUID'],
      ['ip="1.2.3"', 'STRING', 'IPv4'],
      ['i=1.5', 'FLOAT', 'INT'],
      ['da="x"', 'STRING', 'DATE'],
    ]) {
      expect(harness.decode(`all ${field} ${ts}\n`).error).toBe(
        `table: all, column: ${field?.split('=')[0]}; cast error from protocol type: ${from} to column type: ${to}`,
      )
    }
    expect(harness.decode(`all,i=a by=1i ${ts}\n`).error).toBe(
      'table: all, column: i; cast error from protocol type: TAG to column type: INT',
    )
  })

  test('binary decimals', () => {
    const harness = lineHarness(path)
    const columns = [
      ['de', dataType('DECIMAL', 18, 4)],
      ['ts', dataType('TIMESTAMP')],
    ] as const
    addTable(harness, 'm', columns)
    const row = (...bytes: number[]) =>
      Buffer.concat([Buffer.from('m de==\x17', 'latin1'), Buffer.from(bytes), Buffer.from(` ${ts}\n`)])
    // As clients send -123.456, 1e5 and NULL; and one whose bytes are newlines.
    const rows = [row(3, 3, 0xfe, 0x1d, 0xc0), row(0, 3, 1, 0x86, 0xa0), row(0, 0), row(2, 2, 10, 10)]
    expect(harness.decode(Buffer.concat([...rows, ...rows])).tables['m']?.slice(4)).toEqual([
      { de: -1234560n, ts: micros },
      { de: 1_000_000_000n, ts: micros },
      { de: -(2n ** 63n), ts: micros },
      { de: 257000n, ts: micros },
    ])
    expect(harness.decode(row(0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0)).error).toBe(
      'table: m, column: de; line protocol value: 18446744073709551616 is out bounds of column type: DECIMAL(18,4)',
    )
    const broken = 'Could not parse entire line, field value is invalid. Field: de; value: '
    expect(harness.decode(row(77, 1, 1)).error).toBe(broken)
    expect(harness.decode(row(0, 33)).error).toBe(broken)
  })

  test('an atomic request that fails leaves no column', () => {
    const harness = lineHarness(path)
    harness.decode(`t v=1i ${ts}\n`)
    harness.decode(`t v=1i,x=2i ${ts}\nt v=bad ${ts}\n`)
    expect(harness.catalog.find('t')?.schema.columns.map(({ name }) => name)).toEqual(['v', 'timestamp'])
    expect(harness.decode(`t v=1i,x="s" ${ts}\nt v=1i,x="s" ${ts}\n`).tables['t']?.[1]?.['x']).toBe('s')
  })

  test('a row that passes the limit of columns is a bad line', () => {
    const harness = lineHarness(path)
    const wide = (count: number) => Array.from({ length: count }, (_, n) => `c${n}=1i`).join(',')
    const text = `t ${wide(2048)} ${ts}\nt ${wide(2047)} ${ts}\nt other=1i ${ts}\n`
    const { rejects } = harness.decode(text, { atomic: false, skipBadLines: true })
    expect(rejects).toEqual([
      { line: 1, message: 'too many columns [table=t, limit=2048]' },
      { line: 3, message: 'too many columns [table=t, limit=2048]' },
    ])
    expect(lineHarness(path).decode(text).error).toBe('too many columns [table=t, limit=2048]')
  })

  test('thousands of rows over several tables and shapes stay in order', () => {
    const harness = lineHarness(path)
    let text = ''
    for (let row = 0; row < 6000; row++) {
      const extra = row % 7 === 0 ? ',extra="é"' : ''
      text += `t${row % 3},s=k${row % 100} v=${row}i${extra} ${1704067200000000000 + row}\n`
    }
    const { tables, error } = harness.decode(text)
    expect(error).toBe(null)
    for (let table = 0; table < 3; table++) {
      const rows = tables[`t${table}`] ?? []
      expect(rows.map((row) => row['v'])).toEqual(Array.from({ length: 2000 }, (_, n) => BigInt(n * 3 + table)))
      expect(rows.every((row) => row['s'] === `k${Number(row['v']) % 100}`)).toBe(true)
      expect(rows.every((row) => row['extra'] === (Number(row['v']) % 7 === 0 ? 'é' : null))).toBe(true)
    }
  })
})

interface Vector {
  readonly testName: string
  readonly table: string
  readonly symbols: readonly { readonly name: string; readonly value: string }[]
  readonly columns: readonly { readonly name: string; readonly type: string; readonly value: unknown }[]
  readonly result: { readonly status: string; readonly line?: string; readonly anyLines?: readonly string[] }
}

describe.each(paths)('vectors of the official clients, %s path', (path) => {
  test.each(
    (vectors as readonly Vector[])
      .filter(({ result }) => result.status === 'SUCCESS')
      .map((vector) => [vector.testName, vector] as const),
  )('%s', (_name, { table, symbols, columns, result }) => {
    for (const line of result.anyLines ?? [result.line as string]) {
      const { error, tables } = lineHarness(path).decode(`${line}\n${line}\n`)
      expect(error).toBe(null)
      const row = {
        ...Object.fromEntries(symbols.map(({ name, value }) => [name, value])),
        ...Object.fromEntries(columns.map((column) => [column.name, memoryValue(column)])),
        timestamp: 1_000_000n,
      }
      const [first, second] = tables[table] ?? []
      expect(
        Object.fromEntries(Object.entries(first ?? {}).map(([name, value]) => [name, value === 0 ? 0 : value])),
      ).toEqual(row)
      expect(second).toEqual(first)
    }
  })

  // The clients refuse these names; so does the server, when a client does not.
  test.each(
    (vectors as readonly Vector[])
      .filter(({ result, table }) => result.status !== 'SUCCESS' && !/[\n\r]/.test(table))
      .map((vector) => [vector.testName, vector] as const),
  )('refuses %s', (_name, { table, symbols, columns }) => {
    const escaped = (text: string) => text.replace(/[ ,=\n\r\\"]/g, '\\$&')
    const tags = symbols.map(({ name, value }) => `,${escaped(name)}=${escaped(value)}`).join('')
    const fields = columns.map(({ name }) => `${escaped(name)}=1i`).join(',')
    expect(lineHarness(path).decode(`${escaped(table)}${tags} ${fields}\n`).error).not.toBe(null)
  })
})

function memoryValue({ type, value }: Vector['columns'][number]): unknown {
  if (type === 'LONG') return BigInt(value as number)
  if (type === 'BOOLEAN') return value === true ? 1 : 0
  return value === 0 ? 0 : value
}
