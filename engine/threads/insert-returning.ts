// INSERT .. RETURNING: the rows are gathered and read as they are going to be stored, the query of the list over them
// begins, and then they are stored: what is wrong with the list is told before anything has happened, and its sub-queries
// see the tables without them.

import type { RowsResult } from '../api/statements.js'
import { SqlError } from '../base/errors.js'
import { ownRows } from '../pg/own-rows.js'
import type { PackedRows } from '../storage/messages.js'
import type { TableVersion } from '../storage/schema.js'
import { gathered, type PackedWay } from './insert-new.js'
import type { Planned } from './local-plans.js'
import type { BeginList } from './rewrite-returning.js'

type Returning = Planned<'insertReturning'>

export interface ReturningWays {
  readonly version: TableVersion | undefined
  /** Runs an INSERT that reads; its rows go to `into`. */
  readonly select: (insert: Planned<'insertSelect' | 'insertNew'>, into: PackedWay) => Promise<number>
  readonly begin: BeginList
  /** Where the rows go instead of the table. */
  readonly into: PackedWay | undefined
  readonly store: (packed: readonly PackedRows[]) => Promise<unknown>
}

/** Answers when the rows are stored. */
export async function insertReturning(
  { insert, tableId, returning }: Returning,
  { version, select, begin, into, store }: ReturningWays,
): Promise<RowsResult> {
  if (version === undefined) throw new SqlError('table does not exist any more', 0)
  const pieces = await gathered(insert, 'RETURNING', select)
  const rows = pieces.reduce((sum, { packed }) => sum + packed.rows, 0)
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
