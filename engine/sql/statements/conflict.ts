// Checks that ON CONFLICT of INSERT asks for something that the table does; anything else is an error. DO UPDATE is
// accepted for the DEDUP UPSERT KEYS of a table if it sets every other column to `excluded`, because such a table
// replaces the whole row with equal keys. DO NOTHING is accepted for these keys too; session/insert-new.ts then leaves
// out rows whose keys exist. The clause has no effect if no conflict is possible: DO NOTHING without columns on a table
// without keys, or a conflict column that is filled from a counter.

import { SqlError } from '../../base/errors.js'
import { findColumn, liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import { quoteIdent } from '../../types/identifier.js'
import type * as ast from '../ast/ast.js'
import { counterOf } from '../relations/counters.js'
import { allKeysOfTable } from '../relations/table-keys.js'
import { isWalTable } from '../relations/tables-relations.js'
import type { TargetColumn } from './planned.js'

/** Throws SqlError if the clause is not supported. */
export function checkConflict({ conflict }: ast.Insert, version: TableVersion, targets: readonly TargetColumn[]): void {
  if (conflict === null) return
  const { position, columns, constraint, assignments } = conflict
  const keys = new Set(version.schema.dedupKeys)
  const named =
    constraint === null ? columns.map((column) => columnOf(column, version)) : constraintColumns(constraint, version)
  if (keys.size === 0 && named.length === 0 && assignments === null) return
  if (named.some((id) => isNumbered(id, version, targets))) return
  if (keys.size === 0 || (named.length > 0 && !isSame(new Set(named), keys)))
    throw new SqlError(
      `there is no unique or exclusion constraint matching the ON CONFLICT specification, ${keysText(version, named)}`,
      position,
    )
  if (assignments === null) return
  if (named.length === 0)
    throw new SqlError('ON CONFLICT DO UPDATE requires inference specification or constraint name', position)
  demandWhole(assignments, version, targets, keys)
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
function demandWhole(
  assignments: readonly ast.Assignment[],
  version: TableVersion,
  targets: readonly TargetColumn[],
  keys: ReadonlySet<number>,
): void {
  const assigned = new Set<number>()
  for (const { column, value } of assignments) {
    const id = columnOf(column, version)
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
  const none = 'the table has no DEDUP UPSERT KEYS, and PRIMARY KEY and UNIQUE are not enforced here'
  const { timestampId } = schema
  if (timestampId < 0 || !isWalTable(version))
    return `${none}: create it with TIMESTAMP(..) PARTITION BY .. WAL DEDUP UPSERT KEYS(..), the timestamp among the keys`
  const keys = [...new Set([timestampId, ...named])].map(nameOf).join(', ')
  return `${none}: ALTER TABLE ${quoteIdent(schema.name)} DEDUP ENABLE UPSERT KEYS(${keys}), and name these`
}

function columnOf({ name, position }: ast.Name, { schema }: TableVersion): number {
  const column = findColumn(schema, name)
  if (column === undefined) throw SqlError.columnMissing(name, position)
  return column.id
}

function isSame(left: ReadonlySet<number>, right: ReadonlySet<number>): boolean {
  return left.size === right.size && [...left].every((id) => right.has(id))
}
