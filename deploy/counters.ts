// Restores the counters of auto-increment columns when the server starts. For each such column it queries the largest
// value and sets the counter to it, before any INSERT is accepted. Sequences made by CREATE SEQUENCE store their own
// state.

import { type Engine, internalSession } from '../engine/engine.js'
import { runServerStatement } from './server-statement.js'

const session = internalSession('system')
const asking = { session, encoding: { kind: 'values' }, timeoutMs: 0 } as const

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
