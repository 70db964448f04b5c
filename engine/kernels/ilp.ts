// The interface of the line-protocol kernel (WebAssembly), which decodes lines to columns, and its structures.
//
// A TEMPLATE describes the lines of one table: its columns in an order, tags first, each with the bytes that precede its
// value on the wire. The kernel finds the template of a line by the table's name, in a hash table, and writes the values
// as the next row of the template's column buffers. A line may lack columns of the template, which get NULL, or have them
// in another order, which takes longer. decode() stops at a line without a template, or with a column or a value that
// the kernel does not support; the caller parses that line. It also stops when a template's buffers or a dictionary are
// full.
//
// ilp-layout.ts defines the fields and codes.
//
// A key is the name as on the wire with `=` and the separator before it: a space for the first field of the template,
// else a comma.
//
// Supported forms of values, by kind; all others stop decoding with `otherLine`:
//
//   symbol       non-empty text without backslash and `=`; a new one is inserted into the dictionary
//   boolean      t T true True TRUE f F false False FALSE
//   i8 .. i64    123i within the type's range and not its NULL
//   f32 f64      decimal number (f32: rounded to double, then to float) without overflow, 123i, or binary `=` 0x10
//   micros nanos millis   123t (micros), 123n (nanos), 123i (unchanged); conversions must not lose digits of a negative
//   text         "..." without backslash and newline, valid UTF-8: {address, bytes} pointing into the block
//   array        binary `=` 0x0e 0x0a: {address, bytes} of dimension count u8, lengths u32 each, doubles, in the block
//
// The designated timestamp is digits in the request's unit, or with suffix t or n; the line ends in \n or \r\n.

import { assert } from '../base/assert.js'
import { int64Max, int64Min } from '../base/int64.js'
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
  /**
   * Address of the u32 with the template of the table in the hash table u32[mask + 1], or of the free one where it
   * belongs. A comma and 16 readable bytes follow the name.
   */
  templateSlot(templates: number, mask: number, name: number): number
  /** Inserts every string into the dictionary's new, zeroed slot table (slots and slotMask are already set). */
  rehashDictionary(dictionary: number): void
}

export const ilpStateBytes = 64
export const ilpColumnBytes = layout.columnBytes
/** Readable bytes behind the names of a template. */
const namePadding = 16

/** How a template names a column and its type; tags are the columns of kind symbol. */
export interface IlpKey {
  /** The name as on the wire, followed by `=`. */
  readonly key: Uint8Array
  readonly kind: IlpKind
}

/** Where the values of a column go. */
export interface IlpBuffer {
  /** Address of maxRows values of the kind's width. */
  readonly values: number
  /** Address of the dictionary for SYMBOL, else 0. */
  readonly dictionary: number
}

export interface IlpForm {
  /** Of the table, as on the wire. */
  readonly name: Uint8Array
  readonly tags: readonly IlpKey[]
  readonly fields: readonly IlpKey[]
  /** Whether the designated timestamp is TIMESTAMP_NS. */
  readonly nanos: boolean
}

/** Size of a template. Its address must be aligned to 64. */
export function ilpTemplateSize({ name, tags, fields }: IlpForm): number {
  const columns = [...tags, ...fields]
  const keyBytes = columns.reduce((sum, { key }) => sum + 1 + key.length, 0)
  const names = keyBytes + name.length + 1 + namePadding
  return (layout.templateBytes + columns.length * ilpColumnBytes + names + 63) & ~63
}

/** Writes a template without buffers at an address aligned to 64. */
export function writeIlpTemplate(memory: SharedMemory, address: number, form: IlpForm): void {
  const { name, tags, fields, nanos } = form
  const count = tags.length + fields.length
  assert(address % 64 === 0, 'K1: a template is aligned to 64 bytes')
  assert(count > 0, 'K2: a template has columns')
  assert(name.length > 0, 'K2: a template has the name of a table')
  const columnsAt = address + layout.templateBytes
  memory.u8.fill(0, address, address + ilpTemplateSize(form))
  const set = (field: number, value: number): void => {
    memory.u32[(address + field) >>> 2] = value
  }
  set(layout.templateColumns, count)
  set(layout.templateColumnsAt, columnsAt)
  set(layout.templateFieldsAt, columnsAt + tags.length * ilpColumnBytes)
  set(layout.templateNanos, nanos ? 1 : 0)
  // Lines count from 1, so that no column is skipped in the first one.
  memory.u64[(address + layout.templateLine) >>> 3] = 0n
  const nameAt = columnsAt + count * ilpColumnBytes
  writePrefix(memory, address + layout.templateName, address + layout.templateNameMask, name)
  set(layout.templateNameBytes, name.length)
  set(layout.templateNameAddress, nameAt)
  memory.u8.set(name, nameAt)
  memory.u8[nameAt + name.length] = comma
  let keyAt = nameAt + name.length + 1
  for (const [index, { key, kind }] of [...tags, ...fields].entries()) {
    const isTag = index < tags.length
    assert((kind === ilpKinds.symbol) === isTag, 'K2: the tags of a template are its symbols')
    memory.u8[keyAt] = index === tags.length ? space : comma
    memory.u8.set(key, keyAt + 1)
    writeKey(memory, columnsAt + index * ilpColumnBytes, keyAt, 1 + key.length)
    memory.u32[(columnsAt + index * ilpColumnBytes + layout.columnKind) >>> 2] = kind
    memory.u64[(columnsAt + index * ilpColumnBytes + layout.columnSkipped) >>> 3] = 0n
    keyAt += 1 + key.length
  }
}

const space = 32
const comma = 44
const newline = 10

function writeKey(memory: SharedMemory, column: number, keyAt: number, bytes: number): void {
  const key = memory.u8.subarray(keyAt, keyAt + bytes)
  assert(!key.includes(newline), 'P1: a predicted key has no newline')
  writePrefix(memory, column, column + layout.columnMask, key)
  memory.u32[(column + layout.columnKeyBytes) >>> 2] = bytes
  memory.u32[(column + layout.columnKeyAddress) >>> 2] = keyAt
}

/** Writes the first 16 bytes, and ones over them in the mask. */
function writePrefix(memory: SharedMemory, at: number, maskAt: number, bytes: Uint8Array): void {
  const short = Math.min(16, bytes.length)
  memory.u8.set(bytes.subarray(0, short), at)
  memory.u8.fill(255, maskAt, maskAt + short)
}

/** Gives the template buffers, one for each column and one for the timestamps. */
export function bindIlpTemplate(
  memory: SharedMemory,
  template: number,
  buffers: readonly IlpBuffer[],
  timestamps: number,
): void {
  assert(timestamps % 8 === 0, 'K1: timestamps are aligned to 8 bytes')
  const columnsAt = memory.u32[(template + layout.templateColumnsAt) >>> 2]!
  assert(buffers.length === memory.u32[(template + layout.templateColumns) >>> 2], 'K2: every column has a buffer')
  memory.u32[(template + layout.templateTimestamps) >>> 2] = timestamps
  for (const [index, { values, dictionary }] of buffers.entries()) {
    assert(values % 8 === 0, 'K1: a column is aligned to 8 bytes')
    const column = columnsAt + index * ilpColumnBytes
    const isSymbol = memory.u32[(column + layout.columnKind) >>> 2] === ilpKinds.symbol
    assert(isSymbol === (dictionary !== 0), 'K2: symbols have a dictionary, and nothing else has')
    memory.u32[(column + layout.columnValues) >>> 2] = values
    memory.u32[(column + layout.columnDictionary) >>> 2] = dictionary
  }
}

/** Lets the kernel add rows after those of the batch, up to `maxRows`. */
export function resumeIlpTemplate(memory: SharedMemory, template: number, batch: IlpBatch, maxRows: number): void {
  assert(maxRows >= batch.rows, 'K2: a template has room for its rows')
  memory.u32[(template + layout.templateRows) >>> 2] = batch.rows
  memory.u32[(template + layout.templateMaxRows) >>> 2] = maxRows
  memory.u32[(template + layout.templateSorted) >>> 2] = batch.sorted ? 1 : 0
  memory.u32[(template + layout.templateComplete) >>> 2] = 0
  memory.i64[(template + layout.templateMinTs) >>> 3] = batch.minTs
  memory.i64[(template + layout.templateMaxTs) >>> 3] = batch.maxTs
  memory.i64[(template + layout.templateLastTs) >>> 3] = batch.lastTs
  const columnsAt = memory.u32[(template + layout.templateColumnsAt) >>> 2]!
  const end = columnsAt + memory.u32[(template + layout.templateColumns) >>> 2]! * ilpColumnBytes
  for (let column = columnsAt; column < end; column += ilpColumnBytes)
    memory.u32[(column + layout.columnPresent) >>> 2] = 0
}

/** Lets the kernel add no more rows: it stops at the next line of the table. */
export function pauseIlpTemplate(memory: SharedMemory, template: number): void {
  memory.u32[(template + layout.templateMaxRows) >>> 2] = 0
}

/** Whether a row since resumeIlpTemplate() has a value of the column, given by its number. */
export function hasIlpValues(memory: SharedMemory, template: number, column: number): boolean {
  if (memory.u32[(template + layout.templateComplete) >>> 2] === 1) return true
  const columnsAt = memory.u32[(template + layout.templateColumnsAt) >>> 2]!
  return memory.u32[(columnsAt + column * ilpColumnBytes + layout.columnPresent) >>> 2] === 1
}

export interface IlpBatch {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Of the last row. */
  readonly lastTs: bigint
  readonly sorted: boolean
}

/** A batch without rows. */
export const emptyIlpBatch: IlpBatch = { rows: 0, minTs: int64Max, maxTs: int64Min, lastTs: int64Min, sorted: true }

/** The rows that a template has collected. */
export function readIlpBatch(memory: SharedMemory, template: number): IlpBatch {
  return {
    rows: memory.u32[(template + layout.templateRows) >>> 2]!,
    minTs: memory.i64[(template + layout.templateMinTs) >>> 3]!,
    maxTs: memory.i64[(template + layout.templateMaxTs) >>> 3]!,
    lastTs: memory.i64[(template + layout.templateLastTs) >>> 3]!,
    sorted: memory.u32[(template + layout.templateSorted) >>> 2] === 1,
  }
}

export interface IlpState {
  readonly cursor: number
  readonly end: number
  /** Address of the hash table u32[mask + 1] of templates. */
  readonly templates: number
  readonly mask: number
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
  memory.u32[(address + layout.stateMask) >>> 2] = state.mask
  memory.u32[(address + layout.stateCurrent) >>> 2] = state.current
  memory.u32[(address + layout.stateStoppedTemplate) >>> 2] = 0
  memory.u32[(address + layout.stateStoppedColumn) >>> 2] = 0
  memory.i64[(address + layout.stateUnitNanos) >>> 3] = state.unitNanos
  memory.i64[(address + layout.stateNowMicros) >>> 3] = state.nowMicros
}
