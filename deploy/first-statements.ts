// Runs a few canned statements before the server is ready. The first statement of a process loads and compiles whatever plans,
// runs and encodes statements, on the main thread and on a query thread; otherwise the first client waits for that.

import { type Encoding, type Engine, internalSession, type Session } from '../engine/engine.js'
import { ask } from './ask.js'

const session: Session = { ...internalSession('system'), readOnly: true }
const encoding: Encoding = { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }
/** A slow machine is ready without them. */
const timeoutMs = 1000

/** The first runs on the main thread; the second has rows enough for a query thread. */
export const firstStatements: readonly string[] = [
  'select 1',
  `select ts, k, avg(v), sum(v), count() from (
    select cast(x * 1000000L as timestamp) ts, cast(x % 4 as symbol) k, x * 0.5 v from long_sequence(40000)
  ) timestamp(ts) where v > 1 sample by 1m order by ts, k limit 10`,
]

export async function runFirstStatements(engine: Pick<Engine, 'execute'>): Promise<void> {
  // What fails here fails again for the client that asks for it, who hears why.
  const run = (sql: string): Promise<unknown> => ask(engine, sql, { session, encoding, timeoutMs }).catch(() => {})
  await Promise.all(firstStatements.map(run))
}
