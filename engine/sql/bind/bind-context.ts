// What binding one statement shares: the catalog, the tables and sub-queries that it found, parameters, time.

import type { OwnRows, Session } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { sqlDepthMax, sqlSourcesMax } from '../../base/limits.js'
import type { TableVersion } from '../../storage/schema.js'
import type { Catalog, Parameter } from '../catalog.js'
import type { EvaluationContext } from '../functions/function-types.js'
import { createRandom } from '../functions/random-generator.js'
import type { CommonTable } from '../parse/ast.js'
import type { Plan, PlanColumn } from '../plan/plan.js'

export interface BindContext {
  readonly sql: string
  readonly catalog: Catalog
  readonly parameters: readonly Parameter[]
  readonly evaluation: EvaluationContext
  /** The tables in the order in which scans name them: Query.tables has their ids. */
  readonly tables: TableVersion[]
  readonly subqueries: { readonly plan: Plan; readonly mode: 'scalar' | 'list' | 'exists' }[]
  /** WITH names in scope, innermost last. */
  readonly commonTables: (CommonTable | WorkingTable)[]
  /** The wire protocol has the names and types of PostgreSQL's catalog. */
  readonly protocol: Session['protocol']
  /** Of pg_backend_pid(). */
  readonly processId: number
  /** Settings that set_config() changes. */
  readonly session: Session['settings']
  /** Rows of the session's transaction; null without one. */
  readonly own: OwnRows | null
  depth: number
  /** Shared by all parts of the statement: WITH names and views are bound again wherever they are named. */
  readonly work: { sources: number; recursions: number }
  /** False once a plan depends on the time, on parameters or on rows made at planning. */
  cacheable: boolean
}

/** A name of WITH RECURSIVE within its own query: the rows of the round before. */
export interface WorkingTable {
  readonly name: string
  readonly id: number
  readonly columns: readonly PlanColumn[]
  /** Set once the query has named it. */
  used: boolean
}

export interface BindOptions {
  readonly sql: string
  readonly catalog: Catalog
  readonly parameters: readonly Parameter[]
  readonly nowMicros: number
  readonly user: string
  /** What reload_config() does. */
  readonly reload?: () => boolean
  readonly protocol?: Session['protocol']
  readonly settings?: Session['settings']
  readonly processId?: number | undefined
  readonly transaction?: OwnRows | undefined
}

export function bindContext({
  sql,
  catalog,
  parameters,
  nowMicros,
  user,
  settings,
  reload,
  ...rest
}: BindOptions): BindContext {
  const now = BigInt(nowMicros)
  return {
    sql,
    catalog,
    parameters,
    evaluation: {
      ...{ nowMicros: now, clockMicros: () => now, random: createRandom(now, 0x5eedn), user, settings },
      ...(reload === undefined ? {} : { reload }),
    },
    protocol: rest.protocol ?? 'http',
    processId: rest.processId ?? 0,
    session: settings,
    own: rest.transaction === undefined || rest.transaction.rows === 0 ? null : rest.transaction,
    tables: [],
    subqueries: [],
    commonTables: [],
    depth: 0,
    work: { sources: 0, recursions: 0 },
    cacheable: parameters.length === 0,
  }
}

/** Runs one level of a nested query. */
export function nested<Result>(context: BindContext, position: number, bind: () => Result): Result {
  if (context.depth >= sqlDepthMax) throw new SqlError('query is nested too deeply', position)
  if (++context.work.sources > sqlSourcesMax)
    throw new SqlError(`query has too many sources, those of WITH and views included [max=${sqlSourcesMax}]`, position)
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
