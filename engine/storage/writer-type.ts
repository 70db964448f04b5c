// ALTER COLUMN .. TYPE: the column's values are cast into a new column, whose id takes the old one's place.
//
//   reserve   the new column enters the schema as a dropped one, by a log frame: its id is taken for ever
//   round     what is flushed and lacks the column is written anew with it; rows that came meanwhile are the next round's
//   pause     when little is left, or after roundsMax rounds, the writer takes no input until the last round is done
//   commit    one record of the manifest: the parts of all rounds, and the schema in which the columns change places
//
// Readers see the old column until the commit. A crash before it leaves the reserved id and files that nothing names.
//
// Invariant: at the commit every row of the table is in parts that have the column (or in none), so no generation and no
// log frame behind the manifest's flushedTxn knows the old one.

import { type ErrorRecord, errorRecord, FileError, SqlError } from '../base/errors.js'
import { tableColumnsMax } from '../base/limits.js'
import { type DataType, sameType } from '../types/column-types.js'
import type { JobResult, RewriteProgram } from './messages.js'
import type { DeclaredColumn, PartDescriptor, TableSchema } from './schema.js'
import { discardParts, flushTable, whenFlushed } from './writer-flush.js'
import { beginRewrite, endRewrite, postRewrite, replaceParts } from './writer-rewrite.js'
import { replaceSchema } from './writer-schema.js'
import { answerNow, enqueue, type Rewriting, receiptOf, refusal, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

/** Rounds without a pause. */
const roundsMax = 4
/** Rows that a pause may take at once. */
const pauseRowsMax = 100_000

export interface TypeChange {
  readonly columnId: number
  readonly type: DataType
  readonly declared?: DeclaredColumn
  /** Casts the old column; its one assigned column is the new one, whatever id it names. */
  readonly program: RewriteProgram
}

interface Changing {
  readonly state: WriterState
  readonly table: WriterTable
  readonly requestId: number
  readonly change: TypeChange
  readonly newId: number
  /** Ids of parts that the new ones stand for. */
  readonly replaced: number[]
  readonly written: PartDescriptor[]
  rounds: number
}

/** Throws SqlError, ResourceError; every other outcome ends in a receipt. */
export function changeColumnType(state: WriterState, requestId: number, table: WriterTable, change: TypeChange): void {
  const { schema } = table
  const column = schema.columns[change.columnId]
  if (column === undefined || column.dropped) throw new SqlError('column does not exist', 0)
  if (sameType(column.type, change.type)) {
    enqueue(state, { receipts: [receiptOf(requestId, { existed: true })] })
    return
  }
  const newId = schema.columns.length
  if (newId >= tableColumnsMax) throw new SqlError(`too many columns [limit=${tableColumnsMax}]`, 0)
  const { type, declared } = change
  const said = declared === undefined ? {} : { declared }
  const reserved = { id: newId, name: column.name, type, ...said, dropped: true }
  replaceSchema(state, null, table, {
    ...schema,
    version: schema.version + 1,
    columns: [...schema.columns, reserved],
  })
  if (change.type.name === 'SYMBOL') table.addDictionary(newId)
  const changing: Changing = { state, table, requestId, change, newId, replaced: [], written: [], rounds: 0 }
  const rewriting: Rewriting = {
    table,
    program: { ...change.program, assigned: [newId] },
    schema: () => changedSchema(table.stableSchema, change.columnId, newId),
    parts: () => table.parts.filter(({ id }) => !changing.replaced.includes(id)),
    written: (result) => roundDone(changing, rewriting, result),
    failed: (error) => end(changing, rewriting, error),
    waiting: [],
  }
  beginRewrite(state, rewriting)
}

/** The schema in which the new column stands where the old one stood. */
function changedSchema(schema: TableSchema, oldId: number, newId: number): TableSchema {
  const old = schema.columns[oldId]
  if (old === undefined) throw new RangeError('a column that is changed exists')
  const columns = schema.columns.map((column) => {
    if (column.id === oldId) return { ...column, dropped: true }
    if (column.id !== newId) return column
    const value = old.default === undefined ? {} : { default: old.default }
    return { ...column, ...value, name: old.name, dropped: false, place: old.place ?? old.id }
  })
  const dedupKeys = schema.dedupKeys.map((id) => (id === oldId ? newId : id))
  return { ...schema, version: schema.version + 1, columns, dedupKeys }
}

function roundDone(changing: Changing, rewriting: Rewriting, { parts, replaced = [] }: JobResult): void {
  const { state, table } = changing
  changing.replaced.push(...replaced)
  changing.written.push(...parts)
  const left = table.generations.reduce((sum, { memtable }) => sum + memtable.rows, 0)
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
  const schema = changedSchema(table.schema, change.columnId, newId)
  try {
    replaceParts(state, table, replaced, written, schema)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    changing.written.length = 0
    end(changing, rewriting, errorRecord(thrown))
    return
  }
  state.catalog.replaceSchema(table, schema)
  enqueue(state, { versions: [table.nextVersion()], receipts: [receiptOf(changing.requestId, {})] })
  end(changing, rewriting, null)
}

function end({ state, table, requestId, written }: Changing, rewriting: Rewriting, error: ErrorRecord | null): void {
  if (state.pause?.owner === table) state.pause = null
  endRewrite(state, rewriting, () => {
    if (error === null) return
    discardParts(state, written)
    answerNow(state, refusal(requestId, error))
  })
}
