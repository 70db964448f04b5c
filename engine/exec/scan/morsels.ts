// Represents the rows of a table as morsels (ScanMorsel), the units of scans and of parallel work: a morsel is a block
// of a memtable or a page of a part (Parquet file). A morsel provides its columns, zone-map statistics and time range.
// Its rows may include rows that later transactions have removed, or replaced (by deduplication).
//
// A run is the list of morsels of one part or one memtable, in the order of its rows. runsOf() lists the runs of a
// snapshot in commit order.

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
import { type MarkArena, withoutDuplicates } from '../../storage/memtable/dedup-view.js'
import { marksOf } from '../../storage/memtable/removed-rows.js'
import type { DictionaryPage, KeysOfPage, PartAccess, PartHandle } from '../../storage/part/part-access.js'
import type { StoredPage } from '../../storage/part/part-stored.js'
import type { PartDescriptor, TableSnapshot, TableVersion } from '../../storage/schema/schema.js'
import type { DictionaryStrings } from '../batch/dictionary-strings.js'

export interface ScanMorsel {
  /** Identifies the morsel: the part's id, or -1 - the memtable's id; and the number of the page or block. */
  readonly source: number
  readonly index: number
  /** Number of its first row within the part or memtable. */
  readonly firstRow: number
  readonly rows: number
  /** Bounds of the designated timestamp, possibly wider than the rows; all of time without a designated timestamp. */
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Whether the rows ascend by the designated timestamp. */
  readonly sorted: boolean
  /**
   * Whether these columns can be read now. If the morsel is only in the object store, it is requested: the scan returns
   * 'waiting', and asks again. Throws ResourceError if the store cannot be reached.
   */
  ready(columnIds: readonly number[]): boolean
  /** Address of the column's first value, or 0 when all values are NULL. Pinned until release(). */
  column(columnId: number): number
  release(): void
  /**
   * Reads single values of a column from its encoded page: those of the rows first + index[i] (u32, `count` of them,
   * ascending), into `target`. Returns false and writes nothing when the page has to be decoded as a whole.
   */
  pick(columnId: number, index: number, first: number, count: number, target: number): boolean
  /**
   * Looks up rows by the inverted index of a symbol column: writes the rows (u32) of [from, from + rows) that have one
   * of the ids, ascending and relative to `from`. Returns how many, or -1 when there is no index.
   */
  symbolRows(columnId: number, ids: readonly number[], from: number, rows: number, out: number): number
  /** A string column as dictionary codes; undefined when it is not dictionary-encoded. Pinned until release(). */
  strings(columnId: number): DictionaryStrings | undefined
  /**
   * Decodes a dictionary-encoded column of four-byte values, or their lowest bytes, to `target`, which has room for a
   * page. Returns false and writes nothing when the column is not encoded so; use column() then.
   */
  unpack(columnId: number, target: number, width: 1 | 4): boolean
  /**
   * Decodes a column to memory of the caller instead of the chunk cache, when no other query is likely to read it.
   * False: use column().
   */
  decode(columnId: number, room: (bytes: number) => number): boolean
  /** The column as its encoded page in the file; undefined if there is none, or its rows differ from the morsel's. */
  stored(columnId: number): StoredPage | undefined
  /** Number of NULLs in the column, if the statistics have it. */
  nulls(columnId: number): number | undefined
  /** Smallest and largest value of the column, if the statistics have them. */
  bounds(columnId: number): { readonly min: number | bigint; readonly max: number | bigint } | undefined
  /** Whether a SYMBOL column may contain one of these ids of the table's dictionary. */
  mayHold(columnId: number, ids: readonly number[]): boolean
  /** The ids that a SYMBOL column has in the morsel's part, without NULL; undefined when they are not known. */
  symbols(columnId: number): Int32Array | undefined
  /** Sum of the column's values, if the statistics have it. */
  sum(columnId: number): number | bigint | undefined
  /** The index of the rows' keys, in parts. */
  keys(): KeysOfPage | undefined
  /**
   * Address of a u32 for each row: index + 1 of the row that replaced it, 0 = none; or 0 when no row was replaced. In
   * parts the number of the transaction that removed the row.
   */
  readonly superseded: number
  /** Replacements at this index or later are not visible to the snapshot. */
  readonly visibleRows: number
}

export interface Run {
  readonly morsels: readonly ScanMorsel[]
  readonly rows: number
  /** Whether the timestamps ascend through all morsels. */
  readonly sorted: boolean
  readonly minTs: bigint
  readonly maxTs: bigint
  /** Id of the memtable; -1 for a part. */
  readonly memtable: number
  /** Number of NULLs in a column, if known without opening the morsels. */
  nulls?(columnId: number): number | undefined
  /** Like Morsel.symbols. */
  symbols?(columnId: number): Int32Array | undefined
  /** The part, if the run has all of its rows and none is removed. Opens it. */
  readonly part?: PartHandle | undefined
}

/** Larger than any transaction in a mark. */
const allRemovals = 2 ** 32

export const timeMin = -(2n ** 63n) + 1n
export const timeMax = 2n ** 63n - 1n
const allTimes = { minTs: timeMin, maxTs: timeMax }

/**
 * The runs of the snapshot that may have rows in the ranges, without morsels outside of them. `arena` holds marks of
 * rows that later runs replace.
 */
export function runsOf(
  memory: SharedMemory,
  partAccess: PartAccess,
  snapshot: TableSnapshot,
  ranges: readonly TimeRange[] | null,
  arena: MarkArena,
): Run[] {
  const { version } = snapshot
  const list = (): Run[] => listRuns(memory, partAccess, snapshot, ranges)
  if (version.schema.dedupKeys.length === 0) return list()
  return withoutDuplicates(list(), list, { memory, arena, schema: version.schema, version, changed: changedMorsel })
}

/** Also with rows that deduplication hides. */
export function listRuns(
  memory: SharedMemory,
  partAccess: PartAccess,
  snapshot: TableSnapshot,
  ranges: readonly TimeRange[] | null,
): Run[] {
  const { version, visibleRows } = snapshot
  const parts = version.parts
    .filter((part) => version.schema.timestampId < 0 || touches(ranges, part.minTs, part.maxTs))
    .toSorted(byCommit)
    .map((part) => partRun(partAccess, part, snapshot, ranges))
  const timed = version.schema.timestampId >= 0
  const memtables = version.memtables.map(({ id, address }, index) =>
    memtableRun(memory, address, { id, visibleRows: visibleRows[index] ?? 0, timed }, ranges),
  )
  return [...parts, ...memtables].filter((run) => run.rows > 0)
}

function byCommit(a: PartDescriptor, b: PartDescriptor): number {
  if (a.minTxn !== b.minTxn) return a.minTxn - b.minTxn
  return a.minTs < b.minTs ? -1 : a.minTs > b.minTs ? 1 : a.id - b.id
}

export function rowCount(morsels: readonly { readonly rows: number }[]): number {
  return morsels.reduce((sum, { rows }) => sum + rows, 0)
}

export function touches(ranges: readonly TimeRange[] | null, minTs: bigint, maxTs: bigint): boolean {
  return ranges === null || ranges.some(({ lo, hi }) => lo <= maxTs && hi >= minTs)
}

/** Whether one range contains all of these timestamps. */
export function covers(ranges: readonly TimeRange[] | null, minTs: bigint, maxTs: bigint): boolean {
  return ranges === null || ranges.some(({ lo, hi }) => lo <= minTs && hi >= maxTs)
}

function partRun(
  partAccess: PartAccess,
  part: PartDescriptor,
  snapshot: TableSnapshot,
  ranges: readonly TimeRange[] | null,
): Run {
  const timed = snapshot.version.schema.timestampId >= 0
  const whole = new WholePart(partAccess, part, snapshot)
  if (!timed || covers(ranges, part.minTs, part.maxTs)) return whole
  return runOf(
    whole.morsels.filter(({ minTs, maxTs }) => touches(ranges, minTs, maxTs)),
    timed,
    -1,
  )
}

/**
 * The run of a whole part. The part is opened when its morsels are requested, since a scan that ends early opens few.
 */
class WholePart implements Run {
  readonly rows: number
  readonly sorted: boolean
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly memtable = -1
  readonly #access: PartAccess
  readonly #part: PartDescriptor
  readonly #version: TableVersion
  readonly #transaction: number
  #morsels: ScanMorsel[] | null = null

  constructor(access: PartAccess, part: PartDescriptor, { version, transaction = allRemovals }: TableSnapshot) {
    this.rows = part.rows
    this.sorted = version.schema.timestampId >= 0
    this.minTs = this.sorted ? part.minTs : timeMin
    this.maxTs = this.sorted ? part.maxTs : timeMax
    this.#access = access
    this.#part = part
    this.#version = version
    this.#transaction = transaction
  }

  get morsels(): readonly ScanMorsel[] {
    this.#morsels ??= this.#list()
    return this.#morsels
  }

  get part(): PartHandle | undefined {
    return marksOf(this.#version, this.#part.id) === 0 ? this.#access.open(this.#part, this.#version) : undefined
  }

  nulls(columnId: number): number | undefined {
    return this.#access.nulls(this.#access.open(this.#part, this.#version), columnId)
  }

  symbols(columnId: number): Int32Array | undefined {
    return this.#access.symbols(this.#access.open(this.#part, this.#version), columnId)
  }

  #list(): ScanMorsel[] {
    const handle = this.#access.open(this.#part, this.#version)
    const removed = { address: marksOf(this.#version, this.#part.id), transaction: this.#transaction }
    const morsels: ScanMorsel[] = []
    for (let page = 0; page < handle.pageCount; page++)
      morsels.push(new PageMorsel(this.#access, handle, page, this.sorted, removed))
    return morsels
  }
}

/** Marks of the part's removed rows; `address` 0: none are removed. */
interface Removed {
  readonly address: number
  /** Rows removed by later transactions are visible. */
  readonly transaction: number
}

/** A page of a part. A query may list thousands and read few, so nothing is allocated in advance. */
class PageMorsel implements ScanMorsel {
  readonly source: number
  readonly index: number
  readonly firstRow: number
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly sorted: boolean
  readonly superseded: number
  readonly visibleRows: number
  readonly #access: PartAccess
  readonly #handle: PartHandle
  #pinned: Map<number, number> | null = null
  #packed: Map<number, number> | null = null
  #dictionaryStrings: Map<number, DictionaryPage> | null = null

  constructor(access: PartAccess, handle: PartHandle, page: number, timed: boolean, removed: Removed) {
    this.source = handle.descriptor.id
    this.index = page
    this.firstRow = handle.firstRows[page]!
    this.rows = handle.firstRows[page + 1]! - this.firstRow
    this.superseded = removed.address === 0 ? 0 : removed.address + this.firstRow * 4
    this.visibleRows = removed.transaction
    this.minTs = timed ? handle.minTs[page]! : timeMin
    this.maxTs = timed ? handle.maxTs[page]! : timeMax
    this.sorted = timed
    this.#access = access
    this.#handle = handle
  }

  ready(columnIds: readonly number[]): boolean {
    return columnIds.every((id) => this.#pinned?.has(id)) || this.#access.ready(this.#handle, columnIds, this.index)
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

  strings(columnId: number): DictionaryStrings | undefined {
    const page = this.#dictionaryStrings?.get(columnId) ?? this.#access.pinCodes(this.#handle, columnId, this.index)
    if (page === undefined) return undefined
    this.#dictionaryStrings ??= new Map()
    this.#dictionaryStrings.set(columnId, page)
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

  keys(): KeysOfPage {
    return this.#access.keys(this.#handle, this.index)
  }

  release(): void {
    if (this.#pinned !== null) for (const address of this.#pinned.values()) this.#access.unpin(address)
    if (this.#packed !== null) for (const address of this.#packed.values()) this.#access.unpin(address)
    for (const { data } of this.#dictionaryStrings?.values() ?? []) this.#access.unpin(data)
    this.#dictionaryStrings = null
    this.#pinned = null
    this.#packed = null
  }
}

/** A copy of the morsel with some properties replaced. */
export function changedMorsel(morsel: ScanMorsel, changes: Partial<ScanMorsel>): ScanMorsel {
  const same: ScanMorsel = {
    source: morsel.source,
    index: morsel.index,
    firstRow: morsel.firstRow,
    rows: morsel.rows,
    minTs: morsel.minTs,
    maxTs: morsel.maxTs,
    sorted: morsel.sorted,
    visibleRows: morsel.visibleRows,
    keys: () => morsel.keys(),
    // Evaluated only when the morsel is read, because finding rows that later runs replace is expensive.
    get superseded(): number {
      return morsel.superseded
    },
    ready: (columnIds) => morsel.ready(columnIds),
    column: (columnId) => morsel.column(columnId),
    pick: (columnId, index, first, count, target) => morsel.pick(columnId, index, first, count, target),
    symbolRows: (columnId, ids, from, rows, out) => morsel.symbolRows(columnId, ids, from, rows, out),
    strings: (columnId) => morsel.strings(columnId),
    unpack: (columnId, target, width) => morsel.unpack(columnId, target, width),
    decode: (columnId, room) => morsel.decode(columnId, room),
    stored: (columnId) => morsel.stored(columnId),
    nulls: (columnId) => morsel.nulls(columnId),
    bounds: (columnId) => morsel.bounds(columnId),
    mayHold: (columnId, ids) => morsel.mayHold(columnId, ids),
    symbols: (columnId) => morsel.symbols(columnId),
    sum: (columnId) => morsel.sum(columnId),
    release: () => morsel.release(),
  }
  return Object.defineProperties(same, Object.getOwnPropertyDescriptors(changes)) as ScanMorsel
}

interface MemtableRows {
  readonly id: number
  readonly visibleRows: number
  /** Whether the table has a designated timestamp. */
  readonly timed: boolean
}

function memtableRun(
  memory: SharedMemory,
  address: number,
  memtable: MemtableRows,
  ranges: readonly TimeRange[] | null,
): Run {
  const { id, visibleRows, timed } = memtable
  const morsels: ScanMorsel[] = []
  const count = visibleRows === 0 ? 0 : blockCount(memory, address)
  for (let index = 0; index < count; index++) {
    const block = blockAt(memory, address, index)
    const word = block >>> 2
    const firstRow = memory.u32[word]!
    if (firstRow >= visibleRows) break
    const rows = Math.min(memory.u32[word + 2]!, visibleRows - firstRow)
    if (rows <= 0) continue
    const morsel = new BlockMorsel(memory, memtable, index, block, rows)
    if (!timed || touches(ranges, morsel.minTs, morsel.maxTs)) morsels.push(morsel)
  }
  return runOf(morsels, timed, id)
}

/** A block of a memtable. */
class BlockMorsel implements ScanMorsel {
  readonly source: number
  readonly index: number
  readonly firstRow: number
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly sorted: boolean
  readonly superseded: number
  readonly visibleRows: number
  readonly #memory: SharedMemory
  readonly #block: number

  constructor(memory: SharedMemory, memtable: MemtableRows, index: number, block: number, rows: number) {
    const { id, visibleRows, timed } = memtable
    this.source = -1 - id
    this.index = index
    this.firstRow = memory.u32[block >>> 2]!
    this.rows = Math.min(rows, pageRowsMax)
    const times = timed ? blockTimes(memory, block) : allTimes
    this.minTs = times.minTs
    this.maxTs = times.maxTs
    this.sorted = timed && isBlockSorted(memory, block)
    this.superseded = supersededRows(memory, block)
    this.visibleRows = visibleRows
    this.#memory = memory
    this.#block = block
  }

  ready(): boolean {
    return true
  }

  column(columnId: number): number {
    return blockColumn(this.#memory, this.#block, columnId)
  }

  pick(): boolean {
    return false
  }

  symbolRows(): number {
    return -1
  }

  unpack(): boolean {
    return false
  }

  decode(): boolean {
    return false
  }

  mayHold(): boolean {
    return true
  }

  keys(): undefined {}
  strings(): undefined {}
  stored(): undefined {}
  nulls(): undefined {}
  bounds(): undefined {}
  symbols(): undefined {}
  sum(): undefined {}
  release(): void {}
}

export function runOf(morsels: readonly ScanMorsel[], timed: boolean, memtable: number): Run {
  let rows = 0
  let sorted = timed
  let [minTs, maxTs] = [timeMax, timeMin]
  for (const morsel of morsels) {
    if (!morsel.sorted || (rows > 0 && morsel.minTs < maxTs)) sorted = false
    rows += morsel.rows
    if (morsel.minTs < minTs) minTs = morsel.minTs
    if (morsel.maxTs > maxTs) maxTs = morsel.maxTs
  }
  return { morsels, rows, sorted, minTs, maxTs, memtable }
}
