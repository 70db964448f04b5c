// Columns of values to text and back: the interface of the kernel.
//
// Text is an array of entries {address u32, bytes i32}, bytes -1 being NULL; 64 readable bytes follow every text.
// Values and their NULLs are those of engine/types/column-types.ts; kinds are encodeKinds (engine/kernels/encode.ts).
//
// Parsing decides the ordinary forms only. A row that it leaves open has status 1, and the caller decides it with
// engine/types; the value there is NULL meanwhile. The whole text must match:
//
//   f64 f32              [-]digits[.digits][e[+-]digits], at most 19 significant digits (f32: by way of double), not
//                        beyond the type's range and not so small that zero would be left
//   i8 i16 i32 i64       [-]digits within the type's range and not its NULL
//   millis micros nanos  yyyy-mm-dd, with Thh:mm:ss or a space for the T, with up to 3, 6, 9 decimals, with Z or an
//                        offset (+hh:mm, +hhmm, +hh); the day from 1970 to 2261. Whole numbers that count from 1970 in a
//                        unit that is named (epochScales) or, from 1e8 on, told by their size (types/file-time.ts), where
//                        no digit is lost
//   boolean              true and false, in any case; 1 and 0
//   uuid                 8-4-4-4-12 hexadecimal digits, not those of NULL
//   ipv4                 four numbers of 1 to 3 digits up to 255; 0.0.0.0 is left open

/** The unit of numbers in a column of times, 256 times this is added to the kind. */
export const epochScales = { auto: 0, s: 1, ms: 2, us: 3, ns: 4 } as const

export interface NumberKernel {
  /**
   * Writes the text of each value to `out` and its entry to `entries`, as long as room for the kind's longest text is
   * left; returns the rows done. Not for text, symbol, char, binary and array. NaN and infinite doubles are NULL.
   * parameter: GEOHASH bits, DECIMAL scale. scratch: 128 bytes, 8-byte aligned.
   */
  formatColumn(
    kind: number,
    values: number,
    parameter: number,
    rows: number,
    entries: number,
    out: number,
    outEnd: number,
    scratch: number,
  ): number
  /**
   * Writes values to `out` and 0 or 1 (left open) to status (u8 a row); returns how many are left open. kind: of times
   * with the scale of numbers, kind + 256 * epochScales.
   */
  parseColumn(kind: number, entries: number, rows: number, out: number, status: number, scratch: number): number
}
