// Runs a few statements before the server is ready. The first statement of a process loads and compiles the code that
// plans, runs and encodes statements, on the main thread and on a query thread. Otherwise the first client would wait
// for that.

import { type Encoding, type Engine, internalSession, type Session } from '../engine/engine.js'
import { runServerStatement } from './server-statement.js'

const session: Session = { ...internalSession('system'), readOnly: true }
const encoding: Encoding = { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }
/** Limits the delay on a slow machine. */
const timeoutMs = 1000

/** The first one runs on the main thread; the second one has enough rows to run on a query thread. */
export const firstStatements: readonly string[] = [
  'select 1',
  `select ts, k, avg(v), sum(v), count() from (
    select cast(x * 1000000L as timestamp) ts, cast(x % 4 as symbol) k, x * 0.5 v from long_sequence(40000)
  ) timestamp(ts) where v > 1 sample by 1m order by ts, k limit 10`,
]

export async function runFirstStatements(engine: Pick<Engine, 'execute'>): Promise<void> {
  // Errors are ignored here, because a client that runs into them gets them reported.
  const run = (sql: string): Promise<unknown> =>
    runServerStatement(engine, sql, { session, encoding, timeoutMs }).catch(() => {})
  await Promise.all(firstStatements.map(run))
}
