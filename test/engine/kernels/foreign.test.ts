// Goal: the WebAssembly kernel that decodes Parquet pages written by other programs agrees with the reference
// implementation, for valid and for arbitrary input, and never writes outside of its targets. Method: encoded values
// with randomly changed bytes, and random bytes, between guard bytes in the shared memory, which must not change.

import fc from 'fast-check'
import { compressSync } from 'snappy'
import { expect, test } from 'vitest'
import type { ForeignKernel } from '../../../engine/kernels/foreign.js'
import { loadKernels } from '../../../engine/kernels/load.js'
import { createSharedMemory } from '../../../engine/memory/shared-memory.js'
import { referenceKernels } from '../../reference/kernels.js'
import { runsOf, valuesIn } from '../../support/parquet-encodings.js'

const memory = createSharedMemory(32 * 1024 * 1024)
const wasm = loadKernels(memory).foreign
const reference = referenceKernels(memory).foreign

const MIB = 1024 * 1024
const [source, work, extra, target] = [5 * MIB, 8 * MIB, 11 * MIB, 14 * MIB]
/** What lies around a target and must stay. */
const guard = 0xee
const slack = 64

/** Both kernels: the same answer and the same bytes, `bytes` of them at most and nothing before or far behind. */
function alike(bytes: number, call: (kernel: ForeignKernel) => unknown): number {
  const fill = (): void => void memory.u8.fill(guard, target - slack, target + bytes + 2 * slack)
  fill()
  const expected = Number(call(reference) ?? 0)
  const wanted = Buffer.from(memory.u8.slice(target, target + bytes)).toString('hex')
  fill()
  const got = Number(call(wasm) ?? 0)
  expect(got).toBe(expected)
  const around = [
    ...memory.u8.slice(target - slack, target),
    ...memory.u8.slice(target + bytes + slack, target + bytes + 2 * slack),
  ]
  expect(around.every((byte) => byte === guard)).toBe(true)
  // What a refused page has left behind means nothing.
  if (got >= 0) expect(Buffer.from(memory.u8.slice(target, target + bytes)).toString('hex')).toBe(wanted)
  return got
}

function put(bytes: Uint8Array, address = source): number {
  memory.u8.fill(0x5a, address, address + bytes.length + slack)
  memory.u8.set(bytes, address)
  return bytes.length
}

/** Bytes with some of them changed, cut, or as they are. */
const damage = (bytes: Buffer): fc.Arbitrary<Buffer> =>
  fc
    .tuple(fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }), fc.option(fc.nat(bytes.length)))
    .map(([changes, cut]) => {
      const changed = Buffer.from(bytes)
      for (const [at, byte] of changes) if (changed.length > 0) changed[at % changed.length] = byte
      return cut === null ? changed : changed.subarray(0, cut)
    })

test('runs and packed numbers', () => {
  const numbers = fc.integer({ min: 0, max: 20 }).chain((bits) =>
    fc
      .array(fc.tuple(fc.nat(2 ** bits - 1), fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 }))), {
        maxLength: 30,
      })
      .map((list) => ({ bits, values: list.flatMap(([value, run]) => Array<number>(run).fill(value)) })),
  )
  fc.assert(
    fc.property(
      numbers.chain(({ bits, values }) =>
        fc.record({ bits: fc.constant(bits), values: fc.constant(values), bytes: damage(runsOf(values, bits)) }),
      ),
      fc.constantFrom(0, 1, -1),
      ({ bits, values, bytes }, more) => {
        const count = Math.max(0, values.length + more)
        const length = put(bytes)
        const limit = Math.max(0, 2 ** bits - 1 - (more === 1 ? 1 : 0))
        alike(count * 4, (kernel) => kernel.hybrid(source, length, count, bits, limit, target))
        alike(count * 4, (kernel) => kernel.packedLevels(source, length, count, bits, limit, target))
        const whole = put(runsOf(values, bits))
        const read = alike(values.length * 4, (kernel) =>
          kernel.hybrid(source, whole, values.length, bits, 2 ** bits - 1, target),
        )
        expect(read).toBe(whole)
        expect([...memory.u32.subarray(target >>> 2, (target >>> 2) + values.length)]).toEqual(values)
      },
    ),
    { numRuns: 300 },
  )
})

test('a run that is longer than its values, and packed numbers of a whole memory, are refused', () => {
  for (const bytes of ['feffffff0f01', 'ffffffff0f01', 'ff01', '00', '80', '']) {
    const length = put(Buffer.from(bytes, 'hex'))
    expect(alike(400, (kernel) => kernel.hybrid(source, length, 100, 1, 1, target))).toBe(-1)
  }
  expect(wasm.hybrid(source, 10, 100, 33, 1, target)).toBe(-1)
  expect(wasm.hybrid(source, -1, 100, 1, 1, target)).toBe(-1)
})

test('differences, with blocks of any size', () => {
  const values = fc.array(fc.oneof(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.bigInt(-9n, 9n)), { maxLength: 400 })
  fc.assert(
    fc.property(
      values.chain((list) => fc.record({ list: fc.constant(list), bytes: damage(valuesIn(5, 2, list)) })),
      ({ list, bytes }) => {
        const count = list.length
        const length = put(bytes)
        for (const width of [4, 8])
          alike(count * width, (kernel) => kernel.deltas(source, length, count, width, target))
        const whole = put(valuesIn(5, 2, list))
        expect(alike(count * 8, (kernel) => kernel.deltas(source, whole, count, 8, target))).toBe(whole)
        expect([...memory.i64.subarray(target >>> 3, (target >>> 3) + count)]).toEqual(list)
      },
    ),
    { numRuns: 150 },
  )
})

test('Snappy', () => {
  const bytes = fc
    .array(fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 50 })), { maxLength: 20 })
    .map((chunks) => Buffer.concat(chunks.flatMap(([chunk, times]) => Array<Uint8Array>(times).fill(chunk))))
  fc.assert(
    fc.property(
      bytes.chain((raw) => fc.record({ raw: fc.constant(raw), packed: damage(compressSync(raw)) })),
      fc.uint8Array({ maxLength: 30 }),
      ({ raw, packed }, other) => {
        for (const input of [packed, Buffer.concat([compressSync(raw).subarray(0, 3), other])]) {
          const length = put(input)
          alike(raw.length, (kernel) => kernel.snappyDecompress(source, length, target, raw.length))
        }
        const length = put(compressSync(raw))
        const whole = alike(raw.length, (kernel) => kernel.snappyDecompress(source, length, target, raw.length))
        expect(whole).toBe(raw.length)
        expect(Buffer.from(memory.u8.slice(target, target + raw.length)).equals(raw)).toBe(true)
      },
    ),
    { numRuns: 200 },
  )
})

test('texts of prefixes and suffixes', () => {
  const lengths = fc.array(fc.tuple(fc.integer({ min: -1, max: 6 }), fc.integer({ min: -1, max: 6 })), {
    maxLength: 40,
  })
  fc.assert(
    fc.property(lengths, fc.constantFrom(0, 0, 0, 1), (list, more) => {
      list.forEach(([prefix, suffix], index) => {
        memory.i32[(work >>> 2) + index] = prefix
        memory.i32[(extra >>> 2) + index] = suffix
      })
      const bytes = list.reduce((sum, [, suffix]) => sum + Math.max(0, suffix), 0) + more
      put(Buffer.from(Array.from({ length: bytes }, (_, index) => 97 + (index % 26))))
      const total = alike(0, (kernel) => kernel.joinedTextBytes(work, extra, list.length, bytes))
      if (total < 0) return
      alike(total, (kernel) => kernel.joinStrings(work, extra, list.length, source, target, work + MIB))
      const room = work + 2 * MIB
      alike(list.length * 8, (kernel) => kernel.joinStrings(work, extra, list.length, source, room, target))
    }),
    { numRuns: 300 },
  )
})

test('values in other forms', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 640 }), fc.integer({ min: 1, max: 40 }), (bytes, width) => {
      put(bytes)
      const many = Math.floor(bytes.length / width)
      alike(many * width, (kernel) => kernel.joinStreams(source, many, width, target))
      alike(many * 8, (kernel) => kernel.fixedEntries(source, many, width, target))
      reference.fixedEntries(source, many, width, work)
      for (const wide of [8, 16, 32]) {
        // Behind the first value without room nothing is written.
        const fixed = wasm.integersOfFixed(source, many, width, wide, target)
        alike(fixed * wide, (kernel) => kernel.integersOfFixed(source, many, width, wide, target))
        alike(fixed * wide, (kernel) => kernel.integersOfStrings(work, many, wide, target))
      }
      expect(wasm.firstNoText(work, many)).toBe(reference.firstNoText(work, many))
      const [halves, words, longs, days] = [2, 4, 8, 12].map((size) => Math.floor(bytes.length / size)) as number[]
      alike((halves ?? 0) * 4, (kernel) => kernel.floatsOfHalves(source, halves ?? 0, target))
      alike((words ?? 0) * 8, (kernel) => kernel.widenUnsigned(source, words ?? 0, target))
      alike((words ?? 0) * 16, (kernel) => kernel.widenIntegers(source, words ?? 0, 4, 16, target))
      alike((longs ?? 0) * 32, (kernel) => kernel.widenIntegers(source, longs ?? 0, 8, 32, target))
      alike((words ?? 0) * 8, (kernel) => kernel.multiply(source, words ?? 0, 4, 86_400_000, target))
      alike(0, (kernel) => kernel.firstNegative(source, longs ?? 0))
      const fits = wasm.multiply(source, longs ?? 0, 8, 1000, target)
      alike(fits * 8, (kernel) => kernel.multiply(source, longs ?? 0, 8, 1000, target))
      memory.u32[(source >>> 2) + 2] = 2_440_588 + width
      const known = wasm.nanosOfInt96(source, days ?? 0, target)
      alike(known * 8, (kernel) => kernel.nanosOfInt96(source, days ?? 0, target))
      alike((words ?? 0) >>> 3, (kernel) => kernel.levelBits(source, ((words ?? 0) >>> 3) * 8, width, target))
    }),
    { numRuns: 300 },
  )
})

test('values of a dictionary', () => {
  put(Buffer.from(Array.from({ length: 256 }, (_, index) => index)))
  fc.assert(
    fc.property(fc.array(fc.nat(7), { maxLength: 50 }), (indexes) => {
      memory.u32.set(indexes, work >>> 2)
      for (const width of [1, 2, 4, 8, 16, 32])
        alike(indexes.length * width, (kernel) => kernel.gather(work, indexes.length, source, width, target))
    }),
    { numRuns: 100 },
  )
})
