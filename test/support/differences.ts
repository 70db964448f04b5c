// Compares long lists and reports their first difference, because expect().toEqual() takes seconds for several hundred
// thousand values.

import { isDeepStrictEqual } from 'node:util'

/** The first place where two lists differ, with both values; null when they are the same. */
export function firstDifference(actual: readonly unknown[], expected: readonly unknown[]): string | null {
  const length = Math.max(actual.length, expected.length)
  for (let index = 0; index < length; index++) {
    const [one, other] = [actual[index], expected[index]]
    if (one !== other && !isDeepStrictEqual(one, other)) {
      return `${index} of ${actual.length} and ${expected.length}: ${String(one)} instead of ${String(other)}`
    }
  }
  return null
}
