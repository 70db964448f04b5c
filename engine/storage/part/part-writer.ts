// Writes one part: an immutable Parquet file with a unique name. It is synced together with its directories, after
// which the manifest (the list of all files) may reference it; or it is added to a group of files that are synced
// together. The rows come from a RowSource in their final order, column by column.
//
// The pages of all columns end at the same rows: a little below pageRowsMax, or earlier if the strings of a column
// exceed 8 MiB.

import { assert } from '../../base/assert.js'
import { crc32 } from '../../base/checksum.js'
import type { File, Files } from '../../base/files.js'
import { pageRowsMax, valueBytesMax } from '../../base/limits.js'
import type { ParquetKernel } from '../../kernels/parquet.js'
import { isVariable } from '../../types/column-types.js'
import { type ColumnSchema, type PartDescriptor, storedColumns, type TableSchema } from '../schema/schema.js'
import { bloomHeader } from './bloom-filter.js'
import { type PageCodec, pageCodecOf } from './parquet-codec.js'
import { mappingOf } from './parquet-types.js'
import { writeColumn } from './part-column.js'
import { type FooterColumn, type FooterOutput, writeFooter } from './part-footer.js'
import { type BloomRun, parquetMagic, type SymbolRun } from './part-index.js'
import { preparePage, textBytesOf } from './part-page.js'
import type { Scratch } from './part-scratch.js'
import { SyncGroup } from './sync-group.js'

/** The rows of a part in their final order. */
export interface RowSource {
  readonly rows: number
  /** False if every value of the column is NULL (or zero); the part omits such a column. */
  has(columnId: number): boolean
  /** Address of values in memory layout, valid until the next call; 0 if all are null. */
  read(column: ColumnSchema, first: number, count: number): number
  /** The string of a symbol. */
  symbol(columnId: number, id: number): Uint8Array
}

export interface PartTools {
  readonly files: Files
  readonly kernel: ParquetKernel
  readonly scratch: Scratch
  /** The database directory. */
  readonly directory: string
  readonly codec: PageCodec
  /** The group that syncs finished files later; null: each file is synced at once. */
  readonly group: SyncGroup | null
}

export interface PartInput {
  readonly schema: TableSchema
  readonly source: RowSource
  readonly partId: number
  readonly partition: string
  readonly minTxn: number
  readonly maxTxn: number
}

const blockBytes = 1024 * 1024
/** Maximum size of the strings of one column in one page, unless a single row has more. */
const pageTextBytesMax = valueBytesMax
/** Rows that are measured together when strings decide where a page ends. */
const sliceRows = 2048
/**
 * With the bytes that the cache adds, a page of this many four- or eight-byte values just fits whole allocator pages.
 */
const pageRowsUsual = pageRowsMax - sliceRows

/** A generator: each step does about one page of one column. Removes the file if writing fails. */
export function* writePart(tools: PartTools, input: PartInput): Generator<undefined, PartDescriptor> {
  assert(input.source.rows > 0, 'F2: a part has rows')
  const file = partFile(input.schema.id, input.partition, input.partId)
  const output = new PartFile(tools.files, tools.directory, file)
  try {
    const part = yield* writeBody(tools, input, output, file)
    output.finish(tools.group)
    return part
  } finally {
    // Without effect after finish(); removes the file after an error or a cancellation.
    output.abandon()
  }
}

/** Path of a part below the database directory. */
function partFile(tableId: number, partition: string, partId: number): string {
  return `${tableId}/${partition}/${partId}.parquet`
}

function* writeBody(
  tools: PartTools,
  input: PartInput,
  output: PartFile,
  file: string,
): Generator<undefined, PartDescriptor> {
  const { schema, source } = input
  const columns = columnsOf(schema, source)
  const firstRows = yield* planPages(tools, columns, source)
  output.writeOutside([Buffer.from(parquetMagic)])
  const written: FooterColumn[] = []
  for (const column of columns) {
    const { type, parquet: storage } = column
    const result = yield* writeColumn({
      tools: { kernel: tools.kernel, scratch: tools.scratch, mapping: mappingOf(type), storage },
      type,
      codec: storage?.codec === undefined ? tools.codec : pageCodecOf(storage.codec),
      sorted: column.id === schema.timestampId,
      firstRows,
      read: (page) => source.read(column, firstRows[page] as number, rowsOf(firstRows, page)),
      symbol: (id) => source.symbol(column.id, id),
      write: (header, body) => {
        const offset = output.writeOutside([header])
        output.write([body])
        return offset
      },
    })
    written.push({ column, written: result })
  }
  const blooms = writeBlooms(written, output)
  const symbols = writeSymbolIds(written, output)
  writeFooter({ ...input, rows: source.rows, firstRows, columns: written, symbols, blooms }, output)
  const { partId: id, partition, minTxn, maxTxn } = input
  const rest = { rows: source.rows, bytes: output.bytes, minTxn, maxTxn, columnIds: columns.map((column) => column.id) }
  return { id, file, partition, ...rest, ...timeRange(schema, written), ...nullSymbols(written) }
}

/** Columns with a value, or else the first column, because a Parquet file must have one. */
function columnsOf(schema: TableSchema, source: RowSource): ColumnSchema[] {
  const stored = storedColumns(schema)
  const present = stored.filter((column) => column.id === schema.timestampId || source.has(column.id))
  return present.length > 0 ? present : stored.slice(0, 1)
}

function rowsOf(firstRows: readonly number[], page: number): number {
  return (firstRows[page + 1] as number) - (firstRows[page] as number)
}

function timeRange(schema: TableSchema, columns: readonly FooterColumn[]): { minTs: bigint; maxTs: bigint } {
  const pages = columns.find(({ column }) => column.id === schema.timestampId)?.written.pages
  const [first, last] = [pages?.[0]?.range, pages?.at(-1)?.range]
  if (first === undefined || last === undefined) return { minTs: 0n, maxTs: 0n }
  const [minTs, maxTs] = [Buffer.from(first).readBigInt64LE(0), Buffer.from(last).readBigInt64LE(8)]
  assert(minTs <= maxTs, 'T1: the rows of a part ascend by time')
  return { minTs, maxTs }
}

function nullSymbols(columns: readonly FooterColumn[]): Pick<PartDescriptor, 'nullSymbolIds'> {
  const ids = columns
    .filter(({ column, written }) => column.type.name === 'SYMBOL' && written.pages.some(({ nulls }) => nulls > 0))
    .map(({ column }) => column.id)
  return ids.length === 0 ? {} : { nullSymbolIds: ids }
}

/** First row of each page, followed by the row count. */
function* planPages(
  tools: PartTools,
  columns: readonly ColumnSchema[],
  source: RowSource,
): Generator<undefined, number[]> {
  const slices = Math.ceil(source.rows / sliceRows)
  const strings = columns.filter((column) => isVariable(column.type))
  const bytes = strings.map(() => new Float64Array(slices))
  for (const [index, column] of strings.entries()) {
    const own = bytes[index] as Float64Array
    for (let slice = 0; slice < slices; slice++) {
      own[slice] = sliceTextBytes(tools, source, column, slice * sliceRows)
      if (slice % 16 === 15) yield
    }
  }
  return cutPages(tools, strings, bytes, source)
}

function sliceTextBytes(tools: PartTools, source: RowSource, column: ColumnSchema, first: number, count = sliceRows) {
  const rows = Math.min(count, source.rows - first)
  const mapping = mappingOf(column.type)
  const page = { kernel: tools.kernel, scratch: tools.scratch, mapping }
  const bits = tools.scratch.room('bits', (rows >>> 3) + 64)
  return textBytesOf(page, preparePage(page, source.read(column, first, rows), rows, bits))
}

function cutPages(
  tools: PartTools,
  strings: readonly ColumnSchema[],
  bytes: readonly Float64Array[],
  source: RowSource,
): number[] {
  const firstRows = [0]
  let start = 0
  const filled = strings.map(() => 0)
  const cutAt = (row: number) => {
    if (row > start) firstRows.push(row)
    start = row
    filled.fill(0)
  }
  for (let slice = 0; slice * sliceRows < source.rows; slice++) {
    const first = slice * sliceRows
    if (first - start >= pageRowsUsual) cutAt(first)
    if (bytes.some((own, text) => (filled[text] as number) + own[slice]! > pageTextBytesMax)) cutAt(first)
    if (bytes.some((own) => own[slice]! > pageTextBytesMax)) cutSlice(tools, strings, source, first, cutAt)
    else for (const [text, own] of bytes.entries()) filled[text] = (filled[text] as number) + own[slice]!
  }
  cutAt(source.rows)
  assert(firstRows.at(-1) === source.rows, 'F2: the pages of a part hold every row')
  return firstRows
}

/** Cuts a slice row by row, because its strings exceed a page. */
function cutSlice(
  tools: PartTools,
  strings: readonly ColumnSchema[],
  source: RowSource,
  first: number,
  cutAt: (row: number) => void,
): void {
  let filled = strings.map(() => 0)
  const end = Math.min(first + sliceRows, source.rows)
  for (let row = first; row < end; row++) {
    const sizes = strings.map((column) => sliceTextBytes(tools, source, column, row, 1))
    if (sizes.some((size, text) => (filled[text] as number) + size > pageTextBytesMax)) {
      cutAt(row)
      filled = strings.map(() => 0)
    }
    filled = filled.map((size, text) => size + (sizes[text] as number))
  }
  cutAt(end)
}

function writeSymbolIds(columns: readonly FooterColumn[], output: PartFile): SymbolRun[] {
  const runs: SymbolRun[] = []
  for (const { column, written } of columns) {
    const ids = written.symbolIds
    if (ids === undefined) continue
    const bytes = new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)
    runs.push({ columnId: column.id, offset: output.write([bytes]), count: ids.length, crc: crc32(bytes) })
  }
  return runs
}

function writeBlooms(columns: readonly FooterColumn[], output: PartFile): BloomRun[] {
  const runs: BloomRun[] = []
  for (const { column, written } of columns) {
    const { bloom } = written
    if (bloom === undefined) continue
    assert(bloom.length > 0, 'F2: a Bloom filter has a block')
    const header = bloomHeader(bloom.length)
    output.writeOutside([header])
    const place = { offset: output.write([bloom]), bytes: bloom.length, crc: crc32(bloom) }
    runs.push({ columnId: column.id, headerBytes: header.length, ...place })
  }
  return runs
}

/** Owns the file while it is written. */
class PartFile implements FooterOutput {
  bytes = 0
  outsideCrc = 0
  private finished = false
  /** Whether the file was handed to a group. */
  private given = false
  private readonly files: Files
  private readonly directories: readonly string[]
  private readonly path: string
  private readonly file: File
  private readonly output: BlockOutput

  constructor(files: Files, directory: string, file: string) {
    const [table = '', partition = ''] = file.split('/')
    this.files = files
    this.path = `${directory}/${file}`
    this.directories = [`${directory}/${table}/${partition}`, `${directory}/${table}`, directory]
    files.makeDirectory(`${directory}/${table}/${partition}`)
    // A flush interrupted by a crash may have left a file with this name, which no manifest references.
    if (files.exists(this.path)) files.remove(this.path)
    this.file = files.open(this.path, 'create')
    this.output = new BlockOutput(this.file)
  }

  /** Appends bytes without a checksum of their own. */
  writeOutside(chunks: readonly Uint8Array[]): number {
    for (const chunk of chunks) this.outsideCrc = crc32(chunk, this.outsideCrc)
    return this.write(chunks)
  }

  /** Appends bytes; returns their offset. */
  write(chunks: readonly Uint8Array[]): number {
    assert(!this.given, 'F3: a finished part is immutable')
    const offset = this.bytes
    for (const chunk of chunks) {
      this.output.append(chunk)
      this.bytes += chunk.length
    }
    return offset
  }

  /** Syncs the contents, then the directories on the path, all of which may be new. */
  finish(later: SyncGroup | null): void {
    assert(!this.given, 'F3: a part is finished once')
    assert(this.bytes > 0, 'F2: a part has bytes')
    this.output.flush()
    const group = later ?? new SyncGroup(this.files)
    this.given = true
    group.add(this.file, this.directories)
    if (later === null) {
      try {
        group.commit()
      } finally {
        group.close()
      }
    }
    this.finished = true
  }

  /** Removes the file unless it is finished. */
  abandon(): void {
    if (this.finished) return
    if (!this.given) this.file.close()
    if (this.files.exists(this.path)) this.files.remove(this.path)
  }
}

/**
 * Appends to a file in large aligned blocks. Smaller writes, such as page headers, would leave small fragments in the
 * file system's cache, from which later reads are much slower.
 */
export class BlockOutput {
  private readonly file: File
  private readonly block = Buffer.allocUnsafeSlow(blockBytes)
  private filled = 0
  /** Offset of the current block in the file. */
  private start = 0

  constructor(file: File) {
    this.file = file
  }

  /** The bytes are copied or written before this returns. */
  append(bytes: Uint8Array): void {
    let rest = bytes
    while (this.filled + rest.length >= blockBytes) {
      const room = blockBytes - this.filled
      this.put(
        this.filled === 0 ? [rest.subarray(0, room)] : [this.block.subarray(0, this.filled), rest.subarray(0, room)],
      )
      rest = rest.subarray(room)
    }
    assert(this.filled + rest.length < blockBytes, 'F1: a full block is written at once')
    this.block.set(rest, this.filled)
    this.filled += rest.length
  }

  /** Writes an incomplete last block. Nothing may be appended afterwards. */
  flush(): void {
    if (this.filled > 0) this.put([this.block.subarray(0, this.filled)])
  }

  private put(chunks: readonly Uint8Array[]): void {
    assert(this.start % blockBytes === 0, 'F1: blocks of a part are aligned in their file')
    this.file.write(chunks, this.start)
    for (const chunk of chunks) this.start += chunk.length
    this.filled = 0
  }
}
