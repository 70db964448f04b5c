// Goal: read_parquet() returns the rows of Parquet files of other programs, whatever their encoding, codec, page
// version and nesting; an invalid file is reported with the location, and has no other effect. Method: random columns
// in random formats by the tests' own writer, with another reader as the oracle; then files with known damage.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allRights, readRights } from '../../engine/base/rights.js'
import { zstd } from '../../engine/base/zstd.js'
import type { Engine, ExecuteOptions } from '../../engine/engine.js'
import { nativeDialect, postgresDialect } from '../../engine/sql/dialect.js'
import { parquetThrift } from '../../engine/storage/part/parquet-thrift.js'
import { copyRelations, fileCopier } from '../../pipeline/ingest.js'
import { codecs, parquetFile, type WrittenColumn, type WrittenForm } from '../support/parquet-writer.js'
import { executeOptions, openTestEngine } from '../support/test-engine.js'

const home = mkdtempSync(join(tmpdir(), 'penstock-foreign-'))
const directories = { importRoot: join(home, 'import'), exportRoot: join(home, 'export'), spool: home }
const { types } = parquetThrift()
let engine: Engine

beforeAll(async () => {
  engine = await openTestEngine(join(home, 'db'))
  engine.copier(fileCopier(engine, directories))
  for (const relation of copyRelations(directories)) engine.relation(relation)
  mkdirSync(directories.importRoot)
  mkdirSync(directories.exportRoot)
})

afterAll(async () => {
  await engine.close()
  rmSync(home, { recursive: true, force: true })
})

const session = { user: 'admin', protocol: 'pg', dialect: postgresDialect, readOnly: false, rights: allRights } as const

async function execute(sql: string, options: Partial<ExecuteOptions>): Promise<string> {
  const shared = {
    ...executeOptions,
    session,
    encoding: { kind: 'json', quoteLargeNumbers: false, geohashAsText: true },
    rowsMax: 10_000,
  } as const
  const result = await engine.execute(sql, { ...shared, ...options })
  if (result.kind !== 'rows') return result.kind === 'done' ? `${result.tag} ${result.rows}` : ''
  const blocks: Buffer[] = []
  for await (const block of result.blocks) blocks.push(Buffer.from(block))
  await result.summary
  return Buffer.concat(blocks).toString()
}

const run = (sql: string): Promise<string> => execute(sql, {})

function put(name: string, bytes: Uint8Array): void {
  writeFileSync(join(directories.importRoot, name), bytes)
}

// Against another reader --------------------------------------------------------------------------------------------

interface Kind {
  readonly physical: number
  readonly element?: WrittenColumn['element']
  readonly encodings: readonly number[]
  readonly value: fc.Arbitrary<WrittenColumn['values'][number]>
  /** What the server shows of the other reader's value. */
  readonly shown: (value: unknown) => unknown
}

const time = (digits: number) => (value: unknown) => {
  const [date = '', rest = ''] = (value as Date).toISOString().slice(0, -1).split('.')
  return `${date}.${rest.padEnd(digits, '0')}Z`
}
const dictionary = [2, 8]
const text = fc.string({ unit: 'grapheme', maxLength: 12 }).map((value) => Buffer.from(value))

const kinds: Readonly<Record<string, Kind>> = {
  boolean: { physical: 0, encodings: [0, 3], value: fc.boolean(), shown: (value) => value ?? false },
  int: { physical: 1, encodings: [0, 5, 9, ...dictionary], value: fc.integer({ min: -(2 ** 31) + 1 }), shown: Number },
  long: {
    physical: 2,
    encodings: [0, 5, 9, ...dictionary],
    value: fc.bigInt(-(2n ** 53n), 2n ** 53n),
    shown: Number,
  },
  float: {
    physical: 4,
    encodings: [0, 9, ...dictionary],
    value: fc.integer({ min: -1000, max: 1000 }).map((value) => value / 8),
    shown: Number,
  },
  double: {
    physical: 5,
    encodings: [0, 9, ...dictionary],
    value: fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }).map((value) => value + 0),
    shown: Number,
  },
  text: {
    physical: 6,
    element: { converted_type: types.ConvertedType.UTF8 },
    encodings: [0, 6, 7, ...dictionary],
    value: text,
    shown: String,
  },
  day: {
    physical: 1,
    element: { converted_type: types.ConvertedType.DATE },
    encodings: [0, 5, ...dictionary],
    value: fc.integer({ min: -30_000, max: 30_000 }),
    shown: time(3),
  },
  millis: {
    physical: 2,
    element: { converted_type: types.ConvertedType.TIMESTAMP_MILLIS },
    encodings: [0, 5, 9, ...dictionary],
    value: fc.bigInt(-(10n ** 12n), 10n ** 13n),
    shown: time(6),
  },
  int96: {
    physical: 3,
    encodings: [0, ...dictionary],
    value: fc.tuple(fc.nat(86_399_999), fc.integer({ min: 2_430_000, max: 2_470_000 })).map(([millis, day]) => {
      const bytes = Buffer.alloc(12)
      bytes.writeBigInt64LE(BigInt(millis) * 1_000_000n)
      bytes.writeInt32LE(day, 8)
      return bytes
    }),
    shown: time(9),
  },
  decimal: {
    physical: 7,
    element: { converted_type: types.ConvertedType.DECIMAL, precision: 9, scale: 2, type_length: 5 },
    encodings: [0, 7, 9, ...dictionary],
    value: fc.integer({ min: -99_999_999, max: 99_999_999 }).map((value) => {
      const bytes = Buffer.alloc(5, value < 0 ? 255 : 0)
      bytes.writeInt32BE(value, 1)
      return bytes
    }),
    shown: (value) => Number(value).toFixed(2),
  },
  list: {
    physical: 5,
    encodings: [0, 9, ...dictionary],
    value: fc.array(fc.option(fc.integer({ min: -9, max: 9 })), { maxLength: 5 }),
    shown: (value) => (value as readonly unknown[]).map((item) => item ?? null),
  },
}

const form: fc.Arbitrary<WrittenForm> = fc.record({
  codec: fc.constantFrom(...(Object.keys(codecs) as (keyof typeof codecs)[]).filter((name) => name !== 'lzo')),
  version: fc.constantFrom(1 as const, 2 as const),
  pageRows: fc.integer({ min: 1, max: 40 }),
  groupRows: fc.integer({ min: 10, max: 70 }),
  checksums: fc.boolean(),
})

const compressors = {
  GZIP: (input: Uint8Array) => gunzipSync(input),
  BROTLI: (input: Uint8Array) => brotliDecompressSync(input),
  ZSTD: (input: Uint8Array, size: number) => zstd().decompress(Buffer.from(input), size),
  LZ4: (input: Uint8Array, size: number) => literals(Buffer.from(input).subarray(8), size),
  LZ4_RAW: (input: Uint8Array, size: number) => literals(Buffer.from(input), size),
}

/** A block of LZ4 as the tests' writer makes it: the literals are its end. */
function literals(block: Buffer, size: number): Uint8Array {
  return block.subarray(block.length - size)
}

test('columns of every type, encoding, codec and page version are what another reader says', async () => {
  const column = fc.constantFrom(...Object.keys(kinds)).chain((name) => {
    const kind = kinds[name] as Kind
    const values = fc.array(fc.option(kind.value, { freq: 6 }), { minLength: 1, maxLength: 120 })
    return fc.record({ name: fc.constant(name), encoding: fc.constantFrom(...kind.encodings), values })
  })
  await fc.assert(
    fc.asyncProperty(fc.array(column, { minLength: 1, maxLength: 4 }), form, async (columns, chosen) => {
      const rows = Math.min(...columns.map(({ values }) => values.length))
      const written = columns.map(({ name, encoding, values }, index): WrittenColumn => {
        const { physical, element = {} } = kinds[name] as Kind
        return { name: `${name}_${index}`, physical, element, encoding, values: values.slice(0, rows) }
      })
      // What has no list at all would be written as a column of values.
      const usable = written.filter(({ name, values }) => !name.startsWith('list') || values.some(Array.isArray))
      if (usable.length === 0) return
      const bytes = parquetFile(usable, chosen)
      put('random.parquet', bytes)
      const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer
      const expected = (await parquetReadObjects({ file, compressors })).map((row) =>
        usable.map(({ name }) => {
          const { shown } = kinds[name.replace(/_\d+$/, '')] as Kind
          const value = row[name] ?? null
          return value === null && !name.startsWith('boolean') ? null : shown(value)
        }),
      )
      expect(JSON.parse(`[${await run("select * from read_parquet('random.parquet')")}]`)).toEqual(expected)
    }),
    { numRuns: 150 },
  )
})

test('a page of several frames of zstd', async () => {
  await run('create table long as (select x::double / 7 d from long_sequence(200000))')
  await run(
    "copy long to 'frames' with format parquet compression_codec zstd compression_level 19 data_page_size 100000000",
  )
  expect(await run("select count(), sum(d) from read_parquet('frames.parquet')")).toBe(
    await run('select count(), sum(d) from long'),
  )
})

test('levels in the old encoding are read', async () => {
  const values = Array.from({ length: 60 }, (_, index) => (index % 7 < 3 ? null : index))
  const lists = values.map((value, index) => (value === null ? null : Array(index % 4).fill(value)))
  const columns = [
    { name: 'a', physical: 1, encoding: 0, values },
    { name: 'l', physical: 5, encoding: 0, values: lists },
  ]
  const chosen = { codec: 'snappy', version: 1, pageRows: 7, groupRows: 50 } as const
  put('old.parquet', parquetFile(columns, { ...chosen, oldLevels: true }))
  put('new.parquet', parquetFile(columns, chosen))
  expect(await run("select * from read_parquet('old.parquet')")).toBe(
    await run("select * from read_parquet('new.parquet')"),
  )
})

// Statements --------------------------------------------------------------------------------------------------------

const plainForm: WrittenForm = { codec: 'none', version: 1, pageRows: 100, groupRows: 100 }

function numbers(count: number, from = 0): WrittenColumn {
  const values = Array.from({ length: count }, (_, index) => BigInt(from + index))
  return { name: 'a', physical: 2, encoding: 0, values }
}

test('a file is a relation like others', async () => {
  mkdirSync(join(directories.importRoot, 'parts'), { recursive: true })
  put('parts/1.parquet', parquetFile([numbers(3)], plainForm))
  put('parts/2.parquet', parquetFile([numbers(3, 10)], plainForm))
  const one = "read_parquet('parts/1.parquet')"
  expect(await run(`select sum(a), count() from ${one} where a > 0`)).toBe('[3,2]')
  expect(await run(`select count() from ${one}`)).toBe('[3]')
  expect(await run("select count(), max(a) from read_parquet('parts/*.parquet')")).toBe('[6,12]')
  expect(await run(`select t.a, u.a from ${one} t join read_parquet('parts/?.parquet') u on t.a = u.a - 10`)).toBe(
    '[0,10],[1,11],[2,12]',
  )
  expect(await run(`select a from ${one} where a = (select max(a) from ${one})`)).toBe('[2]')
  expect(await run(`create table made as (select * from ${one})`)).toMatch(/CREATE TABLE/)
  expect(await run(`insert into made select a + 5 from ${one}`)).toBe('INSERT 3')
  expect(await run('select sum(a) from made')).toBe('[21]')
  expect(await run(`with p as (select * from ${one}) select a from p order by a desc limit 1`)).toBe('[2]')
  expect(await run(`explain select a from ${one}`)).toMatch(/read_parquet files: 1/)
})

test('bytes that are no text are BINARY, and are copied as they are', async () => {
  const values = [Buffer.from([0, 255, 34]), null, Buffer.from('ab')]
  put('raw.parquet', parquetFile([{ name: 'r', physical: 6, encoding: 0, values }], plainForm))
  expect(await run("select encode(r, 'hex') from read_parquet('raw.parquet')")).toBe('["00ff22"],[null],["6162"]')
  expect(await run("copy raw from 'raw.parquet'")).toBe('COPY 3')
  expect(await run('select count() from raw where r is null')).toBe('[1]')
  expect(await run("select encode(r, 'hex') from raw")).toBe('["00ff22"],[null],["6162"]')
})

test('numbers without sign, decimals of every physical type, UUID', async () => {
  const big = (value: bigint, bytes: number): Buffer =>
    Buffer.from(
      BigInt.asUintN(bytes * 8, value)
        .toString(16)
        .padStart(bytes * 2, '0'),
      'hex',
    )
  const decimal = (precision: number): NonNullable<WrittenColumn['element']> => ({
    ...{ converted_type: types.ConvertedType.DECIMAL, precision, scale: 2 },
  })
  const uuid = new types.LogicalType({ UUID: new types.UUIDType() })
  const columns: WrittenColumn[] = [
    { name: 'u', physical: 1, element: { converted_type: types.ConvertedType.UINT_32 }, encoding: 0, values: [-1] },
    { name: 'd', physical: 1, element: decimal(9), encoding: 0, values: [-12345] },
    { name: 'e', physical: 2, element: decimal(30), encoding: 5, values: [-12345n] },
    { name: 'f', physical: 6, element: decimal(60), encoding: 0, values: [big(-12345n, 3)] },
    { name: 'g', physical: 7, element: { ...decimal(38), type_length: 20 }, encoding: 0, values: [big(-12345n, 20)] },
    { name: 'i', physical: 7, element: { logicalType: uuid, type_length: 16 }, encoding: 0, values: [big(5n, 16)] },
  ]
  put('kinds.parquet', parquetFile(columns, plainForm))
  expect(await run("select * from read_parquet('kinds.parquet')")).toBe(
    '[4294967295,"-123.45","-123.45","-123.45","-123.45","00000000-0000-0000-0000-000000000005"]',
  )
})

test('the smallest integers, which are NULL, are reported by COPY and kept by read_parquet(.., exact)', async () => {
  const [longMin, intMin] = [-(2n ** 63n), -(2 ** 31)]
  const columns: WrittenColumn[] = [
    { name: 'l', physical: 2, encoding: 0, values: [longMin, null, 5n] },
    { name: 'i', physical: 1, encoding: 5, values: [intMin, 7, null] },
  ]
  for (const version of [1, 2] as const) {
    put('smallest.parquet', parquetFile(columns, { ...plainForm, version }))
    const [all, exact] = await Promise.all([
      run("select * from read_parquet('smallest.parquet')"),
      run("select * from read_parquet('smallest.parquet', 'exact')"),
    ])
    expect(all).toBe('[null,null],[null,7],[5,null]')
    expect(exact).toBe(`["${longMin}","${intMin}"],[null,"7"],["5",null]`)
    expect(await run("copy smallest from 'smallest.parquet'")).toBe('COPY 3')
    expect(await run('select l, i from smallest')).toBe(await run("select l, i from read_parquet('smallest.parquet')"))
    const rejected = 'select * from sys.rejects'
    expect(await run(rejected)).toContain(`"not a value of type LONG [column=l, value=${longMin}]: it stands for NULL"`)
    expect(await run(rejected)).toContain(`"not a value of type INT [column=i, value=${intMin}]: it stands for NULL"`)
    await run('drop table smallest')
  }
  await expect(run("select * from read_parquet('smallest.parquet', 'odd')")).rejects.toThrow(
    "and 'exact' as its only option",
  )
})

test('a damaged footer may contradict the type of the column', async () => {
  const { types } = parquetThrift()
  for (const [physical, type] of [1, 2].flatMap((own) => [1, 2].map((said) => [own, said] as const))) {
    const metadata = { type, statistics: new types.Statistics({ min_value: Buffer.alloc(type * 4) }) }
    put('claims.parquet', parquetFile([{ name: 'a', encoding: 0, values: [1, 2], physical, metadata }], plainForm))
    const copied = run("copy claims from 'claims.parquet'").finally(() => run('drop table if exists claims'))
    if (physical === type) expect(await copied).toBe('COPY 2')
    else await expect(copied).rejects.toThrow(/claims\.parquet/)
  }
})

test('files of a pattern must have the same columns', async () => {
  mkdirSync(join(directories.importRoot, 'odd'), { recursive: true })
  put('odd/1.parquet', parquetFile([numbers(3)], plainForm))
  put('odd/2.parquet', parquetFile([{ ...numbers(3), name: 'b' }], plainForm))
  await expect(run("select * from read_parquet('odd/*')")).rejects.toThrow(
    'its column 1 is b LONG, unlike that of odd/1.parquet: files that are read together must have the same columns',
  )
})

test('places and rights are those of COPY FROM', async () => {
  put('mine.parquet', parquetFile([numbers(3)], plainForm))
  symlinkSync(join(home, 'db'), join(directories.importRoot, 'link'))
  execFileSync('mkfifo', [join(directories.importRoot, 'pipe.parquet'), join(directories.importRoot, 'pipe.csv')])
  const cases: [string, RegExp][] = [
    ["read_parquet('../db/x')", /leads out/],
    ["read_parquet('../*')", /leads out/],
    ["read_parquet('link/manifest')", /leads out|does not exist/],
    ["read_parquet('nope.parquet')", /file does not exist \[file=nope.parquet\]/],
    ["read_parquet('nope*')", /no file matches the name/],
    ["read_parquet('pipe.parquet')", /not a regular file/],
    ["read_parquet('pipe*')", /no file matches the name/],
    ["read_parquet('parts')", /not a regular file/],
    ["read_parquet('a', 'b')", /one literal text/],
    ['read_parquet()', /one literal text/],
    ["read_parquet('mine' || '.parquet')", /one literal text/],
    ['read_parquet', /table does not exist/],
  ]
  for (const [source, message] of cases) await expect(run(`select * from ${source}`)).rejects.toThrow(message)
  for (const name of ['pipe.parquet', 'pipe.csv', 'parts'])
    await expect(run(`copy x from '${name}'`)).rejects.toThrow(/not a regular file/)
  const readers = { ...session, rights: readRights }
  await expect(execute("select * from read_parquet('mine.parquet')", { session: readers })).rejects.toThrow(
    /the right is missing .*right=write/,
  )
  expect(
    await execute("select sum(a) from read_parquet('mine.parquet')", {
      session: { ...session, dialect: nativeDialect },
    }),
  ).toBe('[3]')
  await expect(
    execute('select * from read_parquet($1)', {
      parameters: [{ value: 'mine.parquet', type: { name: 'VARCHAR', a: 0, b: 0 } }],
    }),
  ).rejects.toThrow(/one literal text/)
})

// Damage ------------------------------------------------------------------------------------------------------------

/** Both ways of reading tell the same. */
async function expectDamage(name: string, bytes: Uint8Array, message: RegExp | string): Promise<void> {
  put(name, bytes)
  await expect(run(`select * from read_parquet('${name}')`)).rejects.toThrow(message)
  await expect(run(`copy damaged from '${name}'`)).rejects.toThrow(message)
}

test('a run of levels that is longer than its page is an error that tells where', async () => {
  const values = [...numbers(99).values, null]
  const bytes = parquetFile([{ ...numbers(0), values }], plainForm)
  const runs = bytes.indexOf(Buffer.from('c60101030000', 'hex'))
  const plain = parquetFile([{ ...numbers(100), values: [...numbers(100).values] }], plainForm)
  expect(plain.length).toBeGreaterThan(0)
  expect(runs).toBeGreaterThan(0)
  bytes.set(Buffer.from('feffffff0f01', 'hex'), runs)
  await expectDamage(
    'run.parquet',
    bytes,
    'Parquet file cannot be read: the levels of a page do not match its 100 values [file=run.parquet, column=a, row group=0, offset=4]',
  )
})

test('files that are not Parquet, and truncated ones', async () => {
  const whole = parquetFile([numbers(100)], plainForm)
  await expectDamage('bare.parquet', parquetFile([], plainForm), 'the file has no columns [file=bare.parquet]')
  await expectDamage('empty.parquet', Buffer.alloc(0), 'not a Parquet file: it has 0 bytes [file=empty.parquet]')
  await expectDamage('short.parquet', Buffer.from('PAR1PAR1'), /not a Parquet file: it has 8 bytes/)
  await expectDamage('text.parquet', Buffer.from('a,b\n1,2\n3,4\n'), /does not end with PAR1/)
  await expectDamage('cut.parquet', whole.subarray(0, whole.length - 9), /does not end with PAR1/)
  const length = Buffer.from(whole)
  length.writeUInt32LE(0xffff_fff0, length.length - 8)
  await expectDamage('length.parquet', length, /the footer has 4294967280 bytes, but the file only 903/)
  const middle = Buffer.concat([whole.subarray(0, 200), whole.subarray(400)])
  await expectDamage('middle.parquet', middle, /Parquet file cannot be read: the column has \d+ bytes from 4 on/)
})

test('sizes that cannot be are not believed', async () => {
  const { serialize } = parquetThrift()
  const page = (raw: number, packed: number, values: number): Buffer =>
    serialize(
      new types.PageHeader({
        ...{ type: types.PageType.DATA_PAGE, uncompressed_page_size: raw, compressed_page_size: packed },
        data_page_header: new types.DataPageHeader({
          ...{ num_values: values, encoding: types.Encoding.PLAIN },
          ...{ definition_level_encoding: types.Encoding.RLE, repetition_level_encoding: types.Encoding.RLE },
        }),
      }),
    )
  // As long as before: the header is followed by what is left of the page.
  const replaced = (codec: WrittenForm['codec'], header: Buffer): Buffer => {
    const bytes = parquetFile([numbers(100)], { ...plainForm, codec })
    header.copy(bytes, 4)
    return bytes
  }
  const huge = 2 ** 30
  await expectDamage(
    'huge.parquet',
    replaced('none', page(huge, huge, 100)),
    /a page has 1073741824 bytes, but its column has only \d+ left/,
  )
  await expectDamage('negative.parquet', replaced('none', page(-1, 100, 100)), /a page has -1 bytes/)
  await expectDamage('plain.parquet', replaced('none', page(huge, 100, 100)), /has 100 bytes instead of 1073741824/)
  for (const codec of ['snappy', 'gzip', 'lz4Raw', 'lz4', 'zstd'] as const)
    await expectDamage(
      'packed.parquet',
      replaced(codec, page(huge, 40, 100)),
      /a page of 40 bytes cannot decompress to 1073741824 bytes/,
    )
  await expectDamage('brotli.parquet', replaced('brotli', page(huge, 40, 100)), /does not decompress to the size/)
  await expectDamage('values.parquet', replaced('none', page(792, 792, 2 ** 31 - 1)), /a page has 2147483647 values/)
  await expectDamage(
    'more.parquet',
    replaced('none', page(792, 792, 101)),
    /a page has 101 values, but its column has only 100 left/,
  )
  await expectDamage(
    'less.parquet',
    replaced('none', page(792, 792, 100)),
    /a page of 792 bytes is too short for 100 values/,
  )
})

test('a checksum, a dictionary and a text that do not fit', async () => {
  const strings: WrittenColumn = {
    ...{ name: 's', physical: 6, element: { converted_type: types.ConvertedType.UTF8 }, encoding: 8 },
    values: ['aa', 'bb', 'aa', 'cc'].map((value) => Buffer.from(value)),
  }
  const summed = parquetFile([strings], { ...plainForm, checksums: true })
  summed[summed.indexOf('bb')] = 0x63
  await expectDamage(
    'sum.parquet',
    summed,
    'the checksum of a page does not match [file=sum.parquet, column=s, row group=0, offset=4]',
  )
  const encoded = parquetFile([strings], plainForm)
  const indexes = encoded.indexOf(Buffer.from('0203', 'hex'))
  expect(indexes).toBeGreaterThan(0)
  encoded[indexes + 2] = 0xff
  await expectDamage('code.parquet', encoded, /invalid indexes into its dictionary of 3 values/)
  const plain = parquetFile([{ ...strings, encoding: 0 }], plainForm)
  plain[plain.indexOf('bb')] = 0xff
  await expectDamage('utf8.parquet', plain, 'value 2 of a page is not valid UTF-8')
  const longer = parquetFile([{ ...strings, encoding: 0 }], plainForm)
  longer[longer.indexOf('bb') - 1] = 0x7f
  await expectDamage('lengths.parquet', longer, 'the lengths of values exceed their page')
})

test('what is not read is named', async () => {
  await expectDamage(
    'lzo.parquet',
    parquetFile([numbers(3)], { ...plainForm, codec: 'lzo' }),
    /LZO compression is not supported/,
  )
  const beyond = { ...numbers(0), element: { converted_type: types.ConvertedType.UINT_64 }, values: [1n, -1n] }
  await expectDamage('beyond.parquet', parquetFile([beyond], plainForm), 'value 2 of a page is out of range for LONG')
  const late = { ...numbers(0), element: { converted_type: types.ConvertedType.TIMESTAMP_MILLIS }, values: [2n ** 62n] }
  await expectDamage('late.parquet', parquetFile([late], plainForm), 'value 1 of a page is out of range for TIMESTAMP')
  const odd = Buffer.from(parquetFile([numbers(3)], plainForm))
  odd.write('PARE', odd.length - 4)
  await expectDamage('secret.parquet', odd, 'the file is encrypted')
})
