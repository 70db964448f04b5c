// PageReader: reads and decompresses the pages of a column chunk of a Parquet file that another program wrote, into
// shared memory. Sizes in a page header are checked against the file, the codec and limits before memory is allocated.
// The decompressed data must have exactly the size that the header tells.
//
//   version 1 page   header | compressed: repetition levels, definition levels, values
//   version 2 page   header | repetition levels | definition levels | compressed: values

import { crc32 } from '../base/checksum.js'
import { emptyStructure, type ParquetTypes, parquetThrift } from '../storage/part/parquet-thrift.js'
import type { Scratch } from '../storage/part/part-scratch.js'
import { decompress, type ForeignCodecs, largestOf } from './codecs.js'
import type { ForeignChunk } from './footer.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'
import { ThriftError, ThriftWalk, thriftTypes } from './thrift-walk.js'

export interface ForeignPage {
  readonly kind: 'data' | 'dictionary'
  /** Including NULLs. */
  readonly values: number
  readonly encoding: number
  readonly address: number
  readonly bytes: number
  /** Bytes of the levels of a version 2 page, which have no length prefixes. */
  readonly levels: { readonly repetition: number; readonly definition: number } | null
  /** Encodings of the levels of a version 1 page. */
  readonly levelEncodings: { readonly repetition: number; readonly definition: number }
  readonly place: ForeignPlace
}

interface Header {
  readonly header: ParquetTypes.PageHeader
  readonly bytes: number
}

export interface PageTools {
  readonly file: ForeignFile
  /** Scratch memory of the column: valid until the next page. */
  readonly scratch: Scratch
  /** Scratch memory shared by all columns, for one page at a time. */
  readonly shared: Scratch
  readonly codecs: ForeignCodecs
}

const pageTypes = { data: 0, index: 1, dictionary: 2, second: 3 } as const
const headerBytesFirst = 2048
const headerBytesMax = 16 * 1024 * 1024
const pageBytesMax = 1024 * 1024 * 1024
const pageValuesMax = 64 * 1024 * 1024

export class PageReader {
  readonly #tools: PageTools
  readonly #chunk: ForeignChunk
  readonly #place: ForeignPlace
  #at: number

  constructor(tools: PageTools, chunk: ForeignChunk, place: ForeignPlace) {
    this.#tools = tools
    this.#chunk = chunk
    this.#place = place
    this.#at = chunk.start
  }

  /** The next page; throws SqlError when there is none. Dictionary and data pages use different buffers. */
  next(): ForeignPage {
    for (;;) {
      const offset = this.#at
      const place = { ...this.#place, offset }
      const { header, bytes } = this.#header(place)
      const { file } = this.#tools
      const { compressed_page_size: packed, uncompressed_page_size: raw } = header
      const from = offset + bytes
      if (!(packed >= 0 && packed <= this.#chunk.end - from))
        throw file.error(
          `a page has ${packed} bytes, but its column has only ${Math.max(0, this.#chunk.end - from)} left`,
          place,
        )
      this.#at = from + packed
      if (header.type === pageTypes.index) continue
      if (!(raw >= 0 && raw <= pageBytesMax)) throw file.error(`a page has ${raw} bytes`, place)
      return this.#body(header, from, place)
    }
  }

  #header(place: ForeignPlace): Header {
    const { file } = this.#tools
    const left = this.#chunk.end - this.#at
    for (let some = headerBytesFirst; ; some *= 16) {
      const bytes = new Uint8Array(Math.max(0, Math.min(some, left, headerBytesMax)))
      file.read(bytes, this.#at, place)
      try {
        return headerOf(bytes)
      } catch (error) {
        if (!(error instanceof ThriftError)) throw error
        const whole = bytes.length === left || bytes.length === headerBytesMax
        if (!error.short || whole) throw file.error('a page header is damaged', place)
      }
    }
  }

  #body(header: ParquetTypes.PageHeader, from: number, place: ForeignPlace): ForeignPage {
    const { file } = this.#tools
    const isDictionary = header.type === pageTypes.dictionary
    const { first, second } = partsOf(header)
    if (first === undefined && second === undefined) throw file.error('a page header is damaged', place)
    const values = (first ?? second)?.num_values ?? -1
    if (!(values >= 0 && values <= pageValuesMax)) throw file.error(`a page has ${values} values`, place)
    const levels =
      second === undefined
        ? null
        : {
            repetition: Number(second.repetition_levels_byte_length),
            definition: Number(second.definition_levels_byte_length),
          }
    const ahead = levels === null ? 0 : levels.repetition + levels.definition
    const { compressed_page_size: packed, uncompressed_page_size: raw } = header
    const fits = levels === null || (levels.repetition >= 0 && levels.definition >= 0)
    if (!fits || !(ahead <= packed && ahead <= raw))
      throw file.error(`the levels of a page have ${ahead} bytes, but the page has only ${packed}`, place)
    const isPacked = second?.is_compressed !== false
    const data = isPacked ? this.#chunk.codec : 0
    const name = isDictionary ? 'dictionary page' : 'page'
    const address = this.#read({ header, from, ahead, codec: data, name, place })
    const levelsOf = 'definition_level_encoding' in (first ?? {}) ? (first as ParquetTypes.DataPageHeader) : undefined
    return {
      kind: isDictionary ? 'dictionary' : 'data',
      values,
      encoding: Number((first ?? second)?.encoding),
      address,
      bytes: raw,
      levels,
      levelEncodings: {
        repetition: Number(levelsOf?.repetition_level_encoding ?? 3),
        definition: Number(levelsOf?.definition_level_encoding ?? 3),
      },
      place,
    }
  }

  /** Address of the page's bytes: `ahead` bytes of levels unchanged, the rest decompressed. */
  #read({ header, from, ahead, codec, name, place }: PageBody): number {
    const { file, scratch, shared, codecs } = this.#tools
    const { memory } = scratch
    const { compressed_page_size: packed, uncompressed_page_size: raw, crc } = header
    const [body, wanted] = [packed - ahead, raw - ahead]
    if (codec === 0 && body !== wanted)
      throw file.error(`an uncompressed page has ${body} bytes instead of ${wanted}`, place)
    if (wanted > largestOf(codec, body, this.#tools.file, place))
      throw file.error(`a page of ${packed} bytes cannot decompress to ${raw} bytes`, place)
    const source = codec === 0 ? scratch.room(name, packed) : shared.room('packed', packed)
    const bytes = memory.u8.subarray(source, source + packed)
    file.read(bytes, from, place)
    if (crc !== undefined && crc !== null && crc32(bytes) !== crc >>> 0)
      throw file.error('the checksum of a page does not match', place)
    if (codec === 0) return source
    const take = (): number => {
      const target = scratch.room(name, raw)
      memory.copy(target, source, source + ahead)
      return target
    }
    const whole = { address: source + ahead, bytes: body, wanted, ahead, take }
    const target = wanted === 0 ? take() : decompress(codecs, memory, codec, whole)
    if (target < 0) throw file.error('a page does not decompress to the size in its header', place)
    return target
  }
}

interface PageBody {
  readonly header: ParquetTypes.PageHeader
  readonly from: number
  readonly ahead: number
  readonly codec: number
  readonly name: string
  readonly place: ForeignPlace
}

/** The part of the header that describes a page of its type, if present. */
function partsOf({ type, data_page_header, dictionary_page_header, data_page_header_v2 }: ParquetTypes.PageHeader): {
  first: ParquetTypes.DataPageHeader | ParquetTypes.DictionaryPageHeader | undefined
  second: ParquetTypes.DataPageHeaderV2 | undefined
} {
  const second = type === pageTypes.second ? data_page_header_v2 : undefined
  const first =
    type === pageTypes.data ? data_page_header : type === pageTypes.dictionary ? dictionary_page_header : undefined
  return { first: first ?? undefined, second: second ?? undefined }
}

/** Throws ThriftError. */
function headerOf(bytes: Uint8Array): Header {
  const walk = new ThriftWalk(bytes)
  walk.skip(thriftTypes.structure)
  const header = emptyStructure(parquetThrift().types.PageHeader)
  try {
    parquetThrift().decode(header, Buffer.from(bytes.buffer, bytes.byteOffset, walk.at))
  } catch {
    throw new ThriftError(false)
  }
  return { header, bytes: walk.at }
}
