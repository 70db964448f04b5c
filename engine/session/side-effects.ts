// Executes SELECTs of functions with side effects, such as nextval() or pg_terminate_backend(): performs the action
// once for each row of the query (sql/statements/side-effects.ts), after the query has ended successfully, and returns
// the results as rows.

import { ResourceError } from '../base/errors.js'
import type { SideEffects } from '../sql/statements/planned.js'
import { execute, type SideEffectServices } from '../sql/statements/side-effects.js'
import type { RunningQuery } from '../threads/query-reader.js'
import type { Value } from '../types/value.js'
import { gatheredRowsMax } from './insert-new.js'

/** Waits for the end of the query before it acts: a query that fails halfway must have no effect. */
export async function sideEffectRows(
  { items }: SideEffects,
  running: RunningQuery,
  actors: SideEffectServices,
): Promise<(readonly Value[])[]> {
  const found: (readonly Value[])[] = []
  for await (const rows of running.values) {
    if (found.length + rows.length > gatheredRowsMax)
      throw new ResourceError(`a call with side effects applies to too many rows [max=${gatheredRowsMax}]`)
    for (const row of rows) found.push(row)
  }
  return found.map((row) => {
    let place = 0
    return items.map((item) => {
      const args = row.slice(place, place + item.width)
      place += item.width
      return execute(item, args, actors)
    })
  })
}
