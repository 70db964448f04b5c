// Caches the results of planning for recent statements, by their text: syntax trees and descriptions, and the plans of
// queries. Plain SQL texts and prepared statements share it. If a statement has parameters, their values are inserted
// into the cached plan at each execution. Statements without parameters that differ only in constants share plans, too:
// they are cached by their form (sql/parse/statement-form.ts), and their constants take the place of parameters.
//
// A cached plan is valid for one version of the catalog and one SQL dialect. The parameters must have the same types as
// when it was planned, be NULL where they were NULL, and be equal where planning depended on their values
// (sql/typing/deferred-values.ts).

import type { Session } from '../api/session.js'
import type { Description, ParsedStatement } from '../api/statements.js'
import { assert } from '../base/assert.js'
import { AssertionError } from '../base/errors.js'
import { Lru } from '../base/lru.js'
import { mayContainSecret } from '../base/secret-text.js'
import type { Query, Statement } from '../sql/ast/ast.js'
import type { Parameter } from '../sql/catalog.js'
import type { Dialect } from '../sql/dialect.js'
import { formOf, movesBetween, type StatementForm, type WrittenConstant } from '../sql/parse/statement-form.js'
import { queryMaker } from '../sql/plan/deferred-plan.js'
import type { Query as QueryOfPlan } from '../sql/plan/plan.js'
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
/** After so many plans for a form in a row that only one statement can use, its statements are planned on their own. */
const unsharedMax = 4
/** Statements of more parameters are not compared. */
const parametersMax = 64

type QueryPlan = Extract<PlannedStatement, { kind: 'query' }>

interface KeptPlan {
  readonly dialect: Dialect
  readonly types: readonly DataType[]
  readonly nulls: readonly boolean[]
  /** Parameters that planning has read. */
  readonly read: readonly { readonly index: number; readonly value: Value; readonly text: string | undefined }[]
  readonly planned: QueryPlan
  /** Makes the query with the values of an execution; null: there are none. */
  readonly deferred: { readonly values: DeferredValues; readonly make: () => QueryOfPlan } | null
  /** Those of the statement that was planned, if all statements of its form use the plan. */
  readonly constants: readonly WrittenConstant[]
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
  /** Plans in a row that no other execution can use, such as those that depend on the time, whatever the catalog. */
  unshared: number
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

/** How a plan for all statements of a form is made. */
interface FormRequest extends Pick<CacheRequest, 'sql' | 'dialect' | 'epoch'> {
  /** Returns a syntax tree that nobody else has. */
  readonly read: () => Statement
  readonly planned: (statement: Statement, deferred: DeferredValues) => PlannedStatement
}

export class StatementCache {
  readonly #statements = new Lru<string, KnownStatement>({ countMax: statementsMax, weightMax })
  #lastText = ''
  #lastForm: StatementForm | null = null

  /**
   * `read` parses. Statements with parameters are kept; others only if they come again while their plan is cached,
   * since texts that hold their values hardly do. If there is a plan for all statements of the form, the text is not
   * parsed until somebody looks at its syntax tree.
   */
  parse(text: string, read: (text: string) => readonly ParsedStatement[]): readonly ParsedStatement[] {
    if (text.length > parsedCharactersMax) return read(text)
    const known = this.#statements.get(text)
    if (known?.parsed) return known.parsed
    const form = this.formOf(text)
    const isKnownQuery = form !== null && (this.#statements.get(form.key)?.plans.length ?? 0) > 0
    const parsed = isKnownQuery ? [parsedLater(text, read)] : read(text)
    if (known !== undefined) known.parsed = parsed
    else if (text.includes('$')) this.#keep(text, { ...unknownStatement(), parsed })
    return parsed
  }

  /** Planning asks for the form of the text that was parsed last. */
  formOf(text: string): StatementForm | null {
    if (this.#lastText !== text) this.#lastForm = formOf(text)
    this.#lastText = text
    return this.#lastForm
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
  get(request: CacheRequest): QueryPlan | null {
    const kept = this.#find(request)
    return kept === null ? null : withValues(kept, request.parameters)
  }

  #find({ sql, parsed, parameters, dialect, epoch }: CacheRequest): KeptPlan | null {
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
      known.unshared = 0
      if (index > 0) plans.unshift(...plans.splice(index, 1))
      return kept
    }
    return null
  }

  /** Plans without the values that the plan can do without, and keeps it if other executions can use it. */
  plan(request: CacheRequest, plan: (deferred?: DeferredValues) => PlannedStatement): PlannedStatement {
    const { sql, parsed, parameters } = request
    if (keyOf(sql, parsed).length > textCharactersMax || parameters.length > parametersMax) return plan()
    if (this.#isUseless(request)) return plan()
    const values = parameters.length === 0 ? null : new DeferredValues(parameters)
    const planned = values === null ? plan() : plan(values)
    if (planned.kind !== 'query') return planned
    if (values !== null && planned.acts !== undefined) return plan()
    return withValues(this.#add(request, planned, values, []), parameters)
  }

  /**
   * The plan of a statement without parameters that all statements of its form can use. Null if the statement has to be
   * planned with its constants, which also reports its errors.
   */
  share(
    { key, constants }: StatementForm,
    { sql, dialect, epoch, read, planned: plan }: FormRequest,
  ): { readonly planned: QueryPlan; readonly cached: boolean } | null {
    const shared: CacheRequest = { sql: key, parsed: undefined, parameters: constants, dialect, epoch }
    try {
      const known = this.#find(shared)
      const made = known ?? this.#planForm(shared, constants, read, plan)
      if (made === null) return null
      const planned = withConstants(made, constants)
      // The same text finds it sooner.
      if (planned.cacheable) this.#add({ ...shared, sql, parameters: [] }, planned, null, [])
      return { planned, cached: known !== null }
    } catch (error) {
      if (error instanceof AssertionError) throw error
      // These constants are wrong, or need a plan of their own.
      this.#note(shared, 'useless')
      return null
    }
  }

  #planForm(
    shared: CacheRequest,
    constants: readonly WrittenConstant[],
    read: FormRequest['read'],
    plan: FormRequest['planned'],
  ): KeptPlan | null {
    const tree = this.#isUseless(shared) ? null : read()
    if (tree?.kind !== 'query') return null
    const values = new DeferredValues({ constants, tree })
    const planned = plan(tree, values)
    const isPlain = planned.kind === 'query' && planned.acts === undefined && planned.cacheable
    if (isPlain) return this.#add(shared, planned, values, constants)
    this.#note(shared, 'unshared')
    return null
  }

  #note({ sql, epoch }: CacheRequest, count: 'useless' | 'unshared'): void {
    const known = this.#statements.get(sql) ?? { ...unknownStatement(), epoch }
    known[count]++
    this.#keep(sql, known)
  }

  #isUseless({ sql, parsed }: CacheRequest): boolean {
    const { useless = 0, unshared = 0 } = this.#statements.get(keyOf(sql, parsed)) ?? {}
    return useless >= uselessMax || unshared >= unsharedMax
  }

  /** Keeps the plan if other executions may use it. */
  #add(
    { sql, parsed, parameters, dialect, epoch }: CacheRequest,
    planned: QueryPlan,
    values: DeferredValues | null,
    constants: readonly WrittenConstant[],
  ): KeptPlan {
    const key = keyOf(sql, parsed)
    const before = this.#statements.get(key)
    const known = before ?? { ...unknownStatement(), epoch }
    const made: KeptPlan = {
      dialect,
      types: parameters.map(({ type }) => type),
      nulls: parameters.map(({ value }) => value === null),
      read: [...(values?.read ?? [])].map((index) => {
        const { value, text } = parameters[index] as Parameter
        return { index, value, text }
      }),
      planned,
      deferred: values === null ? null : { values, make: values.with(parameters, () => queryMaker(planned.query)) },
      constants,
    }
    if (values !== null) known.useless++
    if (planned.cacheable) known.plans = [made, ...known.plans.slice(0, plansMax - 1)]
    if (planned.cacheable || (values !== null && before === undefined)) this.#keep(key, known)
    return made
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

/** A single query, as all statements of its form are. */
function parsedLater(text: string, read: (text: string) => readonly ParsedStatement[]): ParsedStatement {
  const start = text.search(/\S/)
  const end = text.length - (/[\s;]*$/.exec(text)?.[0].length ?? 0)
  let parsed: Query | null = null
  const query = (): Query => {
    const statement = parsed ?? read(text)[0]?.statement
    assert(statement?.kind === 'query', 'B4: statements of one form are of one kind')
    parsed = statement
    return statement
  }
  const statement: Query = {
    kind: 'query',
    position: start,
    end,
    get declarations() {
      return query().declarations
    },
    get commonTables() {
      return query().commonTables
    },
    get body() {
      return query().body
    },
    get orderBy() {
      return query().orderBy
    },
    get limit() {
      return query().limit
    },
  }
  return { text, start, end, statement }
}

function unknownStatement(): KnownStatement {
  return { parsed: null, description: null, epoch: -1, plans: [], useless: 0, unshared: 0 }
}

/** One of several statements of a text has the same positions only within the whole text. */
function keyOf(sql: string, parsed: ParsedStatement | undefined): string {
  return parsed === undefined || isWhole(parsed) ? sql : `${parsed.start} ${parsed.end} ${sql}`
}

function rowsIn(query: QueryOfPlan): number {
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
  return read.every(({ index, value, text }) => {
    const given = parameters[index] as Parameter
    return Object.is(given.value, value) && given.text === text
  })
}

function withValues({ planned, deferred }: KeptPlan, parameters: readonly Parameter[]): QueryPlan {
  if (deferred === null) return planned
  const { columns, tableNames, cacheable, sleepMs } = planned
  const query = deferred.values.with(parameters, deferred.make)
  return { kind: 'query', query, columns, tableNames, cacheable, sleepMs }
}

function withConstants(kept: KeptPlan, constants: readonly WrittenConstant[]): QueryPlan {
  const planned = withValues(kept, constants)
  const moved = movesBetween(kept.constants, constants)
  return moved === null ? planned : { ...planned, moved }
}
