// Turns a bound query into a statement that the engine can execute: the optimised plan, the tables and sub-queries that
// it reads, and a description of the result columns, with the table column that each one comes from, if any.

import type { ResultColumn } from '../../api/statements.js'
import { oidAsName } from '../bind/catalog-calls.js'
import { columnExpression } from '../bind/order.js'
import { firstOid } from '../pg-catalog/types.js'
import { baseColumnsOf } from '../plan/base-columns.js'
import { withFiles } from '../plan/foreign-files.js'
import { optimiseQuery } from '../plan/optimise.js'
import type { Plan, Query } from '../plan/plan.js'
import { attributesOf } from '../relations/entries.js'
import { type BindContext, isDescribed } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import type { Explained, PlannedStatement } from './planned.js'

export function queryOf(plan: Plan, timestampIndex: number, context: BindContext): Query {
  const { tables, subqueries, evaluation } = context
  const query: Query = {
    plan,
    tables: tables.map(({ schema }) => schema.id),
    subqueries: [...subqueries],
    timestampIndex,
  }
  const optimised = optimiseQuery(query, (index) => tables[index], evaluation)
  return isDescribed(context) ? optimised : withFiles(optimised)
}

export function planRelation(
  bound: Relation,
  context: BindContext,
  explained?: Explained,
): Extract<PlannedStatement, { kind: 'query' }> {
  const relation = withNames(bound, context)
  const columns = columnsOf(relation.plan, context)
  const query = queryOf(relation.plan, relation.timestampIndex, context)
  const names = context.tables.map(({ schema }) => schema.name)
  return {
    kind: 'query',
    query,
    columns,
    tableNames: names,
    cacheable: context.cacheable,
    sleepMs: context.work.sleepMs,
    ...(explained === undefined ? {} : { explained }),
  }
}

function columnsOf(plan: Plan, { tables }: BindContext): ResultColumn[] {
  const baseColumns = baseColumnsOf(plan)
  return plan.columns.map(({ name, type }, index): ResultColumn => {
    const found = baseColumns[index] ?? null
    const schema = found === null ? undefined : tables[found.table]?.schema
    if (found === null || schema === undefined) return { name, type }
    const attribute = attributesOf(schema).get(found.columnId)
    const baseColumn = {
      relation: firstOid + schema.id,
      attribute: attribute?.number ?? 0,
      modifier: attribute?.modifier,
    }
    return { name, type, baseColumn }
  })
}

/** Replaces oids that are shown as names, such as `oid::regclass`, by these names. */
function withNames(relation: Relation, context: BindContext): Relation {
  const { plan } = relation
  const shown = plan.columns.map((column, index) => oidAsName(columnExpression(column, index), context))
  if (shown.every(({ kind }) => kind === 'column')) return relation
  const columns = plan.columns.map((column, index) => ({ ...column, type: shown[index]?.type ?? column.type }))
  return { ...relation, plan: { kind: 'project', columns, input: plan, expressions: shown } }
}
