// Replaces aggregations over a table by the stored buckets of its materialized views, where these give the same result
// and the setting query.view.rewrite permits it. This file finds the views and binds their queries; the planner rule
// (plan/view-rewrite.ts) compares them with the plan.

import { assert } from '../../base/assert.js'
import { SqlError } from '../../base/errors.js'
import { storedColumns, type TableSchema, type TableVersion } from '../../storage/schema/schema.js'
import { intervalTicks, type SampleInterval } from '../../types/timestamp-floor.js'
import { tableRelation, viewRelation } from '../bind/from.js'
import type { Plan } from '../plan/plan.js'
import { type RewriteView, withStoredBuckets } from '../plan/view-rewrite.js'
import type { BindContext } from '../scope/bind-context.js'
import type { Relation } from '../scope/scope.js'
import { sampleOf, storedQuery } from '../scope/stored-view.js'
import { scalarCall } from '../typing/make-call.js'

/** The query, with stored buckets of views where these give the same result. */
export function fromStoredBuckets(relation: Relation, context: BindContext): Relation {
  const { viewRewrite, readsStored, pending, own, refreshes, catalog } = context
  if (viewRewrite === 'off' || !readsStored || pending.length > 0 || own !== null || refreshes !== null) return relation
  const views = catalog.tables().filter(({ schema }) => hasStored(schema))
  if (views.length === 0) return relation
  const plan = withStoredBuckets(relation.plan, {
    tables: (table) => context.tables[table],
    exact: viewRewrite === 'exact',
    viewsOf: ({ id }) =>
      views
        .filter(({ schema }) => schema.materialized?.baseId === id)
        .flatMap((version) => offered(version, context) ?? [])
        .sort((x, y) => lengthOf(y.query) - lengthOf(x.query)),
    quotient: (total, count) => scalarCall('/', [total, count], total.position, context),
  })
  return { ...relation, plan }
}

function hasStored({ materialized, stored }: TableSchema): boolean {
  return (
    materialized !== undefined && materialized.live === undefined && stored !== undefined && stored.ranges.length > 0
  )
}

/** Undefined if the view's query does not bind, or has other columns than when the view was created. */
function offered(version: TableVersion, context: BindContext): RewriteView | undefined {
  const { materialized, name } = version.schema
  try {
    const plan = materialized === undefined ? undefined : viewRelation(materialized.sql, context).plan
    const query = plan === undefined ? undefined : storedQuery(version, plan)
    if (query === undefined) return undefined
    return { version, query, stored: () => scanOf(version, name, context) }
  } catch (thrown) {
    if (thrown instanceof SqlError) return undefined
    throw thrown
  }
}

function scanOf(version: TableVersion, name: string, context: BindContext): Extract<Plan, { kind: 'scan' }> {
  const { plan } = tableRelation(version, name, context, storedColumns(version.schema))
  assert(plan.kind === 'scan', 'B2: the rows of a table are a scan')
  return plan
}

const days = { M: 30, y: 365 } as const
const dayMicros = 86_400_000_000

/** The approximate length of the buckets. */
function lengthOf(query: Plan): number {
  const interval: SampleInterval | undefined = sampleOf(query)?.interval
  if (interval === undefined) return 0
  const { unit, count } = interval
  const ticks = intervalTicks(interval, 'TIMESTAMP')
  return ticks === null ? (unit === 'y' ? days.y : days.M) * count * dayMicros : Number(ticks)
}
