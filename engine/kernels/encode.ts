// The WebAssembly kernel that encodes result rows as JSON, CSV, JSON lines or DataRow messages: its TypeScript
// interface and its structures.
//
// encode-layout.ts defines the members of STATE and COLUMN.
//
// Messages (flag pg): a row is a DataRow of the PostgreSQL wire protocol (engine/types/pg-encode-value.ts), `delimiter`
// is the message type, and `label` of a column is one of pgFormats. ARRAY and binary DECIMAL are not supported.
//
// Lines (flags json and lines together): a row is `{"a":1,"b":"text"}` and a newline.
//
// Formats: a JSON row is `[1,"text",null]`, rows are separated by commas. CSV follows RFC 4180 with CRLF: NULL is an
// empty field, strings are always quoted. In both, BINARY is encoded as NULL. Strings must be valid UTF-8, followed by
// 16 readable bytes. UUID and LONG256 are little-endian numbers of 16 and 32 bytes.

import { assert, unreachable } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { type DataType, widthOf } from '../types/column-types.js'
import * as layout from './encode-layout.js'

export const encodeKinds = {
  boolean: 0,
  i8: 1,
  i16: 2,
  char: 3,
  i32: 4,
  i64: 5,
  millis: 6,
  micros: 7,
  nanos: 8,
  f32: 9,
  f64: 10,
  text: 11,
  symbol: 12,
  long256: 13,
  uuid: 14,
  ipv4: 15,
  geohash8: 16,
  geohash16: 17,
  geohash32: 18,
  geohash64: 19,
  binary: 20,
  array: 21,
  decimal8: 22,
  decimal16: 23,
  decimal32: 24,
  interval: 25,
} as const

export type EncodeKind = (typeof encodeKinds)[keyof typeof encodeKinds]

export const encodeFlags = { json: 1, quoteLargeNumbers: 2, lines: 4, pg: 8 } as const

export interface EncodeKernel {
  /**
   * Encodes rows until rowEnd or until the next one might not fit; returns their number. If it returns 0 before rowEnd,
   * `needed` is the space for that row: call again with a larger (or empty) buffer.
   */
  encode(state: number): number
}

export const encodeStateBytes = layout.stateScratch + 128
export const encodeColumnBytes = layout.columnBytes

/** The kind of a column of that type. */
export function encodeKindOf(type: DataType): EncodeKind {
  switch (type.name) {
    case 'BOOLEAN':
      return encodeKinds.boolean
    case 'BYTE':
      return encodeKinds.i8
    case 'SHORT':
      return encodeKinds.i16
    case 'CHAR':
      return encodeKinds.char
    case 'INT':
      return encodeKinds.i32
    case 'LONG':
      return encodeKinds.i64
    case 'DATE':
      return encodeKinds.millis
    case 'TIMESTAMP':
      return encodeKinds.micros
    case 'TIMESTAMP_NS':
      return encodeKinds.nanos
    case 'FLOAT':
      return encodeKinds.f32
    case 'DOUBLE':
      return encodeKinds.f64
    case 'STRING':
    case 'VARCHAR':
      return encodeKinds.text
    case 'SYMBOL':
      return encodeKinds.symbol
    case 'LONG256':
      return encodeKinds.long256
    case 'UUID':
      return encodeKinds.uuid
    case 'IPv4':
      return encodeKinds.ipv4
    case 'GEOHASH':
      return ([16, 17, 18, 19] as const)[Math.log2(widthOf(type))] ?? encodeKinds.geohash64
    case 'BINARY':
      return encodeKinds.binary
    case 'ARRAY':
      return encodeKinds.array
    case 'DECIMAL':
      return ([22, 23, 24] as const)[Math.log2(widthOf(type)) - 3] ?? encodeKinds.decimal32
    case 'INTERVAL':
      return encodeKinds.interval
    default:
      return unreachable(type.name)
  }
}

/** Writes a COLUMN. `dictionary` is 0 except for SYMBOL. */
export function writeEncodeColumn(
  memory: SharedMemory,
  at: number,
  type: DataType,
  values: number,
  dictionary: number,
): void {
  assert(at % 4 === 0, 'K1: a column is aligned to its words')
  const parameter = type.name === 'GEOHASH' ? type.a : type.name === 'DECIMAL' ? type.b : 0
  const { u32 } = memory
  u32[(at + layout.columnKind) >>> 2] = encodeKindOf(type)
  u32[(at + layout.columnValues) >>> 2] = values
  u32[(at + layout.columnDictionary) >>> 2] = dictionary
  u32[(at + layout.columnParameter) >>> 2] = parameter
}

/** Values of a COLUMN's label for rows of the PostgreSQL wire protocol. zoned: text followed by `+00`. */
export const pgFormats = { text: 0, binary: 1, zoned: 2 } as const

/** Sets the label of a COLUMN for rows as lines. The label's bytes are in shared memory. */
export function writeEncodeLabel(memory: SharedMemory, at: number, label: number, labelBytes: number): void {
  memory.u32[(at + layout.columnLabel) >>> 2] = label
  memory.u32[(at + layout.columnLabelBytes) >>> 2] = labelBytes
}

/** After a call: the address after the encoded rows, and the space that the next row needs. */
export function readEncodeState({ u32 }: SharedMemory, at: number): { readonly out: number; readonly needed: number } {
  return { out: u32[(at + layout.stateOut) >>> 2]!, needed: u32[(at + layout.stateNeeded) >>> 2]! }
}

export interface EncodeState {
  readonly columns: number
  readonly count: number
  readonly row: number
  readonly rowEnd: number
  readonly out: number
  readonly outEnd: number
  readonly flags: number
  readonly delimiter: number
  /** Whether a row precedes, in an earlier buffer. */
  readonly written: boolean
  readonly index: number
}

/** Writes a STATE. */
export function writeEncodeState(memory: SharedMemory, at: number, state: EncodeState): void {
  assert(at % 8 === 0, 'K1: an encoder state is aligned to 8 bytes')
  assert(state.row <= state.rowEnd, 'K2: rows to be encoded do not end before their beginning')
  assert(state.out <= state.outEnd, 'K2: the output does not end before its beginning')
  assert(state.outEnd <= memory.bytes, 'K2: the output is in the memory')
  const { u32 } = memory
  u32[(at + layout.stateColumns) >>> 2] = state.columns
  u32[(at + layout.stateCount) >>> 2] = state.count
  u32[(at + layout.stateRow) >>> 2] = state.row
  u32[(at + layout.stateRowEnd) >>> 2] = state.rowEnd
  u32[(at + layout.stateOut) >>> 2] = state.out
  u32[(at + layout.stateOutEnd) >>> 2] = state.outEnd
  u32[(at + layout.stateFlags) >>> 2] = state.flags
  u32[(at + layout.stateDelimiter) >>> 2] = state.delimiter
  u32[(at + layout.stateNeeded) >>> 2] = 0
  u32[(at + layout.stateWritten) >>> 2] = state.written ? 1 : 0
  u32[(at + layout.stateIndex) >>> 2] = state.index
}
