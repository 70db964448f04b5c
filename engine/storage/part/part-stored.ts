// Reads pages of parts, the Parquet files of tables, as they are stored, without decoding; checksums are verified. An
// export to Parquet copies most pages in this form, which is much faster than encoding them again.

import { assert } from '../../base/assert.js'
import type { DataType } from '../../types/column-types.js'
import { encodings } from './parquet-types.js'
import { type DecodeTools, type PageInFile, type RawPage, readBody, readPage } from './part-decode.js'
import { nullsAt, type PartColumn, type PartIndex, pageAt, rangeBytesAt } from './part-index.js'

/** One page of one column. */
export interface StoredPage {
  /** The column's type in the part. */
  readonly type: DataType
  /** Parquet's number of the encoding (parquet-types.ts). */
  readonly encoding: number
  /** Parquet's number of the codec; none if compression did not pay. */
  readonly codec: number
  readonly rows: number
  readonly nulls: number
  /** 16 bytes {min, max} as the range kernel writes them; undefined if all values are NULL or the type has no range. */
  readonly range: Uint8Array | undefined
  /** Size when decompressed. */
  readonly rawBytes: number
  /** Pages of one column with the same part id share a dictionary. */
  readonly partId: number
  /** The decompressed page: levels with their length, then the values. Valid until the next read. */
  read(): RawPage
  /** Reads the stored bytes to the address. */
  readPacked(target: number): void
  /** Size of the stored bytes. */
  readonly packedBytes: number
  readonly packedCrc: number
  /**
   * Calls `use` with address and count of the dictionary's values: symbol ids (i32), entries of strings, or values in
   * PLAIN form.
   */
  dictionary(use: (values: number, count: number) => void): void
  /** Number of its values; 0: there is none. */
  readonly dictionaryCount: number
  /** The decompressed page of the dictionary, in PLAIN encoding. Valid until the next read. */
  readDictionary(): RawPage
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
    dictionaryCount: column.metadata.dictionary?.count ?? 0,
    readDictionary: () => {
      const of = column.metadata.dictionary
      assert(of !== null, 'F2: a dictionary is read where there is one')
      return withFile((file) => readPage(tools, { ...of, file, encoding: encodings.plain, codec }))
    },
    readPacked: (target) => withFile((file) => readBody(tools, { ...place, file, encoding, codec }, target)),
  }
}
