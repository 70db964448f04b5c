// Indexes of keys, one per page of a part (Parquet file): for each hash of a declared key's values (PRIMARY KEY,
// UNIQUE), the rows that have it. A search for few keys skips pages without any of them and reads single rows of the
// other pages, so its cost does not depend on the order in which keys were stored. Columns of numbers without a
// declared key are indexed in the same way when they are searched often for values that few rows have.
//
// The index of a page is built when such a search reads the page's key columns for the second time, and is kept in the
// chunk cache (the cache of decoded pages). Parts are immutable, so an index stays correct; after an eviction it is
// built again. For columns without a declared key, this takes more searches, and twice as many after each eviction,
// since the cache may be too small for the table; pages take turns, so that no single search builds all indexes; and no
// index is built for a search whose values many rows of the page have, because it would list too many rows.
//
// Chunk: {buckets u32, columns u32, ids u32[columns], padded to 64 bytes}, starts u32[buckets + 2], entries u32[rows].
// The entries of a bucket are those from starts[bucket] to before starts[bucket + 1], in the order of rows; an entry is
// a tag in the upper half and the row's number in the lower half. Bucket and tag are bits of the hash, so the caller
// must still compare the keys of a row that is found. The place in the cache is a hash of the key's column ids; of two
// keys with the same hash only one has an index.
//
// The class also looks into the Bloom filters of parts, which columns with PARQUET(.. BLOOM_FILTER) have.

import { crc32 } from 'node:zlib'
import { assert } from '../../base/assert.js'
import { CorruptionError, ResourceError } from '../../base/errors.js'
import { pageRowsMax } from '../../base/limits.js'
import type { SharedMemory } from '../../memory/shared-memory.js'
import { bloomPage, keyPages, type PageCache } from '../cache/chunk-cache.js'
import { type ChunkKey, chunkKey } from '../cache/chunk-key.js'
import { hashRow, type KeyColumn } from '../memtable/key-columns.js'
import { mayContain } from './bloom-filter.js'
import type { KeysOfPage, PartHandle, WantedKeys } from './part-access.js'
import type { PartFiles } from './part-files.js'
import { OpenedPart } from './part-opened.js'

/** Words before the column ids. */
const headerWords = 2
/** The index is kept at this request for the page: making it for a single search does not pay. */
const keptAt = 2
/** The indexes of a part's pages without a declared key are made in the course of so many searches. */
const turns = 8
/** If more of a page's rows have the values, it is faster to filter all of them. */
const listedMin = 1024
const listedShare = 16
/** A bucket has about four entries; the others in it belong to other keys. */
const othersPerKey = 8
const rowBits = 16

/** What the searches by one key have met in a part, by page. */
interface Searches {
  /** How often the index was missing since it was made or refused last, up to a limit. */
  readonly missed: Uint8Array
  /** How often the index was made or refused. */
  readonly tried: Uint8Array
  /** 1: the values of the search for which it was tried last were frequent. */
  readonly frequent: Uint8Array
}

/** Indexes of a thread's parts. */
export class PageKeys {
  private readonly memory: SharedMemory
  private readonly cache: PageCache
  /** By the hash of the column ids. */
  private readonly searches = new WeakMap<PartHandle, Map<number, Searches>>()
  private readonly withFile: PartFiles['with']
  private hashes = new Int32Array(0)

  constructor(memory: SharedMemory, cache: PageCache, withFile: PartFiles['with']) {
    this.memory = memory
    this.cache = cache
    this.withFile = withFile
  }

  of(part: PartHandle, page: number): KeysOfPage {
    return {
      mayContain: (columnId, hashes) => this.mayContain(part, columnId, hashes),
      mayHave: (wanted) => this.mayHave(part, wanted, page),
      select: (wanted, from, rows, out) => this.select(part, wanted, page, from, rows, out),
      keep: (wanted, columnsOf) => this.keep(part, wanted, page, columnsOf),
    }
  }

  /** The filter is kept in the chunk cache. */
  private mayContain(part: PartHandle, columnId: number, hashes: readonly bigint[]): boolean {
    if (!(part instanceof OpenedPart)) return true
    const bloom = part.index.columns.get(columnId)?.bloom
    if (bloom === undefined) return true
    assert(bloom.bytes > 0, 'F2: a Bloom filter has a block')
    const load = (room: (bytes: number) => number): { needs: number; cost: 'read' } => {
      this.withFile(part.path, (file) => {
        const target = room(bloom.bytes)
        const words = this.memory.u8.subarray(target, target + bloom.bytes)
        if (file.read(words, bloom.offset) < bloom.bytes || crc32(words) !== bloom.crc)
          throw new CorruptionError('the checksum of a Bloom filter is wrong', part.path, bloom.offset)
      })
      return { needs: 0, cost: 'read' }
    }
    try {
      const data = this.cache.pin(chunkKey(part.descriptor.id, columnId, bloomPage), { load })
      const found = hashes.some((hash) => mayContain(this.memory.u32, data >>> 2, bloom.bytes, hash))
      this.cache.unpin(data)
      return found
    } catch (thrown) {
      // The cache is full of pinned pages.
      if (thrown instanceof ResourceError) return true
      throw thrown
    }
  }

  private mayHave(part: PartHandle, wanted: WantedKeys, page: number): boolean {
    const data = this.pin(part, wanted, page)
    if (data === 0) return true
    const found = this.hasTag(data, wanted)
    this.cache.unpin(data)
    return found
  }

  private select(part: PartHandle, wanted: WantedKeys, page: number, from: number, rows: number, out: number): number {
    const data = this.pin(part, wanted, page)
    if (data === 0) return -1
    const most = listedMost(rowsOf(part, page)) + wanted.hashes.length * othersPerKey
    const found = this.listed(data, wanted, most) <= most ? this.rowsIn(data, wanted, from, from + rows) : null
    this.cache.unpin(data)
    if (found === null) return -1
    const distinct = [...new Set(found)].sort((left, right) => left - right)
    this.memory.u32.set(distinct, out >>> 2)
    return distinct.length
  }

  private keep(part: PartHandle, wanted: WantedKeys, page: number, columnsOf: () => readonly KeyColumn[]): boolean {
    const { columnIds } = wanted
    const key = keyOf(part, columnIds, page)
    // It has listed too many rows.
    if (this.cache.has(key)) return false
    const searches = this.searchesOf(part, columnIds)
    if (!isDue(searches, wanted, page)) return searches.frequent[page] === 0
    const rows = rowsOf(part, page)
    const load = (room: (bytes: number) => number): { needs: number; cost: 'decompress' } => {
      this.fill(room, columnIds, rows)
      return { needs: 0, cost: 'decompress' }
    }
    try {
      this.hash(columnsOf(), rows)
      const isFrequent = wanted.searches !== undefined && this.areFrequent(wanted.hashes, rows)
      searches.frequent[page] = isFrequent ? 1 : 0
      if (isFrequent) return false
      this.cache.unpin(this.cache.pin(key, { load }))
    } catch (thrown) {
      // The cache is full of pinned pages.
      if (!(thrown instanceof ResourceError)) throw thrown
    }
    return true
  }

  private searchesOf(part: PartHandle, columnIds: readonly number[]): Searches {
    const ofPart = this.searches.get(part) ?? new Map<number, Searches>()
    this.searches.set(part, ofPart)
    const counts = (): Uint8Array => new Uint8Array(part.pageCount)
    const searches = ofPart.get(columnsHash(columnIds)) ?? { missed: counts(), tried: counts(), frequent: counts() }
    ofPart.set(columnsHash(columnIds), searches)
    return searches
  }

  /** Address of the pinned index, or 0. */
  private pin(part: PartHandle, { columnIds }: WantedKeys, page: number): number {
    const data = this.cache.pinReady(keyOf(part, columnIds, page))
    if (data === 0 || this.isOf(data, columnIds)) return data
    this.cache.unpin(data)
    return 0
  }

  private isOf(data: number, columnIds: readonly number[]): boolean {
    const { u32 } = this.memory
    const header = data >>> 2
    return u32[header + 1] === columnIds.length && columnIds.every((id, at) => u32[header + headerWords + at] === id)
  }

  private hasTag(data: number, { hashes, columnIds }: WantedKeys): boolean {
    const { u32 } = this.memory
    const buckets = u32[data >>> 2]!
    const starts = startsOf(data, columnIds.length)
    const entries = starts + buckets + 2
    for (let at = 0; at < hashes.length; at++) {
      const hash = hashes[at]!
      const bucket = starts + bucketOf(hash, buckets)
      const end = entries + u32[bucket + 1]!
      for (let next = entries + u32[bucket]!; next < end; next++)
        if (u32[next]! >>> rowBits === (hash & 0xffff)) return true
    }
    return false
  }

  /** How many entries the buckets of the hashes have; it stops counting after `most`. */
  private listed(data: number, { hashes, columnIds }: WantedKeys, most: number): number {
    const { u32 } = this.memory
    const buckets = u32[data >>> 2]!
    const starts = startsOf(data, columnIds.length)
    let count = 0
    for (let at = 0; at < hashes.length && count <= most; at++) {
      const bucket = starts + bucketOf(hashes[at]!, buckets)
      count += u32[bucket + 1]! - u32[bucket]!
    }
    return count
  }

  /** The rows of [from, to) that may have one of the hashes, relative to `from`. */
  private rowsIn(data: number, { hashes, columnIds }: WantedKeys, from: number, to: number): number[] {
    const { u32 } = this.memory
    const buckets = u32[data >>> 2]!
    const starts = startsOf(data, columnIds.length)
    const entries = starts + buckets + 2
    const found: number[] = []
    for (let at = 0; at < hashes.length; at++) {
      const hash = hashes[at]!
      const bucket = starts + bucketOf(hash, buckets)
      const end = entries + u32[bucket + 1]!
      for (let next = firstFrom(u32, entries + u32[bucket]!, end, from); next < end; next++) {
        const entry = u32[next]!
        if ((entry & 0xffff) >= to) break
        if (entry >>> rowBits === (hash & 0xffff)) found.push((entry & 0xffff) - from)
      }
    }
    return found
  }

  /** Computes the hashes of a page's rows. */
  private hash(columns: readonly KeyColumn[], rows: number): void {
    if (this.hashes.length < rows) this.hashes = new Int32Array(rows)
    for (let row = 0; row < rows; row++) this.hashes[row] = hashRow(this.memory, columns, row)
  }

  /** Whether too many of the hashed rows have one of the values. */
  private areFrequent(values: Int32Array, rows: number): boolean {
    const wanted = new Set(values)
    const most = listedMost(rows)
    let count = 0
    for (let row = 0; row < rows && count <= most; row++) if (wanted.has(this.hashes[row]!)) count++
    return count > most
  }

  /** Makes the index of the hashed rows. */
  private fill(room: (bytes: number) => number, columnIds: readonly number[], rows: number): void {
    assert(rows <= pageRowsMax, 'F2: the number of a row in its page has 16 bits')
    const { hashes } = this
    let buckets = 16
    while (buckets * 4 < rows) buckets *= 2
    const data = room(headerBytesOf(columnIds.length) + (buckets + 2 + rows) * 4)
    const { u32 } = this.memory
    u32[data >>> 2] = buckets
    u32[(data >>> 2) + 1] = columnIds.length
    u32.set(columnIds, (data >>> 2) + headerWords)
    const starts = startsOf(data, columnIds.length)
    const entries = starts + buckets + 2
    u32.fill(0, starts, entries)
    // starts[b + 2] counts bucket b; then starts[b + 1] is where its next entry goes.
    for (let row = 0; row < rows; row++) {
      const counted = starts + bucketOf(hashes[row]!, buckets) + 2
      u32[counted] = u32[counted]! + 1
    }
    for (let next = starts + 2; next < entries; next++) u32[next] = u32[next]! + u32[next - 1]!
    for (let row = 0; row < rows; row++) {
      const next = starts + bucketOf(hashes[row]!, buckets) + 1
      const place = u32[next]!
      u32[entries + place] = ((hashes[row]! & 0xffff) << rowBits) | row
      u32[next] = place + 1
    }
    assert(u32[starts + buckets] === rows, 'F2: every row of a page is in its index')
  }
}

/** Counts a search that has read the page; returns whether its index is to be made now. */
function isDue({ missed, tried }: Searches, { searches }: WantedKeys, page: number): boolean {
  missed[page] = Math.min(0xff, missed[page]! + 1)
  if (searches === undefined) return missed[page]! >= keptAt
  const before = (searches + (page % turns)) * 2 ** tried[page]!
  if (missed[page]! <= Math.min(before, 0xfe)) return false
  tried[page] = Math.min(0xff, tried[page]! + 1)
  missed[page] = 0
  return true
}

/** The first entry of [start, end) whose row is not before `from`. */
function firstFrom(u32: Uint32Array, start: number, end: number, from: number): number {
  let [low, high] = [start, end]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((u32[middle]! & 0xffff) < from) low = middle + 1
    else high = middle
  }
  return low
}

function rowsOf(part: PartHandle, page: number): number {
  assert(page < part.pageCount, 'F2: the page is one of its part')
  return part.firstRows[page + 1]! - part.firstRows[page]!
}

function listedMost(rows: number): number {
  return Math.max(listedMin, rows / listedShare)
}

function headerBytesOf(columns: number): number {
  return Math.ceil(((headerWords + columns) * 4) / 64) * 64
}

/** Index of the first start, in words. */
function startsOf(data: number, columns: number): number {
  return (data + headerBytesOf(columns)) >>> 2
}

/** `buckets` is a power of two, at most 2 ** 16. */
function bucketOf(hash: number, buckets: number): number {
  return (hash >>> 16) & (buckets - 1)
}

function keyOf({ descriptor }: PartHandle, columnIds: readonly number[], page: number): ChunkKey {
  return chunkKey(descriptor.id, columnsHash(columnIds), page + keyPages)
}

/** Not negative, as ids of columns are. */
function columnsHash(columnIds: readonly number[]): number {
  return columnIds.reduce((hash, id) => Math.imul(hash ^ (id + 1), 0x0100_0193), 0x811c_9dc5) >>> 1
}
