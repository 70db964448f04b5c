// Performs schema changes (DDL) in the writer. Most changes are one log frame (record). It is applied to the writer's
// catalog at once, and readers see it when the log has made the frame durable. Frames contain the resulting schema, not
// the statement. Changes of partitions and of column types have files of their own (writer-partitions.ts,
// writer-type.ts), and a change of DEDUP keys may remove superseded rows first.

import { errorRecord, ResourceError, SqlError } from '../../base/errors.js'
import type { Lsn } from '../../wal/types.js'
import type { SchemaChange } from '../jobs/messages.js'
import type { Manifest, ManifestRecord } from '../manifest/manifest.js'
import { changesDedup, losesKeys } from '../schema/draft.js'
import { isTableName } from '../schema/names.js'
import type { PartDescriptor, TableSchema } from '../schema/schema.js'
import { emptiedSchema, finishedSchema } from '../schema/schema.js'
import { changeSchema } from '../schema/schema-change.js'
import { freesSpace } from './free-space.js'
import { removeTableFiles } from './recovery-orphans.js'
import { noteSchemaChange } from './writer-commit.js'
import { discardParts, flushed, freeMemtable } from './writer-flush.js'
import { whenIdle } from './writer-jobs.js'
import { afterPendingRecords, requireFormatOf } from './writer-manifest.js'
import { changePartitions } from './writer-partitions.js'
import { whenUnpinned } from './writer-pin.js'
import { afterRewrite, rewriteParts } from './writer-rewrite.js'
import { logChange, replaceSchema } from './writer-schema.js'
import { enqueue, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'
import { changeTypes } from './writer-type.js'

/** Applies the change, after a rewrite of the table in progress. Every outcome ends in a receipt. */
export function applyChange(state: WriterState, requestId: number, change: SchemaChange): void {
  const table = change.kind === 'createTable' ? undefined : state.catalog.byId.get(change.tableId)
  if (table === undefined || change.kind === 'dropTable') attemptChange(state, requestId, change)
  else afterRewrite(state, table, () => attemptChange(state, requestId, change))
}

function attemptChange(state: WriterState, requestId: number, change: SchemaChange): void {
  attempt(state, requestId, () => changeTable(state, requestId, change))
}

function attempt(state: WriterState, requestId: number, work: () => void): void {
  try {
    work()
  } catch (thrown) {
    if (!(thrown instanceof SqlError || thrown instanceof ResourceError)) throw thrown
    state.catalog.undo()
    sendReceiptNow(state, refusal(requestId, errorRecord(thrown)))
  }
}

function changeTable(state: WriterState, requestId: number, change: SchemaChange): void {
  if (state.wal.state === 'poisoned' && freesSpace(change)) state.wal.makeRoom()
  if (change.kind === 'createTable') {
    createTable(state, requestId, change)
    return
  }
  const table = state.catalog.required(change.tableId)
  switch (change.kind) {
    case 'dropTable':
      dropTable(state, requestId, table)
      return
    case 'finishTable':
      finishTable(state, requestId, table)
      return
    case 'truncateTable':
      truncateTable(state, requestId, table)
      return
    case 'partitions':
      changePartitions(state, requestId, table, change.operation, change.partitions, change.sealing)
      return
    case 'changeTypes':
      changeTypes(state, requestId, table, change)
      return
    case 'alterTable':
      if (!leavesRepeats(table, change)) replaceSchema(state, requestId, table, changeSchema(table.schema, change))
      else dropRepeats(state, requestId, table, change)
      return
    default:
      replaceSchema(state, requestId, table, changeSchema(table.schema, change))
  }
}

type TableAlteration = Extract<SchemaChange, { kind: 'alterTable' }>

/**
 * Whether rows would become visible again that the present DEDUP keys have superseded, or removed rows would keep later
 * ones away, as they have keys, too (DEDUP SKIP).
 */
function leavesRepeats({ schema, mayHaveRemovals }: WriterTable, { changes }: TableAlteration): boolean {
  return losesKeys(schema, changes) || (mayHaveRemovals && changesDedup(schema, { ...schema, ...changes }))
}

/** After so many passes, rows that a few others have superseded meanwhile become visible again. */
const dropRepeatsMax = 10

/**
 * Removes superseded rows before the DEDUP keys change, because readers hide these rows by the keys. Rows that arrive
 * meanwhile may supersede others, so this is repeated. Each pass compares all parts that overlap.
 */
function dropRepeats(
  state: WriterState,
  requestId: number,
  table: WriterTable,
  change: TableAlteration,
  passes = dropRepeatsMax,
): void {
  const { transaction } = table
  const later = (): void => {
    if (passes > 1 && table.transaction !== transaction && !table.dropped)
      afterRewrite(state, table, () => dropRepeats(state, requestId, table, change, passes - 1))
    else attempt(state, requestId, () => replaceSchema(state, requestId, table, changeSchema(table.schema, change)))
  }
  rewriteParts(state, table, null, ({ error }) => {
    if (error !== null) sendReceiptNow(state, refusal(requestId, error))
    else state.later.push(later)
  })
}

function createTable(
  state: WriterState,
  requestId: number,
  { schema, ifNotExists }: Extract<SchemaChange, { kind: 'createTable' }>,
): void {
  if (state.catalog.find(schema.name) !== undefined) {
    if (!ifNotExists) throw SqlError.tableExists(0)
    enqueue(state, { receipts: [receiptOf(requestId, { existed: true })] })
    return
  }
  if (!isTableName(schema.name)) throw new SqlError(`invalid table name [name=${schema.name}]`, 0)
  const whole: TableSchema = { ...schema, id: state.catalog.nextTableId, version: 1 }
  requireFormatOf(state, schema)
  const firstLsn = state.wal.headLsn
  const endLsn = logChange(state, { kind: 'schema', schema: whole })
  const table = state.catalog.add(whole)
  noteSchemaChange(table, firstLsn)
  enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(requestId, { lsn: endLsn })] })
}

/** Ends CREATE TABLE AS. All rows of the statement are in earlier frames. */
function finishTable(state: WriterState, requestId: number, table: WriterTable): void {
  const firstLsn = state.wal.headLsn
  const endLsn = logChange(state, { kind: 'finish', tableId: table.id })
  state.catalog.replaceSchema(table, finishedSchema(table.schema))
  noteSchemaChange(table, firstLsn)
  enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(requestId, { lsn: endLsn })] })
}

function dropTable(state: WriterState, requestId: number, table: WriterTable): void {
  const endLsn = logChange(state, { kind: 'drop', tableId: table.id })
  const after = removeTable(state, table, endLsn)
  enqueue(state, { dropped: [table.id], receipts: [receiptOf(requestId, { lsn: endLsn })], after })
}

/** Removes the table, whose drop is in the frame that ends at `endLsn`. Call the result when that is acknowledged. */
export function removeTable(state: WriterState, table: WriterTable, endLsn: Lsn): () => void {
  state.catalog.remove(table)
  state.decoders.lines.forget(table)
  state.decoders.qwp.forget(table)
  state.dropped.set(table.id, table)
  emptyTable(state, table, heldRows(table), endLsn)
  table.memtables = []
  table.retire(() => whenIdle(state, table, () => forget(state, table)))
  return () => {
    state.pendingRecords.push(({ tables }) => (tables.has(table.id) ? [{ kind: 'drop', tableId: table.id }] : []))
  }
}

/** Frees memory and files of a dropped table that has no readers. */
function forget(state: WriterState, table: WriterTable): void {
  table.freeAll()
  state.dropped.delete(table.id)
  afterPendingRecords(state, () => whenUnpinned(state, () => removeTableFiles(state.options, table.id)))
}

function truncateTable(state: WriterState, requestId: number, table: WriterTable): void {
  const { transaction } = table
  const firstLsn = state.wal.headLsn
  const endLsn = logChange(state, { kind: 'truncate', tableId: table.id, transaction, unseals: true })
  const after = removeRows(state, table, heldRows(table), endLsn)
  table.memtables = []
  if (table.schema.sealed !== undefined) {
    state.catalog.replaceSchema(table, emptiedSchema(table.schema))
    noteSchemaChange(table, firstLsn)
  }
  enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(requestId, { lsn: endLsn })], after })
}

/** The contents of a table at some time. */
export type HeldRows = Pick<WriterTable, 'transaction' | 'parts' | 'memtables' | 'neededLsn'>

export function heldRows({ transaction, parts, memtables, neededLsn }: WriterTable): HeldRows {
  return { transaction, parts, memtables, neededLsn }
}

/** Removes these rows, as logged by the frame that ends at `endLsn`. Call the result when that is acknowledged. */
export function removeRows(state: WriterState, table: WriterTable, rows: HeldRows, endLsn: Lsn): () => void {
  table.rewrites++
  emptyTable(state, table, rows, endLsn)
  return () => {
    state.pendingRecords.push((manifest) => removal(manifest, table, rows.parts, rows.transaction))
  }
}

/** Removes the rows from the table; memory and files are freed when they have no readers. */
function emptyTable(state: WriterState, table: WriterTable, rows: HeldRows, endLsn: Lsn): void {
  const { parts, memtables, neededLsn, transaction } = rows
  state.removals.push({ endLsn, retainedLsn: Math.min(neededLsn, table.symbolsLsn) })
  table.parts = []
  table.flushedTxn = transaction
  const freeMarks = table.takeMarks(parts)
  // Not only when they are freed: an UPDATE or DELETE that waits for their flush may hold a snapshot that contains
  // them.
  const ended = (): void => {
    for (const entry of memtables) flushed(state, entry)
  }
  enqueue(state, { after: ended })
  table.retire(() => {
    freeMarks()
    for (const entry of memtables) freeMemtable(state, entry)
    afterPendingRecords(state, () => discardParts(state, parts))
  })
}

/** The manifest record that removes those of the parts that it still contains. */
function removal(
  manifest: Manifest,
  table: WriterTable,
  parts: readonly PartDescriptor[],
  flushedTxn: number,
): ManifestRecord[] {
  const known = manifest.tables.get(table.id)
  if (known === undefined) return []
  const named = new Set(known.parts.map(({ id }) => id))
  const removed = parts.map(({ id }) => id).filter((id) => named.has(id))
  return [{ kind: 'parts', tableId: table.id, added: [], removed, flushedTxn: Math.max(flushedTxn, known.flushedTxn) }]
}

/** Appends the frame; throws ResourceError when the log takes nothing now. */
