// Goal: the join kernel (WebAssembly) agrees with its reference implementation. Method: random key numbers, lists of
// rows by key, limits of row pairs, and timestamps with many ties; kernel and reference run over equal memories. After
// most calls the memories must contain the same bytes; for matches of keys, the row pairs must also be those of a join
// that is written in a few lines of the test.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hashKinds } from '../../../engine/kernels/aggregate.js'
import { expandModes, noRow, writeBuckets, writeRange } from '../../../engine/kernels/join.js'
import { kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const both = kernelsAndReferences(16)
const pair = [both.wasm, both.reference]
const seed = Number(process.env['SEED'] ?? 20240511)
const area = (index: number): number => testBase + index * 4096
const state = area(0)

function put(at: number, values: readonly number[]): void {
  for (const { memory } of pair) memory.u32.set(values, at >>> 2)
}

function putLongs(at: number, values: readonly bigint[]): void {
  for (const { memory } of pair) memory.i64.set(values, at >>> 3)
}

function clear(): void {
  for (const { memory } of pair) memory.u8.fill(0, testBase, area(14))
}

/** Runs a call on both; they return the same. */
function onBoth(call: (kernel: (typeof pair)[number]['kernels']['join']) => unknown): number {
  const [first, second] = pair.map(({ kernels }) => call(kernels.join))
  expect(first).toBe(second)
  expect(sameBytes(both, testBase, area(14) - testBase)).toBe(true)
  return Number(first ?? 0)
}

/** Memory need not be the same afterwards. */
function onBothPlain(call: (kernel: (typeof pair)[number]['kernels']['join']) => unknown): unknown {
  const [first, second] = pair.map(({ kernels }) => call(kernels.join))
  expect(first).toBe(second)
  return first
}

const codes = fc.array(fc.nat(12), { maxLength: 120, size: 'max' })
const timestamps = fc.array(fc.bigInt({ min: 0n, max: 3n }), { maxLength: 80, size: 'max' }).map((steps) => {
  let ts = -5n
  const values = steps.map((step) => {
    ts += step
    return ts
  })
  // NULL comes first.
  return values.map((value, index) => (index < 2 && steps[0] === 3n ? -(2n ** 63n) : value))
})

describe('join kernel', () => {
  test('lists rows by code and expands pairs', () => {
    fc.assert(
      fc.property(
        codes,
        codes,
        fc.integer({ min: 1, max: 20 }),
        fc.constantFrom(0, 1, 2),
        (build, probe, limit, mode) => {
          clear()
          put(area(1), build)
          put(area(2), probe)
          const order = build.map((_, row) => build.length - 1 - row)
          put(area(3), order)
          onBoth((join) => join.countCodes(area(1), build.length, area(4)))
          onBoth((join) => join.startsOf(area(4), 10))
          const starts = both.wasm.memory.u32.slice(area(4) >>> 2, (area(4) >>> 2) + 11)
          put(area(5), [...starts])
          const listed = build.filter((code) => code < 10).length
          const rows = build.map((code, row) => ({ code, row })).filter(({ code }) => code < 10)
          put(
            area(1),
            rows.map(({ code }) => code),
          )
          onBoth((join) => join.listRows(area(1), 0, 0, listed, area(5), area(6)))
          for (let found = limit; found === limit; ) {
            found = onBoth((join) =>
              join.expand(state, area(2), probe.length, area(4), 10, area(6), mode, area(7), area(8), limit),
            )
          }
        },
      ),
      { numRuns: 300, seed },
    )
    expect(expandModes.andNone).toBe(2)
  })

  const words = fc.array(fc.oneof(fc.integer({ min: -3, max: 12 }), fc.constant(-(2 ** 31))), { maxLength: 100 })
  const width = fc.constantFrom(4 as const, 8 as const)
  const limits = fc.integer({ min: 1, max: 20 })

  /** Keys of 4 or 8 bytes; NULL is the minimum of its width. */
  function putKeys(at: number, bytes: 4 | 8, keys: readonly number[]): void {
    if (bytes === 4)
      put(
        at,
        keys.map((key) => key >>> 0),
      )
    else
      putLongs(
        at,
        keys.map((key) => (key === -(2 ** 31) ? -(2n ** 63n) : BigInt(key))),
      )
  }

  /** All pairs, of which both give the same. */
  function pairsBy(limit: number, match: (kernel: (typeof pair)[number]['kernels']['join']) => number): string[] {
    const all: string[] = []
    for (const { memory } of pair) memory.u32.fill(0, state >>> 2, (state >>> 2) + 4)
    for (let found = limit; found === limit; ) {
      const counts = pair.map(({ kernels }) => match(kernels.join))
      found = counts[0] as number
      expect(counts[1]).toBe(found)
      const [first, second] = pair.map(({ memory: { u32 } }) =>
        Array.from({ length: found }, (_, index) => `${u32[(area(7) >>> 2) + index]} ${u32[(area(8) >>> 2) + index]}`),
      ) as [string[], string[]]
      expect(first).toEqual(second)
      all.push(...first)
    }
    return all
  }

  /** What a join gives, said plainly. */
  function pairsOf(probe: readonly number[], build: readonly number[], mode: number): string[] {
    return probe.flatMap((key, row) => {
      const matches = build.flatMap((other, index) => (other === key ? [`${row} ${index}`] : []))
      const padded = mode === 2 || (mode === 1 && matches.length === 0)
      return padded ? [...matches, `${row} ${noRow}`] : matches
    })
  }

  test('finds equal keys in buckets', () => {
    fc.assert(
      fc.property(words, words, width, limits, fc.constantFrom(0, 1, 2), (build, probe, bytes, limit, mode) => {
        clear()
        const bucketOf = (key: number): number => (key * 7) & 3
        const listed = build.map((_, row) => row).toSorted((a, b) => bucketOf(build[a] ?? 0) - bucketOf(build[b] ?? 0))
        const starts = [0, 1, 2, 3, 4].map((bucket) => build.filter((key) => bucketOf(key) < bucket).length)
        put(area(1), starts)
        put(area(2), listed)
        putKeys(
          area(3),
          bytes,
          listed.map((row) => build[row] ?? 0),
        )
        putKeys(area(4), bytes, probe)
        put(
          area(5),
          probe.map((key) => (key * 7) >>> 0),
        )
        for (const { memory } of pair)
          writeBuckets(memory, area(6), { starts: area(1), mask: 3, list: area(2), stored: area(3), width: bytes })
        const given = pairsBy(limit, (join) =>
          join.matchKeys(state, area(6), area(5), area(4), probe.length, mode, area(7), area(8), limit),
        )
        expect(given).toEqual(pairsOf(probe, build, mode))
        const repeats = onBothPlain((join) => join.repeatsKeys(area(6), 0, 4))
        expect(repeats).toBe(new Set(build).size < build.length ? 1 : 0)
        onBothPlain((join) => join.maskWords(area(5), probe.length, 3, area(9)))
        expect(sameBytes(both, area(9), probe.length * 4)).toBe(true)
      }),
      { numRuns: 300, seed },
    )
  })

  test('finds keys of a range', () => {
    fc.assert(
      fc.property(words, words, width, limits, fc.constantFrom(0, 1, 2), (build, probe, bytes, limit, mode) => {
        clear()
        const keys = [...new Set(build)].filter((key) => key < -3 || key > 0)
        putKeys(area(1), bytes, keys)
        putKeys(area(2), bytes, probe)
        put(area(3), new Array(13).fill(noRow))
        for (const { memory } of pair) writeRange(memory, area(4), 1n, 12, area(3))
        expect(onBothPlain((join) => join.fillRange(area(4), bytes, area(1), 0, keys.length))).toBe(1)
        const given = pairsBy(limit, (join) =>
          join.matchRange(state, area(4), bytes, area(2), probe.length, mode, area(7), area(8), limit),
        )
        expect(given).toEqual(pairsOf(probe, keys, mode))
        if (keys.length > 0) expect(onBothPlain((join) => join.fillRange(area(4), bytes, area(1), 0, 1))).toBe(0)
      }),
      { numRuns: 300, seed },
    )
  })

  test('keeps pairs of equal values', () => {
    const strings = fc.array(fc.constantFrom(null, '', 'a', 'b', 'a longer one', 'a longer 1'), { minLength: 1 })
    const rows = fc.array(fc.tuple(fc.nat(5), fc.oneof(fc.nat(5), fc.constant(noRow))), { maxLength: 60 })
    const kinds = fc.constantFrom('i32', 'i64', 'f64', 'entry', 'b16', 'b32')
    fc.assert(
      fc.property(strings, rows, kinds as fc.Arbitrary<keyof typeof hashKinds>, (values, pairs, kind) => {
        clear()
        for (const { memory } of pair) {
          for (const [side, at] of [area(1), area(2)].entries()) {
            for (let row = 0; row < 6; row++) {
              const value = values[(row * (side + 1)) % values.length] ?? null
              const text = area(3) + side * 1024 + row * 64
              memory.u8.set(Buffer.from(value ?? ''), text)
              if (kind === 'entry') memory.u32.set([text, value === null ? noRow : value.length], (at >>> 2) + row * 2)
              else if (kind === 'f64') memory.f64[(at >>> 3) + row] = [Number.NaN, 0, -0, 1.5][row % (3 + side)] ?? 0
              else
                memory.u8.set(
                  Buffer.from(value ?? '~'),
                  at + row * (kind === 'i32' ? 4 : kind === 'i64' ? 8 : kind === 'b16' ? 16 : 32),
                )
            }
          }
        }
        put(
          area(5),
          pairs.map(([left]) => left),
        )
        put(
          area(6),
          pairs.map(([, right]) => right),
        )
        onBoth((join) => join.keepEqual(hashKinds[kind], area(1), area(2), area(5), area(6), pairs.length))
      }),
      { numRuns: 300, seed },
    )
  })

  test('settles pairs, marks and renumbers rows', () => {
    const rows = fc.array(fc.tuple(fc.nat(5), fc.oneof(fc.nat(30), fc.constant(noRow)), fc.boolean()), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(rows, fc.nat(20), (pairs, limit) => {
        clear()
        put(
          area(1),
          pairs.map(([left]) => left).toSorted((a, b) => a - b),
        )
        put(
          area(2),
          pairs.map(([, right]) => right),
        )
        for (const { memory } of pair)
          memory.u8.set(
            pairs.map(([, , holds]) => (holds ? 1 : 0)),
            area(3),
          )
        const retained = onBoth((join) => join.settle(state, area(3), area(1), area(2), pairs.length))
        onBoth((join) => join.markRows(area(2), retained, area(4)))
        onBoth((join) => join.rowsMarked(area(4), 0, 3, 31, limit, area(5)))
        onBoth((join) => join.rowsMarked(area(4), 1, 0, 31, 40, area(6)))
        put(
          area(7),
          Array.from({ length: 31 }, (_, row) => row * 2),
        )
        onBoth((join) => join.renumber(area(2), retained, area(7)))
        onBoth((join) => join.pairWords(area(1), area(2), retained, area(8)))
        onBoth((join) => join.pairWords(area(1), 0, retained, area(8)))
      }),
      { numRuns: 300, seed },
    )
  })

  test('maps ids until one is unknown', () => {
    const ids = fc.array(fc.oneof(fc.nat(20), fc.constant(noRow)), { maxLength: 40 })
    const map = fc.array(fc.oneof({ arbitrary: fc.nat(99), weight: 9 }, { arbitrary: fc.constant(noRow), weight: 1 }))
    fc.assert(
      fc.property(ids, map, (values, known) => {
        clear()
        put(area(1), values)
        put(area(2), known)
        onBoth((join) => join.mapIds(area(1), values.length, area(2), known.length, area(3)))
        expect(onBoth((join) => join.mapIds(area(1), values.length, 0, 0, area(4)))).toBe(values.length)
      }),
      { numRuns: 300, seed },
    )
  })

  test('merges by time', () => {
    fc.assert(
      fc.property(
        timestamps,
        timestamps,
        fc.boolean(),
        fc.integer({ min: -1, max: 6 }),
        fc.nat(80),
        (own, other, strict, tolerance, first) => {
          clear()
          const seen = Math.min(first, other.length)
          putLongs(area(1), own)
          put(
            area(2),
            own.map((_, row) => row % 3),
          )
          putLongs(area(3), other)
          put(
            area(4),
            other.map((_, row) => (row * 7) % 4),
          )
          put(area(5), new Array(4).fill(noRow))
          put(state, [area(1), area(2), own.length, 0, area(3), area(4), seen, 0, area(5), 0, strict ? 1 : 0, 0])
          putLongs(state + 48, [BigInt(tolerance)])
          put(state + 56, [area(6)])
          onBoth((join) => join.asof(state))
          // The rest comes as codes of its own, and then nothing more.
          put(state + 20, [area(4) + seen * 4, other.length])
          put(state + 36, [seen])
          onBoth((join) => join.asof(state))
          put(state + 44, [1])
          expect(onBoth((join) => join.asof(state))).toBe(own.length)
        },
      ),
      { numRuns: 400, seed },
    )
  })

  test('splices by time', () => {
    fc.assert(
      fc.property(timestamps, timestamps, fc.integer({ min: 1, max: 50 }), (own, other, limit) => {
        clear()
        putLongs(area(1), own)
        put(
          area(2),
          own.map((_, row) => row % 3),
        )
        putLongs(area(3), other)
        put(
          area(4),
          other.map((_, row) => (row * 7) % 4),
        )
        put(area(5), new Array(4).fill(noRow))
        put(area(6), new Array(4).fill(noRow))
        put(state, [area(1), area(2), own.length, 0, area(3), area(4), other.length, 0, area(5), area(6), 0, 0])
        let total = 0
        for (let found = limit; found === limit; total += found) {
          found = onBoth((join) => join.splice(state, area(7), area(8), limit))
        }
        expect(total).toBe(own.length + other.length - shownBesideLeft(own, other))
      }),
      { numRuns: 300, seed },
    )
  })

  /** Right rows, the last of their key and time, at whose time the left side has the key, too. */
  function shownBesideLeft(own: readonly bigint[], other: readonly bigint[]): number {
    const left = new Set(own.map((ts, row) => `${ts} ${row % 3}`))
    const right = new Set(other.map((ts, row) => `${ts} ${(row * 7) % 4}`))
    return [...right].filter((place) => left.has(place)).length
  }
})
