// Plans CREATE, ALTER and DROP TYPE for enumerations. The catalog stores an enumeration with its labels. A column of
// that type is a SYMBOL column whose definition contains the labels as well, because code that writes rows checks them
// without the catalog. ALTER TYPE therefore changes both.

import { SqlError } from '../../base/errors.js'
import type { Enumeration, TableSchema } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { entrySchema } from '../relations/view-table.js'
import type { BindContext } from '../scope/bind-context.js'
import { checkTableName } from './create-table.js'
import type { PlannedStatement } from './planned.js'
import { isTaken } from './sequences.js'

type Changes = Extract<PlannedStatement, { kind: 'change' }>['changes']

const labelBytesMax = 63

export function planCreateType(statement: ast.CreateType, context: BindContext): PlannedStatement {
  const { type, labels, ifNotExists } = statement
  const { name, position } = type
  checkTableName(name, position)
  for (const [index, label] of labels.entries()) checkLabel(label, labels.slice(0, index), position)
  if (ifNotExists && context.catalog.enumeration?.(name) !== undefined) return changed([], 'CREATE TYPE')
  checkFree(type, context)
  const schema = { ...entrySchema(name, Number(context.evaluation.nowMicros)), labels }
  return changed([{ kind: 'createTable', ifNotExists: false, schema }], 'CREATE TYPE')
}

function checkLabel(label: string, others: readonly string[], position: number): void {
  if (label === '' || Buffer.byteLength(label, 'utf8') > labelBytesMax)
    throw new SqlError(`invalid enum label "${label}": it must have 1 to ${labelBytesMax} bytes`, position)
  if (others.includes(label)) throw new SqlError(`enum label "${label}" already exists`, position)
}

function checkFree({ name, position }: ast.TableName, { catalog }: BindContext): void {
  if (catalog.enumeration?.(name) !== undefined) throw new SqlError(`type "${name}" already exists`, position)
  if (isTaken(name, catalog)) throw new SqlError(`table, view or sequence already exists [name=${name}]`, position)
}

function existing({ name, position }: ast.TableName, { catalog }: BindContext): Enumeration {
  const found = catalog.enumeration?.(name)
  if (found === undefined) throw new SqlError(`type does not exist [type=${name}]`, position)
  return found
}

export function planAlterType({ type, action }: ast.AlterType, context: BindContext): PlannedStatement {
  const found = existing(type, context)
  const { id: tableId } = found
  if (action === null) return changed([], 'ALTER TYPE')
  if (action.kind === 'rename') {
    const { name, position } = action.newName
    checkTableName(name, position)
    checkFree(action.newName, context)
    return changed(
      [...columnChanges({ ...found, name }, context), { kind: 'renameTable', tableId, name }],
      'ALTER TYPE',
    )
  }
  if (action.ifNotExists && found.labels.includes(action.label)) return changed([], 'ALTER TYPE')
  checkLabel(action.label, found.labels, type.position)
  const labels = [...found.labels]
  labels.splice(placeOf(action.place, labels, type.position), 0, action.label)
  const columns = columnChanges({ ...found, labels }, context)
  return changed([...columns, { kind: 'alterTable', tableId, changes: { labels } }], 'ALTER TYPE')
}

function placeOf(
  place: Extract<ast.AlterType['action'], { kind: 'add value' }>['place'],
  labels: readonly string[],
  position: number,
): number {
  if (place === null) return labels.length
  const index = labels.indexOf(place.label)
  if (index < 0) throw new SqlError(`enum label "${place.label}" does not exist`, position)
  return place.before ? index : index + 1
}

/** Changes that update the type in the definitions of its columns. */
function columnChanges(enumeration: Enumeration, { catalog }: BindContext): Changes {
  return catalog.tables().flatMap(({ schema }) =>
    columnsOf(schema, enumeration.id).map(({ id: columnId, declared }) => {
      const changed = declared?.elements === undefined ? { enumeration } : { elements: enumeration }
      return { kind: 'alterColumn', tableId: schema.id, columnId, declared: { ...declared, ...changed } } as const
    }),
  )
}

function columnsOf({ columns }: TableSchema, typeId: number): TableSchema['columns'] {
  return columns.filter(
    ({ dropped, declared }) => !dropped && (declared?.enumeration ?? declared?.elements)?.id === typeId,
  )
}

export function planDropType({ types, ifExists }: ast.DropType, context: BindContext): PlannedStatement {
  const ids = types.flatMap((type) => {
    if (ifExists && context.catalog.enumeration?.(type.name) === undefined) return []
    const { id } = existing(type, context)
    for (const { schema } of context.catalog.tables()) {
      const [column] = columnsOf(schema, id)
      if (column === undefined) continue
      const place = `[type=${type.name}, table=${schema.name}, column=${column.name}]`
      throw new SqlError(`the type cannot be dropped because a column uses it ${place}`, type.position)
    }
    return [id]
  })
  return changed(
    [...new Set(ids)].map((tableId) => ({ kind: 'dropTable', tableId })),
    'DROP TYPE',
  )
}

function changed(changes: Changes, tag: string): PlannedStatement {
  return { kind: 'change', changes, tag }
}
