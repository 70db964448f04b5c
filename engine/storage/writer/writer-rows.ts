// Rows of INSERT: columns of values, converted to their column's type already, become staged pieces.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { Allocator } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { ArrayValue, Value } from '../../types/value.js'
import type { RowsInput } from '../jobs/messages.js'
import { readBlock } from '../memtable/packed-block.js'
import {
  BatchHeap,
  freePiece,
  newPiece,
  noteTimestamp,
  type Piece,
  type PieceColumn,
  pieceColumn,
  settleColumn,
} from './writer-batch.js'
import type { StagedTable } from './writer-commit.js'
import { stagePacked } from './writer-packed.js'
import type { WriterOptions } from './writer-state.js'
import type { WriterTable } from './writer-table.js'
import { newSlot, setArrayValue, setBytes, setInteger, setNumber, storeSlot, type ValueSlot } from './writer-values.js'

const pieceRowsMax = 8192
/** High halves of times below 2^53. */
const exactHighMax = 2 ** 21
const encoder = new TextEncoder()

/** Staged rows of one request, and how to give their memory back. */
export interface StagedRows {
  readonly tables: readonly StagedTable[]
  free(): void
}

/** Throws SqlError when a designated timestamp is missing, ResourceError when memory is short. */
export function stageRows(
  { memory, allocator, kernels }: Pick<WriterOptions, 'memory' | 'allocator' | 'kernels'>,
  inputs: readonly { readonly table: WriterTable; readonly input: RowsInput }[],
): StagedRows {
  const heap = new BatchHeap(memory, allocator)
  const pieces: Piece[] = []
  const free = () => {
    for (const piece of pieces) freePiece(allocator, piece)
    heap.free()
  }
  try {
    const tables = inputs.map(({ table, input }) => {
      const first = pieces.length
      const packed = input.block === undefined ? input.packed : readBlock(input.block)
      for (const rows of packed ?? []) {
        const piece = newPiece(rows.rows)
        pieces.push(piece)
        stagePacked({ memory, allocator, heap, kernels }, table, rows, piece)
        checkTimestamps(memory, table, piece)
      }
      if (packed !== undefined) return { table, pieces: pieces.slice(first) }
      for (let from = 0; from < input.rows; from += pieceRowsMax) {
        const piece = newPiece(Math.min(pieceRowsMax, input.rows - from))
        pieces.push(piece)
        stagePiece({ memory, allocator, heap }, table, input, from, piece)
      }
      return { table, pieces: pieces.slice(first) }
    })
    return { tables, free }
  } catch (thrown) {
    free()
    throw thrown
  }
}

interface Resources {
  readonly memory: SharedMemory
  readonly allocator: Allocator
  readonly heap: BatchHeap
}

function stagePiece(resources: Resources, table: WriterTable, input: RowsInput, from: number, piece: Piece): void {
  const { memory, allocator } = resources
  const slot = newSlot()
  for (const { columnId, type, values } of input.columns) {
    const column = pieceColumn(allocator, piece, columnId, type)
    for (let row = 0; row < piece.capacity; row++) {
      const value = values[from + row] ?? null
      if (value === null) continue
      settleColumn(memory, column, row)
      storeValue(resources, table, column, row, value, slot)
      column.filled = row + 1
    }
    settleColumn(memory, column, piece.capacity)
  }
  piece.rows = piece.capacity
  checkTimestamps(memory, table, piece)
}

function storeValue(
  { memory, heap }: Resources,
  table: WriterTable,
  column: PieceColumn,
  row: number,
  value: Exclude<Value, null>,
  slot: ValueSlot,
): void {
  if (column.type.name === 'SYMBOL') {
    const bytes = encoder.encode(String(value))
    setNumber(slot, table.dictionary(column.id).intern(heap.put(bytes), bytes.length) as number)
  } else if (typeof value === 'string') {
    if (column.type.name === 'CHAR') setNumber(slot, value.length === 0 ? 0 : value.charCodeAt(0))
    else setBytes(slot, encoder.encode(value))
  } else if (typeof value === 'bigint') setInteger(slot, value)
  else if (typeof value === 'number') setNumber(slot, value)
  else if (typeof value === 'boolean') setNumber(slot, value ? 1 : 0)
  else if (value instanceof Uint8Array) setBytes(slot, value)
  else setArrayValue(slot, value as ArrayValue)
  storeSlot(memory, heap, column, row, slot)
}

function checkTimestamps(memory: SharedMemory, table: WriterTable, piece: Piece): void {
  const { timestampId } = table.schema
  if (timestampId < 0) return
  const column = piece.columns.get(timestampId)
  if (column === undefined) throw new SqlError('designated timestamp is missing', 0)
  if (noteTimes(memory, column.address >>> 2, piece)) return
  for (let row = 0; row < piece.rows; row++) {
    const ts = memory.i64[(column.address >>> 3) + row]!
    if (ts === -(2n ** 63n)) throw new SqlError('designated timestamp column cannot be NULL', 0)
    if (ts < 0n) throw new SqlError('designated timestamp before 1970-01-01 is not allowed', 0)
    noteTimestamp(piece, ts)
  }
}

/** Notes times that doubles hold exactly, all of them or none: a bigint for each costs ten times as much. */
function noteTimes({ i32, u32 }: SharedMemory, word: number, piece: Piece): boolean {
  let last = -1
  let min = Number.POSITIVE_INFINITY
  let max = -1
  let sorted = true
  for (let row = 0; row < piece.rows; row++) {
    const high = i32[word + row * 2 + 1]!
    if (high < 0 || high >= exactHighMax) return false
    const ts = high * 2 ** 32 + u32[word + row * 2]!
    if (ts < last) sorted = false
    last = ts
    if (ts < min) min = ts
    if (ts > max) max = ts
  }
  if (piece.rows === 0) return true
  assert(min <= max, 'T1: the time range of a piece is not empty')
  piece.sorted = sorted
  piece.lastTs = BigInt(last)
  piece.minTs = BigInt(min)
  piece.maxTs = BigInt(max)
  return true
}
