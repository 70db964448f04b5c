// Makes the errors of queries over time: select lists that SAMPLE BY does not permit (`*`, or no aggregate), and tables
// without a designated timestamp.

import { SqlError } from '../../base/errors.js'

export function wildcardInSamples(position: number): SqlError {
  return new SqlError('wildcard column select is not allowed in sample-by queries', position)
}

/** Reported at the position of the interval. */
export function noAggregateInSamples(position: number): SqlError {
  return new SqlError("at least one aggregation function must be present in 'select' clause", position)
}

/** For errors about a table without a designated timestamp. */
export const timestampHint = 'name the column: FROM t TIMESTAMP(ts), or CREATE TABLE t (..) TIMESTAMP(ts)'
