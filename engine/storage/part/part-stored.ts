// Pages of parts as they lie in their files, for those who pass them on: an exported Parquet file takes most of them without
// looking at their values. Checksums are checked here as everywhere.

import type { DataType } from '../../types/column-types.js'
import { type DecodeTools, type PageInFile, type RawPage, readBody, readPage } from './part-decode.js'
import { nullsAt, type PartColumn, type PartIndex, pageAt, rangeBytesAt } from './part-index.js'

/** One page of one column. */
export interface StoredPage {
  /** As the part has it. */
  readonly type: DataType
  /** One of storage/parquet-types encodings. */
  readonly encoding: number
  /** Parquet's number; none means that compression did not pay. */
  readonly codec: number
  readonly rows: number
  readonly nulls: number
  /** 16 bytes {least, greatest} as the range kernel leaves them; undefined without present values or order. */
  readonly range: Uint8Array | undefined
  /** Decompressed. */
  readonly rawBytes: number
  /** Pages with the same key share a dictionary. */
  readonly partId: number
  /** The levels with their length, then the values; valid until the next one is read. */
  read(): RawPage
  /** The bytes as they lie in the file go to the address. */
  readPacked(target: number): void
  /** Of those bytes. */
  readonly packedBytes: number
  readonly packedCrc: number
  /**
   * Calls with the address and the count of the dictionary's values: ids of symbols (i32), entries of texts, or what
   * PLAIN has.
   */
  dictionary(use: (values: number, count: number) => void): void
}

export interface StoredOptions {
  readonly tools: DecodeTools
  readonly index: PartIndex
  readonly column: PartColumn
  readonly page: number
  readonly partId: number
  /** Opens the file for one call. */
  readonly withFile: <T>(read: (file: PageInFile['file']) => T) => T
  readonly dictionary: StoredPage['dictionary']
}

export function storedPage(options: StoredOptions): StoredPage {
  const { tools, index, column, page, partId, withFile, dictionary } = options
  const { type, encoding, codec } = column.metadata
  const place = pageAt(column, page)
  return {
    ...{ type, encoding, codec, partId, dictionary },
    rows: index.firstRows[page + 1]! - index.firstRows[page]!,
    nulls: nullsAt(column, page),
    range: rangeBytesAt(column, page),
    rawBytes: place.rawBytes,
    packedBytes: place.bytes,
    packedCrc: place.crc,
    read: () => withFile((file) => readPage(tools, { ...place, file, encoding, codec })),
    readPacked: (target) => withFile((file) => readBody(tools, { ...place, file, encoding, codec }, target)),
  }
}
