// Codec for the payload of a rows or relocation frame (log record): one transaction with its schema changes and its
// rows, for any number of tables.
//
// Layout, little-endian; every part begins at a multiple of 8 bytes (zeros between), so that columns can be read in
// place:
//
//   payload    version u16 (1) | source kind u16 | source bytes u32 | ddl bytes u32 | table count u32 |
//              source | ddl (JSON text of an array; nothing when empty) | tables
//   table      table id u32 | structure version u32 | transaction u64 | row count u32 | column count u32 |
//              min timestamp i64 | max timestamp i64 | symbol column count u32 | 0 u32 | symbols | columns
//   symbols    column id u32 | first id u32 | count u32 | string bytes u32 | lengths i32 each | strings
//   column     column id u32 | type tag u8 | a u8 | b u8 | 0 u8 | data bytes u32 | 0 u32 | data
//   data       fixed width: the values as in memory. Variable: lengths i32 each (-1 null), padded to 8, then the bytes.
//
//   source     see source-position.ts
//
// Encoding does not copy large columns of fixed width; their chunks are views of the caller's memory. Decoding returns views
// of the payload. A column that is missing in a table reads as NULL in all rows.

import { assert } from '../base/assert.js'
import { CorruptionError } from '../base/errors.js'
import { columnTypes, type DataType, dataType, isVariable, typeByTag, widthOf } from '../types/column-types.js'
import { ChunkWriter } from './chunks.js'
import { alignUp, getU64, setU64, utf8, viewOf } from './frame.js'
import { describeSourcePosition, type SourcePosition } from './source-position.js'
import { frameKinds } from './types.js'

/** A run of values in memory. */
export interface ValuesPlace {
  readonly address: number
  /** Number of values. */
  readonly filled: number
}

/** The values of one column. */
export type ColumnValues =
  /** In memory: values of fixed width, or entries {address u32, length i32} that point there, in one or more places. */
  | { readonly kind: 'places'; readonly places: readonly ValuesPlace[]; readonly memory: Uint8Array }
  /** Fixed width: values in memory layout, in one or more chunks. */
  | { readonly kind: 'fixed'; readonly chunks: readonly Uint8Array[] }
  /** Variable width as in the frame, which decoding returns: i32 lengths (-1 null), and the bytes concatenated. */
  | { readonly kind: 'packed'; readonly lengths: Uint8Array; readonly bytes: Uint8Array }

export interface RowsColumn {
  readonly id: number
  readonly type: DataType
  readonly values: ColumnValues
}

/** Symbols that the transaction adds to a dictionary, with the ids firstId, firstId + 1, ... */
export interface NewSymbols {
  readonly columnId: number
  readonly firstId: number
  readonly count: number
  /** i32 each, in bytes of UTF-8. */
  readonly lengths: Uint8Array
  /** The strings, concatenated. */
  readonly bytes: Uint8Array
}

export interface TableRows {
  readonly tableId: number
  readonly structureVersion: number
  /** Transaction number of the table, below 2^53. */
  readonly transaction: number
  readonly rowCount: number
  /** Range of the designated timestamp, in its unit; 0 without one. */
  readonly minTimestamp: bigint
  readonly maxTimestamp: bigint
  readonly symbols: readonly NewSymbols[]
  readonly columns: readonly RowsColumn[]
}

export interface RowsTransaction {
  readonly sourcePosition: SourcePosition
  /** Schema changes that precede the rows, as plain JSON objects. */
  readonly ddl: readonly object[]
  readonly tables: readonly TableRows[]
}

const payloadVersion = 1
const payloadHeaderBytes = 16
const tableHeaderBytes = 48
const symbolsHeaderBytes = 16
const columnHeaderBytes = 16

const textEncoder = new TextEncoder()

/** Encodes a payload as chunks for Wal.append. They are valid as long as the columns' memory is. */
export function encodeRows({ sourcePosition, ddl, tables }: RowsTransaction): Uint8Array[] {
  const writer = new ChunkWriter()
  const ddlBytes = ddl.length === 0 ? new Uint8Array(0) : encodeJson(ddl)
  const at = writer.reserve(payloadHeaderBytes)
  const { view } = writer
  view.setUint16(at, payloadVersion, true)
  view.setUint16(at + 2, sourcePosition.kind, true)
  view.setUint32(at + 4, sourcePosition.bytes.length, true)
  view.setUint32(at + 8, ddlBytes.length, true)
  view.setUint32(at + 12, tables.length, true)
  writer.add(sourcePosition.bytes)
  writer.pad()
  writer.add(ddlBytes)
  writer.pad()
  for (const table of tables) encodeTable(writer, table)
  return writer.finish()
}

function encodeTable(writer: ChunkWriter, table: TableRows): void {
  assert(table.rowCount === 0 || table.minTimestamp <= table.maxTimestamp, 'T1: the time range of a table is not empty')
  assert(table.transaction > 0, 'S3: transactions count from 1')
  const at = writer.reserve(tableHeaderBytes)
  const { view } = writer
  view.setUint32(at, table.tableId, true)
  view.setUint32(at + 4, table.structureVersion, true)
  setU64(view, at + 8, table.transaction)
  view.setUint32(at + 16, table.rowCount, true)
  view.setUint32(at + 20, table.columns.length, true)
  view.setBigInt64(at + 24, table.minTimestamp, true)
  view.setBigInt64(at + 32, table.maxTimestamp, true)
  view.setUint32(at + 40, table.symbols.length, true)
  for (const symbols of table.symbols) encodeSymbols(writer, symbols)
  for (const column of table.columns) encodeColumn(writer, column, table.rowCount)
}

function encodeSymbols(writer: ChunkWriter, { columnId, firstId, count, lengths, bytes }: NewSymbols): void {
  assert(lengths.length === count * 4, 'R1: each new symbol has a length')
  const at = writer.reserve(symbolsHeaderBytes)
  const { view } = writer
  view.setUint32(at, columnId, true)
  view.setUint32(at + 4, firstId, true)
  view.setUint32(at + 8, count, true)
  view.setUint32(at + 12, bytes.length, true)
  writer.add(lengths)
  writer.pad()
  writer.add(bytes)
  writer.pad()
}

function encodeColumn(writer: ChunkWriter, { id, type, values }: RowsColumn, rowCount: number): void {
  const bytes = dataBytes(type, values, rowCount)
  const at = writer.reserve(columnHeaderBytes)
  const { view } = writer
  view.setUint32(at, id, true)
  view.setUint8(at + 4, columnTypes[type.name].tag)
  view.setUint8(at + 5, type.a)
  view.setUint8(at + 6, type.b)
  view.setUint32(at + 8, bytes, true)
  if (values.kind === 'places') addPlaces(writer, type, values.places, values.memory)
  else if (values.kind === 'fixed') {
    for (const chunk of values.chunks) writer.add(chunk)
  } else {
    writer.add(values.lengths)
    writer.pad()
    writer.add(values.bytes)
  }
  writer.pad()
}

/** Asserts that the values fit the type and the rows; returns their size in the frame. */
function dataBytes(type: DataType, values: ColumnValues, rowCount: number): number {
  if (values.kind === 'places') return placesBytes(type, values.places, values.memory, rowCount)
  assert(isVariable(type) === (values.kind !== 'fixed'), 'R1: values are as wide as their type says')
  if (values.kind === 'packed') {
    assert(values.lengths.length === rowCount * 4, 'R1: each row has a length')
    return alignUp(rowCount * 4) + values.bytes.length
  }
  const held = values.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  assert(held === rowCount * widthOf(type), 'R1: a column has a value for each row')
  return held
}

/** A few strings are copied one by one. */
function addPlaces(writer: ChunkWriter, type: DataType, places: readonly ValuesPlace[], memory: Uint8Array): void {
  const width = widthOf(type)
  if (!isVariable(type)) {
    for (const { address, filled } of places) writer.addFrom(memory, address, address + filled * width)
    return
  }
  const entries = viewOf(memory)
  for (const { address, filled } of places) {
    const at = writer.reserve(filled * 4)
    for (let row = 0; row < filled; row++)
      writer.view.setInt32(at + row * 4, entries.getInt32(address + row * 8 + 4, true), true)
  }
  writer.pad()
  for (const { address, filled } of places) {
    for (let row = 0; row < filled; row++) {
      const start = entries.getUint32(address + row * 8, true)
      const length = entries.getInt32(address + row * 8 + 4, true)
      if (length > 0) writer.addFrom(memory, start, start + length)
    }
  }
}

function placesBytes(type: DataType, places: readonly ValuesPlace[], memory: Uint8Array, rowCount: number): number {
  let rows = 0
  for (const { filled } of places) rows += filled
  assert(rows === rowCount, 'R1: a column has a value for each row')
  if (!isVariable(type)) return rows * widthOf(type)
  const entries = viewOf(memory)
  let bytes = alignUp(rows * 4)
  for (const { address, filled } of places)
    for (let row = 0; row < filled; row++) bytes += Math.max(0, entries.getInt32(address + row * 8 + 4, true))
  return bytes
}

/** Decodes a payload; columns are views of it. Throws CorruptionError if it is malformed. */
export function decodeRows(payload: Uint8Array): RowsTransaction {
  const reader = new PayloadReader(payload)
  const { sourcePosition, ddl, tableCount } = decodeHeader(reader)
  const tables: TableRows[] = []
  for (let index = 0; index < tableCount; index++) tables.push(decodeTable(reader))
  return { sourcePosition, ddl, tables }
}

function decodeHeader(reader: PayloadReader) {
  const header = reader.view(payloadHeaderBytes)
  if (header.getUint16(0, true) !== payloadVersion) throw reader.error('unknown version')
  const sourcePosition = { kind: header.getUint16(2, true), bytes: reader.take(header.getUint32(4, true)) }
  const ddlBytes = reader.take(header.getUint32(8, true))
  const ddl = ddlBytes.length === 0 ? [] : decodeJson(ddlBytes)
  if (!Array.isArray(ddl)) throw reader.error('schema changes are no list')
  return { sourcePosition, ddl: ddl as object[], tableCount: header.getUint32(12, true) }
}

function decodeTable(reader: PayloadReader): TableRows {
  const header = reader.view(tableHeaderBytes)
  const rowCount = header.getUint32(16, true)
  const symbols: NewSymbols[] = []
  const columns: RowsColumn[] = []
  for (let left = header.getUint32(40, true); left > 0; left--) symbols.push(decodeSymbols(reader))
  for (let left = header.getUint32(20, true); left > 0; left--) columns.push(decodeColumn(reader, rowCount))
  return { ...tableIdentity(header), rowCount, symbols, columns }
}

function tableIdentity(header: DataView) {
  return {
    tableId: header.getUint32(0, true),
    structureVersion: header.getUint32(4, true),
    transaction: getU64(header, 8),
    minTimestamp: header.getBigInt64(24, true),
    maxTimestamp: header.getBigInt64(32, true),
  }
}

function decodeSymbols(reader: PayloadReader): NewSymbols {
  const header = reader.view(symbolsHeaderBytes)
  const count = header.getUint32(8, true)
  const lengths = reader.take(count * 4)
  const bytes = reader.take(header.getUint32(12, true))
  return { columnId: header.getUint32(0, true), firstId: header.getUint32(4, true), count, lengths, bytes }
}

function decodeColumn(reader: PayloadReader, rowCount: number): RowsColumn {
  const header = reader.view(columnHeaderBytes)
  const name = typeByTag(header.getUint8(4))
  if (name === undefined) throw reader.error('unknown column type')
  const type = dataType(name, header.getUint8(5), header.getUint8(6))
  const data = reader.take(header.getUint32(8, true))
  const id = header.getUint32(0, true)
  if (!isVariable(type)) {
    if (data.length !== rowCount * widthOf(type)) throw reader.error('a column has the wrong size')
    return { id, type, values: { kind: 'fixed', chunks: [data] } }
  }
  const bytesAt = alignUp(rowCount * 4)
  if (data.length < bytesAt) throw reader.error('a column has the wrong size')
  return {
    id,
    type,
    values: { kind: 'packed', lengths: data.subarray(0, rowCount * 4), bytes: data.subarray(bytesAt) },
  }
}

/** Reads a payload sequentially, and never beyond its end. */
class PayloadReader {
  private readonly payload: Uint8Array
  private at = 0

  constructor(payload: Uint8Array) {
    this.payload = payload
  }

  view(bytes: number): DataView {
    return viewOf(this.take(bytes))
  }

  take(bytes: number): Uint8Array {
    const part = this.payload.subarray(this.at, this.at + bytes)
    if (part.length < bytes) throw this.error('it ends too early')
    this.at += alignUp(bytes)
    return part
  }

  error(problem: string): CorruptionError {
    return new CorruptionError(`log frame does not parse: ${problem}`, 'wal', this.at)
  }
}

export function encodeJson(value: unknown): Uint8Array {
  return textEncoder.encode(JSON.stringify(value))
}

/** Throws CorruptionError if the text is not JSON. */
export function decodeJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8(bytes))
  } catch {
    throw new CorruptionError('log frame does not parse: no JSON', 'wal', 0)
  }
}

const describedMax = 200

/** Describes the contents of a frame for a log record. The payload may be damaged: unreadable parts are omitted. */
export function describePayload(kind: number, payload: Uint8Array): string {
  if (kind === frameKinds.ddl) return `ddl ${utf8(payload.subarray(0, describedMax))}`
  if (kind !== frameKinds.rows && kind !== frameKinds.relocation) return `frame of kind ${kind}`
  const parts: string[] = [kind === frameKinds.rows ? 'rows' : 'relocated rows']
  try {
    const reader = new PayloadReader(payload)
    const { sourcePosition, tableCount } = decodeHeader(reader)
    parts.push(...describeSourcePosition(sourcePosition))
    for (let index = 0; index < tableCount; index++) {
      const { tableId, transaction, rowCount } = decodeTable(reader)
      parts.push(`table ${tableId} transaction ${transaction} (${rowCount} rows)`)
    }
  } catch {
    parts.push('the rest is unreadable')
  }
  return parts.join(', ').slice(0, describedMax)
}
