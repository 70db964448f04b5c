// Binds the two sides of a join. Joins by time (ASOF and similar) need the designated timestamp (the time column) of
// both sides. If a side is a sub-query that does not select its designated timestamp, the timestamp is added to that
// side as a hidden column.

import type * as ast from '../ast/ast.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { bindSource } from './from.js'
import { timeName } from './select.js'

/** Joins that compare designated timestamps. */
const byTime: ReadonlySet<ast.Join['kind']> = new Set(['asof', 'lt', 'splice', 'window', 'horizon'])

/** `join`: the one that the source is a side of. */
export function bindJoinedSource(source: ast.TableSource, join: ast.Join | undefined, context: BindContext): Relation {
  const isTimed = join !== undefined && byTime.has(join.kind)
  return isTimed ? bindTimedSource(source, context) : bindSource(source, context)
}

function bindTimedSource(source: ast.TableSource, context: BindContext): Relation {
  const relation = bindSource(source, context)
  const query = relation.timestampIndex < 0 ? queryOf(source, context) : undefined
  if (query === undefined) return relation
  context.timedQuery = query
  const timed = bindSource(source, context)
  context.timedQuery = null
  const { plan, columns, timestampIndex } = timed
  if (plan.columns[timestampIndex]?.name !== timeName) return relation
  return { ...timed, columns: columns.filter(({ index }) => index !== timestampIndex) }
}

function queryOf(source: ast.TableSource, { commonTables }: BindContext): ast.Query | undefined {
  if (source.kind === 'query source') return source.query
  if (source.kind !== 'table' || source.table.schema !== null) return undefined
  const key = source.table.name.toLowerCase()
  const common = commonTables.findLast((table) => table.key === key)
  return common !== undefined && 'query' in common ? common.query : undefined
}
