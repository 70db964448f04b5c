// Sums of LONG beyond 64 bits. Kernels add the values, which wraps around, and their high words (value >> 32), which does not
// for 2^32 rows. The exact sum is high * 2^32 plus the sum of the low words, which is between 0 and rows * 2^32: there is
// one such number that the wrapped sum stands for.

import { SqlError } from '../base/errors.js'
import { longMax, longMin } from './number.js'

const sumRangeText =
  'the sum is out of range of LONG: sum(cast(x as double)) is approximate, sum(cast(x as decimal(38,0))) exact'

/** The exact sum of the words at two places of 8 bytes. */
export function wideSum({ i64 }: { readonly i64: BigInt64Array }, sumWord: number, highWord: number): bigint {
  const high = i64[highWord]! << 32n
  return high + BigInt.asUintN(64, i64[sumWord]! - high)
}

/** Throws SqlError when no LONG holds the sum; the smallest integer is NULL's. */
export function longSum(exact: bigint): bigint {
  if (exact > longMin && exact <= longMax) return exact
  // States of groups, which are read far from the call, know no place.
  throw new SqlError(sumRangeText, 0)
}
