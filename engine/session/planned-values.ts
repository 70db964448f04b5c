// Runs queries during planning. The values of PIVOT may come from a query, and the plan's columns depend on them.
// Planning is synchronous, so it cannot wait: at the first attempt this class starts the query and throws
// NotReadyError. The caller plans the statement again when the query has ended, and the second attempt finds the rows
// here. Every new request runs the query again, so it sees all rows that were acknowledged before it.

import type { Session } from '../api/session.js'
import { NotReadyError, SqlError } from '../base/errors.js'
import { pivotColumnsMax } from '../base/limits.js'
import type { Parameter } from '../sql/catalog.js'
import type { Plan, Query } from '../sql/plan/plan.js'
import type { BindContext } from '../sql/scope/bind-context.js'
import { queryOf } from '../sql/statements/query-statement.js'
import type { RunningQuery } from '../threads/query-reader.js'
import type { Value } from '../types/value.js'
import { allRows, type RunOptions } from './plan-helpers.js'

type Rows = readonly (readonly Value[])[]

interface Started {
  /** A planning has used the rows: the next one runs the query again. */
  isUsed: boolean
  rows: Rows | null
  /** What the query threw. */
  error: { readonly thrown: unknown } | null
  readonly ready: Promise<void>
}

/** Deadline of a query, in milliseconds. */
const timeoutMs = 60_000

export class PlannedValues {
  /** Queries by the session that plans, then by statement, place and parameters. */
  readonly #started = new WeakMap<Session, Map<string, Started>>()
  readonly #run: (sql: string, query: Query, options: RunOptions) => RunningQuery
  /** Counts the queries that plans needed: what depends on one is not kept. */
  uses = 0

  constructor(run: (sql: string, query: Query, options: RunOptions) => RunningQuery) {
    this.#run = run
  }

  /** A request of the session begins, which may plan more than once, or is repeated. */
  begin(session: Session): void {
    const queries = this.#started.get(session)
    if (queries === undefined) return
    for (const [key, { isUsed }] of queries) if (isUsed) queries.delete(key)
  }

  /** For BindContext.rowsNow. `reader`: the session with the rights and the snapshot to read with. */
  rowsFor(session: Session, reader: Session, parameters: readonly Parameter[]): NonNullable<BindContext['rowsNow']> {
    return (plan, trial, position) => {
      this.uses++
      const queries = this.#started.get(session) ?? new Map<string, Started>()
      this.#started.set(session, queries)
      const key = [trial.sql, position, ...parameters.map(({ value }) => String(value))].join('\0')
      const started = queries.get(key) ?? this.#start(plan, trial, reader)
      queries.set(key, started)
      if (started.rows === null && started.error === null) throw new NotReadyError(started.ready)
      started.isUsed = true
      if (started.rows === null) throw started.error?.thrown
      if (started.rows.length > pivotColumnsMax)
        throw new SqlError(`too many columns of PIVOT [max=${pivotColumnsMax}]`, position)
      return started.rows
    }
  }

  #start(plan: Plan, trial: BindContext, session: Session): Started {
    const running = this.#run(trial.sql, queryOf(plan, -1, trial), {
      ...{ ...allRows, session, timeoutMs, encoding: { kind: 'values' } },
      rowsMax: pivotColumnsMax + 1,
    })
    const gather = async (): Promise<void> => {
      try {
        const rows: (readonly Value[])[] = []
        for await (const some of running.values) rows.push(...some)
        started.rows = rows
      } catch (thrown) {
        started.error = { thrown }
      }
    }
    const started: Started = { isUsed: false, rows: null, error: null, ready: gather() }
    return started
  }
}
