// A table's rows as pieces: blocks of memtables and pages of parts. A piece is the unit of work (a morsel): columns with
// addresses, a range of time, perhaps rows that are dead for this reader.
//
// Runs are pieces of one origin in commit order: a part, or a memtable generation. Runs are listed in commit order, too.

import { pageRowsMax } from '../../base/limits.js'
import {
  blockAt,
  blockColumn,
  blockCount,
  blockTimes,
  isBlockSorted,
  supersededRows,
} from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import type { TimeRange } from '../../sql/plan/plan.js'
import { type MarkSpace, withoutRepeats } from '../../storage/memtable/dedup-view.js'
import type { CodedPage, PartAccess, PartHandle } from '../../storage/part/part-access.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import type { PartDescriptor, TableSnapshot, TableVersion } from '../../storage/schema/schema.js'
import type { CodedTexts } from '../batch/coded-texts.js'

export interface Piece {
  /** Which piece of the table this is: the part's id or -1 - the generation's, and the page's or block's number there. */
  readonly source: number
  readonly index: number
  readonly rows: number
  /** Bounds of the designated timestamp (conservative); all of time without one. */
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Ascending by the designated timestamp. */
  readonly sorted: boolean
  /** Address of the column's first value, 0 when every value is null. Pinned until release. */
  column(columnId: number): number
  release(): void
  /**
   * Few values of a column: those of the rows first + index[i] (u32, `count` of them, ascending) go to the target. False,
   * and nothing is written, when the column has to be read as a whole.
   */
  pick(columnId: number, index: number, first: number, count: number, target: number): boolean
  /**
   * Writes the rows (u32) of [from, from + rows) with one of the ids in a column of symbols, ascending and counted from
   * `from`; returns how many, -1 when they are not listed.
   */
  symbolRows(columnId: number, ids: readonly number[], from: number, rows: number, out: number): number
  /** A column of texts as numbers of distinct ones; undefined where they are not kept so. Pinned until release. */
  texts(columnId: number): CodedTexts | undefined
  /**
   * Writes a column of few different values of four bytes, or their lowest bytes, to a target of a page's room; false, and
   * nothing is written: column().
   */
  unpack(columnId: number, target: number, width: 1 | 4): boolean
  /** Decodes a column to a room of the caller's, when nobody else is likely to read it; false: column(). */
  decode(columnId: number, room: (bytes: number) => number): boolean
  /** The column as it lies in a file; undefined where there is none, or rows lie otherwise. */
  stored(columnId: number): StoredPage | undefined
  /** NULLs of the column where they are known without reading it. */
  nulls(columnId: number): number | undefined
  /** Least and greatest value of the column where they are known without reading it. */
  bounds(columnId: number): { readonly min: number | bigint; readonly max: number | bigint } | undefined
  /** Whether a SYMBOL column may hold one of these ids of the table's dictionary. */
  mayHold(columnId: number, ids: readonly number[]): boolean
  /** Ids of the table's dictionary that a SYMBOL column of the piece's part holds, NULL apart; undefined: not known. */
  symbols(columnId: number): Int32Array | undefined
  /** Sum of the column's values where it is known without reading it. */
  sum(columnId: number): number | bigint | undefined
  /** u32 per row: index + 1 of the row that replaced it, 0 = none; 0 when the piece has no such rows. */
  readonly superseded: number
  /** Replacements at or beyond this index are not seen yet. */
  readonly visibleRows: number
}

export interface Run {
  readonly pieces: readonly Piece[]
  readonly rows: number
  /** Ascending throughout. */
  readonly sorted: boolean
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Generation id of a memtable; -1 of a part. */
  readonly generation: number
  /** NULLs of a column where they are known without looking at the pieces. */
  nulls?(columnId: number): number | undefined
  /** As of its pieces. */
  symbols?(columnId: number): Int32Array | undefined
}

export const timeMin = -(2n ** 63n) + 1n
export const timeMax = 2n ** 63n - 1n

/** All runs of the snapshot that may hold rows of the ranges, without pieces outside of them. `space` keeps marks. */
export function runsOf(
  memory: SharedMemory,
  partAccess: PartAccess,
  snapshot: TableSnapshot,
  ranges: readonly TimeRange[] | null,
  space: MarkSpace,
): Run[] {
  const { schema } = snapshot.version
  const list = (): Run[] => listRuns(memory, partAccess, snapshot, ranges)
  return schema.dedupKeys.length === 0
    ? list()
    : withoutRepeats(list(), list, { memory, space, schema, changed: changedPiece })
}

function listRuns(
  memory: SharedMemory,
  partAccess: PartAccess,
  snapshot: TableSnapshot,
  ranges: readonly TimeRange[] | null,
): Run[] {
  const { version, visibleRows } = snapshot
  const parts = version.parts
    .filter((part) => version.schema.timestampId < 0 || touches(ranges, part.minTs, part.maxTs))
    .toSorted(byCommit)
    .map((part) => partRun(partAccess, part, version, ranges))
  const generations = version.generations.map(({ id, address }, index) =>
    generationRun(memory, id, address, visibleRows[index] ?? 0, version.schema.timestampId >= 0, ranges),
  )
  return [...parts, ...generations].filter((run) => run.rows > 0)
}

function byCommit(a: PartDescriptor, b: PartDescriptor): number {
  if (a.minTxn !== b.minTxn) return a.minTxn - b.minTxn
  return a.minTs < b.minTs ? -1 : a.minTs > b.minTs ? 1 : a.id - b.id
}

export function rowCount(pieces: readonly { readonly rows: number }[]): number {
  return pieces.reduce((sum, { rows }) => sum + rows, 0)
}

export function touches(ranges: readonly TimeRange[] | null, minTs: bigint, maxTs: bigint): boolean {
  return ranges === null || ranges.some(({ lo, hi }) => lo <= maxTs && hi >= minTs)
}

/** Whether all rows between the bounds are in one of the ranges. */
export function covers(ranges: readonly TimeRange[] | null, minTs: bigint, maxTs: bigint): boolean {
  return ranges === null || ranges.some(({ lo, hi }) => lo <= minTs && hi >= maxTs)
}

function partRun(
  partAccess: PartAccess,
  part: PartDescriptor,
  version: TableVersion,
  ranges: readonly TimeRange[] | null,
): Run {
  const timed = version.schema.timestampId >= 0
  const whole = new WholePart(partAccess, part, version)
  if (!timed || covers(ranges, part.minTs, part.maxTs)) return whole
  return runOf(
    whole.pieces.filter(({ minTs, maxTs }) => touches(ranges, minTs, maxTs)),
    timed,
    -1,
  )
}

/** All of a part. It is opened when somebody asks for its pieces: a walk that ends early opens few. */
class WholePart implements Run {
  readonly rows: number
  readonly sorted: boolean
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly generation = -1
  readonly #access: PartAccess
  readonly #part: PartDescriptor
  readonly #version: TableVersion
  #pieces: Piece[] | null = null

  constructor(access: PartAccess, part: PartDescriptor, version: TableVersion) {
    this.rows = part.rows
    this.sorted = version.schema.timestampId >= 0
    this.minTs = this.sorted ? part.minTs : timeMin
    this.maxTs = this.sorted ? part.maxTs : timeMax
    this.#access = access
    this.#part = part
    this.#version = version
  }

  get pieces(): readonly Piece[] {
    this.#pieces ??= this.#list()
    return this.#pieces
  }

  nulls(columnId: number): number | undefined {
    return this.#access.nulls(this.#access.open(this.#part, this.#version), columnId)
  }

  symbols(columnId: number): Int32Array | undefined {
    return this.#access.symbols(this.#access.open(this.#part, this.#version), columnId)
  }

  #list(): Piece[] {
    const handle = this.#access.open(this.#part, this.#version)
    return Array.from({ length: handle.pageCount }, (_, page) => new PagePiece(this.#access, handle, page, this.sorted))
  }
}

/** There may be thousands in a query that reads few of them: nothing is made before it is asked for. */
class PagePiece implements Piece {
  readonly source: number
  readonly index: number
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly sorted: boolean
  readonly superseded = 0
  readonly visibleRows = 0
  readonly #access: PartAccess
  readonly #handle: PartHandle
  #pinned: Map<number, number> | null = null
  #packed: Map<number, number> | null = null
  #coded: Map<number, CodedPage> | null = null

  constructor(access: PartAccess, handle: PartHandle, page: number, timed: boolean) {
    this.source = handle.descriptor.id
    this.index = page
    this.rows = handle.firstRows[page + 1]! - handle.firstRows[page]!
    this.minTs = timed ? handle.minTs[page]! : timeMin
    this.maxTs = timed ? handle.maxTs[page]! : timeMax
    this.sorted = timed
    this.#access = access
    this.#handle = handle
  }

  column(columnId: number): number {
    const known = this.#pinned?.get(columnId)
    if (known !== undefined) return known
    const address = this.#access.pin(this.#handle, columnId, this.index)
    this.#pinned ??= new Map()
    this.#pinned.set(columnId, address)
    return address
  }

  pick(columnId: number, index: number, first: number, count: number, target: number): boolean {
    if (this.#pinned?.has(columnId) === true) return false
    const values = this.#packed?.get(columnId) ?? this.#access.pinPacked(this.#handle, columnId, this.index)
    this.#packed ??= new Map()
    this.#packed.set(columnId, values)
    if (values !== 0) this.#access.pick(values, index, first, count, target)
    return values !== 0
  }

  symbolRows(columnId: number, ids: readonly number[], from: number, rows: number, out: number): number {
    return this.#access.symbolRows(this.#handle, columnId, this.index, ids, from, rows, out)
  }

  texts(columnId: number): CodedTexts | undefined {
    const page = this.#coded?.get(columnId) ?? this.#access.pinCodes(this.#handle, columnId, this.index)
    if (page === undefined) return undefined
    this.#coded ??= new Map()
    this.#coded.set(columnId, page)
    return { codes: page.codes, entries: page.entries, count: page.count, owner: this.#handle, columnId }
  }

  unpack(columnId: number, target: number, width: 1 | 4): boolean {
    if (this.#pinned?.has(columnId) === true) return false
    return this.#access.unpack(this.#handle, columnId, this.index, target, width)
  }

  decode(columnId: number, room: (bytes: number) => number): boolean {
    if (this.#pinned?.has(columnId) === true) return false
    return this.#access.decode(this.#handle, columnId, this.index, room)
  }

  stored(columnId: number): StoredPage | undefined {
    return this.#access.stored(this.#handle, columnId, this.index)
  }

  nulls(columnId: number): number | undefined {
    return this.#access.statistics(this.#handle, columnId, this.index)?.nulls
  }

  bounds(columnId: number): { readonly min: number | bigint; readonly max: number | bigint } | undefined {
    return this.#access.statistics(this.#handle, columnId, this.index)?.bounds
  }

  mayHold(columnId: number, ids: readonly number[]): boolean {
    return this.#access.mayHold(this.#handle, columnId, ids)
  }

  symbols(columnId: number): Int32Array | undefined {
    return this.#access.symbols(this.#handle, columnId)
  }

  sum(columnId: number): number | bigint | undefined {
    return this.#access.statistics(this.#handle, columnId, this.index)?.sum
  }

  release(): void {
    if (this.#pinned !== null) for (const address of this.#pinned.values()) this.#access.unpin(address)
    if (this.#packed !== null) for (const address of this.#packed.values()) this.#access.unpin(address)
    if (this.#coded !== null) for (const { data } of this.#coded.values()) this.#access.unpin(data)
    this.#coded = null
    this.#pinned = null
    this.#packed = null
  }
}

/** The piece with some things told otherwise. */
export function changedPiece(piece: Piece, changes: Partial<Piece>): Piece {
  const same: Piece = {
    source: piece.source,
    index: piece.index,
    rows: piece.rows,
    minTs: piece.minTs,
    maxTs: piece.maxTs,
    sorted: piece.sorted,
    visibleRows: piece.visibleRows,
    // Asked for only when the piece is read: finding rows that later runs repeat is work.
    get superseded(): number {
      return piece.superseded
    },
    column: (columnId) => piece.column(columnId),
    pick: (columnId, index, first, count, target) => piece.pick(columnId, index, first, count, target),
    symbolRows: (columnId, ids, from, rows, out) => piece.symbolRows(columnId, ids, from, rows, out),
    texts: (columnId) => piece.texts(columnId),
    unpack: (columnId, target, width) => piece.unpack(columnId, target, width),
    decode: (columnId, room) => piece.decode(columnId, room),
    stored: (columnId) => piece.stored(columnId),
    nulls: (columnId) => piece.nulls(columnId),
    bounds: (columnId) => piece.bounds(columnId),
    mayHold: (columnId, ids) => piece.mayHold(columnId, ids),
    symbols: (columnId) => piece.symbols(columnId),
    sum: (columnId) => piece.sum(columnId),
    release: () => piece.release(),
  }
  return Object.defineProperties(same, Object.getOwnPropertyDescriptors(changes)) as Piece
}

function generationRun(
  memory: SharedMemory,
  id: number,
  generation: number,
  visible: number,
  timed: boolean,
  ranges: readonly TimeRange[] | null,
): Run {
  const pieces: Piece[] = []
  if (visible === 0) return runOf(pieces, timed, id)
  const count = blockCount(memory, generation)
  for (let index = 0; index < count; index++) {
    const block = blockAt(memory, generation, index)
    const word = block >>> 2
    const firstRow = memory.u32[word]!
    if (firstRow >= visible) break
    const rows = Math.min(memory.u32[word + 2]!, visible - firstRow)
    if (rows <= 0) continue
    const piece = blockPiece(memory, { source: -1 - id, index, block }, rows, visible, timed)
    if (!timed || touches(ranges, piece.minTs, piece.maxTs)) pieces.push(piece)
  }
  return runOf(pieces, timed, id)
}

function blockPiece(
  memory: SharedMemory,
  { source, index, block }: { readonly source: number; readonly index: number; readonly block: number },
  rows: number,
  visibleRows: number,
  timed: boolean,
): Piece {
  const { minTs, maxTs } = timed ? blockTimes(memory, block) : { minTs: timeMin, maxTs: timeMax }
  return {
    source,
    index,
    rows: Math.min(rows, pageRowsMax),
    minTs,
    maxTs,
    sorted: timed && isBlockSorted(memory, block),
    superseded: supersededRows(memory, block),
    visibleRows,
    column: (columnId) => blockColumn(memory, block, columnId),
    pick: () => false,
    symbolRows: () => -1,
    unpack: () => false,
    decode: () => false,
    texts: () => undefined,
    stored: () => undefined,
    nulls: () => undefined,
    bounds: () => undefined,
    mayHold: () => true,
    symbols: () => undefined,
    sum: () => undefined,
    release: () => {},
  }
}

/** The run without some of its pieces; nothing when none is left. */
export function withoutPieces(run: Run, dropped: (piece: Piece) => boolean): Run[] {
  const pieces = run.pieces.filter((piece) => !dropped(piece))
  if (pieces.length === run.pieces.length) return [run]
  return pieces.length === 0 ? [] : [runOf(pieces, run.sorted, run.generation)]
}

export function runOf(pieces: readonly Piece[], timed: boolean, generation: number): Run {
  let rows = 0
  let sorted = timed
  let minTs = timeMax
  let maxTs = timeMin
  for (const piece of pieces) {
    if (!piece.sorted || (rows > 0 && piece.minTs < maxTs)) sorted = false
    rows += piece.rows
    if (piece.minTs < minTs) minTs = piece.minTs
    if (piece.maxTs > maxTs) maxTs = piece.maxTs
  }
  return { pieces, rows, sorted, minTs, maxTs, generation }
}
