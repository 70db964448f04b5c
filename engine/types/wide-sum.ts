// Computes the exact sum of a LONG column, which may exceed 64 bits, from two 64-bit sums that WebAssembly kernels
// compute: the sum of the values, which may wrap around, and the sum of their high words (value >> 32), which cannot
// wrap for up to 2^32 rows. The exact sum is the sum of the high words * 2^32 plus the sum of the low words. The latter
// is not computed, but it is at least 0 and less than rows * 2^32, and only one number in this range gives an exact sum
// that agrees with the wrapped sum of the values modulo 2^64.

import { SqlError } from '../base/errors.js'
import { longMax, longMin } from './number.js'

const sumRangeText =
  'the sum is out of range of LONG: sum(cast(x as double)) is approximate, sum(cast(x as decimal(38,0))) exact'

/** The exact sum from the two 8-byte words. */
export function wideSum({ i64 }: { readonly i64: BigInt64Array }, sumWord: number, highWord: number): bigint {
  const high = i64[highWord]! << 32n
  return high + BigInt.asUintN(64, i64[sumWord]! - high)
}

/** Throws SqlError when the sum exceeds LONG, whose smallest value is NULL. */
export function longSum(exact: bigint): bigint {
  if (exact > longMin && exact <= longMax) return exact
  // Accumulators of groups are read far from the call and have no position.
  throw new SqlError(sumRangeText, 0)
}
