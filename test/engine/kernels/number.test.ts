// Goal: the WebAssembly kernel that formats and parses numbers, timestamps, UUIDs and IPv4 addresses agrees with the
// reference implementation. Method: both format random and boundary values of every fixed-width kind, and parse
// ordinary and damaged text. A value that the kernel has formatted must parse to the same value, unless the kernel
// leaves the text to its caller.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeKinds } from '../../../engine/kernels/encode.js'
import { type Bench, bytesAt, kernelsAndReferences, sameBytes, testBase } from './kernel-support.js'

const both = kernelsAndReferences()
const pair = [both.wasm, both.reference]
const seed = Number(process.env['SEED'] ?? 20240505)
const valuesAt = testBase
const entriesAt = testBase + 65536
const textAt = testBase + 131072
const outAt = testBase + 262144
const statusAt = testBase + 327680
const scratchAt = testBase + 393216
const rows = 20

const parsed = {
  boolean: 1,
  i8: 1,
  i16: 2,
  i32: 4,
  i64: 8,
  millis: 8,
  micros: 8,
  nanos: 8,
  f32: 4,
  f64: 8,
  uuid: 16,
  ipv4: 4,
} as const
const formatted = {
  ...parsed,
  long256: 32,
  geohash8: 1,
  geohash64: 8,
  decimal8: 8,
  decimal16: 16,
  decimal32: 32,
  interval: 16,
} as const
const parameters: Partial<Record<keyof typeof formatted, number>> = {
  geohash8: 5,
  geohash64: 60,
  decimal8: 3,
  decimal16: 0,
  decimal32: 40,
}

const word = fc.oneof(
  fc.constantFrom(-(1n << 63n), (1n << 63n) - 1n, 0n, -1n, 1n, 1700000000000000n),
  fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }),
  fc.bigInt({ min: 0n, max: 2n * 10n ** 18n }),
  fc.double().map((d) => {
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(d)
    return bytes.readBigInt64LE()
  }),
)
const words = fc.array(word, { minLength: rows * 4, maxLength: rows * 4, size: 'max' })

const offsets = ['+00:00', '+02:00', '-0330', '+01', '-23:59', '+24:00', '+1', '+01:0', '+01:60', ' +01:00', 'z']
const isTime = (kind: string): boolean => ['millis', 'micros', 'nanos'].includes(kind)

/** What files have in fields: numbers, times, identifiers, and what is nearly one. */
const fieldText = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.integer().map(String),
  fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }).map(String),
  fc
    .tuple(
      fc.date({ min: new Date(0), max: new Date(9e12), noInvalidDate: true }),
      fc.constantFrom('', '1Z', '123Z', '456789Z', '4567891Z'),
    )
    .map(([d, f]) => d.toISOString().replace('Z', f)),
  fc.date({ noInvalidDate: true }).map((d) => d.toISOString().slice(0, 10)),
  fc.date({ noInvalidDate: true }).map((d) => d.toISOString().slice(0, 19).replace('T', ' ')),
  fc.uuid(),
  fc.ipV4(),
  fc
    .bigInt({ min: 0n, max: 10n ** 19n })
    .chain((n) => fc.integer({ min: 0, max: 11 }).map((cut) => String(n).slice(cut))),
  fc
    .tuple(fc.date({ min: new Date(0), max: new Date(9e12), noInvalidDate: true }), fc.constantFrom(...offsets))
    .map(([d, offset]) => d.toISOString().replace('Z', offset)),
  fc.constantFrom(
    ...['1e400', '-1e400', '1e-400', '1e39', '1e-46', '0e5', '0.0', '-0', '1', '0', '2', '1970-01-01+01'],
  ),
  fc.constantFrom(
    '0.0.0.0',
    '1.2.3',
    '1.2.3.4.',
    '256.1.1.1',
    '',
    '-',
    '1_000',
    '+1',
    '12x',
    '1e',
    '.',
    '2024-02-30',
    '2023-02-29T00:00:00Z',
    '2024-01-01T24:00:00',
    '2024-01-01T00:00:00.',
    'null',
    '12345678901234567890',
    '80000000-0000-0000-8000-000000000000',
    'x'.repeat(60),
  ),
  fc.string({ unit: 'binary-ascii', maxLength: 30 }),
)

/** What follows a text: at once the next one, or a byte behind which the kernel reads it in place. */
const endings = ['', ',', '"', '\n', ';', '\t', '|', '\r']

function putStrings({ memory }: Bench, strings: readonly (string | null)[]): void {
  let at = textAt
  strings.forEach((text, i) => {
    const bytes = Buffer.from(text ?? '', 'latin1')
    memory.u8.set(bytes, at)
    memory.u32[(entriesAt >>> 2) + i * 2] = at
    memory.i32[(entriesAt >>> 2) + i * 2 + 1] = text === null ? -1 : bytes.length
    at += bytes.length
    memory.u8.set(Buffer.from(endings[i % endings.length] as string), at)
    at += (endings[i % endings.length] as string).length
  })
}

describe('number kernel', () => {
  test('formats every fixed kind like the reference, as far as the window goes', () => {
    const kinds = fc.constantFrom(...(Object.keys(formatted) as (keyof typeof formatted)[]))
    fc.assert(
      fc.property(kinds, words, fc.integer({ min: 0, max: 4000 }), (kind, values, window) => {
        const [done] = pair.map(({ memory, kernels }, i) => {
          memory.i64.set(values, valuesAt >>> 3)
          if (kind === 'boolean') for (let r = 0; r < rows; r++) memory.u8[valuesAt + r] = r & 1
          if (kind === 'geohash8') for (let r = 0; r < rows; r++) memory.i8[valuesAt + r] = (r % 33) - 1
          if (kind === 'geohash64')
            for (let r = 0; r < rows; r++)
              memory.i64[(valuesAt >>> 3) + r] = BigInt.asUintN(60, values[r] as bigint) - 1n
          memory.u8.fill(0xee, outAt + window, outAt + window + 16)
          const room = i === 0 ? window : 65536
          return kernels.number.formatColumn(
            encodeKinds[kind],
            valuesAt,
            parameters[kind] ?? 0,
            rows,
            entriesAt,
            outAt,
            outAt + room,
            scratchAt,
          )
        }) as [number]
        expect(both.wasm.memory.u8.subarray(outAt + window, outAt + window + 16).every((b) => b === 0xee)).toBe(true)
        expect(sameBytes(both, entriesAt, done * 8)).toBe(true)
        let end = outAt
        for (let r = 0; r < done; r++) end += Math.max(0, both.wasm.memory.i32[(entriesAt >>> 2) + r * 2 + 1]!)
        expect(bytesAt(both.wasm.memory, outAt, end - outAt).toString()).toBe(
          bytesAt(both.reference.memory, outAt, end - outAt).toString(),
        )
        if (window >= rows * 120) expect(done).toBe(rows)
      }),
      { numRuns: 1500, seed },
    )
  })

  test('parses ordinary text like the reference and leaves the rest open', () => {
    const kinds = fc.constantFrom(...(Object.keys(parsed) as (keyof typeof parsed)[]))
    let decided = 0
    fc.assert(
      fc.property(
        kinds,
        fc.array(fc.option(fieldText), { minLength: rows, maxLength: rows, size: 'max' }),
        fc.integer({ min: 0, max: 4 }),
        (kind, strings, scale) => {
          const open = pair.map((bench) => {
            putStrings(bench, strings)
            const scaled = encodeKinds[kind] + (isTime(kind) ? 256 * scale : 0)
            return bench.kernels.number.parseColumn(scaled, entriesAt, rows, outAt, statusAt, scratchAt)
          })
          const same = sameBytes(both, statusAt, rows) && sameBytes(both, outAt, rows * parsed[kind])
          if (!same)
            expect({
              kind,
              strings,
              a: bytesAt(both.wasm.memory, outAt, rows * 8),
              sa: bytesAt(both.wasm.memory, statusAt, rows),
            }).toEqual({
              kind,
              strings,
              a: bytesAt(both.reference.memory, outAt, rows * 8),
              sa: bytesAt(both.reference.memory, statusAt, rows),
            })
          expect(open[0]).toBe(open[1])
          decided += rows - (open[0] as number)
        },
      ),
      { numRuns: 2000, seed },
    )
    expect(decided).toBeGreaterThan(2000)
  })

  test('what is printed reads back as the same value', () => {
    fc.assert(
      fc.property(fc.constantFrom('f64', 'f32', 'i64', 'i32', 'uuid', 'ipv4'), words, (kind, values) => {
        const { memory, kernels } = both.wasm
        const width = parsed[kind]
        memory.i64.set(values, valuesAt >>> 3)
        kernels.number.formatColumn(encodeKinds[kind], valuesAt, 0, rows, entriesAt, textAt, textAt + 65536, scratchAt)
        kernels.number.parseColumn(encodeKinds[kind], entriesAt, rows, outAt, statusAt, scratchAt)
        for (let r = 0; r < rows; r++) {
          if (memory.i32[(entriesAt >>> 2) + r * 2 + 1] === -1 || memory.u8[statusAt + r] === 1) continue
          expect(bytesAt(memory, outAt + r * width, width).equals(bytesAt(memory, valuesAt + r * width, width))).toBe(
            true,
          )
        }
      }),
      { numRuns: 600, seed },
    )
  })
})
