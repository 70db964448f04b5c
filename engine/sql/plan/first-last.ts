// Recognises the aggregates first(), last(), first_not_null() and last_not_null(), and tells from which end of a table
// each reads. Without GROUP BY they need only rows near that end, so exec/scan/first-last-rows.ts reads only these
// (first/last pushdown).

import type { AggregateCall } from './plan.js'

export interface FirstLast {
  /** Read from the last row backwards. */
  readonly descending: boolean
  /** The first row with a non-NULL value counts, rather than the first row. */
  readonly present: boolean
}

const kinds: Readonly<Record<string, FirstLast>> = {
  first: { descending: false, present: false },
  last: { descending: true, present: false },
  first_not_null: { descending: false, present: true },
  last_not_null: { descending: true, present: true },
}

/** How the aggregate is read; undefined for any other aggregate. */
export function firstLast({ name, args }: AggregateCall): FirstLast | undefined {
  return args.length === 1 ? kinds[name] : undefined
}
