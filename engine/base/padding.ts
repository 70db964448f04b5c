// Bytes between records of a file that nobody reads. They are written as zeros: where they are something else, the disk
// has changed them, which is worth a report.

/** Position of the first byte from `first` to `end` that is not zero. */
export function nonZeroAt(bytes: Uint8Array, first: number, end: number): number | undefined {
  const index = bytes.subarray(first, end).findIndex((byte) => byte !== 0)
  return index < 0 ? undefined : first + index
}
