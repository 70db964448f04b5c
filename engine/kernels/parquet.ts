// The Parquet codec: what the kernels do with pages of columns in the shared memory. Implemented in WebAssembly
// (as/parquet.ts) and in plain TypeScript (test/reference/parquet.ts); framing and files are engine/storage's business.
//
// Arguments are addresses, counts and bytes. Every buffer is readable and every target writable for 64 bytes behind its
// end. Functions that decode answer -1 when the bytes are not what an encoder writes, and never touch memory outside
// their buffers then.
//
// DICTIONARY STATE (64 bytes), set up by the caller, count and bytes changed by dictionaryAdd*:
//
//     0  slots u32      address of the hash slots (u32: index + 1, 0 = free), zeroed by the caller
//     4  slotMask u32   slots - 1; twice as many slots as countMax at least
//     8  values u32     address of the distinct values in order of first use
//    12  count u32
//    16  countMax u32
//    20  width u32      bytes of a value: 4, 8, 16, 32; 0 = text
//    24  bytes u32      text: used bytes of values
//    28  bytesMax u32   text: room of values
//    32  offsets u32    text: address of u32[countMax], where each text begins within values
//
//   Texts lie as Parquet's PLAIN encoding has them: length u32, bytes.

/** What NULL looks like in memory, by storage. Numbers are known to the kernels. */
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
  /** Every 64-bit word the minimum integer. */
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
  /** One bit per value, least significant first, 1 = present; answers how many are. */
  presence(values: number, count: number, kind: number, bits: number): number
  /** Copies the present values, packed; in place allowed. */
  compact(values: number, count: number, width: number, bits: number, target: number): void
  /** The inverse: `present` packed values to `count`, NULL in between; 0, or -1 when the bits name another number. */
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
  /** Small integers (widenKinds) to i32. */
  widen(values: number, count: number, kind: number, target: number): void
  /** i32 to its low 1 or 2 bytes. */
  narrow(values: number, count: number, width: number, target: number): void
  packBooleans(values: number, count: number, target: number): void
  unpackBooleans(bits: number, count: number, target: number): void
  /** u32 indexes below 2^width as Parquet's RLE and bit packing hybrid, without a length; answers bytes. */
  packIndexes(values: number, count: number, width: number, target: number): number
  /** The inverse, with each index replaced by its dictionary value of 1, 4, 8, 16 or 32 bytes; 0 or -1. */
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
  /** What decodeIndexed gives for the rows first + index[i] only (u32, `picked` of them, ascending); 0 or -1. */
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
  /** DELTA_BINARY_PACKED in blocks of 128; answers bytes, at most 5 or 9 a value and 32. */
  deltaEncode32(values: number, count: number, target: number): number
  deltaEncode64(values: number, count: number, target: number): number
  /** Answers the bytes that it read, or -1. */
  deltaDecode32(source: number, bytes: number, count: number, target: number): number
  deltaDecode64(source: number, bytes: number, count: number, target: number): number
  /** BYTE_STREAM_SPLIT of 4 or 8 bytes. */
  splitBytes(values: number, count: number, width: number, target: number): void
  joinBytes(source: number, count: number, width: number, target: number): void
  /** Each value of 16 or 32 bytes with its bytes in reverse order; in place allowed. */
  reverseBytes(values: number, count: number, width: number, target: number): void
  /** Lengths of entries as i32; answers their sum. */
  textLengths(entries: number, count: number, target: number): number
  /** The texts of the entries, one behind the other. */
  textBytes(entries: number, count: number, target: number): void
  /** The same as PLAIN has them, each behind its length; answers their bytes. */
  plainTexts(entries: number, count: number, target: number): number
  /** Entries over texts that lie one behind the other from `base`; 0, or -1 when the lengths do not add up to `bytes`. */
  textEntries(lengths: number, count: number, base: number, bytes: number, target: number): number
  /** Entries over PLAIN texts; 0 or -1. */
  plainTextEntries(source: number, bytes: number, count: number, target: number): number
  /** Least value to `target`, greatest to `target + 8`. At least one value, no NaN. */
  range(values: number, count: number, kind: number, target: number): void
  /** Sum to `target`: an f64 of f32 and f64, else an i64 (of i64 and i32, wraps). */
  sum(values: number, count: number, kind: number, target: number): void
  /**
   * Value of each position: bases[position >>> shift] is its block's column (0: NULL, or zero for kind none), the rest
   * of the position the index in it.
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
  /** Index of each value; new values are added. Answers how many values were taken before the dictionary was full. */
  dictionaryAdd(state: number, values: number, count: number, indexes: number): number
  dictionaryAddText(state: number, entries: number, count: number, indexes: number): number
  /** Fills a zeroed slot table that the caller has put in place of a smaller one. */
  dictionaryRehash(state: number): void
  /** LZ4 block; answers bytes, or 0 when they may exceed `limit`. `table`: lz4TableBytes of scratch. */
  lz4Compress(source: number, bytes: number, target: number, limit: number, table: number): number
  /** Raw Snappy block; answers bytes, at most bytes + bytes / 6 + 32. `table`: lz4TableBytes of scratch. */
  snappyCompress(source: number, bytes: number, target: number, table: number): number
  /** XXH64 (seed 0) of PLAIN values of so many bytes; width 0: texts behind their lengths. Writes a u64 each. */
  hashPlain(values: number, count: number, width: number, target: number): void
  /** Answers `targetBytes`, or -1. */
  lz4Decompress(source: number, bytes: number, target: number, targetBytes: number): number
}
