// The kernel that encodes result rows as JSON, CSV, JSON lines or DataRow messages: its TypeScript interface and its
// structures.
//
// STATE (64 bytes, followed by 128 bytes of scratch, 8-byte aligned):
//
//     0  columns u32       address of the COLUMNs
//     4  count u32
//     8  row u32           next row; encode() moves it
//    12  rowEnd u32
//    16  out u32           address of the next byte; encode() advances it
//    20  outEnd u32        end of the output buffer
//    24  flags u32         encodeFlags
//    28  delimiter u32     CSV: one ASCII character
//    32  needed u32        set if a row did not fit: upper bound of its size
//    36  written u32       JSON: 1 when a row precedes, so that a comma comes first; encode() sets it
//    40  index u32         address of u32 row numbers, indexed by `row`; 0 = rows in their own order
//
// COLUMN (32 bytes, 4-byte aligned):
//
//     0  kind u32          encodeKinds
//     4  values u32        address; 0 = every value is NULL (false, 0 for types without NULL)
//     8  dictionary u32    SYMBOL (engine/memory/column-layout.ts)
//    12  parameter u32     GEOHASH: bits; DECIMAL: scale
//    16  label u32         lines: address of the text before the value: `{"name":` or `,"name":`
//    20  labelBytes u32
//
// Messages (flag pg): a row is a DataRow of the PostgreSQL wire protocol (engine/types/pg-encode-value.ts), `delimiter`
// is the message type, and `label` of a column is 1 for the binary format. ARRAY and binary DECIMAL are not supported.
//
// Lines (flags json and lines together): a row is `{"a":1,"b":"text"}` and a newline.
//
// Formats: a JSON row is `[1,"text",null]`, rows are separated by commas. CSV follows RFC 4180 with CRLF: NULL is an
// empty field, strings are always quoted. Strings must be valid UTF-8, followed by 16 readable bytes. UUID and LONG256
// are little-endian numbers of 16 and 32 bytes; BINARY is encoded as NULL.

import { assert, unreachable } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { type DataType, widthOf } from '../types/column-types.js'

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

export const encodeStateBytes = 192
export const encodeColumnBytes = 32

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
  memory.u32.set([encodeKindOf(type), values, dictionary, parameter], at >>> 2)
}

/** Values of a COLUMN's label for rows of the PostgreSQL wire protocol. zoned: text followed by `+00`. */
export const pgFormats = { text: 0, binary: 1, zoned: 2 } as const

/** Sets the label of a COLUMN for rows as lines. The label's bytes are in shared memory. */
export function writeEncodeLabel(memory: SharedMemory, at: number, label: number, labelBytes: number): void {
  memory.u32[(at + 16) >>> 2] = label
  memory.u32[(at + 20) >>> 2] = labelBytes
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
  assert(state.outEnd <= memory.bytes, 'K2: the output lies in the memory')
  const { columns, count, row, rowEnd, out, outEnd, flags, delimiter, written, index } = state
  memory.u32.set([columns, count, row, rowEnd, out, outEnd, flags, delimiter, 0, written ? 1 : 0, index], at >>> 2)
}
