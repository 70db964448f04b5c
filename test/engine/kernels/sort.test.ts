// Goal: the sort kernel (WebAssembly) agrees with the reference implementation when it sorts, groups, merges and
// gathers rows, and when it encodes numbers as words that have the same order. Method: timestamps that are sorted,
// slightly late, shuffled, equal, or spread over all 64 bits; kernel and reference run over equal memories, and their
// results must be the same bytes.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sortScratchBytes } from '../../../engine/kernels/sort.js'
import { kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const both = kernelsAndReferences(32)
const pair = [both.wasm, both.reference]
const seed = Number(process.env['SEED'] ?? 20240502)
const tsAt = testBase
const outAt = testBase + 2 * 1024 * 1024
const otherAt = testBase + 3 * 1024 * 1024
const runsAt = testBase + 4 * 1024 * 1024
const scratchAt = testBase + 5 * 1024 * 1024
const longs = fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n })

const column = fc.oneof(
  fc.array(longs, { maxLength: 300, size: 'max' }),
  fc.array(fc.bigInt({ min: -3n, max: 3n }), { maxLength: 300, size: 'max' }),
  fc
    .array(fc.bigInt({ min: -40n, max: 10n }), { maxLength: 600, size: 'max' })
    .map((jitter) => jitter.map((j, i) => BigInt(i) * 9n + (j < 0n ? 0n : -j))),
  fc.array(longs, { maxLength: 100, size: 'max' }).map((values) => values.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))),
)

function put(values: readonly bigint[], at = tsAt): void {
  for (const { memory } of pair) memory.i64.set(values, at >>> 3)
}

describe('sort kernel', () => {
  test('sorts stably like the reference', () => {
    const seen = new Set<number>()
    fc.assert(
      fc.property(column, (values) => {
        put(values)
        const results = pair.map(({ kernels }) =>
          kernels.sort.sortPermutation(tsAt, values.length, scratchAt, sortScratchBytes(values.length), outAt),
        )
        seen.add(results[0] as number)
        expect(results[0]).toBe(results[1])
        expect(sameBytes(both, outAt, values.length * 4)).toBe(true)
      }),
      { numRuns: 400, seed },
    )
    expect([...seen].sort()).toEqual([0, 1])
  })

  test('groups rows by a number like the reference', () => {
    const numbers = fc.array(fc.integer({ min: -2, max: 40 }), { maxLength: 400, size: 'max' })
    fc.assert(
      fc.property(numbers, fc.integer({ min: 1, max: 45 }), (values, span) => {
        const done = pair.map(({ memory, kernels }) => {
          memory.i32.set(values, tsAt >>> 2)
          return kernels.sort.groupRows(tsAt, values.length, -1, span, outAt, otherAt)
        })
        expect(done).toEqual(Array(2).fill(values.every((value) => value >= -1 && value < span - 1) ? 1 : 0))
        if (done[0] === 0) return
        expect(sameBytes(both, outAt, (span + 2) * 4)).toBe(true)
        expect(sameBytes(both, otherAt, values.length * 2)).toBe(true)
      }),
      { numRuns: 300, seed },
    )
  })

  test('writes words in the order of the numbers, like the reference', () => {
    const doubles = fc.array(fc.oneof(fc.double(), fc.constantFrom(Number.NaN, 0, -0, -1.5)), { maxLength: 200 })
    const turns = fc.constantFrom(0n, -1n)
    fc.assert(
      fc.property(doubles, fc.constantFrom(0, 1, 2, 3), longs, turns, (values, kind, nullWord, turn) => {
        for (const { memory, kernels } of pair) {
          memory.f64.set(values, tsAt >>> 3)
          kernels.sort.orderWords(kind, tsAt, values.length, 0n, nullWord, turn, outAt)
        }
        expect(sameBytes(both, outAt, values.length * 8)).toBe(true)
        const bound = values.length === 0 ? 1n << 62n : both.wasm.memory.i64[(outAt >>> 3) + (values.length >>> 1)]!
        const counts = pair.map(({ kernels }) =>
          kernels.sort.rowsWithin(kind, tsAt, values.length, 0n, nullWord, turn, bound, otherAt),
        )
        expect(counts[0]).toBe(counts[1])
        expect(sameBytes(both, otherAt, (counts[0] as number) * 4)).toBe(true)
        if (kind !== 0) return
        const numbers = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
        const { memory, kernels } = both.wasm
        memory.f64.set(numbers, tsAt >>> 3)
        kernels.sort.orderWords(0, tsAt, numbers.length, 0n, nullWord, 0n, outAt)
        const words = [...memory.i64.subarray(outAt >>> 3, (outAt >>> 3) + numbers.length)]
        words.forEach((word, i) => {
          if (i === 0) return
          const before = words[i - 1] as bigint
          expect(numbers[i] === numbers[i - 1] ? word === before : word > before).toBe(true)
        })
      }),
      { numRuns: 300, seed },
    )
  })

  test('sorts more rows than a chunk, by every method', () => {
    let x = seed
    const random = () => {
      x = (Math.imul(x, 1103515245) + 12345) >>> 0
      return x
    }
    const rows = 40_000
    for (const spread of [1n, 4096n, 1n << 40n, 1n << 62n]) {
      for (const lateEvery of [1, 3, 50]) {
        put(
          Array.from({ length: rows }, (_, i) =>
            random() % lateEvery === 0 ? (BigInt(random()) * spread) % (1n << 62n) : BigInt(i) * spread,
          ),
        )
        for (const { kernels } of pair)
          kernels.sort.sortPermutation(tsAt, rows, scratchAt, sortScratchBytes(rows), outAt)
        expect(sameBytes(both, outAt, rows * 4)).toBe(true)
      }
    }
  })

  test('says so when the scratch is too small', () => {
    put([3n, 2n, 1n])
    for (const { kernels } of pair) expect(kernels.sort.sortPermutation(tsAt, 3, scratchAt, 8000, outAt)).toBe(-1)
  })

  test('merges runs and finds bounds like the reference', () => {
    const sortedRun = fc
      .array(fc.bigInt({ min: -20n, max: 60n }), { maxLength: 60, size: 'max' })
      .map((r) => r.sort((a, b) => Number(a - b)))
    fc.assert(
      fc.property(
        fc.array(sortedRun, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 40 }),
        fc.bigInt({ min: -21n, max: 61n }),
        (runs, limit, v) => {
          const total = runs.reduce((sum, run) => sum + run.length, 0)
          const produced = pair.map(({ memory, kernels }) => {
            runs.forEach((run, i) => {
              memory.i64.set(run, (tsAt + i * 4096) >>> 3)
              memory.u32.set([tsAt + i * 4096, run.length, 0, 0], (runsAt >>> 2) + i * 4)
              memory.u32[(runsAt >>> 2) + 1024 + i] = tsAt + i * 4096
            })
            let done = 0
            for (;;) {
              const n = kernels.sort.mergeRuns(runsAt, runs.length, limit, otherAt + done, outAt + done * 4)
              if (n === 0) break
              done += n
            }
            kernels.sort.gatherRuns(8, runsAt + 4096, otherAt, outAt, done, outAt + 65536)
            const first = runs[0]?.length ?? 0
            return [done, kernels.sort.lowerBound(tsAt, 0, first, v), kernels.sort.upperBound(tsAt, 0, first, v)]
          })
          expect(produced[0]).toEqual(produced[1])
          expect(produced[0]?.[0]).toBe(total)
          expect(sameBytes(both, otherAt, total)).toBe(true)
          expect(sameBytes(both, outAt, total * 4)).toBe(true)
          expect(sameBytes(both, outAt + 65536, total * 8)).toBe(true)
        },
      ),
      { numRuns: 300, seed },
    )
  })

  test('gathers every width', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 4, 8, 16, 32),
        fc.uint8Array({ minLength: 640, maxLength: 640 }),
        fc.array(fc.nat(19), { maxLength: 50 }),
        (width, bytes, index) => {
          for (const { memory, kernels } of pair) {
            memory.u8.set(bytes, tsAt)
            memory.u32.set(index, runsAt >>> 2)
            memory.u32.set([tsAt, tsAt + 32], otherAt >>> 2)
            memory.u8.set(
              index.map((i) => i & 1),
              otherAt + 64,
            )
            kernels.sort.gather(width, tsAt, runsAt, index.length, outAt)
            memory.u32.set(
              index.map((i) => (i % 4 === 0 ? 0xffffffff : i)),
              (runsAt >>> 2) + 1024,
            )
            kernels.sort.gatherOr(width, tsAt, runsAt + 4096, index.length, tsAt + 7 * 32, outAt + 16384)
            kernels.sort.gatherRuns(width, otherAt, otherAt + 64, runsAt, index.length, outAt + 8192)
          }
          expect(sameBytes(both, outAt, index.length * width)).toBe(true)
          expect(sameBytes(both, outAt + 8192, index.length * width)).toBe(true)
          expect(sameBytes(both, outAt + 16384, index.length * width)).toBe(true)
        },
      ),
      { numRuns: 200, seed },
    )
  })
})
