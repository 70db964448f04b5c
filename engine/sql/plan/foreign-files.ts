// The last step of planning a query that reads Parquet files of other programs: passes the conditions of filters to the
// scans below them, so that these can skip row groups, and finds the files of Iceberg tables that may contain matching
// rows.

import { conjuncts } from '../typing/walk-expression.js'
import { fileCondition } from './column-conditions.js'
import type { Plan, Query } from './plan.js'
import { mapInputs } from './walk-plan.js'

/** The optimised query, ready for execution. Throws NotReadyError until the files are local, or SqlError. */
export function withFiles(query: Query): Query {
  const subqueries = query.subqueries.map((subquery) => ({ ...subquery, plan: findFiles(subquery.plan) }))
  return { ...query, plan: findFiles(query.plan), subqueries }
}

function findFiles(plan: Plan): Plan {
  if (plan.kind === 'filter' && plan.input.kind === 'foreign') {
    const conditions = conjuncts(plan.predicate).flatMap((condition) => fileCondition(condition) ?? [])
    return { ...plan, input: found({ ...plan.input, conditions }) }
  }
  return plan.kind === 'foreign' ? found(plan) : mapInputs(plan, findFiles)
}

function found(plan: Extract<Plan, { kind: 'foreign' }>): Plan {
  const { find, conditions, wanted } = plan
  if (find === null) return plan
  const ofTable = conditions.flatMap(({ column, ...rest }) => {
    const index = wanted[column]?.index
    return index === undefined ? [] : [{ ...rest, column: index }]
  })
  return { ...plan, ...find(ofTable), find: null }
}
