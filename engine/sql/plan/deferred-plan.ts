// Copies a cached plan for one execution: each deferred constant, which stands for a parameter of a prepared statement
// or a result computed from parameters (typing/deferred-values.ts), is replaced by its value in this execution. Nodes
// of the plan without a deferred constant are shared with the cached plan. Which nodes need a copy is found once, when
// the plan is cached, so that an execution costs little.

import { isDeferred } from '../typing/deferred-values.js'
import type { Expression, Plan, Query } from './plan.js'
import { rangesWith } from './time-ranges.js'

type Make<Made> = () => Made
type Scan = Extract<Plan, { kind: 'scan' }>
type Project = Extract<Plan, { kind: 'project' }>
type Constant = Extract<Expression, { kind: 'constant' }>

/** Returns a function that makes the query with the values that its deferred constants have at the time of the call. */
export function queryMaker(query: Query): Make<Query> {
  const { plan, tables, subqueries, timestampIndex } = query
  const makePlan = maker(plan)
  const makeSubqueries = maker(subqueries)
  return () => ({ plan: makePlan?.() ?? plan, tables, subqueries: makeSubqueries?.() ?? subqueries, timestampIndex })
}

/** A function that copies the part; null if it contains no deferred constant. */
function maker<Part>(part: Part): Make<Part> | null {
  if (typeof part !== 'object' || part === null || ArrayBuffer.isView(part)) return null
  if (Array.isArray(part)) return listMaker(part) as Make<Part> | null
  const kind = (part as { readonly kind?: unknown }).kind
  if (kind === 'constant') return constantMaker(part as unknown as Constant) as Make<Part> | null
  if (kind === 'scan') return scanMaker(part as unknown as Scan) as Make<Part> | null
  // Contains rows and no expressions; there may be many.
  if (kind === 'values') return null
  if (kind === 'project') return projectMaker(part as unknown as Project) as Make<Part> | null
  return objectMaker(part)
}

function listMaker(items: readonly unknown[]): Make<unknown[]> | null {
  const makers = items.map(maker)
  if (makers.every((make) => make === null)) return null
  return () => items.map((item, index) => makers[index]?.() ?? item)
}

function constantMaker(constant: Constant): Make<Constant> | null {
  if (!isDeferred(constant)) return null
  const { type, position } = constant
  return () => ({ kind: 'constant', value: constant.value, type, position })
}

// Frequent nodes are copied member by member, because a generic copy takes microseconds.

function scanMaker(scan: Scan): Make<Scan> | null {
  const { columns, table, columnIds, ranges, filter, deferredRanges, viewSides, order } = scan
  const makeFilter = maker(filter)
  if (deferredRanges === undefined && makeFilter === null) return null
  return () => ({
    kind: 'scan',
    columns,
    table,
    columnIds,
    ranges: deferredRanges === undefined ? ranges : rangesWith(ranges, deferredRanges),
    filter: makeFilter?.() ?? filter,
    ...(viewSides === undefined ? {} : { viewSides }),
    order,
  })
}

function projectMaker({ columns, input, expressions }: Project): Make<Project> | null {
  const makeInput = maker(input)
  const makeExpressions = maker(expressions)
  if (makeInput === null && makeExpressions === null) return null
  return () => ({
    kind: 'project',
    columns,
    input: makeInput?.() ?? input,
    expressions: makeExpressions?.() ?? expressions,
  })
}

function objectMaker<Whole extends object>(whole: Whole): Make<Whole> | null {
  const makers = Object.entries(whole).flatMap(([name, member]) => {
    const make = maker(member)
    return make === null ? [] : [[name, make] as const]
  })
  if (makers.length === 0) return null
  return () => {
    const made: Record<string, unknown> = { ...whole } as Record<string, unknown>
    for (const [name, make] of makers) made[name] = make()
    return made as Whole
  }
}
