// Checks FROM and JOIN of a materialized view's query. The first table of FROM is the base. A refresh recomputes a time
// bucket: it joins the base's rows in this bucket with the current rows of the other tables, and aggregates the result.
// So each joined row must contain a row of the base, and must not depend on other rows of the base. RIGHT JOIN, for
// example, is rejected, because it also returns rows without a row of the base, which belong to no bucket.

import { SqlError } from '../../base/errors.js'
import type { TableSchema, TableVersion } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { type Catalog, relationNames } from '../catalog.js'
import type { Plan } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'

/** The table or view that the view is computed from. Throws SqlError for sources that a view cannot have. */
export function baseOf(
  { from, joins }: ast.Select,
  written: ast.TableName | null,
  { catalog }: BindContext,
): TableSchema {
  if (from === null || from.kind !== 'table')
    throw new SqlError('a materialized view reads a table, which FROM must name', from?.position ?? 0)
  if (from.timestamp !== null)
    throw new SqlError('a materialized view needs the designated timestamp of its table', from.timestamp.position)
  const base = tableOf(from.table, catalog)
  for (const join of joins) checkJoin(join, base, catalog)
  if (written !== null && written.name.toLowerCase() !== from.table.name.toLowerCase())
    throw notBase(written, joins, from.table.name)
  return base
}

function notBase(written: ast.TableName, joins: readonly ast.Join[], first: string): SqlError {
  const { name, position } = written
  const isJoined = joins.some(
    ({ source }) => source.kind === 'table' && source.table.name.toLowerCase() === name.toLowerCase(),
  )
  if (!isJoined) return new SqlError(`base table is not referenced in materialized view query: ${name}`, position)
  return new SqlError(
    `the base table must be the first one of FROM: join the others with it [first=${first}]`,
    position,
  )
}

function tableOf({ name, position, schema }: ast.TableName, catalog: Catalog): TableSchema {
  const version: TableVersion | undefined = schema === null ? catalog.table(name) : undefined
  if (version?.schema.materialized?.live !== undefined)
    throw new SqlError('live views are not allowed as base tables of materialized views', position)
  if (version !== undefined) return version.schema
  if (schema === null && catalog.view(name) !== undefined)
    throw new SqlError('a materialized view over a view is not supported: name the table', position)
  throw SqlError.tableMissing(name, position, relationNames(catalog))
}

/** Why a refresh of some buckets cannot compute the join. */
const refused: Readonly<Partial<Record<ast.JoinKind, readonly [name: string, reason: string]>>> = {
  right: ['RIGHT JOIN', 'rows of the joined table without one of the base belong to no bucket'],
  full: ['FULL JOIN', 'rows of the joined table without one of the base belong to no bucket'],
  splice: ['SPLICE JOIN', 'rows of the joined table belong to no bucket of the base'],
  window: ['WINDOW JOIN', 'its windows are computed over all rows of the base'],
  horizon: ['HORIZON JOIN', 'its times lie outside of the bucket of their row'],
}

function checkJoin({ kind, source, position }: ast.Join, base: TableSchema, catalog: Catalog): void {
  const [name, reason] = refused[kind] ?? []
  if (name !== undefined) throw new SqlError(`${name} is not supported in materialized views: ${reason}`, position)
  if (source.kind !== 'table')
    throw new SqlError('a materialized view joins tables, which JOIN must name', source.position)
  if (source.timestamp !== null)
    throw new SqlError(
      'a materialized view needs the designated timestamp of a joined table',
      source.timestamp.position,
    )
  const joined = tableOf(source.table, catalog)
  const below = new Set(tablesBelow(base, catalog))
  if (tablesBelow(joined, catalog).some((id) => below.has(id)))
    throw new SqlError(
      'a materialized view cannot join the base table with itself or with a view of it: a bucket would depend on rows of others',
      source.position,
    )
}

/** The ids of the table or view and of all that it reads by way of FROM. */
function tablesBelow({ id, materialized }: TableSchema, catalog: Catalog): number[] {
  const next = catalog.tables().find(({ schema }) => schema.id === materialized?.baseId)
  return next === undefined ? [id] : [id, ...tablesBelow(next.schema, catalog)]
}

/** Whether this column of joined rows comes from the first table of FROM. */
export function isOfFirst(plan: Plan, index: number): boolean {
  switch (plan.kind) {
    case 'project': {
      const made = plan.expressions[index]
      return made?.kind === 'column' && isOfFirst(plan.input, made.index)
    }
    case 'join':
      return index < plan.left.columns.length && isOfFirst(plan.left, index)
    case 'filter':
    case 'sort':
      return isOfFirst(plan.input, index)
    default:
      return true
  }
}
