// Plans a statement on the main thread: takes its text and returns its plan, from the statement cache if possible.
// Access rights are checked in either case.

import type { Session } from '../api/session.js'
import type { CheckedStatement, Description, ExecuteOptions, ParsedStatement } from '../api/statements.js'
import { whenReady } from '../base/errors.js'
import { requireRight } from '../base/rights.js'
import type { Statement } from '../sql/ast/ast.js'
import type { Parameter } from '../sql/catalog.js'
import type { StatementForm } from '../sql/parse/statement-form.js'
import type { AffectedRows } from '../sql/statements/affected-rows.js'
import { ConflictChanges } from '../sql/statements/conflict-changes.js'
import { explanationOf } from '../sql/statements/explain.js'
import {
  type PlanOptions,
  planParsed,
  planPreview,
  readScript,
  readStatement,
} from '../sql/statements/plan-statement.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { requireStatementRights } from '../sql/statements/statement-rights.js'
import type { DeferredValues } from '../sql/typing/deferred-values.js'
import type { CatalogOf } from './local-catalog.js'
import type { LocalEngineOptions } from './local-options.js'
import { activityOf, asDescribed, checkedOf, hasOwnChanges, isWhole } from './plan-helpers.js'
import { PlannedValues, type RunPlanned } from './planned-values.js'
import { hasDraft } from './seen-tables.js'
import { StatementCache } from './statement-cache.js'

export type Requested = Pick<ExecuteOptions, 'session' | 'parsed'> &
  Partial<Pick<ExecuteOptions, 'explain'>> & {
    readonly parameters: readonly Parameter[]
  }

interface PlannedWith {
  readonly planned: PlannedStatement
  /** The plan came from a cache. */
  readonly cached: boolean
  /** Queries that the plan has needed, for Session.planning: its parts that are planned later find their rows there. */
  readonly planning?: object
}

type PlannerOptions = Pick<
  LocalEngineOptions,
  'view' | 'queries' | 'clock' | 'reload' | 'viewRewrite' | 'viewRead' | 'sharesPlans'
>

export class Planner {
  readonly conflicts = new ConflictChanges()
  readonly #options: PlannerOptions
  readonly #catalogOf: CatalogOf
  readonly #statements = new StatementCache()
  readonly #run: RunPlanned

  constructor(options: PlannerOptions, catalogOf: CatalogOf, run: RunPlanned) {
    this.#options = options
    this.#catalogOf = catalogOf
    this.#run = run
  }

  parse(text: string): readonly ParsedStatement[] {
    return this.#statements.parse(text, () => readScript(text).map((statement) => ({ text, ...statement })))
  }

  describe(parsed: ParsedStatement, session: Session, oids: readonly number[]): Description {
    const nowMicros = this.#options.clock.nowMicros()
    const values = this.#valuesOf(session)
    const described = asDescribed(session)
    const plan = (parameters: readonly Parameter[]) =>
      this.#plan(parsed.text, { session: described, parsed, parameters }, nowMicros, values).planned
    const epoch = hasDraft(session) ? Number.NaN : this.#options.view.epoch
    return values.attempt(() => this.#statements.describe(parsed, session, oids, epoch, plan, () => !values.isUsed))
  }

  validate(sql: string, session: Session): CheckedStatement {
    return checkedOf(this.plan(sql, { session: asDescribed(session), parameters: [] }).planned)
  }

  /** Throws when the statement is invalid, or the session lacks a right. */
  plan(sql: string, requested: Requested, nowMicros = this.#options.clock.nowMicros()): PlannedWith {
    const values = this.#valuesOf(requested.session)
    const made = values.attempt(() => this.#plan(sql, requested, nowMicros, values))
    return values.isUsed ? { ...made, planning: values } : made
  }

  /** Those of the earlier attempts, if the statement is planned again. */
  #valuesOf({ planning }: Session): PlannedValues {
    return planning instanceof PlannedValues ? planning : new PlannedValues(this.#run)
  }

  #plan(sql: string, requested: Requested, nowMicros: number, values: PlannedValues): PlannedWith {
    const { session, parsed, parameters } = requested
    const { dialect } = session
    const { epoch } = this.#options.view
    const request = isKept(requested) ? { sql, parsed, parameters, dialect, epoch } : null
    const known = request === null ? null : this.#statements.get(request)
    if (known !== null) {
      requireRight(session, 'read')
      return { planned: known, cached: true }
    }
    const planned = (statement: Statement, deferred?: DeferredValues): PlannedStatement => {
      requireStatementRights(statement, session)
      return planParsed(statement, sql, { ...this.#planOptions(sql, requested, nowMicros, values), deferred })
    }
    const form = request === null ? null : this.#formOf(sql, requested)
    const shared =
      form === null
        ? null
        : this.#statements.share(form, { sql, dialect, epoch, read: () => readStatement(sql), planned })
    if (shared !== null) {
      requireRight(session, 'read')
      return shared
    }
    const written = parsed?.statement ?? readStatement(sql)
    const statement = requested.explain && written.kind !== 'query' ? explanationOf(written) : written
    const plan = (deferred?: DeferredValues): PlannedStatement => planned(statement, deferred)
    const isQuery = request !== null && statement.kind === 'query'
    return { planned: isQuery ? this.#statements.plan(request, plan) : plan(), cached: false }
  }

  /** The form of a statement whose plan may come from another one of the form. */
  #formOf(sql: string, { session, parameters, explain }: Requested): StatementForm | null {
    if (this.#options.sharesPlans === false || parameters.length > 0) return null
    return explain === true || session.describes === true ? null : this.#statements.formOf(sql)
  }

  /** The rows that a change would affect, and the request for planning its RETURNING list. */
  async preview<R extends Omit<Requested, 'explain'>>(
    parsed: ParsedStatement,
    requested: R,
  ): Promise<{ readonly touched: AffectedRows; readonly options: R }> {
    let options = requested
    const touched = await whenReady((planning) => {
      options = resumed(requested, planning)
      return planPreview(parsed, this.options(options))
    })
    return { touched, options }
  }

  /** Options for planning a further query of the statement, over its result rows or its RETURNING list. */
  options(requested: Omit<Requested, 'explain'>, nowMicros = this.#options.clock.nowMicros()): PlanOptions {
    return this.#planOptions(null, requested, nowMicros, this.#valuesOf(requested.session))
  }

  #planOptions(
    sql: string | null,
    { parameters, session }: Omit<Requested, 'explain'>,
    nowMicros: number,
    values: PlannedValues,
  ): PlanOptions {
    const { queries, clock } = this.#options
    const planned = sql === null ? null : activityOf(queries.nextQueryId, sql, session, clock)
    const catalog = this.#catalogOf({ session, planned })
    return {
      catalog,
      parameters,
      nowMicros,
      ...session,
      rowsNow: values.rowsFor(session, parameters),
      viewRewrite: this.#options.viewRewrite ?? 'on',
      viewRead: this.#options.viewRead ?? 'fresh',
      reload: () => this.#reload(session),
    }
  }

  #reload(session: Session): boolean {
    requireRight(session, 'admin')
    this.#statements.clear()
    return this.#options.reload?.() ?? false
  }
}

/** The request with what earlier attempts to plan it have begun. */
export function resumed<R extends { readonly session: Session }>(requested: R, planning: object | undefined): R {
  return planning === undefined ? requested : anew(requested, planning)
}

/** The request to plan the statement from the start, with what attempts at that have begun. */
export function anew<R extends { readonly session: Session }>(requested: R, planning: object | undefined): R {
  return { ...requested, session: { ...requested.session, planning } }
}

/** Whether other executions may use the plan: it depends on the text, the parameters and the catalog alone. */
function isKept({ session, parsed, parameters }: Requested): boolean {
  if (session.internal === true || hasOwnChanges(session)) return false
  if (parsed !== undefined && parsed.statement.kind !== 'query') return false
  if (parameters.length === 0) return parsed === undefined || isWhole(parsed)
  return parsed !== undefined && parameters.every(({ slot }) => slot === undefined)
}
