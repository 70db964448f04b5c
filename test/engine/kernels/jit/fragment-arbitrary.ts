// Generators for property tests of the code generator (it compiles a part of a query plan, called a fragment, into one
// WebAssembly loop): random columns of every supported type with boundary values, NULLs and infinities, and random
// expression trees over these columns with most supported operations (not nullif, sqrt, ranges of `in`, and rounding).

import fc from 'fast-check'
import type { FragmentExpression } from '../../../../engine/kernels/jit/fragment.js'
import { type ColumnType, type DataType, dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import type { Column } from './fragment-bench.js'

export const names = [
  'BOOLEAN',
  'BYTE',
  'SHORT',
  'INT',
  'LONG',
  'FLOAT',
  'DOUBLE',
  'TIMESTAMP',
  'DATE',
  'SYMBOL',
  'IPv4',
] as const satisfies readonly ColumnType[]
type Name = (typeof names)[number]

/** Two columns of each type. */
export const types: readonly DataType[] = [...names, ...names].map((name) => dataType(name))

const longMax = (1n << 63n) - 1n
const integers = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.integer({ min: 1 - 2 ** 31 }),
  fc.constantFrom(2 ** 31 - 1, 1 - 2 ** 31, 0),
)
const longs = fc.oneof(
  fc.bigInt({ min: -3n, max: 3n }),
  fc.bigInt({ min: -longMax, max: longMax }),
  fc.constantFrom(longMax, -longMax, 1n << 31n, 1n << 53n, -(1n << 32n)),
)
const doubles = fc.oneof(
  fc.integer({ min: -3, max: 3 }),
  fc.double({ noNaN: true }),
  fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 31, -(2 ** 31), 2 ** 63, -(2 ** 63), 0.5),
)

/** Values that are not NULL. */
const present: Record<Name, fc.Arbitrary<Value>> = {
  BOOLEAN: fc.boolean(),
  BYTE: fc.integer({ min: -128, max: 127 }),
  SHORT: fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -32_768, max: 32_767 })),
  INT: integers,
  LONG: longs,
  TIMESTAMP: longs,
  DATE: longs,
  FLOAT: doubles.map(Math.fround),
  DOUBLE: doubles,
  SYMBOL: fc.integer({ min: 0, max: 9 }),
  IPv4: fc.oneof(fc.constantFrom(1, 2, 0xffff_ffff, 0x8000_0000), fc.integer({ min: 1, max: 0xffff_ffff })),
}

const neverNull: ReadonlySet<string> = new Set(['BOOLEAN', 'BYTE', 'SHORT'])

function values(name: Name): fc.Arbitrary<Value> {
  return neverNull.has(name) ? present[name] : fc.option(present[name], { freq: 5 })
}

/** Columns of so many rows; a short list of values is repeated with another period in every column. */
export function columnsOf(rows: fc.Arbitrary<number>): fc.Arbitrary<Column[]> {
  const lists = fc.tuple(
    ...types.map(({ name }) => fc.array(values(name as Name), { minLength: 3, maxLength: 23, size: 'max' })),
  )
  return fc.tuple(rows, lists).map(([count, all]) =>
    types.map((type, index) => {
      const list = all[index] as Value[]
      return { type, values: Array.from({ length: count }, (_, row) => list[row % list.length] as Value) }
    }),
  )
}

export const rowCounts = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 200 }), weight: 9 },
  { arbitrary: fc.integer({ min: 1000, max: 5000 }), weight: 1 },
)

const booleanType = dataType('BOOLEAN')

function call(name: string, type: DataType, ...args: readonly FragmentExpression[]): FragmentExpression {
  return { kind: 'call', name, args, type }
}

function leaf(name: Name): fc.Arbitrary<FragmentExpression> {
  const type = dataType(name)
  const first = names.indexOf(name)
  const column = fc
    .constantFrom(first, first + names.length)
    .map((index): FragmentExpression => ({ kind: 'column', index, type }))
  const constant = values(name).map((value): FragmentExpression => ({ kind: 'constant', value, type }))
  return fc.oneof({ arbitrary: column, weight: 3 }, { arbitrary: constant, weight: 1 })
}

const arithmeticNames = ['INT', 'LONG', 'FLOAT', 'DOUBLE'] as const
const castSources = ['BOOLEAN', 'BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE'] as const

/** Numbers of a type. */
export function numbers(name: Name, depth: number): fc.Arbitrary<FragmentExpression> {
  if (depth === 0 || name === 'SYMBOL' || name === 'IPv4') return leaf(name)
  if (name === 'BOOLEAN') return conditions(depth)
  const type = dataType(name)
  const below = numbers(name, depth - 1)
  const forms: fc.Arbitrary<FragmentExpression>[] = [leaf(name)]
  if (!neverNull.has(name)) {
    forms.push(
      fc.tuple(conditions(depth - 1), below, below).map((args) => call('case', type, ...args)),
      fc.tuple(conditions(depth - 1), below).map((args) => call('case', type, ...args)),
      fc.tuple(below, below).map((args) => call('coalesce', type, ...args)),
    )
  }
  if ((arithmeticNames as readonly string[]).includes(name)) forms.push(...arithmetic(name, below))
  const sources = castSources.filter((source) => source !== name && isCast(source, name))
  if (name !== 'TIMESTAMP' && name !== 'DATE')
    forms.push(
      fc
        .constantFrom(...sources)
        .chain((source) => numbers(source, depth - 1))
        .map((argument) => call('cast', type, argument)),
    )
  else forms.push(fc.tuple(below, numbers('LONG', depth - 1)).map((args) => call('+', type, ...args)))
  return fc.oneof(...forms)
}

/** Casts of floating point to the small integers are left to the interpreter. */
function isCast(source: Name, target: Name): boolean {
  return !((target === 'BYTE' || target === 'SHORT') && (source === 'FLOAT' || source === 'DOUBLE'))
}

function arithmetic(name: Name, below: fc.Arbitrary<FragmentExpression>): fc.Arbitrary<FragmentExpression>[] {
  const type = dataType(name)
  const floating = name === 'FLOAT' || name === 'DOUBLE'
  const binary = fc.constantFrom(...(floating ? ['+', '-', '*', '/'] : ['+', '-', '*', '/', '%', '&', '|', '^']))
  const unary = fc.constantFrom(...(floating ? ['negate', 'abs'] : ['negate', 'abs', '~']))
  return [
    fc.tuple(binary, below, below).map(([operator, a, b]) => call(operator, type, a, b)),
    fc.tuple(unary, below).map(([operator, a]) => call(operator, type, a)),
  ]
}

const ordered = names.filter((name) => name !== 'BOOLEAN' && name !== 'SYMBOL')

export const table = Array.from({ length: 12 }, (_, index) => index % 3 === 1)

export function conditions(depth: number): fc.Arbitrary<FragmentExpression> {
  const relations = fc.constantFrom('=', '<>', '<', '>', '<=', '>=')
  const compared = fc
    .tuple(relations, fc.constantFrom(...ordered))
    .chain(([relation, name]) =>
      fc
        .tuple(numbers(name, Math.max(0, depth - 1)), numbers(name, 0))
        .map((args) => call(relation, booleanType, ...args)),
    )
  const between = fc
    .constantFrom(...ordered)
    .chain((name) => fc.tuple(leaf(name), leaf(name), leaf(name)).map((args) => call('between', booleanType, ...args)))
  const symbols = fc
    .tuple(fc.constantFrom('=', '<>', 'in'), fc.array(values('SYMBOL'), { minLength: 1, maxLength: 4 }))
    .map(([name, ids]) => {
      const type = dataType('SYMBOL')
      const members = (name === 'in' ? ids : ids.slice(0, 1)).map(
        (value): FragmentExpression => ({ kind: 'constant', value, type }),
      )
      return call(name, booleanType, { kind: 'column', index: names.indexOf('SYMBOL'), type }, ...members)
    })
  const lookup = fc.constant<FragmentExpression>({
    kind: 'lookup',
    column: names.indexOf('SYMBOL'),
    table: 0,
    type: booleanType,
  })
  const members = fc.constantFrom(...ordered).chain((name) =>
    fc.tuple(leaf(name), fc.array(values(name), { minLength: 1, maxLength: 4 })).map(([subject, list]) => {
      const type = dataType(name)
      return call(
        'in',
        booleanType,
        subject,
        ...list.map((value): FragmentExpression => ({ kind: 'constant', value, type })),
      )
    }),
  )
  const forms = [compared, compared, between, symbols, lookup, members, leaf('BOOLEAN')]
  if (depth > 0) {
    const below = conditions(depth - 1)
    forms.push(
      fc
        .tuple(fc.constantFrom('and', 'or', '=', '<>'), below, below)
        .map(([name, a, b]) => call(name, booleanType, a, b)),
      below.map((argument) => call('not', booleanType, argument)),
      fc.tuple(below, below, below).map((args) => call('case', booleanType, ...args)),
      fc
        .constantFrom(...castSources.filter((source) => source !== 'BOOLEAN'))
        .chain((source) => numbers(source, depth - 1))
        .map((argument) => call('cast', booleanType, argument)),
    )
  }
  return fc.oneof(...forms)
}
