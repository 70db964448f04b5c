// From a bound relation to a query that is ready to run.

import type { ResultColumn } from '../../engine.js'
import type { TableVersion } from '../../storage/schema.js'
import type { BindContext } from '../bind/bind-context.js'
import type { Relation } from '../bind/scope.js'
import { optimiseQuery } from '../plan/optimise.js'
import type { Plan, Query } from '../plan/plan.js'
import { printQuery } from '../plan/print-plan.js'
import type { PlannedStatement } from './planned.js'

/** Tables of the statement by their index. */
export function tableAt({ catalog, tables }: BindContext, index: number): TableVersion | undefined {
  const id = tables[index]
  return catalog.tables().find(({ schema }) => schema.id === id)
}

export function queryOf(plan: Plan, timestampIndex: number, context: BindContext): Query {
  const byIndex = new Map<number, TableVersion | undefined>()
  const tables = (index: number): TableVersion | undefined => {
    if (!byIndex.has(index)) byIndex.set(index, tableAt(context, index))
    return byIndex.get(index)
  }
  return optimiseQuery(
    { plan, tables: [...context.tables], subqueries: [...context.subqueries], timestampIndex },
    tables,
  )
}

export function planRelation(relation: Relation, context: BindContext): Extract<PlannedStatement, { kind: 'query' }> {
  const columns: ResultColumn[] = relation.plan.columns.map(({ name, type }) => ({ name, type }))
  const query = queryOf(relation.plan, relation.timestampIndex, context)
  const names = context.tables.map((_, index) => tableAt(context, index)?.schema.name ?? '')
  return {
    kind: 'query',
    query,
    columns,
    explain: () => printQuery(query, (table) => names[table] ?? ''),
    cacheable: context.cacheable,
  }
}
