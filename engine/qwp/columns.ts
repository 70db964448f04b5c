// Stores the columns of a table block, the rows for one table in a message of QWP (columnar protocol over WebSocket),
// in a chunk of uncommitted rows. A column whose values on the wire have the layout of the column in memory is copied;
// others are converted value by value (convert.ts). Strings are not copied: their entries are addresses and lengths in
// the message.

import { assert } from '../base/assert.js'
import { NetworkError } from '../base/errors.js'
import type { SharedMemory } from '../memory/shared-memory.js'
import { fillNull } from '../storage/memtable/memtable-values.js'
import type { ChunkColumn, RowChunk } from '../storage/writer/writer-batch.js'
import { newSlot, setNumber, storeSlot } from '../storage/writer/writer-values.js'
import type { ColumnType } from '../types/column-types.js'
import { convertWireValue, type ValueSource } from './convert.js'
import type { ConnectionSymbols } from './dictionary.js'
import { decodeGorilla } from './gorilla.js'
import { type WireColumn, WireReader, type WireType, wireWidths } from './message.js'
import type { PlannedColumn } from './plan.js'
import type { QwpTarget } from './target.js'

/** Column types whose values are stored as they come. */
const sameLayout: Partial<Record<WireType, ColumnType>> = {
  ...{ BYTE: 'BYTE', SHORT: 'SHORT', CHAR: 'CHAR', INT: 'INT', LONG: 'LONG', FLOAT: 'FLOAT', DOUBLE: 'DOUBLE' },
  ...{ TIMESTAMP: 'TIMESTAMP', TIMESTAMP_NANOS: 'TIMESTAMP_NS', DATE: 'DATE', IPv4: 'IPv4' },
  ...{ UUID: 'UUID', LONG256: 'LONG256' },
}

/** What columns of one block are decoded with. */
export interface ColumnDecoding {
  readonly memory: SharedMemory
  /** The message, in which the positions of wire columns are. */
  readonly u8: Uint8Array
  readonly view: DataView
  readonly target: QwpTarget
  readonly chunk: RowChunk
  readonly rows: number
  readonly symbols: ConnectionSymbols
  readonly scratch: ColumnScratch
  /** A value does not fit: its row, from 0 on. */
  readonly misfit: (row: number, column: PlannedColumn, why: string) => void
}

/** Memory of a decoder for the column that is stored now. */
export class ColumnScratch {
  /** The value that is converted now. */
  readonly slot = newSlot()
  #ids = new Uint32Array(0)

  /** Room for ids of symbols; its contents are those of an earlier column. */
  ids(count: number): Uint32Array {
    if (this.#ids.length < count) this.#ids = new Uint32Array(Math.max(count, this.#ids.length * 2))
    return this.#ids
  }
}

export function decodeColumn(decoding: ColumnDecoding, planned: PlannedColumn): void {
  const { target, chunk, rows } = decoding
  const { wire, schema } = planned
  // A column without a value is NULL in every row, as if it were not there.
  if (wire.values === 0) return
  const column = target.column(chunk, schema.id)
  if (sameLayout[wire.type] === schema.type.name) storeFixed(decoding, wire, column)
  else if (wire.type === 'BOOLEAN' && schema.type.name === 'BOOLEAN') storeBooleans(decoding, wire, column)
  else if (isText(wire.type, schema.type.name)) storeStrings(decoding, wire, column)
  else if (wire.type === 'SYMBOL') storeSymbols(decoding, planned, column)
  else storeConverted(decoding, planned, column, noSymbols)
  column.filled = rows
}

function isText(wire: WireType, type: ColumnType): boolean {
  if (wire === 'BINARY') return type === 'BINARY'
  return wire === 'VARCHAR' && (type === 'VARCHAR' || type === 'STRING')
}

function storeFixed(decoding: ColumnDecoding, wire: WireColumn, column: ChunkColumn): void {
  const { memory, target, rows, u8 } = decoding
  const bytes = wire.values * column.width
  assert(column.width === wireWidths[wire.type], 'R1: values are as wide as their column')
  const to = wire.nulls < 0 ? column.address : target.scratch(bytes)
  if (wire.gorilla) expandTimestamps(decoding, wire, to)
  else {
    const from = u8.byteOffset + wire.at
    memory.copy(to, from, from + bytes)
  }
  if (wire.nulls < 0) return
  fillNull(memory, column.type, column.address, 0, rows)
  scatter(decoding, wire.nulls, to, column.address, column.width)
}

function expandTimestamps({ memory, u8, view }: ColumnDecoding, wire: WireColumn, to: number): void {
  assert(to % 8 === 0, 'A1: timestamps are aligned to 8 bytes')
  decodeGorilla(u8, view, wire.at, wire.values, memory.u32, to >>> 2)
}

/** Moves values to the rows that have one. */
function scatter({ memory, u8, rows }: ColumnDecoding, nulls: number, from: number, to: number, width: number): void {
  const { u16, u32 } = memory
  const [words, size] = width === 1 ? [memory.u8, 1] : width === 2 ? [u16, 2] : [u32, 4]
  const count = width / size
  let source = from / size
  const first = to / size
  for (let row = 0; row < rows; row++) {
    if ((u8[nulls + (row >>> 3)]! >>> (row & 7)) & 1) continue
    const target = first + row * count
    for (let word = 0; word < count; word++) words[target + word] = words[source + word]!
    source += count
  }
}

function storeBooleans({ memory, u8, rows }: ColumnDecoding, wire: WireColumn, column: ChunkColumn): void {
  const { nulls, at } = wire
  const out = memory.u8.subarray(column.address, column.address + rows)
  let value = 0
  for (let row = 0; row < rows; row++) {
    if (isNull(u8, nulls, row)) out[row] = 0
    else {
      out[row] = (u8[at + (value >>> 3)]! >>> (value & 7)) & 1
      value++
    }
  }
}

function isNull(u8: Uint8Array, nulls: number, row: number): boolean {
  return nulls >= 0 && ((u8[nulls + (row >>> 3)]! >>> (row & 7)) & 1) === 1
}

function storeStrings({ memory, u8, view, rows }: ColumnDecoding, wire: WireColumn, column: ChunkColumn): void {
  const { u32, i32 } = memory
  const { nulls, at } = wire
  const data = u8.byteOffset + wire.data
  let word = column.address >>> 2
  let start = 0
  let next = at + 4
  for (let row = 0; row < rows; row++, word += 2) {
    if (isNull(u8, nulls, row)) {
      u32[word] = 0
      i32[word + 1] = -1
      continue
    }
    const end = view.getUint32(next, true)
    u32[word] = data + start
    i32[word + 1] = end - start
    start = end
    next += 4
  }
}

const noSymbols = (): Uint8Array => new Uint8Array(0)

function storeSymbols(decoding: ColumnDecoding, planned: PlannedColumn, column: ChunkColumn): void {
  const { wire, schema } = planned
  const own = wire.entriesAt < 0 ? null : readEntries(decoding, wire)
  const ids = readIds(decoding, wire, own === null ? decoding.symbols.count : own.length)
  if (schema.type.name !== 'SYMBOL') {
    const textOf = (index: number) => own?.[ids[index]!] ?? decoding.symbols.text(ids[index]!)
    storeConverted(decoding, planned, column, textOf)
    return
  }
  const dictionary = decoding.target.table.dictionary(schema.id)
  const { heap } = decoding.target
  if (own === null) {
    const codes = decoding.symbols.codesOf(dictionary)
    storeCodes(decoding, wire, column, ids, codes, (id) => decoding.symbols.intern(id, dictionary, heap))
    return
  }
  const codes = new Int32Array(own.length).fill(-1)
  storeCodes(decoding, wire, column, ids, codes, (id) => {
    const text = own[id] ?? new Uint8Array(0)
    return dictionary.intern(heap.put(text), text.length) ?? -1
  })
}

/** The ids, each below `count`: valid until the next column. */
function readIds({ u8, scratch }: ColumnDecoding, { name, at, values }: WireColumn, count: number): Uint32Array {
  const ids = scratch.ids(values)
  let from = at
  let largest = 0
  for (let index = 0; index < values; index++) {
    let byte = u8[from++]!
    let id = byte & 0x7f
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = u8[from++]!
      // An id beyond 32 bits is none of a dictionary.
      id = shift < 28 ? id | ((byte & 0x7f) << shift) : 0xffff_ffff
    }
    if (id > largest) largest = id
    ids[index] = id
  }
  if (values === 0 || largest < count) return ids
  throw new NetworkError(`the dictionary has no such symbol [column=${name}, id=${largest}, entries=${count}]`)
}

function readEntries({ u8, view }: ColumnDecoding, { entriesAt, entries }: WireColumn): Uint8Array[] {
  const reader = new WireReader(u8, view, entriesAt, u8.length)
  return Array.from({ length: entries }, () => {
    const bytes = reader.varint()
    const at = reader.take(bytes)
    return u8.subarray(at, at + bytes)
  })
}

function storeCodes(
  { memory, u8, rows }: ColumnDecoding,
  { nulls }: WireColumn,
  column: ChunkColumn,
  ids: Uint32Array,
  codes: Int32Array,
  intern: (id: number) => number,
): void {
  const { i32 } = memory
  const first = column.address >>> 2
  let index = 0
  for (let row = 0; row < rows; row++) {
    if (isNull(u8, nulls, row)) {
      i32[first + row] = -1
      continue
    }
    const id = ids[index++]!
    let code = codes[id]!
    if (code < 0) {
      code = intern(id)
      codes[id] = code
    }
    i32[first + row] = code
  }
}

function storeConverted(
  decoding: ColumnDecoding,
  planned: PlannedColumn,
  column: ChunkColumn,
  symbolAt: ValueSource['symbolAt'],
): void {
  const {
    memory,
    u8,
    target,
    rows,
    scratch: { slot },
  } = decoding
  const { wire, schema } = planned
  const source = sourceOf(decoding, wire, symbolAt)
  fillNull(memory, column.type, column.address, 0, rows)
  let index = 0
  for (let row = 0; row < rows; row++) {
    if (isNull(u8, wire.nulls, row)) continue
    const error = convertWireValue(source, index++, schema, slot)
    if (error !== '') {
      decoding.misfit(row, planned, error)
      continue
    }
    if (slot.form === 'null') continue
    if (schema.type.name === 'SYMBOL') {
      const code = target.table.dictionary(schema.id).intern(target.heap.put(slot.bytes), slot.bytes.length)
      setNumber(slot, code ?? -1)
    }
    storeSlot(memory, target.heap, column, row, slot)
  }
}

function sourceOf(decoding: ColumnDecoding, wire: WireColumn, symbolAt: ValueSource['symbolAt']): ValueSource {
  const { memory, u8, view, target } = decoding
  if (!wire.gorilla) return { u8, view, column: wire, at: wire.at, symbolAt }
  const bytes = wire.values * 8
  const to = target.scratch(bytes)
  expandTimestamps(decoding, wire, to)
  const expanded = memory.u8.subarray(to, to + bytes)
  return { u8: expanded, view: new DataView(expanded.buffer, to, bytes), column: wire, at: 0, symbolAt }
}
