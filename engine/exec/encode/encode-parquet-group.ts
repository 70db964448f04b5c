// GroupEncoder: encodes row groups of an exported Parquet file, from result rows or from the stored pages of a table's
// parts (its own Parquet files). It returns a list of blocks of bytes, and the description of the row group that the
// file's footer needs. Several threads can encode row groups of one file in parallel (parallel-encode.ts).

import { budgets } from '../../memory/budgets.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { bloomHeader } from '../../storage/part/bloom-filter.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import { arenaAllocator } from '../batch/arena-allocator.js'
import type { ExecContext } from '../batch/context.js'
import type { QueryArena } from '../batch/query-arena.js'
import { isBatch, type Vector } from '../batch/vector.js'
import { BloomHashes } from './encode-parquet-bloom.js'
import { pageCompressor } from './encode-parquet-codec.js'
import { type ExportedChunk, type ExportedColumn, FlatColumn } from './encode-parquet-column.js'
import { ListColumn } from './encode-parquet-list.js'
import type { EncodedPage, ExportTools } from './encode-parquet-page.js'
import { gatherFormOf } from './encode-parquet-types.js'
import type { EncodedBlock, EncodedMorsel, MorselEncoder, MorselFormat } from './morsel-format.js'
import type { MorselSource, StoredColumn, StoredRows } from './morsel-source.js'
import type { ParquetEncoding } from './parquet-encoding.js'

const groupBytesMax = 96 * 1024 * 1024
/**
 * Fractions of the memory of queries for a row group in progress: each thread encodes one while others wait to be
 * written. With little memory, the smaller fraction applies, and the size of a page in progress counts as well.
 */
const groupParts = 8
/** See groupParts. */
const groupPartsMax = 16
const pageBytes = 16 * 1024 * 1024
/** A power of two minus the overhead of an allocation, so that values fit a size class of the allocator. */
const groupRowsMin = 1024 - 32
const textBytesUsual = 24

/** Memory limit of a row group in progress, and the approximate number of rows that fit. */
function groupRoom(
  { arena }: Pick<ExecContext, 'arena'>,
  columns: readonly Pick<PlanColumn, 'type'>[],
): { readonly bytes: number; readonly rows: number } {
  const bytes = Math.min(groupBytesMax, Math.max(arena.limit / groupPartsMax, arena.limit / groupParts - pageBytes))
  const rowBytes = columns.reduce((sum, { type }) => sum + (isVariable(type) ? textBytesUsual : widthOf(type)), 0)
  return { bytes, rows: Math.max(groupRowsMin, Math.floor(bytes / Math.max(1, rowBytes))) }
}

/** A complete row group. */
export interface EncodedGroup {
  readonly blocks: readonly EncodedBlock[]
  readonly note: RowGroupMetadata
  /** The arena of the blocks. */
  readonly arena: QueryArena
}

/** Metadata of a row group for the footer; sent between threads as JSON. */
export interface RowGroupMetadata {
  readonly rows: number
  readonly chunks: readonly ColumnChunkMetadata[]
}

/**
 * Column chunks follow each other: dictionary page, data pages. Bloom filters follow the row group. Bytes include
 * headers.
 */
export interface ColumnChunkMetadata extends Pick<ExportedChunk, 'encodings' | 'values' | 'nulls'> {
  /** 0: no dictionary. */
  readonly dictionaryBytes: number
  /** Before compression. */
  readonly rawBytes: number
  readonly pages: readonly PageMetadata[]
  /** 0: no Bloom filter. */
  readonly bloomBytes: number
}

export interface PageMetadata extends Pick<EncodedPage, 'rows' | 'nulls'> {
  readonly bytes: number
  /** Base64 of 16 bytes {minimum, maximum}; null without values, or for types without an order. */
  readonly range: string | null
}

/** Encodes row groups from rows in order. */
export class GroupEncoder {
  readonly #columns: readonly ExportedColumn[]
  readonly #rowsMax: number
  readonly #bytesMax: number
  readonly #give: (group: EncodedGroup) => void
  readonly #memory: ExecContext['memory']
  #rows = 0
  #arena: QueryArena
  readonly #nextArena: () => QueryArena

  /** `nextArena` creates the arena for the blocks of the next row group. */
  constructor(
    encoding: ParquetEncoding,
    context: ExecContext,
    columns: readonly PlanColumn[],
    nextArena: () => QueryArena,
    give: (group: EncodedGroup) => void,
  ) {
    const ownScratch = (): Scratch => new Scratch(context.memory, arenaAllocator(context.arena), budgets.queries)
    const scratch = ownScratch()
    const kernel = context.kernels.parquet
    this.#memory = context.memory
    this.#nextArena = nextArena
    this.#arena = nextArena()
    const take = (bytes: number): number => this.#arena.take(bytes)
    const compress = pageCompressor(encoding, kernel, scratch, take, () => context.alive())
    const tools: ExportTools = { kernel, scratch, ownScratch, encoding, compress, take }
    this.#rowsMax = encoding.rowGroupRows
    this.#bytesMax = groupRoom(context, columns).bytes
    this.#give = give
    this.#columns = columns.map(({ type, name }) =>
      gatherFormOf(type, encoding.rawArrays) === 'list'
        ? new ListColumn(tools, context, type.a)
        : new FlatColumn(tools, context, type, bloomOf(encoding, name)),
    )
  }

  rows(vectors: readonly Vector[], from: number, to: number): void {
    for (let row = from; row < to; ) {
      const end = Math.min(to, row + this.#rowsMax - this.#rows)
      for (const [index, column] of this.#columns.entries()) column.append(vectors[index] as Vector, row, end)
      this.#ended(end - row)
      row = end
    }
  }

  #ended(rows: number): void {
    this.#rows += rows
    if (this.#rows >= this.#rowsMax || this.#heldBytes > this.#bytesMax) this.#finish()
  }

  get #heldBytes(): number {
    return this.#columns.reduce((sum, column) => sum + column.waitingBytes + column.gatheredBytes, 0)
  }

  /** Rows that still fit the current group. */
  get room(): number {
    return this.#rowsMax - this.#rows
  }

  /** Adds one column of a stored page of a part: by copying the page if possible, else row by row. */
  column(index: number, { page, dictionary, vector }: StoredColumn, rows: number): void {
    const column = this.#columns[index]
    if (page === undefined || column?.takeStored(page, dictionary) !== true) column?.append(vector(), 0, rows)
  }

  /** Called after the last column of a stored page. */
  endStoredPage(rows: number): void {
    this.#ended(rows)
  }

  /** Discards the current group. */
  abandon(): void {
    this.#arena.freeAll()
  }

  /** Ends the last group. */
  end(): void {
    if (this.#rows > 0) this.#finish()
  }

  #finish(): void {
    const arena = this.#arena
    const chunks = this.#columns.map((column) => column.finish())
    const note = { rows: this.#rows, chunks: chunks.map(noteOf) }
    const blocks = blocksOf(this.#memory, arena, chunks, this.#rows)
    this.#rows = 0
    this.#arena = this.#nextArena()
    this.#give({ blocks, note, arena })
  }
}

function bloomOf({ bloom }: ParquetEncoding, name: string): BloomHashes | null {
  return bloom?.columns.some((column) => column.toLowerCase() === name.toLowerCase()) === true
    ? new BloomHashes(bloom.falseShare)
    : null
}

/** The bytes of a row group in file order. Headers and filters are copied; bodies of pages stay in place. */
function blocksOf(
  memory: ExecContext['memory'],
  arena: QueryArena,
  chunks: readonly ExportedChunk[],
  rows: number,
): EncodedBlock[] {
  const parts = [
    ...chunks.flatMap((chunk) => pagesOf(chunk).flatMap(({ header, body }) => [header, body])),
    ...chunks.flatMap(({ bloom }) => (bloom === null ? [] : [bloomHeader(bloom.length), bloom])),
  ].filter((part) => part.length > 0)
  const copied = parts.filter((part) => part.buffer !== memory.u8.buffer)
  let at = arena.take(copied.reduce((sum, part) => sum + part.length, 0))
  return parts.map((part, index) => {
    const ended = index === parts.length - 1 ? rows : 0
    if (part.buffer === memory.u8.buffer) return { address: part.byteOffset, bytes: part.length, rows: ended }
    memory.u8.set(part, at)
    at += part.length
    return { address: at - part.length, bytes: part.length, rows: ended }
  })
}

function pagesOf({ dictionary, pages }: ExportedChunk): readonly EncodedPage[] {
  return dictionary === null ? pages : [dictionary, ...pages]
}

function noteOf(chunk: ExportedChunk): ColumnChunkMetadata {
  const { dictionary, pages, ranges, bloom, encodings, values, nulls } = chunk
  return {
    ...{ encodings, values, nulls },
    dictionaryBytes: dictionary === null ? 0 : bytesOf(dictionary),
    rawBytes: pagesOf(chunk).reduce((sum, { header, rawBytes }) => sum + header.length + rawBytes, 0),
    pages: pages.map((page, index) => {
      const range = ranges[index]
      const text = range === undefined ? null : Buffer.from(range).toString('base64')
      return { rows: page.rows, nulls: page.nulls, bytes: bytesOf(page), range: text }
    }),
    bloomBytes: bloom === null ? 0 : bloomHeader(bloom.length).length + bloom.length,
  }
}

function bytesOf({ header, body }: EncodedPage): number {
  return header.length + body.length
}

// Row groups as morsels ---------------------------------------------------------------------------------------------

const heldMax = 2
/** Limit of the rows of a morsel, in case that more rows pass the filter than expected. */
const morselRowsMax = 4 * 1024 * 1024
/** With a filter, row groups are planned this full, because a few unexpected rows would create a small second group. */
const fullness = 7 / 8
const selectivityMin = 1 / 1024

/** Cuts morsels into whole row groups, so that the end of a morsel is the end of a group. */
export function parquetFormat(
  encoding: ParquetEncoding,
  context: Pick<ExecContext, 'arena'>,
  columns: readonly PlanColumn[],
): MorselFormat {
  const { rowGroupRows } = encoding
  const room = groupRoom(context, columns).rows
  const morselRows: MorselFormat['morselRows'] = ({ rows, computed, morselsWanted }, { parallelism, selectivity }) => {
    const groupRows = computed === null ? rowGroupRows : rowGroupRows * fullness
    const wanted = Math.max(parallelism.chunkRowsMin, Math.min(groupRows, (rows * selectivity) / morselsWanted))
    if (computed !== null)
      return Math.ceil(Math.min(morselRowsMax, Math.min(wanted, room) / Math.max(selectivity, selectivityMin)))
    if (wanted < rowGroupRows) return Math.ceil(Math.min(wanted, room))
    // Small row groups: several in a morsel.
    const whole = Math.floor(room / rowGroupRows) * rowGroupRows
    return Math.min(Math.ceil(wanted / rowGroupRows) * rowGroupRows, whole === 0 ? room : whole)
  }
  return {
    heldMax,
    cut: 'evenly',
    measures: 'selectivity',
    resumes: false,
    takesStored: true,
    divides: (rows, parallelism) => {
      const one = morselRows(rows, { parallelism, selectivity: 1, headRows: 0, headBytes: 0, headMs: 0 }) ?? 0
      return one <= morselRowsMax && (rows.rows > one || rows.hasStoredPages)
    },
    morselRows,
    open: ({ work, retained }) => new GroupMorsel(encoding, work, columns, retained),
  }
}

class GroupMorsel implements MorselEncoder {
  rows = 0
  readonly betweenBatches = true
  readonly #encoder: GroupEncoder
  readonly #columns: number
  readonly #blocks: EncodedBlock[] = []
  readonly #notes: RowGroupMetadata[] = []
  /** The stored page in progress, taken column by column, and its next column. */
  #stored: StoredRows | null = null
  #column = 0

  constructor(encoding: ParquetEncoding, work: ExecContext, columns: readonly PlanColumn[], retained: QueryArena) {
    this.#columns = columns.length
    const give = ({ blocks, note }: EncodedGroup): void => {
      for (const block of blocks) this.#blocks.push(block)
      this.#notes.push(note)
    }
    this.#encoder = new GroupEncoder(encoding, work, columns, () => retained, give)
  }

  step(source: MorselSource): boolean | 'waiting' {
    this.#stored ??= source.stored?.(this.#encoder.room) ?? null
    if (this.#stored !== null) {
      this.#takeColumn(this.#stored)
      return true
    }
    const pulled = source.take()
    if (isBatch(pulled)) {
      this.#encoder.rows(pulled.vectors, 0, pulled.rows)
      this.rows += pulled.rows
    }
    return pulled === 'waiting' ? pulled : pulled !== null
  }

  #takeColumn(stored: StoredRows): void {
    this.#encoder.column(this.#column, stored.column(this.#column), stored.rows)
    this.#column++
    if (this.#column < this.#columns) return
    this.#column = 0
    this.#stored = null
    this.#encoder.endStoredPage(stored.rows)
    this.rows += stored.rows
    stored.passed()
  }

  end(): EncodedMorsel {
    this.#encoder.end()
    return { blocks: this.#blocks, note: JSON.stringify(this.#notes) }
  }
}
