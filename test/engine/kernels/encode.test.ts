// Goal: the row encoder writes the same JSON, CSV and PostgreSQL messages as the reference implementation for every
// column type, in output buffers of any size, and never beyond their end. Method: random columns with NULLs and
// boundary values, in one memory for the WebAssembly kernel and one for the reference, encoded buffer by buffer; the
// text must be equal, JSON must parse.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  encodeColumnBytes,
  encodeFlags,
  encodeKinds,
  encodeStateBytes,
  writeEncodeState,
} from '../../../engine/kernels/encode.js'
import { type Bench, bytesAt, kernelsAndReferences, testBase } from './kernel-support.js'

const both = kernelsAndReferences()
const pair = [both.wasm, both.reference]
const seed = Number(process.env['SEED'] ?? 20240503)
const rows = 12
const stateAt = testBase
const columnsAt = testBase + 1024
const dictionaryAt = testBase + 4096
const entriesAt = testBase + 8192
const indexAt = testBase + 12288
const heapAt = testBase + 65536
const valuesAt = testBase + 512 * 1024
const outAt = testBase + 2 * 1024 * 1024

const min64 = -(1n << 63n)
const int64 = fc.oneof(
  fc.constantFrom(min64, min64 + 1n, -1n, 0n, 1n, (1n << 63n) - 1n, 253402300799999999n, 1700000000123456n),
  fc.bigInt({ min: min64, max: (1n << 63n) - 1n }),
  fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n }),
)
const doubles = fc.oneof(
  fc.double(),
  fc.constantFrom(
    0,
    -0,
    1,
    0.1,
    1e7,
    9999999.999,
    0.001,
    0.0009999,
    123456.7891,
    1e21,
    5e-324,
    1.7976931348623157e308,
    1 / 3,
    2 ** 53,
    1e22,
    9.5e-4,
    100,
    1e6,
  ),
  fc.integer({ min: -1e9, max: 1e9 }).map((i) => i / 1000),
)
const strings = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  fc.constantFrom('', '"', '""', 'x'.repeat(1500), '"\\\n'.repeat(700), 'sixteen bytes ok', 'fifteen bytes"x"'),
)

/** Writes `rows` values of the kind to valuesAt of both memories. */
type Fill = (bench: Bench, at: number) => void
const numbersOf = (width: number, values: fc.Arbitrary<bigint>) =>
  fc
    .array(values, {
      minLength: rows * (width === 16 ? 2 : width === 32 ? 4 : 1),
      maxLength: rows * (width === 16 ? 2 : width === 32 ? 4 : 1),
      size: 'max',
    })
    .map(
      (list): Fill =>
        ({ memory }, at) =>
          list.forEach((v, i) => {
            if (width === 1) memory.i8[at + i] = Number(BigInt.asIntN(8, v))
            else if (width === 2) memory.i16[(at >>> 1) + i] = Number(BigInt.asIntN(16, v))
            else if (width === 4) memory.i32[(at >>> 2) + i] = Number(BigInt.asIntN(32, v))
            else memory.i64[(at >>> 3) + i] = v
          }),
    )
const int32 = fc.oneof(fc.constantFrom(-0x80000000n, 0n, -1n), fc.bigInt({ min: -(1n << 31n), max: (1n << 31n) - 1n }))
const textList = fc.array(fc.option(strings), { minLength: rows, maxLength: rows, size: 'max' })
let heap = heapAt
const bytesInHeap = ({ memory }: Bench, bytes: Uint8Array, from: number) => {
  memory.u8.set(bytes, from)
  heap = (from + bytes.length + 16 + 7) & ~7
  return from
}
const entries = textList.map(
  (list): Fill =>
    (bench, at) => {
      for (const [i, text] of list.entries()) {
        const bytes = Buffer.from(text ?? '')
        bench.memory.u32[(at >>> 2) + i * 2] = bytesInHeap(bench, bytes, heap)
        bench.memory.i32[(at >>> 2) + i * 2 + 1] = text === null ? -1 : bytes.length
      }
    },
)
const symbols = textList.map(
  (list): Fill =>
    (bench, at) => {
      bench.memory.u32[(dictionaryAt + 32) >>> 2] = entriesAt
      list.forEach((text, i) => {
        const bytes = Buffer.from(text ?? '')
        bench.memory.u32[(entriesAt >>> 2) + i * 2] = bytesInHeap(bench, bytes, heap)
        bench.memory.u32[(entriesAt >>> 2) + i * 2 + 1] = bytes.length
        bench.memory.i32[(at >>> 2) + i] = text === null ? -1 : i
      })
    },
)
const shapes = fc.constantFrom<readonly number[]>([0], [3], [2, 2], [2, 0], [1, 2, 3])
const arrays = fc
  .array(
    fc.option(fc.tuple(shapes, fc.array(fc.oneof(doubles, fc.constant(Number.NaN)), { minLength: 6, maxLength: 6 }))),
    { minLength: rows, maxLength: rows },
  )
  .map(
    (list): Fill =>
      (bench, at) => {
        for (const [i, array] of list.entries()) {
          const [shape, data] = array ?? [[0], []]
          const head = (4 + shape.length * 4 + 7) & ~7
          const cells = shape.reduce<number>((a, b) => a * b, 1)
          const bytes = Buffer.alloc(head + cells * 8)
          bytes.writeUInt32LE(shape.length, 0)
          shape.forEach((n, d) => bytes.writeUInt32LE(n, 4 + d * 4))
          for (let c = 0; c < cells; c++) bytes.writeDoubleLE(data[c] as number, head + c * 8)
          bench.memory.u32[(at >>> 2) + i * 2] = bytesInHeap(bench, bytes, heap)
          bench.memory.i32[(at >>> 2) + i * 2 + 1] = array === null ? -1 : bytes.length
        }
      },
  )
const floats = (width: 4 | 8) =>
  fc
    .array(width === 8 ? doubles : fc.oneof(fc.float(), doubles.map(Math.fround)), {
      minLength: rows,
      maxLength: rows,
      size: 'max',
    })
    .map(
      (list): Fill =>
        ({ memory }, at) => {
          if (width === 8) memory.f64.set(list, at >>> 3)
          else memory.f32.set(list, at >>> 2)
        },
    )
const decimals = (words: number) =>
  fc
    .array(
      fc.oneof(
        fc.constantFrom(0n, -1n, 1n, -(1n << BigInt(words * 64 - 1)), (1n << BigInt(words * 64 - 1)) - 1n),
        fc.bigInt({ min: -(1n << BigInt(words * 64 - 1)), max: (1n << BigInt(words * 64 - 1)) - 1n }),
      ),
      { minLength: rows, maxLength: rows, size: 'max' },
    )
    .map(
      (list): Fill =>
        ({ memory }, at) =>
          list.forEach((v, i) => {
            for (let w = 0; w < words; w++)
              memory.u64[(at >>> 3) + i * words + w] = BigInt.asUintN(64, v >> BigInt(w * 64))
          }),
    )

const fills: Record<keyof typeof encodeKinds, fc.Arbitrary<Fill>> = {
  boolean: numbersOf(1, fc.bigInt({ min: 0n, max: 1n })),
  i8: numbersOf(1, int32),
  i16: numbersOf(2, int32),
  char: numbersOf(
    2,
    fc.oneof(fc.constantFrom(0n, 34n, 44n, 10n, 13n, 92n, 1n, 0xd800n, 0xffffn, 0x7ffn, 0x800n), int32),
  ),
  i32: numbersOf(4, int32),
  i64: numbersOf(8, int64),
  millis: numbersOf(8, int64),
  micros: numbersOf(8, int64),
  nanos: numbersOf(8, int64),
  f32: floats(4),
  f64: floats(8),
  text: entries,
  symbol: symbols,
  long256: numbersOf(32, fc.oneof(int64, fc.constantFrom(min64, 0n))),
  uuid: numbersOf(16, fc.oneof(int64, fc.constant(min64))),
  ipv4: numbersOf(4, int32),
  geohash8: numbersOf(1, fc.bigInt({ min: -1n, max: 31n })),
  geohash16: numbersOf(2, fc.bigInt({ min: -1n, max: 1023n })),
  geohash32: numbersOf(4, fc.bigInt({ min: -1n, max: (1n << 20n) - 1n })),
  geohash64: numbersOf(8, fc.bigInt({ min: -1n, max: (1n << 57n) - 1n })),
  binary: entries,
  array: arrays,
  decimal8: decimals(1),
  decimal16: decimals(2),
  decimal32: decimals(4),
  interval: numbersOf(16, fc.oneof(int64, fc.constant(min64))),
}
const parameters: Partial<Record<keyof typeof encodeKinds, readonly number[]>> = {
  geohash8: [5, 7],
  geohash16: [10, 11],
  geohash32: [20, 23],
  geohash64: [60, 57],
  decimal8: [0, 2, 18],
  decimal16: [0, 38],
  decimal32: [1, 76],
}
const columnArbitrary = fc.constantFrom(...(Object.keys(fills) as (keyof typeof fills)[])).chain((kind) =>
  fc.record({
    kind: fc.constant(kind),
    fill: fills[kind],
    missing: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    parameter: fc.constantFrom(...(parameters[kind] ?? [0])),
  }),
)

/** Encodes all rows through windows of that size; checks that nothing is written behind a window. */
function encodeAll(
  { memory, kernels }: Bench,
  count: number,
  flags: number,
  delimiter: number,
  window: number,
  index: number,
): string {
  let text = ''
  let row = 0
  let written = false
  for (let guard = 0; row < rows && guard < 200; guard++) {
    writeEncodeState(memory, stateAt, {
      columns: columnsAt,
      count,
      row,
      rowEnd: rows,
      out: outAt,
      outEnd: outAt + window,
      flags,
      delimiter,
      written,
      index,
    })
    memory.u8.fill(0xee, outAt + window, outAt + window + 64)
    const done = kernels.encode.encode(stateAt)
    expect(memory.u32[(stateAt + 8) >>> 2]).toBe(row + done)
    expect(memory.u8.subarray(outAt + window, outAt + window + 64).every((b) => b === 0xee)).toBe(true)
    row += done
    written ||= done > 0
    const bytes = bytesAt(memory, outAt, memory.u32[(stateAt + 16) >>> 2]! - outAt)
    text += bytes.toString((flags & encodeFlags.pg) === 0 ? 'utf8' : 'latin1')
    if (done === 0) window = memory.u32[(stateAt + 32) >>> 2]!
  }
  expect(row).toBe(rows)
  return text
}

describe('encode kernel', () => {
  test('writes JSON and CSV like the reference, in windows of any size', () => {
    fc.assert(
      fc.property(
        fc.array(columnArbitrary, { minLength: 1, maxLength: 5 }),
        fc.constantFrom(0, encodeFlags.json, encodeFlags.json | encodeFlags.quoteLargeNumbers),
        fc.constantFrom(44, 59, 9),
        fc.integer({ min: 1, max: 6000 }),
        fc.boolean(),
        (columns, flags, delimiter, window, indexed) => {
          const [fromKernel, fromReference] = pair.map((bench) => {
            heap = heapAt
            columns.forEach(({ kind, fill, missing, parameter }, c) => {
              const at = valuesAt + c * 4096
              fill(bench, at)
              bench.memory.u32.set(
                [encodeKinds[kind], missing ? 0 : at, dictionaryAt, parameter],
                (columnsAt + c * encodeColumnBytes) >>> 2,
              )
            })
            for (let i = 0; i < rows; i++) bench.memory.u32[(indexAt >>> 2) + i] = rows - 1 - i
            return encodeAll(bench, columns.length, flags, delimiter, window, indexed ? indexAt : 0)
          })
          expect(fromKernel).toBe(fromReference)
          if (flags !== 0) expect(JSON.parse(`[${fromKernel}]`)).toHaveLength(rows)
        },
      ),
      { numRuns: 1500, seed },
    )
  })

  test('writes messages of the wire protocol like the reference, text and binary', () => {
    const unknown: ReadonlySet<string> = new Set(['array', 'decimal8', 'decimal16', 'decimal32'])
    const known = columnArbitrary.filter(({ kind }) => !unknown.has(kind))
    fc.assert(
      fc.property(
        fc.array(fc.tuple(known, fc.constantFrom(0, 1, 2)), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 6000 }),
        (columns, window) => {
          const [fromKernel, fromReference] = pair.map((bench) => {
            heap = heapAt
            columns.forEach(([{ kind, fill, missing, parameter }, format], c) => {
              const at = valuesAt + c * 4096
              fill(bench, at)
              bench.memory.u32.set(
                [encodeKinds[kind], missing ? 0 : at, dictionaryAt, parameter, format],
                (columnsAt + c * encodeColumnBytes) >>> 2,
              )
            })
            return encodeAll(bench, columns.length, encodeFlags.pg, 68, window, 0)
          })
          expect(fromKernel).toBe(fromReference)
        },
      ),
      { numRuns: 600, seed },
    )
  })

  test('prints doubles and floats as existing clients know them', () => {
    const cases: readonly (readonly [number, string])[] = [
      [1, '1.0'],
      [1e10, '1.0E10'],
      [-1e-10, '-1.0E-10'],
      [5e-324, '5.0E-324'],
      [1e15, '1.0E15'],
      [1e-7, '1.0E-7'],
      [2147483647, '2.147483647E9'],
      [1293262.150673401, '1293262.150673401'],
      [100000, '100000.0'],
      [5.0000000000000006e14, '5.0000000000000006E14'],
      [0.001, '0.001'],
      [0.00099, '9.9E-4'],
      [-0, '-0.0'],
    ]
    for (const bench of pair) {
      bench.memory.f64.set(
        cases.map(([v]) => v),
        valuesAt >>> 3,
      )
      bench.memory.u32.set([encodeKinds.f64, valuesAt, 0, 0], columnsAt >>> 2)
      writeEncodeState(bench.memory, stateAt, {
        columns: columnsAt,
        count: 1,
        row: 0,
        rowEnd: cases.length,
        out: outAt,
        outEnd: outAt + 4096,
        flags: 0,
        delimiter: 44,
        written: false,
        index: 0,
      })
      bench.kernels.encode.encode(stateAt)
      const text = bytesAt(bench.memory, outAt, bench.memory.u32[(stateAt + 16) >>> 2]! - outAt).toString()
      expect(text.split('\r\n').slice(0, -1)).toEqual(cases.map(([, form]) => form))
    }
  })

  test('prints many random bit patterns like JavaScript', () => {
    const { memory } = both.wasm
    let x = BigInt(seed)
    const count = 20_000
    for (let i = 0; i < count; i++) {
      x = BigInt.asUintN(64, x * 6364136223846793005n + 1442695040888963407n)
      memory.u64[(valuesAt >>> 3) + i] = x
      both.reference.memory.u64[(valuesAt >>> 3) + i] = x
    }
    for (const kind of [encodeKinds.f64, encodeKinds.f32]) {
      const [a, b] = pair.map((bench) => {
        bench.memory.u32.set([kind, valuesAt, 0, 0], columnsAt >>> 2)
        writeEncodeState(bench.memory, stateAt, {
          columns: columnsAt,
          count: 1,
          row: 0,
          rowEnd: count,
          out: outAt,
          outEnd: outAt + 4_000_000,
          flags: 0,
          delimiter: 44,
          written: false,
          index: 0,
        })
        expect(bench.kernels.encode.encode(stateAt)).toBe(count)
        return bytesAt(bench.memory, outAt, bench.memory.u32[(stateAt + 16) >>> 2]! - outAt)
          .toString()
          .split('\r\n')
      })
      expect((a as string[]).filter((text, i) => text !== (b as string[])[i])).toEqual([])
    }
  })
})

test('the state structure covers the kernel scratch', () => {
  expect(encodeStateBytes).toBe(64 + 128)
})
