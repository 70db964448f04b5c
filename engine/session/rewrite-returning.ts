// RETURNING of UPDATE and DELETE: rows that the writer sends back, or those that a change is going to touch, become what the
// list is planned over. A change of a transaction is looked at so before it is carried out: its count is needed for the tag.

import type { ChangePreview, RowsResult } from '../api/statements.js'
import type { Returning } from '../sql/statements/planned.js'
import type { TouchedRows } from '../sql/statements/touched.js'
import { demandReturnable } from '../storage/jobs/rewrite-changes.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { RunningQuery } from '../threads/query-reader.js'
import type { Value } from '../types/value.js'

/** Begins the query of a list over the rows of its statement, of which each has every column of the table. */
export type BeginList = (returning: Returning, version: TableVersion, rows: readonly (readonly Value[])[]) => RowsResult

export interface PreviewWays {
  readonly run: (encoding: 'count' | 'values') => RunningQuery
  readonly begin: BeginList
}

/** Counts the rows, and reads them where there is a list. */
export async function previewChange(
  { returning, version, tag }: TouchedRows,
  ways: PreviewWays,
): Promise<ChangePreview> {
  const running = ways.run(returning === null ? 'count' : 'values')
  const found: (readonly Value[])[] = []
  if (returning === null) for await (const _ of running.blocks);
  else {
    for await (const rows of running.values) {
      demandReturnable(found.length + rows.length)
      for (const row of rows) found.push(row)
    }
  }
  const { rows } = await running.summary
  return {
    rows,
    result: returning === null ? null : Object.assign(ways.begin(returning, version, found), { changed: tag }),
  }
}
