// The value of a sub-query that names the query around it: its rows are grouped, and a group of several is an error.

import { SqlError } from '../../base/errors.js'
import type { Value } from '../../types/value.js'
import { type AggregateFunction, accumulator, type CallSite } from './function-types.js'

export const severalRowsText = 'more than one row returned by a sub-query used as an expression'

interface Single {
  value: Value
  rows: number
}

function demandSingle({ rows }: Single, { position }: CallSite): void {
  if (rows > 1) throw new SqlError(severalRowsText, position)
}

export const singleRow: AggregateFunction = {
  name: 'single_row',
  takes: ['ANY'],
  gives: 'FIRST',
  says: 'The value of the only row; several rows are an error. What a sub-query for a value means.',
  example: null,
  accumulator: accumulator<Single>({
    init: () => ({ value: null, rows: 0 }),
    add: (state, [value = null], site) => {
      state.value = value
      state.rows++
      demandSingle(state, site)
    },
    merge: (state, other, site) => {
      if (other.rows > 0) state.value = other.value
      state.rows += other.rows
      demandSingle(state, site)
    },
    result: (state) => state.value,
  }),
}
