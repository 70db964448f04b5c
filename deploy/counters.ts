// Counted columns go on behind a start: each counter is told the largest number of its column before anybody inserts.

import { type Engine, internalSession } from '../engine/engine.js'
import { ask } from './ask.js'

const session = internalSession('system')
const asking = { session, encoding: { kind: 'values' }, timeoutMs: 0 } as const

export async function resumeCounters(engine: Pick<Engine, 'execute' | 'table' | 'tableNames'>): Promise<void> {
  // A table that was renamed shares its counter with one that took its name.
  const largest = new Map<string, bigint>()
  for (const table of engine.tableNames()) {
    for (const { name, counter } of engine.table(table)?.columns ?? []) {
      if (counter === null) continue
      const [[value = null] = []] = await ask(engine, `select max("${name}") from "${table}"`, asking)
      const number = value === null ? 0n : BigInt(String(value))
      if (number > (largest.get(counter) ?? 0n)) largest.set(counter, number)
    }
  }
  // Sequences know their numbers themselves.
  const made = "select relname from pg_class where relkind = 'S' and oid not in (select objid from pg_depend)"
  for (const [name] of largest.size === 0 ? [] : await ask(engine, made, asking)) largest.delete(String(name))
  for (const [counter, number] of largest)
    await ask(engine, `select setval('${counter.replaceAll("'", "''")}', ${number})`, asking)
}
