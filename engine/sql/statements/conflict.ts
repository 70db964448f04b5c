// Checks the ON CONFLICT clause of INSERT.
//
// - A table with a declared PRIMARY KEY or UNIQUE, and without DEDUP keys, supports all of it (upsert.ts).
// - A table with DEDUP UPSERT KEYS replaces a stored row with equal keys anyway, as a whole. So DO UPDATE is accepted
//   for these keys only if it sets every other column to `excluded`, and has no WHERE. A table with DEDUP SKIP KEYS
//   keeps the stored row, so it does not support DO UPDATE. For DO NOTHING, session/insert-new.ts leaves out the rows
//   whose keys exist.
// - The clause has no effect where no conflict is possible: DO NOTHING without columns on a table without keys, or a
//   conflict column whose values are generated (serial, identity).

import { SqlError } from '../../base/errors.js'
import { findColumn, liveColumns, requireColumn, type TableVersion } from '../../storage/schema/schema.js'
import { quoteIdent } from '../../types/identifier.js'
import type * as ast from '../ast/ast.js'
import { counterOf } from '../relations/counters.js'
import { allKeysOfTable } from '../relations/table-keys.js'
import type { TargetColumn } from './planned.js'

/** Throws SqlError if the clause is not supported. */
export function checkConflict({ conflict }: ast.Insert, version: TableVersion, targets: readonly TargetColumn[]): void {
  if (conflict === null) return
  const { position, assignments } = conflict
  const keys = new Set(version.schema.dedupKeys)
  const named = namedColumns(conflict, version)
  if (named.length === 0 && assignments === null) return
  if (named.length === 0)
    throw new SqlError('ON CONFLICT DO UPDATE requires inference specification or constraint name', position)
  if (named.some((id) => isNumbered(id, version, targets))) return
  const isKey =
    keys.size > 0
      ? isSame(new Set(named), keys)
      : declaredKeys(version).some((key) => isSame(new Set(named), new Set(key)))
  if (!isKey)
    throw new SqlError(
      `there is no unique or exclusion constraint matching the ON CONFLICT specification, ${keysText(version, named)}`,
      position,
    )
  if (assignments === null || keys.size === 0) return
  if (version.schema.dedupSkips === true)
    throw new SqlError('ON CONFLICT DO UPDATE is not supported for DEDUP SKIP KEYS, which keep the first row', position)
  if (conflict.where !== null)
    throw new SqlError('ON CONFLICT .. DO UPDATE .. WHERE is not supported for DEDUP UPSERT KEYS', position)
  requireWhole(assignments, version, targets, keys)
}

/**
 * The declared keys with which the rows of the statement may conflict; null if it stores all rows, as for a table with
 * DEDUP UPSERT KEYS, which replaces rows when it stores others.
 */
export function conflictKeys(
  { conflict, columns, source }: ast.Insert,
  version: TableVersion,
): readonly (readonly number[])[] | null {
  if (conflict === null || version.schema.dedupKeys.length > 0) return null
  const named = namedColumns(conflict, version)
  const all = declaredKeys(version)
  const isOmitted = (id: number): boolean => {
    const column = version.schema.columns[id]
    const isFilled =
      columns.length === 0
        ? source.kind !== 'rows' || source.allDefault !== true
        : columns.some(({ name }) => findColumn(version.schema, name)?.id === id)
    return column !== undefined && !isFilled && counterOf(column) !== null
  }
  const keys = (named.length === 0 ? all : all.filter((key) => isSame(new Set(named), new Set(key)))).filter(
    (key) => !key.some(isOmitted),
  )
  return keys.length === 0 ? null : named.length === 0 ? keys : keys.slice(0, 1)
}

function declaredKeys({ schema }: TableVersion): readonly (readonly number[])[] {
  return (schema.keys ?? []).map(({ columnIds }) => columnIds)
}

/** The columns of the conflict target; empty without one. */
function namedColumns({ columns, constraint }: ast.Conflict, version: TableVersion): readonly number[] {
  return constraint === null
    ? columns.map((column) => requireColumn(version.schema, column).id)
    : constraintColumns(constraint, version)
}

/** Columns of the named key. Clients of PostgreSQL know the names from the catalog. */
function constraintColumns({ name, position }: ast.Name, { schema }: TableVersion): readonly number[] {
  const keys = allKeysOfTable(schema)
  const key = keys.find((one) => one.name.toLowerCase() === name.toLowerCase())
  if (key === undefined) throw new SqlError(`constraint "${name}" for table "${schema.name}" does not exist`, position)
  return key.columnIds
}

/** Whether the table's counter fills the column, so that no other row has the value. */
function isNumbered(id: number, { schema }: TableVersion, targets: readonly TargetColumn[]): boolean {
  const column = schema.columns[id]
  if (column === undefined || targets.some(({ columnId }) => columnId === id)) return false
  return counterOf(column) !== null
}

/** Whether rows with existing keys are left unchanged. */
export function keepsRows({ conflict }: ast.Insert, { schema }: TableVersion): boolean {
  return conflict !== null && conflict.assignments === null && schema.dedupKeys.length > 0
}

/** Throws unless every column is set from the new row, because the whole row is replaced. */
function requireWhole(
  assignments: readonly ast.Assignment[],
  version: TableVersion,
  targets: readonly TargetColumn[],
  keys: ReadonlySet<number>,
): void {
  const assigned = new Set<number>()
  for (const { column, value } of assignments) {
    const id = requireColumn(version.schema, column).id
    const path = value.kind === 'column' ? value.path.join('.').toLowerCase() : ''
    if (path !== `excluded.${column.name.toLowerCase()}`)
      throw new SqlError(
        `ON CONFLICT replaces the whole row: the column can only be set to excluded.${column.name} [column=${column.name}]`,
        column.position,
      )
    assigned.add(id)
  }
  const filled = new Set(targets.map(({ columnId }) => columnId))
  for (const { id, name } of liveColumns(version.schema)) {
    if (keys.has(id) || (filled.has(id) && assigned.has(id))) continue
    throw new SqlError(
      `ON CONFLICT replaces the whole row: every non-key column must be inserted and set to excluded [column=${name}]`,
      (assignments[0] as ast.Assignment).column.position,
    )
  }
}

/** For the error: the keys that the table has, or how to declare them. */
function keysText(version: TableVersion, named: readonly number[]): string {
  const { schema } = version
  const nameOf = (id: number): string => quoteIdent(schema.columns[id]?.name ?? '')
  if (schema.dedupKeys.length > 0) return `its DEDUP UPSERT KEYS are ${schema.dedupKeys.map(nameOf).join(', ')}`
  const declared = (schema.keys ?? []).map(({ columnIds }) => `(${columnIds.map(nameOf).join(', ')})`)
  if (declared.length > 0) return `the keys of the table are ${declared.join(', ')}`
  const keys = named.map(nameOf).join(', ')
  return `the table has no key: ALTER TABLE ${quoteIdent(schema.name)} ADD PRIMARY KEY (${keys})`
}

function isSame(left: ReadonlySet<number>, right: ReadonlySet<number>): boolean {
  return left.size === right.size && [...left].every((id) => right.has(id))
}
