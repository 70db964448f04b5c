// Binds WITH RECURSIVE to a plan node with the plans of both branches. The columns have the common types of both
// branches: if the first branch returns the INT 1 and the recursive one a LONG, the column is a LONG. Wider columns may
// in turn change the types of the recursive branch, which refers to them, so it is bound again until the types no
// longer change.

import { SqlError } from '../../base/errors.js'
import { sameType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Plan, PlanColumn } from '../plan/plan.js'
import { inputsOf } from '../plan/walk-plan.js'
import { type BindContext, nested, type WorkingTable } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { bindBody, limitedBy, plainRelation, withNames } from './query.js'
import { castColumns, unitedColumns } from './set-operation.js'

/** Types widen only a few times. */
const attemptsMax = 8

/** Undefined if the query does not refer to itself. */
export function bindRecursive(table: ast.CommonTable, context: BindContext): Relation | undefined {
  const { body } = table.query
  if (!table.recursive || body.kind !== 'set operation' || body.operation !== 'union') return undefined
  let isRecursive = true
  const relation = withNames(table.query, context, (query) => {
    const left = nested(context, body.position, () => bindBody(body.left, context).plan)
    const plan = recursivePlan(table, body, left, context)
    isRecursive = plan !== undefined
    if (plan === undefined) return plainRelation(left)
    const [order] = query.orderBy
    if (order !== undefined) throw new SqlError('ORDER BY is not supported in a recursive query', order.position)
    return limitedBy(plainRelation(plan), query.limit, context)
  })
  return isRecursive ? relation : undefined
}

function recursivePlan(
  table: ast.CommonTable,
  { all, right, position }: ast.SetOperation,
  left: Plan,
  context: BindContext,
): Plan | undefined {
  let columns = named(left.columns, table)
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const id = context.work.recursions++
    const working: WorkingTable = { name: table.name, key: table.key, id, columns, used: false }
    const subqueries = context.subqueries.length
    const step = nested(context, position, () => bindWith(working, right, context))
    if (!working.used) return undefined
    if (step.columns.length !== columns.length) throw new SqlError('queries have different number of columns', position)
    if (context.subqueries.slice(subqueries).some(({ plan }) => reads(plan, id)))
      throw new SqlError('a recursive query cannot refer to itself in a sub-query of an expression', table.position)
    const united = unitedColumns({ ...left, columns }, step, false)
    if (united.every(({ type }, index) => sameType(type, columns[index]?.type ?? type))) {
      const [first, next] = [castColumns(left, columns), castColumns(step, columns)]
      return { kind: 'recursive', columns, id, all, left: first, right: next, position: table.position }
    }
    context.subqueries.length = subqueries
    columns = united
  }
  throw new SqlError('column types of the recursive query do not converge: cast its columns', table.position)
}

function bindWith(working: WorkingTable, right: ast.QueryBody, context: BindContext): Plan {
  context.commonTables.push(working)
  try {
    return bindBody(right, context).plan
  } finally {
    context.commonTables.pop()
  }
}

/** Names of the WITH list also apply within the query. */
function named(columns: readonly PlanColumn[], { columns: names }: ast.CommonTable): readonly PlanColumn[] {
  if (names.length > columns.length) throw new SqlError('too many column aliases', names[0]?.position ?? 0)
  return columns.map((column, index) => ({ ...column, name: names[index]?.name ?? column.name }))
}

function reads(plan: Plan, id: number): boolean {
  return (plan.kind === 'working' && plan.id === id) || inputsOf(plan).some((input) => reads(input, id))
}
