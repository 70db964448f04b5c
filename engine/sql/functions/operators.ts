// SQL functions: arithmetic and bit operators on numbers, arithmetic on timestamps, and arithmetic on arrays element by
// element. Division by zero and INT or LONG results out of range are NULL. BYTE and SHORT have no NULL, so they report
// an error, as does a DECIMAL divided by a literal zero. Bit operators cut their result to the bits of its type. The
// binder has cast two numbers to one type, and two timestamps to one unit.

import { SqlError } from '../../base/errors.js'
import { decimalDigitsMax } from '../../base/limits.js'
import { type ColumnType, type DataType, dataType } from '../../types/column-types.js'
import { integerDigits, requireSmall } from '../../types/convert.js'
import { divideHalfEven, intOrNull, longMax, longOrNull, scaleInteger } from '../../types/number.js'
import type { ArrayValue, Value } from '../../types/value.js'
import { addressOperators } from './addresses.js'
import { overNumbers } from './column/numbers.js'
import {
  type BoundArgument,
  type CallSite,
  divisionByZero,
  isNullConstant,
  type ScalarFunction,
} from './function-types.js'

const word = (value: bigint): bigint => BigInt.asIntN(64, value)

interface Arithmetic {
  readonly name: string
  readonly description: string
  readonly int: (a: number, b: number) => number | null
  readonly long: (a: bigint, b: bigint) => bigint | null
  readonly double: (a: number, b: number) => number
  readonly example: readonly [string, string]
}

const arithmetic: readonly Arithmetic[] = [
  {
    name: '+',
    description: 'Sum.',
    int: (a, b) => intOrNull(a + b),
    long: (a, b) => longOrNull(a + b),
    double: (a, b) => a + b,
    example: ['1 + 2', '3'],
  },
  {
    name: '-',
    description: 'Difference.',
    int: (a, b) => intOrNull(a - b),
    long: (a, b) => longOrNull(a - b),
    double: (a, b) => a - b,
    example: ['5 - 7', '-2'],
  },
  {
    name: '*',
    description: 'Product.',
    int: (a, b) => intOrNull(a * b),
    long: (a, b) => longOrNull(a * b),
    double: (a, b) => a * b,
    example: ['3 * 4', '12'],
  },
  {
    name: '/',
    description: 'Quotient; for integers it is truncated towards zero. Division by zero is NULL.',
    int: (a, b) => (b === 0 ? null : (a / b) | 0),
    long: (a, b) => (b === 0n ? null : a / b),
    double: (a, b) => a / b,
    example: ['-7 / 2', '-3'],
  },
  // JDBC and others write it as a function.
  ...['%', 'mod'].map(
    (name): Arithmetic => ({
      name,
      description: 'Remainder with the sign of the dividend. Division by zero is NULL.',
      int: (a, b) => (b === 0 ? null : (a % b) | 0),
      long: (a, b) => (b === 0n ? null : a % b),
      double: (a, b) => a % b,
      example: [name === '%' ? '7 % -3' : 'mod(7, -3)', '1'],
    }),
  ),
]

function isRemainder(name: string): boolean {
  return name === '%' || name === 'mod'
}

/** In this dialect the difference of FLOATs is a DOUBLE. */
function arithmeticRows(operator: Arithmetic): ScalarFunction[] {
  return allArithmeticRows(operator).filter(({ name, gives }) => name !== '-' || gives !== 'FLOAT')
}

function allArithmeticRows(operator: Arithmetic): ScalarFunction[] {
  const { name, description, example } = operator
  return [
    {
      name,
      takes: ['INT', 'INT'],
      gives: 'INT',
      description,
      example,
      ...overNumbers((a, b) => operator.int(a, b) ?? Number.NaN),
    },
    {
      name,
      takes: ['LONG', 'LONG'],
      gives: 'LONG',
      description,
      example: null,
      total: true,
      eval: ([a, b]: readonly [bigint, bigint]) => operator.long(a, b),
    },
    {
      name,
      takes: ['FLOAT', 'FLOAT'],
      gives: 'FLOAT',
      description,
      example: null,
      ...overNumbers((a, b) => Math.fround(operator.double(a, b))),
    },
    {
      name,
      takes: ['DOUBLE', 'DOUBLE'],
      gives: 'DOUBLE',
      description,
      example: null,
      ...overNumbers(operator.double),
    },
  ]
}

/**
 * Result type of DECIMAL arithmetic: maximum precision for products and quotients, otherwise the precision that the
 * result may need.
 */
function decimalResult(name: string, [left, right]: readonly BoundArgument[]): DataType {
  const [a, b] = [digitsOf(left), digitsOf(right)]
  const isProduct = name === '*' || name === '/'
  const scale = Math.min(decimalDigitsMax, isProduct ? a.b + b.b : Math.max(a.b, b.b))
  if (isProduct) return dataType('DECIMAL', decimalDigitsMax, scale)
  const whole = Math.max(a.a - a.b, b.a - b.b) + (isRemainder(name) ? 0 : 1)
  return dataType('DECIMAL', Math.min(decimalDigitsMax, whole + scale), scale)
}

/** Integers have the digits of their type, constants their own. */
function digitsOf(argument: BoundArgument | undefined): DataType {
  if (argument?.type.name === 'DECIMAL') return argument.type
  const { constant } = argument ?? {}
  const isNumber = typeof constant === 'number' || typeof constant === 'bigint'
  const digits = isNumber ? String(constant).replace('-', '').length : integerDigits(argument?.type)
  return dataType('DECIMAL', digits, 0)
}

function decimalArithmetic(name: string, left: bigint, right: bigint, { argTypes, type }: CallSite): bigint | null {
  const [leftType, rightType] = argTypes
  const scales = [leftType?.b ?? 0, rightType?.b ?? 0] as const
  if (name === '*') return withinPrecision(scaleInteger(left * right, type.b - scales[0] - scales[1]), type)
  if (name === '/') {
    if (right === 0n) return null
    const shift = type.b - scales[0] + scales[1]
    return withinPrecision(divideHalfEven(scaleInteger(left, shift), right), type)
  }
  const scale = Math.max(...scales)
  const a = scaleInteger(left, scale - scales[0])
  const b = scaleInteger(right, scale - scales[1])
  if (isRemainder(name)) return b === 0n ? null : withinPrecision(scaleInteger(a % b, type.b - scale), type)
  return withinPrecision(scaleInteger(name === '+' ? a + b : a - b, type.b - scale), type)
}

/**
 * A literal zero as divisor is an error. Zeros in columns give NULL, except in PostgreSQL's dialect, in which
 * make-call.ts chooses the forms that report them.
 */
function checkDivisor(name: string, [dividend, divisor]: readonly BoundArgument[], position: number): void {
  if (isNullConstant(dividend)) return
  const isZero = divisor?.constant === 0n || divisor?.constant === 0
  if (isZero && (name === '/' || name === '%')) throw divisionByZero(name, position)
}

function withinPrecision(value: bigint, type: DataType): bigint | null {
  const limit = 10n ** BigInt(type.a)
  return value < limit && value > -limit ? value : null
}

const decimalRows: ScalarFunction[] = ['+', '-', '*', '/', '%'].map((name) => ({
  name,
  takes: ['DECIMAL', 'DECIMAL'],
  gives: (args) => decimalResult(name, args),
  description: 'Exact DECIMAL arithmetic.',
  example: null,
  check: (args, position) => checkDivisor(name, args, position),
  total: true,
  eval: ([a, b]: readonly [bigint, bigint], site) => decimalArithmetic(name, a, b, site),
}))

/** Integers beside a DECIMAL are exact. Division is excluded, since its result may need unlimited digits. */
const decimalIntegerRows: ScalarFunction[] = ['+', '-', '*', '%'].flatMap((name) =>
  (['BYTE', 'SHORT', 'INT', 'LONG'] as const)
    .flatMap((integer) => [['DECIMAL', integer] as const, [integer, 'DECIMAL'] as const])
    .map(
      (takes): ScalarFunction => ({
        name,
        takes,
        gives: (args) => decimalResult(name, args),
        description: 'Exact arithmetic on a DECIMAL and an integer.',
        example: null,
        typedOnly: true,
        check: (args, position) => checkDivisor(name, args, position),
        total: true,
        eval: ([a, b]: readonly [bigint, bigint], site) => decimalArithmetic(name, BigInt(a), BigInt(b), site),
      }),
    ),
)

/** Result type of timestamp - x: a timestamp if x is a constant, else a number. */
function differenceType([time, taken]: readonly BoundArgument[]): DataType {
  if (time === undefined || taken?.constant === undefined || taken.ofStatement === true) return dataType('LONG')
  return time.type
}

/** A timestamp and a number in its unit. make-call.ts has converted two timestamps to one unit. */
function timeRow(
  name: '+' | '-',
  takes: readonly ['TIME' | 'DATE', 'LONG'] | readonly ['LONG', 'TIME' | 'DATE'],
): ScalarFunction {
  const timeFirst = takes[0] !== 'LONG'
  return {
    name,
    takes,
    gives: name === '-' ? differenceType : timeFirst ? 'FIRST' : 'LONG',
    description: 'Adds or subtracts a number in the unit of the timestamp.',
    example: null,
    total: true,
    eval: ([a, b]: readonly [bigint, bigint]) => longOrNull(name === '+' ? a + b : a - b),
  }
}

const timeRows: ScalarFunction[] = [
  timeRow('+', ['TIME', 'LONG']),
  timeRow('+', ['LONG', 'TIME']),
  timeRow('-', ['TIME', 'LONG']),
  timeRow('+', ['DATE', 'LONG']),
  timeRow('+', ['LONG', 'DATE']),
  timeRow('-', ['DATE', 'LONG']),
  ...(['TIME', 'DATE'] as const).map(
    (time): ScalarFunction => ({
      name: '-',
      takes: [time, time],
      gives: differenceType,
      description: 'Difference of two timestamps.',
      example: null,
      total: true,
      eval: ([a, b]: readonly [bigint, bigint]) => longOrNull(a - b),
    }),
  ),
  {
    name: '+',
    takes: ['TIME', 'TIME'],
    gives: 'FIRST',
    description: 'Sum of two timestamps as numbers.',
    example: null,
    total: true,
    eval: ([a, b]: readonly [bigint, bigint]) => longOrNull(a + b),
  },
]

const unaryRows: ScalarFunction[] = (['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL'] as const).map(
  (type) => ({
    name: 'negate',
    takes: [type],
    gives: 'FIRST',
    description: 'The negated number; written as `-x`.',
    example: null,
    total: type !== 'BYTE' && type !== 'SHORT',
    eval: ([a]: readonly [number | bigint]) => {
      if (typeof a === 'bigint') return type === 'LONG' ? longOrNull(-a) : -a
      // Only floating-point numbers have a negative zero.
      return type === 'BYTE' || type === 'SHORT' || type === 'INT' ? requireSmall(0 - Number(a), type) : -a
    },
  }),
)

function bitRow(name: string, type: 'INT' | 'LONG', apply: (a: bigint, b: bigint) => bigint): ScalarFunction {
  return {
    name,
    takes: [type, type],
    gives: type,
    description: 'Bitwise operation on integers.',
    example: null,
    eval: ([a, b]: readonly [number | bigint, number | bigint]) => {
      const result = apply(BigInt(a), BigInt(b))
      return type === 'INT' ? Number(BigInt.asIntN(32, result)) : word(result)
    },
  }
}

const bitOperations: readonly (readonly [string, (a: bigint, b: bigint) => bigint])[] = [
  ['&', (a, b) => a & b],
  ['|', (a, b) => a | b],
  ['^', (a, b) => a ^ b],
  ['<<', (a, b) => a << (b & 63n)],
  ['>>', (a, b) => a >> (b & 63n)],
]

const bitRows: ScalarFunction[] = [
  ...bitOperations.flatMap(([name, apply]) => [bitRow(name, 'INT', apply), bitRow(name, 'LONG', apply)]),
  {
    name: '~',
    takes: ['INT'],
    gives: 'INT',
    description: 'Bitwise complement.',
    example: ['~5', '-6'],
    eval: ([a]: readonly [number]) => ~a,
  },
  {
    name: '~',
    takes: ['LONG'],
    gives: 'LONG',
    description: 'Bitwise complement.',
    example: null,
    eval: ([a]: readonly [bigint]) => ~a,
  },
]

/** LONG256 operands are used as LONGs; only their sum has 256 bits. */
const long256Rows: ScalarFunction[] = [
  ...arithmetic.filter(({ name }) => name !== 'mod').map(({ name, long }) => [name, long] as const),
  ...bitOperations.slice(0, 3),
].flatMap(([name, apply]) =>
  (
    [
      ['LONG256', 'LONG'],
      ['LONG', 'LONG256'],
      ['LONG256', 'LONG256'],
    ] as const
  ).map((takes): ScalarFunction => {
    const isSum = name === '+' && takes[0] === takes[1]
    return {
      name,
      takes,
      gives: isSum ? 'LONG256' : 'LONG',
      description: isSum ? 'Sum, modulo 2^256.' : 'Of a LONG256 that a LONG holds; NULL beyond.',
      example: null,
      eval: ([a, b]: readonly [bigint, bigint]) => {
        const [left, right] = [a, b]
        if (isSum) return BigInt.asUintN(256, left + right)
        const result = left > longMax || right > longMax ? null : apply(left, right)
        return result === null ? null : longOrNull(result)
      },
    }
  }),
)

// Element-wise operators on arrays, with a number or an array of compatible shape.
const arrayRows: ScalarFunction[] = arithmetic.slice(0, 4).flatMap((operator) => {
  const row = (takes: readonly [ColumnType, ColumnType]): ScalarFunction => ({
    name: operator.name,
    takes,
    gives: (args) => dataType('ARRAY', Math.max(...args.map(({ type }) => (type.name === 'ARRAY' ? type.a : 1)))),
    description: 'Element-wise operation.',
    example: null,
    seesNull: true,
    check: checkShapes,
    eval: (args, { position }) => {
      const [a = null, b = null] = args
      if (takes.some((type, side) => type === 'ARRAY' && args[side] === null)) return null
      return combineArrays(a, b, operator.double, position)
    },
  })
  // An untyped NULL is a number, so every element of the result is NULL.
  return [row(['ARRAY', 'DOUBLE']), row(['DOUBLE', 'ARRAY']), row(['ARRAY', 'ARRAY'])]
})

const negatedArray: ScalarFunction = {
  name: 'negate',
  takes: ['ARRAY'],
  gives: 'FIRST',
  description: 'Negates every element.',
  example: null,
  eval: ([a]: readonly [ArrayValue]) => {
    const { shape, data } = a
    return { shape, data: data.map((element) => -element) }
  },
}

/** Reports constant arrays whose shapes are incompatible, at the left one; an empty array, at the operator. */
function checkShapes([left, right]: readonly BoundArgument[], position: number): void {
  if (left?.constant == null || right?.constant == null) return
  const [a, b] = [left.constant, right.constant].map((value) => arrayOf(value as ArrayValue | number))
  const isEmpty = a?.data.length === 0 || b?.data.length === 0
  commonShape(a?.shape ?? [], b?.shape ?? [], isEmpty ? position : left.position)
}

function combineArrays(
  left: Value,
  right: Value,
  apply: (a: number, b: number) => number,
  position: number,
): ArrayValue {
  const a = arrayOf(left as ArrayValue | number | null)
  const b = arrayOf(right as ArrayValue | number | null)
  const shape = commonShape(a.shape, b.shape, position)
  const length = shape.reduce((product, size) => product * size, 1)
  const [stepsA, stepsB] = [stepsOf(a.shape, shape), stepsOf(b.shape, shape)]
  const element = (side: ArrayValue, steps: readonly number[], index: number): number =>
    side.data[placeOf(index, shape, steps)] ?? Number.NaN
  return {
    shape,
    data: Float64Array.from({ length }, (_, index) => apply(element(a, stepsA, index), element(b, stepsB, index))),
  }
}

function arrayOf(value: ArrayValue | number | null): ArrayValue {
  if (value === null) return { shape: [], data: Float64Array.of(Number.NaN) }
  return typeof value === 'number' ? { shape: [], data: Float64Array.of(value) } : value
}

/** Broadcasting: shapes are compared from the last dimension; a dimension that is 1 or missing is repeated. */
function commonShape(left: readonly number[], right: readonly number[], position: number): number[] {
  const dimensions = Math.max(left.length, right.length)
  return Array.from({ length: dimensions }, (_, index) => {
    const a = left[index - dimensions + left.length] ?? 1
    const b = right[index - dimensions + right.length] ?? 1
    if (a !== b && a !== 1 && b !== 1) {
      const shapes = `leftShape=[${left.join()}], rightShape=[${right.join()}]`
      throw new SqlError(`arrays have incompatible shapes [${shapes}]`, position)
    }
    return a === 1 ? b : a
  })
}

/** Strides of a side for each dimension of the result; 0 where it is repeated. */
function stepsOf(own: readonly number[], shape: readonly number[]): number[] {
  const steps = new Array<number>(shape.length).fill(0)
  let step = 1
  for (let back = 1; back <= own.length; back++) {
    const size = own[own.length - back] ?? 1
    if (size > 1) steps[shape.length - back] = step
    step *= size
  }
  return steps
}

function placeOf(index: number, shape: readonly number[], steps: readonly number[]): number {
  let rest = index
  let place = 0
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    const size = shape[dimension] ?? 1
    place += (rest % size) * (steps[dimension] ?? 0)
    rest = Math.floor(rest / size)
  }
  return place
}

export const operatorFunctions: readonly ScalarFunction[] = [
  ...arithmetic.flatMap(arithmeticRows),
  ...decimalRows,
  ...decimalIntegerRows,
  ...timeRows,
  ...unaryRows,
  ...bitRows,
  ...addressOperators,
  ...long256Rows,
  ...arrayRows,
  negatedArray,
]
