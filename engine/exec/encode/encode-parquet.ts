// Result rows as a Parquet file. Pages are made column by column while rows come; a row group leaves when it is complete,
// in pieces, so that a slow reader parks the query between them.
//
//   file     "PAR1" | row groups | page index | footer | footer bytes u32 | "PAR1"
//   group    column chunks in order: dictionary page if any, data pages
//
// A row group ends at the rows that were asked for, or when its pages take much memory: the encoded pages of one group (of
// a few, where threads share the work) are what an export holds.

import { SqlError } from '../../base/errors.js'
import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import { type ParquetTypes, parquetThrift } from '../../storage/part/parquet-thrift.js'
import { type ColumnMapping, physicalTypes } from '../../storage/part/parquet-types.js'
import { boundsOf, widened } from '../../storage/part/part-footer.js'
import { typeText } from '../../types/column-types.js'
import type { QuerySpace } from '../batch/query-space.js'
import type { Batch, Operator } from '../batch/vector.js'
import { codecIds } from './encode-parquet-codec.js'
import type { ExportedChunk } from './encode-parquet-column.js'
import { type ExportedGroup, GroupEncoder } from './encode-parquet-group.js'
import { sharedRowGroups } from './encode-parquet-rows.js'
import { sharedExport } from './encode-parquet-shared.js'
import { exportMappingOf, exportSchemaOf, gatherFormOf } from './encode-parquet-types.js'
import { sharedSortedGroups } from './encode-sorted-shared.js'
import type { Encoder, EncoderOptions, RowWindow } from './encoder.js'
import type { ParquetEncoding } from './parquet-encoding.js'

const magic = Buffer.from('PAR1')

export function parquetEncoder(encoding: ParquetEncoding, options: EncoderOptions): Encoder {
  return new ParquetFile(encoding, options)
}

class ParquetFile implements Encoder {
  private readonly encoding: ParquetEncoding
  private readonly options: EncoderOptions
  private readonly encoder: GroupEncoder
  /** Finished bytes that have not gone to the writer yet. */
  private waiting: Uint8Array[] = []
  private written = 0
  /** Memory of the groups that wait. */
  private placed: QuerySpace[] = []
  /** Of the file, the waiting ones included. */
  private bytes = 0
  private totalRows = 0
  private readonly groups: ParquetTypes.RowGroup[] = []
  private readonly indexed: IndexedChunk[] = []

  constructor(encoding: ParquetEncoding, options: EncoderOptions) {
    const { context, columns } = options
    this.encoding = encoding
    this.options = options
    checkBloom(encoding, columns)
    this.encoder = new GroupEncoder(encoding, context, columns, (group) => {
      this.place(group)
      if (group.space !== null) this.placed.push(group.space)
    })
    context.onEnd(() => {
      this.encoder.abandon()
      this.free()
    })
  }

  begin(): void {
    this.options.writer.bytes(magic)
    this.options.writer.flush()
    this.bytes = magic.length
  }

  /** Rows of one table come as groups, made by several threads, and their batches only count rows. */
  operator(plan: Plan, { skip, rowsMax }: RowWindow): Operator | undefined {
    if (skip > 0 || rowsMax !== Number.POSITIVE_INFINITY) return undefined
    const { context } = this.options
    const place = (group: ExportedGroup): void => this.place(group)
    return (
      sharedExport(context, plan, this.encoding, place) ??
      sharedRowGroups(context, plan, this.encoding, place) ??
      sharedSortedGroups(context, plan, this.encoding, place)
    )
  }

  rows({ vectors }: Batch, from: number, to: number): void {
    if (vectors.length > 0) this.encoder.rows(vectors, from, to)
  }

  end(): void {
    this.encoder.end()
    this.waiting.push(...pageIndex(this.indexed, this.bytes))
    const footer = parquetThrift().serialize(this.footer())
    const tail = Buffer.alloc(8)
    tail.writeUInt32LE(footer.length, 0)
    magic.copy(tail, 4)
    this.waiting.push(footer, tail)
  }

  drain(): boolean {
    const chunk = this.waiting[this.written]
    if (chunk === undefined) return false
    this.options.writer.bytes(chunk)
    this.written++
    if (this.written === this.waiting.length) {
      this.options.writer.flush()
      this.waiting = []
      this.written = 0
      this.free()
    }
    return true
  }

  private free(): void {
    for (const space of this.placed) space.freeAll()
    this.placed = []
  }

  private place({ rows, chunks: exported }: ExportedGroup): void {
    const { types, int64 } = parquetThrift()
    const offset = this.bytes
    let rawBytes = 0
    const paged: Pick<IndexedChunk, 'pages' | 'ranges'>[] = []
    const chunks = exported.map((chunk, index) => {
      const before = this.bytes
      const placed = this.placeChunk(chunk)
      rawBytes += placed.rawBytes
      const metadata = this.chunkMetadata(chunk, index, this.bytes - before, placed)
      paged.push({ ranges: chunk.ranges, pages: placed.places })
      return new types.ColumnChunk({ file_offset: int64(0), meta_data: metadata })
    })
    const group = new types.RowGroup({
      columns: chunks,
      total_byte_size: int64(rawBytes),
      num_rows: int64(rows),
      total_compressed_size: int64(this.bytes - offset),
      file_offset: int64(offset),
      ordinal: this.groups.length & 0x7fff,
    })
    this.placeFilters(group, exported)
    this.groups.push(group)
    // A structure copies what it is made of.
    for (const [index, chunk] of group.columns.entries())
      this.index(chunk, index, paged[index] as (typeof paged)[number])
    this.totalRows += rows
  }

  private placeChunk({ dictionary, pages }: ExportedChunk) {
    const dictionaryOffset = this.bytes
    let rawBytes = 0
    const put = ({ header, body, rawBytes: raw }: { header: Uint8Array; body: Uint8Array; rawBytes: number }) => {
      this.waiting.push(header, body)
      this.bytes += header.length + body.length
      rawBytes += header.length + raw
    }
    if (dictionary !== null) put(dictionary)
    const dataOffset = this.bytes
    const places = pages.map((page) => {
      const offset = this.bytes
      put(page)
      return { offset, bytes: this.bytes - offset, rows: page.rows, nulls: page.nulls }
    })
    return { dictionaryOffset, dataOffset, rawBytes, places }
  }

  /** Bloom filters stand behind their row group. */
  private placeFilters({ columns }: ParquetTypes.RowGroup, exported: readonly ExportedChunk[]): void {
    const { serialize, int64 } = parquetThrift()
    for (const [index, { bloom }] of exported.entries()) {
      const metadata = columns[index]?.meta_data
      if (bloom === null || metadata === undefined) continue
      const header = serialize(bloomHeader(bloom.length))
      metadata.bloom_filter_offset = int64(this.bytes)
      metadata.bloom_filter_length = header.length + bloom.length
      this.waiting.push(header, bloom)
      this.bytes += header.length + bloom.length
    }
  }

  private index(chunk: ParquetTypes.ColumnChunk, index: number, paged: Pick<IndexedChunk, 'pages' | 'ranges'>): void {
    const { type } = this.options.columns[index] as PlanColumn
    const list = gatherFormOf(type, this.encoding.rawArrays) === 'list'
    if (this.encoding.statistics && !list) this.indexed.push({ chunk, mapping: exportMappingOf(type), ...paged })
  }

  private chunkMetadata(
    chunk: ExportedChunk,
    index: number,
    bytes: number,
    { dictionaryOffset, dataOffset, rawBytes }: ReturnType<ParquetFile['placeChunk']>,
  ): ParquetTypes.ColumnMetaData {
    const { types, int64 } = parquetThrift()
    const column = this.options.columns[index] as PlanColumn
    const list = gatherFormOf(column.type, this.encoding.rawArrays) === 'list'
    const mapping = exportMappingOf(column.type)
    const metadata = new types.ColumnMetaData({
      type: (list ? types.Type.DOUBLE : physicalTypes[mapping.physical]) as ParquetTypes.Type,
      encodings: [...chunk.encodings] as ParquetTypes.Encoding[],
      path_in_schema: exportSchemaOf(column, this.encoding.rawArrays).path,
      codec: codecIds[this.encoding.codec] as ParquetTypes.CompressionCodec,
      num_values: int64(chunk.values),
      total_uncompressed_size: int64(rawBytes),
      total_compressed_size: int64(bytes),
      data_page_offset: int64(dataOffset),
    })
    if (chunk.dictionary !== null) metadata.dictionary_page_offset = int64(dictionaryOffset)
    if (this.encoding.statistics && !list) metadata.statistics = statisticsOf(mapping, chunk)
    return metadata
  }

  private footer(): ParquetTypes.FileMetaData {
    const { types, int64 } = parquetThrift()
    const { columns } = this.options
    const { rawArrays, version } = this.encoding
    const root = new types.SchemaElement({ name: 'schema', num_children: columns.length })
    return new types.FileMetaData({
      version,
      schema: [root, ...columns.flatMap((column) => exportSchemaOf(column, rawArrays).elements)],
      num_rows: int64(this.totalRows),
      row_groups: this.groups,
      created_by: 'penstock version 1',
      column_orders: columns.map(() => new types.ColumnOrder({ TYPE_ORDER: new types.TypeDefinedOrder() })),
    })
  }
}

function bloomHeader(numBytes: number): ParquetTypes.BloomFilterHeader {
  const { types } = parquetThrift()
  return new types.BloomFilterHeader({
    numBytes,
    algorithm: new types.BloomFilterAlgorithm({ BLOCK: new types.SplitBlockAlgorithm() }),
    hash: new types.BloomFilterHash({ XXHASH: new types.XxHash() }),
    compression: new types.BloomFilterCompression({ UNCOMPRESSED: new types.Uncompressed() }),
  })
}

/** Refuses what cannot have a filter before a byte is written. */
function checkBloom({ bloom, rawArrays }: ParquetEncoding, columns: readonly PlanColumn[]): void {
  for (const name of bloom?.columns ?? []) {
    const column = columns.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
    if (column === undefined) throw new SqlError(`bloom filter column does not exist [column=${name}]`, 0)
    const { type } = column
    if (type.name === 'BOOLEAN' || gatherFormOf(type, rawArrays) === 'list')
      throw new SqlError(`a column of this type has no bloom filter [column=${name}, type=${typeText(type)}]`, 0)
  }
}

function statisticsOf(mapping: ColumnMapping, { ranges, nulls }: ExportedChunk): ParquetTypes.Statistics {
  const { types, int64 } = parquetThrift()
  const statistics = new types.Statistics({ null_count: int64(nulls) })
  let all: Buffer | undefined
  for (const range of ranges) all = widened(mapping.range, all, range)
  if (all !== undefined) {
    const { min, max } = boundsOf(mapping, all)
    statistics.min_value = min
    statistics.max_value = max
  }
  return statistics
}

// The page index of an exported Parquet file: where the pages of each column chunk lie, with their least and greatest values
// where the type has an order. It lies between the last row group and the footer: all column indexes, then all offset
// indexes. Lists have none: their pages do not say where rows begin.

/** What is to be said of the pages of one chunk. */
interface IndexedChunk {
  readonly chunk: ParquetTypes.ColumnChunk
  readonly mapping: ColumnMapping
  readonly pages: readonly {
    readonly offset: number
    readonly bytes: number
    readonly rows: number
    readonly nulls: number
  }[]
  readonly ranges: ExportedChunk['ranges']
}

/** The bytes of all indexes, that begin at `offset` of the file; the chunks are told where theirs lie. */
function pageIndex(chunks: readonly IndexedChunk[], offset: number): Buffer[] {
  const { int64 } = parquetThrift()
  const all: Buffer[] = []
  let at = offset
  const put = (bytes: Buffer): [ReturnType<typeof int64>, number] => {
    const place = at
    all.push(bytes)
    at += bytes.length
    return [int64(place), bytes.length]
  }
  for (const indexed of chunks) {
    if (indexed.mapping.range < 0) continue
    const [place, bytes] = put(columnIndex(indexed))
    indexed.chunk.column_index_offset = place
    indexed.chunk.column_index_length = bytes
  }
  for (const indexed of chunks) {
    const [place, bytes] = put(offsetIndex(indexed))
    indexed.chunk.offset_index_offset = place
    indexed.chunk.offset_index_length = bytes
  }
  return all
}

function columnIndex({ mapping, pages, ranges }: IndexedChunk): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  const nothing = { min: Buffer.alloc(0), max: Buffer.alloc(0) }
  const bounds = ranges.map((range) => (range === undefined ? nothing : boundsOf(mapping, range)))
  return serialize(
    new types.ColumnIndex({
      null_pages: ranges.map((range) => range === undefined),
      min_values: bounds.map(({ min }) => min),
      max_values: bounds.map(({ max }) => max),
      boundary_order: types.BoundaryOrder.UNORDERED,
      null_counts: pages.map(({ nulls }) => int64(nulls)),
    }),
  )
}

function offsetIndex({ pages }: IndexedChunk): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  let firstRow = 0
  const locations = pages.map(({ offset, bytes, rows }) => {
    const first = firstRow
    firstRow += rows
    return new types.PageLocation({
      offset: int64(offset),
      compressed_page_size: bytes,
      first_row_index: int64(first),
    })
  })
  return serialize(new types.OffsetIndex({ page_locations: locations }))
}
