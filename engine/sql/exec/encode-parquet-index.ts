// The page index of an exported Parquet file: where the pages of each column chunk lie, with their least and greatest values
// where the type has an order. It lies between the last row group and the footer: all column indexes, then all offset
// indexes. Lists have none: their pages do not say where rows begin.

import { type ParquetTypes, parquetThrift } from '../../storage/parquet-thrift.js'
import type { ColumnMapping } from '../../storage/parquet-types.js'
import { boundsOf } from '../../storage/part-footer.js'
import type { ExportedChunk } from './encode-parquet-column.js'

/** What is to be said of the pages of one chunk. */
export interface IndexedChunk {
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
export function pageIndex(chunks: readonly IndexedChunk[], offset: number): Buffer[] {
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
