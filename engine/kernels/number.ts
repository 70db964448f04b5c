// The WebAssembly kernel that formats columns of values as text and parses them: its TypeScript interface.
//
// Text is an array of entries {address u32, bytes i32}; bytes -1 is NULL. 64 readable bytes follow every text. Values
// and their NULLs are those of engine/types/column-types.ts; kinds are encodeKinds (engine/kernels/encode.ts).
//
// Parsing supports only the common forms. A row that it does not decide gets status 1 and the value NULL, and the
// caller parses it with engine/types. The whole text must match:
//
//   f64 f32              [-]digits[.digits][e[+-]digits], at most 19 significant digits (f32: by way of double), not
//                        beyond the type's range and not so small that zero would be left
//   i8 i16 i32 i64       [-]digits within the type's range and not its NULL
//   millis micros nanos  yyyy-mm-dd, with Thh:mm:ss or a space for the T, with up to 3, 6, 9 decimals, with Z or an
//                        offset (+hh:mm, +hhmm, +hh); the day from 1970 to 2261. Integers since 1970 in a given unit
//                        (epochScales), or from 1e8 on in the unit that their magnitude suggests (types/file-time.ts),
//                        if no digit is lost
//   boolean              true and false, in any case; 1 and 0
//   uuid                 8-4-4-4-12 hexadecimal digits, not those of NULL
//   ipv4                 four numbers of 1 to 3 digits up to 255; 0.0.0.0 is not decided

/** The unit of numbers in a timestamp column; 256 times this is added to the kind. */
export const epochScales = { auto: 0, s: 1, ms: 2, us: 3, ns: 4 } as const

export interface NumberKernel {
  /**
   * Writes the text of each value to `out` and its entry to `entries`, while there is room for the kind's longest text;
   * returns the number of rows. Not for string, symbol, char, binary and array. NaN and infinite doubles are NULL.
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
   * Writes values to `out` and 0 or 1 (not decided) to status (u8 a row); returns the number of rows that are not
   * decided. kind: of timestamps plus 256 * epochScales.
   */
  parseColumn(kind: number, entries: number, rows: number, out: number, status: number, scratch: number): number
}
