// Functions that enforce the rule that a scalar sub-query returns at most one row. They report an error if there are
// several. The binder turns a correlated sub-query into a join, in one of two ways:
//
// - The rows of the sub-query are grouped by outer row. single_row() returns the value of the only row of a group,
//   single_value() its only distinct value (for DISTINCT).
// - The rows of the sub-query are numbered for each outer row, as by row_number(). only_row() checks that the number
//   is 1.

import { SqlError } from '../../base/errors.js'
import { keyText } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import { type AggregateFunction, accumulator, type CallSite, type ScalarFunction } from './function-types.js'

export const severalRowsText = 'more than one row returned by a sub-query used as an expression'

interface Single {
  value: Value
  rows: number
}

/** `isSame`: whether two rows count as one. */
function singleOf(
  name: string,
  description: string,
  isSame: (left: Value, right: Value) => boolean,
): AggregateFunction {
  const take = (state: Single, value: Value, { position }: CallSite): void => {
    if (state.rows > 0 && !isSame(state.value, value)) throw new SqlError(severalRowsText, position)
    state.value = value
    state.rows++
  }
  return {
    name,
    takes: ['ANY'],
    gives: 'FIRST',
    description,
    example: null,
    accumulator: accumulator<Single>({
      init: () => ({ value: null, rows: 0 }),
      add: (state, [value = null], site) => take(state, value, site),
      merge: (state, other, site) => {
        if (other.rows > 0) take(state, other.value, site)
      },
      result: (state) => state.value,
    }),
  }
}

export const singleRows: readonly AggregateFunction[] = [
  singleOf(
    'single_row',
    'The value of the only row; several rows are an error. Implements scalar sub-queries.',
    () => false,
  ),
  singleOf(
    'single_value',
    'The only distinct value; several values are an error. Implements scalar sub-queries with DISTINCT.',
    (left, right) => keyText(left) === keyText(right),
  ),
]

/** For sub-queries whose rows are numbered per outer row. */
export const onlyRow: ScalarFunction = {
  name: 'only_row',
  takes: ['LONG'],
  gives: 'BOOLEAN',
  description: 'True for 1; a greater number is the error about a scalar sub-query with several rows.',
  example: ['only_row(1)', 'true'],
  eval: ([number]: readonly [bigint]) => {
    if (number > 1n) throw new SqlError(severalRowsText, 0)
    return true
  },
}
