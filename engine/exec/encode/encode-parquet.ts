// Encodes result rows as a Parquet file. Pages are encoded column by column while rows arrive. A complete row group is
// sent in several blocks, so that the query can pause between them while a slow client reads.
//
//   file     "PAR1" | row groups | page index | footer | footer bytes u32 | "PAR1"
//   group    column chunks in order: dictionary page if any, data pages; then the Bloom filters if any
//
// A row group ends at the requested number of rows, or when its pages take too much memory. The encoder holds the
// encoded pages of one row group in memory, or of a few if several threads encode row groups.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { Plan, PlanColumn } from '../../sql/plan/plan.js'
import { type ParquetTypes, parquetThrift } from '../../storage/part/parquet-thrift.js'
import { type ColumnMapping, physicalTypes } from '../../storage/part/parquet-types.js'
import { boundsOf, widened } from '../../storage/part/part-footer.js'
import { typeText } from '../../types/column-types.js'
import type { QueryArena } from '../batch/query-arena.js'
import type { Batch, Operator } from '../batch/vector.js'
import { codecIds } from './encode-parquet-codec.js'
import {
  type ColumnChunkMetadata,
  type EncodedGroup,
  GroupEncoder,
  type PageMetadata,
  parquetFormat,
  type RowGroupMetadata,
} from './encode-parquet-group.js'
import { exportMappingOf, exportSchemaOf, gatherFormOf } from './encode-parquet-types.js'
import type { Encoder, EncoderOptions, RowWindow } from './encoder.js'
import { parallelEncode } from './parallel-encode.js'
import type { ParquetEncoding } from './parquet-encoding.js'

const magic = Buffer.from('PAR1')

/** The position of a column chunk in the file. */
interface ChunkPlace {
  readonly offset: number
  /** Offset of the first data page. */
  readonly dataOffset: number
  readonly bytes: number
}

export class ParquetFile implements Encoder {
  private readonly encoding: ParquetEncoding
  private readonly options: EncoderOptions
  /** Created for rows that other threads do not encode. */
  private encoder: GroupEncoder | null = null
  /** Finished bytes that have not been written yet. */
  private waiting: Uint8Array[] = []
  private written = 0
  /** The arenas of the waiting groups. */
  private placed: QueryArena[] = []
  /** Bytes of the file, including waiting ones. */
  private bytes = 0
  private totalRows = 0
  private readonly groups: ParquetTypes.RowGroup[] = []
  private readonly indexed: IndexedChunk[] = []

  constructor(encoding: ParquetEncoding, options: EncoderOptions) {
    const { context, columns } = options
    this.encoding = encoding
    this.options = options
    checkBloom(encoding, columns)
    context.onEnd(() => {
      this.encoder?.abandon()
      this.free()
    })
  }

  /** Nothing leaves before the first row group: a query that has sent nothing can begin anew when memory is short. */
  begin(): void {
    this.options.writer.bytes(magic)
    this.bytes = magic.length
  }

  operator(plan: Plan, window: RowWindow): Operator | undefined {
    if (window.skip > 0 || window.rowsMax !== Number.POSITIVE_INFINITY) return undefined
    const { context, columns, writer } = this.options
    return parallelEncode(this.options, plan, window, parquetFormat(this.encoding, context, columns), {
      direct: null,
      bytes: () => this.bytes,
      certain: () => {},
      note: (note) => {
        for (const group of JSON.parse(note) as RowGroupMetadata[]) this.place(group)
      },
      block: ({ address, bytes }) => writer.bytes(context.memory.u8.subarray(address, address + bytes)),
    })
  }

  rows({ vectors }: Batch, from: number, to: number): void {
    if (vectors.length === 0) return
    const { context, columns } = this.options
    this.encoder ??= new GroupEncoder(this.encoding, context, columns, () => context.arena.child(), this.await)
    this.encoder.rows(vectors, from, to)
  }

  private readonly await = ({ blocks, note, arena }: EncodedGroup): void => {
    const { u8 } = this.options.context.memory
    this.place(note)
    for (const { address, bytes } of blocks) this.waiting.push(u8.subarray(address, address + bytes))
    this.placed.push(arena)
  }

  end(): void {
    this.encoder?.end()
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
    for (const arena of this.placed) arena.freeAll()
    this.placed = []
  }

  /** Adds the next row group to the file. */
  private place({ rows, chunks: notes }: RowGroupMetadata): void {
    const { types, int64 } = parquetThrift()
    const offset = this.bytes
    const placed = notes.map((note) => ({ note, ...this.placeChunk(note) }))
    const group = new types.RowGroup({
      columns: placed.map(
        (chunk, index) =>
          new types.ColumnChunk({ file_offset: int64(0), meta_data: this.chunkMetadata(chunk.note, index, chunk) }),
      ),
      total_byte_size: int64(notes.reduce((sum, { rawBytes }) => sum + rawBytes, 0)),
      num_rows: int64(rows),
      total_compressed_size: int64(this.bytes - offset),
      file_offset: int64(offset),
      ordinal: this.groups.length & 0x7fff,
    })
    // The constructor copies its arguments, so the changes below go to the group's own chunks.
    for (const [index, { note, dataOffset }] of placed.entries()) {
      const chunk = group.columns[index]
      assert(chunk?.meta_data !== undefined, 'F2: a row group has a chunk for each column')
      if (note.bloomBytes > 0) {
        chunk.meta_data.bloom_filter_offset = int64(this.bytes)
        chunk.meta_data.bloom_filter_length = note.bloomBytes
        this.bytes += note.bloomBytes
      }
      this.index(chunk, index, note.pages, dataOffset)
    }
    this.groups.push(group)
    this.totalRows += rows
  }

  private placeChunk({ dictionaryBytes, pages }: ColumnChunkMetadata): ChunkPlace {
    const offset = this.bytes
    const dataOffset = offset + dictionaryBytes
    this.bytes = pages.reduce((at, { bytes }) => at + bytes, dataOffset)
    return { offset, dataOffset, bytes: this.bytes - offset }
  }

  private index(
    chunk: ParquetTypes.ColumnChunk,
    index: number,
    pages: readonly PageMetadata[],
    firstOffset: number,
  ): void {
    const { type } = this.options.columns[index] as PlanColumn
    const list = gatherFormOf(type, this.encoding.rawArrays) === 'list'
    if (this.encoding.statistics && !list)
      this.indexed.push({ chunk, mapping: exportMappingOf(type), pages, firstOffset })
  }

  private chunkMetadata(
    chunk: ColumnChunkMetadata,
    index: number,
    { offset, dataOffset, bytes }: ChunkPlace,
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
      total_uncompressed_size: int64(chunk.rawBytes),
      total_compressed_size: int64(bytes),
      data_page_offset: int64(dataOffset),
    })
    if (chunk.dictionaryBytes > 0) metadata.dictionary_page_offset = int64(offset)
    if (this.encoding.statistics && !list) metadata.statistics = statisticsOf(mapping, chunk)
    return metadata
  }

  private footer(): ParquetTypes.FileMetaData {
    const { types, int64 } = parquetThrift()
    const { columns } = this.options
    const { rawArrays, version, fieldIds } = this.encoding
    const root = new types.SchemaElement({ name: 'schema', num_children: columns.length })
    return new types.FileMetaData({
      version,
      schema: [root, ...columns.flatMap((column, at) => exportSchemaOf(column, rawArrays, fieldIds?.[at]).elements)],
      num_rows: int64(this.totalRows),
      row_groups: this.groups,
      created_by: 'penstock version 1',
      column_orders: columns.map(() => new types.ColumnOrder({ TYPE_ORDER: new types.TypeDefinedOrder() })),
    })
  }
}

/** Rejects columns that cannot have a Bloom filter before anything is written. */
function checkBloom({ bloom, rawArrays }: ParquetEncoding, columns: readonly PlanColumn[]): void {
  for (const name of bloom?.columns ?? []) {
    const column = columns.find((candidate) => candidate.name.toLowerCase() === name.toLowerCase())
    if (column === undefined) throw new SqlError(`bloom filter column does not exist [column=${name}]`, 0)
    const { type } = column
    if (type.name === 'BOOLEAN' || gatherFormOf(type, rawArrays) === 'list')
      throw new SqlError(`a column of this type has no bloom filter [column=${name}, type=${typeText(type)}]`, 0)
  }
}

function statisticsOf(mapping: ColumnMapping, { pages, nulls }: ColumnChunkMetadata): ParquetTypes.Statistics {
  const { types, int64 } = parquetThrift()
  const statistics = new types.Statistics({ null_count: int64(nulls) })
  let all: Buffer | undefined
  for (const page of pages) all = widened(mapping.range, all, rangeOf(page))
  if (all !== undefined) {
    const { min, max } = boundsOf(mapping, all)
    statistics.min_value = min
    statistics.max_value = max
  }
  return statistics
}

// The page index of an exported Parquet file: the position of each page, with minimum and maximum for types that have
// an order. It is between the last row group and the footer: all column indexes, then all offset indexes. Lists have
// none, because their pages do not record row numbers.

/** The pages of a column chunk, for the index. */
interface IndexedChunk {
  readonly chunk: ParquetTypes.ColumnChunk
  readonly mapping: ColumnMapping
  readonly pages: readonly PageMetadata[]
  /** Offset of the first data page. */
  readonly firstOffset: number
}

function rangeOf({ range }: PageMetadata): Uint8Array | undefined {
  return range === null ? undefined : new Uint8Array(Buffer.from(range, 'base64'))
}

/** The bytes of all indexes, which begin at `offset` in the file; sets their positions in the column chunks. */
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

function columnIndex({ mapping, pages }: IndexedChunk): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  const nothing = { min: Buffer.alloc(0), max: Buffer.alloc(0) }
  const ranges = pages.map(rangeOf)
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

function offsetIndex({ pages, firstOffset }: IndexedChunk): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  let firstRow = 0
  let offset = firstOffset
  const locations = pages.map(({ bytes, rows }) => {
    const location = new types.PageLocation({
      offset: int64(offset),
      compressed_page_size: bytes,
      first_row_index: int64(firstRow),
    })
    firstRow += rows
    offset += bytes
    return location
  })
  return serialize(new types.OffsetIndex({ page_locations: locations }))
}
