// Caches the results of planning for recent statements, by their text: syntax trees and descriptions, and the plans of
// queries. Plain SQL texts and prepared statements share it. If a statement has parameters, their values are inserted
// into the cached plan at each execution.
//
// A cached plan is valid for one version of the catalog and one SQL dialect. The parameters must have the same types as
// when it was planned, be NULL where they were NULL, and be equal where planning depended on their values
// (sql/typing/deferred-values.ts).

import type { Session } from '../api/session.js'
import type { Description, ParsedStatement } from '../api/statements.js'
import { Lru } from '../base/lru.js'
import { mayContainSecret } from '../base/secret-text.js'
import type { Parameter } from '../sql/catalog.js'
import type { Dialect } from '../sql/dialect.js'
import { queryMaker } from '../sql/plan/deferred-plan.js'
import type { Query } from '../sql/plan/plan.js'
import { plansOf } from '../sql/plan/walk-plan.js'
import { describeStatement } from '../sql/statements/describe.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { requireStatementRights } from '../sql/statements/statement-rights.js'
import { DeferredValues } from '../sql/typing/deferred-values.js'
import { type DataType, sameType } from '../types/column-types.js'
import type { Value } from '../types/value.js'
import { isWhole, validationOf } from './plan-helpers.js'

const statementsMax = 256
/** Characters of all texts, and of the rows that plans hold as if they were text. */
const weightMax = 1024 * 1024
const rowWeight = 16
/** Longer texts are hardly sent twice. */
const textCharactersMax = 16_384
/** Longer texts have large syntax trees. */
const parsedCharactersMax = 4096
/** Of one statement: page sizes, kinds of parameters. */
const plansMax = 8
/** After so many plans in a row that no execution has used again, none is kept until the catalog changes. */
const uselessMax = 16
/** Statements of more parameters are not compared. */
const parametersMax = 64

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

interface KeptPlan {
  readonly dialect: Dialect
  readonly types: readonly DataType[]
  readonly nulls: readonly boolean[]
  /** Parameters that planning has read. */
  readonly read: readonly { readonly index: number; readonly value: Value }[]
  readonly planned: QueryPlan
  /** Makes the query with the values of an execution; null: there are none. */
  readonly deferred: { readonly values: DeferredValues; readonly make: () => Query } | null
}

interface KeptDescription {
  /** What it depends on besides the statement. */
  readonly key: string
  readonly epoch: number
  readonly description: Description
}

interface KnownStatement {
  parsed: readonly ParsedStatement[] | null
  description: KeptDescription | null
  /** Of the plans. */
  epoch: number
  /** The last one that was used is the first. */
  plans: KeptPlan[]
  useless: number
}

/** The statement of a plan or description. */
export interface CacheRequest {
  readonly sql: string
  readonly parsed: ParsedStatement | undefined
  readonly parameters: readonly Parameter[]
  readonly dialect: Dialect
  /** Of the catalog. */
  readonly epoch: number
}

export class StatementCache {
  readonly #statements = new Lru<string, KnownStatement>({ countMax: statementsMax, weightMax })

  /**
   * `read` parses. Statements with parameters are kept; others only if they come again while their plan is cached,
   * since texts that hold their values hardly do.
   */
  parse(text: string, read: (text: string) => readonly ParsedStatement[]): readonly ParsedStatement[] {
    if (text.length > parsedCharactersMax) return read(text)
    const known = this.#statements.get(text)
    if (known?.parsed) return known.parsed
    const parsed = read(text)
    if (known !== undefined) known.parsed = parsed
    else if (text.includes('$')) this.#keep(text, { ...unknownStatement(), parsed })
    return parsed
  }

  /**
   * Kept for queries and for rows to insert while the catalog has not changed: their columns and parameters are those
   * of the tables that they name. Names and types of columns depend on the dialect. `plan` plans with these parameters;
   * `lasts`: whether the columns do not depend on data.
   */
  describe(
    parsed: ParsedStatement,
    session: Session,
    oids: readonly number[],
    epoch: number,
    plan: (parameters: readonly Parameter[]) => PlannedStatement,
    lasts: () => boolean,
  ): Description {
    const { statement } = parsed
    requireStatementRights(statement, session)
    const known = this.#statements.get(keyOf(parsed.text, parsed))
    const key = `${statement.kind} ${session.dialect.name} ${oids.join()}`
    const kept = known?.description
    if (kept?.epoch === epoch && kept.key === key) return kept.description
    const description = describeStatement(parsed, oids, (parameters) => validationOf(plan(parameters)))
    const isPlain = statement.kind === 'query' || statement.kind === 'insert'
    if (isPlain && lasts() && known !== undefined) known.description = { key, epoch, description }
    return description
  }

  /** Null: the statement has to be planned. */
  get({ sql, parsed, parameters, dialect, epoch }: CacheRequest): QueryPlan | null {
    const known = this.#statements.get(keyOf(sql, parsed))
    if (known === undefined) return null
    if (known.epoch !== epoch) {
      known.epoch = epoch
      known.plans = []
      known.useless = 0
      return null
    }
    const { plans } = known
    for (const [index, kept] of plans.entries()) {
      if (kept.dialect !== dialect || !isGoodFor(kept, parameters)) continue
      known.useless = 0
      if (index > 0) plans.unshift(...plans.splice(index, 1))
      return withValues(kept, parameters)
    }
    return null
  }

  /** Plans without the values that the plan can do without, and keeps it if other executions can use it. */
  plan(request: CacheRequest, plan: (deferred?: DeferredValues) => PlannedStatement): PlannedStatement {
    const { sql, parsed, parameters, dialect, epoch } = request
    const key = keyOf(sql, parsed)
    const before = this.#statements.get(key)
    const known = before ?? { ...unknownStatement(), epoch }
    if (key.length > textCharactersMax || parameters.length > parametersMax) return plan()
    if (known.useless >= uselessMax) return plan()
    const values = parameters.length === 0 ? null : new DeferredValues(parameters)
    const planned = values === null ? plan() : plan(values)
    if (planned.kind !== 'query') return planned
    if (values !== null && planned.acts !== undefined) return plan()
    const made: KeptPlan = {
      dialect,
      types: parameters.map(({ type }) => type),
      nulls: parameters.map(({ value }) => value === null),
      read: [...(values?.read ?? [])].map((index) => ({ index, value: (parameters[index] as Parameter).value })),
      planned,
      deferred: values === null ? null : { values, make: values.with(parameters, () => queryMaker(planned.query)) },
    }
    if (values !== null) known.useless++
    if (planned.cacheable) known.plans = [made, ...known.plans.slice(0, plansMax - 1)]
    if (planned.cacheable || (values !== null && before === undefined)) this.#keep(key, known)
    return withValues(made, parameters)
  }

  clear(): void {
    this.#statements.clear()
  }

  #keep(key: string, known: KnownStatement): void {
    if (mayContainSecret(key)) return
    const rows = known.plans.reduce((sum, { planned }) => sum + rowsIn(planned.query), 0)
    this.#statements.set(key, known, key.length + rows * rowWeight)
  }
}

function unknownStatement(): KnownStatement {
  return { parsed: null, description: null, epoch: -1, plans: [], useless: 0 }
}

/** One of several statements of a text has the same positions only within the whole text. */
function keyOf(sql: string, parsed: ParsedStatement | undefined): string {
  return parsed === undefined || isWhole(parsed) ? sql : `${parsed.start} ${parsed.end} ${sql}`
}

function rowsIn(query: Query): number {
  let rows = 0
  for (const plan of plansOf(query)) if (plan.kind === 'values') rows += plan.rows.length
  return rows
}

function isGoodFor({ types, nulls, read }: KeptPlan, parameters: readonly Parameter[]): boolean {
  if (types.length !== parameters.length) return false
  for (let index = 0; index < types.length; index++) {
    const { value, type } = parameters[index] as Parameter
    if ((value === null) !== nulls[index] || !sameType(type, types[index] as DataType)) return false
  }
  for (const { index, value } of read) if (!Object.is((parameters[index] as Parameter).value, value)) return false
  return true
}

function withValues({ planned, deferred }: KeptPlan, parameters: readonly Parameter[]): QueryPlan {
  if (deferred === null) return planned
  const { columns, tableNames, cacheable, sleepMs } = planned
  const query = deferred.values.with(parameters, deferred.make)
  return { kind: 'query', query, columns, tableNames, cacheable, sleepMs }
}
