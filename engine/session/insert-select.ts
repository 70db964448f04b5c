// Executes INSERT .. SELECT and CREATE TABLE AS: a query thread packs the rows of the query into batches of columns,
// which go through the main thread to the writer. The main thread does not read the rows; it only adds columns with
// defaults and sequence numbers to each batch. Usually many batches form one transaction, and a large result has
// several transactions; INSERT ATOMIC stores all rows in one.

import type { RowTransaction } from '../api/engine.js'
import type { ExecuteOptions } from '../api/statements.js'
import { ResourceError } from '../base/errors.js'
import { insertSelectRows, walFrameBytesMax } from '../base/limits.js'
import type { PackedEncoding } from '../exec/run/messages.js'
import type { DefaultColumn } from '../pg/binary-rows.js'
import type { ExpressionScope } from '../sql/bind/expression.js'
import type { PackedBatch, PackedRows, RowsInput } from '../storage/jobs/messages.js'
import type { TableVersion } from '../storage/schema/schema.js'
import type { RunningQuery } from '../threads/query-pool.js'
import { defaultColumns, filledRows } from './filled-rows.js'
import { cancelAtAbort, type Planned, rowsOf } from './plan-helpers.js'

export type InsertTarget = Pick<Planned<'insertSelect'>, 'tableId' | 'columns' | 'batchRows'> &
  Partial<Pick<Planned<'insertSelect'>, 'atomic' | 'numbered'>>

/** What the insertion needs: how to run the query, and where its rows go. */
export interface InsertSelectOperations extends Pick<ExecuteOptions, 'signal' | 'into'> {
  readonly run: (encoding: PackedEncoding) => RunningQuery
  readonly version: TableVersion | undefined
  /** The scope in which defaults are evaluated for columns that the query does not provide. */
  readonly scope: () => ExpressionScope
  readonly begin: () => RowTransaction
  readonly insert: (rows: RowsInput) => Promise<number>
}

/** Bytes of an INSERT ATOMIC that may wait in memory; they are certain to fit a log frame. */
const atomicBytesMax = walFrameBytesMax / 2
/** Bytes of a transaction of INSERT .. SELECT. */
const batchBytesMax = walFrameBytesMax / 4
const frameBytesMax = (walFrameBytesMax * 3) / 4

/** Inserts rows as they arrive, many in a transaction; returns their number. */
export async function insertSelect(target: InsertTarget, operations: InsertSelectOperations): Promise<number> {
  const { into, signal, version } = operations
  const running = operations.run(packedOf(target, version?.schema.timestampId ?? -1))
  cancelAtAbort(signal, running)
  const columnIds = target.columns.map(({ columnId }) => columnId)
  const defaults = defaultColumns(version, columnIds, operations.scope, target.numbered)
  const batches = defaults.length === 0 ? running.batches : filledBatches(running.batches, defaults)
  if (into !== undefined) return insertEach(batches, (batch) => into(target.tableId, batch))
  if (target.atomic === true) return insertWhole(batches, target, operations.begin())
  return insertInBatches(batches, target, operations.insert)
}

/** Undoes the creation of the table if the insertion fails. */
export async function undoOnFailure(inserting: Promise<number>, undo: () => Promise<unknown>): Promise<number> {
  try {
    return await inserting
  } catch (error) {
    await undo().catch(() => {})
    throw error
  }
}

function packedOf(target: InsertTarget, timestampId: number): PackedEncoding {
  return { kind: 'packed', columns: target.columns, timestampId, batchRows: batchRowsOf(target) }
}

type PackedBatches = AsyncIterable<PackedBatch>

async function* filledBatches(batches: PackedBatches, defaults: readonly DefaultColumn[]): PackedBatches {
  for await (const batch of batches) yield filledRows(batch, defaults)
}

/** Rows that outgrow the memory are written to parts that no table refers to before the commit. */
async function insertWhole(batches: PackedBatches, target: InsertTarget, transaction: RowTransaction): Promise<number> {
  try {
    const inserted = await insertEach(batches, async ({ packed, bytes }) => {
      transaction.add(target.tableId, packed, bytes)
      if (transaction.bytes < atomicBytesMax || (await transaction.spill())) return
      if (transaction.bytes >= frameBytesMax)
        throw new ResourceError(`INSERT ATOMIC is too large for DEDUP, arrays or BINARY [max=${frameBytesMax}]`)
    })
    await transaction.commit()
    return inserted
  } catch (error) {
    transaction.clear()
    throw error
  }
}

async function insertEach(batches: PackedBatches, take: (batch: PackedBatch) => Promise<void>): Promise<number> {
  let rows = 0
  for await (const batch of batches) {
    await take(batch)
    rows += batch.packed.rows
  }
  return rows
}

/** Query threads end a packed batch where a transaction is full. */
async function insertInBatches(
  batches: PackedBatches,
  target: InsertTarget,
  insert: (rows: RowsInput) => Promise<number>,
): Promise<number> {
  const rowsMax = batchRowsOf(target)
  let inserted = 0
  let [waiting, rows, waitingBytes]: [PackedRows[], number, number] = [[], 0, 0]
  const store = async (): Promise<void> => {
    const batch = waiting
    ;[waiting, rows, waitingBytes] = [[], 0, 0]
    if (batch.length > 0) inserted += await insert(rowsOf(target.tableId, batch))
  }
  for await (const { packed, bytes } of batches) {
    waiting.push(packed)
    rows += packed.rows
    waitingBytes += bytes
    if (rows >= rowsMax || waitingBytes >= batchBytesMax) await store()
  }
  await store()
  return inserted
}

function batchRowsOf({ batchRows }: InsertTarget): number {
  return Math.min(batchRows ?? insertSelectRows, insertSelectRows)
}
