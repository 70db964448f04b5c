// Bounds of the timestamps that share a value (a part, a bucket) with one of them.

import { int64Max, int64Min } from '../../base/int64.js'

/** How NULL is stored. */
export const nullTicks = int64Min

/** First and last timestamp of [start, next) that a column can hold; `ts` is always between them. */
export function steadyBounds(ts: bigint, start: bigint, next: bigint): readonly [bigint, bigint] {
  const first = start > int64Min ? start : int64Min
  const last = next > int64Max ? int64Max : next - 1n
  return [first < ts ? first : ts, last > ts ? last : ts]
}
