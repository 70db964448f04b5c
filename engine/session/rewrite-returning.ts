// Executes the RETURNING clause of UPDATE and DELETE: evaluates its expressions over the changed rows, which the writer
// returns. Within a transaction the change is deferred to COMMIT, so the affected rows are found by a query beforehand;
// this query also counts the rows for the response to the client.

import type { ChangePreview, RowsResult, StatementResult } from '../api/statements.js'
import type { AffectedRows } from '../sql/statements/affected-rows.js'
import type { Returning } from '../sql/statements/planned.js'
import type { Receipt } from '../storage/jobs/messages.js'
import { requireReturnable } from '../storage/jobs/rewrite-changes.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { RunningQuery } from '../threads/query-reader.js'
import type { Value } from '../types/value.js'
import type { Planned } from './plan-helpers.js'

/** Starts the query of a RETURNING list over the statement's rows; each row has all columns of the table. */
export type BeginList = (returning: Returning, version: TableVersion, rows: readonly (readonly Value[])[]) => RowsResult

/** The result of an UPDATE or DELETE. `version`: the table before it. */
export async function rewriteRows(
  { tag, returning }: Planned<'rewrite'>,
  version: TableVersion | undefined,
  changing: Promise<Receipt>,
  begin: BeginList,
  compilerMs: number,
): Promise<StatementResult> {
  const { rows, returned = [] } = await changing
  if (returning === null || version === undefined) return { kind: 'done', tag, rows, compilerMs }
  return Object.assign(begin(returning, version, returned), { changed: tag })
}

export interface PreviewOperations {
  readonly run: (encoding: 'count' | 'values') => RunningQuery
  readonly begin: BeginList
}

/** Counts the affected rows, and reads them if there is a list. */
export async function previewChange(
  { returning, version, tag }: AffectedRows,
  operations: PreviewOperations,
): Promise<ChangePreview> {
  const running = operations.run(returning === null ? 'count' : 'values')
  const found: (readonly Value[])[] = []
  if (returning === null) for await (const _ of running.blocks);
  else {
    for await (const rows of running.values) {
      requireReturnable(found.length + rows.length)
      for (const row of rows) found.push(row)
    }
  }
  const { rows } = await running.summary
  return {
    rows,
    result: returning === null ? null : Object.assign(operations.begin(returning, version, found), { changed: tag }),
  }
}
