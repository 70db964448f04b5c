// Interface of the kernel that decodes pages of Parquet files written by other programs. Implemented in WebAssembly
// (as/foreign.ts), with a reference implementation in TypeScript (test/reference/foreign.ts). engine/parquet reads the
// files.
//
// Arguments are addresses, counts and byte sizes. Every buffer is readable and every target writable for 64 bytes after
// its end. The input is untrusted: decoding functions return -1 for invalid input, and never access memory outside of
// their buffers.

export interface ForeignKernel {
  /**
   * Decodes the hybrid of RLE and bit packing: `count` numbers of `bits` bits (0 to 32), none above `limit`, as u32.
   * Returns the bytes read, or -1.
   */
  hybrid(source: number, bytes: number, count: number, bits: number, limit: number, target: number): number
  /** The same for the deprecated BIT_PACKED encoding of levels: most significant bit first, no runs. */
  packedLevels(source: number, bytes: number, count: number, bits: number, limit: number, target: number): number
  /** Writes one bit per level (u32), least significant first, 1 = it equals `level`; returns the number of ones. */
  levelBits(levels: number, count: number, level: number, bits: number): number
  /** Copies the dictionary's value of 1, 2, 4, 8, 16 or 32 bytes for each index (u32). All indexes must be valid. */
  gather(indexes: number, count: number, dictionary: number, width: number, target: number): void
  /** Decodes DELTA_BINARY_PACKED with any block sizes to integers of 4 or 8 bytes; returns the bytes read, or -1. */
  deltas(source: number, bytes: number, count: number, width: number, target: number): number
  /** Writes entries for values of a fixed width. */
  fixedEntries(source: number, count: number, width: number, target: number): void
  /**
   * DELTA_BYTE_ARRAY: total size of the strings, from the lengths (i32) of prefixes and suffixes (`bytes` in all); or
   * -1.
   */
  joinedTextBytes(prefixes: number, suffixes: number, count: number, bytes: number): number
  /** Writes the strings to `room` and their entries to `target`; joinedTextBytes() must have accepted the lengths. */
  joinStrings(prefixes: number, suffixes: number, count: number, source: number, room: number, target: number): void
  /** Index of the first entry that is not valid UTF-8; `count` if all are. */
  firstNoText(entries: number, count: number): number
  /** Decodes BYTE_STREAM_SPLIT of any width. */
  joinStreams(source: number, count: number, width: number, target: number): void
  /**
   * Converts big-endian integers of a fixed width, or of any width given by entries, to little-endian ones of `width`
   * (8, 16, 32) bytes; returns the index of the first that does not fit, or `count`.
   */
  integersOfFixed(source: number, count: number, bytes: number, width: number, target: number): number
  integersOfStrings(entries: number, count: number, width: number, target: number): number
  /** Widens integers of 4 or 8 bytes to 8, 16 or 32. */
  widenIntegers(source: number, count: number, bytes: number, width: number, target: number): void
  /** Converts u32 to i64. */
  widenUnsigned(source: number, count: number, target: number): void
  /** Index of the first negative i64; `count` if there is none. */
  firstNegative(source: number, count: number): number
  /** Multiplies integers of 4 or 8 bytes by a factor, to i64; returns the index of the first overflow, or `count`. */
  multiply(source: number, count: number, bytes: number, factor: number, target: number): number
  /**
   * Converts INT96 (nanoseconds of the day, Julian day) to nanoseconds since 1970; returns the first overflow, or
   * `count`.
   */
  nanosOfInt96(source: number, count: number, target: number): number
  /** Converts f16 to f32. */
  floatsOfHalves(source: number, count: number, target: number): void
  /** Decompresses a raw Snappy block; returns `targetBytes`, or -1. */
  snappyDecompress(source: number, bytes: number, target: number, targetBytes: number): number
}
