// The work of one thread in an aggregation by generated code (WebAssembly compiled for the query;
// fragment-aggregate.ts): aggregates the rows of a chunk, a range of the table's rows, into an array of accumulators,
// indexed by group, and writes it to shared memory as the chunk's result. With time buckets there is one such array for
// each bucket (a slot), else a single one.
//
// Layout of a result:
//
//   0 slot count u32 | 4 count of fresh groups u32 | 8 address of the slots u32 | 12 address of the fresh groups u32
//   slot (32 bytes)         start i64 | end i64 | address of the accumulators u32
//   fresh group (16 bytes)  group u32 | 0 | its first row f64, counted over all morsels
//
// Results list the first row of each group, by which the coordinator sorts the groups in order of first appearance. To
// save work, a thread lists only fresh groups, which it has not seen in its earlier chunks. As it takes chunks in
// ascending order, the minimum over all results is still the group's first row. A chunk that is processed again, out of
// order, lists all its groups.

import { pageRowsMax } from '../../base/limits.js'
import type { AggregateFragment } from '../../kernels/jit/jit.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { type DataType, dataType } from '../../types/column-types.js'
import type { Bucket, BucketRange, Buckets } from '../aggregate/buckets.js'
import type { DenseQuery } from '../aggregate/dense-query.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import type { ChunkWorker } from '../parallel/coordinator.js'
import { covers, type ScanMorsel } from '../scan/morsels.js'
import { orderedView } from '../scan/ordered-view.js'
import { columnsRead } from '../scan/scan-shape.js'
import { longScanMorsels, SliceReader } from '../scan/scan-slices.js'
import { type SparseRows, sparseRows } from '../scan/sparse-rows.js'
import { type ZoneMapAggregates, zoneMapAggregates } from '../scan/zone-map-aggregates.js'

/** A page of numbers takes some 20 us, so several are processed in a step: else the time between steps would matter. */
const stepRows = 8 * pageRowsMax
const headBytes = 64
const slotBytes = 32
const freshBytes = 16

/** `ts`: address of the rows' timestamps, ascending; 0: all rows are in the bucket of `minTs`, if there are buckets. */
type VisitRange = (vectors: readonly Vector[], rows: number, firstRow: number, ts: number, minTs: bigint) => void

export interface ChunkSlot {
  readonly bucket: Bucket | null
  readonly state: number
}

export interface ChunkResult {
  readonly slots: readonly ChunkSlot[]
  readonly fresh: readonly { readonly group: number; readonly row: number }[]
}

export function readChunk({ u32, i64, f64 }: SharedMemory, address: number, bucketed: boolean): ChunkResult {
  const [slotCount, freshCount, slotsAt, freshAt] = u32.subarray(address >>> 2, (address >>> 2) + 4)
  const slots = Array.from({ length: slotCount as number }, (_, index) => {
    const at = (slotsAt as number) + index * slotBytes
    const [start, end] = [i64[at >>> 3]!, i64[(at >>> 3) + 1]!]
    return { bucket: bucketed ? { start, end } : null, state: u32[(at >>> 2) + 4]! }
  })
  const fresh = Array.from({ length: freshCount as number }, (_, index) => {
    const at = (freshAt as number) + index * freshBytes
    return { group: u32[at >>> 2]!, row: f64[(at >>> 3) + 1]! }
  })
  return { slots, fresh }
}

export class DenseChunks implements ChunkWorker {
  readonly #context: ExecContext
  readonly #query: DenseQuery
  readonly #reader: SliceReader
  readonly #block: number
  readonly #firstBlock: number
  /** Accumulators for the search of first rows. */
  readonly #firstState: number
  readonly #typeOf: (columnId: number) => DataType
  /** Late materialisation for selective filters; null when it does not apply. */
  readonly #sparse: SparseRows | null
  /** Page statistics that replace reading; undefined when every morsel has to be read. */
  readonly #known: ZoneMapAggregates | undefined
  /** Columns that are read of each morsel. */
  readonly #read: readonly number[]
  readonly #spare: number[] = []
  /** The slots of the current chunk, by start of the bucket. */
  readonly #slots = new Map<bigint, ChunkSlot>()
  /** The slot of the last rows, and the stretch of its bucket that contains them. */
  #slot: ChunkSlot | null = null
  #range: BucketRange | null = null
  #unseen: number[]
  #chunk = 0
  #next = 0
  #end = 0

  constructor(context: ExecContext, query: DenseQuery) {
    const { fragment, firsts, inputs, keys, scan, groups } = query
    this.#context = context
    this.#query = query
    this.#reader = new SliceReader(
      context,
      { ...scan, filter: null },
      query.morsels.length >= longScanMorsels ? 'long' : 'cached',
    )
    this.#block = context.arena.keep(fragment.blockBytes)
    this.#firstBlock = firsts === null ? 0 : context.arena.keep(firsts.blockBytes)
    this.#firstState = firsts === null ? 0 : context.arena.keep(firsts.stateBytes(groups))
    this.#unseen = this.#allGroups()
    this.#sparse = sparseRows(context, inputs, scan, query.buckets !== null || query.grid !== null)
    this.#known = zoneMapAggregates(context.memory, fragment, inputs, scan, query.grid === null ? keys.length : 1)
    this.#read = columnsRead(scan)
    const { columns } = scan.snapshot.version.schema
    this.#typeOf = (id) => columns.find((column) => column.id === id)?.type ?? dataType('LONG')
    this.#prepare(fragment, this.#block)
    if (firsts !== null) this.#prepare(firsts, this.#firstBlock)
  }

  #prepare(code: AggregateFragment, block: number): void {
    const { inputs, keys, grid } = this.#query
    code.writeConstants(block)
    inputs.bindLookups(code, block)
    keys.forEach(({ count }, index) => code.setCount(block, index, count))
    if (grid !== null) code.setCount(block, 0, grid.count)
  }

  begin(chunk: number, again: boolean): void {
    const { chunkMorsels, morsels } = this.#query
    for (const { state } of this.#slots.values()) this.#spare.push(state)
    this.#slots.clear()
    this.#slot = null
    this.#range = null
    if (again) this.#unseen = this.#allGroups()
    this.#sparse?.begin()
    this.#chunk = chunk
    this.#next = chunk * chunkMorsels
    this.#end = Math.min(morsels.length, this.#next + chunkMorsels)
  }

  step(): boolean | 'waiting' {
    if (!this.#isReady()) return 'waiting'
    for (let rows = 0; rows < stepRows && this.#next < this.#end; ) {
      const at = this.#next++
      const morsel = this.#query.morsels[at] as ScanMorsel
      rows += morsel.rows
      if (!this.#addKnown(morsel)) this.#eachRange(at, this.#add)
    }
    return this.#next < this.#end
  }

  /** Whether the morsels of the next step can be read; they are all requested at once. */
  #isReady(): boolean {
    const { morsels } = this.#query
    let isReady = true
    for (let [at, rows] = [this.#next, 0]; rows < stepRows && at < this.#end; at++) {
      const morsel = morsels[at]
      if (morsel === undefined) break
      rows += morsel.rows
      if (this.#mayKnow(morsel) && this.#known?.statistics(morsel) !== undefined) continue
      if (!morsel.ready(this.#read)) isReady = false
    }
    return isReady
  }

  readonly #add: VisitRange = (vectors, rows, firstRow, ts, minTs) => {
    if (ts === 0) this.#run(vectors, 0, rows, firstRow, this.#slotAt(minTs))
    else this.#runBuckets(vectors, rows, firstRow, ts)
  }

  /** Whether all rows are in the same bucket. */
  #isInOneBucket({ minTs, maxTs }: Pick<ScanMorsel, 'minTs' | 'maxTs'>): boolean {
    const { buckets } = this.#query
    return buckets === null || maxTs < buckets.of(minTs).end
  }

  /**
   * Aggregates a morsel by its statistics, if it is entirely selected and in one bucket; false when it has to be read.
   */
  #addKnown(morsel: ScanMorsel): boolean {
    if (this.#known === undefined || !this.#mayKnow(morsel)) return false
    const statistics = this.#known.statistics(morsel)
    if (statistics === undefined || morsel.superseded !== 0) return false
    this.#known.add(statistics, this.#slotAt(morsel.minTs).state)
    return true
  }

  #mayKnow({ minTs, maxTs }: ScanMorsel): boolean {
    const { scan } = this.#query
    return this.#known !== undefined && covers(scan.ranges, minTs, maxTs) && this.#isInOneBucket({ minTs, maxTs })
  }

  result(): number {
    const { fragment, groups } = this.#query
    for (const { state } of this.#slots.values()) fragment.fold(state, groups)
    const fresh = this.#freshGroups()
    const { memory, arena } = this.#context
    const address = arena.take(headBytes + this.#slots.size * slotBytes + fresh.length * freshBytes)
    const slotsAt = address + headBytes
    const freshAt = slotsAt + this.#slots.size * slotBytes
    memory.u32.set([this.#slots.size, fresh.length, slotsAt, freshAt], address >>> 2)
    let at = slotsAt
    for (const { bucket, state } of this.#slots.values()) {
      memory.i64[at >>> 3] = bucket?.start ?? 0n
      memory.i64[(at >>> 3) + 1] = bucket?.end ?? 0n
      memory.u32[(at >>> 2) + 4] = state
      at += slotBytes
    }
    fresh.forEach(({ group, row }, index) => {
      memory.u32[(freshAt + index * freshBytes) >>> 2] = group
      memory.f64[((freshAt + index * freshBytes) >>> 3) + 1] = row
    })
    this.#slots.clear()
    this.#slot = null
    this.#range = null
    return address
  }

  recycle(result: number): void {
    for (const { state } of readChunk(this.#context.memory, result, false).slots) this.#spare.push(state)
    this.#context.arena.give(result)
  }

  #allGroups(): number[] {
    const { groups, keys } = this.#query
    return keys.length === 0 ? [] : Array.from({ length: groups }, (_, group) => group)
  }

  /** Visits the rows of a morsel that may be selected, at most a page at a time. */
  #eachRange(at: number, visit: VisitRange): void {
    const { scan, buckets, morsels, firstRows, inputs } = this.#query
    const morsel = morsels[at] as ScanMorsel
    const { timestampId } = scan.snapshot.version.schema
    const timed = !this.#isInOneBucket(morsel)
    const cut = !morsel.sorted && (buckets !== null || !covers(scan.ranges, morsel.minTs, morsel.maxTs))
    let view = morsel
    try {
      if (cut || morsel.superseded !== 0) view = orderedView(this.#context, morsel, timestampId, this.#typeOf)
      for (const { from, to } of this.#reader.slices(view)) {
        for (let row = from; row < to; row += pageRowsMax) {
          const rows = Math.min(pageRowsMax, to - row)
          const first = (firstRows[at] as number) + row
          const few = this.#sparse?.select(this.#reader, view, row, rows) ?? null
          if (few !== null) {
            if (few.rows > 0) visit(few.vectors, few.rows, first, timed ? few.times(timestampId) : 0, morsel.minTs)
            continue
          }
          const vectors = this.#reader.vectors(view, row, inputs.columns, true)
          visit(vectors, rows, first, timed ? view.column(timestampId) + row * 8 : 0, morsel.minTs)
        }
      }
    } finally {
      view.release()
    }
  }

  #runBuckets(vectors: readonly Vector[], rows: number, firstRow: number, ts: number): void {
    const { memory, kernels } = this.#context
    for (let row = 0; row < rows; ) {
      const slot = this.#slotOf(memory.i64[(ts >>> 3) + row]!)
      const end = kernels.sort.lowerBound(ts, row, rows, (this.#range as BucketRange).end)
      this.#run(vectors, row, end, firstRow, slot)
      row = end
    }
  }

  #run(vectors: readonly Vector[], from: number, to: number, firstRow: number, slot: ChunkSlot): void {
    const { fragment, groups, inputs } = this.#query
    inputs.bind(fragment, this.#block, vectors, from)
    fragment.run(this.#block, to - from, slot.state, groups, firstRow + from)
  }

  #slotAt(ts: bigint): ChunkSlot {
    return this.#query.buckets === null ? this.#onlySlot() : this.#slotOf(ts)
  }

  #onlySlot(): ChunkSlot {
    this.#slot ??= this.#newSlot(0n, null)
    return this.#slot
  }

  #slotOf(ts: bigint): ChunkSlot {
    const known = this.#range
    if (known !== null && this.#slot !== null && ts >= known.from && ts < known.end) return this.#slot
    this.#range = (this.#query.buckets as Buckets).of(ts)
    this.#slot = this.#slots.get(this.#range.start) ?? this.#newSlot(this.#range.start, this.#range)
    return this.#slot
  }

  #newSlot(start: bigint, bucket: Bucket | null): ChunkSlot {
    const { fragment, groups } = this.#query
    const state = this.#spare.pop() ?? this.#context.arena.keep(fragment.stateBytes(groups))
    fragment.init(state, groups)
    const slot = { bucket, state }
    this.#slots.set(start, slot)
    return slot
  }

  /**
   * Groups that had no rows before this chunk, with their first rows, found by a second pass over the chunk's morsels.
   */
  #freshGroups(): { readonly group: number; readonly row: number }[] {
    const { chunkMorsels } = this.#query
    const states = [...this.#slots.values()].map(({ state }) => state)
    const { countWord, recordWords } = countsOf(this.#query)
    const { u32 } = this.#context.memory
    let missing = this.#unseen.filter((group) =>
      states.some((state) => u32[(state >>> 2) + group * recordWords + countWord] !== 0),
    )
    if (missing.length === 0) return []
    const gone = new Set(missing)
    this.#unseen = this.#unseen.filter((group) => !gone.has(group))
    const found: { readonly group: number; readonly row: number }[] = []
    for (let at = this.#chunk * chunkMorsels; at < this.#end && missing.length > 0; at++) {
      this.#eachRange(at, (vectors, rows, firstRow) => {
        if (missing.length > 0) missing = this.#findFirsts(missing, vectors, rows, firstRow, found)
      })
    }
    return found
  }

  /** Returns the groups without rows here. */
  #findFirsts(
    missing: readonly number[],
    vectors: readonly Vector[],
    rows: number,
    firstRow: number,
    found: { readonly group: number; readonly row: number }[],
  ): number[] {
    const { firsts, inputs, groups } = this.#query
    if (firsts === null) return []
    firsts.init(this.#firstState, groups)
    inputs.bind(firsts, this.#firstBlock, vectors, 0)
    firsts.run(this.#firstBlock, rows, this.#firstState, groups, firstRow)
    firsts.fold(this.#firstState, groups)
    return missing.filter((group) => {
      const row = firsts.result(this.#firstState, group, 0)
      if (typeof row !== 'number') return true
      found.push({ group, row })
      return false
    })
  }
}

/** Position of the row count in a group's accumulators, in words: the word is not 0 if the group has rows. */
export function countsOf({ fragment, aggregates }: Pick<DenseQuery, 'fragment' | 'aggregates'>): {
  readonly countWord: number
  readonly recordWords: number
} {
  const cell = fragment.plan.record.outputs[aggregates]?.cell
  const recordWords = fragment.recordBytes >>> 2
  if (cell === undefined) return { countWord: 0, recordWords }
  // For a count stored as a double, the high word is not 0.
  const within = cell.kind === 'count' ? 0 : cell.floating ? 12 : 8
  return { countWord: (cell.offset + within) >>> 2, recordWords }
}
