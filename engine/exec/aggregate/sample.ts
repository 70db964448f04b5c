// Operator: SAMPLE BY. The input is ordered by time, so the rows of a time bucket are adjacent. The rows of a batch
// that belong to one bucket are added to the accumulators in one call. A bucket is complete when a row of a later
// bucket arrives.
//
// Results are returned bucket by bucket; within a bucket, groups are in order of first appearance. There are three
// special cases:
//
//   repeated hour   when clocks are set back, the buckets of the repeated hour stay open until it is over
//                   (sample-repeated.ts)
//   short buckets   without group keys, up to 1024 buckets are aggregated in one pass, each as a group, because a pass
//                   for each would cost more than its few rows
//   FILL            all results are buffered until the end, since every group has a row in every bucket
//                   (sample-fill.ts)

import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import { createGrouping, type Grouping } from '../batch/group-keys.js'
import { valueReader } from '../batch/values.js'
import { type Batch, batchRowsMax, type Operator, type Pull, sliceBatch, type Vector } from '../batch/vector.js'
import { compileVector, type VectorEvaluator } from '../expression/expression.js'
import { valuesOperator } from '../operators/rows-of-values.js'
import { Accumulators } from './accumulators.js'
import { type BucketRange, type Buckets, createBuckets, type SamplePlan, unitOf } from './buckets.js'
import { type FilledGroups, filledRows } from './sample-fill.js'
import { RepeatedBuckets } from './sample-repeated.js'

/** Rows that wait until they are returned together. */
const waitingRows = 4096
const stateRows = 256

/** `dense`: the input is the rows of one table, so each symbol column has one dictionary. */
export function sampleOperator(context: ExecContext, input: Operator, plan: SamplePlan, dense: boolean): Operator {
  const sampler = new Sampler(context, plan, dense)
  const rows: (readonly Value[])[] = []
  let filled: Iterator<readonly Value[]> | null = null
  let done = false
  const filling = plan.fills.some(({ kind }) => kind !== 'none')
  // States of values may have 64 KiB each.
  const rowsMax = plan.columns.some(({ type }) => type.name === 'BINARY') ? stateRows : waitingRows
  const takeRows = (_from: number, count: number): (readonly Value[])[] => {
    if (filled === null) return rows.splice(0, rowsMax === stateRows ? Math.min(count, rowsMax) : count)
    const taken: (readonly Value[])[] = []
    for (let next = filled.next(); !next.done; next = filled.next()) {
      taken.push(next.value)
      if (taken.length === count) break
    }
    return taken
  }
  const output = valuesOperator(context, plan.columns, takeRows)
  const pull = (): Pull => {
    if (done || rows.length >= rowsMax) return output.pull()
    const batch = input.pull()
    if (batch === 'waiting' || batch === 'working') return batch
    if (batch !== null) sampler.add(batch)
    else {
      sampler.finish()
      done = true
      if (filling) filled = filledRows(plan, sampler.filledGroups())
    }
    if (!filling) for (const row of sampler.takeRows()) rows.push(row)
    return 'working'
  }
  return { pull }
}

/**
 * Buckets with fewer rows than this, on average, are aggregated as groups. For longer ones, kernels without group ids
 * are faster.
 */
const shortRows = 256
/** Number of buckets that are aggregated at once. */
const numberedMax = 1024

class Sampler {
  readonly #context: ExecContext
  readonly #plan: SamplePlan
  readonly #buckets: Buckets
  readonly #keys: readonly VectorEvaluator[]
  readonly #groups: Grouping | null
  readonly #accumulators: Accumulators
  readonly #filling: boolean
  #bucket: BucketRange | null = null
  /** Set during a repeated hour, and before one that is about to be repeated. */
  #repeated: RepeatedBuckets | null = null
  readonly #presence: Presence
  #rows: (readonly Value[])[] = []
  readonly #filled: { start: bigint; end: bigint; results: Map<number, readonly Value[]> }[] = []
  /**
   * The buckets that are aggregated at once, by group id; null: one bucket at a time; undefined before the first rows.
   */
  #numbered: BucketRange[] | null | undefined
  /** Group ids (u32) of a batch's rows. */
  #numbers = 0

  constructor(context: ExecContext, plan: SamplePlan, dense: boolean) {
    this.#context = context
    this.#plan = plan
    this.#buckets = createBuckets(plan, unitOf(plan))
    // Buckets that are aligned to the first row begin there.
    if (plan.span !== undefined) this.#buckets.of(plan.span.first)
    this.#keys = plan.keys.map((key) => compileVector(key, context))
    const types = plan.keys.map((key) => key.type)
    this.#groups = plan.keys.length > 0 ? createGrouping(context, types, dense) : null
    this.#presence = new Presence(context)
    this.#accumulators = new Accumulators(context, plan.aggregates)
    this.#filling = plan.fills.some(({ kind }) => kind !== 'none')
  }

  add(batch: Batch): void {
    const { memory, kernels } = this.#context
    const { address } = batch.vectors[this.#plan.timestampIndex] as Vector
    if (this.#numbered === undefined) this.#numbered = this.#areShort(batch) ? [] : null
    if (this.#numbered !== null) {
      this.#addNumbered(batch, this.#numbered)
      return
    }
    for (let from = 0; from < batch.rows; ) {
      const ts = memory.i64[(address >>> 3) + from]!
      const bucket = this.#enter(ts)
      const to = kernels.sort.lowerBound(address, from, batch.rows, bucket.end)
      this.#addRows(sliceBatch(batch, from, to), bucket.start)
      from = to
    }
  }

  finish(): void {
    if (this.#numbered) this.#leaveNumbered(this.#numbered)
    else if (this.#bucket !== null) this.#leave(this.#bucket)
    this.#bucket = null
  }

  takeRows(): (readonly Value[])[] {
    const rows = this.#rows
    this.#rows = []
    return rows
  }

  filledGroups(): FilledGroups {
    const groups = this.#groups
    const count = groups === null ? 1 : groups.count
    return {
      buckets: this.#buckets,
      results: this.#filled,
      count,
      keysOf: (group) => this.#keyValues(group),
    }
  }

  #enter(ts: bigint): BucketRange {
    const known = this.#bucket
    if (known !== null && ts < known.end) return known
    const next = this.#buckets.of(ts)
    this.#bucket = next
    if (known?.start === next.start || (this.#repeated !== null && ts < this.#repeated.end)) return next
    if (known !== null) this.#leave(known)
    const end = this.#buckets.repeatedUntil(next)
    this.#repeated = end === null ? null : new RepeatedBuckets(this.#context, this.#plan.aggregates, this.#groups, end)
    return next
  }

  /** Whether the buckets of a batch are short, and have states of a fixed size. */
  #areShort(batch: Batch): boolean {
    const { step } = this.#buckets
    const isSmall = this.#groups === null && this.#accumulators.partial !== null
    if (!isSmall || step === null || batch.rows === 0) return false
    const first = (batch.vectors[this.#plan.timestampIndex] as Vector).address >>> 3
    const { i64 } = this.#context.memory
    const ticks = i64[first + batch.rows - 1]! - i64[first]!
    return (ticks / step) * BigInt(shortRows) > BigInt(batch.rows)
  }

  #addNumbered(batch: Batch, retained: BucketRange[]): void {
    const { memory, kernels, arena } = this.#context
    const { address } = batch.vectors[this.#plan.timestampIndex] as Vector
    if (this.#numbers === 0) this.#numbers = arena.take(batchRowsMax * 4)
    const numbers = this.#numbers >>> 2
    let added = 0
    for (let from = 0; from < batch.rows; ) {
      const ts = memory.i64[(address >>> 3) + from]!
      let bucket = retained.at(-1)
      if (bucket === undefined || ts >= bucket.end) {
        if (retained.length === numberedMax) {
          this.#addSlice(batch, added, from, retained.length)
          this.#leaveNumbered(retained)
          added = from
        }
        bucket = this.#buckets.of(ts)
        retained.push(bucket)
      }
      const to = kernels.sort.lowerBound(address, from, batch.rows, bucket.end)
      memory.u32.fill(retained.length - 1, numbers + from, numbers + to)
      from = to
    }
    this.#addSlice(batch, added, batch.rows, retained.length)
  }

  #addSlice(batch: Batch, from: number, to: number, count: number): void {
    if (from === to) return
    this.#accumulators.add(sliceBatch(batch, from, to), this.#numbers + from * 4, count)
  }

  #leaveNumbered(retained: BucketRange[]): void {
    retained.forEach(({ start, end }, number) => {
      this.#give(start, end, new Map([[0, this.#accumulators.results(number)]]))
    })
    this.#accumulators.reset()
    retained.length = 0
  }

  #addRows(batch: Batch, start: bigint): void {
    const groups = this.#groups
    if (groups !== null) {
      const vectors = this.#keys.map((evaluate) => evaluate(batch))
      groups.assign(vectors, batch.rows, 0)
    }
    if (this.#repeated !== null) {
      this.#repeated.add(batch, start)
      return
    }
    if (groups !== null) this.#presence.add(groups, batch.rows)
    this.#accumulators.add(batch, groups?.ids ?? 0, groups?.size ?? 1)
  }

  #leave({ start, end }: BucketRange): void {
    if (this.#repeated !== null) {
      for (const bucket of this.#repeated.results()) this.#give(bucket.start, bucket.start, bucket.results)
      return
    }
    const groups = this.#groups
    const results = new Map<number, readonly Value[]>()
    for (const group of groups === null ? [0] : this.#presence.take(groups)) {
      const id = groups === null ? 0 : groups.idAt(group)
      results.set(group, this.#accumulators.results(id))
    }
    this.#give(start, end, results)
    this.#accumulators.reset()
  }

  #give(start: bigint, end: bigint, results: Map<number, readonly Value[]>): void {
    if (this.#filling) this.#filled.push({ start, end, results })
    else for (const [group, values] of results) this.#rows.push([start, ...this.#keyValues(group), ...values])
  }

  readonly #knownKeys: (readonly Value[])[] = []

  #keyValues(group: number): readonly Value[] {
    const groups = this.#groups
    if (groups === null) return []
    const known = this.#knownKeys[group]
    if (known !== undefined) return known
    const { memory, strings } = this.#context
    const values = this.#plan.keys.map((_, index) => valueReader(memory, strings, groups.keys.column(index))(group))
    this.#knownKeys[group] = values
    return values
  }
}

const cellBytes = 8
const never = 0xffff_ffff

/** Which groups have rows in the current bucket, in order of first appearance: {first row, last row} by group id. */
class Presence {
  readonly #context: ExecContext
  #cells = 0
  #size = 0
  #capacity = 0
  #rows = 0

  constructor(context: ExecContext) {
    this.#context = context
  }

  add(groups: Grouping, rows: number): void {
    this.#grow(groups.size)
    this.#context.kernels.aggregate.groupRows(groups.ids, 0, rows, groups.size, this.#rows, this.#cells)
    this.#rows += rows
  }

  /** The indexes of these groups (not their ids); clears the set. */
  take(groups: Grouping): number[] {
    const { u32 } = this.#context.memory
    const first = this.#cells >>> 2
    const present: { readonly group: number; readonly row: number }[] = []
    for (let group = 0; group < groups.count; group++) {
      const row = u32[first + groups.idAt(group) * 2]!
      if (row !== never) present.push({ group, row })
    }
    u32.fill(never, first, first + this.#size * 2)
    this.#rows = 0
    return present.sort((a, b) => a.row - b.row).map(({ group }) => group)
  }

  #grow(size: number): void {
    if (size <= this.#size) return
    const { arena, memory } = this.#context
    if (size > this.#capacity) {
      const capacity = Math.max(256, size, this.#capacity * 2)
      const fresh = arena.take(capacity * cellBytes)
      memory.u8.copyWithin(fresh, this.#cells, this.#cells + this.#size * cellBytes)
      if (this.#cells !== 0) arena.give(this.#cells)
      this.#cells = fresh
      this.#capacity = capacity
    }
    memory.u32.fill(never, (this.#cells >>> 2) + this.#size * 2, (this.#cells >>> 2) + size * 2)
    this.#size = size
  }
}
