// State that is shared while one statement is bound: the catalog, the session, parameters, the tables and sub-queries
// found so far, and the limits on their number.

import type { OwnRows, PendingChange, Session, ViewRefresh } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { sqlDepthMax, sqlSourcesMax } from '../../base/limits.js'
import type { TableVersion } from '../../storage/schema/schema.js'
import type { Value } from '../../types/value.js'
import type { CommonTable, Query, TableName } from '../ast/ast.js'
import type { Catalog, Parameter, StoredView } from '../catalog.js'
import type { Dialect } from '../dialect.js'
import type { EvaluationContext } from '../functions/function-types.js'
import type { Plan, PlanColumn, Subquery } from '../plan/plan.js'
import type { DeferredValues } from '../typing/deferred-values.js'
import type { Relation, WideScopes } from './scope.js'
import type { Declared } from './substitute.js'

/** Output columns of a view; empty if its query no longer binds. */
export interface ViewShape {
  readonly columns: readonly PlanColumn[]
  /** Index of the designated timestamp; -1 without one. */
  readonly timestampIndex: number
}

export interface BindContext {
  readonly sql: string
  readonly catalog: Catalog
  /** The catalog without the changes of the session's transaction. */
  readonly stored: Catalog
  readonly parameters: readonly Parameter[]
  /** Set when the plan will be cached for other parameter values; null when it is valid for these values only. */
  readonly deferred: DeferredValues | null
  readonly evaluation: EvaluationContext
  readonly viewShape: (view: StoredView) => ViewShape
  /** The tables by the index that scans use. Query.tables holds their ids. */
  readonly tables: TableVersion[]
  readonly subqueries: Subquery[]
  readonly wideScopes: WideScopes
  /** WITH names in scope, innermost last. */
  readonly commonTables: (CommonTable | WorkingTable | ChangedRows)[]
  /** DECLARE variables of the enclosing queries, which may override those of views (substitute.ts). */
  declared: Declared
  readonly dialect: Dialect
  /** For pg_backend_pid(). */
  readonly processId: number
  /** Settings of the session, as set_config() changes them. */
  readonly session: Session['settings']
  readonly configure: NonNullable<Session['configure']> | null
  /** For pg_cancel_backend() and pg_terminate_backend(). */
  readonly signal: NonNullable<Session['signal']> | null
  /** For pg_notify() and pg_listening_channels(). */
  readonly notify: NonNullable<Session['notify']> | null
  readonly channels: NonNullable<Session['channels']>
  /** For pg_export_snapshot(). */
  readonly exportSnapshot: NonNullable<Session['exportSnapshot']> | null
  /** For pg_prepared_statements and pg_cursors. */
  readonly named: NonNullable<Session['named']> | null
  /** Throws AccessError unless the user may write. */
  readonly requireWrite: () => void
  /** For nextval() and lastval(); null if the session has no such state. */
  readonly numbers: Session['numbers'] | null
  /** The statement is only described: binding must have no side effects. */
  readonly describes: boolean
  /** Uncommitted rows of the session's transaction; null without one. */
  readonly own: OwnRows | null
  /** Uncommitted changes of that transaction, older than those rows. */
  readonly pending: readonly PendingChange[]
  /**
   * A table as that transaction sees it. A function, since pending changes are bound like statements
   * (statements/pending.ts).
   */
  readonly asChanged: (
    version: TableVersion,
    alias: string,
    context: BindContext,
    scan: (stored: TableVersion) => Relation,
  ) => Relation
  /** Whether stored buckets of materialized views may be read: the statement's snapshot is taken when it starts. */
  readsStored: boolean
  /** Whether queries of tables may be answered from stored buckets of views: setting query.view.rewrite. */
  readonly viewRewrite: 'on' | 'off' | 'exact'
  /**
   * How materialized views are read: setting query.view.read, and hints. 'fresh': what is not stored is computed;
   * 'stored': what is stored alone.
   */
  viewRead: 'fresh' | 'stored'
  /** Set while a refresh of a materialized view is bound: the view then is its query over these ranges of the base. */
  readonly refreshes: ViewRefresh | null
  /** Set in INSERT .. RETURNING: the inserted rows, which its table name refers to. */
  returned: ReturnedRows | null
  /**
   * Runs a query while the statement is planned, for values that decide its columns, and returns the rows. Throws
   * NotReadyError until they are there. `position`: of the query in the statement. Null where columns must not depend
   * on data, as in views.
   */
  readonly rowsNow: ((plan: Plan, trial: BindContext, position: number) => readonly (readonly Value[])[]) | null
  /** The query whose result shall also have its designated timestamp, as a last column, if it does not select it. */
  timedQuery: Query | null
  depth: number
  /**
   * Work counters of the whole statement: WITH names and views are bound again at each reference. `sleepMs` is for
   * pg_sleep().
   */
  readonly work: { sources: number; recursions: number; sleepMs: number; foldedCharacters: number }
  /** Set to false when the plan depends on the time, on parameter values or on rows computed while planning. */
  cacheable: boolean
}

/** Rows that an INSERT stores, with the values of all columns of the table in their order. */
export interface ReturnedRows {
  /** The reference to the target table. Sub-queries that name the table read the table itself. */
  readonly name: TableName
  readonly version: TableVersion
  readonly rows: readonly (readonly Value[])[]
}

/** Whether the reference is that of the rows. Where variables were substituted, it is another object. */
export function isReturned({ name, position }: TableName, returned: ReturnedRows | null): returned is ReturnedRows {
  return returned !== null && returned.name.position === position && returned.name.name === name
}

/** A WITH RECURSIVE name within its own query: it refers to the rows of the previous iteration. */
export interface WorkingTable {
  readonly name: string
  readonly key: string
  readonly id: number
  readonly columns: readonly PlanColumn[]
  /** Set when the query refers to the name. */
  used: boolean
}

/** The name of a data change in WITH: the rows that its RETURNING has returned. */
export interface ChangedRows {
  readonly key: string
  readonly name: string
  /** Null: it has no RETURNING. */
  readonly columns: readonly PlanColumn[] | null
  readonly rows: readonly (readonly Value[])[]
}

/** Counts sources against the limit of a statement. A source that the plan reads twice counts twice. */
export function countSources(context: BindContext, count: number, position: number): void {
  context.work.sources += count
  if (context.work.sources > sqlSourcesMax)
    throw new SqlError(`query has too many sources, including those of WITH and views [max=${sqlSourcesMax}]`, position)
}

/** Runs `bind` one nesting level deeper, within the depth limit. */
export function nested<Result>(context: BindContext, position: number, bind: () => Result): Result {
  if (context.depth >= sqlDepthMax) throw new SqlError('query is nested too deeply', position)
  countSources(context, 1, position)
  context.depth++
  try {
    return bind()
  } finally {
    context.depth--
  }
}

/** Index of a table in Query.tables; adds the table if it is new. */
export function tableIndex(context: BindContext, version: TableVersion): number {
  const known = context.tables.findIndex(({ schema }) => schema.id === version.schema.id)
  if (known >= 0) return known
  context.tables.push(version)
  return context.tables.length - 1
}

/** The context for describing: calls have no side effects. */
export function describing(context: BindContext): BindContext {
  const { reload: _, ...evaluation } = context.evaluation
  return { ...context, evaluation, describes: true }
}

/** The context for the query of a view. */
export function ofView(context: BindContext): BindContext {
  return { ...describing(context), rowsNow: null }
}

/** The context for binding a part only to learn its columns; the part is bound again later. */
export function trialOf(context: BindContext): BindContext {
  return { ...describing(context), tables: [], subqueries: [], commonTables: [...context.commonTables] }
}

/** Whether the statement is described and not executed. */
export function isDescribed({ describes, parameters }: Pick<BindContext, 'describes' | 'parameters'>): boolean {
  return describes || parameters.some((parameter) => parameter?.slot !== undefined)
}
