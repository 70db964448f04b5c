// Aggregates that one row at an end of a table decides: walks from both ends find them (exec/scan/end-rows.ts), where there are no keys.

import type { AggregateCall } from './plan.js'

export interface EndValue {
  /** From the last row on. */
  readonly descending: boolean
  /** Of the first row that has a value, not just of the first one. */
  readonly present: boolean
}

const kinds: Readonly<Record<string, EndValue>> = {
  first: { descending: false, present: false },
  last: { descending: true, present: false },
  first_not_null: { descending: false, present: true },
  last_not_null: { descending: true, present: true },
}

/** undefined: another aggregate. */
export function endValue({ name, args }: AggregateCall): EndValue | undefined {
  return args.length === 1 ? kinds[name] : undefined
}
