// The end of a part: page index and footer in Parquet's structures, and the one key of our own in its metadata.
//
//   file     "PAR1" | column chunks | symbol ids | index | index bytes u32 | crc32 u32 | footer | footer bytes u32 | "PAR1"
//   index    column indexes | offset indexes
//
// The checksum covers index and footer; other Parquet readers do not see it. One row group. The key `penstock` holds a JSON text (PartMetadata). For each SYMBOL column it names a run of i32 in
// the file: the table's id of each entry of the column's dictionary page, so that a reader maps symbols without texts.
// Other Parquet readers do not see that run.

import { crc32 } from 'node:zlib'
import { assert } from '../base/assert.js'
import { rangeKinds } from '../kernels/parquet.js'
import { typeText } from '../types/column-types.js'
import { pageCodecs } from './parquet-codec.js'
import { type ParquetTypes, parquetThrift } from './parquet-thrift.js'
import { type ColumnMapping, mappingOf, physicalTypes, schemaElementOf } from './parquet-types.js'
import type { WrittenColumn, WrittenPage } from './part-column.js'
import type { ColumnSchema, TableSchema } from './schema.js'

export const parquetMagic = 'PAR1'
export const metadataKey = 'penstock'

export interface SymbolRun {
  readonly columnId: number
  readonly offset: number
  readonly count: number
  readonly crc: number
}

export interface PartMetadata {
  readonly format: 1
  readonly partId: number
  readonly table: string
  readonly tableId: number
  readonly schemaVersion: number
  readonly partition: string
  readonly timestampId: number
  readonly minTxn: number
  readonly maxTxn: number
  /** `text` is for people; `type` is what counts. */
  readonly columns: readonly {
    readonly id: number
    readonly name: string
    readonly type: ColumnSchema['type']
    readonly text: string
  }[]
  readonly symbols: readonly SymbolRun[]
}

export interface FooterColumn {
  readonly column: ColumnSchema
  readonly written: WrittenColumn
}

export interface FooterInput {
  readonly schema: TableSchema
  readonly partId: number
  readonly partition: string
  readonly minTxn: number
  readonly maxTxn: number
  readonly rows: number
  readonly firstRows: readonly number[]
  readonly columns: readonly FooterColumn[]
  readonly symbols: readonly SymbolRun[]
}

/** Writes page index and footer; `write` appends to the file and answers where. */
export function writeFooter(input: FooterInput, write: (chunks: readonly Uint8Array[]) => number): void {
  const { serialize, int64 } = parquetThrift()
  const chunks = input.columns.map((column) => columnChunk(column, input.rows))
  let crc = 0
  let indexBytes = 0
  const writeIndex = (bytes: Buffer) => {
    crc = crc32(bytes, crc)
    indexBytes += bytes.length
    return int64(write([bytes]))
  }
  for (const [index, { column, written }] of input.columns.entries()) {
    const bytes = columnIndex(column, written, input.schema)
    if (bytes === undefined) continue
    const chunk = chunks[index] as ParquetTypes.ColumnChunk
    chunk.column_index_offset = writeIndex(bytes)
    chunk.column_index_length = bytes.length
  }
  for (const [index, { written }] of input.columns.entries()) {
    const bytes = offsetIndex(written, input.firstRows)
    const chunk = chunks[index] as ParquetTypes.ColumnChunk
    chunk.offset_index_offset = writeIndex(bytes)
    chunk.offset_index_length = bytes.length
  }
  const footer = serialize(fileMetadata(input, chunks))
  const head = Buffer.alloc(tailBytes)
  head.writeUInt32LE(indexBytes, 0)
  head.writeUInt32LE(crc32(footer, crc), 4)
  const tail = Buffer.alloc(tailBytes)
  tail.writeUInt32LE(footer.length, 0)
  tail.write(parquetMagic, 4)
  write([head, footer, tail])
}

/** Bytes of what precedes the footer and of what follows it. */
export const tailBytes = 8

function fileMetadata(input: FooterInput, chunks: ParquetTypes.ColumnChunk[]): ParquetTypes.FileMetaData {
  const { types, int64 } = parquetThrift()
  const { columns, rows } = input
  const sum = (pick: (written: WrittenColumn) => number) => columns.reduce((all, { written }) => all + pick(written), 0)
  const group = new types.RowGroup({
    columns: chunks,
    total_byte_size: int64(sum((written) => written.rawBytes)),
    num_rows: int64(rows),
    total_compressed_size: int64(sum((written) => written.bytes)),
    file_offset: int64(4),
    ordinal: 0,
  })
  const sortedBy = columns.findIndex(({ column }) => column.id === input.schema.timestampId)
  if (sortedBy >= 0) {
    group.sorting_columns = [new types.SortingColumn({ column_idx: sortedBy, descending: false, nulls_first: false })]
  }
  const root = new types.SchemaElement({ name: 'schema', num_children: columns.length })
  return new types.FileMetaData({
    version: 2,
    schema: [root, ...columns.map(({ column }) => schemaElementOf(column.name, column.id, column.type))],
    num_rows: int64(rows),
    row_groups: [group],
    key_value_metadata: [new types.KeyValue({ key: metadataKey, value: JSON.stringify(metadataOf(input)) })],
    created_by: 'penstock version 1',
    column_orders: columns.map(() => new types.ColumnOrder({ TYPE_ORDER: new types.TypeDefinedOrder() })),
  })
}

function metadataOf(input: FooterInput): PartMetadata {
  const { schema, partId, partition, minTxn, maxTxn, columns, symbols } = input
  return {
    format: 1,
    partId,
    ...{ table: schema.name, tableId: schema.id, schemaVersion: schema.version },
    ...{ partition, timestampId: schema.timestampId, minTxn, maxTxn },
    columns: columns.map(({ column: { id, name, type } }) => ({ id, name, type, text: typeText(type) })),
    symbols,
  }
}

function columnChunk({ column, written }: FooterColumn, rows: number): ParquetTypes.ColumnChunk {
  const { types, int64 } = parquetThrift()
  const mapping = mappingOf(column.type)
  const firstPage = written.pages[0]
  assert(firstPage !== undefined, 'a column chunk has a page')
  const nulls = written.pages.reduce((sum, page) => sum + page.nulls, 0)
  const metadata = new types.ColumnMetaData({
    type: physicalTypes[mapping.physical] as number as ParquetTypes.Type,
    encodings: [...written.encodings] as ParquetTypes.Encoding[],
    path_in_schema: [column.name],
    codec: pageCodecs[written.codec] as number as ParquetTypes.CompressionCodec,
    num_values: int64(rows),
    total_uncompressed_size: int64(written.rawBytes),
    total_compressed_size: int64(written.bytes),
    data_page_offset: int64(firstPage.offset),
    statistics: statisticsOf(mapping, written.pages, nulls),
  })
  if (written.dictionaryOffset !== undefined) metadata.dictionary_page_offset = int64(written.dictionaryOffset)
  return new types.ColumnChunk({ file_offset: int64(0), meta_data: metadata })
}

function statisticsOf(mapping: ColumnMapping, pages: readonly WrittenPage[], nulls: number): ParquetTypes.Statistics {
  const { types, int64 } = parquetThrift()
  const statistics = new types.Statistics({ null_count: int64(nulls) })
  let range: Buffer | undefined
  for (const page of pages) range = widened(mapping.range, range, page.range)
  if (range !== undefined) {
    const { min, max } = boundsOf(mapping, range)
    statistics.min_value = min
    statistics.max_value = max
  }
  return statistics
}

/** The range of both; 16 bytes {least, greatest} in the kernel's layout. */
function widened(kind: number, all: Buffer | undefined, page: Uint8Array | undefined): Buffer | undefined {
  if (page === undefined) return all
  const mine = Buffer.from(page)
  if (all === undefined) return mine
  if (rangeValue(kind, mine, 0) < rangeValue(kind, all, 0)) mine.copy(all, 0, 0, 8)
  if (rangeValue(kind, mine, 8) > rangeValue(kind, all, 8)) mine.copy(all, 8, 8, 16)
  return all
}

/** A bound as a number, or as a bigint where 64 bits need it. */
export function rangeValue(kind: number, range: Buffer, offset: number): number | bigint {
  switch (kind) {
    case rangeKinds.i32:
      return range.readInt32LE(offset)
    case rangeKinds.u32:
      return range.readUInt32LE(offset)
    case rangeKinds.i64:
      return range.readBigInt64LE(offset)
    case rangeKinds.f32:
      return range.readFloatLE(offset)
    default:
      return range.readDoubleLE(offset)
  }
}

/** Bounds as Parquet wants them: a zero is -0 as minimum and +0 as maximum. */
function boundsOf(mapping: ColumnMapping, range: Uint8Array): { min: Buffer; max: Buffer } {
  const min = Buffer.from(range.slice(0, mapping.diskBytes))
  const max = Buffer.from(range.slice(8, 8 + mapping.diskBytes))
  const floating = mapping.range === rangeKinds.f32 || mapping.range === rangeKinds.f64
  if (floating && rangeValue(mapping.range, Buffer.from(range), 0) === 0) min[min.length - 1] = 0x80
  if (floating && rangeValue(mapping.range, Buffer.from(range), 8) === 0) max[max.length - 1] = 0
  return { min, max }
}

function columnIndex(column: ColumnSchema, written: WrittenColumn, schema: TableSchema): Buffer | undefined {
  const { types, serialize, int64 } = parquetThrift()
  const mapping = mappingOf(column.type)
  if (mapping.range < 0) return undefined
  const nothing = { min: Buffer.alloc(0), max: Buffer.alloc(0) }
  const bounds = written.pages.map(({ range }) => (range === undefined ? nothing : boundsOf(mapping, range)))
  const sorted = column.id === schema.timestampId
  return serialize(
    new types.ColumnIndex({
      null_pages: written.pages.map(({ range }) => range === undefined),
      min_values: bounds.map(({ min }) => min),
      max_values: bounds.map(({ max }) => max),
      boundary_order: sorted ? types.BoundaryOrder.ASCENDING : types.BoundaryOrder.UNORDERED,
      null_counts: written.pages.map(({ nulls }) => int64(nulls)),
    }),
  )
}

function offsetIndex({ pages }: WrittenColumn, firstRows: readonly number[]): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  const locations = pages.map(
    (page, index) =>
      new types.PageLocation({
        offset: int64(page.offset),
        compressed_page_size: page.bytes,
        first_row_index: int64(firstRows[index] as number),
      }),
  )
  return serialize(new types.OffsetIndex({ page_locations: locations }))
}
