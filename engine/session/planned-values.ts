// Rows of queries that run while a statement is planned, because they decide its columns: the values of PIVOT. Planning
// cannot wait, so it ends with NotReadyError while such a query runs, and is repeated.
//
// Rows are used again as long as the tables that the query reads have not changed. The repeated planning uses them in
// any case, so that it succeeds beside clients that write.

import type { ExecuteOptions } from '../api/statements.js'
import { NotReadyError, SqlError } from '../base/errors.js'
import { pivotColumnsMax } from '../base/limits.js'
import { Lru } from '../base/lru.js'
import type { Plan, Query } from '../sql/plan/plan.js'
import type { BindContext } from '../sql/scope/bind-context.js'
import { queryOf } from '../sql/statements/query-statement.js'
import type { RunningQuery } from '../threads/query-reader.js'
import type { Value } from '../types/value.js'
import { allRows, hasOwnChanges, type RunOptions } from './plan-helpers.js'

type Rows = readonly (readonly Value[])[]

interface Known {
  /** Versions of the tables when the query started; empty if it reads more than tables. */
  readonly versions: readonly object[]
  rows: Rows | null
  /** What the query threw. */
  error: { readonly thrown: unknown } | null
  /** No planning has used the rows yet. */
  isNew: boolean
  readonly ready: Promise<void>
}

type Requested = Pick<ExecuteOptions, 'session'> & { readonly parameters: readonly { readonly value: Value }[] }

const knownMax = 64
/** Deadline of a query, in milliseconds. */
const timeoutMs = 60_000

export class PlannedValues {
  readonly #known = new Lru<string, Known>({ countMax: knownMax, weightMax: knownMax })
  readonly #run: (sql: string, query: Query, options: RunOptions) => RunningQuery
  /** Counts the queries that plans needed: what depends on one is not kept. */
  uses = 0

  constructor(run: (sql: string, query: Query, options: RunOptions) => RunningQuery) {
    this.#run = run
  }

  /** For BindContext.rowsNow. */
  rowsFor(requested: Requested): NonNullable<BindContext['rowsNow']> {
    const { session, parameters } = requested
    return (plan, trial, position) => {
      this.uses++
      const isVaried = !trial.cacheable || hasOwnChanges(session) || session.snapshot !== undefined
      const versions = isVaried ? [] : trial.tables
      const values = parameters.map(({ value }) => String(value))
      const key = JSON.stringify([session.user, session.processId, session.dialect.name, position, trial.sql, values])
      const known = this.#known.get(key)
      if (known !== undefined && isCurrent(known, versions)) return taken(known, position)
      const started = this.#start(plan, trial, requested, versions)
      this.#known.set(key, started, 1)
      throw new NotReadyError(started.ready)
    }
  }

  #start(plan: Plan, trial: BindContext, { session }: Requested, versions: readonly object[]): Known {
    const running = this.#run(trial.sql, queryOf(plan, -1, trial), {
      ...{ ...allRows, session, timeoutMs, encoding: { kind: 'values' } },
      rowsMax: pivotColumnsMax + 1,
    })
    const known: Known = { versions, rows: null, error: null, isNew: true, ready: gathered() }
    return known

    async function gathered(): Promise<void> {
      try {
        const rows: (readonly Value[])[] = []
        for await (const some of running.values) rows.push(...some)
        known.rows = rows
      } catch (thrown) {
        known.error = { thrown }
      }
    }
  }
}

/** Whether the rows may be used: they are new, or those of the tables' present versions. */
function isCurrent({ isNew, rows, error, versions }: Known, present: readonly object[]): boolean {
  const isSame = versions.length === present.length && versions.every((version, index) => version === present[index])
  if (rows === null && error === null) return isSame
  return isNew || (error === null && present.length > 0 && isSame)
}

function taken(known: Known, position: number): Rows {
  if (known.rows === null && known.error === null) throw new NotReadyError(known.ready)
  known.isNew = false
  if (known.rows === null) throw known.error?.thrown
  if (known.rows.length > pivotColumnsMax)
    throw new SqlError(`too many columns of PIVOT [max=${pivotColumnsMax}]`, position)
  return known.rows
}
