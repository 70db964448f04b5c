// Goal: every fragment (part of a query plan) that is compiled to WebAssembly gives the same results as the interpreter
// of sql/functions. Method: random expression trees over columns with NULLs and boundary values, for random row counts
// up to 5000; one filter runs for every row count from 0 to 200. Sums are of integers, so that the order of addition
// does not matter.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AggregateShape, FragmentAggregate, GroupKey } from '../../../../engine/kernels/jit/fragment.js'
import { type ColumnType, dataType } from '../../../../engine/types/column-types.js'
import { runs } from '../../../support/runs.js'
import { columnsOf, conditions, names, numbers, rowCounts, table, types } from './fragment-arbitrary.js'
import { aggregate, aggregated, type Column, passing, project, projected, select } from './fragment-bench.js'

const seed = Number(process.env['SEED'] ?? 20240611)
const columns = columnsOf(rowCounts)
const tables = [table]
let taken = 0
let refused = 0

/** Counts how many fragments were taken: a generator that takes none would agree with everything. */
function compare<T>(actual: T | undefined, expected: () => T): void {
  if (actual === undefined) {
    refused++
    return
  }
  taken++
  expect(actual).toEqual(expected())
}

describe('generated kernels', () => {
  test('select the rows that the interpreter selects', () => {
    fc.assert(
      fc.property(conditions(3), columns, fc.constantFrom('rows', 'mask'), (predicate, data, output) => {
        const shape = { columns: types, predicate, output }
        compare(select(shape, data, tables), () => passing(predicate, data, tables))
      }),
      { numRuns: runs(2000, 300), seed },
    )
    expect(taken).toBeGreaterThan(refused * 4)
  })

  test('compute the values that the interpreter computes', () => {
    const results = names.filter((name) => name !== 'SYMBOL' && name !== 'IPv4')
    const expressions = fc.array(
      fc.constantFrom(...results).chain((name) => numbers(name, 3)),
      { minLength: 1, maxLength: 3 },
    )
    ;[taken, refused] = [0, 0]
    fc.assert(
      fc.property(expressions, columns, (list, data) => {
        const shape = { columns: types, expressions: list }
        compare(project(shape, data, tables), () => projected(shape, data, tables))
      }),
      { numRuns: runs(2000, 300), seed },
    )
    expect(taken).toBeGreaterThan(refused * 4)
  })

  test('select in every row count from 0 to 200', () => {
    const predicate = {
      kind: 'call' as const,
      name: '>',
      args: [
        { kind: 'column' as const, index: names.indexOf('LONG'), type: dataType('LONG') },
        { kind: 'constant' as const, value: 0n, type: dataType('LONG') },
      ],
      type: dataType('BOOLEAN'),
    }
    for (let rows = 0; rows <= 200; rows++) {
      const data = types.map((type): Column => {
        const values = Array.from({ length: rows }, (_, row) => (type.name === 'LONG' ? BigInt((row % 5) - 2) : 1))
        return { type, values }
      })
      for (const output of ['rows', 'mask'] as const)
        expect(select({ columns: types, predicate, output }, data)).toEqual(passing(predicate, data))
    }
  })
})

// Aggregates --------------------------------------------------------------------------------------------------------

const whole = fc.integer({ min: -1000, max: 1000 })
const summable: Partial<Record<ColumnType, fc.Arbitrary<Column['values'][number]>>> = {
  FLOAT: fc.option(whole, { freq: 4 }),
  DOUBLE: fc.option(whole, { freq: 4 }),
}

/** As the other columns, but floating point holds whole numbers. */
const sums = fc
  .tuple(
    columns,
    fc.array(summable.FLOAT ?? whole, { minLength: 3, maxLength: 19, size: 'max' }),
    fc.array(summable.DOUBLE ?? whole, { minLength: 3, maxLength: 17, size: 'max' }),
  )
  .map(([data, floats, doubles]) =>
    data.map((column): Column => {
      const list = column.type.name === 'FLOAT' ? floats : column.type.name === 'DOUBLE' ? doubles : null
      if (list === null) return column
      return { type: column.type, values: column.values.map((_, row) => list[row % list.length] ?? null) }
    }),
  )

const aggregateTypes: Record<string, readonly ColumnType[]> = {
  sum: ['SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'],
  avg: ['SHORT', 'INT', 'LONG', 'DOUBLE'],
  min: ['INT', 'LONG', 'DATE', 'TIMESTAMP', 'FLOAT', 'DOUBLE'],
  max: ['INT', 'LONG', 'DATE', 'TIMESTAMP', 'FLOAT', 'DOUBLE'],
  count: names,
  first_not_null: names,
  last_not_null: names,
}

const aggregates: fc.Arbitrary<FragmentAggregate> = fc.oneof(
  fc.constantFrom('count', 'first', 'last').map((name): FragmentAggregate => ({ name, arg: null })),
  fc
    .constantFrom(...Object.entries(aggregateTypes).flatMap(([name, list]) => list.map((type) => ({ name, type }))))
    .chain(({ name, type }) => {
      const at = names.indexOf(type as (typeof names)[number])
      return fc
        .constantFrom(at, at + names.length)
        .map((index): FragmentAggregate => ({ name, arg: { kind: 'column', index, type: dataType(type) } }))
    }),
)

interface Keyed {
  readonly key: GroupKey
  readonly count: number
}

function keyOf(name: (typeof names)[number], origin: number, count: number): Keyed {
  const expression = { kind: 'column' as const, index: names.indexOf(name), type: dataType(name) }
  return { key: { kind: 'integer', expression, origin }, count }
}

const keys: fc.Arbitrary<Keyed> = fc.oneof(
  fc.integer({ min: 1, max: 11 }).map((count) => keyOf('SYMBOL', 0, count)),
  fc.constant(keyOf('BOOLEAN', 0, 2)),
  fc
    .tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: 1, max: 300 }))
    .map(([origin, count]) => keyOf('BYTE', origin, count)),
  fc
    .tuple(fc.integer({ min: -5, max: 5 }), fc.integer({ min: 1, max: 9 }))
    .map(([origin, count]) => keyOf('INT', origin, count)),
  fc
    .tuple(fc.bigInt({ min: -9n, max: 9n }), fc.bigInt({ min: 1n, max: 4n }), fc.integer({ min: 1, max: 9 }))
    .map(([origin, step, count]): Keyed => {
      const expression = { kind: 'column' as const, index: names.indexOf('TIMESTAMP'), type: dataType('TIMESTAMP') }
      return { key: { kind: 'bucket', expression, origin, step }, count }
    }),
)

/** Timestamps near zero: a bucket's distance from the origin must not overflow. */
function nearTimes(data: readonly Column[]): Column[] {
  return data.map((column) =>
    column.type.name !== 'TIMESTAMP'
      ? column
      : {
          type: column.type,
          values: column.values.map((value) => (value === null ? null : BigInt(value as bigint) % 40n)),
        },
  )
}

describe('generated aggregates', () => {
  test('agree with the accumulators of the interpreter', () => {
    const predicates = fc.option(conditions(1))
    ;[taken, refused] = [0, 0]
    fc.assert(
      fc.property(
        fc.array(aggregates, { minLength: 1, maxLength: 6 }),
        predicates,
        fc.array(keys, { maxLength: 2 }),
        sums,
        (list, predicate, keyed, data) => {
          const shape: AggregateShape = {
            columns: types,
            predicate,
            aggregates: list,
            keys: keyed.map(({ key }) => key),
          }
          const counts = keyed.map(({ count }) => count)
          const times = nearTimes(data)
          compare(aggregate(shape, times, counts, tables), () => aggregated(shape, times, counts, tables))
        },
      ),
      { numRuns: runs(500, 250), seed },
    )
    expect(taken).toBeGreaterThan(refused * 4)
  })
})
