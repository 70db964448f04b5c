// PRIMARY KEY and UNIQUE constraints of CREATE TABLE and ALTER TABLE: checks, derives names and renames (also ALTER
// INDEX). They are stored as metadata for upserts, and for clients of PostgreSQL, which read keys from the catalog. The
// writer enforces only keys that are declared with ENFORCED. Such a key must contain the designated timestamp (the
// table's time column), by which the writer finds the stored rows to compare.

import { SqlError } from '../../base/errors.js'
import { nameCharactersMax } from '../../base/limits.js'
import type { NewKey } from '../../storage/jobs/messages.js'
import type { DeclaredKey, TableSchema } from '../../storage/schema/schema.js'
import { severalPrimary } from '../../storage/schema/schema-change.js'
import type * as ast from '../ast/ast.js'
import type { BindContext } from '../scope/bind-context.js'
import type { PlannedStatement } from '../statements/planned.js'
import { placedInSchema } from './namespaces.js'

type Definition = Pick<ast.ColumnDefinition, 'name' | 'quoted' | 'position' | 'keys'>

/** Table-level definitions of the keys that are declared at columns. */
export function keysOfColumns(columns: readonly Definition[]): ast.KeyDefinition[] {
  return columns.flatMap(({ keys, ...column }) => keys.map((key) => ({ ...key, columns: [column] })))
}

/** The keys to store. `columns` are those of the table after the statement; `isAdded`: it exists. Throws SqlError. */
export function newKeys(
  definitions: readonly ast.KeyDefinition[],
  { name: table, keys: before = [] }: Pick<TableSchema, 'name' | 'keys'>,
  columns: readonly { readonly name: string }[],
  context: BindContext,
  isAdded = false,
): NewKey[] {
  if (isAdded) requireNotEnforced(definitions)
  const known = new Map(columns.map(({ name }) => [name.toLowerCase(), name]))
  const [, second] = [...before, ...definitions].filter(({ primary }) => primary)
  if (second !== undefined) throw severalPrimary(table, definitions.findLast(({ primary }) => primary)?.position)
  const place = placedInSchema(table)
  const taken = takenNames(place.schema, { name: table, keys: before }, context)
  return withoutRepeats(definitions).map(({ name, primary, nullsEqual, enforced, columns: written }) => {
    const names = written.map((column, index) => {
      const found = known.get(column.name.toLowerCase())
      if (found === undefined)
        throw new SqlError(`column "${column.name}" named in key does not exist`, column.position)
      if (written.findIndex((other) => other.name.toLowerCase() === column.name.toLowerCase()) < index)
        throw new SqlError(`column "${column.name}" appears twice in ${keyWords(primary)} constraint`, column.position)
      return found
    })
    if (name !== null) checkKeyName(name, taken)
    const chosen = name?.name ?? freeName(usualName(place.name, primary, names), taken)
    taken.add(chosen.toLowerCase())
    return {
      ...{ name: chosen, primary, columns: names },
      ...(nullsEqual ? { nullsEqual } : {}),
      ...(enforced ? { enforced } : {}),
    }
  })
}

/** Keys for CREATE TABLE .. LIKE: the same columns, with newly derived names. */
export function copiedKeys({ keys = [], columns }: TableSchema, name: string, context: BindContext): NewKey[] {
  const columnOf = (id: number): ast.Name => ({ name: columns[id]?.name ?? '', quoted: true, position: 0 })
  const definitions = keys.map(({ primary, nullsEqual = false, enforced = false, columnIds }) => {
    return { position: 0, name: null, primary, nullsEqual, enforced, columns: columnIds.map(columnOf) }
  })
  return newKeys(definitions, { name }, columns, context)
}

type Keyed = Pick<TableSchema, 'columns' | 'timestampId' | 'dedupKeys'>

/** Throws SqlError if the key cannot be enforced. */
export function requireEnforceable(
  definitions: readonly ast.KeyDefinition[],
  { columns, timestampId, dedupKeys }: Keyed,
): void {
  const key = definitions.find(({ enforced }) => enforced)
  if (key === undefined) return
  const found = key.columns.flatMap(
    ({ name }) => columns.find((one) => one.name.toLowerCase() === name.toLowerCase()) ?? [],
  )
  if (timestampId < 0 || !found.some(({ id }) => id === timestampId))
    throw new SqlError(
      'PRIMARY KEY .. ENFORCED must contain the designated timestamp, by which stored rows with the key are found',
      key.position,
    )
  const array = found.find(({ type }) => type.name === 'ARRAY')
  if (array !== undefined)
    throw new SqlError(`an enforced key cannot contain an ARRAY [column=${array.name}]`, key.position)
  if (dedupKeys.length > 0)
    throw new SqlError('a table has either PRIMARY KEY .. ENFORCED, which refuses rows, or DEDUP keys', key.position)
}

/** Throws SqlError: the rows of an existing table may have keys in common. */
function requireNotEnforced(keys: readonly ast.KeyDefinition[]): void {
  const key = keys.find(({ enforced }) => enforced)
  if (key !== undefined) throw new SqlError('PRIMARY KEY .. ENFORCED is possible only in CREATE TABLE', key.position)
}

function keyWords(primary: boolean): string {
  return primary ? 'primary key' : 'unique'
}

/** The name that PostgreSQL would choose. */
export function usualName(table: string, primary: boolean, columns: readonly string[]): string {
  return primary ? `${table}_pkey` : `${table}_${columns.join('_')}_key`
}

/** Drops a UNIQUE on the same columns as an earlier key, as PostgreSQL does. */
function withoutRepeats(definitions: readonly ast.KeyDefinition[]): ast.KeyDefinition[] {
  const primaryFirst = [...definitions].sort((left, right) => Number(right.primary) - Number(left.primary))
  const textOf = ({ columns }: ast.KeyDefinition): string => columns.map(({ name }) => name.toLowerCase()).join()
  return primaryFirst.filter((key, index) => primaryFirst.findIndex((other) => textOf(other) === textOf(key)) === index)
}

/**
 * Lower-case names of relations and keys in the schema that a new key must not use. `table` is the table before or
 * after the statement.
 */
function takenNames(schema: string, table: Pick<TableSchema, 'name' | 'keys'>, { catalog }: BindContext): Set<string> {
  const isOther = ({ name }: { readonly name: string }): boolean => name.toLowerCase() !== table.name.toLowerCase()
  const others = catalog.tables().flatMap((version) => (isOther(version.schema) ? [version.schema] : []))
  const tables = [...others, table]
  const names = [...tables, ...catalog.views(), ...(catalog.sequences?.() ?? [])].flatMap(({ name }) => {
    const place = placedInSchema(name)
    return place.schema === schema ? [place.name] : []
  })
  const keys = tables.flatMap(({ name, keys = [] }) => (placedInSchema(name).schema === schema ? keys : []))
  return new Set([...names, ...keys.map(({ name }) => name)].map((name) => name.toLowerCase()))
}

function checkKeyName({ name, position }: ast.Name, taken: ReadonlySet<string>): void {
  if (name === '' || name.length > nameCharactersMax)
    throw new SqlError(`invalid constraint name [constraint=${name}]`, position)
  if (taken.has(name.toLowerCase())) throw new SqlError(`relation "${name}" already exists`, position)
}

function freeName(usual: string, taken: ReadonlySet<string>): string {
  let name = usual
  for (let number = 1; taken.has(name.toLowerCase()); number++) name = `${usual}${number}`
  return name
}

/** The key with that name; undefined if the name means another constraint or none. */
export function keyNamed(name: string, { keys = [] }: TableSchema): DeclaredKey | undefined {
  return keys.find((key) => key.name.toLowerCase() === name.toLowerCase())
}

/** The key under its new name. Throws SqlError if there is no such key or the name is in use. */
export function renamedKey(
  { name, newName }: Pick<Extract<ast.AlterAction, { kind: 'rename constraint' }>, 'name' | 'newName'>,
  schema: TableSchema,
  context: BindContext,
): DeclaredKey {
  const key = keyNamed(name.name, schema)
  if (key === undefined)
    throw new SqlError(`constraint "${name.name}" for table "${schema.name}" does not exist`, name.position)
  checkKeyName(newName, takenNames(placedInSchema(schema.name).schema, schema, context))
  return { ...key, name: newName.name }
}

/** ALTER INDEX .. RENAME TO: renames the key, since a key and its index share one name. */
export function planAlterIndex({ index, newName }: ast.AlterIndex, context: BindContext): PlannedStatement {
  const tag = 'ALTER INDEX'
  const place = placedInSchema(index.name)
  const tables = context.catalog.tables().map(({ schema }) => schema)
  const table = tables.find((schema) => {
    return placedInSchema(schema.name).schema === place.schema && keyNamed(place.name, schema) !== undefined
  })
  if (newName === null || table === undefined) return { kind: 'none', tag }
  const { id: keyId, name } = renamedKey({ name: { ...index, name: place.name }, newName }, table, context)
  return { kind: 'change', changes: [{ kind: 'renameKey', tableId: table.id, keyId, name }], tag }
}
