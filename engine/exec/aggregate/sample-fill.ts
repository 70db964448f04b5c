// FILL of SAMPLE BY: adds a row for each group in every bucket between the first and the last, or between FROM and TO.
// Missing values become NULL, the previous value, a constant, or a linear interpolation (without FROM and TO, values
// before the first and after the last one of a group are extrapolated).

import type { Fill } from '../../sql/plan/plan.js'
import type { DataType } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import type { BucketResult } from '../fragment/fragment-columns.js'
import type { Bucket, Buckets, SamplePlan } from './buckets.js'

export interface FilledGroups {
  readonly buckets: Buckets
  /** The buckets that had rows, ascending, with the results of each group that had rows. */
  readonly results: readonly (Bucket & { readonly results: ReadonlyMap<number, readonly Value[]> })[]
  readonly count: number
  readonly keysOf: (group: number) => readonly Value[]
}

export function* filledRows(plan: SamplePlan, groups: FilledGroups): Generator<readonly Value[]> {
  const { fills, aggregates } = plan
  const skipsMissing = fills.every(({ kind }) => kind === 'none')
  const previous: (Value[] | undefined)[] = []
  const firsts = fills.some(({ kind }) => kind === 'first') ? firstResults(groups) : null
  const lines = new Lines(groups, plan.from === null && plan.to === null)
  // Without groups there are no rows to add, and there may be very many buckets.
  if (groups.count === 0) return
  for (const { bucket, known, index } of allBuckets(plan, groups.buckets, groups.results)) {
    for (let group = 0; group < groups.count; group++) {
      const found = known?.results.get(group)
      if (found !== undefined) previous[group] = [...found]
      if (found === undefined && skipsMissing) continue
      const values =
        found ??
        fills.map((fill, column) => {
          const type = (aggregates[column] as (typeof aggregates)[number]).type
          const before = previous[group]?.[fill.kind === 'prev' ? (fill.of ?? column) : column] ?? null
          return fill.kind === 'linear'
            ? lines.value(group, column, bucket.start, index, type)
            : filledValue(fill, before, type)
        })
      const first = firsts?.get(group)
      const all =
        first === undefined
          ? values
          : values.map((value, at) => (fills[at]?.kind === 'first' ? (first[at] ?? null) : value))
      yield [bucket.start, ...groups.keysOf(group), ...all]
    }
  }
}

/** The results of each group in the first bucket in which it has rows. */
function firstResults({ results }: FilledGroups): Map<number, readonly Value[]> {
  const firsts = new Map<number, readonly Value[]>()
  for (const entry of results) {
    for (const [group, values] of entry.results) if (!firsts.has(group)) firsts.set(group, values)
  }
  return firsts
}

function filledValue(fill: Fill, before: Value, type: DataType): Value {
  if (fill.kind === 'prev') return before ?? nullOf(type)
  return fill.kind === 'constant' ? fill.value : nullOf(type)
}

/** Whether every added row is a copy of another bucket's results, so that no new values have to be computed. */
export function repeatsResults({ keys, aggregates, fills, from }: SamplePlan): boolean {
  const kind = fills[0]?.kind
  if (keys.length > 0 || (kind !== 'prev' && kind !== 'null') || fills.some((fill) => fill.kind !== kind)) return false
  if (fills.some((fill) => fill.kind === 'prev' && fill.of !== null)) return false
  // A count over no rows is 0, not NULL.
  return (kind === 'prev' && from === null) || aggregates.every(({ name }) => name !== 'count')
}

/**
 * A separate object rather than a spread copy: spread copies have differing hidden classes, which makes reading them
 * slow.
 */
interface FilledBucket extends Bucket {
  readonly result: BucketResult
}

/** The same for plans for which repeatsResults() is true. `blank`: the results over no rows. */
export function* filledBuckets(
  plan: SamplePlan,
  buckets: Buckets,
  bucketResults: Iterable<BucketResult>,
  blank: BucketResult,
): Generator<BucketResult> {
  const repeated = plan.fills[0]?.kind === 'prev'
  const results: FilledBucket[] = []
  for (const result of bucketResults) {
    if (result.bucket !== null) results.push({ start: result.bucket.start, end: result.bucket.end, result })
  }
  let last = blank
  for (const { bucket, known } of allBuckets(plan, buckets, results)) {
    if (known !== null && repeated) last = known.result
    yield known === null ? { bucket, total: last.total, groups: last.groups } : known.result
  }
}

interface Visited<Known> {
  readonly bucket: Bucket
  readonly known: Known | null
  /** Number of earlier buckets with rows. */
  readonly index: number
}

/** All buckets from the first one (or FROM) to the last one (or TO), including those without rows. */
function* allBuckets<Known extends Bucket>(
  { from, to, span }: SamplePlan,
  buckets: Buckets,
  results: readonly Known[],
): Generator<Visited<Known>> {
  const ends = span && { first: buckets.of(span.earliest), last: buckets.of(span.latest) }
  let bucket: Bucket | undefined = from === null ? (ends?.first ?? results[0]) : buckets.of(from)
  const last = to === null ? (ends?.last ?? results[results.length - 1])?.start : to - 1n
  let index = 0
  while (bucket !== undefined && last !== undefined && bucket.start <= last) {
    const known = results[index]
    if (known !== undefined && known.start <= bucket.start) {
      yield { bucket: known, known, index }
      index++
      bucket = buckets.next(known)
    } else {
      yield { bucket, known: null, index }
      bucket = buckets.next(bucket)
    }
  }
}

/** The result of a group in a bucket with rows. */
interface Result {
  readonly index: number
  readonly start: bigint
  readonly value: number
  readonly raw: Value
}

/** Linear interpolation between the results of a group. */
class Lines {
  readonly #groups: FilledGroups
  /** Whether values before the first and after the last result are extrapolated from the two nearest results. */
  readonly #extended: boolean

  constructor(groups: FilledGroups, extended: boolean) {
    this.#groups = groups
    this.#extended = extended
  }

  /** `index`: number of buckets with rows before `start`. NULL if a neighbour is missing or has no value. */
  value(group: number, column: number, start: bigint, index: number, type: DataType): Value {
    const before = this.#neighbour(group, column, index - 1, -1)
    const after = this.#neighbour(group, column, index, 1)
    const left = before ?? this.#second(group, column, after, 1)
    const right = after ?? this.#second(group, column, before, -1)
    if (left === null || right === null || left.raw === null || right.raw === null) return nullOf(type)
    const share = Number(start - left.start) / Number(right.start - left.start)
    const value = left.value + (right.value - left.value) * share
    if (type.name === 'DOUBLE') return value
    if (type.name === 'FLOAT') return Math.fround(value)
    return typeof left.raw === 'bigint' ? BigInt(Math.trunc(value)) : Math.trunc(value)
  }

  #second(group: number, column: number, first: Result | null, step: 1 | -1): Result | null {
    return this.#extended && first !== null ? this.#neighbour(group, column, first.index + step, step) : null
  }

  #neighbour(group: number, column: number, from: number, step: 1 | -1): Result | null {
    const { results } = this.#groups
    for (let index = from; index >= 0 && index < results.length; index += step) {
      const entry = results[index] as (typeof results)[number]
      const raw = entry.results.get(group)?.[column]
      if (raw === null || typeof raw === 'number' || typeof raw === 'bigint')
        return { index, start: entry.start, value: Number(raw), raw }
    }
    return null
  }
}
