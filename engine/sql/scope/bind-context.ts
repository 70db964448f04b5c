// What binding one statement shares: the catalog, the tables and sub-queries that it found, parameters, time.

import type { OwnRows, PendingChange, Session } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { sqlDepthMax, sqlSourcesMax } from '../../base/limits.js'
import type { TableVersion } from '../../storage/schema/schema.js'
import type { Value } from '../../types/value.js'
import type { CommonTable, TableName } from '../ast/ast.js'
import type { Catalog, Parameter, StoredView } from '../catalog.js'
import type { Dialect } from '../dialect.js'
import type { EvaluationContext } from '../functions/function-types.js'
import type { PlanColumn, Subquery } from '../plan/plan.js'
import type { LateValues } from '../typing/late-values.js'
import type { Relation } from './scope.js'
import type { Declared } from './substitute.js'

/** What a view gives by its query; no columns when that does not bind any more. */
export interface ViewShape {
  readonly columns: readonly PlanColumn[]
  /** Of the designated timestamp; -1 without one. */
  readonly timestampIndex: number
}

export interface BindContext {
  readonly sql: string
  readonly catalog: Catalog
  /** Without what the session's transaction has changed. */
  readonly stored: Catalog
  readonly parameters: readonly Parameter[]
  /** The plan is to be kept for other values of the parameters; null: it is of these alone. */
  readonly late: LateValues | null
  readonly evaluation: EvaluationContext
  readonly viewShape: (view: StoredView) => ViewShape
  /** The tables in the order in which scans name them: Query.tables has their ids. */
  readonly tables: TableVersion[]
  readonly subqueries: Subquery[]
  /** WITH names in scope, innermost last. */
  readonly commonTables: (CommonTable | WorkingTable)[]
  /** Variables of the queries around, which views may take: substitute.ts. */
  declared: Declared
  readonly dialect: Dialect
  /** Of pg_backend_pid(). */
  readonly processId: number
  /** Settings that set_config() changes. */
  readonly session: Session['settings']
  readonly configure: NonNullable<Session['configure']> | null
  /** Of pg_cancel_backend() and pg_terminate_backend(). */
  readonly signal: NonNullable<Session['signal']> | null
  /** Of pg_notify() and pg_listening_channels(). */
  readonly notify: NonNullable<Session['notify']> | null
  readonly channels: NonNullable<Session['channels']>
  /** Of pg_export_snapshot(). */
  readonly exportMoment: NonNullable<Session['exportMoment']> | null
  /** Of pg_prepared_statements and pg_cursors. */
  readonly named: NonNullable<Session['named']> | null
  /** Throws AccessError unless who asks may change something. */
  readonly demandWrite: () => void
  /** Of nextval() and lastval(); null: the session keeps none. */
  readonly numbers: Session['numbers'] | null
  /** Nothing is to be done by binding. */
  readonly describes: boolean
  /** Rows of the session's transaction; null without one. */
  readonly own: OwnRows | null
  /** Changes of that transaction, which lie below those rows. */
  readonly pending: readonly PendingChange[]
  /** A table as that transaction has made it: statements/pending.ts, whose changes are bound as statements are. */
  readonly asChanged: (
    version: TableVersion,
    alias: string,
    context: BindContext,
    scan: (stored: TableVersion) => Relation,
  ) => Relation
  /** Of INSERT .. RETURNING: what the table's name within it stands for. */
  returned: ReturnedRows | null
  depth: number
  /** Shared by all parts of the statement: WITH names and views are bound again wherever they are named. `sleepMs`: pg_sleep(). */
  readonly work: { sources: number; recursions: number; sleepMs: number; foldedCharacters: number }
  /** False once a plan depends on the time, on parameters or on rows made at planning. */
  cacheable: boolean
}

/** The rows that an INSERT stores, each column of the table in its order. */
export interface ReturnedRows {
  /** Where the table is named: sub-queries that name it as well see all of it. */
  readonly name: TableName
  readonly version: TableVersion
  readonly rows: readonly (readonly Value[])[]
}

/** A name of WITH RECURSIVE within its own query: the rows of the round before. */
export interface WorkingTable {
  readonly name: string
  readonly key: string
  readonly id: number
  readonly columns: readonly PlanColumn[]
  /** Set once the query has named it. */
  used: boolean
}

/** So many sources more: what a plan reads twice counts twice. */
export function countSources(context: BindContext, count: number, position: number): void {
  context.work.sources += count
  if (context.work.sources > sqlSourcesMax)
    throw new SqlError(`query has too many sources, those of WITH and views included [max=${sqlSourcesMax}]`, position)
}

/** Runs one level of a nested query. */
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

/** Index of a table in Query.tables. */
export function tableIndex(context: BindContext, version: TableVersion): number {
  const known = context.tables.findIndex(({ schema }) => schema.id === version.schema.id)
  if (known >= 0) return known
  context.tables.push(version)
  return context.tables.length - 1
}

/** Of a statement that is planned and does not run: its calls do nothing. */
export function describing(context: BindContext): BindContext {
  const { reload: _, ...evaluation } = context.evaluation
  return { ...context, evaluation, describes: true }
}

/** For what is bound to see its columns, and bound again with the rest. */
export function trialOf(context: BindContext): BindContext {
  return { ...describing(context), tables: [], subqueries: [], commonTables: [...context.commonTables] }
}

/** The statement is looked at, and not carried out. */
export function isDescribed({ describes, parameters }: Pick<BindContext, 'describes' | 'parameters'>): boolean {
  return describes || parameters.some((parameter) => parameter?.slot !== undefined)
}
