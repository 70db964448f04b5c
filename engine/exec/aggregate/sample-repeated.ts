// SAMPLE BY when clocks are set back at the end of daylight saving time: an hour of local time is repeated, so its rows
// fall into buckets that already have rows. These buckets are therefore complete only when the repeated hour is over.
// Until then, their rows are aggregated with bucket start and group key as a combined key, so that several buckets can
// be open at once.

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
  /** By the group's index, in order of first appearance. */
  readonly results: Map<number, readonly Value[]>
}

export class RepeatedBuckets {
  readonly #context: ExecContext
  /** The groups of the SAMPLE BY; null without keys. */
  readonly #groups: Grouping | null
  /** Groups by bucket start and, with keys, group id. */
  readonly #pairs: Grouping
  readonly #accumulators: Accumulators
  readonly #starts: Vector
  /** Buckets from this timestamp on are not repeated. */
  readonly end: bigint

  constructor(context: ExecContext, aggregates: readonly AggregateCall[], groups: Grouping | null, end: bigint) {
    const types = groups === null ? [dataType('LONG')] : [dataType('LONG'), dataType('INT')]
    this.#context = context
    this.#groups = groups
    this.#pairs = createGrouping(context, types, false)
    this.#accumulators = new Accumulators(context, aggregates)
    this.#starts = { type: dataType('LONG'), address: context.arena.take(batchRowsMax * 8), dictionary: 0 }
    this.end = end
  }

  /** Adds rows that have been assigned to the groups of the SAMPLE BY. */
  add(batch: Batch, start: bigint): void {
    const { address } = this.#starts
    this.#context.memory.i64.fill(start, address >>> 3, (address >>> 3) + batch.rows)
    const pairs = this.#pairs
    const ids = this.#groups?.ids
    const keys = ids === undefined ? [] : [{ type: dataType('INT'), address: ids, dictionary: 0 }]
    pairs.assign([this.#starts, ...keys], batch.rows, 0)
    this.#accumulators.add(batch, pairs.ids, pairs.size)
  }

  /** The buckets in ascending order; must be called only once. */
  results(): RepeatedBucket[] {
    const { memory, strings, arena } = this.#context
    const pairs = this.#pairs
    const startAt = valueReader(memory, strings, pairs.keys.column(0))
    const groupAt = this.#groupReader()
    const found = new Map<Value, RepeatedBucket>()
    for (let pair = 0; pair < pairs.count; pair++) {
      const start = startAt(pair) as bigint
      const bucket = found.get(start) ?? { start, results: new Map() }
      const id = pairs.idAt(pair)
      bucket.results.set(groupAt(pair), this.#accumulators.results(id))
      found.set(start, bucket)
    }
    arena.give(this.#starts.address)
    return [...found.values()].sort((a, b) => (a.start < b.start ? -1 : 1))
  }

  /** Maps a pair to the index of its group. */
  #groupReader(): (pair: number) => number {
    const groups = this.#groups
    if (groups === null) return () => 0
    const numbers = new Map<Value, number>()
    for (let group = 0; group < groups.count; group++) numbers.set(groups.idAt(group), group)
    const idAt = valueReader(this.#context.memory, this.#context.strings, this.#pairs.keys.column(1))
    return (pair) => numbers.get(idAt(pair)) ?? 0
  }
}
