// Operator: table scan in timestamp order; rows with equal timestamps are in commit order. A descending scan reverses
// both. It merges streams, each of which is a list of morsels that do not overlap in time (streams.ts).
//
// Each step begins with the stream whose next row is the first in output order. Its rows that precede the rows of all
// other streams are returned without a merge. If these rows are few (sliceRowsMin), all streams that overlap the
// stream's current morsel are merged up to a bound: where the first of their current morsels ends. Several streams may
// have rows with exactly the timestamp of the bound, and the stream whose morsel ends there may have more of them in
// its next morsel. So of these rows, only those of this stream and of streams that precede it in output order are
// returned; the others wait.

import { dictionariesOf } from '../../storage/schema/schema.js'
import { type DataType, widthOf } from '../../types/column-types.js'
import { contains } from '../../types/interval.js'
import type { ExecContext } from '../batch/context.js'
import { dictionaryColumn } from '../batch/dictionary-strings.js'
import { GatheredBatch } from '../batch/selection.js'
import { rowsFor } from '../batch/small-batches.js'
import { type Batch, batchRowsMax, isBatch, type Operator, type Pull, type Vector } from '../batch/vector.js'
import { compileFilter, type FilterInput, type RowFilter } from '../expression/row-filter.js'
import { type IndexedRows, indexedRows, passingOf, sparseShare } from './indexed-rows.js'
import { rowCount, type ScanMorsel } from './morsels.js'
import { type MergedRows, mergeRows } from './scan-merge.js'
import type { ScanCount } from './scan-progress.js'
import { columnsRead, type ScanShape } from './scan-shape.js'
import { type SkipTest, type Stream, streamsOf } from './streams.js'
import { type SearchedKeys, wantedKeys } from './wanted-keys.js'
import { scanRuns } from './zones.js'

/** Bytes of the widest values. */
const widestBytes = 32
/** Fewer rows than this are merged rather than returned as a batch of their own. */
const sliceRowsMin = 256
/** First batch of a descending scan: small, because rows have to be reversed and often only the newest are needed. */
const firstBatchRows = 256

/**
 * After this many steps, about a million rows, a scan that was expected to end early is replaced by a parallel one over
 * all rows.
 */
export const shortWalkSteps = 64

/** `skips` tells which morsels need not be read; it is called just before they are. */
export function orderedScanOperator(
  context: ExecContext,
  wanted: ScanShape,
  descending: boolean,
  skips: SkipTest = () => false,
): Operator {
  const shape = withTimestamp(wanted)
  const width = wanted.columnIds.length
  const simple = shape.ranges === null || shape.ranges.length === 1
  const own = shape.filter === null ? null : compileFilter(context, shape.filter, filterInput(shape))
  const merge = new StreamMerge(context, shape, { descending, skips, filter: simple ? own : null })
  context.onEnd(() => merge.close())
  const filter = restriction(context, shape, own)
  const gathered = new GatheredBatch(context, shape.types)
  const index = context.arena.take(batchRowsMax * 4)
  const pull = (): Pull => {
    const batch = merge.pull()
    if (!isBatch(batch) || filter === null || merge.filtered) return batch
    const count = filter(batch, index)
    if (count === 0) return 'working'
    const { rows, vectors } = count === batch.rows ? batch : gathered.gather(batch.vectors, index, count)
    return { rows, vectors: vectors.length === width ? vectors : vectors.slice(0, width) }
  }
  const goIdle = (): void => {
    merge.goIdle()
    gathered.clear()
  }
  return { pull, goIdle }
}

/** Several time ranges are checked row by row, so the timestamp is read even if it is not selected. */
function withTimestamp(shape: ScanShape): ScanShape {
  const { columnIds, types, ranges, snapshot } = shape
  const { timestampId, columns } = snapshot.version.schema
  if (ranges === null || ranges.length < 2 || columnIds.includes(timestampId)) return shape
  const type = columns.find(({ id }) => id === timestampId)?.type
  return type === undefined ? shape : { ...shape, columnIds: [...columnIds, timestampId], types: [...types, type] }
}

/** Selects rows by the filter, and by the ranges if there are several; the streams apply the outer bounds. */
function restriction(
  context: ExecContext,
  shape: ScanShape,
  filter: RowFilter | null,
): ((batch: Batch, out: number) => number) | null {
  const { ranges } = shape
  if (ranges === null || ranges.length === 1) {
    return filter === null ? null : ({ rows, vectors }, out) => filter.select(vectors, rows, out)
  }
  const column = shape.columnIds.indexOf(shape.snapshot.version.schema.timestampId)
  const { u32, i64 } = context.memory
  return ({ rows, vectors }, out) => {
    const ts = (vectors[column] as Vector).address >>> 3
    let count = filter === null ? rows : filter.select(vectors, rows, out)
    if (filter === null) context.kernels.sort.identity(rows, out)
    const candidates = count
    count = 0
    for (let at = out >>> 2; at < (out >>> 2) + candidates; at++) {
      const row = u32[at]!
      if (contains(ranges, i64[ts + row]!)) u32[(out >>> 2) + count++] = row
    }
    return count
  }
}

function filterInput({ snapshot, columnIds, types }: ScanShape): FilterInput {
  const dictionaries = dictionariesOf(snapshot.version)
  return { types, dictionaryOf: (column) => dictionaries.get(columnIds[column] as number) ?? 0 }
}

interface Merging {
  readonly morsels: readonly ScanMorsel[]
  readonly firsts: readonly number[]
  /** In output order. */
  readonly merged: MergedRows
  next: number
}

interface MergeOptions {
  readonly descending: boolean
  readonly skips: SkipTest
  /** Applied to rows that are returned without a merge, before their other columns are read. */
  readonly filter: RowFilter | null
}

class StreamMerge {
  /** Whether the filter has been applied to the last batch. */
  filtered = false

  readonly #context: ExecContext
  readonly #shape: ScanShape
  readonly #descending: boolean
  readonly #skips: SkipTest
  readonly #dictionaries: readonly number[]
  readonly #columnIds: readonly number[]
  /** Columns that are read of each morsel. */
  readonly #read: readonly number[]
  readonly #types: readonly DataType[]
  #streams: Stream[] | null = null
  #count: ScanCount | null = null
  #merging: Merging | null = null
  /** Consecutive rows of one stream that are returned without a merge. */
  #run: { readonly stream: Stream; rows: number } | null = null
  readonly #out: GatheredBatch
  readonly #reversed: number
  /** Maximal rows of the next batch; doubles with each batch. */
  #batchRows: number
  readonly #batchRowsMax: number
  readonly #filter: RowFilter | null
  readonly #indexed: IndexedRows | null
  /** Buffer for values before they are reversed; 0 if not allocated yet. */
  #ascending = 0
  readonly #keys: SearchedKeys | null
  /** Row numbers that passed the filter. */
  readonly #passed: number
  /** Row numbers that an index lists and that passed; 0 if not allocated yet. */
  #retained = 0

  constructor(context: ExecContext, shape: ScanShape, { descending, skips, filter }: MergeOptions) {
    this.#skips = skips
    this.#filter = filter
    this.#indexed = filter === null ? null : indexedRows(context, shape)
    this.#keys = wantedKeys(context, shape)
    this.#passed = filter === null ? 0 : context.arena.take(batchRowsMax * 4)
    this.#context = context
    this.#shape = shape
    this.#descending = descending
    const dictionaries = dictionariesOf(shape.snapshot.version)
    this.#columnIds = shape.columnIds
    this.#read = columnsRead(shape)
    this.#types = shape.types
    this.#out = new GatheredBatch(context, shape.types)
    this.#dictionaries = shape.columnIds.map((id) => dictionaries.get(id) ?? 0)
    this.#batchRowsMax = Math.min(context.streamRows ?? batchRowsMax, rowsFor(shape.types.length))
    this.#batchRows = descending && filter === null ? firstBatchRows : this.#batchRowsMax
    this.#reversed = descending ? context.arena.take(batchRowsMax * 4) : 0
  }

  close(): void {
    for (const stream of this.#streams ?? []) stream.close()
    this.#streams = []
    if (this.#count !== null) this.#context.progress?.end(this.#count)
  }

  goIdle(): void {
    this.#out.clear()
    if (this.#merging === null) for (const stream of this.#streams ?? []) stream.goIdle()
  }

  pull(): Pull {
    this.filtered = false
    if (this.#merging !== null) return this.#mergedBatch(this.#merging)
    if (this.#run !== null) return this.#runBatch(this.#run)
    return this.#step()
  }

  #begin(): Stream[] {
    const { snapshot, ranges } = this.#shape
    const { schema } = snapshot.version
    const runs = scanRuns(this.#context, this.#shape, this.#keys)
    const count = this.#context.progress?.begin(snapshot, rowCount(runs)) ?? null
    this.#count = count
    return streamsOf(runs, {
      context: this.#context,
      timestampId: schema.timestampId,
      ranges,
      typeOf: (columnId) => this.#typeOf(columnId),
      descending: this.#descending,
      skips: this.#skips,
      passed: (rows) => {
        if (count !== null) count.read += rows
      },
    })
  }

  #typeOf(columnId: number): DataType {
    const { columnIds, snapshot } = this.#shape
    const read = columnIds.indexOf(columnId)
    if (read >= 0) return this.#types[read] as DataType
    return snapshot.version.schema.columns.find(({ id }) => id === columnId)?.type as DataType
  }

  /** Determines which rows are returned next; null at the end. */
  #step(): 'working' | 'waiting' | null {
    this.#streams ??= this.#begin()
    this.#streams = this.#streams.filter((stream) => stream.settle())
    const streams = this.#streams
    if (streams.length === 0) return null
    if (this.#shape.snapshot.version.schema.timestampId < 0) return this.#unordered(streams)
    const leader = this.#leader(streams)
    if (leader === null || leader === 'waiting') return leader ?? 'working'
    const others = streams.filter((stream) => stream !== leader)
    if (others.length === 0) return this.#startRun(leader, leader.to - leader.from)
    const alone = this.#rowsAlone(leader, streams)
    if (alone >= Math.min(sliceRowsMin, leader.to - leader.from)) return this.#startRun(leader, alone)
    return this.#startMerge(leader, streams)
  }

  /** Without a designated timestamp, streams are returned one after the other, in commit order. */
  #unordered(streams: readonly Stream[]): 'working' | 'waiting' {
    const stream = (this.#descending ? streams[streams.length - 1] : streams[0]) as Stream
    if (!stream.ready(this.#read)) return 'waiting'
    stream.open()
    return stream.from >= stream.to ? 'working' : this.#startRun(stream, stream.to - stream.from)
  }

  #startRun(stream: Stream, rows: number): 'working' {
    this.#run = { stream, rows }
    return 'working'
  }

  /** Whether a comes strictly before b in output order. */
  #before(a: bigint, b: bigint): boolean {
    return this.#descending ? a > b : a < b
  }

  /** The stream with the first row, opened; null when it has no rows in its current morsel. */
  #leader(streams: readonly Stream[]): Stream | 'waiting' | null {
    for (;;) {
      let best = (this.#descending ? streams[streams.length - 1] : streams[0]) as Stream
      let bestHead = best.head
      for (const stream of streams) {
        const head = stream.head
        if (this.#before(head, bestHead)) {
          best = stream
          bestHead = head
        }
      }
      // After a pause the timestamps of an open morsel are read again.
      if (!best.ready(this.#read)) return 'waiting'
      if (best.morsel !== null) return best
      best.open()
      if (best.from >= best.to) return null
    }
  }

  /** Number of the leader's rows that come before all rows of the other streams. */
  #rowsAlone(leader: Stream, streams: readonly Stream[]): number {
    let rows = leader.to - leader.from
    const place = streams.indexOf(leader)
    const { tail } = leader
    streams.forEach((stream, index) => {
      if (stream === leader || this.#before(tail, stream.head)) return
      const first = this.#descending ? index < place : index > place
      rows = Math.min(rows, leader.rowsUntil(stream.head, first))
    })
    return rows
  }

  #startMerge(leader: Stream, streams: readonly Stream[]): 'working' | 'waiting' {
    let bounding = leader
    let bound = leader.tail
    const meeting = streams.filter((stream) => stream !== leader && !this.#before(bound, stream.head))
    if (meeting.filter((stream) => !stream.ready(this.#read)).length > 0) return 'waiting'
    const active = new Set([leader])
    for (const stream of streams) {
      if (stream === leader || this.#before(bound, stream.head)) continue
      stream.open()
      if (stream.from >= stream.to) continue
      active.add(stream)
      if (this.#before(stream.tail, bound)) bound = stream.tail
    }
    const ordered = streams.filter((stream) => active.has(stream))
    const candidates = ordered.filter((stream) => stream.tail === bound)
    bounding = (this.#descending ? candidates[candidates.length - 1] : candidates[0]) as Stream
    const place = ordered.indexOf(bounding)
    const taken = ordered.map((stream, index) => {
      const rows = stream.rowsUntil(bound, this.#descending ? index >= place : index <= place)
      return { stream, morsel: stream.morsel as ScanMorsel, rows, first: stream.take(rows) }
    })
    this.#merge(taken.filter(({ rows }) => rows > 0))
    return 'working'
  }

  #merge(taken: readonly { stream: Stream; morsel: ScanMorsel; rows: number; first: number }[]): void {
    const merged = mergeRows(
      this.#context,
      taken.map(({ stream, first, rows }) => ({ ts: stream.ts + first * 8, rows })),
      this.#descending,
    )
    const morsels = taken.map(({ morsel }) => morsel)
    this.#merging = { morsels, firsts: taken.map(({ first }) => first), merged, next: 0 }
  }

  #mergedBatch(merging: Merging): Pull {
    const rows = Math.min(this.#batchRowsMax, merging.merged.rows - merging.next)
    if (rows > 0 && merging.morsels.filter((morsel) => !morsel.ready(this.#read)).length > 0) return 'waiting'
    if (rows === 0) {
      merging.merged.free()
      this.#merging = null
      return 'working'
    }
    const vectors = this.#types.map((type, column) => this.#mergedColumn(merging, type, column, rows))
    merging.next += rows
    return { rows, vectors }
  }

  #mergedColumn({ morsels, firsts, merged, next }: Merging, type: DataType, column: number, rows: number): Vector {
    const width = widthOf(type)
    const sources = morsels.map((morsel, index) => {
      const address = morsel.column(this.#columnIds[column] as number)
      return address === 0 ? this.#nulls(column) : address + (firsts[index] as number) * width
    })
    const out = this.#output(column, rows)
    merged.gather(width, sources, next, rows, out)
    return { type, address: out, dictionary: this.#dictionaries[column] as number }
  }

  /** NULLs for a whole morsel, because merged rows are addressed by their number within the morsel. */
  #nulls(column: number): number {
    return this.#context.arena.pageOfNulls(this.#types[column] as DataType)
  }

  #output(column: number, rows: number): number {
    return this.#out.room(column, rows)
  }

  #runBatch(run: { readonly stream: Stream; rows: number }): Pull {
    // The rows returned so far may have made the rest of the morsel unnecessary.
    if (run.rows > 0 && this.#skips(run.stream.morsel as ScanMorsel)) {
      run.stream.take(run.rows)
      run.rows = 0
    }
    const rows = Math.min(this.#batchRows, run.rows)
    if (rows > 0 && !run.stream.ready(this.#read)) return 'waiting'
    this.#batchRows = Math.min(this.#batchRowsMax, this.#batchRows * 2)
    if (rows === 0) {
      this.#run = null
      return 'working'
    }
    run.rows -= rows
    const morsel = run.stream.morsel as ScanMorsel
    const first = run.stream.take(rows)
    if (this.#filter !== null) {
      const passed = this.#passing(this.#filter, morsel, first, rows)
      if (passed < rows) return this.#passedBatch(morsel, first, passed, rows)
      this.filtered = true
    }
    if (this.#descending) this.#reverse(rows)
    const vectors = this.#types.map((type, column) => this.#runColumn(morsel, first, rows, type, column))
    return { rows, vectors }
  }

  #passing(filter: RowFilter, morsel: ScanMorsel, first: number, rows: number): number {
    const values = (column: number, count: number): Vector =>
      this.#fewOf(morsel, first, column, count, this.#output(column, count))
    const indexed = this.#indexed?.select(morsel, first, rows, this.#passed, values) ?? -1
    if (indexed >= 0) return indexed
    const listed = this.#keys?.select(morsel, first, rows, this.#passed) ?? -1
    if (listed >= 0) {
      if (this.#retained === 0) this.#retained = this.#context.arena.take(batchRowsMax * 4)
      const found = { out: this.#passed, count: listed, retained: this.#retained }
      return passingOf(this.#context.kernels, filter, found, values)
    }
    const vectors: Vector[] = []
    for (const column of filter.columns) vectors[column] = this.#plainColumn(morsel, first, column)
    const count = filter.select(vectors, rows, this.#passed)
    if (first === 0 && count * sparseShare <= rows) this.#keys?.keep(morsel)
    return count
  }

  #passedBatch(morsel: ScanMorsel, first: number, count: number, rows: number): Pull {
    if (count === 0) return 'working'
    const sparse = count * sparseShare <= rows
    const { u32 } = this.#context.memory
    if (this.#descending && sparse) this.#reverse(count)
    else if (this.#descending) u32.subarray(this.#passed >>> 2, (this.#passed >>> 2) + count).reverse()
    this.filtered = true
    const vectors = this.#types.map((_, column) => {
      if (!sparse) return this.#gathered(morsel, first, column, count, this.#output(column, count))
      return this.#descending
        ? this.#fewReversed(morsel, first, column, count)
        : this.#fewOf(morsel, first, column, count, this.#output(column, count))
    })
    return { rows: count, vectors }
  }

  /** A column of the rows that passed, in their order. */
  #gathered(morsel: ScanMorsel, first: number, column: number, count: number, address: number): Vector {
    const type = this.#types[column] as DataType
    const plain = this.#plainColumn(morsel, first, column)
    this.#context.kernels.sort.gather(widthOf(type), plain.address, this.#passed, count, address)
    return { type, address, dictionary: this.#dictionaries[column] as number }
  }

  /** The same for few rows in ascending order: read from the encoded page if possible. */
  #fewOf(morsel: ScanMorsel, first: number, column: number, count: number, address: number): Vector {
    if (!morsel.pick(this.#columnIds[column] as number, this.#passed, first, count, address))
      return this.#gathered(morsel, first, column, count, address)
    return { type: this.#types[column] as DataType, address, dictionary: this.#dictionaries[column] as number }
  }

  #fewReversed(morsel: ScanMorsel, first: number, column: number, count: number): Vector {
    if (this.#ascending === 0) this.#ascending = this.#context.arena.take((batchRowsMax / sparseShare) * widestBytes)
    const { type, dictionary } = this.#fewOf(morsel, first, column, count, this.#ascending)
    const address = this.#output(column, count)
    this.#context.kernels.sort.gather(widthOf(type), this.#ascending, this.#reversed, count, address)
    return { type, address, dictionary }
  }

  /** The column as the morsel has it. */
  #plainColumn(morsel: ScanMorsel, first: number, column: number): Vector {
    const type = this.#types[column] as DataType
    const columnId = this.#columnIds[column] as number
    const encoded = dictionaryColumn(morsel, columnId, type, first)
    if (encoded !== undefined) return encoded
    const source = morsel.column(columnId)
    const address = source === 0 ? this.#context.arena.nulls(type) : source + first * widthOf(type)
    return { type, address, dictionary: this.#dictionaries[column] as number }
  }

  #reverse(rows: number): void {
    const { u32 } = this.#context.memory
    const last = rows - 1
    for (let row = 0; row < rows; row++) u32[(this.#reversed >>> 2) + row] = last - row
  }

  #runColumn(morsel: ScanMorsel, first: number, rows: number, type: DataType, column: number): Vector {
    const plain = this.#plainColumn(morsel, first, column)
    if (!this.#descending) return plain
    const address = this.#output(column, rows)
    this.#context.kernels.sort.gather(widthOf(type), plain.address, this.#reversed, rows, address)
    return { ...plain, address }
  }
}
