// Sorts the rows of a memtable (rows in memory) for a flush: returns them in timestamp order, rows with equal
// timestamps in commit order. Leaves out rows that DEDUP or an upsert has superseded. Rows may have arrived out of
// order (O3).
//
// A row is identified by its position: block number << shift | index in the block. Sorting takes about 50 bytes a row,
// so a large memtable is first split into time slices of about sliceRowsMax rows, at quantiles of a sample. The rows of
// a slice are collected in commit order and sorted by the WebAssembly kernel, which separates late rows, radix-sorts
// them and merges them back.

import { assert } from '../../base/assert.js'
import type { SortKernel } from '../../kernels/sort.js'
import { sortScratchBytes } from '../../kernels/sort.js'
import { blockAt, blockColumn, blockCount } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { Scratch } from '../part/part-scratch.js'

/** Target number of rows of a slice. */
const sliceRowsMax = 1 << 20
const samplesMax = 65_536

interface Block {
  readonly address: number
  readonly rows: number
  /** Address of the designated timestamps; 0 without one. */
  readonly timestamps: number
  /** Address of the superseded marks (u32), or 0. */
  readonly superseded: number
}

export interface MemtableBlocks {
  readonly blocks: readonly Block[]
  readonly shift: number
  readonly rows: number
}

/** The blocks with the memtable's first `rows` rows. */
export function blocksOf(memory: SharedMemory, memtable: number, rows: number, timestampId: number): MemtableBlocks {
  const blocks: Block[] = []
  let left = rows
  let most = 1
  for (let index = 0; index < blockCount(memory, memtable) && left > 0; index++) {
    const address = blockAt(memory, memtable, index)
    const filled = Math.min(left, memory.u32[(address + 8) >>> 2]!)
    const timestamps = timestampId < 0 ? 0 : blockColumn(memory, address, timestampId)
    blocks.push({ address, rows: filled, timestamps, superseded: memory.u32[(address + 36) >>> 2]! })
    left -= filled
    most = Math.max(most, filled)
  }
  assert(left === 0, 'S2: a memtable holds the rows that are flushed')
  const shift = Math.max(1, 32 - Math.clz32(most - 1))
  assert(blocks.length * 2 ** shift <= 2 ** 32, 'K2: positions of a memtable fit 32 bits')
  return { blocks, shift, rows }
}

/** A sorted slice: addresses of positions (u32) and their timestamps (i64), valid until the next slice. */
export interface SortedSlice {
  readonly rows: number
  readonly positions: number
  readonly timestamps: number
}

/** Yields slices in time order, and undefined where the job may pause. */
export function* sortMemtable(
  kernel: SortKernel,
  scratch: Scratch,
  memtable: MemtableBlocks,
): Generator<SortedSlice | undefined, void> {
  const bounds = memtable.rows <= sliceRowsMax ? [] : yield* quantiles(scratch.memory, memtable)
  const slices = [{ from: Number.NEGATIVE_INFINITY, single: false }, ...bounds]
  for (const [index, { from: low, single }] of slices.entries()) {
    const high = slices[index + 1]?.from ?? Number.POSITIVE_INFINITY
    let rows = 0
    for (const block of memtable.blocks.keys()) {
      if (single && rows + (memtable.blocks[block] as Block).rows > sliceRowsMax) {
        yield inOrder(scratch, rows)
        rows = 0
      }
      rows += collect(scratch, memtable, block, rows, { low, high, rows: memtable.rows })
      yield
    }
    if (rows > 0) yield single ? inOrder(scratch, rows) : sortSlice(kernel, scratch, rows)
  }
}

/** First timestamp of a slice. `single`: all its rows have this timestamp, so commit order is right for any number. */
interface SliceBound {
  readonly from: number
  readonly single: boolean
}

/** Upper bound of the bytes that sorting takes. */
export function sorterBytes(rows: number): number {
  const slice = Math.min(rows, sliceRowsMax * 1.5)
  return sortScratchBytes(slice) + slice * (8 + 8 + 4 + 4 + 4) + 64 * 1024
}

/** Ascending timestamps that split the memtable into slices of probably fewer than sliceRowsMax rows. */
function* quantiles(memory: SharedMemory, { blocks, rows }: MemtableBlocks): Generator<undefined, SliceBound[]> {
  const step = Math.ceil(rows / samplesMax)
  const samples: number[] = []
  for (const { timestamps, rows: filled } of blocks) {
    for (let row = 0; row < filled; row += step) samples.push(timestampAt(memory, timestamps, row))
    yield
  }
  const sorted = Float64Array.from(samples).sort()
  const count = Math.ceil(rows / (sliceRowsMax * 0.8))
  const bounds = new Map<number, SliceBound>()
  const add = (from: number, single: boolean) => {
    if (single || !bounds.has(from)) bounds.set(from, { from, single })
  }
  for (let slice = 1; slice < count; slice++) {
    const value = sorted[Math.floor((sorted.length * slice) / count)]!
    // A timestamp with many rows gets a slice of its own.
    const heavy = Math.abs(value) < 2 ** 53 && occurrences(sorted, value) > sorted.length / (count * 4)
    add(value, heavy)
    if (heavy) add(value + 1, false)
  }
  return [...bounds.values()].sort((a, b) => a.from - b.from)
}

function occurrences(sorted: Float64Array, value: number): number {
  const first = sorted.indexOf(value)
  return first < 0 ? 0 : sorted.lastIndexOf(value) - first + 1
}

/** The timestamp rounded to a double. This preserves the order, so it suffices to choose a slice. */
function timestampAt(memory: SharedMemory, timestamps: number, row: number): number {
  const at = (timestamps >>> 2) + row * 2
  return memory.i32[at + 1]! * 2 ** 32 + memory.u32[at]!
}

interface SliceLimits {
  readonly low: number
  readonly high: number
  /** Rows of the memtable that are flushed. Marks that refer to later rows are ignored. */
  readonly rows: number
}

/** Appends timestamps and positions of the block's current rows within the limits; returns their number. */
function collect(
  scratch: Scratch,
  { blocks, shift, rows: all }: MemtableBlocks,
  index: number,
  rows: number,
  limits: SliceLimits,
): number {
  const block = blocks[index] as Block
  const everything = limits.low === Number.NEGATIVE_INFINITY && limits.high === Number.POSITIVE_INFINITY
  // The buffers grow by the size of the block and keep what was collected.
  const room = Math.min(all, Math.max(rows + block.rows, sliceRowsMax))
  const timestamps = scratch.room('sortTimestamps', room * 8, rows * 8) + rows * 8
  const positions = scratch.room('sortPositions', room * 4, rows * 4) + rows * 4
  const first = index * 2 ** shift
  if (everything && block.superseded === 0) {
    copyBlock(scratch.memory, block, first, { timestamps, positions })
    return block.rows
  }
  return filterBlock(scratch.memory, block, first, { timestamps, positions }, limits)
}

interface CollectTarget {
  readonly timestamps: number
  readonly positions: number
}

function copyBlock(memory: SharedMemory, block: Block, first: number, target: CollectTarget): void {
  memory.u8.copyWithin(target.timestamps, block.timestamps, block.timestamps + block.rows * 8)
  const at = target.positions >>> 2
  for (let row = 0; row < block.rows; row++) memory.u32[at + row] = first + row
}

/** Appends the rows that are not superseded and within the bounds; returns their number. */
function filterBlock(
  memory: SharedMemory,
  block: Block,
  first: number,
  target: CollectTarget,
  bounds: SliceLimits,
): number {
  const { u32 } = memory
  const from = block.timestamps >>> 2
  const marks = block.superseded >>> 2
  const [timestamps, positions] = [target.timestamps >>> 2, target.positions >>> 2]
  let count = 0
  for (let row = 0; row < block.rows; row++) {
    const mark = marks === 0 ? 0 : u32[marks + row]!
    if (mark !== 0 && mark <= bounds.rows) continue
    const ts = timestampAt(memory, block.timestamps, row)
    if (ts < bounds.low || ts >= bounds.high) continue
    u32[timestamps + count * 2] = u32[from + row * 2]!
    u32[timestamps + count * 2 + 1] = u32[from + row * 2 + 1]!
    u32[positions + count] = first + row
    count++
  }
  return count
}

function inOrder(scratch: Scratch, rows: number): SortedSlice {
  const timestamps = scratch.room('sortTimestamps', rows * 8, rows * 8)
  return { rows, positions: scratch.room('sortPositions', rows * 4, rows * 4), timestamps }
}

function sortSlice(kernel: SortKernel, scratch: Scratch, rows: number): SortedSlice {
  const timestamps = scratch.room('sortTimestamps', rows * 8, rows * 8)
  const positions = scratch.room('sortPositions', rows * 4, rows * 4)
  assert(rows > 0, 'F2: a slice has rows')
  const bytes = sortScratchBytes(rows)
  const order = scratch.room('sortOrder', rows * 4)
  const done = kernel.sortPermutation(timestamps, rows, scratch.room('sortWork', bytes), bytes, order)
  assert(done >= 0, 'K2: the sorter has room')
  scratch.drop('sortWork')
  if (done === 1) return { rows, positions, timestamps }
  const sortedPositions = scratch.room('sortedPositions', rows * 4)
  const sortedTimestamps = scratch.room('sortedTimestamps', rows * 8)
  kernel.gather(4, positions, order, rows, sortedPositions)
  kernel.gather(8, timestamps, order, rows, sortedTimestamps)
  return { rows, positions: sortedPositions, timestamps: sortedTimestamps }
}
