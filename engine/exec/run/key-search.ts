// Finds the stored rows that have given keys without running a query. It serves upserts of a few rows, for which a
// query takes longer to plan and start than to run. A search looks the keys up in two kinds of indexes, and then reads
// the rows that they name:
//
//   - indexes of memtables, which this file keeps (storage/memtable/visible-keys.ts)
//   - indexes of pages of parts (Parquet files), which earlier queries have left in the chunk cache
//     (storage/part/page-keys.ts)
//
// A search finds the same rows as a query over the same snapshot. It returns null, so that a query must search, if
//
//   - the key contains a symbol or a floating-point number, or nothing but the designated timestamp: indexes of keys
//     do not support these
//   - a page is not cached or has no index, many rows of a memtable are not in its index yet, or there is much to read
//   - a text in a row is not valid UTF-8: it would change if it were stored again

import { LazyMap } from '../../base/lazy-map.js'
import { pageRowsMax } from '../../base/limits.js'
import type { Allocator } from '../../memory/budgets.js'
import { blockColumn } from '../../memory/column-layout.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { hashRow, type KeyColumn, keyColumnsAt, nullBytes, sameRow } from '../../storage/memtable/key-columns.js'
import { fillNull } from '../../storage/memtable/memtable-values.js'
import { marksOf } from '../../storage/memtable/removed-rows.js'
import { VisibleKeys } from '../../storage/memtable/visible-keys.js'
import type { PartAccess, PartHandle } from '../../storage/part/part-access.js'
import { dictionariesOf, liveColumns, type TableSnapshot } from '../../storage/schema/schema.js'
import { widthOf } from '../../types/column-types.js'
import { nullOf } from '../../types/convert.js'
import type { Value } from '../../types/value.js'
import { QueryArena } from '../batch/query-arena.js'
import { StringHeap } from '../batch/string-heap.js'
import { SymbolStrings, Symbols } from '../batch/symbols.js'
import { valueReader, writeValue } from '../batch/values.js'
import { isHashed } from '../scan/wanted-keys.js'

/** A row of a snapshot. */
interface StoredRow {
  /** Counts the snapshot's parts, and then its memtables. */
  readonly runIndex: number
  readonly row: number
  /** Of the table's columns in their order. */
  readonly values: readonly Value[]
}

export interface SearchRequest {
  readonly snapshot: TableSnapshot
  readonly columnIds: readonly number[]
  /** The values of these columns; none is NULL. */
  readonly keys: readonly (readonly Value[])[]
}

/** By key: the rows that have it. */
export type FoundKeys = readonly (readonly StoredRow[])[]

/** Rows of a memtable that a search adds to its index. */
const caughtUpMax = 32_768
const pagesMax = 4096
/** Rows with hashes of keys that are compared in a page. */
const comparedMax = 256
/** Tables whose memtables have indexes. */
const tablesMax = 64
const replacementCharacter = '\ufffd'

/** Thrown where a query has to search. */
const byQuery = new Error('a query has to search the keys')

interface KeySearchOptions {
  readonly memory: SharedMemory
  /** Emptied by the caller after each search. */
  readonly allocator: Allocator
  readonly partAccess: PartAccess
  /** Address of nullBytes bytes that stay. */
  readonly nulls: number
}

export class KeySearch {
  private readonly options: KeySearchOptions
  /** By table, the least recently searched first: the indexes by memtable and columns. */
  private readonly indexes = new Map<number, Map<string, VisibleKeys>>()

  constructor(options: KeySearchOptions) {
    this.options = options
  }

  /** Null: a query must search. Throws what the allocator and the access to parts throw. */
  find(request: SearchRequest): FoundKeys | null {
    const { schema } = request.snapshot.version
    const { timestampId, columns } = schema
    const hashed = request.columnIds.filter((id) => id !== timestampId)
    if (hashed.length === 0 || !hashed.every((id) => isHashed(columns[id]?.type))) return null
    const search = new Search(this.options, request, hashed)
    try {
      search.parts()
      search.memtables((id, address) => this.indexOf(request, id, address))
      return search.found
    } catch (thrown) {
      if (thrown !== byQuery) throw thrown
      return null
    } finally {
      search.release()
    }
  }

  private indexOf({ snapshot, columnIds }: SearchRequest, id: number, memtable: number): VisibleKeys {
    const { schema, memtables } = snapshot.version
    const known = this.indexes.get(schema.id) ?? new Map<string, VisibleKeys>()
    this.indexes.delete(schema.id)
    this.indexes.set(schema.id, known)
    const [oldest] = this.indexes.keys()
    if (this.indexes.size > tablesMax && oldest !== undefined) this.indexes.delete(oldest)
    const name = `${id} ${columnIds.join()}`
    const index = known.get(name)
    if (index !== undefined) return index
    for (const other of known.keys())
      if (!memtables.some((memtable) => other.startsWith(`${memtable.id} `))) known.delete(other)
    const { memory, nulls } = this.options
    const made = new VisibleKeys({ memory, memtable, schema, columnIds, nulls })
    known.set(name, made)
    return made
  }
}

/** One search. */
class Search {
  readonly found: StoredRow[][]
  private readonly options: KeySearchOptions
  private readonly request: SearchRequest
  private readonly arena: QueryArena
  private readonly strings: SymbolStrings
  private readonly heap: StringHeap
  /** The columns that indexes of pages have. */
  private readonly hashed: readonly number[]
  private readonly nulls: number
  /** The keys as columns, and their hashes. */
  private readonly wanted: readonly KeyColumn[]
  private readonly hashes: Int32Array
  private readonly pinned: number[] = []

  constructor(options: KeySearchOptions, request: SearchRequest, hashed: readonly number[]) {
    const { memory, allocator } = options
    this.options = options
    this.request = request
    this.hashed = hashed
    this.arena = new QueryArena(memory, allocator)
    this.heap = new StringHeap(this.arena)
    this.strings = new SymbolStrings(memory)
    this.found = request.keys.map(() => [])
    this.nulls = this.arena.take(nullBytes)
    const written = new Map(request.columnIds.map((id, index) => [id, this.writtenKeys(id, index)]))
    this.wanted = this.columnsAt(request.columnIds, (id) => written.get(id) ?? 0)
    const ofPages = this.columnsAt(hashed, (id) => written.get(id) ?? 0)
    this.hashes = Int32Array.from(request.keys, (_, row) => hashRow(memory, ofPages, row))
  }

  release(): void {
    for (const address of this.pinned.splice(0)) this.options.partAccess.unpin(address)
  }

  memtables(indexOf: (id: number, address: number) => VisibleKeys): void {
    const { memory } = this.options
    const { version, visibleRows } = this.request.snapshot
    const columns = liveColumns(version.schema)
    for (const [place, { id, address }] of version.memtables.entries()) {
      const visible = visibleRows[place] ?? 0
      const index = indexOf(id, address)
      if (!index.catchUp(visible, caughtUpMax)) throw byQuery
      for (const [key, found] of this.found.entries()) {
        for (const row of index.find(this.wanted, key, hashRow(memory, this.wanted, key), visible)) {
          const at = index.placeOf(row)
          const values = columns.map((column) =>
            this.valueAt(column, blockColumn(memory, at.block, column.id), at.index),
          )
          found.push({ runIndex: version.parts.length + place, row, values })
        }
      }
    }
  }

  parts(): void {
    const { partAccess } = this.options
    const { version } = this.request.snapshot
    const times = this.times()
    let pages = 0
    let out = 0
    for (const [runIndex, part] of version.parts.entries()) {
      if (times !== null && !times.some((time) => part.minTs <= time && time <= part.maxTs)) continue
      const handle = partAccess.open(part, version)
      pages += handle.pageCount
      if (pages > pagesMax) throw byQuery
      if (out === 0) out = this.arena.take(pageRowsMax * 4)
      for (let page = 0; page < handle.pageCount; page++)
        if (this.mayHave(handle, page, times)) this.searchPage(handle, runIndex, page, out)
    }
  }

  /** The designated timestamps of the keys; null if the keys have none. */
  private times(): bigint[] | null {
    const { columnIds, keys, snapshot } = this.request
    const place = columnIds.indexOf(snapshot.version.schema.timestampId)
    if (place < 0) return null
    return keys.map((key) => {
      const time = key[place]
      if (typeof time !== 'bigint') throw byQuery
      return time
    })
  }

  /** Whether the page has a key by the bounds of its columns. */
  private mayHave(handle: PartHandle, page: number, times: readonly bigint[] | null): boolean {
    const { columnIds, keys } = this.request
    const bounds = this.hashed.map((id) => this.options.partAccess.statistics(handle, id, page)?.bounds)
    const places = this.hashed.map((id) => columnIds.indexOf(id))
    return keys.some((key, index) => {
      const time = times?.[index]
      if (time !== undefined && (time < handle.minTs[page]! || time > handle.maxTs[page]!)) return false
      return bounds.every((range, at) => {
        const value = key[places[at] ?? 0]
        if (range === undefined || (typeof value !== 'bigint' && typeof value !== 'number')) return true
        return range.min <= value && value <= range.max
      })
    })
  }

  private searchPage(handle: PartHandle, runIndex: number, page: number, out: number): void {
    const { memory, partAccess } = this.options
    const first = handle.firstRows[page]!
    const rows = handle.firstRows[page + 1]! - first
    const wanted = { columnIds: this.hashed, hashes: this.hashes }
    const count = partAccess.keys(handle, page).select(wanted, 0, rows, out)
    if (count < 0) throw byQuery
    const present = this.presentRows(handle, first, memory.u32.subarray(out >>> 2, (out >>> 2) + count))
    if (present.length === 0) return
    if (present.length > comparedMax) throw byQuery
    memory.u32.set(present, out >>> 2)
    const read = new LazyMap<number, number>()
    const addressOf = (id: number): number => {
      const address = read.get(id) ?? this.gather(handle, page, id, present, out)
      read.set(id, address)
      return address
    }
    const stored = this.columnsAt(this.request.columnIds, addressOf)
    const columns = liveColumns(this.request.snapshot.version.schema)
    for (const [at, row] of present.entries()) {
      const key = this.found.findIndex((_, index) => sameRow(memory, stored, at, this.wanted, index))
      if (key < 0) continue
      const values = columns.map((column) => this.valueAt(column, addressOf(column.id), at))
      this.found[key]?.push({ runIndex, row: first + row, values })
    }
  }

  /** Those of the page's rows that upserts have not removed. */
  private presentRows({ descriptor }: PartHandle, first: number, rows: Uint32Array): number[] {
    const { version, transaction = 2 ** 32 } = this.request.snapshot
    const marks = marksOf(version, descriptor.id)
    const { u32 } = this.options.memory
    const isPresent = (row: number): boolean => {
      const mark = marks === 0 ? 0 : u32[(marks >>> 2) + first + row]!
      return mark === 0 || mark > transaction
    }
    return Array.from(rows).filter(isPresent)
  }

  /** Address of the column's values of these rows, which are at `index` as u32; 0 if the part lacks the column. */
  private gather(handle: PartHandle, page: number, id: number, rows: readonly number[], index: number): number {
    const { memory, partAccess } = this.options
    const type = this.request.snapshot.version.schema.columns[id]?.type
    if (type === undefined) return 0
    const width = widthOf(type)
    const packed = partAccess.pinPacked(handle, id, page)
    if (packed !== 0) {
      this.pinned.push(packed)
      const target = this.arena.take(rows.length * width)
      partAccess.pick(packed, index, 0, rows.length, target)
      return target
    }
    const values = partAccess.pin(handle, id, page)
    if (values === 0) return 0
    this.pinned.push(values)
    const target = this.arena.take(rows.length * width)
    for (const [at, row] of rows.entries())
      memory.u8.copyWithin(target + at * width, values + row * width, values + (row + 1) * width)
    return target
  }

  private valueAt({ id, type }: ReturnType<typeof liveColumns>[number], address: number, row: number): Value {
    if (address === 0) return nullOf(type)
    const dictionary = dictionariesOf(this.request.snapshot.version).get(id) ?? 0
    const value = valueReader(this.options.memory, this.strings, { type, address, dictionary })(row)
    if (typeof value === 'string' && value.includes(replacementCharacter)) throw byQuery
    return value
  }

  /** Writes the values of a column of the keys; returns their address. */
  private writtenKeys(id: number, place: number): number {
    const { memory } = this.options
    const { keys, snapshot } = this.request
    const type = snapshot.version.schema.columns[id]?.type
    if (type === undefined) throw byQuery
    const address = this.arena.take(widthOf(type) * keys.length)
    fillNull(memory, type, address, 0, keys.length)
    const target = { memory, heap: this.heap, symbols: new Symbols(this.arena) }
    for (const [row, key] of keys.entries()) writeValue(target, type, address, row, key[place] ?? null)
    return address
  }

  private columnsAt(ids: readonly number[], addressOf: (id: number) => number): KeyColumn[] {
    return keyColumnsAt(this.options.memory, this.request.snapshot.version.schema, ids, this.nulls, addressOf)
  }
}
