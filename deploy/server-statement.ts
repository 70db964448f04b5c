// Runs an SQL statement that the server itself issues (not a client) on the engine, and returns all rows of the
// result.

import type { Encoding, Engine, Session } from '../engine/engine.js'

interface Asking {
  readonly session: Session
  /** Only `values` returns rows; with other encodings the result is encoded and discarded. */
  readonly encoding: Encoding
  /** In ms; 0 = none. */
  readonly timeoutMs: number
}

/** Rejects like Engine.execute. */
export async function runServerStatement(
  engine: Pick<Engine, 'execute'>,
  sql: string,
  { session, encoding, timeoutMs }: Asking,
): Promise<readonly (readonly unknown[])[]> {
  const result = await engine.execute(sql, {
    ...{ session, encoding, parameters: [], skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false },
    ...{ columns: null, timeoutMs, signal: null, explain: false },
  })
  const rows: (readonly unknown[])[] = []
  if (result.kind !== 'rows') return rows
  if (encoding.kind === 'values') for await (const batch of result.values) rows.push(...batch)
  else for await (const _ of result.blocks);
  await result.summary
  return rows
}
