// SQL functions: mathematics of PostgreSQL that other servers of the native dialect lack, such as log(b, x), gcd,
// factorial and width_bucket; also num_nulls(). Clients of both dialects can call them.

import { SqlError } from '../../base/errors.js'
import type { Value } from '../../types/value.js'
import type { ScalarFunction, TypePattern } from './function-types.js'
import { binary, unary } from './number-functions.js'

const curves: readonly ScalarFunction[] = [
  unary('sinh', 'Hyperbolic sine.', ['sinh(0)', '0.0'], Math.sinh),
  unary('cosh', 'Hyperbolic cosine.', ['cosh(0)', '1.0'], Math.cosh),
  unary('tanh', 'Hyperbolic tangent.', ['tanh(0)', '0.0'], Math.tanh),
  unary('asinh', 'Inverse hyperbolic sine.', ['asinh(0)', '0.0'], Math.asinh),
  unary('acosh', 'Inverse hyperbolic cosine.', ['acosh(1)', '0.0'], Math.acosh),
  unary('atanh', 'Inverse hyperbolic tangent.', ['atanh(0)', '0.0'], Math.atanh),
  unary('log10', 'Logarithm to base 10.', ['log10(1000)', '3.0'], Math.log10),
  binary('log', 'Logarithm of the second number to the base of the first.', ['log(2, 64)', '6.0'], logarithm),
]

/** Exact for powers of two and ten. */
function logarithm(base: number, x: number): number {
  if (base === 2) return Math.log2(x)
  return base === 10 ? Math.log10(x) : Math.log(x) / Math.log(base)
}

// Integers ----------------------------------------------------------------------------------------------------------

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value)

function commonDivisor(x: bigint, y: bigint): bigint {
  let [larger, smaller] = [magnitude(x), magnitude(y)]
  while (smaller !== 0n) [larger, smaller] = [smaller, larger % smaller]
  return larger
}

function commonMultiple(x: bigint, y: bigint): bigint {
  return x === 0n || y === 0n ? 0n : magnitude((x / commonDivisor(x, y)) * y)
}

const longMax = 0x7fff_ffff_ffff_ffffn

function wholeRows(
  name: string,
  description: string,
  example: readonly [string, string],
  apply: (x: bigint, y: bigint) => bigint,
): ScalarFunction[] {
  return (['INT', 'LONG'] as const).map((type) => ({
    name,
    takes: [type, type],
    gives: type,
    description,
    example: type === 'INT' ? example : null,
    eval: ([x, y]: readonly [number | bigint, number | bigint], { position }) => {
      const result = apply(BigInt(x), BigInt(y))
      if (magnitude(result) > (type === 'INT' ? 0x7fff_ffffn : longMax))
        throw new SqlError(`${type.toLowerCase()} out of range`, position)
      return type === 'INT' ? Number(result) : result
    },
  }))
}

function factorial(count: Value | undefined, position: number): bigint {
  const last = BigInt(count as number | bigint)
  if (last < 0n) throw new SqlError('a negative number has no factorial', position)
  if (last > 20n) throw new SqlError('long out of range', position)
  let product = 1n
  for (let factor = 2n; factor <= last; factor++) product *= factor
  return product
}

const whole: readonly ScalarFunction[] = [
  ...wholeRows('gcd', 'Greatest common divisor.', ['gcd(1071, 462)', '21'], commonDivisor),
  ...wholeRows('lcm', 'Least common multiple.', ['lcm(1071, 462)', '23562'], commonMultiple),
  {
    name: 'div',
    takes: ['LONG', 'LONG'],
    gives: 'LONG',
    description: 'Integer quotient, truncated towards zero. Division by zero is NULL.',
    example: ['div(-9, 4)', '-2'],
    eval: ([x, y]: readonly [bigint, bigint]) => (y === 0n ? null : x / y),
  },
  binary('div', 'Integer quotient, truncated towards zero.', ['div(9.5, 2.0)', '4.0'], (x, y) =>
    y === 0 ? Number.NaN : Math.trunc(x / y) + 0,
  ),
  {
    name: 'factorial',
    takes: ['LONG'],
    gives: 'LONG',
    description: 'Factorial.',
    example: ['factorial(5)', '120'],
    eval: ([count], { position }) => factorial(count, position),
  },
]

// Buckets -----------------------------------------------------------------------------------------------------------

/** Number of the bucket: 0 below the range, count + 1 above it. The range may be descending. */
function bucketOf(x: number, low: number, high: number, count: number, position: number): number {
  if (count <= 0) throw new SqlError('count must be greater than zero', position)
  if (low === high) throw new SqlError('lower bound cannot equal upper bound', position)
  const falls = low > high
  if (falls ? x > low : x < low) return 0
  if (falls ? x <= high : x >= high) return count + 1
  return Math.floor(((x - low) / (high - low)) * count) + 1
}

const takesMany = (
  name: string,
  description: string,
  example: readonly [string, string],
  wanted: boolean,
): ScalarFunction => ({
  name,
  takes: ['ANY'],
  more: 'ANY',
  gives: 'INT',
  description,
  example,
  seesNull: true,
  eval: (args) => args.filter((value) => (value === null) === wanted).length,
})

const doubles: readonly TypePattern[] = ['DOUBLE', 'DOUBLE', 'DOUBLE']

export const pgMath: readonly ScalarFunction[] = [
  ...curves,
  ...whole,
  {
    name: 'width_bucket',
    takes: [...doubles, 'INT'],
    gives: 'INT',
    description:
      'Number of the bucket that contains the number, among buckets of equal width between two bounds; 0 below them.',
    example: ['width_bucket(5.35, 0.024, 10.06, 5)', '3'],
    eval: ([x, low, high, count], { position }) =>
      bucketOf(Number(x), Number(low), Number(high), Number(count), position),
  },
  takesMany('num_nulls', 'Number of arguments that are NULL.', ['num_nulls(1, null, 2)', '1'], true),
  takesMany('num_nonnulls', 'Number of arguments that are not NULL.', ['num_nonnulls(1, null, 2)', '2'], false),
]
