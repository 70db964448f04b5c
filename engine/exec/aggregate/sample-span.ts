// SpanFinder: finds the time of the first row of SAMPLE BY and, for FILL, times in the earliest and the latest bucket.
// A SAMPLE BY that spills to temporary files needs them: it aggregates one partition of the rows after the other, and
// all partitions must have the same buckets. Rows come in the order of time.

import type { SampleSpan } from '../../sql/plan/plan.js'
import type { ExecContext } from '../batch/context.js'
import type { Batch } from '../batch/vector.js'
import { type Buckets, createBuckets, type SamplePlan, unitOf } from './buckets.js'

/** A row of a bucket. */
interface Found {
  readonly start: bigint
  readonly timestamp: bigint
}

export class SpanFinder {
  readonly #context: ExecContext
  readonly #column: number
  /** null if no rows are added, so that the buckets do not matter. */
  readonly #buckets: Buckets | null
  #first: bigint | null = null
  #earliest: Found | null = null
  #latest: Found | null = null
  /** The stretch of the last row ends here. */
  #end: bigint | null = null

  constructor(context: ExecContext, plan: SamplePlan) {
    this.#context = context
    this.#column = plan.timestampIndex
    const isFilling = plan.fills.some(({ kind }) => kind !== 'none')
    this.#buckets = isFilling && plan.span === undefined ? createBuckets(plan, unitOf(plan)) : null
  }

  /** undefined if there are no rows. */
  get span(): SampleSpan | undefined {
    const first = this.#first
    if (first === null) return undefined
    return { first, earliest: this.#earliest?.timestamp ?? first, latest: this.#latest?.timestamp ?? first }
  }

  add({ rows, vectors }: Batch): void {
    const { memory, kernels } = this.#context
    const address = vectors[this.#column]?.address ?? 0
    const buckets = this.#buckets
    if (rows === 0) return
    this.#first ??= memory.i64[address >>> 3]!
    if (buckets === null) return
    for (let from = 0; from < rows; ) {
      const timestamp = memory.i64[(address >>> 3) + from]!
      if (this.#end === null || timestamp >= this.#end) this.#note(buckets, timestamp)
      from = kernels.sort.lowerBound(address, from, rows, this.#end ?? timestamp + 1n)
    }
  }

  #note(buckets: Buckets, timestamp: bigint): void {
    const { start, end } = buckets.of(timestamp)
    if (this.#earliest === null || start < this.#earliest.start) this.#earliest = { start, timestamp }
    if (this.#latest === null || start > this.#latest.start) this.#latest = { start, timestamp }
    this.#end = end
  }
}
