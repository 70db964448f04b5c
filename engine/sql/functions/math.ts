// SQL functions: mathematics on numbers, rounding, size_pretty(), and functions that build a UUID or LONG256 from
// LONGs.

import { type DataType, dataType } from '../../types/column-types.js'
import { requireSmall } from '../../types/convert.js'
import { formatDouble, scaleInteger } from '../../types/number.js'
import type { Value } from '../../types/value.js'
import { overNumbers } from './column/numbers.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'
import { unary } from './number-functions.js'

const elementary: ScalarFunction[] = [
  unary('sqrt', 'Square root.', ['sqrt(16)', '4.0'], Math.sqrt),
  unary('cbrt', 'Cube root.', ['cbrt(27)', '3.0'], Math.cbrt),
  unary('exp', 'e to the power of x.', ['exp(0)', '1.0'], Math.exp),
  unary('ln', 'Natural logarithm.', ['ln(1)', '0.0'], Math.log),
  unary('log', 'Logarithm to base 10.', ['log(100)', '2.0'], Math.log10),
  unary('sin', 'Sine.', ['sin(0)', '0.0'], Math.sin),
  unary('cos', 'Cosine.', ['cos(0)', '1.0'], Math.cos),
  unary('tan', 'Tangent.', ['tan(0)', '0.0'], Math.tan),
  unary('cot', 'Cotangent.', null, (x) => 1 / Math.tan(x)),
  unary('asin', 'Inverse sine.', ['asin(0)', '0.0'], Math.asin),
  unary('acos', 'Inverse cosine.', ['acos(1)', '0.0'], Math.acos),
  unary('atan', 'Inverse tangent.', ['atan(0)', '0.0'], Math.atan),
  unary('radians', 'Degrees to radians.', ['radians(180)', '3.141592653589793'], (x) => (x / 180) * Math.PI),
  unary('degrees', 'Radians to degrees.', ['degrees(3.141592653589793)', '180.0'], (x) => (x * 180) / Math.PI),
]

const binary: ScalarFunction[] = [
  {
    name: 'atan2',
    takes: ['DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description: 'Angle of the point (x, y), given as y, x.',
    example: ['atan2(0, 1)', '0.0'],
    ...overNumbers(Math.atan2),
  },
  ...['power', 'pow'].map(
    (name): ScalarFunction => ({
      name,
      takes: ['DOUBLE', 'DOUBLE'],
      gives: 'DOUBLE',
      description: 'The first number to the power of the second.',
      example: [`${name}(2, 10)`, '1024.0'],
      ...overNumbers((x, y) => x ** y),
    }),
  ),
  {
    name: 'pi',
    takes: [],
    gives: 'DOUBLE',
    description: 'The number pi.',
    example: ['pi()', '3.141592653589793'],
    eval: () => Math.PI,
  },
]

const absolute: ScalarFunction[] = (['SHORT', 'INT', 'LONG', 'DOUBLE', 'DECIMAL'] as const).map((type) => ({
  name: 'abs',
  takes: [type],
  gives: 'FIRST',
  description: 'Absolute value.',
  example: type === 'INT' ? ['abs(-5)', '5'] : null,
  total: type !== 'SHORT',
  eval: ([x]: readonly [number]) => {
    if (typeof x === 'bigint') return x < 0n ? -x : x
    const value = Math.abs(x)
    return type === 'SHORT' ? requireSmall(value, type) : value
  },
}))

const signs: ScalarFunction[] = (['BYTE', 'SHORT', 'INT', 'LONG', 'FLOAT', 'DOUBLE', 'DECIMAL'] as const).map(
  (type) => ({
    name: 'sign',
    takes: [type],
    gives: type === 'DECIMAL' ? () => dataType('DECIMAL', 1, 0) : 'FIRST',
    description: '-1, 0 or 1.',
    example: type === 'DOUBLE' ? ['sign(-4.2)', '-1.0'] : null,
    ...(type === 'LONG' || type === 'DECIMAL'
      ? { eval: ([x]: readonly [bigint]) => bigSign(x) }
      : overNumbers(Math.sign)),
  }),
)

function bigSign(value: bigint): bigint {
  return value > 0n ? 1n : value < 0n ? -1n : 0n
}

// Rounding ----------------------------------------------------------------------------------------------------------

type Rounding = 'halfUp' | 'halfEven' | 'up' | 'down'

/** Powers of ten that a double represents exactly, up to the number of digits in use. */
const powers = Array.from({ length: 18 }, (_, exponent) => 10 ** exponent)
/** Below this value the shortest decimal form of a double is unique at one more digit. */
const digitsExact = 1e15
/** Relative error of a product with a power of ten, compared with the decimal value: two roundings. */
const productError = 2 ** -51

/** Rounds the shortest decimal representation of the number, so that 1.005 rounded to two places is 1.01. */
export function roundDecimal(value: number, places: number, rounding: Rounding): number {
  const size = Math.abs(value)
  const power = powers[Math.abs(places)] ?? Number.NaN
  const scaled = places < 0 ? size / power : size * power
  // Also true for NaN and infinity.
  if (!(scaled < digitsExact)) return roundText(value, places, rounding)
  const nearest = Math.round(scaled)
  const back = places < 0 ? nearest * power : nearest / power
  if (back === size) return value
  const whole = Math.floor(scaled)
  const rest = scaled - whole
  const error = scaled * productError
  if (rounding === 'halfUp' || rounding === 'halfEven') {
    if (Math.abs(rest - 0.5) > error) return Math.sign(value) * back
    // The decimal representation has one more digit, a 5: it is exactly half.
    const half = places < 0 ? (whole + 0.5) * power : (whole * 10 + 5) / (power * 10)
    if (half !== size || scaled > digitsExact / 10) return roundText(value, places, rounding)
    const up = rounding === 'halfUp' || whole % 2 === 1 ? whole + 1 : whole
    return Math.sign(value) * (places < 0 ? up * power : up / power)
  }
  if (rest <= error || rest >= 1 - error) return roundText(value, places, rounding)
  const rounded = rounding === 'up' ? whole + 1 : whole
  return Math.sign(value) * (places < 0 ? rounded * power : rounded / power)
}

function roundText(value: number, places: number, rounding: Rounding): number {
  if (!Number.isFinite(value)) return value
  const [mantissa = '', exponent = '0'] = String(Math.abs(value)).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = BigInt(whole + fraction)
  const scale = fraction.length - Number(exponent)
  if (places >= scale) return value
  const divisor = 10n ** BigInt(scale - places)
  const quotient = digits / divisor
  const rest = digits % divisor
  const rounded = quotient + (roundsUp(quotient, rest, divisor, rounding) ? 1n : 0n)
  return Math.sign(value) * Number(`${rounded}e${-places}`)
}

function roundsUp(quotient: bigint, rest: bigint, divisor: bigint, rounding: Rounding): boolean {
  switch (rounding) {
    case 'up':
      return rest > 0n
    case 'down':
      return false
    case 'halfUp':
      return rest * 2n >= divisor
    case 'halfEven':
      return rest * 2n > divisor || (rest * 2n === divisor && quotient % 2n === 1n)
  }
}

function roundedOrNull(x: number, places: number, rounding: Rounding): number | undefined {
  return Math.abs(places) > 17 ? undefined : roundDecimal(x, places, rounding)
}

function roundRow(
  name: string,
  description: string,
  example: readonly [string, string],
  rounding: Rounding,
): ScalarFunction {
  return {
    name,
    takes: ['DOUBLE', 'INT'],
    gives: 'DOUBLE',
    description,
    example,
    ...overNumbers((x, places) => roundedOrNull(x, places, rounding) ?? Number.NaN),
  }
}

/** With 0 places the result is that of round() without places. */
function rounded(value: number, places: number): number | undefined {
  return places === 0 ? Math.round(value) + 0 : roundedOrNull(value, places, 'halfUp')
}

const rounding: ScalarFunction[] = [
  {
    name: 'round',
    takes: ['DOUBLE'],
    gives: 'DOUBLE',
    description: 'Nearest integer, halves rounded up.',
    example: ['round(-2.5)', '-2.0'],
    ...overNumbers((x) => Math.round(x) + 0),
  },
  {
    ...roundRow(
      'round',
      'Rounds to decimal places, halves away from zero (up with 0 places); negative places are before the point.',
      ['round(12345, -2)', '12300.0'],
      'halfUp',
    ),
    ...overNumbers((x, places) => rounded(x, places) ?? Number.NaN),
  },
  roundRow(
    'round_half_even',
    'Rounds to decimal places, halves to even.',
    ['round_half_even(2.5, 0)', '2.0'],
    'halfEven',
  ),
  roundRow('round_up', 'Rounds to decimal places, away from zero.', ['round_up(1.21, 1)', '1.3'], 'up'),
  roundRow('round_down', 'Rounds to decimal places, towards zero.', ['round_down(1.29, 1)', '1.2'], 'down'),
  roundRow('trunc', 'Rounds to decimal places, towards zero.', ['trunc(-1.29, 1)', '-1.2'], 'down'),
  unary('trunc', 'Truncates towards zero.', ['trunc(-1.7)', '-1.0'], (x) => Math.trunc(x) + 0),
  ...(['DOUBLE', 'INT', 'LONG', 'FLOAT'] as const).flatMap((type) => [
    wholeRow('ceil', type, 'Smallest integer that is not less.', Math.ceil),
    wholeRow('ceiling', type, 'Smallest integer that is not less.', Math.ceil),
    wholeRow('floor', type, 'Largest integer that is not greater.', Math.floor),
  ]),
]

/** For small integers the result is FLOAT in this dialect. */
function wholeRow(
  name: string,
  type: 'INT' | 'LONG' | 'FLOAT' | 'DOUBLE',
  description: string,
  apply: (x: number) => number,
): ScalarFunction {
  return {
    name,
    takes: [type],
    gives: type === 'FLOAT' || type === 'INT' ? 'FLOAT' : 'DOUBLE',
    description,
    example: type === 'DOUBLE' ? [`${name}(-1.2)`, formatDouble(apply(-1.2))] : null,
    // A LONG does not fit a double.
    ...(type === 'LONG' ? { eval: ([x]) => apply(Number(x)) } : overNumbers(type === 'INT' ? Math.fround : apply)),
  }
}

const decimalRounding: ScalarFunction[] = (
  [
    ['round', 'halves away from zero', 'halfUp'],
    ['round_up', 'away from zero', 'up'],
    ['round_down', 'towards zero', 'down'],
    ['trunc', 'towards zero', 'down'],
    ['round_half_even', 'halves to the even digit', 'halfEven'],
    ['ceil', 'to the next that is not less', 'ceil'],
    ['ceiling', 'to the next that is not less', 'ceil'],
    ['floor', 'to the next that is not greater', 'floor'],
  ] as const
).flatMap(([name, description, mode]) =>
  [['DECIMAL'], ['DECIMAL', 'INT']].map(
    (takes): ScalarFunction => ({
      name,
      takes: takes as ('DECIMAL' | 'INT')[],
      gives: (args) => roundedType(args, mode),
      description: `Rounds a decimal to places (0 where none are given), ${description}; constant places are the scale of the result.`,
      example: null,
      eval: ([x, places]: readonly [bigint, Value], { type, argTypes }) => {
        const scale = argTypes[0]?.b ?? type.b
        return scaleInteger(roundUnscaled(x, scale - Number(places ?? 0), mode), type.b - scale)
      },
    }),
  ),
)

type DecimalRounding = Rounding | 'ceil' | 'floor'

/** Truncation needs no additional digit. Non-constant places keep the scale. */
function roundedType([value, places]: readonly BoundArgument[], mode: DecimalRounding): DataType {
  const { a: precision, b: scale } = value?.type ?? dataType('DECIMAL', 18, 0)
  const wanted = places === undefined ? 0 : places.constant
  const retained = typeof wanted === 'number' ? Math.max(0, wanted) : scale
  if (typeof wanted === 'number' && wanted >= scale && wanted >= 0) return dataType('DECIMAL', precision, scale)
  const digits = precision - scale + retained + (mode === 'down' ? 0 : 1)
  return dataType('DECIMAL', Math.max(1, Math.min(76, digits)), retained)
}

/** Rounds an unscaled decimal: the last `digits` digits become zeros. */
function roundUnscaled(value: bigint, digits: number, mode: DecimalRounding): bigint {
  if (digits <= 0) return value
  const unit = 10n ** BigInt(Math.min(digits, 80))
  const rest = value % unit
  const cut = value - rest
  if (rest === 0n) return value
  const away = cut + (value < 0n ? -unit : unit)
  if (mode === 'ceil') return value > 0n ? away : cut
  if (mode === 'floor') return value < 0n ? away : cut
  const positive = (number: bigint): bigint => (number < 0n ? -number : number)
  return roundsUp(positive(cut / unit), positive(rest), unit, mode) ? away : cut
}

const sizes: ScalarFunction[] = [
  {
    name: 'size_pretty',
    takes: ['LONG'],
    gives: 'STRING',
    description: 'A number of bytes with a unit.',
    example: ['size_pretty(123456789)', '117.7 MiB'],
    eval: ([bytes]) => sizePretty(Number(bytes)),
  },
]

export function sizePretty(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
  let value = bytes
  let index = 0
  while (Math.abs(value) >= 1024 && index < units.length - 1) {
    value /= 1024
    index++
  }
  return `${value.toFixed(1)} ${units[index] ?? ''}`
}

/** Arguments of conversions that build 128-bit and 256-bit values from 64-bit words, lowest first. */
const words: ScalarFunction[] = [
  {
    name: 'to_uuid',
    takes: ['LONG', 'LONG'],
    gives: 'UUID',
    description: 'A UUID from its low and high 64 bits.',
    example: ['to_uuid(2, 1)', '00000000-0000-0001-0000-000000000002'],
    eval: ([low, high]: readonly [bigint, bigint]) => (BigInt.asUintN(64, high) << 64n) | BigInt.asUintN(64, low),
  },
  {
    name: 'to_long256',
    takes: ['LONG', 'LONG', 'LONG', 'LONG'],
    gives: () => dataType('LONG256'),
    description: 'A LONG256 from its 64-bit words, lowest first.',
    example: ['to_long256(1, 0, 0, 0)', '0x01'],
    eval: (args) => args.reduceRight<bigint>((sum, part) => (sum << 64n) | BigInt.asUintN(64, part as bigint), 0n),
  },
]

export const mathFunctions: readonly ScalarFunction[] = [
  ...elementary,
  ...binary,
  ...absolute,
  ...signs,
  ...rounding,
  ...decimalRounding,
  ...sizes,
  ...words,
]
