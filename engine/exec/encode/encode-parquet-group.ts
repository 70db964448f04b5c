// Row groups of an exported Parquet file while they are made, and how one that a helping thread has made reaches the lead.
//
// Packed groups, in shared memory: count of groups u32 | bytes of the text u32 | text (JSON, see Shape) | headers of the pages
// of all columns and Bloom filters, one behind the other. Bodies stay where they are.

import { budgets } from '../../memory/budgets.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { PlanColumn } from '../../sql/plan/plan.js'
import { Scratch } from '../../storage/part/part-scratch.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import { isVariable, widthOf } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { QuerySpace } from '../batch/query-space.js'
import { spaceAllocator } from '../batch/space-allocator.js'
import type { Vector } from '../batch/vector.js'
import { BloomHashes } from './encode-parquet-bloom.js'
import { pageCompressor } from './encode-parquet-codec.js'
import { type ExportedChunk, type ExportedColumn, FlatColumn } from './encode-parquet-column.js'
import { ListColumn } from './encode-parquet-list.js'
import type { EncodedPage, ExportTools } from './encode-parquet-page.js'
import { gatherFormOf } from './encode-parquet-types.js'
import type { ParquetEncoding } from './parquet-encoding.js'

const groupBytesMax = 96 * 1024 * 1024
/** A thread makes a row group while others wait to be written: one takes a part of the memory of queries, */
const groupParts = 8
/** a smaller one of little memory, where what a page takes while it is made counts as well. */
const groupPartsMax = 16
const pageBytes = 16 * 1024 * 1024
const groupRowsMin = 1024
const textBytesUsual = 24

/** What a row group may take while it is made, and about how many rows of the columns that is. */
export function groupRoom(
  { space }: Pick<ExecContext, 'space'>,
  columns: readonly Pick<PlanColumn, 'type'>[],
): { readonly bytes: number; readonly rows: number } {
  const bytes = Math.min(groupBytesMax, Math.max(space.limit / groupPartsMax, space.limit / groupParts - pageBytes))
  const rowBytes = columns.reduce((sum, { type }) => sum + (isVariable(type) ? textBytesUsual : widthOf(type)), 0)
  return { bytes, rows: Math.max(groupRowsMin, Math.floor(bytes / Math.max(1, rowBytes))) }
}

/** A row group that is complete, column by column. */
export interface ExportedGroup {
  readonly rows: number
  readonly chunks: readonly ExportedChunk[]
  /** Of the bodies of its pages; null: somebody else's. Whoever is given the group frees it. */
  readonly space: QuerySpace | null
}

/** A column of a piece, all of whose rows go into one group. */
export interface WholeColumn {
  readonly stored: StoredPage | undefined
  /** Of the table's symbols. */
  readonly dictionary: number
  readonly rows: number
  readonly vector: () => Vector
}

/** Makes row groups of rows that come in order. */
export class GroupEncoder {
  readonly #columns: readonly ExportedColumn[]
  readonly #rowsMax: number
  readonly #bytesMax: number
  readonly #give: (group: ExportedGroup) => void
  #rows = 0
  #space: QuerySpace
  readonly #nextSpace: () => QuerySpace

  constructor(
    encoding: ParquetEncoding,
    context: ExecContext,
    columns: readonly PlanColumn[],
    give: (group: ExportedGroup) => void,
  ) {
    const ownScratch = (): Scratch => new Scratch(context.memory, spaceAllocator(context.space), budgets.queries)
    const scratch = ownScratch()
    const kernel = context.kernels.parquet
    // Groups wait to be written behind the end of what made them.
    this.#nextSpace = () => context.space.sibling()
    this.#space = this.#nextSpace()
    const take = (bytes: number): number => this.#space.take(bytes)
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

  /** Rows that the group still has room for. */
  get room(): number {
    return this.#rowsMax - this.#rows
  }

  /** One column of a piece that the group has room for: its page as it is stored, or else its rows. */
  column(index: number, { stored, dictionary, rows, vector }: WholeColumn): void {
    const column = this.#columns[index]
    if (stored === undefined || column?.takeStored(stored, dictionary) !== true) column?.append(vector(), 0, rows)
  }

  /** Behind the last column of such a piece. */
  endPiece(rows: number): void {
    this.#ended(rows)
  }

  /** Gives up the group under way. */
  abandon(): void {
    this.#space.freeAll()
  }

  /** The last group. */
  end(): void {
    if (this.#rows > 0) this.#finish()
  }

  #finish(): void {
    const group = { rows: this.#rows, chunks: this.#columns.map((column) => column.finish()), space: this.#space }
    this.#rows = 0
    this.#space = this.#nextSpace()
    this.#give(group)
  }
}

function bloomOf({ bloom }: ParquetEncoding, name: string): BloomHashes | null {
  return bloom?.columns.some((column) => column.toLowerCase() === name.toLowerCase()) === true
    ? new BloomHashes(bloom.falseShare)
    : null
}

// PACKED GROUPS -----------------------------------------------------------------------------------------------------

interface PageShape extends Pick<EncodedPage, 'rawBytes' | 'rows' | 'nulls'> {
  readonly headerBytes: number
  readonly body: number
  readonly bodyBytes: number
}

interface ChunkShape extends Pick<ExportedChunk, 'encodings' | 'values' | 'nulls'> {
  readonly dictionary: PageShape | null
  readonly pages: readonly PageShape[]
  /** Behind the pages. */
  readonly bloomBytes: number | null
  /** Base64. */
  readonly ranges: readonly (string | null)[]
}

interface GroupShape {
  readonly rows: number
  readonly chunks: readonly ChunkShape[]
}

const prefixBytes = 8

export function packGroups(memory: SharedMemory, space: QuerySpace, groups: readonly ExportedGroup[]): number {
  const text = Buffer.from(JSON.stringify(groups.map(shapeOfGroup)))
  const parts = groups.flatMap(({ chunks }) => chunks.flatMap(partsOf))
  const bytes = parts.reduce((sum, part) => sum + part.length, prefixBytes + text.length)
  const address = space.take(bytes)
  memory.u32[address >>> 2] = groups.length
  memory.u32[(address >>> 2) + 1] = text.length
  memory.u8.set(text, address + prefixBytes)
  let at = address + prefixBytes + text.length
  for (const part of parts) {
    memory.u8.set(part, at)
    at += part.length
  }
  return address
}

/** The bodies stay where they are, until the thread that packed them is told that the groups are merged. */
export function unpackGroups({ u8, u32 }: SharedMemory, address: number): ExportedGroup[] {
  const textBytes = u32[(address >>> 2) + 1]!
  let at = address + prefixBytes + textBytes
  const text = Buffer.from(u8.subarray(at - textBytes, at)).toString('utf8')
  const bytes = (count: number): Uint8Array => {
    at += count
    return u8.slice(at - count, at)
  }
  const page = ({ headerBytes, body, bodyBytes, ...rest }: PageShape): EncodedPage => {
    return { ...rest, header: bytes(headerBytes), body: u8.subarray(body, body + bodyBytes) }
  }
  const chunk = ({ dictionary, pages, ranges, bloomBytes, ...rest }: ChunkShape): ExportedChunk => ({
    ...rest,
    dictionary: dictionary === null ? null : page(dictionary),
    pages: pages.map(page),
    bloom: bloomBytes === null ? null : bytes(bloomBytes),
    ranges: ranges.map((range) => (range === null ? undefined : new Uint8Array(Buffer.from(range, 'base64')))),
  })
  const shapes = JSON.parse(text) as GroupShape[]
  return shapes.map(({ rows, chunks }) => ({ rows, chunks: chunks.map(chunk), space: null }))
}

function partsOf({ dictionary, pages, bloom }: ExportedChunk): Uint8Array[] {
  const all = [...(dictionary === null ? [] : [dictionary]), ...pages].map(({ header }) => header)
  return bloom === null ? all : [...all, bloom]
}

function shapeOfGroup({ rows, chunks }: ExportedGroup): GroupShape {
  return { rows, chunks: chunks.map(shapeOfChunk) }
}

function shapeOfChunk({ dictionary, pages, ranges, bloom, encodings, values, nulls }: ExportedChunk): ChunkShape {
  return {
    ...{ encodings, values, nulls },
    dictionary: dictionary === null ? null : shapeOfPage(dictionary),
    pages: pages.map(shapeOfPage),
    bloomBytes: bloom === null ? null : bloom.length,
    ranges: ranges.map((range) => (range === undefined ? null : Buffer.from(range).toString('base64'))),
  }
}

function shapeOfPage({ header, body, rawBytes, rows, nulls }: EncodedPage): PageShape {
  return { headerBytes: header.length, body: body.byteOffset, bodyBytes: body.length, rawBytes, rows, nulls }
}
