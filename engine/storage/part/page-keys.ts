// Indexes of keys, one per page of a part (Parquet file): for each hash of a declared key's values (PRIMARY KEY,
// UNIQUE), the rows that have it. A search for few keys skips pages without any of them and reads single rows of the
// other pages, so its cost does not depend on the order in which keys were stored. Columns of numbers without a
// declared key are indexed in the same way when they are searched often for values that few rows have.
//
// The index of a page is built when such a search reads the page's key columns for the second time, and is kept in the
// chunk cache (the cache of decoded pages). Parts are immutable, so an index stays correct; after an eviction it is
// built again. For columns without a declared key this takes more searches, and twice as many after each eviction,
// since the cache may be too small for the table. Pages take turns, so that no single search builds all indexes.
//
// Chunk: {columns u32, buckets u32, padded to 64 bytes}, starts u32[buckets + 2], entries u32[rows]. The entries of a
// bucket are those from starts[bucket] to before starts[bucket + 1]; an entry is a tag in the upper half and the row's
// number in the lower half. Bucket and tag are bits of the hash, so the caller must still compare the keys of a row
// that is found. `columns` is a hash of the key's column ids; keys that begin with the same column share one place in
// the cache, so only one of them has an index.
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

const headerBytes = 64
/** The index is kept at this request for the page: making it for a single search does not pay. */
const keptAt = 2
/** The indexes of a part's pages without a declared key are made in the course of so many searches. */
const turns = 8
/** With more rows it is faster to filter all of them. */
const listedMin = 1024
const listedShare = 16
const rowBits = 16

/** Indexes of a thread's parts. */
export class PageKeys {
  private readonly memory: SharedMemory
  private readonly cache: PageCache
  /** By page: how often its index was missing since it was made last, up to a limit. */
  private readonly missed = new WeakMap<PartHandle, Uint8Array>()
  /** By page: how often an index was made. */
  private readonly made = new WeakMap<PartHandle, Uint8Array>()
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
      keep: (wanted, columns) => this.keep(part, wanted, page, columns),
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
    const found = this.find(data, wanted.hashes, () => true)
    this.cache.unpin(data)
    return found
  }

  private select(part: PartHandle, wanted: WantedKeys, page: number, from: number, rows: number, out: number): number {
    const data = this.pin(part, wanted, page)
    if (data === 0) return -1
    const found: number[] = []
    const most = Math.max(listedMin, rows / listedShare)
    const areTooMany = this.find(data, wanted.hashes, (row) => {
      if (row >= from && row < from + rows) found.push(row - from)
      return found.length > most
    })
    this.cache.unpin(data)
    if (areTooMany) return -1
    const distinct = [...new Set(found)].sort((left, right) => left - right)
    this.memory.u32.set(distinct, out >>> 2)
    return distinct.length
  }

  private keep(part: PartHandle, wanted: WantedKeys, page: number, columns: readonly KeyColumn[]): void {
    const { columnIds } = wanted
    if (!this.isDue(part, wanted, page)) return
    const rows = part.firstRows[page + 1]! - part.firstRows[page]!
    const load = (room: (bytes: number) => number): { needs: number; cost: 'decompress' } => {
      this.fill(room, columnsHash(columnIds), rows, columns)
      return { needs: 0, cost: 'decompress' }
    }
    try {
      this.cache.unpin(this.cache.pin(keyOf(part, columnIds, page), { load }))
    } catch (thrown) {
      // The cache is full of pinned pages.
      if (!(thrown instanceof ResourceError)) throw thrown
    }
  }

  /** Counts a search that has read the page; returns whether its index is to be made now. */
  private isDue(part: PartHandle, { searches }: WantedKeys, page: number): boolean {
    const missed = this.missed.get(part) ?? new Uint8Array(part.pageCount)
    this.missed.set(part, missed)
    missed[page] = Math.min(0xff, missed[page]! + 1)
    if (searches === undefined) return missed[page]! >= keptAt
    const made = this.made.get(part) ?? new Uint8Array(part.pageCount)
    this.made.set(part, made)
    const before = (searches + (page % turns)) * 2 ** made[page]!
    if (missed[page]! <= Math.min(before, 0xfe)) return false
    made[page] = Math.min(0xff, made[page]! + 1)
    missed[page] = 0
    return true
  }

  /** Address of the pinned index, or 0. */
  private pin(part: PartHandle, { columnIds }: WantedKeys, page: number): number {
    const data = this.cache.pinReady(keyOf(part, columnIds, page))
    if (data === 0 || this.memory.u32[data >>> 2] === columnsHash(columnIds)) return data
    this.cache.unpin(data)
    return 0
  }

  /** Calls `use` with each row that may have one of the hashes, until it returns true; returns whether it has. */
  private find(data: number, hashes: Int32Array, use: (row: number) => boolean): boolean {
    const { u32 } = this.memory
    const buckets = u32[(data >>> 2) + 1]!
    const starts = (data + headerBytes) >>> 2
    const entries = starts + buckets + 2
    for (let at = 0; at < hashes.length; at++) {
      const hash = hashes[at]!
      const bucket = starts + bucketOf(hash, buckets)
      const end = entries + u32[bucket + 1]!
      for (let next = entries + u32[bucket]!; next < end; next++) {
        const entry = u32[next]!
        if (entry >>> rowBits === (hash & 0xffff) && use(entry & 0xffff)) return true
      }
    }
    return false
  }

  private fill(room: (bytes: number) => number, columnsId: number, rows: number, columns: readonly KeyColumn[]): void {
    assert(rows <= pageRowsMax, 'F2: the number of a row in its page has 16 bits')
    const { memory } = this
    if (this.hashes.length < rows) this.hashes = new Int32Array(rows)
    const { hashes } = this
    let buckets = 16
    while (buckets * 4 < rows) buckets *= 2
    const data = room(headerBytes + (buckets + 2 + rows) * 4)
    const { u32 } = memory
    u32[data >>> 2] = columnsId
    u32[(data >>> 2) + 1] = buckets
    const starts = (data + headerBytes) >>> 2
    const entries = starts + buckets + 2
    u32.fill(0, starts, entries)
    // starts[b + 2] counts bucket b; then starts[b + 1] is where its next entry goes.
    for (let row = 0; row < rows; row++) {
      const hash = hashRow(memory, columns, row)
      hashes[row] = hash
      const counted = starts + bucketOf(hash, buckets) + 2
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

/** `buckets` is a power of two, at most 2 ** 16. */
function bucketOf(hash: number, buckets: number): number {
  return (hash >>> 16) & (buckets - 1)
}

function keyOf({ descriptor }: PartHandle, columnIds: readonly number[], page: number): ChunkKey {
  return chunkKey(descriptor.id, columnIds[0] ?? 0, page + keyPages)
}

function columnsHash(columnIds: readonly number[]): number {
  return columnIds.reduce((hash, id) => Math.imul(hash ^ (id + 1), 0x0100_0193) >>> 0, 0x811c_9dc5)
}
