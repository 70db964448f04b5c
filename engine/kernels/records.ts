// The interface of the WebAssembly kernel that converts JSON records (of Kafka topics) to line protocol, and its
// structures.
//
// A record is a JSON object. The caller registers each key that occurs, with the column that it maps to.
// encodeRecords() stops at a record with an unknown key, an array, an escape, or anything else that is unusual or
// invalid; the caller converts that record.
//
// records-layout.ts defines the structures: the STATE of a call, the RECORDs to convert, and a FIELD for each key.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import * as layout from './records-layout.js'

export const recordActions = { value: 0, symbol: 1, double: 2, time: 3, timestamp: 4, other: 5 } as const
export const recordUnits = { auto: 0, seconds: 1, millis: 2, micros: 3, nanos: 4 } as const

export const recordCodes = {
  /** All records were converted. */
  done: 0,
  /** The caller must convert the record at `index`. */
  otherRecord: 1,
  /** The record at `index` does not fit: take the lines and continue with an empty buffer. */
  full: 2,
} as const

export interface RecordKernel {
  /** Writes a line for each record from `index` on; returns one of recordCodes. */
  encodeRecords(state: number): number
}

export const recordStateBytes = 256
export const recordBytes = 32
export const recordFieldBytes = 64
/** Readable bytes that must follow a value or key. */
export const recordPadding = 16

export interface RecordField {
  /** Address of the key in shared memory, and its bytes, including the quotes. */
  readonly keyAt: number
  readonly keyBytes: number
  readonly nameAt: number
  readonly nameBytes: number
  readonly action: number
  readonly parent: number
}

/** Writes a FIELD. The key's bytes must already be in shared memory. */
export function writeRecordField(memory: SharedMemory, address: number, field: RecordField): void {
  assert(address % 16 === 0, 'K1: a field is aligned to 16 bytes')
  assert(field.keyAt + field.keyBytes <= memory.bytes, 'K2: the key of a field is in the memory')
  const { u8, u32 } = memory
  u8.fill(0, address, address + recordFieldBytes)
  u32[(address + layout.fieldKey) >>> 2] = field.keyAt
  u32[(address + layout.fieldKeyBytes) >>> 2] = field.keyBytes
  u32[(address + layout.fieldName) >>> 2] = field.nameAt
  u32[(address + layout.fieldNameBytes) >>> 2] = field.nameBytes
  u32[(address + layout.fieldAction) >>> 2] = field.action
  u32[(address + layout.fieldParent) >>> 2] = field.parent
  const bytes = Math.min(16, field.keyBytes)
  u8.fill(0xff, address + layout.fieldMask, address + layout.fieldMask + bytes)
  u8.copyWithin(address + layout.fieldKeyHead, field.keyAt, field.keyAt + bytes)
}
