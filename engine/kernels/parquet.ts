// The Parquet kernel, which encodes and decodes pages of parts (the Parquet files of tables) in shared memory: its
// TypeScript interface. Implemented in WebAssembly (as/parquet.ts), with a reference implementation in TypeScript
// (test/reference/parquet.ts). engine/storage/part does framing and files.
//
// Arguments are addresses, counts and byte sizes. Every buffer is readable and every target writable for 64 bytes after
// its end. Decoding functions return -1 if the input is invalid, and never access memory outside of their buffers.
//
// DICTIONARY STATE (64 bytes), set by the caller; dictionaryAdd* changes count and bytes:
//
//     0  slots u32      address of the hash slots (u32: index + 1, 0 = free), zeroed by the caller
//     4  slotMask u32   slots - 1; there are at least twice as many slots as countMax
//     8  values u32     address of the distinct values in order of first use
//    12  count u32
//    16  countMax u32
//    20  width u32      bytes of a value: 4, 8, 16, 32; 0 = strings
//    24  bytes u32      strings: used bytes of values
//    28  bytesMax u32   strings: capacity of values
//    32  offsets u32    strings: address of u32[countMax], the offset of each string within values
//
//   Strings are stored as in Parquet's PLAIN encoding: length u32, bytes.

/** Representations of NULL in memory, by storage type. The kernels use the same numbers. */
export const nullKinds = {
  none: 0,
  i8: 1,
  i16: 2,
  i32: 3,
  i64: 4,
  i32Minimum: 5,
  i64Minimum: 6,
  i32Zero: 7,
  f32: 8,
  f64: 9,
  /** Every 64-bit word is the minimum integer. */
  words16: 10,
  words32: 11,
  /** The minimum integer of the width. */
  decimal16: 12,
  decimal32: 13,
  entry: 14,
} as const

export const widenKinds = { i8: 0, i16: 1, u16: 2 } as const
export const rangeKinds = { i32: 0, u32: 1, i64: 2, f32: 3, f64: 4 } as const

export const dictionaryStateBytes = 64
export const lz4TableBytes = 65_536

export interface ParquetKernel {
  /** Writes one bit per value, least significant first, 1 = not NULL; returns the number of ones. */
  presence(values: number, count: number, kind: number, bits: number): number
  /** Copies the non-null values contiguously; may be in place. */
  compact(values: number, count: number, width: number, bits: number, target: number): void
  /**
   * The inverse: spreads `present` values to `count`, with NULL in between; 0, or -1 if the bits have another count.
   */
  expand(
    values: number,
    present: number,
    count: number,
    width: number,
    bits: number,
    kind: number,
    target: number,
  ): number
  fillNull(count: number, width: number, kind: number, target: number): void
  /** Widens small integers (widenKinds) to i32. */
  widen(values: number, count: number, kind: number, target: number): void
  /** Truncates i32 to the low 1 or 2 bytes. */
  narrow(values: number, count: number, width: number, target: number): void
  packBooleans(values: number, count: number, target: number): void
  unpackBooleans(bits: number, count: number, target: number): void
  /**
   * Encodes u32 indexes below 2^width in Parquet's hybrid of RLE and bit packing, without a length; returns the bytes.
   */
  packIndexes(values: number, count: number, width: number, target: number): number
  /** The inverse, replacing each index by its dictionary value of 1, 4, 8, 16 or 32 bytes; 0 or -1. */
  decodeIndexed(
    source: number,
    bytes: number,
    count: number,
    bits: number,
    dictionary: number,
    entries: number,
    width: number,
    target: number,
  ): number
  /** Like decodeIndexed, for the rows first + index[i] only (u32, `picked` of them, ascending); 0 or -1. */
  pickIndexed(
    source: number,
    bytes: number,
    count: number,
    bits: number,
    dictionary: number,
    entries: number,
    width: number,
    index: number,
    first: number,
    picked: number,
    target: number,
  ): number
  /** DELTA_BINARY_PACKED in blocks of 128; returns the bytes, at most 5 or 9 a value plus 32. */
  deltaEncode32(values: number, count: number, target: number): number
  deltaEncode64(values: number, count: number, target: number): number
  /** Returns the bytes read, or -1. */
  deltaDecode32(source: number, bytes: number, count: number, target: number): number
  deltaDecode64(source: number, bytes: number, count: number, target: number): number
  /** BYTE_STREAM_SPLIT of 4 or 8 bytes. */
  splitBytes(values: number, count: number, width: number, target: number): void
  joinBytes(source: number, count: number, width: number, target: number): void
  /** Reverses the bytes of each value of 16 or 32 bytes; may be in place. */
  reverseBytes(values: number, count: number, width: number, target: number): void
  /** Writes the lengths of entries as i32; returns their sum. */
  textLengths(entries: number, count: number, target: number): number
  /** Concatenates the strings of the entries. */
  textBytes(entries: number, count: number, target: number): void
  /** Writes the strings in PLAIN form, each preceded by its length; returns the bytes. */
  plainStrings(entries: number, count: number, target: number): number
  /**
   * Writes entries for strings that are concatenated from `base` on; 0, or -1 if the lengths do not add up to `bytes`.
   */
  textEntries(lengths: number, count: number, base: number, bytes: number, target: number): number
  /** Writes entries for PLAIN strings; 0 or -1. */
  plainTextEntries(source: number, bytes: number, count: number, target: number): number
  /** Writes the minimum to `target` and the maximum to `target + 8`. Needs at least one value and no NaN. */
  range(values: number, count: number, kind: number, target: number): void
  /** Writes the sum to `target`: an f64 for f32 and f64, else an i64 (which wraps). */
  sum(values: number, count: number, kind: number, target: number): void
  /**
   * Gathers values by position: bases[position >>> shift] is the address of the block's column (0: NULL, or zero for
   * kind none), the low bits are the index in it.
   */
  gatherBlocks(
    positions: number,
    count: number,
    shift: number,
    bases: number,
    width: number,
    kind: number,
    target: number,
  ): void
  /**
   * Writes the index of each value; adds new values. Returns how many values were processed before the dictionary was
   * full.
   */
  dictionaryAdd(state: number, values: number, count: number, indexes: number): number
  dictionaryAddText(state: number, entries: number, count: number, indexes: number): number
  /** Fills a zeroed slot table that the caller has allocated to replace a smaller one. */
  dictionaryRehash(state: number): void
  /** LZ4 block; returns the bytes, or 0 if they may exceed `limit`. `table`: lz4TableBytes of scratch. */
  lz4Compress(source: number, bytes: number, target: number, limit: number, table: number): number
  /** Raw Snappy block; returns the bytes, at most bytes + bytes / 6 + 32. `table`: lz4TableBytes of scratch. */
  snappyCompress(source: number, bytes: number, target: number, table: number): number
  /**
   * XXH64 (seed 0) of PLAIN values of that many bytes; width 0: strings preceded by their lengths. Writes a u64 each.
   */
  hashPlain(values: number, count: number, width: number, target: number): void
  /** Returns `targetBytes`, or -1. */
  lz4Decompress(source: number, bytes: number, target: number, targetBytes: number): number
}
