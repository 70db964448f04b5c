// SQL functions that draw random values from the statement's generator: the rnd_* family, random() and random UUIDs.
// With a null rate of n, about one of 2 * (n + 1) values is NULL; with 0, none.

import { SqlError } from '../../base/errors.js'
import { arrayDimensionsMax, decimalDigitsMax, valueBytesMax } from '../../base/limits.js'
import { type ColumnType, dataType } from '../../types/column-types.js'
import { geohashFromCoordinates, parseSubnet } from '../../types/text.js'
import type { Value } from '../../types/value.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'
import { type Random, randomBytes, randomLong256, randomUuid } from './random-generator.js'

type Draw = (random: Random, args: readonly Value[]) => Value

function row(
  name: string,
  takes: ScalarFunction['takes'],
  gives: ScalarFunction['gives'],
  description: string,
  draw: Draw,
): ScalarFunction {
  return {
    name,
    takes,
    gives,
    description,
    example: null,
    volatility: 'row',
    seesNull: true,
    eval: (args, { context }) => draw(context.random, args),
  }
}

function skips(random: Random, rate: Value | undefined): boolean {
  if (typeof rate === 'number' && rate < 0) throw new SqlError('invalid null rate', 0)
  // A number is drawn for every rate, so that seeded sequences do not depend on it.
  return typeof rate === 'number' && random.nextInt() % (rate + 1) === 1
}

/** Adds a check: a constant negative null rate is an error at its position. */
function withRate(row: ScalarFunction, index: number, message: string): ScalarFunction {
  const check = (args: readonly BoundArgument[], position: number): void => {
    row.check?.(args, position)
    const rate = args[index]
    if (typeof rate?.constant === 'number' && rate.constant < 0) throw new SqlError(message, rate.position)
  }
  return { ...row, check }
}

/** Adds a check of the range in arguments 0 and 1, which may not exceed `most`. */
function withRange(
  row: ScalarFunction,
  most = Number.POSITIVE_INFINITY,
  rateProblem = 'invalid NaN rate',
): ScalarFunction {
  const check = (args: readonly BoundArgument[], position: number): void => {
    const [low, high, rate] = args.map((argument) => argument.constant)
    if (
      (typeof low === 'number' || typeof low === 'bigint') &&
      (typeof high === 'number' || typeof high === 'bigint')
    ) {
      if (low >= high || high > most) throw new SqlError('invalid range', position)
    }
    if (typeof rate === 'number' && rate < 0) throw new SqlError(rateProblem, args[2]?.position ?? position)
  }
  // Bounds that are not constant are checked here.
  const evaluate: ScalarFunction['eval'] = (args, site) => {
    if (args[0] === null || args[1] === null) return null
    if ((args[0] as number | bigint) >= (args[1] as number | bigint)) throw new SqlError('invalid range', 0)
    return row.eval(args, site)
  }
  return { ...row, check, eval: evaluate }
}

/** Derived from 16 random bits. */
function smallInteger(random: Random, low: number, high: number): number {
  const bits = (random.nextInt() << 16) >> 16
  return low + (Math.abs(bits) % (high - low + 1))
}

const integers: ScalarFunction[] = [
  row('rnd_int', [], 'INT', 'Any integer.', (random) => random.nextInt()),
  withRange(
    row(
      'rnd_int',
      ['INT', 'INT', 'INT'],
      'INT',
      'An integer of a range, bounds included.',
      (random, [low, high, rate]) =>
        skips(random, rate)
          ? null
          : (low as number) + (random.nextPositiveInt() % ((high as number) - (low as number) + 1)),
    ),
  ),
  row('rnd_long', [], 'LONG', 'Any integer of 64 bits.', (random) => random.nextLong()),
  withRange(
    row(
      'rnd_long',
      ['LONG', 'LONG', 'INT'],
      'LONG',
      'An integer of a range, bounds included.',
      (random, [low, high, rate]) =>
        skips(random, rate)
          ? null
          : (low as bigint) + (random.nextPositiveLong() % ((high as bigint) - (low as bigint) + 1n)),
    ),
    undefined,
    'invalid NULL rate',
  ),
  row('rnd_short', [], 'SHORT', 'Any SHORT.', (random) => (random.nextInt() << 16) >> 16),
  withRange(
    row('rnd_short', ['INT', 'INT'], 'SHORT', 'A SHORT of a range, bounds included.', (random, [low, high]) =>
      smallInteger(random, low as number, high as number),
    ),
    32_767,
  ),
  row('rnd_byte', [], 'BYTE', 'A BYTE from 20 to 127.', (random) => smallInteger(random, 20, 127)),
  withRange(
    row('rnd_byte', ['INT', 'INT'], 'BYTE', 'A BYTE of a range, bounds included.', (random, [low, high]) =>
      smallInteger(random, low as number, high as number),
    ),
    127,
  ),
]

const fractions: ScalarFunction[] = (['FLOAT', 'DOUBLE'] as const).flatMap((type) => {
  const name = type === 'FLOAT' ? 'rnd_float' : 'rnd_double'
  const next = (random: Random): number => (type === 'FLOAT' ? Math.fround(random.nextFloat()) : random.nextDouble())
  return [
    row(name, [], type, 'A number in [0, 1).', next),
    withRate(
      row(name, ['INT'], type, 'A number in [0, 1), or NULL.', (random, [rate]) =>
        skips(random, rate) ? null : next(random),
      ),
      0,
      'invalid NaN rate',
    ),
  ]
})

function randomChar(random: Random): number {
  return (random.nextPositiveInt() % 25) + 66
}

function lengthWithin(random: Random, low: number, high: number): number {
  if (low < 0 || low > high || high > valueBytesMax) throw new SqlError('invalid range', 0)
  return low + (high > low ? random.nextPositiveInt() % (high - low + 1) : 0)
}

function randomText(random: Random, low: number, high: number): string {
  const text = Buffer.allocUnsafe(lengthWithin(random, low, high))
  for (let index = 0; index < text.length; index++) text[index] = randomChar(random)
  return text.toString('latin1')
}

function listRow(name: string, gives: ColumnType): ScalarFunction {
  return {
    ...row(
      name,
      ['TEXT'],
      gives,
      'One of the given strings.',
      (random, args) => args[random.nextPositiveInt() % args.length] ?? null,
    ),
    more: 'TEXT',
  }
}

const poolBytesMax = 16 * valueBytesMax

/** Without a rate, STRING draws no number. */
function isLeftOut(random: Random, rate: number, gives: ColumnType): boolean {
  if (gives === 'STRING') return rate > 0 && random.nextPositiveInt() % rate === 0
  return random.nextPositiveInt() % (rate + 1) === 1
}

/** `count` different strings, generated once per call. */
function poolRow(name: string, gives: ColumnType): ScalarFunction {
  return {
    name,
    takes: ['INT', 'INT', 'INT', 'INT'],
    gives,
    description: 'One of a number of random strings (count, minimum length, maximum length, null rate).',
    example: null,
    volatility: 'row',
    check: ([count]) => {
      if (typeof count?.constant === 'number' && count.constant < 1)
        throw new SqlError('invalid symbol count', count.position)
    },
    eval: ([count, low, high, rate]: readonly [number, number, number, number], { context, memo }) => {
      let pool = memo.get('pool') as readonly string[] | undefined
      if (pool === undefined) {
        if (count < 1 || count * high > poolBytesMax) throw new SqlError('there must be strings to choose from', 0)
        pool = Array.from({ length: count }, () => randomText(context.random, low, high))
        memo.set('pool', pool)
      }
      if (isLeftOut(context.random, rate, gives)) return null
      return pool[context.random.nextPositiveInt() % pool.length] ?? null
    },
  }
}

const strings: ScalarFunction[] = [
  row('rnd_char', [], 'CHAR', 'An upper-case letter.', (random) => String.fromCharCode(randomChar(random))),
  row('rnd_str', [], 'STRING', 'A random string.', (random) => (skips(random, 0) ? null : randomText(random, 3, 10))),
  listRow('rnd_str', 'STRING'),
  listRow('rnd_symbol', 'SYMBOL'),
  listRow('rnd_varchar', 'VARCHAR'),
  row('rnd_varchar', [], 'VARCHAR', 'A random string.', (random) =>
    skips(random, 0) ? null : randomText(random, 3, 10),
  ),
  ...(['rnd_str', 'rnd_varchar'] as const).map((name) =>
    withRate(
      row(
        name,
        ['INT', 'INT', 'INT'],
        name === 'rnd_str' ? 'STRING' : 'VARCHAR',
        'A random string (minimum length, maximum length, null rate).',
        (random, [low, high, rate]) => (skips(random, rate) ? null : randomText(random, low as number, high as number)),
      ),
      2,
      name === 'rnd_str' ? 'rate must be positive' : 'null rate must be positive',
    ),
  ),
  withRate(poolRow('rnd_str', 'STRING'), 3, 'rate must be positive'),
  withRate(poolRow('rnd_symbol', 'SYMBOL'), 3, 'null rate must be positive'),
]

function timeRow(name: string, type: 'TIMESTAMP' | 'TIMESTAMP_NS' | 'DATE'): ScalarFunction {
  return withRange(
    row(name, [type, type, 'INT'], type, 'A timestamp of a range.', (random, [low, high, rate]) =>
      skips(random, rate)
        ? null
        : (low as bigint) + (random.nextPositiveLong() % ((high as bigint) - (low as bigint) + 1n)),
    ),
  )
}

const others: ScalarFunction[] = [
  row('random', [], 'DOUBLE', 'A number in [0, 1).', (random) => random.nextDouble()),
  row('rnd_boolean', [], 'BOOLEAN', 'true or false.', (random) => random.nextBoolean()),
  timeRow('rnd_timestamp', 'TIMESTAMP'),
  timeRow('rnd_timestamp_ns', 'TIMESTAMP_NS'),
  timeRow('rnd_date', 'DATE'),
  row('rnd_date', [], 'DATE', 'A date in early 1970.', (random) => random.nextPositiveLong() % 10_000_000n),
  row('rnd_uuid4', [], 'UUID', 'A random UUID.', (random) => randomUuid(random)),
  row('rnd_uuid4', ['INT'], 'UUID', 'A random UUID, or NULL.', (random, [rate]) =>
    skips(random, rate) ? null : randomUuid(random),
  ),
  row('gen_random_uuid', [], 'UUID', "A random UUID, by PostgreSQL's name.", randomUuid),
  row('uuid_generate_v4', [], 'UUID', "A random UUID, by the name of PostgreSQL's extension.", randomUuid),
  row('rnd_ipv4', [], 'IPv4', 'An address.', (random) => random.nextInt() >>> 0 || 1),
  {
    ...row(
      'rnd_ipv4',
      ['TEXT', 'INT'],
      'IPv4',
      'An address of a subnet (subnet, null rate).',
      (random, [text, rate]) => {
        const subnet = parseSubnet(String(text))
        if (subnet === null || skips(random, rate)) return null
        return (subnet.network | (random.nextInt() & ~subnet.mask)) >>> 0 || null
      },
    ),
    check: ([subnet]) => {
      const text = subnet?.constant
      if (typeof text === 'string' && parseSubnet(text) === null)
        throw new SqlError(`invalid argument: ${text}`, subnet?.position ?? 0)
    },
  },
  row('rnd_long256', [], 'LONG256', 'A 256-bit integer.', (random) => randomLong256(random)),
  row('rnd_long256', ['INT'], 'LONG256', 'A 256-bit integer, or NULL.', (random, [rate]) =>
    skips(random, rate) ? null : randomLong256(random),
  ),
  {
    ...row('rnd_geohash', ['INT'], geohashOf, 'A geohash with a number of bits.', (random, [bits]) => {
      const latitude = random.nextDouble() * 180 - 90
      return geohashFromCoordinates(random.nextDouble() * 360 - 180, latitude, bits as number)
    }),
    check: (args) => {
      const bits = args[0]?.constant
      if (typeof bits !== 'number' || bits < 1 || bits > 60)
        throw new SqlError('precision must be in [1..60] range', args[0]?.position ?? 0)
    },
  },
  row('rnd_bin', [], 'BINARY', 'Random bytes.', (random) => randomBytes(random, 32)),
  withRate(
    row(
      'rnd_bin',
      ['LONG', 'LONG', 'INT'],
      'BINARY',
      'Random bytes (minimum, maximum, null rate).',
      (random, [low, high, rate]) =>
        skips(random, rate) ? null : randomBytes(random, lengthWithin(random, Number(low), Number(high))),
    ),
    2,
    'invalid null rate',
  ),
  {
    ...row(
      'rnd_double_array',
      ['LONG'],
      ([dimensions]) => dataType('ARRAY', Number(dimensions?.constant ?? 1n)),
      'An array (dimensions, null rate, ignored, lengths ...).',
      (random, args) => {
        const shape = Array.from({ length: Number(args[0]) }, (_, index) =>
          Number(args[index + 3] ?? 1 + (random.nextPositiveInt() % 5)),
        )
        const length = shape.reduce((product, size) => product * size, 1)
        if (!(length * 8 <= valueBytesMax)) throw new SqlError('array is too long', 0)
        return { shape, data: Float64Array.from({ length }, () => random.nextDouble()) }
      },
    ),
    more: 'LONG',
    check: checkArray,
  },
]

/** Checks dimensions, null rate and maximum length. */
function checkArray(args: readonly BoundArgument[]): void {
  const [dimensions, rate, length] = args
  const count = Number(dimensions?.constant ?? 0)
  if (count > arrayDimensionsMax)
    throw new SqlError(`maximum for nDims is ${arrayDimensionsMax} [nDims=${count}]`, dimensions?.position ?? 0)
  if (count < 1) throw new SqlError(`invalid nDims [nDims=${count}]`, dimensions?.position ?? 0)
  if (typeof rate?.constant === 'bigint' && rate.constant < 0n)
    throw new SqlError(`invalid nanRate [nanRate=${rate.constant}]`, rate.position)
  const most = length?.constant
  if (args.length === 3 && typeof most === 'bigint' && most < 1n)
    throw new SqlError(`maxDimLength must be a positive integer [maxDimLength=${most}]`, length?.position ?? 0)
}

function geohashOf(args: readonly BoundArgument[]): ReturnType<typeof dataType> {
  return dataType('GEOHASH', typeof args[0]?.constant === 'number' ? args[0].constant : 60)
}

/** Cumulative weights for a pair of arguments. */
interface Zipf {
  readonly count: Value | undefined
  readonly power: Value | undefined
  readonly sums: Float64Array
}

/** Cumulative weights of the symbols. */
function zipfSums(count: number, power: number): Float64Array {
  if (!(count >= 1)) throw new SqlError('there must be strings to choose from', 0)
  const sums = new Float64Array(Math.min(count, 100_000))
  let sum = 0
  for (let index = 0; index < sums.length; index++) {
    sum += (index + 1) ** -power
    sums[index] = sum
  }
  return sums
}

/** Index of the first sum above the value, or the last index. */
function firstAbove(sums: Float64Array, value: number): number {
  let [low, high] = [0, sums.length - 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sums[middle]! > value) high = middle
    else low = middle + 1
  }
  return low
}

/** One of the strings, chosen with the given weights. */
function pick(random: Random, strings: readonly Value[], weights: readonly number[]): Value {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let left = random.nextDouble() * total
  for (const [index, weight] of weights.entries()) {
    left -= weight
    if (left < 0) return strings[index] ?? null
  }
  return strings[strings.length - 1] ?? null
}

const weighted: ScalarFunction[] = [
  {
    ...row(
      'rnd_symbol_weighted',
      ['TEXT', 'DOUBLE'],
      'SYMBOL',
      'One of the strings by weight: string, weight, ...',
      (random, args) =>
        pick(
          random,
          args.filter((_, index) => index % 2 === 0),
          args.filter((_, index) => index % 2 === 1).map(Number),
        ),
    ),
    more: 'ANY',
  },
  {
    name: 'rnd_symbol_zipf',
    takes: ['INT', 'DOUBLE'],
    gives: 'SYMBOL',
    description: 'One of a number of symbols, the k-th with weight 1/k^a.',
    example: null,
    volatility: 'row',
    eval: ([count, power], { context, memo }) => {
      const last = memo.get('zipf') as Zipf | undefined
      const same = last !== undefined && last.count === count && last.power === power
      const zipf = same ? last : { count, power, sums: zipfSums(Number(count), Number(power)) }
      if (!same) memo.set('zipf', zipf)
      const { sums } = zipf
      const drawn = context.random.nextDouble() * sums[sums.length - 1]!
      return `sym${firstAbove(sums, drawn)}`
    },
  },
  {
    ...row(
      'rnd_symbol_zipf',
      ['TEXT', 'TEXT'],
      'SYMBOL',
      'One of the strings, the k-th with weight 1/k^a; the last argument is a.',
      (random, args) => {
        const strings = args.slice(0, -1)
        return pick(
          random,
          strings,
          strings.map((_, index) => (index + 1) ** -Number(args[args.length - 1])),
        )
      },
    ),
    more: 'ANY',
  },
  {
    ...row(
      'rnd_decimal',
      ['INT', 'INT', 'INT'],
      decimalOf,
      'A decimal (precision, scale, null rate); the first two are constants.',
      (random, [precision, , rate]) => {
        if (skips(random, rate)) return null
        let digits = 0n
        for (let left = Number(precision); left > 0; left -= 9)
          digits =
            digits * 10n ** BigInt(Math.min(9, left)) +
            (BigInt(random.nextPositiveInt()) % 10n ** BigInt(Math.min(9, left)))
        return digits
      },
    ),
    check: ([precision, scale, rate], position) => {
      const [digits, places] = [precision?.constant, scale?.constant]
      if (typeof digits !== 'number' || digits < 1 || digits > decimalDigitsMax)
        throw new SqlError(
          `the precision must be a constant between 1 and ${decimalDigitsMax}`,
          precision?.position ?? position,
        )
      if (typeof places !== 'number' || places < 0 || places > digits)
        throw new SqlError('the scale must be a constant between 0 and the precision', scale?.position ?? position)
      if (typeof rate?.constant === 'number' && rate.constant < 0)
        throw new SqlError('invalid null rate', rate.position)
    },
  },
  row('rnd_interval', [], 'INTERVAL', 'A time interval.', (random) => {
    const [a, b] = [
      random.nextPositiveLong() % 4_102_444_800_000_000n,
      random.nextPositiveLong() % 4_102_444_800_000_000n,
    ]
    return a < b ? { lo: a, hi: b } : { lo: b, hi: a }
  }),
  withRange(
    row(
      'timestamp_shuffle',
      ['TIMESTAMP', 'TIMESTAMP'],
      'TIMESTAMP',
      'A timestamp of a range, in random order.',
      (random, [low, high]) =>
        low === null || high === null || low === undefined || high === undefined
          ? null
          : (low as bigint) + (random.nextPositiveLong() % ((high as bigint) - (low as bigint) + 1n)),
    ),
  ),
]

function decimalOf([precision, scale]: readonly BoundArgument[]): ReturnType<typeof dataType> {
  return dataType('DECIMAL', Number(precision?.constant), Number(scale?.constant))
}

export const randomFunctions: readonly ScalarFunction[] = [
  ...integers,
  ...fractions,
  ...strings,
  ...others,
  ...weighted,
]
