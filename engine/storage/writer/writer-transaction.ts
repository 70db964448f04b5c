// Commits a transaction that changes schemas: its changes and its rows are one log frame (record), which makes it
// atomic.
//
//   check     since the transaction began, nobody else has changed the schemas of its tables, or the rows that it read
//   draft     the new schemas enter the catalog; readers do not see them yet, and undo() removes them
//   commit    rows go to memtables (of truncated tables, to new ones), the frame to the log, and follow-up work runs:
//             writer-commit.ts
//
// The frame contains drops, then truncations, then schemas, then rows, in the same encoding as single changes, so that
// earlier versions can read it.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import type { DraftedTable, ToWriter } from '../jobs/messages.js'
import { changedMeanwhile, changesDedup, withDedupStart } from '../schema/draft.js'
import type { LoggedChange } from '../schema/logged-change.js'
import { isTableName } from '../schema/names.js'
import type { TableSchema } from '../schema/schema.js'
import { heldRows, removeRows, removeTable } from './writer-changes.js'
import type { CommitExtra } from './writer-commit.js'
import { flushTable } from './writer-flush.js'
import { noneLeaving } from './writer-keys.js'
import { requireFormatOf } from './writer-manifest.js'
import { afterRewrite } from './writer-rewrite.js'
import { hasSealedBuckets } from './writer-seal.js'
import type { WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

export type TransactionCommand = Extract<ToWriter, { kind: 'transaction' }>

/** If a table of the transaction is being rewritten, calls `again` after that and returns true. */
export function waitsForRewrite(state: WriterState, { drafts }: TransactionCommand, again: () => void): boolean {
  for (const { tableId } of drafts) {
    const table = state.catalog.byId.get(tableId)
    if (table === undefined || !state.rewriting.has(table)) continue
    afterRewrite(state, table, again)
    return true
  }
  return false
}

/** Checks and enters the drafts; returns the commit's additional actions. Throws SqlError, ResourceError: undo then. */
export function enterDrafts(state: WriterState, drafts: readonly DraftedTable[]): CommitExtra {
  const { catalog } = state
  for (const { schema } of drafts) if (schema !== null) requireFormatOf(state, schema)
  const dropped: WriterTable[] = []
  const emptied: WriterTable[] = []
  const found = drafts.map((draft) => ({ draft, table: checkedTable(state, draft) }))
  for (const { draft, table } of found) {
    if (draft.schema === null) dropped.push(required(table))
    else if (draft.emptied) emptied.push(required(table))
  }
  catalog.leave(dropped)
  for (const { draft, table } of found) {
    if (draft.schema === null) continue
    if (!isTableName(draft.schema.name)) throw new SqlError(`invalid table name [name=${draft.schema.name}]`, 0)
    if (table === undefined) catalog.addDrafted(draft.schema)
    else enterSchema(state, table, draft, draft.schema)
  }
  const taken = catalog.renamed()
  if (taken !== undefined) throw changedMeanwhile(taken)
  return extraOf(state, dropped, emptied)
}

function required(table: WriterTable | undefined): WriterTable {
  assert(table !== undefined, 'S5: what is dropped or emptied is stored')
  return table
}

function checkedTable(state: WriterState, draft: DraftedTable): WriterTable | undefined {
  const { tableId, base, name, read, truncated } = draft
  const table = state.catalog.byId.get(tableId)
  if (base === 0) return undefined
  if (table === undefined || table.schema.version !== base) throw changedMeanwhile(name)
  const isAsRead = read === null || (read.transaction === table.transaction && read.rewrites === table.rewrites)
  // Rows that are written again would be added to buckets that have been sealed meanwhile, and have them.
  const isSealed = read !== null && !truncated && hasSealedBuckets(state, table)
  if (!isAsRead || isSealed) throw changedMeanwhile(name)
  return table
}

function enterSchema(state: WriterState, table: WriterTable, draft: DraftedTable, drafted: TableSchema): void {
  const { emptied } = draft
  // By now, others may be sealed than when the transaction read the schema.
  const sealed = draft.truncated ? undefined : table.schema.sealed
  if (drafted.version === table.schema.version && sealed === table.schema.sealed) return
  const started = withDedupStart(table.schema, drafted, emptied ? 0 : table.transaction)
  const schema = { ...withSeals(started, sealed), version: Math.max(drafted.version, table.schema.version + 1) }
  if (!emptied && schema.dedupSkips === true && table.mayHaveRemovals && changesDedup(table.schema, schema))
    throw new SqlError(
      `DEDUP SKIP of a table with rows that were removed is not supported in a transaction [table=${schema.name}]`,
      0,
    )
  requireFormatOf(state, schema)
  // The DEDUP index of a memtable is built for one set of keys.
  if (changesDedup(table.schema, schema)) flushTable(state, table)
  state.catalog.replaceDrafted(table, schema)
}

function withSeals({ sealed: _, ...schema }: TableSchema, sealed: TableSchema['sealed']): TableSchema {
  return sealed === undefined ? schema : { ...schema, sealed }
}

function extraOf(state: WriterState, dropped: readonly WriterTable[], emptied: readonly WriterTable[]): CommitExtra {
  const held = new Map(emptied.map((table) => [table, heldRows(table)] as const))
  const afters: (() => void)[] = []
  return {
    ddl: (): LoggedChange[] => [
      ...dropped.map(({ id }): LoggedChange => ({ kind: 'drop', tableId: id })),
      ...emptied.map(({ id, transaction }): LoggedChange => ({ kind: 'truncate', tableId: id, transaction })),
    ],
    // The transaction's rows go to separate memtables.
    before: () => {
      for (const table of emptied) {
        held.set(table, heldRows(table))
        table.memtables = []
      }
    },
    undone: () => {
      for (const table of emptied) table.memtables = held.get(table)?.memtables ?? []
    },
    logged: (endLsn) => {
      for (const table of dropped) afters.push(removeTable(state, table, endLsn))
      for (const [table, rows] of held) afters.push(removeRows(state, table, rows, endLsn))
    },
    leaving: new Map(emptied.map((table) => [table, { ...noneLeaving, all: true }])),
    changed: emptied,
    dropped: dropped.map(({ id }) => id),
    after: () => {
      for (const after of afters) after()
    },
  }
}
