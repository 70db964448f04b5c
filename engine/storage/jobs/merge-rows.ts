// The merge step of a compaction: merges the rows of several sorted inputs by timestamp. First it computes the order,
// as an array with one byte (a choice) for each row: the number of the input that the row comes from. As every input is
// read sequentially, these bytes determine the whole merge. A bit of the choice marks rows to be left out, such as
// those that upserts have removed. Then the step gathers the values column by column in that order.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { widthOf } from '../../types/column-types.js'
import { marksOf } from '../memtable/removed-rows.js'
import { mappingOf } from '../part/parquet-types.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import type { Scratch } from '../part/part-scratch.js'
import type { RowSource } from '../part/part-writer.js'
import type { ColumnSchema, TableVersion } from '../schema/schema.js'
import type { CompactionInput } from './merge-slices.js'
import { type JobTools, symbolStrings } from './part-job.js'

/** Bit of a choice: the input's next row is superseded and is skipped. */
export const dropped = 0x80

export interface Choices {
  /** Address of one byte per row of the inputs, dropped rows included. */
  readonly address: number
  readonly count: number
  /** Rows that are not dropped. */
  readonly rows: number
}

interface RowTools extends JobTools {
  readonly parts: PartAccess
}

const chunkRows = 65_536

/** Orders the rows by timestamp, ties by input. Without a designated timestamp the inputs are concatenated. */
export function* mergeChoices(
  tools: RowTools,
  scratch: Scratch,
  inputs: readonly CompactionInput[],
  timestampId: number,
): Generator<undefined, Choices> {
  const count = inputs.reduce((sum, { rows }) => sum + rows, 0)
  const address = scratch.room('choices', count)
  const { memory, kernels } = tools
  if (timestampId < 0) {
    let at = address
    for (const [input, { rows }] of inputs.entries()) {
      memory.u8.fill(input, at, at + rows)
      at += rows
    }
    return { address, count, rows: count }
  }
  const runs = yield* loadTimestamps(tools, scratch, inputs, timestampId, count)
  const outRow = scratch.room('mergeRows', chunkRows * 4)
  for (let done = 0; done < count; ) {
    const taken = kernels.sort.mergeRuns(runs, inputs.length, Math.min(chunkRows, count - done), address + done, outRow)
    assert(taken > 0, 'S2: a merge takes every row')
    done += taken
    yield
  }
  for (const name of ['mergeTimestamps', 'mergeRuns', 'mergeRows']) scratch.drop(name)
  return { address, count, rows: count }
}

/** Copies the timestamps of each input into contiguous memory, and builds the kernel's RUN structures for them. */
function* loadTimestamps(
  { memory, parts }: RowTools,
  scratch: Scratch,
  inputs: readonly CompactionInput[],
  timestampId: number,
  count: number,
): Generator<undefined, number> {
  const runs = scratch.room('mergeRuns', inputs.length * 16)
  let target = scratch.room('mergeTimestamps', count * 8)
  for (const [input, { handle, first, rows }] of inputs.entries()) {
    memory.u32.set([target, rows, 0, 0], (runs >>> 2) + input * 4)
    for (let page = 0; page < handle.pageCount; page++) {
      const pageFirst = handle.firstRows[page]!
      const from = Math.max(first, pageFirst)
      const to = Math.min(first + rows, handle.firstRows[page + 1]!)
      if (from >= to) continue
      const address = parts.pin(handle, timestampId, page)
      memory.u8.copyWithin(target, address + (from - pageFirst) * 8, address + (to - pageFirst) * 8)
      parts.unpin(address)
      target += (to - from) * 8
      yield
    }
  }
  return runs
}

/** The rows of each input that precede the slice. */
export function sliceStart(inputs: readonly CompactionInput[]): Uint32Array {
  return Uint32Array.from(inputs, ({ first }) => first)
}

/** Position in the merge: how many rows of each input were consumed. */
interface Cursor {
  /** Number of the next output row. */
  row: number
  choice: number
  readonly consumed: Uint32Array
}

export interface MergeSource extends RowSource {
  /** Unpins the pages of the last read. */
  release(): void
}

export function mergeSource(
  tools: RowTools,
  scratch: Scratch,
  inputs: readonly CompactionInput[],
  version: TableVersion,
  choices: Choices,
): MergeSource {
  const { memory } = tools
  const handles = inputs.map(({ handle }) => handle)
  const saved: Cursor[] = [{ row: 0, choice: 0, consumed: sliceStart(inputs) }]
  const pins = new PagePins(tools.parts, handles)
  let cursor = copyOf(saved[0] as Cursor)

  /** Moves to an output row. Saves the position every chunkRows rows, since each column is read from the beginning. */
  function seek(row: number): void {
    assert(row <= choices.rows, 'F2: a page of the merged rows is read')
    if (cursor.row > row) {
      const near = saved.findLast((place) => place.row <= row)
      cursor = copyOf(near as Cursor)
    }
    while (cursor.row < row) step(memory.u8, choices, cursor)
    if (row >= (saved.at(-1) as Cursor).row + chunkRows) saved.push(copyOf(cursor))
  }

  function read(column: ColumnSchema, first: number, count: number): number {
    seek(first)
    pins.begin(column.id)
    const positions = scratch.room('positions', count * 4)
    for (let i = 0; i < count; i++) {
      const input = step(memory.u8, choices, cursor)
      memory.u32[(positions >>> 2) + i] = pins.position(input, cursor.consumed[input]! - 1)
    }
    return gather(tools, scratch, column, pins, positions, count)
  }

  return {
    rows: choices.rows,
    has: (columnId) => handles.some(({ descriptor }) => descriptor.columnIds.includes(columnId)),
    read,
    symbol: symbolStrings(memory, version),
    release: () => pins.begin(-1),
  }
}

function copyOf({ row, choice, consumed }: Cursor): Cursor {
  return { row, choice, consumed: consumed.slice() }
}

/** Consumes the next row that is not dropped; returns its input. */
function step(u8: Uint8Array, { address, count }: Choices, cursor: Cursor): number {
  for (;;) {
    assert(cursor.choice < count, 'S2: a merge reads no further than its inputs')
    const choice = u8[address + cursor.choice++]!
    const input = choice & ~dropped
    cursor.consumed[input] = cursor.consumed[input]! + 1
    if (choice >= dropped) continue
    cursor.row++
    return input
  }
}

/** Bits of a position that hold the row within its page; the bits above them are the index of the pinned page. */
const pageShift = 16

/** The pinned pages of one column that the current read needs, indexed in the order of their first use. */
class PagePins {
  /** Address of each pinned page; 0 if the part does not have the column. */
  readonly addresses: number[] = []
  private readonly parts: PartAccess
  private readonly handles: readonly PartHandle[]
  private columnId = -1
  /** By input: its current page, the index of that page in `addresses`, and the rows that the page covers. */
  private readonly pages: { page: number; number: number; first: number; end: number }[]

  constructor(parts: PartAccess, handles: readonly PartHandle[]) {
    this.parts = parts
    this.handles = handles
    this.pages = handles.map(() => ({ page: 0, number: -1, first: 0, end: 0 }))
  }

  /** Unpins all pages, so the address that the last read returned becomes invalid. */
  begin(columnId: number): void {
    for (const address of this.addresses) this.parts.unpin(address)
    this.addresses.length = 0
    for (const place of this.pages) place.end = 0
    if (columnId !== this.columnId) for (const place of this.pages) place.page = 0
    this.columnId = columnId
  }

  position(input: number, row: number): number {
    const place = this.pages[input] as (typeof this.pages)[number]
    if (row >= place.end || row < place.first) this.turn(input, row)
    return place.number * 2 ** pageShift + row - place.first
  }

  private turn(input: number, row: number): void {
    const place = this.pages[input] as (typeof this.pages)[number]
    const { firstRows } = this.handles[input] as PartHandle
    if (firstRows[place.page]! > row) place.page = 0
    while (firstRows[place.page + 1]! <= row) place.page++
    place.first = firstRows[place.page]!
    place.end = firstRows[place.page + 1]!
    assert(row < place.end, 'F2: a row is in its page')
    place.number = this.addresses.length
    this.addresses.push(this.parts.pin(this.handles[input] as PartHandle, this.columnId, place.page))
  }
}

/** Address of the values at the positions: in the page if they are contiguous there, else gathered. */
function gather(
  { memory, kernels }: RowTools,
  scratch: Scratch,
  { type }: ColumnSchema,
  pins: PagePins,
  positions: number,
  count: number,
): number {
  const width = widthOf(type)
  if (pins.addresses.every((address) => address === 0)) return 0
  if (pins.addresses.length === 1) {
    const first = memory.u32[positions >>> 2]!
    const last = memory.u32[(positions >>> 2) + count - 1]!
    if (last - first === count - 1) return (pins.addresses[0] as number) + first * width
  }
  const bases = scratch.room('bases', pins.addresses.length * 4)
  memory.u32.set(pins.addresses, bases >>> 2)
  const target = scratch.room('gathered', count * width)
  const { nullKind } = mappingOf(type)
  kernels.parquet.gatherBlocks(positions, count, pageShift, bases, width, nullKind, target)
  return target
}

const rowsPerStep = 65_536

/**
 * Marks the rows that upserts have removed from the inputs (memtable/removed-rows.ts) as dropped. Returns the choices
 * with the new row count, which may be 0.
 */
export function* removedChoices(
  { u8, u32 }: SharedMemory,
  inputs: readonly CompactionInput[],
  version: TableVersion,
  choices: Choices,
): Generator<undefined, Choices> {
  const marks = inputs.map(({ handle }) => marksOf(version, handle.descriptor.id) >>> 2)
  if (marks.every((address) => address === 0)) return choices
  const consumed = sliceStart(inputs)
  let { rows } = choices
  for (let at = 0; at < choices.count; at++) {
    const choice = u8[choices.address + at]!
    const input = choice & ~dropped
    const row = consumed[input]!
    consumed[input] = row + 1
    const first = marks[input]!
    if (choice < dropped && first !== 0 && u32[first + row] !== 0) {
      u8[choices.address + at] = input | dropped
      rows--
    }
    if (at % rowsPerStep === rowsPerStep - 1) yield
  }
  assert(rows >= 0, 'S2: a row is removed once')
  return { ...choices, rows }
}
