// Filter, keys and aggregates over a table in one generated loop. Groups are dense numbers, so that a state is an array;
// it works where the kernels know every aggregate, the filter and the keys.
//
// Buckets of time are no part of the group's number: rows of a piece are in time order, so each bucket is a stretch of
// rows, and has a state of its own (a slot). Without buckets there is one slot.
//
// Pieces are cut into chunks by their order alone; every chunk has states of its own, which are merged in the order of the
// chunks: the same rows give the same bits, whoever computed a chunk.

import { pageRowsMax } from '../../base/limits.js'
import type { FragmentAggregate, FragmentExpression } from '../../kernels/jit/fragment.js'
import type { AggregateFragment } from '../../kernels/jit/jit.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { AggregateCall, Expression } from '../plan/plan.js'
import type { Bucket, Buckets } from './buckets.js'
import type { ExecContext } from './context.js'
import { bucketCount, type DenseKey, denseKey, floorBuckets } from './fragment-keys.js'
import { FragmentInputs } from './fragments.js'
import { countWord, GroupOrder } from './group-order.js'
import { covers, type Piece, runsOf } from './pieces.js'
import { type ScanShape, type Slice, SliceReader } from './scan-slices.js'
import type { Vector } from './vector.js'
import { orderedView } from './view-piece.js'

const groupsMax = 65_536
const stateBytesMax = 64 * 1024 * 1024
const chunksMax = 32
/** With fewer rows a bucket, looking for its end costs more than computing its number. */
const bucketRowsMin = 64

export interface FragmentQuery {
  readonly keys: readonly Expression[]
  readonly aggregates: readonly AggregateCall[]
  /** Of a sample; else a key may be of buckets. */
  readonly buckets: Buckets | null
}

export interface FragmentGroup {
  readonly group: number
  readonly aggregates: readonly Value[]
}

/** Groups that had rows, in order of their first rows. */
export interface FragmentSlot {
  readonly bucket: Bucket | null
  readonly groups: readonly FragmentGroup[]
}

export interface FragmentRun {
  /** Works on one piece; false at the end. */
  step(): boolean
  /** By bucket. */
  slots(): Iterable<FragmentSlot>
  /** Values of the keys of a group, in their order; that of a bucket is its start. */
  keysOf(group: number, bucket: Bucket | null): readonly Value[]
  /** All groups that had rows, in order of their first rows. */
  groups(): readonly number[]
}

const known: ReadonlySet<string> = new Set(['count', 'sum', 'avg', 'min', 'max'])

/** undefined: generated code cannot do it. */
export function fragmentRun(context: ExecContext, query: FragmentQuery, scan: ScanShape): FragmentRun | undefined {
  const { jit, memory, partAccess } = context
  if (jit === null || !query.aggregates.every(({ name, args }) => known.has(name) && args.length <= 1)) return undefined
  const dictionaries = new Map(scan.snapshot.version.dictionaries)
  const inputs = new FragmentInputs(context, (column) => dictionaries.get(scan.columnIds[column] as number) ?? 0)
  const predicate = scan.filter === null ? null : inputs.expression(scan.filter)
  if (scan.filter !== null && predicate === null) return undefined
  const aggregates = fragmentAggregates(query.aggregates, inputs)
  const grouping = groupingOf(context, query, scan, inputs)
  if (aggregates === undefined || grouping === undefined) return undefined
  const shape = { columns: inputs.types, predicate, keys: grouping.keys.map(({ key }) => key) }
  const counted: FragmentAggregate[] = [...aggregates, { name: 'count', arg: null }]
  const fragment = jit.aggregate({ ...shape, aggregates: counted })
  const firsts = jit.aggregate({ ...shape, aggregates: [{ name: 'first', arg: null }] })
  if (fragment === null || firsts === null) return undefined
  const runs = runsOf(memory, partAccess, scan.snapshot, scan.ranges, context.space)
  if (!isWorthIt(fragment, grouping, scan, runs)) return undefined
  const pieces = runs.flatMap((run) => run.pieces)
  return new DenseAggregation(context, {
    ...grouping,
    fragment,
    firsts,
    inputs,
    scan,
    pieces,
    aggregates: aggregates.length,
  })
}

function isWorthIt(
  fragment: AggregateFragment,
  { groups, buckets }: Grouping,
  scan: ScanShape,
  runs: ReturnType<typeof runsOf>,
): boolean {
  const slots = buckets === null ? 1 : bucketCount(scan, runs, buckets)
  const rows = runs.reduce((sum, run) => sum + run.rows, 0)
  if (buckets !== null && slots > 16 && rows / slots < bucketRowsMin) return false
  return groups <= groupsMax && fragment.stateBytes(groups) * slots * 2 <= stateBytesMax
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

interface Grouping {
  readonly keys: readonly DenseKey[]
  readonly groups: number
  readonly buckets: Buckets | null
  /** Where the bucket stands among the keys; -1 when it is none of them. */
  readonly bucketPlace: number
}

function groupingOf(
  context: ExecContext,
  query: FragmentQuery,
  shape: ScanShape,
  inputs: FragmentInputs,
): Grouping | undefined {
  const keys: DenseKey[] = []
  let { buckets } = query
  let bucketPlace = -1
  for (const [place, key] of query.keys.entries()) {
    const dense = denseKey({ context, shape, inputs }, key)
    const floor = dense === undefined && buckets === null ? floorBuckets(shape, key) : undefined
    if (dense !== undefined) keys.push({ ...dense, place })
    else if (floor === undefined) return undefined
    else {
      buckets = floor
      bucketPlace = place
    }
  }
  return { keys, groups: keys.reduce((product, { count }) => product * count, 1), buckets, bucketPlace }
}

interface DenseQuery extends Grouping {
  readonly fragment: AggregateFragment
  /** Finds first rows. */
  readonly firsts: AggregateFragment
  readonly inputs: FragmentInputs
  readonly scan: ScanShape
  readonly pieces: readonly Piece[]
  readonly aggregates: number
}

interface Slot {
  readonly bucket: Bucket | null
  readonly total: number
  /** Of the current chunk. */
  readonly state: number
  touched: boolean
}

class DenseAggregation implements FragmentRun {
  readonly #context: ExecContext
  readonly #query: DenseQuery
  readonly #reader: SliceReader
  readonly #block: number
  readonly #order: GroupOrder
  readonly #slots = new Map<bigint, Slot>()
  readonly #touched: Slot[] = []
  readonly #chunkPieces: number
  /** The slot of the last rows. */
  #slot: Slot | null = null
  #next = 0
  #row = 0

  constructor(context: ExecContext, query: DenseQuery) {
    const { fragment, inputs, keys, scan, pieces } = query
    this.#context = context
    this.#query = query
    this.#reader = new SliceReader(context, { ...scan, filter: null })
    this.#block = context.space.keep(fragment.blockBytes)
    this.#chunkPieces = Math.max(1, Math.ceil(pieces.length / chunksMax))
    this.#order = new GroupOrder(context, query)
    fragment.writeConstants(this.#block)
    inputs.bindLookups(fragment, this.#block)
    keys.forEach(({ count }, index) => fragment.setCount(this.#block, index, count))
    if (query.buckets === null) this.#slots.set(0n, this.#newSlot(null))
  }

  step(): boolean {
    const { pieces } = this.#query
    const piece = pieces[this.#next]
    if (piece === undefined) return false
    this.#next++
    this.#runPiece(piece)
    if (this.#next % this.#chunkPieces === 0 || this.#next === pieces.length) this.#endChunk()
    return true
  }

  *slots(): Iterable<FragmentSlot> {
    const ordered = [...this.#slots].sort(([a], [b]) => (a < b ? -1 : 1))
    const groups = this.groups()
    for (const [, { bucket, total }] of ordered) {
      const present = groups.filter((group) => this.#hasRows(total, group))
      const all = this.#query.keys.length === 0 && bucket === null ? [0] : present
      if (all.length === 0) continue
      yield { bucket, groups: all.map((group) => ({ group, aggregates: this.#values(total, group) })) }
    }
  }

  keysOf(group: number, bucket: Bucket | null): readonly Value[] {
    const { keys, bucketPlace } = this.#query
    let rest = group
    const values: Value[] = []
    for (const { count, valueAt, place } of keys) {
      const part = rest % count
      rest = (rest - part) / count
      values[place] = valueAt(part)
    }
    if (bucketPlace >= 0) values[bucketPlace] = bucket?.start ?? null
    return values
  }

  groups(): readonly number[] {
    return this.#order.groups()
  }

  #newSlot(bucket: Bucket | null): Slot {
    const { fragment, groups } = this.#query
    const bytes = fragment.stateBytes(groups)
    const slot = {
      bucket,
      total: this.#context.space.keep(bytes),
      state: this.#context.space.keep(bytes),
      touched: false,
    }
    fragment.init(slot.total, groups)
    return slot
  }

  #slotOf(ts: bigint, buckets: Buckets): Slot {
    const known = this.#slot
    if (known?.bucket != null && ts >= known.bucket.start && ts < known.bucket.end) return known
    const bucket = buckets.of(ts)
    const slot = this.#slots.get(bucket.start) ?? this.#newSlot(bucket)
    this.#slots.set(bucket.start, slot)
    this.#slot = slot
    return slot
  }

  #runPiece(piece: Piece): void {
    const { scan, buckets } = this.#query
    const { ranges, snapshot } = scan
    const cut = !piece.sorted && (buckets !== null || !covers(ranges, piece.minTs, piece.maxTs))
    const { timestampId, columns } = snapshot.version.schema
    const typeOf = (id: number): DataType => columns.find((column) => column.id === id)?.type ?? dataType('LONG')
    const view = cut || piece.superseded !== 0 ? orderedView(this.#context, piece, timestampId, typeOf) : piece
    try {
      for (const slice of this.#reader.slices(view)) {
        if (buckets === null) this.#runSlice(view, slice, this.#slots.get(0n) as Slot)
        else this.#runBuckets(view, slice, buckets)
      }
    } finally {
      view.release()
    }
    this.#row += piece.rows
  }

  #runBuckets(view: Piece, { from, to }: Slice, buckets: Buckets): void {
    const { memory, kernels } = this.#context
    const ts = view.column(this.#query.scan.snapshot.version.schema.timestampId)
    for (let row = from; row < to; ) {
      const slot = this.#slotOf(memory.i64[(ts >>> 3) + row] as bigint, buckets)
      const end = kernels.sort.lowerBound(ts, row, to, (slot.bucket as Bucket).end)
      this.#runSlice(view, { from: row, to: end }, slot)
      row = end
    }
  }

  #runSlice(view: Piece, { from, to }: Slice, slot: Slot): void {
    const { fragment, groups, inputs } = this.#query
    if (!slot.touched) {
      fragment.init(slot.state, groups)
      slot.touched = true
      this.#touched.push(slot)
    }
    for (let row = from; row < to; row += pageRowsMax) {
      const rows = Math.min(pageRowsMax, to - row)
      const vectors: Vector[] = this.#reader.vectors(view, row, inputs.columns, true)
      inputs.bind(fragment, this.#block, vectors)
      fragment.run(this.#block, rows, slot.state, groups, this.#row + row)
      this.#order.note(slot.state, vectors, rows, this.#row + row)
    }
  }

  #endChunk(): void {
    const { fragment, groups } = this.#query
    for (const slot of this.#touched.splice(0)) {
      fragment.fold(slot.state, groups)
      fragment.merge(slot.state, slot.total, groups)
      slot.touched = false
    }
  }

  #hasRows(total: number, group: number): boolean {
    return countWord(this.#context, this.#query, total, group) !== 0
  }

  #values(total: number, group: number): Value[] {
    const { fragment, aggregates } = this.#query
    return Array.from({ length: aggregates }, (_, index) => fragment.result(total, group, index))
  }
}
