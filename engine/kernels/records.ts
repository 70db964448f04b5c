// The interface of the kernel that converts JSON records (of Kafka topics) to line protocol, and its structures.
//
// A record is a JSON object. The caller registers each key that occurs, with the column that it maps to.
// encodeRecords() stops at a record with an unknown key, an array, an escape, or anything else that is unusual or
// invalid; the caller converts that record.
//
// STATE (256 bytes, 16-byte aligned), set by the caller; encodeRecords() also changes `index` and `out`:
//
//     0  records u32       address of the RECORDs
//     4  count u32
//     8  index u32         next record; after a call the one where it stopped
//    12  out u32           address for the next line; after a call the end of the last one
//    16  outEnd u32
//    20  fields u32        scratch memory for the fields of one line
//    24  fieldsEnd u32
//    28  0 u32
//    32  known u32         address of the FIELDs; the first one represents the outermost object
//    36  knownCount u32
//    40  native u32        1: the record's timestamp is that of the line
//    44  units u32         recordUnits of numbers in the timestamp field
//    48  iso u32           1: timestamps as text are ISO 8601; 0: the caller converts records with text in such fields
//    52  keyMode u32       0: keys are not stored; 1: as a string field; 2: as a symbol
//    56  keyName u32, 60 keyNameBytes u32: `name=`, escaped
//    64  private memory of the kernel
//
// RECORD (32 bytes): value u32 | bytes u32 | key u32 | key bytes i32 (-1: none) | table u32 |
//   table bytes u32 (escaped) | milliseconds f64. Value, key and table are addresses. A zero byte must follow value and
//   key, which stops reads beyond their end, and 15 more readable bytes must follow that byte.
//
// FIELD (64 bytes, 16-byte aligned):
//
//     0  key u32, 4 keyBytes u32: as in the record, with its quotes
//     8  name u32, 12 nameBytes u32: `name=`, escaped
//    16  action u32        recordActions
//    20  parent u32        address of the FIELD of the enclosing object
//    24  next u32          prediction: the FIELD that followed this one in the previous record; 0: none yet
//    28  first u32         prediction: the first FIELD of this object in the previous record; 0: none yet
//    32  mask v128 (ones over the key's first 16 bytes), 48 those bytes

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

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
  assert(field.keyAt + field.keyBytes <= memory.bytes, 'K2: the key of a field lies in the memory')
  const { u8, u32 } = memory
  const word = address >>> 2
  u8.fill(0, address, address + recordFieldBytes)
  u32[word] = field.keyAt
  u32[word + 1] = field.keyBytes
  u32[word + 2] = field.nameAt
  u32[word + 3] = field.nameBytes
  u32[word + 4] = field.action
  u32[word + 5] = field.parent
  const bytes = Math.min(16, field.keyBytes)
  u8.fill(0xff, address + 32, address + 32 + bytes)
  u8.copyWithin(address + 48, field.keyAt, field.keyAt + bytes)
}
