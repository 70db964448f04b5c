// Writes small Parquet files in any encoding, codec and page version, to test readers. Simple and slow. It shares only
// the structures of headers and footers, and Zstandard, with the server, so that an error in the reader is not mirrored
// here.

import { brotliCompressSync, crc32, gzipSync } from 'node:zlib'
import { compressSync } from 'snappy'
import { zstd } from '../../engine/base/zstd.js'
import { type ParquetTypes, parquetThrift } from '../../engine/storage/part/parquet-thrift.js'
import { type Raw, runsOf, valuesIn } from './parquet-encodings.js'

export interface WrittenColumn {
  readonly name: string
  /** Number of the physical type. */
  readonly physical: number
  readonly element?: Partial<ParquetTypes.SchemaElement>
  readonly encoding: number
  /** What the footer says of its chunks instead of the truth. */
  readonly metadata?: Partial<ParquetTypes.ColumnMetaData>
  /** NULL makes the column optional; a list of values makes it a list. */
  readonly values: readonly (Raw | null | readonly (Raw | null)[])[]
}

export interface WrittenForm {
  readonly codec: keyof typeof codecs
  readonly version: 1 | 2
  readonly pageRows: number
  readonly groupRows: number
  readonly checksums?: boolean
  /** Levels in the old encoding BIT_PACKED. */
  readonly oldLevels?: boolean
}

export const codecs = { none: 0, snappy: 1, gzip: 2, lzo: 3, brotli: 4, lz4: 5, zstd: 6, lz4Raw: 7 } as const
const dictionaryEncodings: ReadonlySet<number> = new Set([2, 8])

interface Entry {
  readonly value: Raw | null
  readonly repetition: number
  readonly definition: number
}

export function parquetFile(columns: readonly WrittenColumn[], form: WrittenForm): Buffer {
  const { types, serialize, int64 } = parquetThrift()
  const rows = columns[0]?.values.length ?? 0
  const chunks: Buffer[] = [Buffer.from('PAR1')]
  let at = 4
  const groups: ParquetTypes.RowGroup[] = []
  for (let from = 0; from < rows; from += form.groupRows) {
    const to = Math.min(rows, from + form.groupRows)
    const made = columns.map((column) => {
      const chunk = columnChunk({ ...column, values: column.values.slice(from, to) }, form, bitsOf(column), at)
      chunks.push(chunk.bytes)
      at += chunk.bytes.length
      return chunk.meta
    })
    groups.push(new types.RowGroup({ columns: made, total_byte_size: int64(at), num_rows: int64(to - from) }))
  }
  const footer = serialize(
    new types.FileMetaData({
      version: 2,
      schema: [
        new types.SchemaElement({ name: 'schema', num_children: columns.length }),
        ...columns.flatMap((column) => elementsOf(column)),
      ],
      num_rows: int64(rows),
      row_groups: groups,
      created_by: 'test',
    }),
  )
  const tail = Buffer.alloc(8, 'PAR1')
  tail.writeUInt32LE(footer.length, 0)
  tail.write('PAR1', 4)
  return Buffer.concat([...chunks, footer, tail])
}

function isList({ values }: WrittenColumn): boolean {
  return values.some((value) => Array.isArray(value))
}

function elementsOf(column: WrittenColumn): ParquetTypes.SchemaElement[] {
  const { types } = parquetThrift()
  const leaf = (name: string, optional: boolean) =>
    new types.SchemaElement({
      name,
      type: column.physical as ParquetTypes.Type,
      repetition_type: optional ? types.FieldRepetitionType.OPTIONAL : types.FieldRepetitionType.REQUIRED,
      ...column.element,
    })
  if (!isList(column)) return [leaf(column.name, column.values.includes(null))]
  return [
    new types.SchemaElement({
      name: column.name,
      num_children: 1,
      repetition_type: types.FieldRepetitionType.OPTIONAL,
      converted_type: types.ConvertedType.LIST,
    }),
    new types.SchemaElement({ name: 'list', num_children: 1, repetition_type: types.FieldRepetitionType.REPEATED }),
    leaf('element', true),
  ]
}

/** Values with their levels: of a list NULL, empty, NULL within and values are 0, 1, 2, 3. */
function entriesOf(values: WrittenColumn['values'], list: boolean): Entry[] {
  if (!list)
    return (values as readonly (Raw | null)[]).map((value) => ({
      value,
      repetition: 0,
      definition: value === null ? 0 : 1,
    }))
  return (values as readonly (null | readonly (Raw | null)[])[]).flatMap((items) => {
    if (items === null || items.length === 0)
      return [{ value: null, repetition: 0, definition: items === null ? 0 : 1 }]
    return items.map((value, index) => ({ value, repetition: index === 0 ? 0 : 1, definition: value === null ? 2 : 3 }))
  })
}

function bitsOf(column: WrittenColumn): LevelBits {
  if (isList(column)) return { repetition: 1, definition: 2 }
  return { repetition: 0, definition: column.values.includes(null) ? 1 : 0 }
}

interface LevelBits {
  readonly repetition: number
  readonly definition: number
}

function columnChunk(
  column: WrittenColumn,
  form: WrittenForm,
  bits: LevelBits,
  start: number,
): { bytes: Buffer; meta: ParquetTypes.ColumnChunk } {
  const { types, int64 } = parquetThrift()
  const { physical, encoding } = column
  const list = bits.repetition > 0
  const pages: Buffer[] = []
  const present = entriesOf(column.values, list).flatMap(({ value }) => (value === null ? [] : [value]))
  const distinct = dictionaryEncodings.has(encoding) ? distinctOf(present) : null
  if (distinct !== null) pages.push(dictionaryPage(physical, distinct, encoding, form))
  const dataStart = start + (pages[0]?.length ?? 0)
  for (let from = 0; from < column.values.length; from += form.pageRows) {
    const values = column.values.slice(from, from + form.pageRows)
    pages.push(dataPage(column, { form, bits, entries: entriesOf(values, list), rows: values.length, distinct }))
  }
  const bytes = Buffer.concat(pages)
  const meta = new types.ColumnMetaData({
    type: physical as ParquetTypes.Type,
    encodings: [encoding as ParquetTypes.Encoding],
    path_in_schema: list ? [column.name, 'list', 'element'] : [column.name],
    codec: codecs[form.codec] as number as ParquetTypes.CompressionCodec,
    num_values: int64(entriesOf(column.values, list).length),
    total_uncompressed_size: int64(bytes.length),
    total_compressed_size: int64(bytes.length),
    data_page_offset: int64(dataStart),
    ...(distinct === null ? {} : { dictionary_page_offset: int64(start) }),
    ...column.metadata,
  })
  return { bytes, meta: new types.ColumnChunk({ file_offset: int64(start), meta_data: meta }) }
}

function distinctOf(values: readonly Raw[]): Raw[] {
  const seen = new Map(values.map((value) => [keyOf(value), value]))
  return [...seen.values()]
}

function keyOf(value: Raw): string {
  return Buffer.isBuffer(value) ? value.toString('hex') : Object.is(value, -0) ? '-0' : String(value)
}

function dictionaryPage(physical: number, values: readonly Raw[], encoding: number, form: WrittenForm): Buffer {
  const { types } = parquetThrift()
  const body = valuesIn(0, physical, values)
  const header = new types.DictionaryPageHeader({
    num_values: values.length,
    encoding: (encoding === 2 ? 2 : 0) as ParquetTypes.Encoding,
  })
  return page(types.PageType.DICTIONARY_PAGE, { dictionary_page_header: header }, Buffer.alloc(0), body, form)
}

interface PageParts {
  readonly form: WrittenForm
  readonly bits: LevelBits
  readonly entries: readonly Entry[]
  readonly rows: number
  readonly distinct: readonly Raw[] | null
}

function dataPage(column: WrittenColumn, { form, bits, entries, rows, distinct }: PageParts): Buffer {
  const { types } = parquetThrift()
  const { physical, encoding } = column
  const present = entries.flatMap(({ value }) => (value === null ? [] : [value]))
  const values = distinct === null ? valuesIn(encoding, physical, present) : indexes(present, distinct)
  const levels = [
    { width: bits.repetition, all: entries.map(({ repetition }) => repetition) },
    { width: bits.definition, all: entries.map(({ definition }) => definition) },
  ].map(({ width, all }) => (width === 0 ? Buffer.alloc(0) : levelBytes(all, width, form)))
  const shared = { num_values: entries.length, encoding: encoding as ParquetTypes.Encoding }
  if (form.version === 2) {
    const header = new types.DataPageHeaderV2({
      ...shared,
      num_nulls: entries.length - present.length,
      num_rows: rows,
      repetition_levels_byte_length: levels[0]?.length ?? 0,
      definition_levels_byte_length: levels[1]?.length ?? 0,
    })
    return page(types.PageType.DATA_PAGE_V2, { data_page_header_v2: header }, Buffer.concat(levels), values, form)
  }
  const way = (form.oldLevels ? 4 : 3) as ParquetTypes.Encoding
  const header = new types.DataPageHeader({
    ...shared,
    definition_level_encoding: way,
    repetition_level_encoding: way,
  })
  const body = Buffer.concat([...levels, values])
  return page(types.PageType.DATA_PAGE, { data_page_header: header }, Buffer.alloc(0), body, form)
}

function levelBytes(levels: readonly number[], width: number, { version, oldLevels }: WrittenForm): Buffer {
  if (version === 1 && oldLevels === true) return highestFirst(levels, width)
  const runs = runsOf(levels, width)
  if (version === 2) return runs
  const length = Buffer.alloc(4)
  length.writeUInt32LE(runs.length)
  return Buffer.concat([length, runs])
}

function highestFirst(levels: readonly number[], width: number): Buffer {
  const bytes = Buffer.alloc(Math.ceil((levels.length * width) / 8))
  levels.forEach((level, index) => {
    for (let bit = 0; bit < width; bit++) {
      const at = index * width + bit
      if (((level >>> (width - 1 - bit)) & 1) === 1) bytes[at >>> 3] = (bytes[at >>> 3] ?? 0) | (128 >>> (at & 7))
    }
  })
  return bytes
}

function indexes(values: readonly Raw[], distinct: readonly Raw[]): Buffer {
  const places = new Map(distinct.map((value, index) => [keyOf(value), index]))
  const width = Math.max(1, 32 - Math.clz32(Math.max(0, distinct.length - 1)))
  const numbers = values.map((value) => places.get(keyOf(value)) ?? 0)
  return Buffer.concat([Buffer.from([width]), runsOf(numbers, width)])
}

function page(
  type: ParquetTypes.PageType,
  header: object,
  ahead: Buffer,
  body: Buffer,
  { codec, checksums }: WrittenForm,
): Buffer {
  const { types, serialize } = parquetThrift()
  const packed = Buffer.concat([ahead, compressed(codec, body)])
  const head = new types.PageHeader({
    type,
    uncompressed_page_size: ahead.length + body.length,
    compressed_page_size: packed.length,
    ...(checksums ? { crc: crc32(packed) | 0 } : {}),
    ...header,
  })
  return Buffer.concat([serialize(head), packed])
}

function compressed(codec: WrittenForm['codec'], bytes: Buffer): Buffer {
  switch (codec) {
    case 'snappy':
      return compressSync(bytes)
    case 'gzip':
      return gzipSync(bytes)
    case 'brotli':
      return brotliCompressSync(bytes)
    case 'zstd':
      return Buffer.from(zstd().compress(bytes, 3))
    case 'lz4Raw':
      return lz4Literals(bytes)
    case 'lz4': {
      const block = lz4Literals(bytes)
      const frame = Buffer.alloc(8)
      frame.writeUInt32BE(bytes.length, 0)
      frame.writeUInt32BE(block.length, 4)
      return Buffer.concat([frame, block])
    }
    default:
      return bytes
  }
}

/** A block of one sequence without a match. */
function lz4Literals(bytes: Buffer): Buffer {
  const head = [Math.min(15, bytes.length) << 4]
  let rest = bytes.length - 15
  for (; rest >= 255; rest -= 255) head.push(255)
  if (rest >= 0) head.push(rest)
  return Buffer.concat([Buffer.from(head), bytes])
}
