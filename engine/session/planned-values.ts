// Runs queries during the planning of a statement. The values of PIVOT may come from a query, and the plan's columns
// depend on them. Planning is synchronous, so it cannot wait: at the first attempt this class starts the query and
// throws a NotReadyError with itself. The caller plans the statement again when the query has ended, with this object in
// the session (Session.planning), and the second attempt finds the rows here. A further planning of the statement has an
// object of its own and runs the query again, so it sees all rows that were acknowledged before it.

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

export type RunPlanned = (sql: string, query: Query, options: RunOptions) => RunningQuery

interface Started {
  rows: Rows | null
  /** What the query threw. */
  error: { readonly thrown: unknown } | null
  readonly ready: Promise<void>
}

/** Deadline of a query, in milliseconds. */
const timeoutMs = 60_000

/** The queries of one planning, which may take several attempts. */
export class PlannedValues {
  readonly #run: RunPlanned
  /** By statement, place and parameters; undefined: there are none. */
  #started: Map<string, Started> | undefined

  constructor(run: RunPlanned) {
    this.#run = run
  }

  /** Whether the plan has needed a query: what depends on one is not kept. */
  get isUsed(): boolean {
    return this.#started !== undefined
  }

  /** Plans; if that is not ready, the next attempt has these queries. */
  attempt<T>(plan: () => T): T {
    try {
      return plan()
    } catch (error) {
      if (!(error instanceof NotReadyError)) throw error
      throw new NotReadyError(error.ready, this)
    }
  }

  /** For BindContext.rowsNow. `session`: with the rights and the snapshot to read with. */
  rowsFor(session: Session, parameters: readonly Parameter[]): NonNullable<BindContext['rowsNow']> {
    return (plan, trial, position) => {
      this.#started ??= new Map()
      const key = [trial.sql, position, ...parameters.map(({ value }) => String(value))].join('\0')
      const started = this.#started.get(key) ?? this.#start(plan, trial, session)
      this.#started.set(key, started)
      if (started.rows === null && started.error === null) throw new NotReadyError(started.ready, this)
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
    const started: Started = { rows: null, error: null, ready: gather() }
    return started
  }
}
