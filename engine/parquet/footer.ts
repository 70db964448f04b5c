// Reads the footers of Parquet files that other programs wrote. A file ends with the footer's Thrift structure, its
// length (u32) and `PAR1`. When a statement is planned, which must be fast, only the schema is read, as it comes first.
// The descriptions of row groups are read when the query runs; those of a row group's columns are decoded only when the
// query reaches the group, and only for the columns that it reads.
//
//   FileMetaData   1 version | 2 schema | 3 rows | 4 row groups | 5 .. 7 not needed | 8 encryption
//   RowGroup       1 column chunks | 2 bytes | 3 rows

import { emptyStructure, type ParquetTypes, parquetThrift } from '../storage/part/parquet-thrift.js'
import { physical } from './foreign-column.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'
import { ThriftError, ThriftWalk, thriftTypes } from './thrift-walk.js'

export interface ForeignFooter {
  readonly elements: readonly ParquetTypes.SchemaElement[]
  readonly rows: number
}

export interface ForeignGroups {
  /** Column chunks must end before this offset. */
  readonly dataEnd: number
  readonly groups: readonly ForeignGroup[]
}

/** A row group; chunkOf() decodes its columns. */
export interface ForeignGroup {
  readonly rows: number
  /** The encoded structure of each wanted column, by leaf. */
  readonly chunks: ReadonlyMap<number, Uint8Array>
  readonly offset: number
}

export interface ForeignChunk {
  readonly physical: number
  readonly codec: number
  readonly values: number
  readonly start: number
  readonly end: number
  /** The smallest value of an INT32 or INT64 column according to the statistics; null if they do not say. */
  readonly least: Buffer | null
  /** Bounds of the values, as the statistics have them; null: unknown. */
  readonly bounds: { readonly min: Buffer; readonly max: Buffer } | null
}

const magic = 'PAR1'
const tailBytes = 8
/** Bytes of the footer that planning reads first, and at most. */
const schemaBytesFirst = 64 * 1024
const schemaBytesMax = 8 * 1024 * 1024
const footerBytesMax = 256 * 1024 * 1024
const elementsMax = 20_000
const groupsMax = 200_000
/** Allowance, since some writers do not count the header of the dictionary page in the chunk's size. */
const chunkSlack = 4096

/** Reads the schema. Throws SqlError, like all functions here. */
export function readSchema(file: ForeignFile): ForeignFooter {
  const { start, length } = footerPlace(file)
  for (let bytes = schemaBytesFirst; ; bytes *= 8) {
    const some = Math.min(bytes, length, schemaBytesMax)
    const head = new Uint8Array(some)
    file.read(head, start)
    try {
      return schemaOf(file, head)
    } catch (error) {
      if (!(error instanceof ThriftError)) throw error
      if (!error.short || some === length) throw file.error('the footer is damaged', { offset: start })
      if (some === schemaBytesMax)
        throw file.error(`the schema is longer than ${schemaBytesMax} bytes`, { offset: start })
    }
  }
}

function footerPlace(file: ForeignFile): { start: number; length: number } {
  if (file.size < tailBytes + magic.length) throw file.error(`not a Parquet file: it has ${file.size} bytes`)
  const tail = Buffer.alloc(tailBytes)
  file.read(tail, file.size - tailBytes)
  const found = tail.toString('latin1', 4)
  if (found === 'PARE') throw file.error('the file is encrypted')
  if (found !== magic) throw file.error('not a Parquet file: it does not end with PAR1')
  const length = tail.readUInt32LE(0)
  const start = file.size - tailBytes - length
  if (start < magic.length || length === 0)
    throw file.error(`the footer has ${length} bytes, but the file only ${file.size}`, {
      offset: file.size - tailBytes,
    })
  return { start, length }
}

function schemaOf(file: ForeignFile, bytes: Uint8Array): ForeignFooter {
  const walk = new ThriftWalk(bytes)
  let structures: Uint8Array[] | null = null
  let rows = -1
  walk.fields((id, type) => {
    if (id === 2 && type === thriftTypes.list) structures = structuresOf(walk, elementsMax)
    if (id === 3 && type === 6) rows = Number(walk.integer())
    // The rest is long and not needed here.
    return !(id >= 4 && structures !== null && rows >= 0)
  })
  if (structures === null || rows < 0) throw file.error('the footer has no schema')
  if (rows > Number.MAX_SAFE_INTEGER) throw file.error(`the footer has an invalid number of rows, ${rows}`)
  const { types } = parquetThrift()
  const elements = (structures as Uint8Array[]).map((structure) => decoded(file, types.SchemaElement, structure, {}))
  return { elements, rows }
}

/** The elements of a list of structures, each checked for its size. */
function structuresOf(walk: ThriftWalk, max: number): Uint8Array[] {
  const { type, count } = walk.list(max)
  if (type !== thriftTypes.structure) throw new ThriftError(false)
  return Array.from({ length: count }, () => walk.structure())
}

/** Decodes a structure whose sizes have been checked. The library's error messages are not meant for users. */
function decoded<T extends object>(
  file: ForeignFile,
  structure: new (values: never) => T,
  bytes: Uint8Array,
  place: ForeignPlace,
): T {
  const empty = emptyStructure(structure)
  try {
    parquetThrift().decode(empty, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
    return empty
  } catch {
    throw file.error('the footer is damaged', place)
  }
}

/** The row groups of a file with this many leaves, with the chunks of the wanted ones. */
export function readGroups(file: ForeignFile, leaves: number, wanted: ReadonlySet<number>): ForeignGroups {
  const { start, length } = footerPlace(file)
  if (length > footerBytesMax) throw file.error(`the footer is longer than ${footerBytesMax} bytes`, { offset: start })
  const bytes = new Uint8Array(length)
  file.read(bytes, start)
  const walk = new ThriftWalk(bytes)
  const groups: ForeignGroup[] = []
  try {
    walk.fields((id, type) => {
      if (id === 8) throw file.error('the file is encrypted')
      if (id !== 4 || type !== thriftTypes.list) return true
      const { type: element, count } = walk.list(groupsMax)
      if (element !== thriftTypes.structure) throw new ThriftError(false)
      for (let group = 0; group < count; group++) groups.push(groupOf(file, walk, { leaves, wanted, group, start }))
      return true
    })
  } catch (error) {
    if (!(error instanceof ThriftError)) throw error
    throw file.error('the footer is damaged', { offset: start + Math.min(walk.at, length) })
  }
  return { groups, dataEnd: start }
}

interface GroupPlace {
  readonly leaves: number
  readonly wanted: ReadonlySet<number>
  readonly group: number
  readonly start: number
}

function groupOf(file: ForeignFile, walk: ThriftWalk, { leaves, wanted, group, start }: GroupPlace): ForeignGroup {
  const offset = start + walk.at
  const chunks = new Map<number, Uint8Array>()
  let columns = -1
  let rows = -1
  walk.fields((id, type) => {
    if (id === 3 && type === 6) rows = Number(walk.integer())
    if (id !== 1 || type !== thriftTypes.list) return true
    const list = walk.list()
    columns = list.count
    for (let leaf = 0; leaf < columns; leaf++) {
      const structure = walk.structure()
      if (wanted.has(leaf)) chunks.set(leaf, structure)
    }
    return true
  })
  if (columns !== leaves)
    throw file.error(`a row group has ${columns} columns, but the schema has ${leaves}`, { group, offset })
  if (rows < 0 || rows > Number.MAX_SAFE_INTEGER) throw file.error(`a row group has ${rows} rows`, { group, offset })
  return { rows, chunks, offset }
}

/** The position of a column's pages; `dataEnd` is the start of the footer. */
export function chunkOf(
  file: ForeignFile,
  { chunks }: ForeignGroup,
  leaf: number,
  dataEnd: number,
  place: ForeignPlace,
): ForeignChunk {
  const { types } = parquetThrift()
  const chunk = decoded(file, types.ColumnChunk, chunks.get(leaf) ?? new Uint8Array(1), place)
  const { meta_data: data } = chunk
  if (chunk.crypto_metadata || chunk.encrypted_column_metadata) throw file.error('the column is encrypted', place)
  if (chunk.file_path) throw file.error(`the column is stored in another file (${shown(chunk.file_path)})`, place)
  if (!data) throw file.error('the footer has no metadata of the column', place)
  const [values, size, first, dictionary] = [
    ...[data.num_values, data.total_compressed_size],
    ...[data.data_page_offset, data.dictionary_page_offset],
  ].map((value) => (value === null || value === undefined ? -1 : Number(value)))
  const start = dictionary !== undefined && dictionary > 0 ? Math.min(dictionary, first ?? -1) : (first ?? -1)
  const fits = Number.isSafeInteger(size) && (size ?? -1) >= 0 && start >= 4 && start + (size ?? 0) <= dataEnd
  if (!fits)
    throw file.error(`the column has ${size} bytes from ${start} on, but the footer begins at ${dataEnd}`, place)
  if (!Number.isSafeInteger(values) || (values ?? -1) < 0) throw file.error(`the column has ${values} values`, place)
  const end = Math.min(dataEnd, start + (size ?? 0) + chunkSlack)
  const kind = Number(data.type)
  return {
    ...{ physical: kind, codec: Number(data.codec), values: values ?? 0, start, end },
    ...{ least: leastOf(data, kind), bounds: boundsOf(data) },
  }
}

/** The older fields of the statistics have no defined order. */
function boundsOf({ statistics }: ParquetTypes.ColumnMetaData): ForeignChunk['bounds'] {
  const min: unknown = statistics?.min_value
  const max: unknown = statistics?.max_value
  if (!(min instanceof Uint8Array) || !(max instanceof Uint8Array)) return null
  return { min: Buffer.from(min), max: Buffer.from(max) }
}

function leastOf({ statistics }: ParquetTypes.ColumnMetaData, kind: number): Buffer | null {
  const least: unknown = statistics?.min_value ?? statistics?.min
  const bytes = kind === physical.int32 ? 4 : kind === physical.int64 ? 8 : 0
  return least instanceof Uint8Array && bytes > 0 && least.length === bytes ? Buffer.from(least) : null
}

/** What a file says, cut. */
function shown(text: unknown): string {
  return String(text).slice(0, 100)
}
