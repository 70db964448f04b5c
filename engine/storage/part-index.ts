// Reads the end of a part: footer, page index and our own metadata (part-footer.ts writes them). What does not carry the
// right checksum is damage and never parsed.

import { crc32 } from 'node:zlib'
import { CorruptionError } from '../base/errors.js'
import type { File, Files } from '../base/files.js'
import { emptyStructure, type ParquetTypes, parquetThrift } from './parquet-thrift.js'
import { metadataKey, type PartMetadata, parquetMagic, type SymbolRun, tailBytes } from './part-footer.js'

/** One column of an opened part. */
export interface PartColumn {
  readonly codec: number
  readonly dictionaryOffset: number | undefined
  readonly dictionaryBytes: number
  /** File offset and bytes, page header included, of each page. */
  readonly offsets: Float64Array
  readonly bytes: Uint32Array
  readonly symbols: SymbolRun | undefined
  /** Bounds of each page as Parquet stores them; undefined without a column index. */
  readonly bounds: PageBounds | undefined
}

export interface PageBounds {
  readonly nullCounts: Float64Array
  /** Empty when the page has no value. */
  readonly min: readonly Buffer[]
  readonly max: readonly Buffer[]
}

export interface PartIndex {
  readonly rows: number
  readonly firstRows: Uint32Array
  /** By column id. */
  readonly columns: ReadonlyMap<number, PartColumn>
  readonly metadata: PartMetadata
}

/** Enough for most footers, so that one read does. */
const firstReadBytes = 64 * 1024

export function readPartIndex(files: Files, path: string): PartIndex {
  const file = files.open(path, 'read')
  try {
    return parseEnd(path, readEnd(file, path))
  } finally {
    file.close()
  }
}

interface FileEnd {
  readonly footer: Buffer
  /** Page index, and where it lies in the file. */
  readonly index: Buffer
  readonly indexOffset: number
}

function readEnd(file: File, path: string): FileEnd {
  const size = file.size()
  let tail = readAt(file, path, Math.max(0, size - firstReadBytes), Math.min(size, firstReadBytes))
  if (tail.length < 3 * tailBytes || tail.toString('latin1', tail.length - 4) !== parquetMagic) {
    throw new CorruptionError('a part does not end as one', path, Math.max(0, size - tailBytes))
  }
  const footerBytes = tail.readUInt32LE(tail.length - tailBytes)
  const footerAt = size - tailBytes - footerBytes
  if (footerAt < 2 * tailBytes) throw new CorruptionError('the footer of a part is too long', path, size - tailBytes)
  const head = readFrom(file, path, tail, size, footerAt - tailBytes, tailBytes)
  const indexBytes = head.readUInt32LE(0)
  const indexOffset = footerAt - tailBytes - indexBytes
  if (indexOffset < 4) throw new CorruptionError('the index of a part is too long', path, footerAt - tailBytes)
  const all = readFrom(file, path, tail, size, indexOffset, size - indexOffset)
  tail = all
  const index = all.subarray(0, indexBytes)
  const footer = all.subarray(indexBytes + tailBytes, all.length - tailBytes)
  if (crc32(footer, crc32(index)) !== head.readUInt32LE(4)) {
    throw new CorruptionError('the footer of a part is damaged', path, indexOffset)
  }
  return { footer, index, indexOffset }
}

/** Bytes of the file, from the tail that was read already if they lie in it. */
function readFrom(file: File, path: string, tail: Buffer, size: number, offset: number, bytes: number): Buffer {
  const first = offset - (size - tail.length)
  return first >= 0 ? tail.subarray(first, first + bytes) : readAt(file, path, offset, bytes)
}

function readAt(file: File, path: string, offset: number, bytes: number): Buffer {
  const target = Buffer.alloc(bytes)
  if (file.read(target, offset) < bytes) throw new CorruptionError('a part is cut off', path, offset)
  return target
}

function parseEnd(path: string, { footer, index, indexOffset }: FileEnd): PartIndex {
  const { types, decode } = parquetThrift()
  const meta = emptyStructure(types.FileMetaData)
  decode(meta, footer)
  const metadata = metadataOf(path, meta, indexOffset)
  const chunks = meta.row_groups[0]?.columns ?? []
  const columns = new Map<number, PartColumn>()
  let firstRows = new Uint32Array(0)
  for (const [position, chunk] of chunks.entries()) {
    const fieldId = meta.schema[position + 1]?.field_id
    const part = (offset: unknown, length: number) => index.subarray(Number(offset) - indexOffset).subarray(0, length)
    const pages = emptyStructure(types.OffsetIndex)
    decode(pages, part(chunk.offset_index_offset, chunk.offset_index_length ?? 0))
    if (position === 0) firstRows = rowsOf(pages, Number(meta.num_rows))
    const bounds = chunk.column_index_offset === null || chunk.column_index_offset === undefined
    columns.set(
      Number(fieldId),
      columnOf(chunk, pages, {
        symbols: metadata.symbols.find(({ columnId }) => columnId === fieldId),
        bounds: bounds ? undefined : boundsOf(part(chunk.column_index_offset, chunk.column_index_length ?? 0)),
      }),
    )
  }
  return { rows: Number(meta.num_rows), firstRows, columns, metadata }
}

function metadataOf(path: string, meta: ParquetTypes.FileMetaData, offset: number): PartMetadata {
  const text = meta.key_value_metadata?.find(({ key }) => key === metadataKey)?.value
  const metadata = text === undefined ? undefined : (JSON.parse(text) as PartMetadata)
  if (metadata?.format !== 1) throw new CorruptionError('a part has metadata of another format', path, offset)
  return metadata
}

function rowsOf(pages: ParquetTypes.OffsetIndex, rows: number): Uint32Array<ArrayBuffer> {
  return Uint32Array.from([...pages.page_locations.map((page) => Number(page.first_row_index)), rows])
}

function columnOf(
  chunk: ParquetTypes.ColumnChunk,
  { page_locations: pages }: ParquetTypes.OffsetIndex,
  rest: Pick<PartColumn, 'symbols' | 'bounds'>,
): PartColumn {
  const meta = chunk.meta_data as ParquetTypes.ColumnMetaData
  const stored = meta.dictionary_page_offset
  const dictionaryOffset = stored === null || stored === undefined ? undefined : Number(stored)
  const offsets = Float64Array.from(pages, (page) => Number(page.offset))
  return {
    codec: meta.codec as number,
    dictionaryOffset,
    dictionaryBytes: dictionaryOffset === undefined ? 0 : (offsets[0] as number) - dictionaryOffset,
    offsets,
    bytes: Uint32Array.from(pages, (page) => page.compressed_page_size),
    ...rest,
  }
}

function boundsOf(bytes: Buffer): PageBounds {
  const { types, decode } = parquetThrift()
  const index = emptyStructure(types.ColumnIndex)
  decode(index, bytes)
  return {
    nullCounts: Float64Array.from(index.null_counts ?? [], Number),
    min: index.min_values.map((value) => Buffer.from(value)),
    max: index.max_values.map((value) => Buffer.from(value)),
  }
}
