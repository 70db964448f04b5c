// Goal: the aggregation kernel (WebAssembly) computes the same aggregates and group numbers as its reference
// implementation. Method: columns of every storage type with NULLs and boundary values, row masks, group numbers partly
// out of range, and keys that fill their hash table. Doubles have integer values, so sums do not depend on the order of
// addition and results can be compared bit by bit.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  aggregateKinds,
  hashKinds,
  initExtremes,
  initStats,
  type NumberStorage,
  statsBytes,
  writeKeyTable,
} from '../../../engine/kernels/aggregate.js'
import { wideSum } from '../../../engine/types/wide-sum.js'
import { type Bench, kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const both = kernelsAndReferences()
const pair = [both.wasm, both.reference]
const seed = Number(process.env['SEED'] ?? 20240504)
const valuesAt = testBase
const maskAt = testBase + 256 * 1024
const idsAt = testBase + 320 * 1024
const outAt = testBase + 512 * 1024
const tableAt = testBase + 1024 * 1024
const slotsAt = tableAt + 4096
const keysAt = tableAt + 65536
const heapAt = tableAt + 131072
const longMin = -(1n << 63n)

const whole = fc.oneof(fc.integer({ min: -1_000_000, max: 1_000_000 }), fc.constantFrom(0, 1, -1))
const integer = fc.oneof(
  fc.constantFrom(longMin, -0x80000000n, 0n, 5n),
  fc.bigInt({ min: longMin, max: (1n << 63n) - 1n }),
  fc.bigInt({ min: -9n, max: 9n }),
)
const kinds = fc.constantFrom(...(Object.keys(aggregateKinds) as NumberStorage[]))

function put({ memory }: Bench, kind: NumberStorage, values: readonly (number | bigint | null)[]): void {
  values.forEach((v, i) => {
    if (kind === 'f64') memory.f64[(valuesAt >>> 3) + i] = v === null ? Number.NaN : Number(v)
    else if (kind === 'f32') memory.f32[(valuesAt >>> 2) + i] = v === null ? Number.NaN : Number(v)
    else if (kind === 'i64') memory.i64[(valuesAt >>> 3) + i] = v === null ? longMin : BigInt(v)
    else if (kind === 'i32')
      memory.i32[(valuesAt >>> 2) + i] = v === null ? -0x80000000 : Number(BigInt.asIntN(32, BigInt(v)))
    else if (kind === 'i16') memory.i16[(valuesAt >>> 1) + i] = Number(BigInt.asIntN(16, BigInt(v ?? 0)))
    else memory.i8[valuesAt + i] = Number(BigInt.asIntN(8, BigInt(v ?? 0)))
  })
}
const column = kinds.chain((kind) =>
  fc.record({
    kind: fc.constant(kind),
    values: fc.array(fc.option<number | bigint>(kind === 'f64' || kind === 'f32' ? whole : integer), {
      maxLength: 200,
      size: 'max',
    }),
  }),
)
const masks = fc.option(fc.array(fc.constantFrom(0, 255), { minLength: 200, maxLength: 200, size: 'max' }))

describe('aggregate kernel', () => {
  test('folds columns and groups like the reference', () => {
    fc.assert(
      fc.property(
        column,
        masks,
        fc.array(fc.integer({ min: -1, max: 9 }), { minLength: 200, maxLength: 200, size: 'max' }),
        ({ kind, values }, mask, ids) => {
          const code = aggregateKinds[kind]
          const rows = values.length
          for (const bench of pair) {
            const { memory, kernels } = bench
            const at = mask === null ? 0 : maskAt
            memory.u8.fill(0, outAt, outAt + 4096)
            put(bench, kind, values)
            memory.u8.set(mask ?? [], maskAt)
            memory.i32.set(ids, idsAt >>> 2)
            for (let s = 0; s < 2; s++) initStats(memory, outAt + s * statsBytes, kind)
            initExtremes(memory, outAt + 512, 8, kind)
            memory.u32.fill(0xffffffff, (outAt + 1024) >>> 2, (outAt + 1088) >>> 2)
            kernels.aggregate.stats(code, valuesAt, at, rows, outAt)
            kernels.aggregate.sum(code, valuesAt, at, rows, outAt + statsBytes)
            kernels.aggregate.groupSums(code, valuesAt, idsAt, at, rows, 8, outAt + 256)
            kernels.aggregate.groupExtremes(code, valuesAt, idsAt, at, rows, 8, outAt + 512)
            kernels.aggregate.groupCounts(idsAt, at, rows, 8, outAt + 768)
            kernels.aggregate.groupRows(idsAt, at, rows, 8, 1000, outAt + 1024)
            kernels.aggregate.combineIds(idsAt, rows, 11, idsAt, outAt + 3072)
          }
          expect(sameBytes(both, outAt, 3072 + rows * 4)).toBe(true)
        },
      ),
      { numRuns: 1000, seed },
    )
  })

  test('sums of LONG are exact beyond 64 bits', () => {
    fc.assert(
      fc.property(fc.array(integer, { maxLength: 200, size: 'max' }), (values) => {
        const present = values.filter((value) => value !== longMin)
        const exact = present.reduce((sum, value) => sum + value, 0n)
        for (const bench of pair) {
          const { memory, kernels } = bench
          put(bench, 'i64', values)
          memory.u8.fill(0, outAt, outAt + 128)
          memory.u8.fill(0, idsAt, idsAt + 1024)
          initStats(memory, outAt, 'i64')
          kernels.aggregate.sum(aggregateKinds.i64, valuesAt, 0, values.length, outAt)
          kernels.aggregate.groupSums(aggregateKinds.i64, valuesAt, idsAt, 0, values.length, 1, outAt + 64)
          const [stats, cell] = [outAt >>> 3, (outAt + 64) >>> 3]
          expect(wideSum(memory, stats, stats + 4)).toBe(exact)
          expect(wideSum(memory, cell, cell + 2)).toBe(exact)
          expect(memory.i64[cell + 1]).toBe(BigInt(present.length))
        }
      }),
      { numRuns: 500, seed },
    )
  })

  test('mixes columns into hashes and lists rows by partition like the reference', () => {
    fc.assert(
      fc.property(column, fc.integer({ min: 26, max: 31 }), ({ kind, values }, shift) => {
        for (const bench of pair) {
          const { memory, kernels } = bench
          const rows = values.length
          put(bench, kind, values)
          memory.u8.fill(0, outAt, outAt + 8192)
          kernels.aggregate.hashKeys(aggregateKinds[kind], valuesAt, rows, outAt)
          kernels.aggregate.hashKeys(aggregateKinds[kind], valuesAt, rows, outAt)
          kernels.aggregate.spreadRows(outAt, rows, shift, outAt + 2048, outAt + 4096)
        }
        expect(sameBytes(both, outAt, 8192)).toBe(true)
      }),
      { numRuns: 500, seed },
    )
  })

  test.each<readonly [string, (at: number) => number | bigint]>([
    ['doubles of whole numbers', (at) => at],
    ['negative ones', (at) => -at],
    ['quarters', (at) => at / 4],
    ['tenths', (at) => at / 10],
    ['thousands', (at) => at * 1000],
    ['whole numbers', (at) => BigInt(at)],
    ['hours', (at) => 1_704_067_200_000_000n + BigInt(at) * 3_600_000_000n],
    ['numbers without low bits', (at) => BigInt(at) << 40n],
    ['numbers of high bits', (at) => BigInt(at) << 48n],
    ['pairs', (at) => (BigInt(at % 20) << 32n) | BigInt(Math.floor(at / 20))],
  ])('keys that are %s lie apart in a table', (_name, keyAt) => {
    const { memory, kernels } = pair[0] as (typeof pair)[number]
    const [count, slots] = [500, 1024]
    for (let at = 0; at < count; at++) {
      const key = keyAt(at)
      if (typeof key === 'bigint') memory.i64[(valuesAt >>> 3) + at] = key
      else memory.f64[(valuesAt >>> 3) + at] = key
    }
    memory.u8.fill(0, outAt, outAt + count * 4)
    kernels.aggregate.hashKeys(hashKinds.i64, valuesAt, count, outAt)
    const taken = new Set<number>()
    let looks = 0
    for (const hash of memory.u32.subarray(outAt >>> 2, (outAt >>> 2) + count)) {
      let slot = hash % slots
      for (looks++; taken.has(slot); looks++) slot = (slot + 1) % slots
      taken.add(slot)
    }
    expect(looks / count).toBeLessThan(3)
  })

  test('hashes texts and wide values like the reference, and zeros and NaN alike', () => {
    const strings = fc.array(fc.option(fc.string({ maxLength: 20 })), { maxLength: 60, size: 'max' })
    fc.assert(
      fc.property(strings, fc.infiniteStream(fc.nat(255)), (list, bytes) => {
        const noise = Uint8Array.from({ length: 64 * 32 }, () => bytes.next().value as number)
        for (const { memory, kernels } of pair) {
          memory.u8.set(noise, maskAt)
          memory.u8.fill(0, outAt, outAt + 1024)
          let heap = heapAt
          list.forEach((text, row) => {
            const encoded = Buffer.from(text ?? '')
            memory.u8.set(encoded, heap)
            memory.u32[(valuesAt >>> 2) + row * 2] = heap
            memory.i32[(valuesAt >>> 2) + row * 2 + 1] = text === null ? -1 : encoded.length
            heap += encoded.length
          })
          kernels.aggregate.hashKeys(hashKinds.entry, valuesAt, list.length, outAt)
          kernels.aggregate.hashKeys(hashKinds.b16, maskAt, list.length, outAt)
          kernels.aggregate.hashKeys(hashKinds.b32, maskAt, list.length, outAt)
          memory.f64.set([0, -0, Number.NaN], (valuesAt >>> 3) + 512)
          memory.u64[(valuesAt >>> 3) + 515] = 0xfff8_0000_0000_0001n
          kernels.aggregate.hashKeys(hashKinds.f64, valuesAt + 4096, 4, outAt + 512)
          const [zero, minus, nothing, other] = memory.u32.subarray((outAt >>> 2) + 128, (outAt >>> 2) + 132)
          expect([minus, other]).toEqual([zero, nothing])
        }
        expect(sameBytes(both, outAt, 1024)).toBe(true)
      }),
      { numRuns: 200, seed },
    )
  })

  test('numbers keys like the reference, stops when full, goes on after rehashing', () => {
    const keys = fc.array(fc.oneof(fc.integer({ min: 0, max: 12 }), fc.integer()), { maxLength: 120, size: 'max' })
    fc.assert(
      fc.property(
        keys,
        fc.constantFrom(8, 16, 0),
        masks,
        fc.integer({ min: 1, max: 30 }),
        (list, width, mask, countMax) => {
          const rows = list.length
          const done = pair.map(({ memory, kernels }) => {
            const at = mask === null ? 0 : maskAt
            memory.u8.set(mask ?? [], maskAt)
            memory.u8.fill(0, tableAt, tableAt + 262144)
            list.forEach((v, i) => {
              if (width === 8) memory.i64[(valuesAt >>> 3) + i] = BigInt(v)
              else if (width === 16) memory.i64.set([BigInt(v % 3), BigInt(v)], (valuesAt >>> 3) + i * 2)
              else {
                const bytes = Buffer.from('k'.repeat(Math.abs(v) % 40) + v)
                memory.u8.set(bytes, outAt + 65536 + i * 64)
                memory.u32[(valuesAt >>> 2) + i * 2] = outAt + 65536 + i * 64
                memory.i32[(valuesAt >>> 2) + i * 2 + 1] = v === 3 ? -1 : v === 4 ? 0 : bytes.length
              }
            })
            const number = (first: number) => {
              const step = width === 16 ? 16 : 8
              const from: [number, number, number, number] = [
                valuesAt + first * step,
                at === 0 ? 0 : at + first,
                rows - first,
                idsAt + first * 4,
              ]
              if (width === 8) return kernels.aggregate.numberKeys8(tableAt, ...from)
              return width === 16
                ? kernels.aggregate.numberKeys16(tableAt, ...from)
                : kernels.aggregate.internStrings(tableAt, ...from)
            }
            writeKeyTable(memory, tableAt, {
              slots: slotsAt,
              slotCount: 64,
              countMax,
              keys: keysAt,
              heap: heapAt,
              heapBytes: 65536,
            })
            const first = number(0)
            memory.u32[(tableAt + 4) >>> 2] = 511
            memory.u32[(tableAt + 12) >>> 2] = 250
            memory.u8.fill(0, slotsAt, slotsAt + 8192)
            kernels.aggregate.rehashKeys(tableAt, width)
            return [first, number(first)]
          })
          expect(done[0]).toEqual(done[1])
          expect((done[0]?.[0] as number) + (done[0]?.[1] as number)).toBe(rows)
          expect(sameBytes(both, idsAt, rows * 4)).toBe(true)
          expect(sameBytes(both, tableAt, 32)).toBe(true)
          expect(sameBytes(both, keysAt, heapAt - keysAt)).toBe(true)
          expect(sameBytes(both, heapAt, 65536)).toBe(true)
        },
      ),
      { numRuns: 500, seed },
    )
  })

  test('numbers coded texts as it numbers the texts, like the reference, and goes on where there was no room', () => {
    const strings = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 20 })
    const rowsOf = fc.array(fc.nat(1000), { maxLength: 120, size: 'max' })
    const [entriesAt, codesAt, knownAt] = [outAt, outAt + 1024, outAt + 4096]
    fc.assert(
      fc.property(strings, rowsOf, masks, fc.integer({ min: 1, max: 30 }), (list, picks, mask, countMax) => {
        const codes = picks.map((pick) => pick % list.length)
        const rows = codes.length
        const at = mask === null ? 0 : maskAt
        for (const { memory, kernels } of pair) {
          memory.u8.set(mask ?? [], maskAt)
          memory.u8.fill(0, tableAt, tableAt + 262144)
          memory.u8.fill(0, outAt, outAt + 8192)
          list.forEach((v, i) => {
            const bytes = Buffer.from('k'.repeat(v) + v)
            memory.u8.set(bytes, outAt + 65536 + i * 64)
            memory.u32[(entriesAt >>> 2) + i * 2] = outAt + 65536 + i * 64
            memory.i32[(entriesAt >>> 2) + i * 2 + 1] = i === 0 ? -1 : v === 4 ? 0 : bytes.length
          })
          codes.forEach((code, i) => {
            memory.u32[(codesAt >>> 2) + i] = code
            memory.u8.copyWithin(valuesAt + i * 8, entriesAt + code * 8, entriesAt + code * 8 + 8)
          })
          const requested = (encoded: boolean, ids: number): number[] => {
            memory.u8.fill(0, slotsAt, slotsAt + 8192)
            const [slots, keys, heap, heapBytes, slotCount] = [slotsAt, keysAt, heapAt, 65536, 64]
            writeKeyTable(memory, tableAt, { slots, slotCount, countMax, keys, heap, heapBytes })
            const number = (first: number): number => {
              const rest = at === 0 ? 0 : at + first
              return encoded
                ? kernels.aggregate.numberCodes(
                    ...([tableAt, codesAt + first * 4, entriesAt, knownAt, rest] as const),
                    ...([rows - first, ids + first * 4] as const),
                  )
                : kernels.aggregate.internStrings(tableAt, valuesAt + first * 8, rest, rows - first, ids + first * 4)
            }
            const first = number(0)
            memory.u32[(tableAt + 4) >>> 2] = 511
            memory.u32[(tableAt + 12) >>> 2] = 250
            memory.u8.fill(0, slotsAt, slotsAt + 8192)
            kernels.aggregate.rehashKeys(tableAt, 0)
            return [first, number(first), memory.u32[(tableAt + 8) >>> 2]!]
          }
          expect(requested(true, idsAt)).toEqual(requested(false, outAt + 12288))
          const ids = (from: number): Uint8Array => memory.u8.slice(from, from + rows * 4)
          expect(ids(idsAt)).toEqual(ids(outAt + 12288))
        }
        expect(sameBytes(both, idsAt, rows * 4)).toBe(true)
      }),
      { numRuns: 300, seed },
    )
  })

  test('pairs ids, and fills rows within bounds, like the reference', () => {
    const times = fc.array(fc.bigInt({ min: -20n, max: 20n }), { maxLength: 200, size: 'max' })
    const bound = fc.bigInt({ min: -20n, max: 20n })
    fc.assert(
      fc.property(times, bound, bound, fc.constantFrom<4 | 8>(4, 8), fc.boolean(), (ts, low, high, width, zeros) => {
        const ends = pair.map(({ memory, kernels }) => {
          memory.i64.set(ts, valuesAt >>> 3)
          memory.u8.fill(7, outAt, outAt + 8192)
          kernels.aggregate.pairIds(valuesAt, zeros ? 0 : valuesAt + 4, ts.length, outAt)
          const from = Math.min(3, ts.length)
          const { fillWithin } = kernels.aggregate
          return fillWithin(valuesAt, from, ts.length, low, high, width, -5n, outAt + 4096)
        })
        expect(ends[0]).toBe(ends[1])
        expect(sameBytes(both, outAt, 8192)).toBe(true)
      }),
      { numRuns: 300, seed },
    )
  })
})
