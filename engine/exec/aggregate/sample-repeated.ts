// Buckets of SAMPLE BY around the end of daylight saving time: rows of the repeated hour belong to buckets that rows of the
// hour before have been added to, so that none of them is over until the hour is. Until then bucket and group are one key.

import type { AggregateCall } from '../../sql/plan/plan.js'
import { dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { createGrouping, type Grouping } from '../batch/group-keys.js'
import { valueReader } from '../batch/values.js'
import { type Batch, batchRowsMax, type Vector } from '../batch/vector.js'
import { Accumulators } from './accumulators.js'

export interface RepeatedBucket {
  readonly start: bigint
  /** By number of the group, in order of first appearance. */
  readonly results: Map<number, readonly Value[]>
}

export class RepeatedBuckets {
  readonly #context: ExecContext
  /** The sample's own groups; null: it has no keys. */
  readonly #groups: Grouping | null
  /** Of a start and, where there are keys, the id of a group. */
  readonly #pairs: Grouping
  readonly #accumulators: Accumulators
  readonly #starts: Vector
  /** What begins there or later is behind the repeated hour. */
  readonly end: bigint

  constructor(context: ExecContext, aggregates: readonly AggregateCall[], groups: Grouping | null, end: bigint) {
    const types = groups === null ? [dataType('LONG')] : [dataType('LONG'), dataType('INT')]
    this.#context = context
    this.#groups = groups
    this.#pairs = createGrouping(context, types, false)
    this.#accumulators = new Accumulators(context, aggregates)
    this.#starts = { type: dataType('LONG'), address: context.space.take(batchRowsMax * 8), dictionary: 0 }
    this.end = end
  }

  /** The rows have been assigned to the sample's groups. */
  add(batch: Batch, start: bigint): void {
    const { address } = this.#starts
    this.#context.memory.i64.fill(start, address >>> 3, (address >>> 3) + batch.rows)
    const pairs = this.#pairs
    const ids = this.#groups?.ids
    const keys = ids === undefined ? [] : [{ type: dataType('INT'), address: ids, dictionary: 0 }]
    pairs.assign([this.#starts, ...keys], batch.rows, 0)
    this.#accumulators.add(batch, pairs.ids, pairs.size)
  }

  /** Ascending; to be asked for once. */
  results(): RepeatedBucket[] {
    const { memory, texts, space } = this.#context
    const pairs = this.#pairs
    const startAt = valueReader(memory, texts, pairs.keys.column(0))
    const groupAt = this.#groupReader()
    const found = new Map<Value, RepeatedBucket>()
    for (let pair = 0; pair < pairs.count; pair++) {
      const start = startAt(pair) as bigint
      const bucket = found.get(start) ?? { start, results: new Map() }
      const id = pairs.idAt(pair)
      bucket.results.set(groupAt(pair), this.#accumulators.results(id))
      found.set(start, bucket)
    }
    space.give(this.#starts.address)
    return [...found.values()].sort((a, b) => (a.start < b.start ? -1 : 1))
  }

  /** The number of the sample's group by that of the pair. */
  #groupReader(): (pair: number) => number {
    const groups = this.#groups
    if (groups === null) return () => 0
    const numbers = new Map<Value, number>()
    for (let group = 0; group < groups.count; group++) numbers.set(groups.idAt(group), group)
    const idAt = valueReader(this.#context.memory, this.#context.texts, this.#pairs.keys.column(1))
    return (pair) => numbers.get(idAt(pair)) ?? 0
  }
}
