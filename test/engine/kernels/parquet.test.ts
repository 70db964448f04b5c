// Goal: the Parquet kernel (WebAssembly) agrees with the reference implementation, decoding inverts encoding, and
// damaged input is refused (damaged LZ4: at least not decoded beyond the output). Method: random values.

import fc from 'fast-check'
import { uncompressSync } from 'snappy'
import { expect, test } from 'vitest'
import { loadKernels } from '../../../engine/kernels/load.js'
import { dictionaryStateBytes, nullKinds, rangeKinds } from '../../../engine/kernels/parquet.js'
import { xxh64 } from '../../../engine/kernels/xxh64.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { referenceKernels } from '../../reference/kernels.js'

const memory = createSharedMemory(32 * 1024 * 1024)
const wasm = loadKernels(memory).parquet
const reference = referenceKernels(memory).parquet
const view = new DataView(memory.memory.buffer)
const MIB = 1024 * 1024
const [source, work, outA, outB, extra] = [5 * MIB, 8 * MIB, 11 * MIB, 14 * MIB, 17 * MIB]
const outBytesMax = 32 * 1024 // A large area of shared memory takes long to fill.

function bytesAt(address: number, count: number): string {
  return Buffer.from(memory.u8.slice(address, address + count)).toString('hex')
}

/** Both kernels over the same input; their targets hold the same bytes. Answers the kernel's result. */
function alike(target: number, bytes: (result: number) => number, run: (kernel: typeof wasm) => number): number {
  const [expected, found] = [reference, wasm].map((kernel) => {
    memory.u8.fill(0xee, target, target + outBytesMax)
    const result = run(kernel)
    expect(bytes(result)).toBeLessThanOrEqual(outBytesMax)
    return { result, bytes: bytesAt(target, bytes(result)) }
  })
  expect(found).toEqual(expected)
  return expected?.result ?? 0
}

const int64 = fc.oneof(
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
  fc.bigInt(-5n, 5n),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n),
)
const int32 = fc.oneof(fc.integer(), fc.integer({ min: -3, max: 3 }), fc.constantFrom(-(2 ** 31), 2 ** 31 - 1))
const runs = (most: number) =>
  fc
    .array(fc.tuple(fc.nat(most), fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 70 }))), { maxLength: 60 })
    .map((list) => list.flatMap(([value, count]) => Array.from({ length: count }, () => value)))

test('presence, compact and expand agree and undo each other for every kind of NULL', () => {
  const widths = [0, 1, 2, 4, 8, 4, 8, 4, 4, 8, 16, 32, 16, 32, 8]
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(nullKinds).filter((kind) => kind > 0)),
      fc.array(fc.boolean(), { maxLength: 300 }),
      (kind, nulls) => {
        const width = widths[kind] as number
        const count = nulls.length
        nulls.forEach((isNull, i) => {
          if (isNull) reference.fillNull(1, width, kind, source + i * width)
          else for (let b = 0; b < width; b++) memory.u8[source + i * width + b] = (i + b * 3 + 1) & 0x7e
        })
        const bitBytes = () => (count + 7) >>> 3
        const present = alike(outA, bitBytes, (kernel) => kernel.presence(source, count, kind, outA))
        // IPv4's NULL is 0, which the pattern above may produce.
        if (kind !== nullKinds.i32Zero) expect(present).toBe(nulls.filter((isNull) => !isNull).length)
        memory.u8.copyWithin(extra, outA, outA + bitBytes())
        const packed = () => present * width
        const pack = (kernel: typeof wasm) => {
          kernel.compact(source, count, width, extra, outA)
          return 0
        }
        alike(outA, packed, pack)
        memory.u8.copyWithin(work, outA, outA + packed())
        const all = () => count * width
        expect(alike(outB, all, (kernel) => kernel.expand(work, present, count, width, extra, kind, outB))).toBe(0)
        expect(bytesAt(outB, all())).toBe(bytesAt(source, all()))
        expect(wasm.expand(work, present + 1, count, width, extra, kind, outB)).toBe(-1)
        if (present > 0) expect(wasm.expand(work, present - 1, count, width, extra, kind, outB)).toBe(-1)
      },
    ),
    { numRuns: 300 },
  )
})

/** Bits, and by how many entries the dictionary has fewer than these allow. */
const packings = fc.tuple(fc.oneof(fc.nat(20), fc.integer({ min: 1, max: 8 })), fc.constantFrom(0, 0, 0, 1))

test('packed indexes come back as dictionary values', () => {
  fc.assert(
    fc.property(packings, runs(2 ** 20), fc.constantFrom(1, 1, 4, 4, 8, 16, 32), ([bits, less], raw, width) => {
      const values = raw.map((value) => value & (2 ** bits - 1))
      values.forEach((value, i) => view.setUint32(source + i * 4, value, true))
      const bytes = alike(
        outA,
        (count) => count,
        (kernel) => kernel.packIndexes(source, values.length, bits, outA),
      )
      memory.u8.copyWithin(work, outA, outA + bytes)
      const entries = Math.min(2 ** bits - (bits > 0 ? less : 0), 1000)
      for (let i = 0; i < entries * width; i++) memory.u8[extra + i] = (i * 31) & 255
      const inRange = values.every((value) => value < entries)
      const decode = (kernel: typeof wasm) =>
        kernel.decodeIndexed(work, bytes, values.length, bits, extra, entries, width, outB)
      if (!inRange) expect([decode(wasm), decode(reference)]).toEqual([-1, -1])
      else {
        expect(alike(outB, () => values.length * width, decode)).toBe(0)
        const textAt = (value: number): string => bytesAt(extra + value * width, width)
        expect(bytesAt(outB, values.length * width)).toBe(values.map(textAt).join(''))
        if (width === 1) return // They are picked wider.
        const rows = values.flatMap((_, row) => (row >= 3 && row % 7 === 3 ? [row] : []))
        rows.forEach((row, i) => view.setUint32(source + i * 4, row - 3, true))
        const pick = (kernel: typeof wasm) =>
          kernel.pickIndexed(
            ...([work, bytes, values.length, bits, extra, entries, width, source, 3, rows.length, outB] as const),
          )
        expect(alike(outB, () => rows.length * width, pick)).toBe(0)
        expect(bytesAt(outB, rows.length * width)).toBe(rows.map((row) => textAt(values[row] as number)).join(''))
      }
    }),
    { numRuns: 300 },
  )
})

test('deltas of 64 and 32 bits', () => {
  fc.assert(
    fc.property(
      fc.array(int64, { maxLength: 400 }),
      fc.array(int32, { maxLength: 400 }),
      fc.boolean(),
      (wide, narrow, ascend) => {
        if (ascend) wide.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
        wide.forEach((value, i) => view.setBigInt64(source + i * 8, value, true))
        const bytes = alike(
          outA,
          (count) => count,
          (kernel) => kernel.deltaEncode64(source, wide.length, outA),
        )
        memory.u8.copyWithin(work, outA, outA + bytes)
        const decode = (kernel: typeof wasm) => kernel.deltaDecode64(work, bytes, wide.length, outB)
        expect(alike(outB, () => wide.length * 8, decode)).toBe(bytes)
        expect(bytesAt(outB, wide.length * 8)).toBe(bytesAt(source, wide.length * 8))
        if (wide.length > 1) expect(wasm.deltaDecode64(work, bytes - 1, wide.length, outB)).not.toBe(bytes)
        narrow.forEach((value, i) => view.setInt32(source + i * 4, value, true))
        const small = alike(
          outA,
          (count) => count,
          (kernel) => kernel.deltaEncode32(source, narrow.length, outA),
        )
        memory.u8.copyWithin(work, outA, outA + small)
        expect(wasm.deltaDecode32(work, small, narrow.length, outB)).toBe(small)
        expect(bytesAt(outB, narrow.length * 4)).toBe(bytesAt(source, narrow.length * 4))
      },
    ),
    { numRuns: 200 },
  )
})

test('byte streams, booleans, widths and reversal', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1200 }), fc.constantFrom(4, 8), (bytes, width) => {
      memory.u8.set(bytes, source)
      const count = Math.floor(bytes.length / width)
      const done = (run: (kernel: typeof wasm) => void) => (kernel: typeof wasm) => {
        run(kernel)
        return 0
      }
      const span = () => count * width
      alike(
        outA,
        span,
        done((kernel) => kernel.splitBytes(source, count, width, outA)),
      )
      memory.u8.copyWithin(work, outA, outA + span())
      alike(
        outB,
        span,
        done((kernel) => kernel.joinBytes(work, count, width, outB)),
      )
      expect(bytesAt(outB, span())).toBe(bytesAt(source, span()))
      alike(
        outA,
        () => (bytes.length + 7) >>> 3,
        done((kernel) => kernel.packBooleans(source, bytes.length, outA)),
      )
      memory.u8.copyWithin(work, outA, outA + 200)
      alike(
        outB,
        () => bytes.length,
        done((kernel) => kernel.unpackBooleans(work, bytes.length, outB)),
      )
      const wide = Math.floor(bytes.length / (width * 4))
      alike(
        outA,
        () => wide * width * 4,
        done((kernel) => kernel.reverseBytes(source, wide, width * 4, outA)),
      )
      for (const kind of [0, 1, 2]) {
        const small = kind === 0 ? bytes.length : bytes.length >>> 1
        alike(
          outA,
          () => small * 4,
          done((kernel) => kernel.widen(source, small, kind, outA)),
        )
        memory.u8.copyWithin(work, outA, outA + small * 4)
        alike(
          outB,
          () => small,
          done((kernel) => kernel.narrow(work, small, kind === 0 ? 1 : 2, outB)),
        )
        expect(bytesAt(outB, small)).toBe(bytesAt(source, small))
      }
    }),
    { numRuns: 200 },
  )
})

test('ranges', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ noNaN: true }), { minLength: 1, maxLength: 50 }),
      fc.array(int64, { minLength: 1, maxLength: 50 }),
      (doubles, longs) => {
        const kinds: [number, () => void, number][] = [
          [rangeKinds.f64, () => doubles.forEach((v, i) => view.setFloat64(source + i * 8, v, true)), doubles.length],
          [rangeKinds.f32, () => doubles.forEach((v, i) => view.setFloat32(source + i * 4, v, true)), doubles.length],
          [rangeKinds.i64, () => longs.forEach((v, i) => view.setBigInt64(source + i * 8, v, true)), longs.length],
          [rangeKinds.i32, () => {}, longs.length],
          [rangeKinds.u32, () => {}, longs.length],
        ]
        for (const [kind, store, count] of kinds) {
          store()
          const width = kind === rangeKinds.i64 || kind === rangeKinds.f64 ? 8 : 4
          for (const at of [outA, outA + 8]) {
            alike(
              at,
              () => (at === outA ? width : 0),
              (kernel) => {
                kernel.range(source, count, kind, outA)
                return 0
              },
            )
          }
          expect(bytesAt(outA + 8, width)).not.toBe('ee'.repeat(width))
        }
      },
    ),
    { numRuns: 100 },
  )
})

function dictionaryState(kernel: typeof wasm, width: number, countMax: number, bytesMax: number): void {
  const [slots, values, offsets] = [20 * MIB, 22 * MIB, 24 * MIB]
  memory.u8.fill(0, extra, extra + dictionaryStateBytes)
  memory.u8.fill(0, slots, slots + 4096 * 4)
  const words = [slots, 4095, values, 0, countMax, width, 0, bytesMax, offsets]
  words.forEach((word, i) => view.setUint32(extra + i * 4, word, true))
  expect(kernel).toBeDefined()
}

test('dictionaries keep values in the order of first use, and stop when full', () => {
  fc.assert(
    fc.property(runs(600), fc.constantFrom(4, 8, 16, 32), fc.integer({ min: 1, max: 700 }), (values, width, most) => {
      memory.u8.fill(0, source, source + values.length * width)
      values.forEach((value, i) => view.setUint32(source + i * width + width - 4, value, true))
      const states: string[] = []
      for (const kernel of [reference, wasm]) {
        dictionaryState(kernel, width, most, 0)
        const half = values.length >>> 1
        const taken = kernel.dictionaryAdd(extra, source, half, outA)
        const slots = view.getUint32(extra, true)
        memory.u8.fill(0, slots, slots + 4096 * 4)
        kernel.dictionaryRehash(extra)
        const rest = kernel.dictionaryAdd(extra, source + half * width, values.length - half, outA + half * 4)
        const count = view.getUint32(extra + 12, true)
        states.push(
          [
            taken,
            rest,
            count,
            bytesAt(22 * MIB, count * width),
            bytesAt(outA, taken * 4),
            bytesAt(outA + half * 4, rest * 4),
          ].join(),
        )
      }
      expect(states[1]).toBe(states[0])
    }),
    { numRuns: 150 },
  )
})

const strings = fc.array(fc.oneof(fc.string({ maxLength: 40 }), fc.constantFrom('', 'a', 'usa-west', 'x'.repeat(17))), {
  maxLength: 200,
})

function storeStrings(values: readonly string[]): number {
  let at = work
  values.forEach((value, i) => {
    const bytes = Buffer.from(value)
    memory.u8.set(bytes, at)
    view.setUint32(source + i * 8, at, true)
    view.setInt32(source + i * 8 + 4, bytes.length, true)
    at += bytes.length
  })
  return at - work
}

test('text: lengths, bytes, entries and dictionaries', () => {
  fc.assert(
    fc.property(strings, fc.integer({ min: 0, max: 3000 }), (values, bytesMax) => {
      const total = storeStrings(values)
      const n = values.length
      expect(
        alike(
          outA,
          () => n * 4,
          (kernel) => kernel.textLengths(source, n, outA),
        ),
      ).toBe(total)
      memory.u8.copyWithin(extra, outA, outA + n * 4)
      alike(
        outA,
        () => total,
        (kernel) => {
          kernel.textBytes(source, n, outA)
          return 0
        },
      )
      alike(
        outA,
        () => total + n * 4,
        (kernel) => kernel.plainStrings(source, n, outA),
      )
      const rebuild = (kernel: typeof wasm) => kernel.textEntries(extra, n, work, total, outB)
      expect(alike(outB, () => n * 8, rebuild)).toBe(0)
      expect(bytesAt(outB, n * 8)).toBe(bytesAt(source, n * 8))
      if (n > 0) expect(wasm.textEntries(extra, n, work, total + 1, outB)).toBe(-1)
      const states: string[] = []
      for (const kernel of [reference, wasm]) {
        dictionaryState(kernel, 0, 1000, bytesMax)
        const taken = kernel.dictionaryAddText(extra, source, n, outA)
        const count = view.getUint32(extra + 12, true)
        const bytes = view.getUint32(extra + 24, true)
        expect(kernel.plainTextEntries(22 * MIB, bytes, count, outB)).toBe(0)
        states.push([taken, count, bytesAt(22 * MIB, bytes), bytesAt(outA, taken * 4), bytesAt(outB, count * 8)].join())
      }
      expect(states[1]).toBe(states[0])
    }),
    { numRuns: 150 },
  )
})

test('gather takes values from blocks, and NULL where a block has no such column', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3 * 64 - 1), { maxLength: 200 }),
      fc.constantFrom(1, 2, 4, 8, 16, 32),
      (list, width) => {
        const kind = [0, 0, 2, 0, 5, 0, 0, 0, 9][width] ?? (width === 16 ? nullKinds.words16 : nullKinds.words32)
        for (let i = 0; i < 4096 * 2; i++) memory.u8[work + i] = (i * 7) & 255
        ;[work, 0, work + 4096].forEach((base, i) => view.setUint32(extra + i * 4, base, true))
        list.forEach((position, i) => view.setUint32(source + i * 4, position, true))
        alike(
          outA,
          () => list.length * width,
          (kernel) => {
            kernel.gatherBlocks(source, list.length, 6, extra, width, kind, outA)
            return 0
          },
        )
      },
    ),
    { numRuns: 100 },
  )
})

test('Snappy: the library reads what both sides write', () => {
  const chunk = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.nat(400).map((n) => new Uint8Array(n).fill(n & 7)),
    fc.nat(1).map((n) => new Uint8Array(70_000 * n).fill(3)),
  )
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 12 }), (chunks) => {
      const input = Buffer.concat([...chunks, ...chunks])
      memory.u8.set(input, source)
      for (const kernel of [wasm, reference]) {
        const bytes = kernel.snappyCompress(source, input.length, work, extra)
        expect(bytes).toBeLessThanOrEqual(input.length + input.length / 6 + 32)
        expect(input.equals(uncompressSync(Buffer.from(memory.u8.slice(work, work + bytes))) as Buffer)).toBe(true)
      }
    }),
    { numRuns: 60 },
  )
})

test('XXH64 gives the known hashes, and the same on both sides', () => {
  const known: [string, bigint][] = [
    ['', 0xef46_db37_51d8_e999n],
    ['a', 0xd24e_c4f1_a98c_6e5bn],
    ['abc', 0x44bc_2cf5_ad77_0999n],
  ]
  for (const [text, hash] of known) expect(xxh64(Buffer.from(text))).toBe(hash)
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 90 }), { minLength: 1, maxLength: 20 }), (strings) => {
      const lengths = strings.map(({ length }) => Buffer.from(Uint32Array.of(length).buffer))
      memory.u8.set(Buffer.concat(strings.flatMap((text, index) => [lengths[index] as Buffer, text])), source)
      for (const kernel of [wasm, reference]) {
        kernel.hashPlain(source, strings.length, 0, work)
        strings.forEach((text, index) => expect(memory.u64[(work >>> 3) + index]).toBe(xxh64(text)))
        kernel.hashPlain(source, 1, 4, work)
        expect(memory.u64[work >>> 3]).toBe(xxh64(memory.u8.slice(source, source + 4)))
      }
    }),
  )
})

test('LZ4: each side reads what the other wrote; damage is refused', () => {
  const chunk = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.tuple(fc.integer({ min: 1, max: 17 }), fc.nat(400)).map(([n, all]) => new Uint8Array(all).map((_, i) => i % n)),
  )
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 12 }), fc.nat(), (chunks, damage) => {
      const input = Buffer.concat([...chunks, ...chunks])
      memory.u8.set(input, source)
      for (const [writer, reader] of [
        [reference, wasm],
        [wasm, reference],
        [wasm, wasm],
      ] as const) {
        const bytes = writer.lz4Compress(source, input.length, work, input.length * 2 + 64, extra)
        expect(bytes).toBeGreaterThan(0)
        memory.u8.fill(0xee, outA, outA + input.length + 64)
        expect(reader.lz4Decompress(work, bytes, outA, input.length)).toBe(input.length)
        expect(bytesAt(outA, input.length)).toBe(input.toString('hex'))
        if (input.length > 0) expect(reader.lz4Decompress(work, bytes, outA, input.length - 1)).toBe(-1)
        memory.u8[work + (damage % bytes)] = damage & 255
        memory.u8.fill(0xee, outB + input.length + 64, outB + input.length + 128)
        reader.lz4Decompress(work, bytes, outB, input.length)
        expect(bytesAt(outB + input.length + 64, 64)).toBe('ee'.repeat(64))
      }
      expect(wasm.lz4Compress(source, input.length, work, 8, extra)).toBe(0)
    }),
    { numRuns: 200 },
  )
})

test('garbage in place of packed indexes and deltas is refused, never read beyond its end', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.integer({ min: 0, max: 33 }),
      fc.nat(500),
      (bytes, bits, count) => {
        memory.u8.set(bytes, source)
        memory.u32.set([0, 9, 70], extra >>> 2)
        const calls: ((kernel: typeof wasm) => number)[] = [
          (kernel) => kernel.decodeIndexed(source, bytes.length, count, bits, work, 50, 8, outA),
          (kernel) => kernel.decodeIndexed(source, bytes.length, count, bits, work, 50, 4, outA),
          (kernel) => kernel.decodeIndexed(source, bytes.length, count, bits, work, 9, 4, outA),
          (kernel) => kernel.pickIndexed(source, bytes.length, count, bits, work, 50, 8, extra, 0, 3, outA),
          (kernel) => kernel.deltaDecode64(source, bytes.length, count, outA),
          (kernel) => kernel.plainTextEntries(source, bytes.length, count, outA),
        ]
        for (const call of calls) expect(call(wasm)).toBe(call(reference))
      },
    ),
    { numRuns: 300 },
  )
})

test('sums', () => {
  const finite = fc.double({ noNaN: true, noDefaultInfinity: true })
  fc.assert(
    fc.property(
      fc.array(finite, { minLength: 1, maxLength: 50 }),
      fc.array(int64, { minLength: 1, maxLength: 50 }),
      (doubles, longs) => {
        const sumsOf = (kind: number, count: number): bigint[] =>
          [wasm, reference].map((kernel) => {
            kernel.sum(source, count, kind, outA)
            return view.getBigInt64(outA, true)
          })
        const same = (kind: number, count: number): void => expect(new Set(sumsOf(kind, count)).size).toBe(1)
        doubles.forEach((value, i) => view.setFloat64(source + i * 8, value / 64, true))
        same(rangeKinds.f64, doubles.length)
        doubles.forEach((value, i) => view.setFloat32(source + i * 4, value % 1e30, true))
        same(rangeKinds.f32, doubles.length)
        longs.forEach((value, i) => view.setBigInt64(source + i * 8, value, true))
        const total = BigInt.asIntN(
          64,
          longs.reduce((sum, value) => sum + value, 0n),
        )
        expect(sumsOf(rangeKinds.i64, longs.length)).toEqual([total, total])
        same(rangeKinds.i32, longs.length)
      },
    ),
    { numRuns: 100 },
  )
})
