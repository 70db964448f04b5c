// The interface by which query threads read parts (the Parquet files of tables). It returns pages of columns, decoded
// into shared memory in the layout of types/column-types.ts: a reserved value for NULL, symbols as ids of the table's
// dictionary, strings as pairs of memory address and length. part-reader.ts implements it on top of the chunk cache
// (the cache of decoded pages); tests may use fakes.
//
// A page is the unit of caching and of work. The pages of all columns of a part cover the same rows.

import type { KeyColumn } from '../memtable/key-columns.js'
import type { PartDescriptor, TableVersion } from '../schema/schema.js'
import type { StoredPage } from './part-stored.js'

/** An open part. Immutable, and cached per thread. */
export interface PartHandle {
  readonly descriptor: PartDescriptor
  readonly rows: number
  readonly pageCount: number
  /** First row of each page, followed by the part's row count: pageCount + 1 entries. */
  readonly firstRows: Uint32Array
  /** Smallest and largest designated timestamp per page, in the table's unit; empty without a designated timestamp. */
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
}

/** Statistics of one page of one column, from the part index. */
export interface PageStatistics {
  readonly nulls: number
  /** Zone map. Integers and timestamps as bigint, FLOAT and DOUBLE as number; undefined if unknown or all null. */
  readonly bounds: { readonly min: bigint | number; readonly max: bigint | number } | undefined
  /** Integers as bigint, FLOAT and DOUBLE as number; undefined if unknown, all null, or too large for 64 bits. */
  readonly sum: bigint | number | undefined
}

/** A page of dictionary-encoded strings. */
export interface DictionaryPage {
  readonly data: number
  /** Address of a u32 per row: 0 is NULL, n is string n of the dictionary, counted from 1. */
  readonly codes: number
  /** Address of the entries {address u32, bytes i32} by code; the first one is NULL. */
  readonly entries: number
  /** Number of entries. */
  readonly count: number
}

/** The keys that a search looks for. */
export interface WantedKeys {
  readonly columnIds: readonly number[]
  /** Hashes of their values (memtable/key-columns.ts). */
  readonly hashes: Int32Array
  /** How many searches read all rows of a page before its index is made; default: one. */
  readonly searches?: number
}

/** The index of a page's keys, and the Bloom filters of its part. */
export interface KeysOfPage {
  /** False only if the column of the page's part has none of the values with these XXH64 hashes of their PLAIN form. */
  mayContain(columnId: number, hashes: readonly bigint[]): boolean
  /** False only if the page has none of the keys. Never waits. */
  mayHave(wanted: WantedKeys): boolean
  /**
   * Writes the rows (u32) of [from, from + rows) that may have one of the keys, ascending and relative to `from`.
   * Returns how many; -1 if the page has no index, or too many rows have one of the keys.
   */
  select(wanted: WantedKeys, from: number, rows: number, out: number): number
  /**
   * Offers the values of the page's rows, to make the index. False: no index of these columns helps this search,
   * because many rows of the page have one of the keys.
   */
  keep(wanted: WantedKeys, columnsOf: () => readonly KeyColumn[]): boolean
}

/** There is one per thread. Throws CorruptionError with file and offset if a file is damaged. */
export interface PartAccess {
  /** Reads the part's index at the first call. Columns are read with the types of `version.schema`. */
  open(part: PartDescriptor, version: TableVersion): PartHandle
  /**
   * Whether the page of these columns can be read now. If it is only in the object store and not cached on this disk,
   * it is requested, as are pages after it: call again later. Throws ResourceError if the store cannot be reached.
   */
  ready(part: PartHandle, columnIds: readonly number[], page: number): boolean
  /** The same for all pages of the part. */
  readyWhole(part: PartHandle): boolean
  /**
   * Address of the page's decoded values, 64-byte aligned, padded to 64 bytes plus 64 readable bytes. 0 if the part
   * does not have the column: then every value is null (BOOLEAN false, BYTE/SHORT/CHAR 0). Read only; valid until
   * unpin(). Throws ResourceError when the cache is full of pinned pages, and when the page is not on this disk.
   */
  pin(part: PartHandle, columnId: number, page: number): number
  /** Releases an address that pin() returned, 0 included. */
  unpin(address: number): void
  /**
   * For reading few rows: address of the page in its dictionary-encoded form, for pick(). Unpin it like a page. 0 if
   * the page is already decoded or has another encoding; use pin() then.
   */
  pinPacked(part: PartHandle, columnId: number, page: number): number
  /**
   * Copies the values of the rows first + index[i] (u32, `count` of them, ascending) to the target, in memory layout.
   */
  pick(packed: number, index: number, first: number, count: number, target: number): void
  /**
   * Looks up rows in the page's inverted index: writes the rows (u32) of [from, from + rows) that have one of the
   * symbol ids, ascending and relative to `from`, and returns their number. -1 if the page has no index: scan the rows
   * then.
   */
  symbolRows(
    part: PartHandle,
    columnId: number,
    page: number,
    ids: readonly number[],
    from: number,
    rows: number,
    out: number,
  ): number
  /**
   * A page of strings as codes of the column's dictionary in the part; undefined if it has none. Valid until unpin() of
   * `data`.
   */
  pinCodes(part: PartHandle, columnId: number, page: number): DictionaryPage | undefined
  /**
   * Decodes a dictionary-encoded page with few distinct four-byte values to the target, which has room for a page and
   * the bytes that pin() guarantees after it. The cache keeps only the encoded page, a fraction of its size. `width` 1:
   * only the lowest bytes of the values. Returns false and writes nothing otherwise; use pin() then.
   */
  unpack(part: PartHandle, columnId: number, page: number, target: number, width: 1 | 4): boolean
  /**
   * Decodes a page without caching it, to memory that `room` allocates, so that data that is read once does not evict
   * data that is read often. Returns false and writes nothing if the page is cached or refers to other chunks; use
   * pin() then.
   */
  decode(part: PartHandle, columnId: number, page: number, room: (bytes: number) => number): boolean
  /** Zone map of a column (symbols have only the null count); undefined if the part does not have the column. */
  statistics(part: PartHandle, columnId: number, page: number): PageStatistics | undefined
  /** Number of NULLs of a column in all pages; undefined if the part does not have the column. */
  nulls(part: PartHandle, columnId: number): number | undefined
  /** The index of the page's keys (page-keys.ts). */
  keys(part: PartHandle, page: number): KeysOfPage
  /** Whether the part's SYMBOL column may contain one of these ids of the table's dictionary. */
  mayHold(part: PartHandle, columnId: number, ids: readonly number[]): boolean
  /** A copy of the ids in the part's SYMBOL column, without NULL; undefined for columns that were not SYMBOL. */
  symbols(part: PartHandle, columnId: number): Int32Array | undefined
  /**
   * Address of the pinned list of the newest row of each symbol of a column (exec/scan/newest-in-part.ts); 0 if the
   * chunk cache does not have it.
   */
  pinNewest(part: PartHandle, columnId: number): number
  /** Keeps a copy of such a list in the chunk cache, unless it is too large for it. */
  keepNewest(part: PartHandle, columnId: number, list: number, bytes: number): void
  /** The page as stored in the file; undefined if the part lacks the column, or this access only reads memory. */
  stored(part: PartHandle, columnId: number, page: number): StoredPage | undefined
  /** Forgets handles of parts that no table version references any more. Their cached pages are evicted over time. */
  forget(partIds: readonly number[]): void
  /** Called when the thread is idle: closes files that are kept open between pages. */
  goIdle(): void
  close(): void
}
