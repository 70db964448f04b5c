// Goal: states of values are read as they were written, equal sets have equal bytes, the bytes are as documented, and
// damaged bytes give a CorruptionError. Method: property tests (fast-check prints the seed); any byte of a state is
// changed, and any part of it cut off or repeated: it is read as another state that is well-formed, or refused.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CorruptionError } from '../../../engine/base/errors.js'
import { dataType } from '../../../engine/types/column-types.js'
import {
  encodeNumbers,
  encodeValues,
  formName,
  formOf,
  readNumbers,
  type SetValue,
  setKey,
  setValueOf,
  type ValueForm,
  valuesIn,
} from '../../../engine/types/value-states.js'

function form(name: Parameters<typeof dataType>[0], a = 0, b = 0): ValueForm {
  const found = formOf(dataType(name, a, b))
  if (found === undefined) throw new Error(`no form of ${name}`)
  return found
}

const sets: readonly (readonly [ValueForm, fc.Arbitrary<SetValue>])[] = [
  [form('LONG'), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  [form('UUID'), fc.bigInt({ min: 0n, max: 2n ** 128n - 1n })],
  [form('LONG256'), fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })],
  [form('VARCHAR'), fc.string({ unit: 'grapheme' }).map((text) => Buffer.from(text))],
]
const anySet = fc.oneof(
  ...sets.map(([of, value]) =>
    fc.uniqueArray(value, { selector: setKey, maxLength: 40 }).map((values) => ({ of, values })),
  ),
)

function encoded(of: ValueForm, values: readonly SetValue[]): Uint8Array {
  return encodeValues(of, values) ?? new Uint8Array()
}

const hex = (bytes: Uint8Array | null): string | undefined => (bytes === null ? undefined : Array.from(bytes).join(' '))

describe('distinct values', () => {
  test('are read as they were written, in one order', () => {
    fc.assert(
      fc.property(anySet, fc.infiniteStream(fc.nat()), ({ of, values }, places) => {
        const state = encoded(of, values)
        const found = valuesIn(state)
        expect(new Set(found.map(setKey))).toEqual(new Set(values.map(setKey)))
        expect(found.length).toBe(values.length)
        const shuffled = values.map((value) => [places.next().value, value] as const).sort(([x], [y]) => x - y)
        expect(
          encodeValues(
            of,
            shuffled.map(([, value]) => value),
          ),
        ).toEqual(state)
      }),
    )
  })

  test('have the documented bytes', () => {
    expect(hex(encodeValues(form('INT'), [258n, -1n]))).toBe(
      '1 1 0 0 2 0 0 0 255 255 255 255 255 255 255 255 2 1 0 0 0 0 0 0',
    )
    expect(hex(encodeValues(form('UUID'), [3n]))).toBe('1 2 0 0 1 0 0 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0')
    expect(hex(encodeValues(form('DECIMAL', 76, 2), []))).toBe('1 3 0 0 0 0 0 0')
    expect(hex(encodeValues(form('SYMBOL'), [Buffer.from('b'), Buffer.from('ab'), Buffer.from('')]))).toBe(
      '1 4 0 0 3 0 0 0 0 0 0 0 2 0 0 0 1 0 0 0 97 98 98',
    )
  })

  test('are not written beyond the limit', () => {
    expect(encodeValues(form('LONG'), [1n, 2n, 3n], 31)).toBe(null)
    expect(encodeValues(form('LONG'), [1n, 2n, 3n], 32)?.length).toBe(32)
    expect(encodeValues(form('VARCHAR'), [Buffer.from('abc')], 14)).toBe(null)
    expect(encodeValues(form('VARCHAR'), [Buffer.from('abc')], 15)?.length).toBe(15)
    expect(encodeValues(form('UUID'), [], 8)?.length).toBe(8)
  })

  test('of each type', () => {
    expect(setValueOf(-0, dataType('DOUBLE'))).toBe(0n)
    expect(setValueOf(1, dataType('FLOAT'))).toBe(0x3ff0_0000_0000_0000n)
    expect(setValueOf(-5, dataType('SHORT'))).toBe(-5n)
    expect(setValueOf(true, dataType('BOOLEAN'))).toBe(1n)
    expect(setValueOf(-1n, dataType('DECIMAL', 38, 2))).toBe(2n ** 128n - 1n)
    expect(setValueOf('é', dataType('SYMBOL'))).toEqual(Buffer.from([0xc3, 0xa9]))
    for (const name of ['ARRAY', 'BINARY', 'CHAR', 'INTERVAL'] as const) expect(formOf(dataType(name))).toBe(undefined)
  })

  test('types with the same bytes have the same name', () => {
    expect(formName(dataType('INT'))).toBe(formName(dataType('LONG')))
    expect(formName(dataType('FLOAT'))).toBe(formName(dataType('DOUBLE')))
    expect(formName(dataType('SYMBOL'))).toBe(formName(dataType('STRING')))
    const names = ['LONG', 'DOUBLE', 'VARCHAR', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS', 'BOOLEAN', 'UUID'] as const
    expect(new Set(names.map((name) => formName(dataType(name)))).size).toBe(names.length)
    expect(formName(dataType('DECIMAL', 18, 2))).toBe(formName(dataType('DECIMAL', 10, 2)))
    expect(formName(dataType('DECIMAL', 18, 2))).not.toBe(formName(dataType('DECIMAL', 18, 3)))
    expect(formName(dataType('DECIMAL', 18, 2))).not.toBe(formName(dataType('DECIMAL', 20, 2)))
  })
})

describe('numbers', () => {
  const anyNumbers = fc.array(fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(-0, 0, 1)), { maxLength: 60 })

  test('are read as they were written, sorted', () => {
    fc.assert(
      fc.property(anyNumbers, (drawn) => {
        const state = encodeNumbers(Float64Array.from(drawn), Number.POSITIVE_INFINITY)
        const { numbers, frequencies } = readNumbers(state ?? new Uint8Array())
        const found = [...numbers].flatMap((number, index) =>
          Array.from({ length: frequencies?.[index] ?? 1 }, () => number),
        )
        expect(found).toEqual([...Float64Array.from(drawn).sort()])
        expect(encodeNumbers(Float64Array.from(drawn.toReversed()), Number.POSITIVE_INFINITY)).toEqual(state)
      }),
    )
  })

  test('have the documented bytes', () => {
    expect(hex(encodeNumbers(Float64Array.of(2, 1), 100))).toBe('1 5 0 0 2 0 0 0 0 0 0 0 0 0 240 63 0 0 0 0 0 0 0 64')
    expect(hex(encodeNumbers(Float64Array.of(1, 1, 2), 100))).toBe(
      '1 5 1 0 2 0 0 0 0 0 0 0 0 0 240 63 0 0 0 0 0 0 0 64 2 0 0 0 1 0 0 0',
    )
  })

  test('are not written beyond the limit', () => {
    expect(encodeNumbers(Float64Array.of(1, 2, 3), 31)).toBe(null)
    expect(encodeNumbers(Float64Array.of(1, 2, 3), 32)?.length).toBe(32)
    // Frequencies take room, too.
    expect(encodeNumbers(Float64Array.of(1, 2, 3, 3), 43)).toBe(null)
    expect(encodeNumbers(Float64Array.of(1, 1, 1, 1), 20)?.length).toBe(20)
  })
})

const read = [valuesIn, readNumbers] as const

/** The error of both readers; undefined if one of them reads the state. */
function refusal(state: Uint8Array): readonly unknown[] | undefined {
  const errors: unknown[] = []
  for (const reader of read) {
    try {
      reader(state)
      return undefined
    } catch (error) {
      errors.push(error)
    }
  }
  return errors
}

describe('damaged states', () => {
  const anyState = fc.oneof(
    anySet.map(({ of, values }) => encoded(of, values)),
    fc
      .array(fc.constantFrom(1, 2, 3, 4.5), { maxLength: 20 })
      .map((numbers) => encodeNumbers(Float64Array.from(numbers), 1000) ?? new Uint8Array()),
  )

  test('of another length are refused', () => {
    fc.assert(
      fc.property(anyState, fc.nat(), fc.uint8Array({ maxLength: 9, minLength: 1 }), (state, cut, more) => {
        for (const bytes of [state.subarray(0, cut % state.length), Buffer.concat([state, more])]) {
          const errors = refusal(bytes)
          expect(errors).toBeDefined()
          for (const error of errors ?? []) expect(error).toBeInstanceOf(CorruptionError)
        }
      }),
    )
  })

  test('with any other byte are refused, or are states', () => {
    fc.assert(
      fc.property(anyState, fc.nat(), fc.integer({ min: 1, max: 255 }), (state, place, change) => {
        const bytes = Uint8Array.from(state)
        const at = place % bytes.length
        bytes[at] = (bytes[at] ?? 0) ^ change
        const errors = refusal(bytes)
        for (const error of errors ?? []) expect(error).toBeInstanceOf(CorruptionError)
        // In the header of a state with values, only the form can be another one, if the sizes agree.
        if (bytes.length > 8 && at < 8 && at !== 1) expect(errors).toBeDefined()
      }),
    )
  })

  test.each([
    ['too short', [1, 1, 0], 'too short'],
    ['format', [2, 1, 0, 0, 0, 0, 0, 0], 'unknown format [format=2]'],
    ['form', [1, 9, 0, 0, 0, 0, 0, 0], 'form=9'],
    ['extras', [1, 1, 1, 0, 0, 0, 0, 0], 'unknown extras [extras=1]'],
    ['texts', [1, 4, 0, 0, 255, 255, 255, 255], 'wrong length'],
  ])('values: %s', (_, bytes, message) => {
    expect(() => valuesIn(Uint8Array.from(bytes))).toThrow(message)
  })

  test.each([
    ['extras', [1, 5, 2, 0, 0, 0, 0, 0], 'unknown extras [extras=2]'],
    ['order', [1, 5, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 240, 63, 0, 0, 0, 0, 0, 0, 0, 0], 'not in order'],
    ['NaN', [1, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 248, 127], 'not in order'],
    ['frequency', [1, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 'occurs never'],
  ])('numbers: %s', (_, bytes, message) => {
    expect(() => readNumbers(Uint8Array.from(bytes))).toThrow(message)
  })
})
