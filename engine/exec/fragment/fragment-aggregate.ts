// Aggregation fused with a table scan: one generated loop (a WebAssembly kernel) evaluates the filter, the group keys
// and the aggregates, without a hash table. The group id is computed from small keys, such as the ids of symbols
// (dictionary-encoded strings), and is the index of the group in an array of accumulators. Applies if the code
// generator supports all aggregates, the filter and the keys, and there are not too many groups.
//
// With SAMPLE BY or a time bucket as a key, each bucket has an accumulator array of its own (a slot), as its rows are
// adjacent: the rows of a morsel are in time order. Without buckets there is a single slot. If buckets are short and
// equally long, and there are no other keys, the buckets themselves are the groups of a single slot, because finding
// the end of a bucket costs as much as aggregating some hundred rows.
//
// Chunks of the table are aggregated by several threads (parallel/coordinator.ts). Their results are merged in the
// order of the chunks, so the result has the same bits on any number of threads.

import { pageRowsMax } from '../../base/limits.js'
import type { FragmentAggregate, FragmentExpression, GroupKey } from '../../kernels/jit/fragment.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from '../../sql/plan/plan.js'
import { dictionariesOf } from '../../storage/schema/schema.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { Bucket, BucketGrid, Buckets } from '../aggregate/buckets.js'
import type { DenseFragment, DenseQuery, Grouping } from '../aggregate/dense-query.js'
import type { ExecContext } from '../batch/context.js'
import { FragmentInputs } from '../expression/fragments.js'
import {
  type ChunkWorker,
  CoordinatorRun,
  chunksMax,
  type FragmentDetails,
  morselsPerChunk,
} from '../parallel/coordinator.js'
import { singleThread } from '../parallel/single-thread.js'
import { selectedFraction } from '../scan/indexed-rows.js'
import { listMorsels, pickMorsels } from '../scan/morsel-list.js'
import { type Run, rowCount, type ScanMorsel } from '../scan/morsels.js'
import type { ScanShape } from '../scan/scan-shape.js'
import { longScanMorsels } from '../scan/scan-slices.js'
import { scanRuns } from '../scan/zones.js'
import { countsOf, DenseChunks, readChunk } from './fragment-chunks.js'
import { type BucketResult, type FillBuckets, FragmentColumns } from './fragment-columns.js'
import { type BucketKey, bucketCount, bucketGrid, bucketKey, type DenseKey, denseKey } from './fragment-keys.js'

const groupsMax = 65_536
const stateBytesMax = 64 * 1024 * 1024

/** Limit for the results of all chunks that may wait to be merged. */
const resultBytesMax = 128 * 1024 * 1024
/** With fewer rows per bucket, finding its end costs more than computing its number. */
const bucketRowsMin = 64
/** With fewer rows per bucket than this, divided by the number of aggregates plus one, buckets are the groups. */
const gridRowsMax = 1024
/** Each chunk has accumulators for all buckets. */
const gridChunksMax = 16

export interface FragmentQuery {
  /** The plan node that the fragment executes. */
  readonly plan: Plan
  readonly keys: readonly Expression[]
  readonly aggregates: readonly AggregateCall[]
  /** The buckets of SAMPLE BY; null for GROUP BY, where a key may be a time bucket. */
  readonly buckets: Buckets | null
}

interface FragmentGroup {
  readonly group: number
  readonly aggregates: readonly Value[]
}

/** Groups with rows, in the order of their first rows. */
interface FragmentSlot {
  readonly bucket: Bucket | null
  readonly groups: readonly FragmentGroup[]
}

export interface FragmentRun {
  /** Does a limited amount of work. */
  step(): 'working' | 'waiting' | 'done'
  /** The results, by bucket. */
  slots(): Iterable<FragmentSlot>
  /**
   * The results as columns. `timed`: the first column is the start of the bucket. `fill` adds buckets; only without
   * keys.
   */
  columns(columns: readonly PlanColumn[], timed: boolean, fill?: FillBuckets): FragmentColumns
  /** Values of a group's keys, in their order; for a time bucket, its start. */
  keysOf(group: number, bucket: Bucket | null): readonly Value[]
  /** All groups with rows, in the order of their first rows. */
  groups(): readonly number[]
}

/** Aggregates that generated code can compute. */
export const fragmentAggregateNames: ReadonlySet<string> = new Set(['count', 'sum', 'avg', 'min', 'max'])

/** undefined when generated code cannot compute the query. */
export function fragmentRun(context: ExecContext, query: FragmentQuery, scan: ScanShape): FragmentRun | undefined {
  const parts = denseParts(context, query, scan, null)
  if (parts === undefined) return undefined
  const runs = scanRuns(context, scan)
  const morsels = runs.flatMap((run) => run.morsels)
  const fragment = denseFragment(context, parts, gridOf(context, parts, runs), morsels)
  if (fragment === undefined || !isWorthIt(fragment, scan, runs)) return undefined
  const parallelism = context.parallelism ?? singleThread(context.arena)
  const chunkMorsels = morselsPerChunk(parallelism, morsels, chunkCount(fragment))
  return new DenseAggregation(context, query.plan, denseQuery(fragment, morsels, chunkMorsels))
}

/** A worker's work for the same query; undefined when it cannot take part. */
export function fragmentWorker(
  context: ExecContext,
  query: FragmentQuery,
  scan: ScanShape,
  details: FragmentDetails,
): ChunkWorker | undefined {
  const parts = denseParts(context, query, scan, details.counts)
  if (parts === undefined) return undefined
  const candidates = scanRuns(context, scan).flatMap((run) => run.morsels)
  const morsels = pickMorsels(candidates, details.morsels)
  const fragment = morsels === undefined ? undefined : denseFragment(context, parts, details.grid ?? null, morsels)
  return morsels === undefined || fragment === undefined
    ? undefined
    : new DenseChunks(context, denseQuery(fragment, morsels, details.chunkMorsels))
}

/** The translated parts of a fragment. */
interface DenseParts {
  readonly grouping: Omit<Grouping, 'grid'> & Pick<BucketKey, 'isInjective'>
  readonly predicate: FragmentExpression | null
  readonly aggregates: readonly FragmentAggregate[]
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
}

/** `counts`: number of values of each key, as counted by the coordinator. */
function denseParts(
  context: ExecContext,
  query: FragmentQuery,
  scan: ScanShape,
  counts: readonly number[] | null,
): DenseParts | undefined {
  const { jit } = context
  if (jit === null || !query.aggregates.every(({ name, args }) => fragmentAggregateNames.has(name) && args.length <= 1))
    return undefined
  const dictionaries = dictionariesOf(scan.snapshot.version)
  const dictionaryOf = (column: number): number => dictionaries.get(scan.columnIds[column] as number) ?? 0
  const pages = scan.snapshot.version.parts.reduce((sum, part) => sum + Math.ceil(part.rows / pageRowsMax), 0)
  const inputs = new FragmentInputs(context, dictionaryOf, pages < longScanMorsels ? 0 : scan.columnIds.length)
  const predicate = scan.filter === null ? null : inputs.expression(scan.filter)
  if (scan.filter !== null && predicate === null) return undefined
  const aggregates = fragmentAggregates(query.aggregates, inputs)
  const grouping = groupingOf(context, query, scan, inputs, counts)
  if (aggregates === undefined || grouping === undefined) return undefined
  return { grouping, predicate, aggregates, inputs, scan }
}

/** null when buckets are not the groups. */
function gridOf(
  context: ExecContext,
  { grouping, aggregates, scan }: DenseParts,
  runs: readonly Run[],
): BucketGrid | null {
  const { keys, buckets, isInjective } = grouping
  if (keys.length > 0 || buckets === null || !isInjective || timeColumn(scan) < 0) return null
  const grid = bucketGrid(scan, runs, buckets)
  if (grid === null || grid.count > groupsMax) return null
  const rows = (rowCount(runs) * selectedFraction(context, scan)) / grid.count
  return rows < gridRowsMax / (1 + aggregates.length) ? grid : null
}

function timeColumn({ columnIds, snapshot }: ScanShape): number {
  const { timestampId } = snapshot.version.schema
  return timestampId < 0 ? -1 : columnIds.indexOf(timestampId)
}

function gridKey({ inputs, scan }: DenseParts, { origin, step }: BucketGrid): GroupKey | undefined {
  const index = timeColumn(scan)
  const expression = inputs.expression({ kind: 'column', index, type: scan.types[index] as DataType, position: 0 })
  return expression === null ? undefined : { kind: 'bucket', expression, origin, step }
}

const firstRow: readonly FragmentAggregate[] = [{ name: 'first', arg: null }]

/**
 * Compiles the fragment. Counting rows is merged with the count of a sum where these are equal, because each
 * accumulator costs time.
 */
function denseFragment(
  { jit }: ExecContext,
  parts: DenseParts,
  grid: BucketGrid | null,
  morsels: readonly ScanMorsel[],
): DenseFragment | undefined {
  const { grouping, predicate, aggregates, inputs, scan } = parts
  const bucket = grid === null ? undefined : gridKey(parts, grid)
  if (grid !== null && bucket === undefined) return undefined
  const shape = { columns: inputs.types, predicate, keys: bucket ? [bucket] : grouping.keys.map(({ key }) => key) }
  const keyed = grouping.keys.length > 0
  const firsts = keyed ? (jit?.aggregate({ ...shape, aggregates: firstRow }) ?? null) : null
  if (keyed && firsts === null) return undefined
  const arg = aggregates.find((aggregate) => countsRows(aggregate, { inputs, scan }, morsels))?.arg ?? null
  const rows: FragmentAggregate = { name: 'count', arg }
  const requested = aggregates.map((aggregate) =>
    aggregate.name === 'count' && aggregate.arg === null ? rows : aggregate,
  )
  // The last aggregate counts rows: it tells which groups have any.
  const fragment = jit?.aggregate({ ...shape, aggregates: [...requested, rows] }) ?? null
  if (fragment === null) return undefined
  const { keys, bucketPlace, keyOf } = grouping
  const groups = grid?.count ?? grouping.groups
  const buckets = grid === null ? grouping.buckets : null
  const count = aggregates.length
  return { keys, groups, buckets, grid, bucketPlace, keyOf, fragment, firsts, inputs, scan, aggregates: count }
}

/** Whether the sum has a value in every row, so that its count equals the number of rows. */
function countsRows(
  { name, arg }: FragmentAggregate,
  { inputs, scan }: Pick<DenseParts, 'inputs' | 'scan'>,
  morsels: readonly ScanMorsel[],
): boolean {
  if ((name !== 'sum' && name !== 'avg') || arg?.kind !== 'column') return false
  const columnId = scan.columnIds[inputs.columns[arg.index] as number] as number
  return morsels.every((morsel) => morsel.nulls(columnId) === 0)
}

/** Creates the object with all properties in one place, so that it has a single hidden class: hot loops read it. */
function denseQuery(dense: DenseFragment, morsels: readonly ScanMorsel[], chunkMorsels: number): DenseQuery {
  let row = 0
  const firstRows = morsels.map(({ rows }) => {
    row += rows
    return row - rows
  })
  const { keys, groups, buckets, grid, bucketPlace, keyOf, fragment, firsts, inputs, scan, aggregates } = dense
  return {
    keys,
    groups,
    buckets,
    grid,
    bucketPlace,
    keyOf,
    fragment,
    firsts,
    inputs,
    scan,
    aggregates,
    morsels,
    chunkMorsels,
    firstRows,
  }
}

function isWorthIt({ fragment, groups, buckets }: DenseFragment, scan: ScanShape, runs: readonly Run[]): boolean {
  const slots = buckets === null ? 1 : bucketCount(scan, runs, buckets)
  const rows = rowCount(runs)
  if (buckets !== null && slots > 16 && rows / slots < bucketRowsMin) return false
  return groups <= groupsMax && fragment.stateBytes(groups) * slots * 2 <= stateBytesMax
}

/** Slots of buckets are distributed to the chunks; without buckets, each chunk has all groups. */
function chunkCount({ fragment, groups, buckets, grid }: DenseFragment): number | undefined {
  if (grid !== null) return gridChunksMax
  if (buckets !== null) return undefined
  return Math.min(chunksMax, Math.max(4, Math.floor(resultBytesMax / fragment.stateBytes(groups))))
}

function fragmentAggregates(calls: readonly AggregateCall[], inputs: FragmentInputs): FragmentAggregate[] | undefined {
  const found: FragmentAggregate[] = []
  for (const { name, args } of calls) {
    const [argument] = args
    const arg: FragmentExpression | null = argument === undefined ? null : inputs.expression(argument)
    if (argument !== undefined && arg === null) return undefined
    found.push({ name, arg })
  }
  return found
}

function groupingOf(
  context: ExecContext,
  query: FragmentQuery,
  shape: ScanShape,
  inputs: FragmentInputs,
  counts: readonly number[] | null,
): DenseParts['grouping'] | undefined {
  const keys: DenseKey[] = []
  let { buckets } = query
  let bucketPlace = -1
  let isInjective = true
  let keyOf: BucketKey['keyOf'] = (start) => start
  for (const [place, key] of query.keys.entries()) {
    const dense = denseKey({ context, shape, inputs }, key)
    const timed = dense === undefined && buckets === null ? bucketKey({ context, shape, inputs }, key) : undefined
    if (dense !== undefined) keys.push({ ...dense, place, count: counts?.[keys.length] ?? dense.count })
    else if (timed === undefined) return undefined
    else {
      buckets = timed.buckets
      keyOf = timed.keyOf
      isInjective = timed.isInjective
      bucketPlace = place
    }
  }
  const groups = keys.reduce((product, { count }) => product * count, 1)
  return { keys, groups, buckets, bucketPlace, keyOf, isInjective }
}

const onlyGroup: readonly number[] = [0]

interface Slot {
  /** The first bucket, if several share the slot. */
  readonly bucket: Bucket | null
  readonly total: number
}

class DenseAggregation implements FragmentRun {
  readonly #context: ExecContext
  readonly #query: DenseQuery
  readonly #coordinator: CoordinatorRun
  /** By the value of the bucket's key. */
  readonly #slots = new Map<Value, Slot>()
  readonly #firstRows = new Map<number, number>()

  constructor(context: ExecContext, plan: Plan, query: DenseQuery) {
    const { keys, morsels, chunkMorsels, scan } = query
    this.#context = context
    this.#query = query
    if (query.buckets === null) this.#slotOf(null)
    this.#coordinator = new CoordinatorRun(context.memory, context.parallelism ?? singleThread(context.arena), {
      plan,
      worker: new DenseChunks(context, query),
      chunks: Math.ceil(morsels.length / chunkMorsels),
      details: () => ({
        morsels: listMorsels(morsels),
        chunkMorsels,
        counts: keys.map(({ count }) => count),
        grid: query.grid,
      }),
      merge: (result) => this.#merge(result),
      counted: context.progress?.chunked(scan.snapshot, rowCount(morsels)),
    })
  }

  step(): 'working' | 'waiting' | 'done' {
    return this.#coordinator.step()
  }

  *slots(): Iterable<FragmentSlot> {
    for (const { bucket, total, groups } of this.#bucketResults()) {
      yield { bucket, groups: groups.map((group) => ({ group, aggregates: this.#values(total, group) })) }
    }
  }

  columns(columns: readonly PlanColumn[], timed: boolean, fill?: FillBuckets): FragmentColumns {
    const bucketResults = fill === undefined ? this.#bucketResults() : fill(this.#bucketResults(), this.#blank())
    return new FragmentColumns(this.#context, columns, this.#query, timed, bucketResults)
  }

  #blank(): BucketResult {
    const { fragment } = this.#query
    const total = this.#context.arena.keep(fragment.stateBytes(1))
    fragment.init(total, 1)
    return { bucket: null, total, groups: [0] }
  }

  *#bucketResults(): Generator<BucketResult> {
    const { grid } = this.#query
    if (grid !== null) {
      yield* this.#gridResults(grid)
      return
    }
    const ordered = [...this.#slots.values()].sort((a, b) =>
      (a.bucket?.start ?? 0n) < (b.bucket?.start ?? 0n) ? -1 : 1,
    )
    const groups = this.groups()
    const { countWord, recordWords } = countsOf(this.#query)
    const { u32 } = this.#context.memory
    for (const { bucket, total } of ordered) {
      const all = this.#query.keys.length === 0 && bucket === null
      const hasRows = (group: number): boolean => u32[(total >>> 2) + group * recordWords + countWord] !== 0
      const present = all || groups.every(hasRows) ? groups : groups.filter(hasRows)
      if (present.length > 0) yield { bucket, total, groups: present }
    }
  }

  /** Each group of the only slot is a bucket. */
  *#gridResults({ origin, step, count }: BucketGrid): Generator<BucketResult> {
    const { total } = this.#slotOf(null)
    const { countWord, recordWords } = countsOf(this.#query)
    const { u32 } = this.#context.memory
    for (let group = 0; group < count; group++) {
      const record = total + group * recordWords * 4
      if (u32[(record >>> 2) + countWord] === 0) continue
      const start = origin + BigInt(group) * step
      yield { bucket: { start, end: start + step }, total: record, groups: onlyGroup }
    }
  }

  keysOf(group: number, bucket: Bucket | null): readonly Value[] {
    const { keys, bucketPlace, keyOf } = this.#query
    let rest = group
    const values: Value[] = []
    for (const { count, valueAt, place } of keys) {
      const part = rest % count
      rest = (rest - part) / count
      values[place] = valueAt(part)
    }
    if (bucketPlace >= 0) values[bucketPlace] = bucket === null ? null : keyOf(bucket.start)
    return values
  }

  groups(): readonly number[] {
    if (this.#query.keys.length === 0) return [0]
    return [...this.#firstRows].sort(([, a], [, b]) => a - b).map(([group]) => group)
  }

  #slotOf(bucket: Bucket | null): Slot {
    const { fragment, groups, keyOf } = this.#query
    const value = bucket === null ? null : keyOf(bucket.start)
    const known = this.#slots.get(value)
    if (known !== undefined) return known
    const slot = { bucket, total: this.#context.arena.keep(fragment.stateBytes(groups)) }
    fragment.init(slot.total, groups)
    this.#slots.set(value, slot)
    return slot
  }

  #merge(result: number): void {
    const { fragment, groups, buckets } = this.#query
    const { slots, fresh } = readChunk(this.#context.memory, result, buckets !== null)
    for (const { bucket, state } of slots) fragment.merge(state, this.#slotOf(bucket).total, groups)
    for (const { group, row } of fresh) {
      this.#firstRows.set(group, Math.min(row, this.#firstRows.get(group) ?? Number.POSITIVE_INFINITY))
    }
  }

  #values(total: number, group: number): Value[] {
    const { fragment, aggregates } = this.#query
    return Array.from({ length: aggregates }, (_, index) => fragment.result(total, group, index))
  }
}
