// Several actions in one ALTER TABLE, as migrations of the PostgreSQL world send them: one change, so all of them are done or
// none. Each is bound to what those before it leave.

import { SqlError } from '../../base/errors.js'
import type { ColumnChange, NewType, RewriteProgram, SchemaChange } from '../../storage/jobs/messages.js'
import type { TableSchema, TableVersion } from '../../storage/schema/schema.js'
import { changeColumns } from '../../storage/schema/schema-change.js'
import type * as ast from '../ast/ast.js'

interface Gathered {
  readonly types: NewType[]
  readonly changes: ColumnChange[]
}

/** `changesOf` one action; `programOf` all new types. */
export function together(
  actions: readonly ast.AlterAction[],
  version: TableVersion,
  changesOf: (action: ast.AlterAction, now: TableVersion) => readonly SchemaChange[],
  programOf: (types: readonly NewType[]) => RewriteProgram,
): readonly SchemaChange[] {
  const [first, second] = actions
  if (first !== undefined && second === undefined) return changesOf(first, version)
  const gathered: Gathered = { types: [], changes: [] }
  let { schema } = version
  for (const action of actions) {
    schema = placed(action, () =>
      changesOf(action, { ...version, schema }).reduce(
        (now, change) => gather(change, gathered, version.schema, now),
        schema,
      ),
    )
  }
  const { types, changes } = gathered
  const tableId = version.schema.id
  if (types.length > 0) return [{ kind: 'changeTypes', tableId, types, changes, program: programOf(types) }]
  return changes.length === 0 ? [] : [{ kind: 'changeColumns', tableId, changes }]
}

/** What is wrong with the table and not with a word is told at the action. */
function placed<Result>(action: ast.AlterAction, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SqlError) || error.position > 0) throw error
    throw new SqlError(error.message, action.position)
  }
}

/** The schema behind the change. Types are those of the columns' ids before the statement: the writer gives new ones. */
function gather(
  change: SchemaChange,
  { types, changes }: Gathered,
  before: TableSchema,
  now: TableSchema,
): TableSchema {
  switch (change.kind) {
    case 'changeTypes':
      for (const { columnId } of change.types) demandKept(columnId, before, types)
      types.push(...change.types)
      changes.push(...change.changes)
      return changeColumns(retyped(now, change.types), change.changes)
    case 'dropColumn':
      demandKept(change.columnId, before, types)
      break
    case 'alterColumn':
      demandKept(change.columnId, before, [])
      break
    case 'addColumn':
    case 'addKey':
    case 'dropKey':
      break
    case 'changeColumns':
      return change.changes.reduce((schema, one) => gather(one, { types, changes }, before, schema), now)
    default:
      throw new SqlError('the action stands alone in an ALTER TABLE', 0)
  }
  changes.push(change)
  return changeColumns(now, [change])
}

/** Refuses columns that the statement adds, or gives another type. */
function demandKept(columnId: number, { columns }: TableSchema, types: readonly NewType[]): void {
  const column = columns[columnId]
  if (column === undefined) throw new SqlError('a column is added and changed by the same statement', 0)
  if (types.some((type) => type.columnId === columnId))
    throw new SqlError(`the type of a column is changed by the same statement [column=${column.name}]`, 0)
}

function retyped(schema: TableSchema, types: readonly NewType[]): TableSchema {
  const columns = schema.columns.map((column) => {
    const type = types.find(({ columnId }) => columnId === column.id)?.type
    return type === undefined ? column : { ...column, type }
  })
  return { ...schema, columns }
}
