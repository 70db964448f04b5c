// Appends schema changes to the log and makes a table's new schema the current one in the writer. Log frames (log
// records) contain the resulting schema, not the statement.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { frameKinds, type Lsn } from '../../wal/types.js'
import { changesDedup, withDedupStart } from '../schema/draft.js'
import type { LoggedChange } from '../schema/logged-change.js'
import type { TableSchema } from '../schema/schema.js'
import { noteSchemaChange } from './writer-commit.js'
import { flushTable } from './writer-flush.js'
import { requireFormatOf } from './writer-manifest.js'
import { enqueue, receiptOf, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

/** Appends the frame; returns its end. */
export function logChange(state: WriterState, change: LoggedChange): Lsn {
  const endLsn = state.wal.append(frameKinds.ddl, [new TextEncoder().encode(JSON.stringify(change))])
  state.lastEndLsn = endLsn
  return endLsn
}

/** Logs and installs the schema. Without a request id no receipt is sent. */
export function replaceSchema(
  state: WriterState,
  requestId: number | null,
  table: WriterTable,
  changed: TableSchema,
): void {
  const schema = withDedupStart(table.schema, changed, table.transaction)
  if (schema === table.schema) {
    if (requestId !== null) enqueue(state, { receipts: [receiptOf(requestId, { existed: true })] })
    return
  }
  const holder = state.catalog.find(schema.name)
  if (holder !== undefined && holder !== table) throw SqlError.tableExists(0)
  const keysChanged = changesDedup(table.schema, schema)
  assert((schema.dedupAfter ?? 0) <= table.transaction, 'T2: rows that precede DEDUP are stored before it')
  requireFormatOf(state, schema)
  const firstLsn = state.wal.headLsn
  const endLsn = logChange(state, { kind: 'schema', schema })
  state.catalog.replaceSchema(table, schema)
  noteSchemaChange(table, firstLsn)
  // The DEDUP index of a memtable is built for one set of keys.
  if (keysChanged) flushTable(state, table)
  const receipts = requestId === null ? [] : [receiptOf(requestId, { lsn: endLsn })]
  enqueue(state, { versions: [table.nextVersion()], receipts })
}
