// What kernels do with pages of Parquet files that other programs wrote. Implemented in WebAssembly (as/foreign.ts) and in
// plain TypeScript (test/reference/foreign.ts); framing and files are engine/parquet's business.
//
// Arguments are addresses, counts and bytes. Every buffer is readable and every target writable for 64 bytes behind its
// end. The bytes may be anything: functions that decode answer -1 for what is no such encoding, and never read or write
// outside of their buffers.

export interface ForeignKernel {
  /**
   * The hybrid of runs and bit packing: `count` numbers of `bits` bits (0 to 32), none above `limit`, as u32. Answers the
   * bytes that it read, or -1.
   */
  hybrid(source: number, bytes: number, count: number, bits: number, limit: number, target: number): number
  /** The same of the old BIT_PACKED encoding of levels: highest bit first, no runs. */
  packedLevels(source: number, bytes: number, count: number, bits: number, limit: number, target: number): number
  /** One bit per level (u32), least significant first, 1 = it is `level`; answers how many are. */
  levelBits(levels: number, count: number, level: number, bits: number): number
  /** The dictionary's value of 1, 2, 4, 8, 16 or 32 bytes at each index (u32), all of which exist. */
  gather(indexes: number, count: number, dictionary: number, width: number, target: number): void
  /** DELTA_BINARY_PACKED with any sizes of blocks, as integers of 4 or 8 bytes; answers the bytes read, or -1. */
  deltas(source: number, bytes: number, count: number, width: number, target: number): number
  /** Entries over values of a fixed width. */
  fixedEntries(source: number, count: number, width: number, target: number): void
  /** DELTA_BYTE_ARRAY: bytes of all texts, of lengths (i32) of prefixes and of suffixes, which take `bytes`; or -1. */
  joinedTextBytes(prefixes: number, suffixes: number, count: number, bytes: number): number
  /** Writes the texts to `room` and their entries to `target`; the lengths have been through joinedTextBytes(). */
  joinTexts(prefixes: number, suffixes: number, count: number, source: number, room: number, target: number): void
  /** Index of the first entry whose bytes are no UTF-8; `count` when all are. */
  firstNoText(entries: number, count: number): number
  /** BYTE_STREAM_SPLIT of any width. */
  joinStreams(source: number, count: number, width: number, target: number): void
  /**
   * Big-endian integers of a fixed width, or of any width behind entries, as little-endian ones of `width` (8, 16, 32)
   * bytes; answers the index of the first that has no room, or `count`.
   */
  integersOfFixed(source: number, count: number, bytes: number, width: number, target: number): number
  integersOfTexts(entries: number, count: number, width: number, target: number): number
  /** Integers of 4 or 8 bytes as ones of 8, 16 or 32. */
  widenIntegers(source: number, count: number, bytes: number, width: number, target: number): void
  /** u32 to i64. */
  widenUnsigned(source: number, count: number, target: number): void
  /** Index of the first negative i64; `count` when there is none. */
  firstNegative(source: number, count: number): number
  /** Integers of 4 or 8 bytes times a factor, as i64; answers the index of the first beyond 64 bits, or `count`. */
  multiply(source: number, count: number, bytes: number, factor: number, target: number): number
  /** INT96 (nanoseconds of the day, Julian day) as nanoseconds since 1970; answers the first beyond 64 bits, or `count`. */
  nanosOfInt96(source: number, count: number, target: number): number
  /** f16 to f32. */
  floatsOfHalves(source: number, count: number, target: number): void
  /** A raw Snappy block; answers `targetBytes`, or -1. */
  snappyDecompress(source: number, bytes: number, target: number, targetBytes: number): number
}
