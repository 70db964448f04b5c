// Statements that the server runs before it accepts those of clients: resumeCounters() restores the counters of
// auto-increment columns, and runFirstStatements() loads and compiles the code that plans, runs and encodes statements,
// on the main thread and on a query thread, so that the first client need not wait for that.

import { type Encoding, type Engine, internalSession, type Session } from '../engine/engine.js'

const session = internalSession('system')
const readOnly: Session = { ...session, readOnly: true }
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
    runServerStatement(engine, sql, { session: readOnly, encoding, timeoutMs }).catch(() => {})
  await Promise.all(firstStatements.map(run))
}

const asking = { session, encoding: { kind: 'values' }, timeoutMs: 0 } as const

/**
 * For each column with a counter, queries the largest value and sets the counter to it. Sequences made by CREATE SEQUENCE
 * store their own state.
 */
export async function resumeCounters(engine: Pick<Engine, 'execute' | 'table' | 'tableNames'>): Promise<void> {
  // A renamed table shares its counter with a table that took its name, so the larger value counts.
  const largest = new Map<string, bigint>()
  for (const table of engine.tableNames()) {
    for (const { name, counter } of engine.table(table)?.columns ?? []) {
      if (counter === null) continue
      const [[value = null] = []] = await runServerStatement(engine, `select max("${name}") from "${table}"`, asking)
      const number = value === null ? 0n : BigInt(String(value))
      if (number > (largest.get(counter) ?? 0n)) largest.set(counter, number)
    }
  }
  // Stored sequences keep their own state.
  const made = "select relname from pg_class where relkind = 'S' and oid not in (select objid from pg_depend)"
  for (const [name] of largest.size === 0 ? [] : await runServerStatement(engine, made, asking))
    largest.delete(String(name))
  for (const [counter, number] of largest)
    await runServerStatement(engine, `select setval('${counter.replaceAll("'", "''")}', ${number})`, asking)
}

interface Asking {
  readonly session: Session
  /** Only `values` returns rows; with other encodings the result is encoded and discarded. */
  readonly encoding: Encoding
  /** In ms; 0 = none. */
  readonly timeoutMs: number
}

/** Runs a statement of the server itself, and returns all rows. Rejects like Engine.execute. */
async function runServerStatement(
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
