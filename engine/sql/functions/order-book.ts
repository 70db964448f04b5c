// SQL functions on order books: the average price of an amount, mid price, and bid-ask spread.

import { SqlError } from '../../base/errors.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'

export const orderBookFunctions: readonly ScalarFunction[] = [
  {
    name: 'l2price',
    takes: ['DOUBLE', 'ARRAY', 'ARRAY'],
    gives: 'DOUBLE',
    description: 'Average price of buying an amount from an order book of sizes and prices.',
    example: ['l2price(5.0, ARRAY[1.0, 5.0], ARRAY[10.0, 11.0])', '10.8'],
    check: checkLengths,
    eval: ([amount, sizes, prices]: readonly [number, ArrayValue, ArrayValue]) =>
      bookPrice(amount, sizes.data, prices.data),
  },
  {
    name: 'l2price',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE'],
    more: 'DOUBLE',
    gives: 'DOUBLE',
    description: 'Average price of buying an amount from an order book: size, price, size, price, ...',
    example: ['l2price(5.0, 1.0, 10.0, 5.0, 11.0)', '10.8'],
    check: (args) => {
      if (args.length % 2 === 0)
        throw new SqlError('l2price requires an odd number of arguments.', args[args.length - 1]?.position ?? 0)
    },
    eval: ([amount, ...levels]) => {
      const side = (rest: number): Float64Array =>
        Float64Array.from(levels.filter((_, index) => index % 2 === rest) as number[])
      return bookPrice(amount as number, side(0), side(1))
    },
  },
  ...(
    [
      ['mid', 'Mid price of bid and ask.', (b: number, a: number) => (b + a) / 2],
      ['spread', 'Ask minus bid.', (b: number, a: number) => a - b],
      [
        'spread_bps',
        'Spread in basis points of the mid price.',
        (b: number, a: number) => ((a - b) / ((a + b) / 2)) * 10_000,
      ],
    ] as const
  ).map(
    ([name, description, apply]): ScalarFunction => ({
      name,
      takes: ['DOUBLE', 'DOUBLE'],
      gives: 'DOUBLE',
      description,
      example: null,
      eval: ([bid, ask]: readonly [number, number]) => apply(bid, ask),
    }),
  ),
  {
    name: 'wmid',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description: 'Mid price weighted by sizes (bid size, bid, ask, ask size).',
    example: ['wmid(1.0, 10.0, 20.0, 3.0)', '12.5'],
    eval: (args) => {
      const [bidSize = 0, bid = 0, ask = 0, askSize = 0] = args as number[]
      const share = bidSize / (bidSize + askSize)
      return ask * share + bid * (1 - share)
    },
  },
]

function checkLengths([, sizes, prices]: readonly BoundArgument[]): void {
  const [a, b] = [sizes?.constant, prices?.constant].map(lengthOf)
  if (a !== b && a !== null && b !== null)
    throw new SqlError("prices array length doesn't match sizes array length", sizes?.position ?? 0)
}

function lengthOf(value: Value | undefined): number | null {
  return typeof value === 'object' && value !== null && 'data' in value ? value.data.length : null
}

function bookPrice(amount: number, sizes: Float64Array, prices: Float64Array): number | null {
  if (amount === 0) return prices[0] ?? null
  let left = amount
  let paid = 0
  for (const [level, size] of sizes.entries()) {
    const taken = Math.min(left, size)
    paid += taken * (prices[level] ?? Number.NaN)
    left -= taken
    if (left <= 0) return paid / amount
  }
  return null
}
