// Changes of a table that rewrite its Parquet files (parts): UPDATE, DELETE, a change of a column's type, and the
// removal of superseded rows before the DEDUP keys change.
//
//   barrier   the open memtable is frozen and flushed, so the parts contain exactly the rows that the change sees
//   job       a query thread rewrites the affected parts; rows that arrive meanwhile go to new memtables
//   commit    one manifest record replaces the parts, then the next version is published
//
// Invariants:
//   1. The manifest record is the commit. A crash before it leaves unreferenced files, and changes nothing.
//   2. A table has one rewrite at a time. Other changes of the table wait for it in order; inserted rows do not. A DROP
//      does not wait, and cancels the rewrite.
//   3. Compactions of the table neither start nor end during a rewrite, which replaces the parts that it has read.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, ResourceError, SqlError } from '../../base/errors.js'
import { addMetric } from '../../memory/metrics.js'
import { isFull } from '../../wal/reserve.js'
import type { JobResult, RewriteProgram } from '../jobs/messages.js'
import type { ManifestRecord } from '../manifest/manifest.js'
import type { PartDescriptor, TableSchema } from '../schema/schema.js'
import { BatchHeap } from './writer-batch.js'
import { discardParts, flushTable, postJob, whenFlushed } from './writer-flush.js'
import {
  commitManifest,
  outcomeOf,
  type PartsCommit,
  postponeFlushes,
  takePartIds,
  writePendingRecords,
} from './writer-manifest.js'
import { schemaRecords, schemaWritten, symbolCounts, symbolsNamed, writeSymbols } from './writer-records.js'
import { latePartsOf, withSealedChange } from './writer-seal.js'
import { enqueue, type Rewriting, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { MemtableEntry, WriterTable } from './writer-table.js'

/** Runs the change now, or after the rewrite of the table that is in progress. */
export function afterRewrite(state: WriterState, table: WriterTable, change: () => void): void {
  const rewriting = state.rewriting.get(table)
  if (rewriting === undefined) change()
  else rewriting.waiting.push(change)
}

/** Runs UPDATE or DELETE. Every outcome ends in a receipt. */
export function applyRewrite(state: WriterState, requestId: number, tableId: number, program: RewriteProgram): void {
  const table = state.catalog.byId.get(tableId)
  if (table === undefined) {
    sendReceiptNow(state, refusal(requestId, errorRecord(state.catalog.droppedNames.error(tableId))))
    return
  }
  afterRewrite(state, table, () => {
    const { schema } = table
    const gone = program.assigned.some((id) => schema.columns[id]?.dropped !== false)
    if (table.dropped || gone) {
      const error = table.dropped ? SqlError.tableDropped(schema.name) : SqlError.tableChanged(schema.name)
      sendReceiptNow(state, refusal(requestId, errorRecord(error)))
      return
    }
    rewriteParts(state, table, program, ({ rows, returned = [], error, isLate }) => {
      if (error !== null) sendReceiptNow(state, refusal(requestId, error))
      else if (isLate === true) sendReceiptNow(state, receiptOf(requestId, { isLate }))
      else enqueue(state, { receipts: [receiptOf(requestId, { rows, returned })] })
    })
  })
}

/** If `error` is set, nothing was changed. */
export interface RewriteOutcome {
  readonly rows: number
  /** The rows of RETURNING. */
  readonly returned?: NonNullable<JobResult['returned']>
  readonly error: ErrorRecord | null
  /** Nothing was changed either: sealed buckets of views lack rows of the table. */
  readonly isLate?: true
}

/** Runs the program over the table and replaces the affected parts. Without a program it removes superseded rows. */
export function rewriteParts(
  state: WriterState,
  table: WriterTable,
  program: RewriteProgram | null,
  done: (outcome: RewriteOutcome) => void,
): void {
  const end = (outcome: RewriteOutcome): void => endRewrite(state, rewriting, () => done(outcome))
  let isLate = false
  const parts = (): readonly PartDescriptor[] => {
    if (program === null) return table.parts
    const late = latePartsOf(state, table)
    isLate = late.size > 0 && program.skipsLate !== true
    return isLate ? [] : table.parts.filter((part) => !late.has(part))
  }
  const rewriting: Rewriting = {
    ...{ table, program, schema: () => table.stableSchema, parts, waiting: [] },
    written: (result) =>
      end(isLate ? { rows: 0, error: null, isLate } : commitParts(state, table, result, program !== null)),
    failed: (error) => end({ rows: 0, error }),
  }
  beginRewrite(state, rewriting)
}

/** Starts a rewrite, after these memtables (by default all) are flushed. The table must not have one in progress. */
export function beginRewrite(
  state: WriterState,
  rewriting: Rewriting,
  memtables: readonly MemtableEntry[] = flushTable(state, rewriting.table),
  patientUntilMs = Number.POSITIVE_INFINITY,
): void {
  assert(!state.rewriting.has(rewriting.table), 'S5: a table has one rewrite at a time')
  state.rewriting.set(rewriting.table, rewriting)
  // A schema change just before may still fail, so the parts are written with the acknowledged schema.
  const flushed = (): void => enqueue(state, { after: () => postRewrite(state, rewriting) })
  whenFlushed(state, memtables, flushed, (error) => rewriting.failed(error), patientUntilMs)
}

/** Starts the job; all rows before the barrier are in parts by now. */
export function postRewrite(state: WriterState, rewriting: Rewriting): void {
  const { table, program } = rewriting
  if (table.dropped) {
    rewriting.failed(tableDropped(table))
    return
  }
  const parts = rewriting.parts()
  if (parts.length === 0) {
    rewriting.written({ parts: [] })
    return
  }
  const schema = rewriting.schema()
  try {
    const version = { ...table.describeSettled(), memtables: [] }
    const firstPartId = takePartIds(state, parts.length)
    postJob(state, { job: { kind: 'rewrite', version, schema, parts, firstPartId, program }, table })
  } catch (thrown) {
    if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
    rewriting.failed(errorRecord(thrown))
  }
}

/** Handles the result of the job. */
export function rewriteDone(state: WriterState, table: WriterTable, result: JobResult): void {
  const rewriting = state.rewriting.get(table)
  if (rewriting === undefined || table.dropped) {
    discardParts(state, result.parts)
    if (rewriting !== undefined) postRewrite(state, rewriting)
    return
  }
  if (result.newSymbols === undefined) {
    rewriting.written(result)
    return
  }
  try {
    internSymbols(state, table, result.newSymbols)
    postRewrite(state, rewriting)
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    rewriting.failed(errorRecord(thrown))
  }
}

/** Handles a failed job. If the table was dropped in the meantime, missing files are the expected reason. */
export function rewriteFailed(state: WriterState, table: WriterTable, error: ErrorRecord): void {
  state.rewriting.get(table)?.failed(table.dropped ? tableDropped(table) : error)
}

function tableDropped({ schema }: WriterTable): ErrorRecord {
  return errorRecord(SqlError.tableDropped(schema.name))
}

/** Adds new symbols to the dictionaries. The next log frame of the table contains them too. */
function internSymbols(state: WriterState, table: WriterTable, symbols: NonNullable<JobResult['newSymbols']>): void {
  const heap = new BatchHeap(state.options.memory, state.options.allocator)
  try {
    for (const [columnId, strings] of symbols) {
      for (const text of strings) {
        const bytes = new TextEncoder().encode(text)
        table.dictionary(columnId).intern(heap.put(bytes), bytes.length)
        heap.reset()
      }
    }
  } finally {
    heap.free()
  }
}

/** Commits the parts. A statement counts as a rewrite even if it changes no row. */
function commitParts(state: WriterState, table: WriterTable, result: JobResult, isStatement: boolean): RewriteOutcome {
  const { replaced = [], rows = 0, returned = [] } = result
  const counted = isStatement ? withSealedChange(table, replaced) : undefined
  try {
    if (replaced.length > 0) replaceParts(state, table, replaced, result.parts, counted)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    return { rows: 0, error: errorRecord(thrown) }
  }
  if (counted !== undefined) state.catalog.replaceSchema(table, counted)
  if (isStatement) table.rewrites++
  enqueue(state, { versions: [table.nextVersion()] })
  return { rows, returned, error: null }
}

/**
 * Replaces parts, and the schema if there is a new one, by one manifest record. Throws FileError if the manifest does
 * not contain it; then nothing has changed, and the new files are removed.
 */
export function replaceParts(
  state: WriterState,
  table: WriterTable,
  replaced: readonly number[],
  parts: readonly PartDescriptor[],
  schema?: TableSchema,
): void {
  const left = new Set(replaced)
  const gone = table.parts.filter(({ id }) => left.has(id))
  assert(gone.length === left.size, 'S2: replaced parts belong to the table')
  const commit = { table, added: parts, replaced: gone }
  commitReplacements(state, [commit], schema)
  installParts(state, commit, schema)
}

/** Adds parts to several tables by one manifest record, as replaceParts does. */
export function addParts(state: WriterState, additions: readonly Omit<PartsCommit, 'replaced'>[]): void {
  const commits = additions.map((addition) => ({ ...addition, replaced: [] }))
  assert(new Set(commits.map(({ table }) => table)).size === commits.length, 'S2: a table has its new parts together')
  commitReplacements(state, commits)
  for (const commit of commits) installParts(state, commit)
}

/** Changes the table as the manifest record says. */
function installParts(state: WriterState, { table, added, replaced }: PartsCommit, schema?: TableSchema): void {
  for (const part of added) {
    addMetric(state.options.memory, 'rewrittenRows', part.rows)
    addMetric(state.options.memory, 'partBytes', part.bytes)
  }
  if (schema !== undefined) table.settle(schema)
  schemaWritten(table, state.settledLsn)
  if (added.length > 0) symbolsNamed(table)
  const left = new Set(replaced)
  table.parts = [...table.parts.filter((part) => !left.has(part)), ...added].sort(
    (x, y) => x.minTxn - y.minTxn || x.id - y.id,
  )
  const detached = new Set((schema?.detached ?? []).map(({ id }) => id))
  const removed = replaced.filter(({ id }) => !detached.has(id))
  table.retireParts(removed, (part) => discardParts(state, [part]))
}

/**
 * Commits the replacements together. A statement that frees space is retried once on a full disk, with a file of the
 * reserve. `schema`: the new one of the only table.
 */
function commitReplacements(state: WriterState, commits: readonly PartsCommit[], schema?: TableSchema): void {
  for (let isAgain = false; ; isAgain = true) {
    try {
      // A removal needs no symbols, and a full disk has no space for them.
      const extended = commits.filter(({ added }) => added.length > 0).map(({ table }) => table)
      if (extended.length > 0) writeSymbols(state.options, extended, schema)
      writePendingRecords(state)
      commitManifest(state, [
        ...commits.flatMap((commit) => replacementRecords(state, commit, schema)),
        { kind: 'ids', table: state.catalog.nextTableId },
      ])
      return
    } catch (thrown) {
      postponeFlushes(state, thrown)
      const outcome = outcomeOf(state, commits)
      if (outcome === 'done') return
      const isFullDisk = thrown instanceof FileError && isFull(thrown)
      if (outcome === 'undone' && isFullDisk && state.usesReserve && !isAgain) continue
      if (outcome === 'undone') for (const { added } of commits) discardParts(state, added)
      throw thrown
    }
  }
}

function replacementRecords(
  { manifest }: WriterState,
  { table, added, replaced }: PartsCommit,
  schema: TableSchema | undefined,
): ManifestRecord[] {
  const removed = replaced.map(({ id }) => id)
  return [
    ...(schema === undefined ? schemaRecords(manifest, table) : [{ kind: 'schema', schema } as const]),
    { kind: 'parts', tableId: table.id, added, removed, dictionaries: symbolCounts(table) },
  ]
}

/** Ends the rewrite; changes that have waited are tried in order. */
export function endRewrite(state: WriterState, { table, waiting }: Rewriting, done: () => void): void {
  assert(state.rewriting.has(table), 'S5: a rewrite ends once')
  state.rewriting.delete(table)
  done()
  for (const change of waiting) state.later.push(() => afterRewrite(state, table, change))
}
