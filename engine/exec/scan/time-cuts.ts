// Cuts a table into time ranges (chunks), so that several threads can scan it in timestamp order. Rows with equal
// timestamps are in one chunk, and each row belongs to exactly one chunk, even where morsels overlap in time. So the
// sorted rows of the chunks, one chunk after the other, are the sorted table.

import type { Plan, TimeRange } from '../../sql/plan/plan.js'
import { rowCount, type ScanMorsel, timeMax, timeMin } from './morsels.js'

/** If a chunk would exceed the wanted size by this factor, too many timestamps are equal to cut by time. */
const unevenMax = 4
/**
 * How often, on average, a row of an unsorted morsel may be read and sorted: still cheaper than encoding it as text.
 */
const repeatsMax = 8

/**
 * The timestamps at which chunks of about `rowsMax` rows begin, ascending, without that of the first chunk. undefined
 * when chunks would be much larger, or unsorted morsels would be read too often. Timestamps are assumed to be evenly
 * distributed within a morsel.
 */
export function timeCuts(morsels: readonly ScanMorsel[], rowsMax: number): bigint[] | undefined {
  const sorted = morsels.toSorted((x, y) => (x.minTs < y.minTs ? -1 : x.minTs > y.minTs ? 1 : 0))
  const cuts: bigint[] = []
  let last = timeMin
  let gathered = 0
  let largest = 0
  const cut = (at: bigint): void => {
    if (at <= last) return
    cuts.push(at)
    last = at
    gathered = 0
  }
  for (const { rows, minTs, maxTs } of sorted) {
    const parts = Math.ceil(rows / rowsMax)
    for (let part = 0; part < parts; part++) {
      if (part > 0 || gathered + rows / parts > rowsMax) cut(minTs + ((maxTs - minTs) * BigInt(part)) / BigInt(parts))
      gathered += rows / parts
      largest = Math.max(largest, gathered)
    }
  }
  return largest > rowsMax * unevenMax || repeated(morsels, cuts) > repeatsMax * rowCount(morsels) ? undefined : cuts
}

/** Rows of unsorted morsels, counted once for each cut through their morsel. */
function repeated(morsels: readonly ScanMorsel[], cuts: readonly bigint[]): number {
  let rows = 0
  for (const morsel of morsels) {
    if (morsel.sorted) continue
    rows += morsel.rows * (cutsUpTo(cuts, morsel.maxTs) - cutsUpTo(cuts, morsel.minTs))
  }
  return rows
}

function cutsUpTo(cuts: readonly bigint[], time: bigint): number {
  let [low, high] = [0, cuts.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((cuts[middle] as bigint) <= time) low = middle + 1
    else high = middle
  }
  return low
}

/** A time range with about `rows` rows, at the end of the table where reading begins. */
export function firstRange(morsels: readonly ScanMorsel[], rows: number, descending: boolean): TimeRange {
  let best = morsels[0] as ScanMorsel
  for (const morsel of morsels) if (descending ? morsel.maxTs > best.maxTs : morsel.minTs < best.minTs) best = morsel
  const { minTs, maxTs } = best
  const part = ((maxTs - minTs) * BigInt(Math.min(rows, best.rows))) / BigInt(best.rows)
  return descending ? { lo: maxTs - part, hi: timeMax } : { lo: timeMin, hi: minTs + part }
}

/** The time range after the first one, and its cuts; `cuts` is undefined where timeCuts() is. */
export function restOfTime(
  morsels: readonly ScanMorsel[],
  rowsMax: number,
  { first, descending }: { readonly first: TimeRange; readonly descending: boolean },
): TimeRange & { readonly cuts: readonly bigint[] | undefined } {
  const [lo, hi] = descending ? [timeMin, first.lo - 1n] : [first.hi + 1n, timeMax]
  const cuts = timeCuts(morsels, rowsMax)?.filter((cut) => cut > lo && cut <= hi)
  return { lo, hi, cuts: cuts === undefined ? undefined : [lo, ...cuts, hi] }
}

/** The time range of a chunk. `times`: where chunks begin, and the last timestamp of the last one. */
export function chunkRange(times: BigInt64Array, chunk: number): TimeRange {
  const next = times[chunk + 1]!
  return { lo: times[chunk]!, hi: chunk + 2 === times.length ? next : next - 1n }
}

/** The plan, restricted to a time range. */
export function within(plan: Plan, range: TimeRange): Plan {
  if (plan.kind === 'scan') return { ...plan, ranges: intersection(plan.ranges, range) }
  return 'input' in plan ? { ...plan, input: within(plan.input, range) } : plan
}

function intersection(ranges: readonly TimeRange[] | null, { lo, hi }: TimeRange): TimeRange[] {
  return (ranges ?? [{ lo: timeMin, hi: timeMax }])
    .filter((range) => range.lo <= hi && range.hi >= lo)
    .map((range) => ({ lo: range.lo > lo ? range.lo : lo, hi: range.hi < hi ? range.hi : hi }))
}
