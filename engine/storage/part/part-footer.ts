// Writes the end of a part (the Parquet file of a table): Parquet's page indexes and footer, and the part index, which
// has the metadata for our own reader.
//
//   file     "PAR1" | column chunks | Bloom filters | symbol ids | column indexes | offset indexes | part index |
//            footer | footer bytes u32 | "PAR1"
//
// The file has one row group. The part index (part-index.ts) and the symbol ids are our own; other Parquet readers skip
// them. The footer's metadata key `penstock` describes the part for people who inspect the file.

import { assert } from '../../base/assert.js'
import { crc32 } from '../../base/checksum.js'
import { rangeKinds } from '../../kernels/parquet.js'
import { typeText } from '../../types/column-types.js'
import type { ColumnSchema, TableSchema } from '../schema/schema.js'
import { pageCodecs } from './parquet-codec.js'
import { type ParquetTypes, parquetThrift } from './parquet-thrift.js'
import { type ColumnMapping, mappingOf, physicalTypes, schemaElementOf } from './parquet-types.js'
import type { WrittenColumn, WrittenPage } from './part-column.js'
import {
  type BloomRun,
  columnMetadata,
  encodePartIndex,
  type PartMetadata,
  parquetMagic,
  rangeValue,
  type SymbolRun,
} from './part-index.js'

const metadataKey = 'penstock'

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
  readonly blooms: readonly BloomRun[]
}

/** The file so far. Both methods append and return the offset of the bytes. */
export interface FooterOutput {
  /** Checksum of what writeOutside() has written. */
  readonly outsideCrc: number
  /** Appends bytes without a checksum of their own. */
  writeOutside(chunks: readonly Uint8Array[]): number
  write(chunks: readonly Uint8Array[]): number
}

/** Writes the page indexes, the part index and the footer. */
export function writeFooter(input: FooterInput, output: FooterOutput): void {
  assert(input.columns.length > 0, 'F2: a part has a column')
  const { serialize, int64 } = parquetThrift()
  const chunks = input.columns.map((column) => columnChunk(column, input))
  for (const [index, { column, written }] of input.columns.entries()) {
    const bytes = columnIndex(column, written, input.schema)
    if (bytes === undefined) continue
    const chunk = chunks[index] as ParquetTypes.ColumnChunk
    chunk.column_index_offset = int64(output.writeOutside([bytes]))
    chunk.column_index_length = bytes.length
  }
  for (const [index, { written }] of input.columns.entries()) {
    const bytes = offsetIndex(written, input.firstRows)
    const chunk = chunks[index] as ParquetTypes.ColumnChunk
    chunk.offset_index_offset = int64(output.writeOutside([bytes]))
    chunk.offset_index_length = bytes.length
  }
  const metadata = metadataOf(input)
  const footer = serialize(fileMetadata(input, chunks, JSON.stringify(metadata)))
  const tail = Buffer.alloc(8)
  tail.writeUInt32LE(footer.length, 0)
  tail.write(parquetMagic, 4)
  // The footer follows the part index, but the checksum in the index covers it.
  const outsideCrc = crc32(tail, crc32(footer, output.outsideCrc))
  output.write(encodePartIndex({ ...metadata, outsideCrc }, input.firstRows, input.columns))
  output.write([footer, tail])
}

function fileMetadata(
  input: FooterInput,
  chunks: ParquetTypes.ColumnChunk[],
  metadata: string,
): ParquetTypes.FileMetaData {
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
    key_value_metadata: [new types.KeyValue({ key: metadataKey, value: metadata })],
    created_by: 'penstock version 1',
    column_orders: columns.map(() => new types.ColumnOrder({ TYPE_ORDER: new types.TypeDefinedOrder() })),
  })
}

function metadataOf(input: FooterInput): PartMetadata {
  const { schema, partId, partition, minTxn, maxTxn, rows, columns, symbols, blooms } = input
  return {
    format: 2,
    partId,
    ...{ table: schema.name, tableId: schema.id, schemaVersion: schema.version },
    ...{ partition, timestampId: schema.timestampId, minTxn, maxTxn, rows },
    columns: columns.map(({ column, written }) => columnMetadata(column, typeText(column.type), written)),
    symbols,
    ...(blooms.length === 0 ? {} : { blooms }),
  }
}

function columnChunk({ column, written }: FooterColumn, { rows, blooms }: FooterInput): ParquetTypes.ColumnChunk {
  const { types, int64 } = parquetThrift()
  const mapping = mappingOf(column.type)
  const firstPage = written.pages[0]
  assert(firstPage !== undefined, 'F2: a column chunk has a page')
  const nulls = written.pages.reduce((sum, page) => sum + page.nulls, 0)
  assert(nulls <= rows, 'R1: a column has no more NULLs than rows')
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
  const { dictionary } = written
  if (dictionary !== undefined) metadata.dictionary_page_offset = int64(dictionary.offset)
  const bloom = blooms.find(({ columnId }) => columnId === column.id)
  if (bloom !== undefined) {
    metadata.bloom_filter_offset = int64(bloom.offset - bloom.headerBytes)
    metadata.bloom_filter_length = bloom.headerBytes + bloom.bytes
  }
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

/** The union of two ranges; 16 bytes {min, max} in the kernel's layout. */
export function widened(kind: number, all: Buffer | undefined, page: Uint8Array | undefined): Buffer | undefined {
  if (page === undefined) return all
  const mine = Buffer.from(page)
  if (all === undefined) return mine
  if (rangeValue(kind, mine, 0) < rangeValue(kind, all, 0)) mine.copy(all, 0, 0, 8)
  if (rangeValue(kind, mine, 8) > rangeValue(kind, all, 8)) mine.copy(all, 8, 8, 16)
  return all
}

/** Bounds as Parquet requires them: a zero is written as -0 for the minimum and +0 for the maximum. */
export function boundsOf(mapping: ColumnMapping, range: Uint8Array): { min: Buffer; max: Buffer } {
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
  assert(pages.length === firstRows.length - 1, 'F2: every page has its first row')
  const { types, serialize, int64 } = parquetThrift()
  const locations = pages.map(
    (page, index) =>
      new types.PageLocation({
        offset: int64(page.offset),
        compressed_page_size: page.headerBytes + page.bytes,
        first_row_index: int64(firstRows[index] as number),
      }),
  )
  return serialize(new types.OffsetIndex({ page_locations: locations }))
}
