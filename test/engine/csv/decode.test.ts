// Goal: the CSV decoder returns the rows that were written, however the file is cut into blocks, and names bad lines.
// Method: random files, cut at random positions.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CsvDecoder } from '../../../engine/csv/decode.js'
import type { CsvBatch } from '../../../engine/csv/shape.js'
import { loadKernels } from '../../../engine/kernels/load.js'
import { createAllocator, initializeHeap } from '../../../engine/memory/allocator.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { dataType } from '../../../engine/types/column-types.js'

const MIB = 1024 * 1024
const memory = createSharedMemory(64 * MIB)
initializeHeap(memory, { limits: [0, 0, 0, 48 * MIB, 0] })
const tools = { memory, allocator: createAllocator(memory, 1), kernels: loadKernels(memory) }

const shape = {
  delimiter: 0x2c,
  columns: [
    { name: 'l', type: dataType('LONG'), pattern: null },
    { name: 't', type: dataType('VARCHAR'), pattern: null },
    { name: 's', type: dataType('SYMBOL'), pattern: null },
    { name: 'd', type: dataType('DOUBLE'), pattern: null },
  ],
  timestamp: -1,
  header: true,
}

type Row = readonly [l: bigint | null, t: string | null, s: string | null, d: number | null]

function rowsOf({ rows, columns }: CsvBatch): Row[] {
  const [longs, strings, symbols, doubles] = columns
  if (
    longs?.kind !== 'fixed' ||
    strings?.kind !== 'strings' ||
    symbols?.kind !== 'symbols' ||
    doubles?.kind !== 'fixed'
  ) {
    throw new Error('other kinds of columns')
  }
  const own = stringsOf(strings.lengths, strings.bytes)
  const known = symbolStrings(symbols.strings)
  const long = new BigInt64Array(longs.bytes.buffer, longs.bytes.byteOffset, rows)
  const double = new Float64Array(doubles.bytes.buffer, doubles.bytes.byteOffset, rows)
  return Array.from({ length: rows }, (_, row): Row => {
    const value = long[row]!
    const number = double[row]!
    const symbol = symbols.ids[row]!
    return [
      value === -(2n ** 63n) ? null : value,
      own[row] ?? null,
      symbol < 0 ? null : (known[symbol] as string),
      Number.isNaN(number) ? null : number,
    ]
  })
}

function stringsOf(lengths: Int32Array, bytes: Uint8Array): (string | null)[] {
  let at = 0
  return Array.from(lengths, (length) => {
    if (length < 0) return null
    at += length
    return Buffer.from(bytes.subarray(at - length, at)).toString()
  })
}

function symbolStrings(bytes: Uint8Array): string[] {
  const strings: string[] = []
  const buffer = Buffer.from(bytes)
  for (let at = 0; at < buffer.length; ) {
    const length = buffer.readUInt32LE(at)
    strings.push(buffer.toString('utf8', at + 4, at + 4 + length))
    at += 4 + length
  }
  return strings
}

function decodeAll(file: Buffer, cuts: readonly number[]): { rows: Row[]; rejects: number[] } {
  const decoder = new CsvDecoder(tools, shape)
  const places = [...new Set(cuts.map((cut) => cut % (file.length + 1)))].sort((x, y) => x - y)
  const batches: CsvBatch[] = []
  let from = 0
  for (const place of places) {
    batches.push(...decoder.decode(file.subarray(from, place), false))
    from = place
  }
  batches.push(...decoder.decode(file.subarray(from), true))
  decoder.close()
  return {
    rows: batches.flatMap(rowsOf),
    rejects: batches.flatMap((batch) => batch.rejects.map(({ line }) => line)),
  }
}

const anyText = fc.option(fc.string({ unit: fc.constantFrom('a', 'é', ',', '"', '\n', '\r\n', '😀', ' ') }))
const anyLong: fc.Arbitrary<bigint | null> = fc.option(fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n }))
const anyDouble: fc.Arbitrary<number | null> = fc.option(
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
)
const anyRow: fc.Arbitrary<Row> = fc.tuple(anyLong, anyText, anyText, anyDouble)

function line([l, t, s, d]: Row, end: string): string {
  const quoted = (text: string | null): string => (text === null ? '' : `"${text.replaceAll('"', '""')}"`)
  return `${l ?? ''},${quoted(t)},${quoted(s)},${d ?? ''}${end}`
}

test('rows are the same, however the file is cut', () => {
  const file = fc.tuple(
    fc.array(anyRow, { maxLength: 30 }),
    fc.constantFrom('\n', '\r\n'),
    fc.array(fc.nat(), { maxLength: 12 }),
  )
  fc.assert(
    fc.property(file, ([rows, end, cuts]) => {
      // A row of nothing but NULL in one column would be an empty line; here there are four.
      const bytes = Buffer.from(`l,t,s,d${end}${rows.map((row) => line(row, end)).join('')}`)
      expect(decodeAll(bytes, cuts)).toEqual({ rows, rejects: [] })
    }),
  )
})

test('bad lines are named, good ones stay', () => {
  const bytes = Buffer.from('l,t,s,d\n1,a,b,1.5\nx,a,b,1\n\n2,"a\n""",b,\n3,a\n4,a,b,1,9\n5,a,b,y\n6,,,-1e-3')
  const whole = decodeAll(bytes, [])
  expect(whole.rejects).toEqual([3, 7, 8, 9])
  expect(whole.rows.map(([l]) => l)).toEqual([1n, 2n, 6n])
  for (let cut = 0; cut <= bytes.length; cut++) expect(decodeAll(bytes, [cut])).toEqual(whole)
})

test('text that is not UTF-8 is refused', () => {
  const bytes = Buffer.concat([
    Buffer.from('l,t,s,d\n1,a,b,1\n2,'),
    Buffer.from([0xff]),
    Buffer.from(',b,1\n3,a,b,1\n'),
  ])
  expect(decodeAll(bytes, [])).toMatchObject({ rejects: [3] })
})
