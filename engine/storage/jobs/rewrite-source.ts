// Reads the rows of a part (Parquet file) as an UPDATE, DELETE or ALTER COLUMN TYPE leaves them: the pages of the old
// part without the deleted rows, and with the new values. The part writer takes its rows from here, column by column.

import { assert } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { widthOf } from '../../types/column-types.js'
import { fillNull } from '../memtable/memtable-values.js'
import type { PartAccess, PartHandle } from '../part/part-access.js'
import type { Scratch } from '../part/part-scratch.js'
import type { RowSource } from '../part/part-writer.js'
import type { ColumnSchema } from '../schema/schema.js'
import type { ChangeList } from './rewrite-changes.js'

export interface RewriteInput {
  readonly memory: SharedMemory
  readonly parts: PartAccess
  readonly scratch: Scratch
  readonly handle: PartHandle
  /** The new values; null if no row is updated. */
  readonly changes: ChangeList | null
  /** Row numbers that are kept; null if all are. */
  readonly retained: Uint32Array | null
  readonly symbol: RowSource['symbol']
}

export interface RewriteSource extends RowSource {
  /** Unpins the pages of the last read. */
  release(): void
}

export function rewriteSource(input: RewriteInput): RewriteSource {
  const { parts, handle, changes, retained, symbol } = input
  let pinned: number[] = []
  const release = (): void => {
    for (const address of pinned) parts.unpin(address)
    pinned = []
  }
  const pin = (columnId: number, page: number): number => {
    const address = parts.pin(handle, columnId, page)
    pinned.push(address)
    return address
  }
  const assigned = (columnId: number): number => changes?.columns.findIndex(({ id }) => id === columnId) ?? -1
  return {
    rows: retained?.length ?? handle.rows,
    has: (columnId) => assigned(columnId) >= 0 || handle.descriptor.columnIds.includes(columnId),
    read: (column, first, count) => {
      release()
      const change = assigned(column.id)
      if (change < 0 && retained === null) {
        const page = pageOf(handle, first)
        const start = handle.firstRows[page]!
        if (first + count <= handle.firstRows[page + 1]!) {
          const address = pin(column.id, page)
          return address === 0 ? 0 : address + (first - start) * widthOf(column.type)
        }
      }
      const target = copyRows(input, pin, column, first, count)
      if (change >= 0 && changes !== null) overlay(input, changes, change, { first, count, target })
      return target
    },
    symbol,
    release,
  }
}

/** The page that contains the row, by binary search. */
function pageOf({ firstRows, pageCount }: PartHandle, row: number): number {
  let low = 0
  let high = pageCount - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (firstRows[middle]! <= row) low = middle
    else high = middle - 1
  }
  return low
}

/** Copies the old values, page by page; NULL if the part does not have the column. */
function copyRows(
  { memory, scratch, handle, retained }: RewriteInput,
  pin: (columnId: number, page: number) => number,
  { id, type }: ColumnSchema,
  first: number,
  count: number,
): number {
  const width = widthOf(type)
  const target = scratch.room('rewritten', count * width)
  const rowAt = (index: number): number => (retained === null ? index : retained[index]!)
  for (let done = 0; done < count; ) {
    const page = pageOf(handle, rowAt(first + done))
    const end = handle.firstRows[page + 1]!
    assert(rowAt(first + done) < end, 'F2: a row is in its page')
    let taken = 1
    while (done + taken < count && rowAt(first + done + taken) < end) taken++
    const address = pin(id, page)
    const to = target + done * width
    const start = handle.firstRows[page]!
    if (address === 0) fillNull(memory, type, target, done, done + taken)
    else if (retained === null) {
      const from = address + (first + done - start) * width
      memory.u8.copyWithin(to, from, from + taken * width)
    } else copyPicked(memory, address, retained.subarray(first + done, first + done + taken), start, width, to)
    done += taken
  }
  return target
}

/** Copies the given rows of a page; runs of consecutive rows are copied at once. */
function copyPicked(
  { u8 }: SharedMemory,
  address: number,
  rows: Uint32Array,
  start: number,
  width: number,
  target: number,
): void {
  for (let at = 0; at < rows.length; ) {
    const row = rows[at]!
    let run = 1
    while (at + run < rows.length && rows[at + run] === row + run) run++
    const from = address + (row - start) * width
    u8.copyWithin(target + at * width, from, from + run * width)
    at += run
  }
}

/** Overwrites the old values of rows [first, first + count) at the target with the new ones. */
function overlay(
  { memory, retained }: RewriteInput,
  changes: ChangeList,
  column: number,
  { first, count, target }: { readonly first: number; readonly count: number; readonly target: number },
): void {
  const width = widthOf((changes.columns[column] as ChangeList['columns'][number]).type)
  const values = changes.values(column)
  const rows = memory.u32.subarray(changes.rows >>> 2, (changes.rows >>> 2) + changes.count)
  const rowAt = (index: number): number => (retained === null ? index : retained[index]!)
  const last = rowAt(first + count - 1)
  let index = first
  for (let at = lowerBound(rows, rowAt(first)); at < rows.length && rows[at]! <= last; at++) {
    const row = rows[at]!
    if (retained === null) index = row
    else while (rowAt(index) < row) index++
    memory.u8.copyWithin(target + (index - first) * width, values + at * width, values + (at + 1) * width)
  }
}

function lowerBound(rows: Uint32Array, wanted: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (rows[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}
