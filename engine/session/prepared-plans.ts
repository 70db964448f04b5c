// Prepared-plan cache: plans of parameterised queries, by statement. An execution binds its parameter values to a
// cached plan. A plan can be reused while the catalog epoch is unchanged, for parameters of the same types and the same
// nullness. Parameters whose values planning has used (sql/typing/deferred-values.ts) must also be equal.

import type { Session } from '../api/session.js'
import type { ParsedStatement } from '../api/statements.js'
import { notesAbout } from '../base/notes.js'
import type { Parameter } from '../sql/catalog.js'
import type { Dialect } from '../sql/dialect.js'
import { queryMaker } from '../sql/plan/deferred-plan.js'
import type { Query } from '../sql/plan/plan.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { DeferredValues } from '../sql/typing/deferred-values.js'
import { type DataType, sameType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

/** Plans of a statement, for example for different page sizes or parameter types. */
const plansMax = 8
/**
 * After this many plans in a row that were not reused, the statement is planned each time until the catalog changes.
 */
const uselessMax = 16
/** Statements with more parameters are not cached. */
const parametersMax = 64

interface PreparedPlan {
  readonly dialect: Dialect
  readonly types: readonly DataType[]
  readonly nulls: readonly boolean[]
  /** Parameters whose values planning has used. */
  readonly read: readonly { readonly index: number; readonly value: Value }[]
  readonly planned: QueryPlan
  readonly deferred: DeferredValues
  readonly make: () => Query
}

interface PreparedStatementPlans {
  epoch: number
  /** The most recently used plan is the first. */
  readonly plans: PreparedPlan[]
  useless: number
}

export class PreparedPlanCache {
  #statements = notesAbout<ParsedStatement, PreparedStatementPlans>()

  /** null when the statement has to be planned. */
  get(
    statement: ParsedStatement,
    epoch: number,
    { dialect }: Pick<Session, 'dialect'>,
    parameters: readonly Parameter[],
  ): QueryPlan | null {
    const cached = this.#statements.get(statement)
    if (cached === undefined) return null
    if (cached.epoch !== epoch) {
      cached.epoch = epoch
      cached.plans.length = 0
      cached.useless = 0
      return null
    }
    const { plans } = cached
    for (let index = 0; index < plans.length; index++) {
      const plan = plans[index] as PreparedPlan
      if (plan.dialect !== dialect || !isGoodFor(plan, parameters)) continue
      cached.useless = 0
      if (index > 0) plans.unshift(...plans.splice(index, 1))
      return withValues(plan, parameters)
    }
    return null
  }

  /** Plans the statement with parameters bound late where possible, and caches the plan if it can be reused. */
  plan(
    statement: ParsedStatement,
    epoch: number,
    { dialect }: Pick<Session, 'dialect'>,
    parameters: readonly Parameter[],
    plan: (deferred: DeferredValues | undefined) => PlannedStatement,
  ): PlannedStatement {
    const cached = this.#statements.get(statement) ?? { epoch, plans: [], useless: 0 }
    const isWanted = statement.statement.kind === 'query' && parameters.length <= parametersMax
    if (!isWanted || cached.useless >= uselessMax) return plan(undefined)
    const deferred = new DeferredValues(parameters)
    const planned = plan(deferred)
    if (planned.kind !== 'query') return planned
    if (planned.acts !== undefined) return plan(undefined)
    const made: PreparedPlan = {
      dialect,
      types: parameters.map(({ type }) => type),
      nulls: parameters.map(({ value }) => value === null),
      read: [...deferred.read].map((index) => ({ index, value: (parameters[index] as Parameter).value })),
      planned,
      deferred,
      make: deferred.with(parameters, () => queryMaker(planned.query)),
    }
    cached.useless++
    if (planned.cacheable) keep(cached, made)
    this.#statements.set(statement, cached)
    return withValues(made, parameters)
  }

  clear(): void {
    this.#statements = notesAbout()
  }
}

function keep({ plans }: PreparedStatementPlans, made: PreparedPlan): void {
  if (plans.length >= plansMax) plans.pop()
  plans.unshift(made)
}

function isGoodFor({ types, nulls, read }: PreparedPlan, parameters: readonly Parameter[]): boolean {
  if (types.length !== parameters.length) return false
  for (let index = 0; index < types.length; index++) {
    const { value, type } = parameters[index] as Parameter
    if ((value === null) !== nulls[index] || !sameType(type, types[index] as DataType)) return false
  }
  for (const { index, value } of read) if (!Object.is((parameters[index] as Parameter).value, value)) return false
  return true
}

function withValues({ planned, deferred, make }: PreparedPlan, parameters: readonly Parameter[]): QueryPlan {
  const { columns, tableNames, cacheable, sleepMs } = planned
  return { kind: 'query', query: deferred.with(parameters, make), columns, tableNames, cacheable, sleepMs }
}
