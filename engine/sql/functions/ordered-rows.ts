// The SQL aggregate isOrdered(), which is true if the values never decrease from row to row.

import { compareValues } from '../../types/compare.js'
import type { Value } from '../../types/value.js'
import { type AggregateFunction, accumulator } from './function-types.js'

export const orderedRows: AggregateFunction = {
  name: 'isOrdered',
  takes: ['ANY'],
  gives: 'BOOLEAN',
  description: 'Whether the values never decrease from row to row.',
  example: ['isOrdered(x)', 'true'],
  ordered: true,
  accumulator: accumulator<{ ordered: boolean; first: Value; last: Value; seen: boolean }>({
    init: () => ({ ordered: true, first: null, last: null, seen: false }),
    add: (state, [value = null]) => {
      if (state.seen && compareValues(value, state.last) < 0) state.ordered = false
      if (!state.seen) state.first = value
      state.last = value
      state.seen = true
    },
    merge: (state, other) => {
      if (!other.seen) return
      state.ordered &&= other.ordered && (!state.seen || compareValues(other.first, state.last) >= 0)
      if (!state.seen) state.first = other.first
      state.last = other.last
      state.seen = true
    },
    result: (state) => state.ordered,
  }),
}
