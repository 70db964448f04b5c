// Combines several actions of one ALTER TABLE, as migrations for PostgreSQL send them, into a single atomic change.
// Each action is bound to the schema that the previous ones leave.

import { SqlError } from '../../base/errors.js'
import type { ColumnChange, NewType, RewriteProgram, SchemaChange } from '../../storage/jobs/messages.js'
import type { TableSchema, TableVersion } from '../../storage/schema/schema.js'
import { changeColumns } from '../../storage/schema/schema-change.js'
import type * as ast from '../ast/ast.js'

interface Gathered {
  readonly types: NewType[]
  readonly changes: ColumnChange[]
}

/** `changesOf` binds one action; `programOf` makes the rewrite for all changed column types. */
export function combinedChange(
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

/** Errors without a position, about the table rather than a word, get the position of the action. */
function placed<Result>(action: ast.AlterAction, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SqlError) || error.position > 0) throw error
    throw new SqlError(error.message, action.position)
  }
}

/**
 * The schema after a change. Type changes refer to the column ids before the statement, since the writer assigns new
 * ones.
 */
function gather(
  change: SchemaChange,
  { types, changes }: Gathered,
  before: TableSchema,
  now: TableSchema,
): TableSchema {
  switch (change.kind) {
    case 'changeTypes':
      for (const { columnId } of change.types) requireRetained(columnId, before, types)
      types.push(...change.types)
      changes.push(...change.changes)
      return changeColumns(retyped(now, change.types), change.changes)
    case 'dropColumn':
      requireRetained(change.columnId, before, types)
      break
    case 'alterColumn':
      requireRetained(change.columnId, before, [])
      break
    case 'addColumn':
    case 'addKey':
    case 'dropKey':
      break
    case 'changeColumns':
      return change.changes.reduce((schema, one) => gather(one, { types, changes }, before, schema), now)
    default:
      throw new SqlError('the action cannot be combined with others in one ALTER TABLE', 0)
  }
  changes.push(change)
  return changeColumns(now, [change])
}

/** Throws if the statement adds the column or changes its type. */
function requireRetained(columnId: number, { columns }: TableSchema, types: readonly NewType[]): void {
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
