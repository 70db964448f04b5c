// ALTER COLUMN .. TYPE: rewrites the table's parts (Parquet files) with a new column that has the old column's values,
// cast to the new type. The new column then takes the old one's place in the schema. Several columns may be cast at
// once, together with other changes of the statement.
//
//   reserve   a log frame adds the new columns to the schema as dropped ones, which reserves their ids permanently
//   round     parts without the columns are rewritten with them; rows that arrive meanwhile belong to the next round
//   pause     when few rows are left, or after roundsMax rounds, the writer takes no input until the last round ends
//   commit    one manifest record installs the parts of all rounds, and the schema with the new columns in place
//
// Readers see the old columns until the commit. A crash before it leaves reserved ids and unreferenced files.
//
// Invariant: at the commit every row of the table is in a part that has the new columns, so no memtable and no log
// frame after the manifest's flushedTxn refers to the old ones.

import { assert } from '../../base/assert.js'
import { type ErrorRecord, errorRecord, FileError, SqlError } from '../../base/errors.js'
import { tableColumnsMax } from '../../base/limits.js'
import { sameType } from '../../types/column-types.js'
import type { JobResult, SchemaChange } from '../jobs/messages.js'
import { enforcedKey, type PartDescriptor, type TableSchema } from '../schema/schema.js'
import { changeColumns, retypedSchema } from '../schema/schema-change.js'
import { discardParts, flushTable, whenFlushed } from './writer-flush.js'
import { requireFormatOf } from './writer-manifest.js'
import { beginRewrite, endRewrite, postRewrite, replaceParts } from './writer-rewrite.js'
import { replaceSchema } from './writer-schema.js'
import { enqueue, type Rewriting, receiptOf, refusal, sendReceiptNow, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

/** Maximum number of rounds without a pause. */
const roundsMax = 4
/** Maximum number of rows that are rewritten during a pause, unless roundsMax is reached. */
const pauseRowsMax = 100_000

type TypeChange = Extract<SchemaChange, { kind: 'changeTypes' }>

interface Changing {
  readonly state: WriterState
  readonly table: WriterTable
  readonly requestId: number
  readonly change: TypeChange
  /** Id of the column that replaces the first of `types`; those of the others follow. */
  readonly newId: number
  /** Ids of parts that `written` replaces. */
  readonly replaced: number[]
  readonly written: PartDescriptor[]
  rounds: number
}

/** Starts the change. Throws SqlError, ResourceError; every other outcome ends in a receipt. */
export function changeTypes(state: WriterState, requestId: number, table: WriterTable, change: TypeChange): void {
  const { schema } = table
  const { types } = change
  const key = enforcedKey(schema)
  if (key !== undefined && types.some(({ columnId }) => key.columnIds.includes(columnId)))
    throw new SqlError(`the type of a column of an enforced key cannot be changed [key=${key.name}]`, 0)
  const isDone = types.every(({ columnId, type }) => {
    const column = schema.columns[columnId]
    if (column === undefined || column.dropped) throw new SqlError('column does not exist', 0)
    return sameType(column.type, type)
  })
  // Errors of the other changes are reported before the columns are rewritten.
  const changed = changeColumns(schema, change.changes)
  if (isDone) {
    replaceSchema(state, requestId, table, changed)
    return
  }
  requireFormatOf(state, changed)
  const newId = schema.columns.length
  if (changed.columns.length + types.length > tableColumnsMax)
    throw new SqlError(`too many columns [limit=${tableColumnsMax}]`, 0)
  const reserved = types.map(({ columnId, type }, index) => {
    const name = schema.columns[columnId]?.name ?? ''
    return { id: newId + index, name, type, dropped: true }
  })
  replaceSchema(state, null, table, {
    ...schema,
    version: schema.version + 1,
    columns: [...schema.columns, ...reserved],
  })
  for (const { id, type } of reserved) if (type.name === 'SYMBOL') table.addDictionary(id)
  const changing: Changing = { state, table, requestId, change, newId, replaced: [], written: [], rounds: 0 }
  const rewriting: Rewriting = {
    table,
    program: { ...change.program, assigned: reserved.map(({ id }) => id) },
    schema: () => retypedSchema(table.stableSchema, change, newId),
    parts: () => table.parts.filter(({ id }) => !changing.replaced.includes(id)),
    written: (result) => roundDone(changing, rewriting, result),
    failed: (error) => end(changing, rewriting, error),
    waiting: [],
  }
  beginRewrite(state, rewriting)
}

function roundDone(changing: Changing, rewriting: Rewriting, { parts, replaced = [] }: JobResult): void {
  const { state, table } = changing
  changing.replaced.push(...replaced)
  changing.written.push(...parts)
  const left = table.memtables.reduce((sum, { memtable }) => sum + memtable.rows, 0)
  const paused = state.pause?.owner === table
  if (paused && left === 0 && rewriting.parts().length === 0) {
    commit(changing, rewriting)
    return
  }
  const next = (): void => whenFlushed(state, flushTable(state, table), () => postRewrite(state, rewriting))
  changing.rounds++
  if (paused || (left > pauseRowsMax && changing.rounds < roundsMax)) next()
  else if (state.pause === null) state.pause = { owner: table, begin: next, begun: false }
  else state.later.push(() => roundDone(changing, rewriting, { parts: [] }))
}

function commit(changing: Changing, rewriting: Rewriting): void {
  const { state, table, change, newId, replaced, written } = changing
  let schema: TableSchema
  try {
    // The table may have a new column by now, even one with the same name, since inserts add columns.
    schema = retypedSchema(changeColumns(table.schema, change.changes), change, newId)
  } catch (thrown) {
    if (!(thrown instanceof SqlError)) throw thrown
    end(changing, rewriting, errorRecord(thrown))
    return
  }
  try {
    replaceParts(state, table, replaced, written, schema)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    changing.written.length = 0
    end(changing, rewriting, errorRecord(thrown))
    return
  }
  assert(
    table.memtables.every(({ memtable }) => memtable.rows === 0),
    'S5: no row in memory has the replaced columns',
  )
  state.catalog.replaceSchema(table, schema)
  enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(changing.requestId, {})] })
  end(changing, rewriting, null)
}

function end({ state, table, requestId, written }: Changing, rewriting: Rewriting, error: ErrorRecord | null): void {
  if (state.pause?.owner === table) state.pause = null
  endRewrite(state, rewriting, () => {
    if (error === null) return
    discardParts(state, written)
    sendReceiptNow(state, refusal(requestId, error))
  })
}
