// Planner: plans statements on the main thread, after checking the session's rights. Plans are cached by text
// (plan-cache.ts), plans with parameters by statement (prepared-plans.ts), and so are descriptions of prepared statements
// (prepared-texts.ts).

import type { Session } from '../api/session.js'
import type { CheckedStatement, Description, ExecuteOptions, ParsedStatement } from '../api/statements.js'
import { demandRight } from '../base/rights.js'
import type { Parameter } from '../sql/catalog.js'
import { explanationOf } from '../sql/statements/explain.js'
import { type PlanOptions, planParsed, readScript, readStatement } from '../sql/statements/plan-statement.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { demandStatementRights } from '../sql/statements/statement-rights.js'
import type { DeferredValues } from '../sql/typing/deferred-values.js'
import type { CatalogOf } from './local-catalog.js'
import type { LocalEngineOptions } from './local-options.js'
import { PlanCache } from './plan-cache.js'
import { activityOf, asDescribed, bindsAlone, checkedOf, isPlain, isWhole } from './plan-helpers.js'
import { PreparedPlanCache } from './prepared-plans.js'
import { PreparedTexts } from './prepared-texts.js'
import { hasDraft } from './seen-tables.js'

export type Requested = Pick<ExecuteOptions, 'session' | 'parsed'> &
  Partial<Pick<ExecuteOptions, 'explain'>> & { readonly parameters: readonly Parameter[] }

export class Planner {
  readonly #options: Pick<LocalEngineOptions, 'view' | 'queries' | 'clock' | 'reload'>
  readonly #catalogOf: CatalogOf
  readonly #plans = new PlanCache()
  readonly #retained = new PreparedPlanCache()
  readonly #texts = new PreparedTexts()

  constructor(options: Pick<LocalEngineOptions, 'view' | 'queries' | 'clock' | 'reload'>, catalogOf: CatalogOf) {
    this.#options = options
    this.#catalogOf = catalogOf
  }

  parse(text: string): readonly ParsedStatement[] {
    return this.#texts.parse(text, () => readScript(text).map((statement) => ({ text, ...statement })))
  }

  describe(parsed: ParsedStatement, session: Session, oids: readonly number[]): Description {
    const own = { session: asDescribed(session), parsed }
    const plan = (parameters: readonly Parameter[]) => this.plan(parsed.text, { ...own, parameters }).planned
    const epoch = hasDraft(session) ? Number.NaN : this.#options.view.epoch
    return this.#texts.describe(parsed, session, oids, epoch, plan)
  }

  validate(sql: string, session: Session): CheckedStatement {
    return checkedOf(this.plan(sql, { session: asDescribed(session), parameters: [] }).planned)
  }

  /** `cached`: the plan came from a cache. Throws when the statement is invalid, or the session lacks a right. */
  plan(
    sql: string,
    requested: Requested,
    nowMicros = this.#options.clock.nowMicros(),
  ): { readonly planned: PlannedStatement; readonly cached: boolean } {
    const { view } = this.#options
    const { session, parsed, parameters } = requested
    const isShared = session.internal !== true
    const cacheable = isShared && isPlain(requested) && (parsed === undefined || isWhole(parsed))
    const key = `${session.dialect.name} ${sql}`
    const known = cacheable ? this.#plans.get(key, view.epoch) : undefined
    if (known !== undefined) {
      demandRight(session, 'read')
      return { planned: known, cached: true }
    }
    const prepared = parsed !== undefined && !cacheable && isShared && bindsAlone(requested) ? parsed : null
    const bound = prepared === null ? null : this.#retained.get(prepared, view.epoch, session, parameters)
    if (bound !== null) {
      demandRight(session, 'read')
      return { planned: bound, cached: true }
    }
    const written = parsed?.statement ?? readStatement(sql)
    const statement = requested.explain && written.kind !== 'query' ? explanationOf(written) : written
    demandStatementRights(statement, session)
    const options = this.#planOptions(sql, requested, nowMicros)
    const plan = (deferred?: DeferredValues): PlannedStatement => planParsed(statement, sql, { ...options, deferred })
    const planned = prepared === null ? plan() : this.#retained.plan(prepared, view.epoch, session, parameters, plan)
    if (cacheable && planned.kind === 'query' && planned.cacheable) this.#plans.set(key, view.epoch, planned)
    return { planned, cached: false }
  }

  /** Options for planning a further query of the statement, over its result rows or its RETURNING list. */
  options(
    requested: Pick<Requested, 'parameters' | 'session'>,
    nowMicros = this.#options.clock.nowMicros(),
  ): PlanOptions {
    return this.#planOptions(null, requested, nowMicros)
  }

  #planOptions(
    sql: string | null,
    { parameters, session }: Pick<Requested, 'parameters' | 'session'>,
    nowMicros: number,
  ): PlanOptions {
    const { queries, clock } = this.#options
    const planned = sql === null ? null : activityOf(queries.nextQueryId, sql, session, clock)
    const catalog = this.#catalogOf({ session, planned })
    return { catalog, parameters, nowMicros, ...session, reload: () => this.#reload(session) }
  }

  #reload(session: Session): boolean {
    demandRight(session, 'admin')
    this.#plans.clear()
    this.#retained.clear()
    return this.#options.reload?.() ?? false
  }
}
