// Line protocol to columns: the interface of the kernel and the structures that it works on.
//
// A TEMPLATE predicts a line: one table, its columns in one order, each with the bytes that precede its value on the
// wire. The kernel matches lines against templates and writes the values of each matched line as the next row of the
// template's column buffers. Several templates live at once; each remembers which one followed it last time. A line
// that fits no template, or holds a value that the kernel does not decide, is left to the caller: decode() stops there.
//
// STATE (64 bytes, 8-byte aligned), set by the caller, `cursor` and `current` also by decode():
//
//     0  cursor u32        next line; after decode: where it stopped, always the start of a line
//     4  end u32           end of the block; the byte before it must be \n; 64 readable bytes must follow
//     8  templates u32     address of u32[count] template addresses
//    12  count u32
//    16  current u32       template of the last line, 0 at the start
//    24  stoppedTemplate u32   template that is full, whose dictionary is full or whose value is odd; 0 = none
//    28  stoppedColumn u32     address of the COLUMN where matching stopped (dictionaryFull: it names the dictionary)
//    32  unitNanos i64     nanoseconds of the designated timestamp's unit: 1 (n), 1e3 (u), 1e6 (ms), 1e9 (s), ...
//    40  nowMicros i64     timestamp of lines without one
//
// TEMPLATE (64 bytes, 8-byte aligned):
//
//     0  rows u32          rows decoded; the caller resets it when it has taken them
//     4  maxRows u32       rows that every column buffer holds
//     8  columns u32       count
//    12  columnsAt u32     address of the COLUMNs
//    16  timestamps u32    address of i64[maxRows]
//    20  next u32          template of the line that followed last time (at first: this one). Templates that are given
//                          up must be taken out of every `next` first: resetSuccessors()
//    24  nanos u32         1 when the designated timestamp is TIMESTAMP_NS, 0 for TIMESTAMP
//    28  sorted u32        1 while timestamps ascend
//    32  minTs i64, 40 maxTs i64, 48 lastTs i64
//
// COLUMN (64 bytes, 16-byte aligned):
//
//     0  key v128          first 16 bytes of the predicted key, 16 mask v128 (ones over the key's bytes)
//    32  keyBytes u32      36 keyAddress u32 (the whole key; compared beyond 16 bytes)
//    40  kind u32          ilpKinds
//    44  values u32        address of the column buffer
//    48  dictionary u32    SYMBOL only
//
// A key holds its separators as on the wire: `table,tag=` or `table field=` for the first column, then `,name=`, and
// ` name=` for the first field.
//
// What a value may look like, by kind; everything else stops with `otherLine`:
//
//   symbol       text without backslash and `=`, not empty; a new one is inserted into the dictionary
//   boolean      t T true True TRUE f F false False FALSE
//   i8 .. i64    123i within the type's range and not its NULL
//   f32 f64      decimal number (f32: rounded to double, then to float; f32 overflow stops), 123i, or binary `=` 0x10
//   micros nanos millis   123t (micros), 123n (nanos), 123i (as it is); conversions must not lose digits of a negative
//   text         "..." without backslash and newline, valid UTF-8: {address, bytes} pointing into the block
//   array        binary `=` 0x0e 0x0a: {address, bytes} of dimension count u8, lengths u32 each, doubles, in the block
//
// The designated timestamp is digits in the request's unit, or with suffix t or n; the line ends in \n or \r\n.

import { assert } from '../base/assert.js'
import type { SharedMemory } from '../memory/shared-memory.js'

/** Target kinds of a column. */
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

/** Why decode() returned. */
export const ilpCodes = {
  /** The whole block is decoded. */
  done: 0,
  /** The line at the cursor needs the general parser: no template fits, or a value is odd or wrong. */
  otherLine: 1,
  /** stoppedTemplate is full: take its rows, set `rows` to 0, go on. */
  templateFull: 2,
  /** The dictionary of stoppedColumn must grow before the line at the cursor. */
  dictionaryFull: 3,
  /** The block does not end in a newline: nothing was decoded. */
  badBlock: 4,
} as const

/** Results of intern and find that are no ids. */
export const symbolCodes = {
  /** Entries, slots or text heap are exhausted: grow the dictionary, then try again. */
  full: -1,
  /** The text is not valid UTF-8. */
  invalid: -2,
  /** find: the text is not in the dictionary. */
  missing: -3,
} as const

export interface IlpKernel {
  /** Decodes lines from the STATE's cursor on; returns one of ilpCodes. */
  decode(state: number): number
  /** Id of the text in the dictionary, inserted when new; or symbolCodes.full / invalid. 16 readable bytes must follow. */
  intern(dictionary: number, address: number, bytes: number): number
  /** Id of the text, or symbolCodes.missing. 16 readable bytes must follow the text. */
  find(dictionary: number, address: number, bytes: number): number
  /** Enters every text into the dictionary's new, zeroed slot table (slots and slotMask are set already). */
  rehashDictionary(dictionary: number): void
}

export const ilpStateBytes = 64
export const ilpTemplateBytes = 64
export const ilpColumnBytes = 64

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

/** Bytes that writeTemplate needs at an address aligned to 64. */
export function ilpTemplateSize(columns: readonly { readonly key: Uint8Array }[]): number {
  const keyBytes = columns.reduce((sum, column) => sum + column.key.length, 0)
  return (ilpTemplateBytes + columns.length * ilpColumnBytes + keyBytes + 63) & ~63
}

/** Lays a template out at an address aligned to 64; it has no rows and predicts itself as successor. */
export function writeIlpTemplate(memory: SharedMemory, address: number, template: IlpTemplate): void {
  assert(address % 64 === 0, 'K1: a template is aligned to 64 bytes')
  assert(template.columns.length > 0, 'K2: a template has columns')
  assert(template.maxRows > 0, 'K2: a template has room for rows')
  assert(template.timestamps % 8 === 0, 'K1: timestamps are aligned to 8 bytes')
  const columnsAt = address + ilpTemplateBytes
  const word = address >>> 2
  memory.u8.fill(0, address, columnsAt + template.columns.length * ilpColumnBytes)
  memory.u32[word + 1] = template.maxRows
  memory.u32[word + 2] = template.columns.length
  memory.u32[word + 3] = columnsAt
  memory.u32[word + 4] = template.timestamps
  memory.u32[word + 5] = address
  memory.u32[word + 6] = template.nanos ? 1 : 0
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
  memory.u8.fill(255, at + 16, at + 16 + short)
  memory.u32[(at + 32) >>> 2] = column.key.length
  memory.u32[(at + 36) >>> 2] = keyAt
  memory.u32[(at + 40) >>> 2] = column.kind
  memory.u32[(at + 44) >>> 2] = column.values
  memory.u32[(at + 48) >>> 2] = column.dictionary
}

/** Makes the template empty again; call it after its rows were taken. */
export function takeIlpRows(memory: SharedMemory, template: number): void {
  memory.u32[template >>> 2] = 0
  memory.u32[(template + 28) >>> 2] = 1
  memory.i64[(template + 32) >>> 3] = 0x7fff_ffff_ffff_ffffn
  memory.i64[(template + 40) >>> 3] = -0x8000_0000_0000_0000n
  memory.i64[(template + 48) >>> 3] = -0x8000_0000_0000_0000n
}

/** Makes every template predict itself: call it before one of them is given up. */
export function resetSuccessors(memory: SharedMemory, templates: readonly number[]): void {
  for (const template of templates) memory.u32[(template + 20) >>> 2] = template
}

export interface IlpBatch {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly sorted: boolean
}

/** What a template has collected. */
export function readIlpBatch(memory: SharedMemory, template: number): IlpBatch {
  return {
    rows: memory.u32[template >>> 2]!,
    minTs: memory.i64[(template + 32) >>> 3]!,
    maxTs: memory.i64[(template + 40) >>> 3]!,
    sorted: memory.u32[(template + 28) >>> 2] === 1,
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
  assert(state.cursor <= state.end, 'K2: a block ends behind its beginning')
  assert(state.end <= memory.bytes, 'K2: a block lies in the memory')
  const word = address >>> 2
  memory.u32[word] = state.cursor
  memory.u32[word + 1] = state.end
  memory.u32[word + 2] = state.templates
  memory.u32[word + 3] = state.count
  memory.u32[word + 4] = state.current
  memory.u32[word + 6] = 0
  memory.u32[word + 7] = 0
  memory.i64[(address + 32) >>> 3] = state.unitNanos
  memory.i64[(address + 40) >>> 3] = state.nowMicros
}
