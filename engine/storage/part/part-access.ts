// What query threads see of parts: pages of columns, decoded into shared memory in the memory layout of
// types/column-types.ts (sentinels for NULL, symbols as ids of the table's dictionary, text as entries with absolute
// addresses). Implemented by part-reader.ts over chunk-cache.ts; tests may fake it.
//
// A page is the unit of caching and of work. All columns of a part have their page boundaries at the same rows.

import type { PartDescriptor, TableVersion } from '../schema/schema.js'
import type { StoredPage } from './part-stored.js'

/** An opened part. Immutable; cached per thread. */
export interface PartHandle {
  readonly descriptor: PartDescriptor
  readonly rows: number
  readonly pageCount: number
  /** Row at which each page begins, and behind the last one the part's row count: pageCount + 1 entries. */
  readonly firstRows: Uint32Array
  /** Smallest and largest designated timestamp per page in the table's unit; empty without a designated timestamp. */
  readonly minTs: BigInt64Array
  readonly maxTs: BigInt64Array
}

/** What the page index says of one page of one column. */
export interface PageStatistics {
  readonly nulls: number
  /** Integers and timestamps as bigint, FLOAT and DOUBLE as number; undefined when unknown or all null. */
  readonly bounds: { readonly min: bigint | number; readonly max: bigint | number } | undefined
  /** Integers as bigint, FLOAT and DOUBLE as number; undefined when unknown, all null, or too large for 64 bits. */
  readonly sum: bigint | number | undefined
}

/** Texts of a page, each distinct one once. */
export interface CodedPage {
  readonly data: number
  /** Address of a u32 per row: 0 is NULL, n the n-th text of the dictionary. */
  readonly codes: number
  /** Address of the entries {address u32, bytes i32} by code, that of NULL first. */
  readonly entries: number
  /** Entries. */
  readonly count: number
}

/** One per thread. Throws CorruptionError with file and offset when what lies on disk is not what was written. */
export interface PartAccess {
  /** Reads the footer at the first call. Columns are read as `version.schema` types them. */
  open(part: PartDescriptor, version: TableVersion): PartHandle
  /**
   * Address of the page's decoded values, 64-byte aligned, padded to 64 bytes plus 64 readable bytes; 0 when the part
   * has no such column (every value null; BOOLEAN false, BYTE/SHORT/CHAR 0). Read only. Throws ResourceError when the
   * cache is full of pinned pages. Stays valid until unpin().
   */
  pin(part: PartHandle, columnId: number, page: number): number
  /** Takes what pin() answered, 0 included. */
  unpin(address: number): void
  /**
   * For few rows of a page: address of its values as they are packed in the file, for pick(); unpin it like a page. 0 when
   * the page is decoded already or can only be read as a whole: pin() it then.
   */
  pinPacked(part: PartHandle, columnId: number, page: number): number
  /** Values of the rows first + index[i] (u32, `count` of them, ascending), in memory layout. */
  pick(packed: number, index: number, first: number, count: number, target: number): void
  /**
   * Writes the rows (u32) of [from, from + rows) of a page of symbols that have one of the ids, ascending and counted from
   * `from`; returns how many. -1: they are not listed, and who wants them looks at all rows.
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
   * A page of texts as numbers of their column's dictionary in the part; undefined when it has none. Stays valid until
   * unpin() of `data`.
   */
  pinCodes(part: PartHandle, columnId: number, page: number): CodedPage | undefined
  /**
   * Decodes a page of few different values of four bytes to the target, which has room for a page and what pin() promises
   * behind it: packed it takes a fraction of the cache. `width` 1: their lowest bytes only. False, and nothing is written:
   * pin() it.
   */
  unpack(part: PartHandle, columnId: number, page: number, target: number, width: 1 | 4): boolean
  /**
   * Decodes a page past the cache, to the room that is asked for: what is read once as a whole need not drive out what is
   * read often. False, and nothing is written, when the cache has it or has to keep what it points into: pin() it.
   */
  decode(part: PartHandle, columnId: number, page: number, room: (bytes: number) => number): boolean
  /** The zone map of a column that has one (integers, timestamps, floating point, symbols by null count only). */
  statistics(part: PartHandle, columnId: number, page: number): PageStatistics | undefined
  /** NULLs of a column in all pages; undefined when it is not there. */
  nulls(part: PartHandle, columnId: number): number | undefined
  /** Whether the part's SYMBOL column may hold one of these ids of the table's dictionary. */
  mayHold(part: PartHandle, columnId: number, ids: readonly number[]): boolean
  /** A copy of the ids that the part's SYMBOL column holds, NULL apart; undefined of columns that were not SYMBOL. */
  symbols(part: PartHandle, columnId: number): Int32Array | undefined
  /** The page as it lies in the file; undefined when the part has no such column, or this access only reads memory. */
  stored(part: PartHandle, columnId: number, page: number): StoredPage | undefined
  /** Forgets the handles of parts that no version names any more. Their cached pages age out. */
  forget(partIds: readonly number[]): void
  /** Nobody reads for now: files that are kept open from page to page are closed. */
  rest(): void
  close(): void
}
