// Goal: the result of an aggregate does not depend on how its rows are split; percentiles are not tested here. Method:
// random values (fast-check prints the seed) are added to one accumulator, and in two halves to two accumulators that
// are merged.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AggregateFunction, CallSite, TypePattern } from '../../../../../engine/sql/functions/function-types.js'
import { aggregateFunctions, signatureText } from '../../../../../engine/sql/functions/registry/all.js'
import { severalRowsText, singleRows } from '../../../../../engine/sql/functions/single-row.js'
import { type DataType, dataType } from '../../../../../engine/types/column-types.js'
import type { Value } from '../../../../../engine/types/value.js'
import { defaultContext } from '../../../../support/interpreter/plan.js'

function typeFor(pattern: TypePattern): DataType {
  if (pattern === 'ANY') return dataType('LONG')
  if (pattern === 'TEXT') return dataType('STRING')
  if (pattern === 'TIME') return dataType('TIMESTAMP')
  if (pattern === 'ARRAY') return dataType('ARRAY', 1)
  return pattern === 'DECIMAL' ? dataType('DECIMAL', 18, 2) : dataType(pattern)
}

function valuesOf(type: DataType): fc.Arbitrary<Value> {
  const nullable = (values: fc.Arbitrary<Value>): fc.Arbitrary<Value> =>
    fc.oneof({ weight: 9, arbitrary: values }, fc.constant(null))
  switch (type.name) {
    case 'BOOLEAN':
      return fc.boolean()
    case 'BYTE':
    case 'SHORT':
      return fc.integer({ min: -100, max: 100 })
    case 'INT':
    case 'IPv4':
      return nullable(fc.integer({ min: 1, max: 1000 }))
    case 'FLOAT':
    case 'DOUBLE':
      return nullable(fc.integer({ min: 1, max: 1000 }).map((value) => value / 4))
    case 'STRING':
    case 'VARCHAR':
    case 'CHAR':
      return nullable(fc.constantFrom('a', 'b', 'c'))
    case 'ARRAY':
      return nullable(
        fc
          .array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 4 })
          .map((values) => ({ shape: [values.length], data: Float64Array.from(values) })),
      )
    default:
      return nullable(fc.bigInt({ min: 0n, max: 1000n }))
  }
}

function site(row: AggregateFunction, types: readonly DataType[]): CallSite {
  const args = types.map((type) => ({ type, constant: undefined, position: 0 }))
  const type =
    typeof row.gives === 'function'
      ? row.gives(args)
      : row.gives === 'FIRST'
        ? (types[0] ?? dataType('LONG'))
        : dataType(row.gives)
  return { type, argTypes: types, position: 0, context: defaultContext(), memo: new Map() }
}

function close(left: Value, right: Value): boolean {
  if (typeof left === 'number' && typeof right === 'number')
    return Math.abs(left - right) <= 1e-9 * Math.max(1, Math.abs(left))
  return (
    String(typeof left === 'object' && left !== null ? JSON.stringify(left) : left) ===
    String(typeof right === 'object' && right !== null ? JSON.stringify(right) : right)
  )
}

/** The second argument of percentiles must be constant; states and aggregates of a single row have tests of their own. */
const other = /percentile|single_(row|value)|distinct_values|sorted_numbers|merged_count_distinct/
const mergeable = aggregateFunctions.filter(({ name }) => !other.test(name))

describe('merging', () => {
  test.each(mergeable.map((row) => [signatureText(row), row] as const))('%s', (_signature, row) => {
    const types = row.takes.map(typeFor)
    const rows = fc.array(fc.tuple(...types.map(valuesOf)), { maxLength: 40 })
    fc.assert(
      fc.property(rows, fc.nat(40), (all, cut) => {
        const call = site(row, types)
        // Minimum, maximum and number of buckets are constants.
        const values = row.name === 'histogram' ? all.map(([value = null]) => [value, -1, 1, 5]) : all
        const { init, add, merge, result } = row.accumulator
        const [whole, first, second] = [init(), init(), init()]
        for (const [index, args] of values.entries()) {
          add(whole, args, call)
          add(index < cut ? first : second, args, call)
        }
        merge(first, second, call)
        expect(close(result(first, call), result(whole, call))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test('the value of the only row, whichever part holds it; two rows are an error', () => {
    const row = singleRows[0] as (typeof singleRows)[number]
    const { init, add, merge, result } = row.accumulator
    const call = site(row, row.takes.map(typeFor))
    for (const counts of [
      [0, 0],
      [1, 0],
      [0, 1],
      [1, 1],
      [2, 0],
    ] as const) {
      const states = counts.map(() => init())
      const merged = (): unknown => {
        for (const [index, count] of counts.entries())
          for (let turn = 0; turn < count; turn++) add(states[index], [7n], call)
        merge(states[0], states[1], call)
        return result(states[0], call)
      }
      const rows = counts[0] + counts[1]
      if (rows > 1) expect(merged).toThrow(severalRowsText)
      else expect(merged()).toBe(rows === 1 ? 7n : null)
    }
  })
})
