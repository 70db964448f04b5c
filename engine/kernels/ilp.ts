// The interface of the line-protocol kernel (WebAssembly), which decodes lines to columns, and its structures.
//
// A TEMPLATE describes a form of line: its table, and its columns in order, each with the bytes that precede its value
// on the wire. The kernel compares lines with templates, and writes the values of a matching line as the next row of
// the template's column buffers. There are several templates; each remembers which one matched the line after its last
// one, as a guess for the next time. decode() stops at a line that matches no template, or has a value that the kernel
// does not support; the caller parses that line. It also stops when a template's buffers or a dictionary are full.
//
// ilp-layout.ts defines the fields and codes.
//
// A key includes the separators as on the wire: `table,tag=` or `table field=` for the first column, then `,name=`, and
// ` name=` for the first field.
//
// Supported forms of values, by kind; all others stop decoding with `otherLine`:
//
//   symbol       non-empty text without backslash and `=`; a new one is inserted into the dictionary
//   boolean      t T true True TRUE f F false False FALSE
//   i8 .. i64    123i within the type's range and not its NULL
//   f32 f64      decimal number (f32: rounded to double, then to float; f32 overflow stops), 123i, or binary `=` 0x10
//   micros nanos millis   123t (micros), 123n (nanos), 123i (unchanged); conversions must not lose digits of a negative
//   text         "..." without backslash and newline, valid UTF-8: {address, bytes} pointing into the block
//   array        binary `=` 0x0e 0x0a: {address, bytes} of dimension count u8, lengths u32 each, doubles, in the block
//
// The designated timestamp is digits in the request's unit, or with suffix t or n; the line ends in \n or \r\n.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import * as layout from './ilp-layout.js'

/** Codes of the target types of columns. */
export const ilpKinds = {
  symbol: 0,
  boolean: 1,
  i8: 2,
  i16: 3,
  i32: 4,
  i64: 5,
  f32: 6,
  f64: 7,
  micros: 8,
  nanos: 9,
  millis: 10,
  text: 11,
  array: 12,
} as const

export type IlpKind = (typeof ilpKinds)[keyof typeof ilpKinds]

export interface IlpKernel {
  /** Decodes lines from the STATE's cursor on; returns the reason why it stopped, a code of ilp-layout.ts. */
  decode(state: number): number
  /**
   * Id of the string in the dictionary, inserted if new; or `full` or `invalid` of dictionary-layout.ts. 16 readable
   * bytes must follow.
   */
  intern(dictionary: number, address: number, bytes: number): number
  /** Id of the string, or `missing` of dictionary-layout.ts. 16 readable bytes must follow it. */
  find(dictionary: number, address: number, bytes: number): number
  /** Inserts every string into the dictionary's new, zeroed slot table (slots and slotMask are already set). */
  rehashDictionary(dictionary: number): void
}

export const ilpStateBytes = 64
export const ilpTemplateBytes = 64
export const ilpColumnBytes = layout.columnBytes

export interface IlpColumn {
  /** Bytes that precede the value, separators included. */
  readonly key: Uint8Array
  readonly kind: IlpKind
  /** Address of the buffer: maxRows values of the kind's width. */
  readonly values: number
  /** Address of the dictionary for SYMBOL, else 0. */
  readonly dictionary: number
}

export interface IlpTemplate {
  readonly columns: readonly IlpColumn[]
  readonly maxRows: number
  /** Address of i64[maxRows] for the designated timestamp. */
  readonly timestamps: number
  readonly nanos: boolean
}

/** Size of a template. Its address must be aligned to 64. */
export function ilpTemplateSize(columns: readonly { readonly key: Uint8Array }[]): number {
  const keyBytes = columns.reduce((sum, column) => sum + column.key.length, 0)
  return (ilpTemplateBytes + columns.length * ilpColumnBytes + keyBytes + 63) & ~63
}

/** Writes an empty template that predicts itself as successor, at an address aligned to 64. */
export function writeIlpTemplate(memory: SharedMemory, address: number, template: IlpTemplate): void {
  assert(address % 64 === 0, 'K1: a template is aligned to 64 bytes')
  assert(template.columns.length > 0, 'K2: a template has columns')
  assert(template.maxRows > 0, 'K2: a template has room for rows')
  assert(template.timestamps % 8 === 0, 'K1: timestamps are aligned to 8 bytes')
  const columnsAt = address + ilpTemplateBytes
  memory.u8.fill(0, address, columnsAt + template.columns.length * ilpColumnBytes)
  memory.u32[(address + layout.templateMaxRows) >>> 2] = template.maxRows
  memory.u32[(address + layout.templateColumns) >>> 2] = template.columns.length
  memory.u32[(address + layout.templateColumnsAt) >>> 2] = columnsAt
  memory.u32[(address + layout.templateTimestamps) >>> 2] = template.timestamps
  memory.u32[(address + layout.templateNext) >>> 2] = address
  memory.u32[(address + layout.templateNanos) >>> 2] = template.nanos ? 1 : 0
  let keyAt = columnsAt + template.columns.length * ilpColumnBytes
  template.columns.forEach((column, i) => {
    writeColumn(memory, columnsAt + i * ilpColumnBytes, column, keyAt)
    keyAt += column.key.length
  })
  takeIlpRows(memory, address)
}

function writeColumn(memory: SharedMemory, at: number, column: IlpColumn, keyAt: number): void {
  assert(!column.key.includes(10), 'P1: a predicted key has no newline')
  assert(
    (column.kind === ilpKinds.symbol) === (column.dictionary !== 0),
    'K2: symbols have a dictionary, and nothing else has',
  )
  assert(column.values % 8 === 0, 'K1: a column is aligned to 8 bytes')
  const short = Math.min(16, column.key.length)
  memory.u8.set(column.key, keyAt)
  memory.u8.set(column.key.subarray(0, short), at)
  memory.u8.fill(255, at + layout.columnMask, at + layout.columnMask + short)
  memory.u32[(at + layout.columnKeyBytes) >>> 2] = column.key.length
  memory.u32[(at + layout.columnKeyAddress) >>> 2] = keyAt
  memory.u32[(at + layout.columnKind) >>> 2] = column.kind
  memory.u32[(at + layout.columnValues) >>> 2] = column.values
  memory.u32[(at + layout.columnDictionary) >>> 2] = column.dictionary
}

/** Empties the template, after its rows were taken. */
export function takeIlpRows(memory: SharedMemory, template: number): void {
  memory.u32[(template + layout.templateRows) >>> 2] = 0
  memory.u32[(template + layout.templateSorted) >>> 2] = 1
  memory.i64[(template + layout.templateMinTs) >>> 3] = 0x7fff_ffff_ffff_ffffn
  memory.i64[(template + layout.templateMaxTs) >>> 3] = -0x8000_0000_0000_0000n
  memory.i64[(template + layout.templateLastTs) >>> 3] = -0x8000_0000_0000_0000n
}

/** Makes every template predict itself. Call it before one of them is freed. */
export function resetSuccessors(memory: SharedMemory, templates: readonly number[]): void {
  for (const template of templates) memory.u32[(template + layout.templateNext) >>> 2] = template
}

export interface IlpBatch {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly sorted: boolean
}

/** The rows that a template has collected. */
export function readIlpBatch(memory: SharedMemory, template: number): IlpBatch {
  return {
    rows: memory.u32[(template + layout.templateRows) >>> 2]!,
    minTs: memory.i64[(template + layout.templateMinTs) >>> 3]!,
    maxTs: memory.i64[(template + layout.templateMaxTs) >>> 3]!,
    sorted: memory.u32[(template + layout.templateSorted) >>> 2] === 1,
  }
}

export interface IlpState {
  readonly cursor: number
  readonly end: number
  /** Address of u32[count] template addresses. */
  readonly templates: number
  readonly count: number
  readonly current: number
  readonly unitNanos: bigint
  readonly nowMicros: bigint
}

/** Writes a STATE at an address aligned to 8. */
export function writeIlpState(memory: SharedMemory, address: number, state: IlpState): void {
  assert(address % 8 === 0, 'K1: a decoder state is aligned to 8 bytes')
  assert(state.cursor <= state.end, 'K2: a block does not end before its beginning')
  assert(state.end <= memory.bytes, 'K2: a block is in the memory')
  memory.u32[(address + layout.stateCursor) >>> 2] = state.cursor
  memory.u32[(address + layout.stateEnd) >>> 2] = state.end
  memory.u32[(address + layout.stateTemplates) >>> 2] = state.templates
  memory.u32[(address + layout.stateCount) >>> 2] = state.count
  memory.u32[(address + layout.stateCurrent) >>> 2] = state.current
  memory.u32[(address + layout.stateStoppedTemplate) >>> 2] = 0
  memory.u32[(address + layout.stateStoppedColumn) >>> 2] = 0
  memory.i64[(address + layout.stateUnitNanos) >>> 3] = state.unitNanos
  memory.i64[(address + layout.stateNowMicros) >>> 3] = state.nowMicros
}
