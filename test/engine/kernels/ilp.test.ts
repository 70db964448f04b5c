// Goal: the line-protocol kernel (WebAssembly) decodes exactly like the reference implementation, stops at the same
// lines for the same reasons, and takes no value that extends beyond its block of lines. Method: random blocks of lines
// of three tables, valid and damaged, with all of their columns or some, in any order; kernel and reference run over
// equal memories, stop at the same places, and leave the same rows and dictionaries.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  bindIlpTemplate,
  emptyIlpBatch,
  hasIlpValues,
  type IlpForm,
  type IlpKey,
  ilpKinds,
  readIlpBatch,
  resumeIlpTemplate,
  writeIlpState,
  writeIlpTemplate,
} from '../../../engine/kernels/ilp.js'
import * as layout from '../../../engine/kernels/ilp-layout.js'
import { type Bench, kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const both = kernelsAndReferences()
const maxRows = 16
const stateAt = testBase
const listAt = testBase + 64
const listMask = 7
const dictionaryAt = testBase + 4096
const slotsAt = testBase + 8192
const chunkAt = testBase + 65536
const heapAt = testBase + 128 * 1024
const templatesAt = testBase + 256 * 1024
const valuesAt = testBase + 512 * 1024
const blockAt = testBase + 1024 * 1024

interface Shape {
  readonly table: string
  readonly columns: readonly (readonly [string, keyof typeof ilpKinds])[]
}

const shapes: readonly Shape[] = [
  {
    table: 'trades',
    columns: [
      ['side', 'symbol'],
      ['venue_long_name_here', 'symbol'],
      ['price', 'f64'],
      ['size', 'i64'],
    ],
  },
  {
    table: 'trades_of_the_last_month',
    columns: [
      ['side', 'symbol'],
      ['b', 'boolean'],
      ['i8', 'i8'],
      ['i16', 'i16'],
      ['i32', 'i32'],
      ['f', 'f32'],
    ],
  },
  {
    table: 'm',
    columns: [
      ['x', 'text'],
      ['us', 'micros'],
      ['ns', 'nanos'],
      ['ms', 'millis'],
      ['arr', 'array'],
      ['d', 'f64'],
    ],
  },
]

function formOf({ table, columns }: Shape, nanos: boolean): IlpForm {
  const keys = columns.map(([name, kind]): IlpKey => ({ key: Buffer.from(`${name}=`), kind: ilpKinds[kind] }))
  const isTag = ({ kind }: IlpKey): boolean => kind === ilpKinds.symbol
  const fields = keys.filter((key) => !isTag(key))
  return { name: Buffer.from(table), tags: keys.filter(isTag), fields, nanos }
}

function prepare(
  { memory, kernels }: Bench,
  text: Buffer,
  nanosTable: boolean,
  unitNanos: bigint,
  slots: number,
): number[] {
  memory.u8.fill(0, testBase, blockAt + text.length + 128)
  const dictionary = dictionaryAt >>> 2
  memory.u32.set([0, slots - 1, slotsAt, heapAt, heapAt + 8192, 256], dictionary)
  memory.u32[dictionary + 8] = chunkAt
  memory.u8.set(text, blockAt)
  const addresses = shapes.map((shape, i) => {
    const address = templatesAt + i * 4096
    writeIlpTemplate(memory, address, formOf(shape, nanosTable))
    const buffers = shape.columns.map(([, kind], c) => ({
      values: valuesAt + (i * 16 + c) * 1024,
      dictionary: kind === 'symbol' ? dictionaryAt : 0,
    }))
    bindIlpTemplate(memory, address, buffers, valuesAt + (i * 16 + 15) * 1024)
    resumeIlpTemplate(memory, address, emptyIlpBatch, maxRows)
    const slot = kernels.ilp.templateSlot(listAt, listMask, memory.u32[(address + layout.templateNameAddress) >>> 2]!)
    memory.u32[slot >>> 2] = address
    return address
  })
  const end = blockAt + text.length
  writeIlpState(memory, stateAt, {
    cursor: blockAt,
    end,
    templates: listAt,
    mask: listMask,
    current: 0,
    unitNanos,
    nowMicros: 77n,
  })
  return addresses
}

/** Runs to the end of the block as a caller would: takes full templates, skips other lines; returns what happened. */
function drive({ memory, kernels }: Bench, end: number): { events: string[]; rows: number } {
  const events: string[] = []
  let rows = 0
  for (let guard = 0; guard < 1000; guard++) {
    const code = kernels.ilp.decode(stateAt)
    const cursor = memory.u32[stateAt >>> 2]!
    const template = memory.u32[(stateAt + 24) >>> 2]!
    const lacks =
      code === layout.dictionaryFull ? [...memory.u32.subarray((stateAt + 20) >>> 2, (stateAt + 32) >>> 2)] : []
    events.push(`${code}@${cursor - blockAt}/${template} ${lacks}`)
    expect(cursor).toBeLessThanOrEqual(end)
    if (code === layout.done || code === layout.badBlock) return { events, rows }
    if (code === layout.templateFull) {
      rows += readIlpBatch(memory, template).rows
      resumeIlpTemplate(memory, template, emptyIlpBatch, maxRows)
    } else memory.u32[stateAt >>> 2] = memory.u8.indexOf(10, cursor) + 1
  }
  throw new Error('decode makes no progress')
}

const words = fc.constantFrom(
  'a',
  'bb',
  'sixteen-bytes-ok',
  'seventeen-bytes-x',
  'a text that is longer than that, no',
  'ü€😀',
  '',
)
const symbol = fc.oneof(
  { weight: 9, arbitrary: words.filter((w) => w !== '' && !/[, =]/.test(w)) },
  fc.constantFrom('', 'a\\ b', 'a=b', 'a b'),
)
const decimal = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom(
    '1',
    '1.',
    '.5',
    '-0',
    '1e5',
    '1E-7',
    '12i',
    '-9223372036854775807i',
    '9223372036854775808i',
    '1e',
    'x',
    '',
    '-',
    '1.5i',
    '00000000000000000000001.5',
    '12345678901234567890',
    '123456789012345678.9',
    '9007199254740993',
    '1e400',
    '4.9e-324',
    '3.5e38',
    'NaN',
  ),
)
const integer = fc.oneof(
  fc.integer().map((i) => `${i}i`),
  fc.bigInt({ min: -(1n << 63n), max: 1n << 63n }).map((i) => `${i}i`),
  fc.constantFrom(
    '127i',
    '128i',
    '-128i',
    '-129i',
    '32767i',
    '-32769i',
    '2147483648i',
    '-2147483648i',
    '1',
    'i',
    '-i',
    '12345678i',
    '1234567890123456i',
    '0000000000000000000i',
    '00000000000000000000i',
  ),
)
const time = fc
  .tuple(fc.oneof(fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }), fc.integer()), fc.constantFrom('t', 'n', 'i', ''))
  .map(([v, u]) => `${v}${u}`)
const text = fc.tuple(words, fc.constantFrom('', '\\"', 'x'.repeat(40), '\xff')).map(([a, b]) => `"${a}${b}"`)
const boolean = fc.constantFrom(
  't',
  'T',
  'true',
  'True',
  'TRUE',
  'f',
  'F',
  'false',
  'False',
  'FALSE',
  'tRUE',
  'tr',
  'fALSE',
  '',
)
const binary = fc.double().map((d) => {
  const bytes = Buffer.alloc(10)
  bytes.set([61, 16])
  bytes.writeDoubleLE(d, 2)
  return bytes.toString('latin1')
})
const array = fc.constantFrom(
  `=\x0e\x0a\x01\x02\0\0\0${'\x01'.repeat(16)}`,
  '=\x0e\x0a\x00',
  `=\x0e\x0a\x02\xff\xff\xff\xff\xff\xff\xff\xff`,
  '=\x0e',
)

const values: Record<string, fc.Arbitrary<string>> = {
  symbol,
  boolean,
  i8: integer,
  i16: integer,
  i32: integer,
  i64: integer,
  f32: fc.oneof(decimal, binary),
  f64: fc.oneof(decimal, binary),
  micros: time,
  nanos: time,
  millis: time,
  text,
  array,
}
/** Values that always decode, so that lines reach their end often enough. */
const plain: Record<string, fc.Arbitrary<string>> = {
  symbol: fc.constantFrom('a', 'bb', 'sixteen-bytes-ok', 'seventeen-bytes-x'),
  boolean: fc.constantFrom('t', 'False'),
  i8: fc.integer({ min: -128, max: 127 }).map((i) => `${i}i`),
  i16: fc.constant('-300i'),
  i32: fc.integer({ min: -9999 }).map((i) => `${i}i`),
  i64: fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }).map((i) => `${i}i`),
  f32: fc.constantFrom('1.5', '2i'),
  f64: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  micros: fc.constantFrom('1t', '1700000000000000000n'),
  nanos: fc.constant('5n'),
  millis: fc.constant('9i'),
  text: words.map((w) => `"${w}"`),
  array: fc.constant(`=\x0e\x0a\x01\x01\0\0\0${'\x01'.repeat(8)}`),
}
const stamp = fc.oneof(
  { weight: 6, arbitrary: fc.bigInt({ min: 10n ** 18n, max: 2n ** 63n }).map((v) => ` ${v}\n`) },
  fc.bigInt({ min: 0n, max: 10n ** 19n }).map((v) => ` ${v}\n`),
  fc.constantFrom(
    '\n',
    '\r\n',
    ' 1700000000000000t\n',
    ' 17n\r\n',
    ' -1\n',
    ' \n',
    ' 9223372036854775807\n',
    ' 9999999999999999999\n',
    ' 1x\n',
    ' 1 \n',
  ),
)
type Column = Shape['columns'][number]

/** All columns in their order, or tags and fields with some missing, moved, or twice. */
function columnsOf({ columns }: Shape): fc.Arbitrary<readonly Column[]> {
  const some = (from: Column[]): fc.Arbitrary<Column[]> =>
    fc.oneof(fc.subarray(from), fc.shuffledSubarray(from), fc.array(fc.constantFrom(...from), { maxLength: 4 }))
  const tags = columns.filter(([, kind]) => kind === 'symbol')
  const fields = columns.filter(([, kind]) => kind !== 'symbol')
  const parts = fc.tuple(tags.length === 0 ? fc.constant([]) : some(tags), some(fields)).map((both) => both.flat())
  return fc.oneof(fc.constant(columns), parts)
}

const line = fc.constantFrom(...shapes).chain((shape) =>
  fc
    .tuple(
      fc.tuple(fc.constantFrom(plain, plain, plain, values), columnsOf(shape)).chain(([from, columns]) =>
        fc.tuple(
          ...columns.map(([name, kind], index) => {
            const isFirstField = kind !== 'symbol' && isFieldFirst(columns, index)
            return (from[kind] as fc.Arbitrary<string>).map((v) => `${isFirstField ? ' ' : ','}${name}=${v}`)
          }),
        ),
      ),
      stamp,
    )
    .map(([parts, end]) =>
      Buffer.from(
        shape.table + parts.join('') + end,
        ['\x0e', '\x10', '\xff'].some((c) => parts.join('').includes(c)) ? 'latin1' : 'utf8',
      ),
    ),
)

function isFieldFirst(columns: readonly Column[], index: number): boolean {
  return columns.slice(0, index).every(([, kind]) => kind === 'symbol')
}

const garbage = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.concat([bytes, Buffer.from('\n')]))
const cut = fc.tuple(line, fc.nat(80)).map(([l, n]) => Buffer.concat([l.subarray(0, n), Buffer.from('\n')]))
const block = fc
  .array(fc.oneof({ weight: 12, arbitrary: line }, garbage, cut), { minLength: 1, maxLength: 60, size: 'max' })
  .map((lines) => Buffer.concat(lines))

function compare(text: Buffer, nanosTable: boolean, unit: bigint, slots: number): number {
  const end = blockAt + text.length
  const addresses = prepare(both.wasm, text, nanosTable, unit, slots)
  prepare(both.reference, text, nanosTable, unit, slots)
  const { events, rows } = drive(both.wasm, end)
  expect(events).toEqual(drive(both.reference, end).events)
  let total = rows
  addresses.forEach((address, i) => {
    const batch = readIlpBatch(both.wasm.memory, address)
    const used = batch.rows
    total += used
    expect(batch).toEqual(readIlpBatch(both.reference.memory, address))
    const { columns } = shapes[i] as Shape
    for (let c = 0; c < columns.length; c++)
      expect(hasIlpValues(both.wasm.memory, address, c)).toBe(hasIlpValues(both.reference.memory, address, c))
    for (let c = 0; c < 16; c++) {
      const at = valuesAt + (i * 16 + c) * 1024
      const width = widths[columns[c]?.[1] ?? 'i64'] ?? 8
      expect(sameBytes(both, at, used * width)).toBe(true)
      // Nothing is written behind the last possible row.
      expect(both.wasm.memory.u64[(at + maxRows * width) >>> 3]).toBe(0n)
    }
  })
  expect(sameBytes(both, dictionaryAt, chunkAt - dictionaryAt)).toBe(true)
  return total
}
const widths: Partial<Record<string, number>> = { symbol: 4, boolean: 1, i8: 1, i16: 2, i32: 4, f32: 4 }

describe('ilp kernel', () => {
  test('decodes, stops and writes like the reference', () => {
    let rows = 0
    const units = fc.constantFrom(1n, 1000n, 1_000_000n, 1_000_000_000n, 3_600_000_000_000n)
    fc.assert(
      fc.property(block, fc.boolean(), units, fc.constantFrom(4, 64), (text, nanos, unit, slots) => {
        rows += compare(text, nanos, unit, slots)
      }),
      { numRuns: 600, seed: Number(process.env['SEED'] ?? 20240501) },
    )
    expect(rows).toBeGreaterThan(2000)
  })

  test('does not take a value that runs over the end of the block, whatever lies behind', () => {
    const lines = [
      'trades_of_the_last_month,side=a b=t,i8=1i,i16=1i,i32=1i,f==\x10abcdefg\n',
      'trades,side=a,venue_long_name_here=b price==\x10abcdefg\n',
    ]
    const after = [' 5\n', ',size=1i 5\n']
    lines.forEach((line, i) => {
      for (const bench of [both.wasm, both.reference]) {
        prepare(bench, Buffer.from(line), false, 1n, 64)
        bench.memory.u8.set(Buffer.from(after[i] as string), blockAt + line.length)
        expect(bench.kernels.ilp.decode(stateAt)).toBe(layout.otherLine)
        expect(bench.memory.u32[stateAt >>> 2]).toBe(blockAt)
      }
    })
  })

  test('refuses a block without a newline at its end', () => {
    prepare(both.wasm, Buffer.from('m x=1'), false, 1n, 64)
    expect(both.wasm.kernels.ilp.decode(stateAt)).toBe(layout.badBlock)
  })

  test('finds and rehashes what it inserted', () => {
    const { memory, kernels } = both.wasm
    prepare(both.wasm, Buffer.from('\n'), false, 1n, 512)
    const put = (s: string) => memory.u8.set(Buffer.from(`${s}\0`), blockAt) ?? Buffer.byteLength(s)
    const names = Array.from({ length: 200 }, (_, i) => `${'x'.repeat(i % 37)}${i}`)
    const bytesOf = (s: string) => {
      put(s)
      return Buffer.byteLength(s)
    }
    names.forEach((name, i) => expect(kernels.ilp.intern(dictionaryAt, blockAt, bytesOf(name))).toBe(i))
    memory.u32[(dictionaryAt + 4) >>> 2] = 1023
    memory.u8.fill(0, slotsAt, slotsAt + 32768)
    kernels.ilp.rehashDictionary(dictionaryAt)
    names.forEach((name, i) => expect(kernels.ilp.find(dictionaryAt, blockAt, bytesOf(name))).toBe(i))
    expect(kernels.ilp.find(dictionaryAt, blockAt, bytesOf('nope'))).toBe(-3)
  })
})
