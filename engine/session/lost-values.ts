// Reports data loss by ALTER COLUMN TYPE. Before the change, a query for each column counts the values that cannot be
// converted and will become NULL (sql/statements/lost-values.ts). The client gets a notice for each column with losses.

import type { ExecuteOptions } from '../api/statements.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import type { Value } from '../types/value.js'
import type { InsertOperations } from './inserts.js'
import { allRows } from './plan-helpers.js'

const shownMax = 100

/** A sentence for each column that loses values. */
export async function lossNotices(
  planned: PlannedStatement,
  sql: string,
  options: ExecuteOptions,
  { run }: Pick<InsertOperations, 'run'>,
): Promise<string[]> {
  if (planned.kind !== 'change' || planned.losses === undefined) return []
  const notes: string[] = []
  for (const { column, type, query } of planned.losses) {
    const counted = run(sql, query, { ...options, ...allRows, encoding: { kind: 'values' } })
    for await (const rows of counted.values) notes.push(...rows.flatMap((row) => noteOf(column, type, row)))
  }
  return notes
}

function noteOf(column: string, type: string, [count, value, ts]: readonly Value[]): string[] {
  if (Number(count) === 0) return []
  const what = Number(count) === 1 ? '1 value' : `${count} values`
  const first = String(value).slice(0, shownMax)
  const place = ts == null ? '' : `, timestamp=${ts}`
  return [
    `${what} of the column had no value of the new type and became NULL [column=${column}, type=${type}, first=${first}${place}]`,
  ]
}
