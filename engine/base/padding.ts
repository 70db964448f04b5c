// Checks the padding between records of a file for corruption. Padding is written as zeros, so any other byte means
// that the file has been damaged.

/** Position of the first byte from `first` to `end` that is not zero. */
export function nonZeroAt(bytes: Uint8Array, first: number, end: number): number | undefined {
  const index = bytes.subarray(first, end).findIndex((byte) => byte !== 0)
  return index < 0 ? undefined : first + index
}
