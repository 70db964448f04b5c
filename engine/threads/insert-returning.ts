// INSERT .. RETURNING: the rows are gathered and read as they are going to be stored, the query of the list over them
// begins, and then they are stored: what is wrong with the list is told before anything has happened, and its sub-queries
// see the tables without them.

import type { RowsResult } from '../api/statements.js'
import { ResourceError, SqlError } from '../base/errors.js'
import type { AppenderColumn } from '../pg/column-appender.js'
import { ownRows } from '../pg/own-rows.js'
import { RowCollector } from '../pg/row-collector.js'
import type { PackedPiece, PackedRows, RowsInput } from '../storage/messages.js'
import type { TableVersion } from '../storage/schema.js'
import type { Planned } from './local-plans.js'
import type { BeginList } from './rewrite-returning.js'

type Returning = Planned<'insertReturning'>

export interface ReturningWays {
  readonly version: TableVersion | undefined
  /** Runs an INSERT .. SELECT whose rows go to `into`. */
  readonly select: (insert: Planned<'insertSelect'>, into: PackedWay) => Promise<number>
  readonly begin: BeginList
  /** Where the rows go instead of the table. */
  readonly into: PackedWay | undefined
  readonly store: (packed: readonly PackedRows[]) => Promise<unknown>
}

type PackedWay = (tableId: number, piece: PackedPiece) => Promise<void>

/** Rows travel with the plan of the list. */
const rowsMax = 250_000

/** Answers when the rows are stored. */
export async function insertReturning(
  { insert, tableId, returning }: Returning,
  { version, select, begin, into, store }: ReturningWays,
): Promise<RowsResult> {
  if (version === undefined) throw new SqlError('table does not exist any more', 0)
  const pieces: PackedPiece[] = []
  let rows = 0
  const take = async (_: number, piece: PackedPiece): Promise<void> => {
    rows += piece.packed.rows
    if (rows > rowsMax) throw new ResourceError(`INSERT has too many rows for RETURNING [max=${rowsMax}]`)
    pieces.push(piece)
  }
  if (insert.kind === 'insert') await take(tableId, packedValues(insert.rows))
  else await select(insert, take)
  const packed = pieces.map((piece) => piece.packed)
  const result = begin(returning, version, ownRows(version, packed))
  try {
    if (into === undefined && rows > 0) await store(packed)
    else for (const piece of pieces) await into?.(tableId, piece)
  } catch (error) {
    await abandon(result)
    throw error
  }
  return Object.assign(result, { inserted: rows })
}

async function abandon({ blocks, summary }: RowsResult): Promise<void> {
  summary.catch(() => {})
  await blocks[Symbol.asyncIterator]().return?.()
}

function packedValues({ tableId, rows, columns }: RowsInput): PackedPiece {
  const collector = new RowCollector()
  const appenders = columns.map(({ columnId, type }): AppenderColumn => ({ columnId, type, name: '', required: false }))
  const batch = collector.batch(tableId, '', appenders)
  for (const [index, { values }] of columns.entries()) {
    for (let row = 0; row < rows; row++) batch.columns[index]?.value(values[row] ?? null)
  }
  batch.rows = rows
  const { bytes } = collector
  const [table] = collector.take()
  return { packed: table?.packed[0] ?? { rows: 0, columns: [] }, bytes }
}
