// What SAMPLE BY demands of a select list, as it is told of.

import { SqlError } from '../../base/errors.js'

export function wildcardInSamples(position: number): SqlError {
  return new SqlError('wildcard column select is not allowed in sample-by queries', position)
}

/** Told of at the interval. */
export function noAggregateInSamples(position: number): SqlError {
  return new SqlError("at least one aggregation function must be present in 'select' clause", position)
}
