// Stores one value that is not NULL in a row of a column in shared memory. INSERT, QWP, CSV and the slower general
// parser of line protocol share it: each converts its value to the column's type and puts it into a slot, an object
// with one member for each kind of value, and storeSlot() writes it in the column's layout.

import { unreachable } from '../../base/assert.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { storageOf } from '../../types/column-types.js'
import type { ArrayValue } from '../../types/value.js'
import type { BatchHeap, ChunkColumn } from './writer-batch.js'

/** Which member of a slot is valid. */
type SlotForm = 'null' | 'number' | 'integer' | 'bytes' | 'array'

export interface ValueSlot {
  form: SlotForm
  /** Integers of 8 to 32 bits, and floating-point values. */
  number: number
  /** Integers of 64 bits and more, in two's complement. */
  integer: bigint
  /** Strings, BINARY, or the doubles of an array. */
  bytes: Uint8Array
  /** Lengths by dimension; the doubles are in `bytes`. */
  shape: readonly number[]
}

const noBytes = new Uint8Array(0)

export function newSlot(): ValueSlot {
  return { form: 'null', number: 0, integer: 0n, bytes: noBytes, shape: [] }
}

export function setNull(slot: ValueSlot): void {
  slot.form = 'null'
}

export function setNumber(slot: ValueSlot, value: number): void {
  slot.form = 'number'
  slot.number = value
}

export function setInteger(slot: ValueSlot, value: bigint): void {
  slot.form = 'integer'
  slot.integer = value
}

export function setBytes(slot: ValueSlot, bytes: Uint8Array): void {
  slot.form = 'bytes'
  slot.bytes = bytes
}

export function setArray(slot: ValueSlot, shape: readonly number[], doubles: Uint8Array): void {
  slot.form = 'array'
  slot.shape = shape
  slot.bytes = doubles
}

export function setArrayValue(slot: ValueSlot, { shape, data }: ArrayValue): void {
  setArray(slot, shape, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
}

/** Stores a non-NULL value in the row. Symbols are passed as ids. */
export function storeSlot(
  memory: SharedMemory,
  heap: BatchHeap,
  column: ChunkColumn,
  row: number,
  slot: ValueSlot,
): void {
  const { address, type } = column
  const kind = storageOf(type)
  switch (kind) {
    case 'i8':
      memory.i8[address + row] = small(slot)
      return
    case 'i16':
    case 'u16':
      memory.i16[(address >>> 1) + row] = small(slot)
      return
    case 'i32':
      memory.i32[(address >>> 2) + row] = small(slot)
      return
    case 'f32':
      memory.f32[(address >>> 2) + row] = slot.number
      return
    case 'f64':
      memory.f64[(address >>> 3) + row] = slot.number
      return
    case 'i64':
      memory.i64[(address >>> 3) + row] = slot.integer
      return
    case 'b16':
      storeWide(memory, (address >>> 3) + row * 2, 2, slot.integer)
      return
    case 'b32':
      storeWide(memory, (address >>> 3) + row * 4, 4, slot.integer)
      return
    case 'entry':
      storeEntry(memory, heap, (address >>> 2) + row * 2, slot)
      return
    default:
      unreachable(kind)
  }
}

function small(slot: ValueSlot): number {
  return slot.form === 'integer' ? Number(slot.integer) : slot.number
}

function storeWide(memory: SharedMemory, at: number, words: number, value: bigint): void {
  for (let word = 0; word < words; word++) memory.i64[at + word] = BigInt.asIntN(64, value >> BigInt(word * 64))
}

function storeEntry(memory: SharedMemory, heap: BatchHeap, word: number, slot: ValueSlot): void {
  const address = slot.form === 'array' ? putArray(memory, heap, slot) : heap.put(slot.bytes)
  memory.u32[word] = address
  memory.i32[word + 1] = slot.form === 'array' ? arrayBytes(slot) : slot.bytes.length
}

/** Size of the dimension count and lengths, padded to 8: see types/column-types.ts. */
function arrayHeaderBytes(dimensions: number): number {
  return (4 + dimensions * 4 + 7) & ~7
}

function arrayBytes(slot: ValueSlot): number {
  return arrayHeaderBytes(slot.shape.length) + slot.bytes.length
}

function putArray(memory: SharedMemory, heap: BatchHeap, slot: ValueSlot): number {
  const header = arrayHeaderBytes(slot.shape.length)
  const address = heap.reserve(header + slot.bytes.length)
  memory.u8.fill(0, address, address + header)
  memory.u32[address >>> 2] = slot.shape.length
  slot.shape.forEach((length, index) => {
    memory.u32[(address >>> 2) + 1 + index] = length
  })
  memory.u8.set(slot.bytes, address + header)
  return address
}
