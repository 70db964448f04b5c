// Compares the rows that a query has with and without the stored time buckets of materialized views. Numbers may differ
// by rounding errors.

import { expect } from 'vitest'

const numbers = /-?\d+(\.\d+)?(E-?\d+)?/g

/** The same rows, apart from rounding errors of variances and correlations. */
export function expectClose(found: readonly string[], expected: readonly string[], message: string): void {
  const rough = (rows: readonly string[]): string[] => rows.map((row) => row.replace(numbers, '#'))
  expect(rough(found), message).toEqual(rough(expected))
  for (const [index, row] of found.entries()) {
    const [own, other] = [row, expected[index] ?? ''].map((text) => text.match(numbers) ?? [])
    for (const [place, number] of (own ?? []).entries()) {
      const [x, y] = [Number(number), Number(other?.[place])]
      expect(Math.abs(x - y), `${message}: ${row} ${expected[index]}`).toBeLessThanOrEqual(
        1e-9 * Math.max(1, Math.abs(x)),
      )
    }
  }
}
