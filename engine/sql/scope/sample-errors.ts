// Makes the errors for select lists that SAMPLE BY does not permit: `*`, or no aggregate.

import { SqlError } from '../../base/errors.js'

export function wildcardInSamples(position: number): SqlError {
  return new SqlError('wildcard column select is not allowed in sample-by queries', position)
}

/** Reported at the position of the interval. */
export function noAggregateInSamples(position: number): SqlError {
  return new SqlError("at least one aggregation function must be present in 'select' clause", position)
}
