// Encodes one page of an exported Parquet file, with its header, from the page's levels and values. Also defines
// ExportTools, the memory, WebAssembly kernels and options that the encoders of all columns share.
//
//   version 1   header | compressed (length and repetition levels | length and definition levels | values)
//   version 2   header | repetition levels | definition levels | compressed values

import { crc32 } from 'node:zlib'
import type { ParquetKernel } from '../../kernels/parquet.js'
import { encodePageHeader } from '../../storage/part/page-header.js'
import { encodings } from '../../storage/part/parquet-types.js'
import type { Scratch } from '../../storage/part/part-scratch.js'
import type { PageCompressor } from './encode-parquet-codec.js'
import type { ParquetEncoding } from './parquet-encoding.js'

export interface ExportTools {
  readonly kernel: ParquetKernel
  /** Shared by all columns: its contents are lost when the next column is processed. */
  readonly scratch: Scratch
  /** Creates scratch memory for one column. */
  readonly ownScratch: () => Scratch
  readonly encoding: ParquetEncoding
  readonly compress: PageCompressor
  /** Allocates memory that lives as long as the row group. */
  readonly take: (bytes: number) => number
}

export interface EncodedPage {
  readonly header: Uint8Array
  /** In the memory of the row group. */
  readonly body: Uint8Array
  /** Bytes of the body before compression. */
  readonly rawBytes: number
  /** Number of rows of a data page. */
  readonly rows: number
  readonly nulls: number
}

/** The contents of a data page. */
export interface DataPage {
  /** Number of values including NULLs; for lists, of levels. */
  readonly values: number
  readonly nulls: number
  readonly rows: number
  /** One of `encodings` in storage/parquet-types. */
  readonly encoding: number
  /** Address of the levels, without their lengths but with 8 free bytes before them; the values follow. */
  readonly address: number
  readonly repetitionBytes: number
  readonly definitionBytes: number
  readonly bytes: number
  /** False: the values are known to be incompressible. */
  readonly gain?: boolean
}

export function dataPage(tools: ExportTools, page: DataPage): EncodedPage {
  return tools.encoding.version === 1 ? firstForm(tools, page) : secondForm(tools, page)
}

function firstForm({ scratch, compress }: ExportTools, page: DataPage): EncodedPage {
  const { address, bytes } = lengthsBefore(scratch.memory.u8, page)
  return firstPage(page, compress({ address, bytes, before: 0, gain: page.gain !== false }), bytes)
}

/** A version 1 page whose body is complete. */
export function firstPage(
  page: Pick<DataPage, 'values' | 'nulls' | 'rows' | 'encoding'>,
  body: Uint8Array,
  rawBytes: number,
  crc = crc32(body),
): EncodedPage {
  const { values, encoding, rows, nulls } = page
  const header = encodePageHeader({ kind: 'data', values, encoding, rawBytes, bytes: body.length, crc })
  return { header, body, rawBytes, rows, nulls }
}

/** Inserts the lengths of the levels in place: there are 8 free bytes before them. */
function lengthsBefore(u8: Uint8Array, { address, repetitionBytes, definitionBytes, bytes }: DataPage) {
  if (repetitionBytes + definitionBytes === 0) return { address, bytes }
  const put = (at: number, length: number) => {
    for (let byte = 0; byte < 4; byte++) u8[at + byte] = (length >>> (byte * 8)) & 255
  }
  if (repetitionBytes === 0) {
    put(address - 4, definitionBytes)
    return { address: address - 4, bytes: bytes + 4 }
  }
  u8.copyWithin(address - 4, address, address + repetitionBytes)
  put(address - 8, repetitionBytes)
  put(address - 4 + repetitionBytes, definitionBytes)
  return { address: address - 8, bytes: bytes + 8 }
}

function secondForm({ scratch, compress, take }: ExportTools, page: DataPage): EncodedPage {
  const { address, bytes: rawBytes, values, encoding, nulls, rows } = page
  const levelBytes = page.repetitionBytes + page.definitionBytes
  const packed = { address: address + levelBytes, bytes: rawBytes - levelBytes }
  const compressed = packed.bytes > 0
  const body = compressed
    ? compress({ ...packed, before: levelBytes, gain: page.gain !== false })
    : roomFor(scratch, take(levelBytes), levelBytes)
  body.set(scratch.memory.u8.subarray(address, address + levelBytes))
  const { definitionBytes, repetitionBytes } = page
  const kind = { nulls, rows, definitionBytes, repetitionBytes, compressed }
  const header = encodePageHeader({ kind, values, encoding, rawBytes, bytes: body.length, crc: crc32(body) })
  return { header, body, rawBytes, rows, nulls }
}

function roomFor({ memory }: Scratch, address: number, bytes: number): Uint8Array {
  return memory.u8.subarray(address, address + bytes)
}

/** A page with the PLAIN values of a dictionary. */
export function dictionaryPage({ compress }: ExportTools, count: number, address: number, bytes: number): EncodedPage {
  const body = compress({ address, bytes, before: 0, gain: true })
  const page = { values: count, encoding: encodings.plain, rawBytes: bytes, bytes: body.length, crc: crc32(body) }
  return { header: encodePageHeader({ kind: 'dictionary', ...page }), body, rawBytes: bytes, rows: 0, nulls: 0 }
}
