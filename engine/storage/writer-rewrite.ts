// Changes of a table that rewrite parts: UPDATE, DELETE, a column's type, dropping repeated rows before DEDUP goes.
//
//   barrier   the open generation is frozen; when it is flushed, the parts hold exactly what the change is to see
//   job       a query thread writes the touched parts anew; later rows go into new generations meanwhile
//   commit    one record of the manifest replaces all of them, then the next version is published
//
// Invariants:
//   1. The manifest's record is the commit: a crash before it leaves files that nothing names, and nothing changed.
//   2. One rewrite a table at a time. Other changes of the table wait for it, in their order; rows do not. A drop does
//      not wait: it makes the rewrite void.
//   3. Merges of the table neither begin nor end meanwhile: a rewrite replaces the parts that it has read.

import { type ErrorRecord, errorRecord, FileError, ResourceError, SqlError } from '../base/errors.js'
import type { JobResult, RewriteProgram } from './messages.js'
import type { PartDescriptor, TableSchema } from './schema.js'
import { BatchHeap } from './writer-batch.js'
import { discardParts, flushTable, postJob, whenFlushed } from './writer-flush.js'
import { commitManifest, namesPart, payDebts, putOff, takePartIds } from './writer-manifest.js'
import { schemaRecords, schemaWritten, symbolCounts, symbolsNamed, writeSymbols } from './writer-records.js'
import { answerNow, enqueue, receiptOf, refusal, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

/** A rewrite under way. */
export interface Rewriting {
  readonly table: WriterTable
  readonly program: RewriteProgram | null
  /** Schema of the new parts. */
  readonly schema: TableSchema
  readonly done: (outcome: RewriteOutcome) => void
  /** Changes of the table that wait. */
  readonly waiting: (() => void)[]
}

/** `error`: nothing was changed. */
export interface RewriteOutcome {
  readonly rows: number
  readonly error: ErrorRecord | null
}

/** Runs the change now, or when the rewrite of the table that is under way has ended. */
export function whenUntouched(state: WriterState, table: WriterTable, change: () => void): void {
  const rewriting = state.rewriting.get(table)
  if (rewriting === undefined) change()
  else rewriting.waiting.push(change)
}

/** UPDATE and DELETE; every outcome ends in a receipt. */
export function applyRewrite(state: WriterState, requestId: number, tableId: number, program: RewriteProgram): void {
  const table = state.catalog.byId.get(tableId)
  if (table === undefined) {
    answerNow(state, refusal(requestId, errorRecord(new SqlError(`table does not exist [id=${tableId}]`, 0))))
    return
  }
  whenUntouched(state, table, () => {
    const { schema } = table
    const gone = program.assigned.some((id) => schema.columns[id]?.dropped !== false)
    if (table.dropped || gone) {
      answerNow(state, refusal(requestId, errorRecord(new SqlError('the table has changed meanwhile, try again', 0))))
      return
    }
    rewriteTable(state, {
      ...{ table, program, schema, waiting: [] },
      done: ({ rows, error }) => {
        if (error !== null) answerNow(state, refusal(requestId, error))
        else enqueue(state, { receipts: [receiptOf(requestId, { rows })] })
      },
    })
  })
}

/** Begins a rewrite of a table that has none under way. */
export function rewriteTable(state: WriterState, rewriting: Rewriting): void {
  const { table } = rewriting
  state.rewriting.set(table, rewriting)
  whenFlushed(state, flushTable(state, table), () => postRewrite(state, rewriting))
}

function postRewrite(state: WriterState, rewriting: Rewriting): void {
  const { table, program, schema } = rewriting
  if (table.dropped) {
    finish(state, rewriting, { rows: 0, error: errorRecord(new SqlError('the table was dropped', 0)) })
    return
  }
  const { parts } = table
  if (parts.length === 0) {
    commitParts(state, rewriting, { parts: [] })
    return
  }
  try {
    const version = { ...table.describe(), generations: [] }
    const firstPartId = takePartIds(state, parts.length)
    postJob(state, { job: { kind: 'rewrite', version, schema, parts, firstPartId, program }, table })
  } catch (thrown) {
    if (!(thrown instanceof FileError || thrown instanceof ResourceError)) throw thrown
    finish(state, rewriting, { rows: 0, error: errorRecord(thrown) })
  }
}

/** A query thread has done the job. */
export function rewriteDone(state: WriterState, table: WriterTable, result: JobResult): void {
  const rewriting = state.rewriting.get(table)
  if (rewriting === undefined || table.dropped) {
    discardParts(state, result.parts)
    if (rewriting !== undefined) postRewrite(state, rewriting)
    return
  }
  if (result.newSymbols === undefined) {
    commitParts(state, rewriting, result)
    return
  }
  try {
    internSymbols(state, table, result.newSymbols)
    postRewrite(state, rewriting)
  } catch (thrown) {
    if (!(thrown instanceof ResourceError)) throw thrown
    finish(state, rewriting, { rows: 0, error: errorRecord(thrown) })
  }
}

export function rewriteFailed(state: WriterState, table: WriterTable, error: ErrorRecord): void {
  const rewriting = state.rewriting.get(table)
  if (rewriting !== undefined) finish(state, rewriting, { rows: 0, error })
}

/** The rows' new symbols get their ids; the next log frame of the table holds them as well. */
function internSymbols(state: WriterState, table: WriterTable, symbols: NonNullable<JobResult['newSymbols']>): void {
  const heap = new BatchHeap(state.options.memory, state.options.allocator)
  try {
    for (const [columnId, texts] of symbols) {
      for (const text of texts) {
        const bytes = new TextEncoder().encode(text)
        table.dictionary(columnId).intern(heap.put(bytes), bytes.length)
        heap.reset()
      }
    }
  } finally {
    heap.free()
  }
}

function commitParts(state: WriterState, rewriting: Rewriting, { parts, replaced = [], rows = 0 }: JobResult): void {
  const { table, schema } = rewriting
  const gone = table.parts.filter(({ id }) => replaced.includes(id))
  const changesSchema = schema !== table.schema && schema.version > table.schema.version
  if (gone.length > 0 || changesSchema) {
    try {
      commitRewrite(state, rewriting, gone, parts)
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown
      putOff(state, thrown)
      const named = parts[0] !== undefined && namesPart(state, table.id, parts[0].id)
      if (!named) {
        discardParts(state, parts)
        finish(state, rewriting, { rows: 0, error: errorRecord(thrown) })
        return
      }
    }
    schemaWritten(table)
    symbolsNamed(table)
    table.parts = [...table.parts.filter((part) => !gone.includes(part)), ...parts].sort(
      (x, y) => x.minTxn - y.minTxn || x.id - y.id,
    )
    table.retire(() => discardParts(state, gone))
    enqueue(state, { versions: [table.nextVersion()] })
  }
  finish(state, rewriting, { rows, error: null })
}

/** Throws FileError. */
function commitRewrite(
  state: WriterState,
  { table }: Rewriting,
  gone: readonly PartDescriptor[],
  parts: readonly PartDescriptor[],
): void {
  writeSymbols(state.options, table)
  payDebts(state)
  const dictionaries = symbolCounts(table)
  const removed = gone.map(({ id }) => id)
  commitManifest(state, [
    ...schemaRecords(state.manifest, table),
    { kind: 'parts', tableId: table.id, added: parts, removed, dictionaries },
    { kind: 'ids', table: state.catalog.nextTableId },
  ])
}

/** The table is free for what has waited; the first that rewrites again takes the others with it. */
function finish(state: WriterState, rewriting: Rewriting, outcome: RewriteOutcome): void {
  const { table, waiting } = rewriting
  state.rewriting.delete(table)
  rewriting.done(outcome)
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next()
    const other = state.rewriting.get(table)
    if (other === undefined) continue
    other.waiting.push(...waiting)
    return
  }
}
