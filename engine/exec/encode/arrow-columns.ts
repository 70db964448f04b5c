// Encodes columns as buffers of an Arrow IPC record batch: validity bitmaps, offsets and values.
//
//   BOOLEAN Bool | BYTE SHORT INT LONG Int | FLOAT DOUBLE FloatingPoint | BINARY Binary
//   DATE TIMESTAMP TIMESTAMP_NS Timestamp in ms, us, ns of UTC
//   CHAR STRING VARCHAR SYMBOL Utf8; the other types as Utf8 of their text
//
// take() builds the buffers of a batch in memory that is reused for the next batch; put() copies one buffer to the
// output block.

import { nullKinds } from '../../kernels/parquet.js'
import { budgets } from '../../memory/budgets.js'
import { dictionaryEntry } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import type { DataType } from '../../types/column-types.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'
import type { Vector } from '../batch/vector.js'
import { displayedStrings } from './displayed-strings.js'

export const arrowKinds = { int: 2, floatingPoint: 3, binary: 4, utf8: 5, bool: 6, timestamp: 10 } as const
export interface ArrowType {
  readonly kind: number
  /** Bits of an Int, precision of a FloatingPoint, or unit of a Timestamp. */
  readonly detail: number
  /** Bytes of a value; 0: variable length, 1/8: bits. */
  readonly width: number
}

const strings: ArrowType = { kind: arrowKinds.utf8, detail: 0, width: 0 }

export function arrowType(type: DataType): ArrowType {
  switch (type.name) {
    case 'BOOLEAN':
      return { kind: arrowKinds.bool, detail: 0, width: 1 / 8 }
    case 'BYTE':
      return { kind: arrowKinds.int, detail: 8, width: 1 }
    case 'SHORT':
      return { kind: arrowKinds.int, detail: 16, width: 2 }
    case 'INT':
      return { kind: arrowKinds.int, detail: 32, width: 4 }
    case 'LONG':
      return { kind: arrowKinds.int, detail: 64, width: 8 }
    case 'FLOAT':
      return { kind: arrowKinds.floatingPoint, detail: 1, width: 4 }
    case 'DOUBLE':
      return { kind: arrowKinds.floatingPoint, detail: 2, width: 8 }
    case 'DATE':
      return { kind: arrowKinds.timestamp, detail: 1, width: 8 }
    case 'TIMESTAMP':
      return { kind: arrowKinds.timestamp, detail: 2, width: 8 }
    case 'TIMESTAMP_NS':
      return { kind: arrowKinds.timestamp, detail: 3, width: 8 }
    case 'BINARY':
      return { ...strings, kind: arrowKinds.binary }
    default:
      return strings
  }
}

interface ArrowBuffer {
  readonly bytes: number
  /** Writes the buffer; up to 16 bytes after it may be overwritten. */
  readonly put: (target: number) => void
}

export interface ArrowPart {
  readonly nulls: number
  readonly buffers: readonly ArrowBuffer[]
}

const nothing: ArrowBuffer = { bytes: 0, put: () => {} }

export class ArrowColumns {
  readonly #context: ExecContext
  readonly #types: readonly ArrowType[]
  /** One for each column. */
  readonly #scratch: readonly Scratch[]

  constructor(context: ExecContext, columns: readonly PlanColumn[]) {
    this.#context = context
    this.#types = columns.map(({ type }) => arrowType(type))
    const { memory, arena } = context
    this.#scratch = columns.map(() => new Scratch(memory, arenaAllocator(arena), budgets.queries))
  }

  /** Prepares the rows [from, from + rows) of a column; valid until the next call for it. */
  take(index: number, vector: Vector, from: number, rows: number): ArrowPart {
    const { kind, width } = this.#types[index] as ArrowType
    const scratch = this.#scratch[index] as Scratch
    if (kind === arrowKinds.bool) return this.#booleans(vector.address + from, rows)
    if (width > 0) return this.#fixed(scratch, vector.address + from * width, rows, this.#types[index] as ArrowType)
    switch (vector.type.name) {
      case 'SYMBOL':
        return this.#strings(scratch, this.#symbols(scratch, vector, from, rows), rows)
      case 'STRING':
      case 'VARCHAR':
      case 'BINARY':
        return this.#strings(scratch, vector.address + from * 8, rows)
      default:
        return this.#strings(scratch, displayedStrings(this.#context, scratch, vector, from, rows), rows)
    }
  }

  #booleans(values: number, rows: number): ArrowPart {
    const { parquet } = this.#context.kernels
    const put = (target: number): void => parquet.packBooleans(values, rows, target)
    return { nulls: 0, buffers: [nothing, { bytes: (rows + 7) >>> 3, put }] }
  }

  #fixed(scratch: Scratch, values: number, rows: number, { kind, width }: ArrowType): ArrowPart {
    const bytes = rows * width
    const own: ArrowBuffer = { bytes, put: (target) => scratch.memory.copy(target, values, values + bytes) }
    if (width < 4) return { nulls: 0, buffers: [nothing, own] }
    const bits = scratch.room('bits', (rows >>> 3) + 64)
    if (kind === arrowKinds.floatingPoint) {
      const { u8, f32, f64 } = scratch.memory
      const present =
        width === 4 ? finite(f32, values >>> 2, rows, u8, bits) : finite(f64, values >>> 3, rows, u8, bits)
      return { nulls: rows - present, buffers: [bitmap(scratch.memory, bits, rows, present), own] }
    }
    const nullKind = width === 4 ? nullKinds.i32Minimum : nullKinds.i64Minimum
    const present = this.#context.kernels.parquet.presence(values, rows, nullKind, bits)
    return { nulls: rows - present, buffers: [bitmap(scratch.memory, bits, rows, present), own] }
  }

  /** `entries`: address and length of each string; length -1 is NULL. */
  #strings(scratch: Scratch, entries: number, rows: number): ArrowPart {
    const { parquet } = this.#context.kernels
    const { memory } = scratch
    const bits = scratch.room('bits', (rows >>> 3) + 64)
    const present = parquet.presence(entries, rows, nullKinds.entry, bits)
    let packed = entries
    if (present < rows) {
      packed = scratch.room('packed', rows * 8)
      parquet.compact(entries, rows, 8, bits, packed)
    }
    const offsets = scratch.room('offsets', (rows + 1) * 4)
    const bytes = addLengths(memory.i32, (entries >>> 2) + 1, rows, offsets >>> 2)
    const ends: ArrowBuffer = {
      bytes: (rows + 1) * 4,
      put: (target) => memory.copy(target, offsets, offsets + (rows + 1) * 4),
    }
    const strings: ArrowBuffer = { bytes, put: (target) => parquet.textBytes(packed, present, target) }
    return { nulls: rows - present, buffers: [bitmap(memory, bits, rows, present), ends, strings] }
  }

  #symbols(scratch: Scratch, { address, dictionary }: Vector, from: number, rows: number): number {
    const { memory } = scratch
    const entries = scratch.room('entries', rows * 8)
    const { u32, i32 } = memory
    const ids = (address >>> 2) + from
    for (let row = 0, word = entries >>> 2; row < rows; row++, word += 2) {
      const id = i32[ids + row]!
      if (id < 0) {
        i32[word + 1] = -1
        continue
      }
      const entry = dictionaryEntry(memory, dictionary, id) >>> 2
      u32[word] = u32[entry]!
      u32[word + 1] = u32[entry + 1]!
    }
    return entries
  }
}

/** The bitmap is omitted when there are no NULLs. */
function bitmap(memory: SharedMemory, bits: number, rows: number, present: number): ArrowBuffer {
  const bytes = (rows + 7) >>> 3
  return present === rows ? nothing : { bytes, put: (target) => memory.copy(target, bits, bits + bytes) }
}

/** Writes one bit for each finite number; returns how many there are. */
function finite(
  values: Float32Array | Float64Array,
  first: number,
  rows: number,
  u8: Uint8Array,
  bits: number,
): number {
  let present = 0
  for (let row = 0; row < rows; row += 8) {
    const end = Math.min(8, rows - row)
    let byte = 0
    for (let bit = 0; bit < end; bit++) {
      const value = values[first + row + bit]!
      if (value - value === 0) {
        byte |= 1 << bit
        present++
      }
    }
    u8[bits + (row >>> 3)] = byte
  }
  return present
}

/** Writes the end offset of each string, from 0 on; NULLs have no bytes. Returns the total bytes. */
function addLengths(i32: Int32Array, length: number, rows: number, target: number): number {
  let end = 0
  i32[target] = 0
  for (let row = 0; row < rows; row++) {
    const bytes = i32[length + row * 2]!
    if (bytes > 0) end += bytes
    i32[target + 1 + row] = end
  }
  return end
}
