// Counted columns go on behind a start: each counter is told the largest number of its column before anybody inserts.

import { allRights } from '../engine/base/rights.js'
import type { Engine, Session } from '../engine/engine.js'

const session: Session = { user: 'system', protocol: 'internal', readOnly: false, rights: allRights }

export async function resumeCounters(engine: Pick<Engine, 'execute' | 'table' | 'tableNames'>): Promise<void> {
  for (const table of engine.tableNames()) {
    for (const { name, counter } of engine.table(table)?.columns ?? []) {
      if (counter === null) continue
      const largest = await textOf(engine, `select max("${name}") from "${table}"`)
      if (largest !== '') await textOf(engine, `select setval('${counter.replaceAll("'", "''")}', ${largest})`)
    }
  }
}

/** As text; '' is NULL. */
async function textOf(engine: Pick<Engine, 'execute'>, sql: string): Promise<string> {
  const result = await engine.execute(sql, {
    ...{ session, encoding: { kind: 'csv', delimiter: 0x2c, header: false }, parameters: [], skip: 0 },
    ...{
      rowsMax: Number.POSITIVE_INFINITY,
      countAll: false,
      columns: null,
      timeoutMs: 0,
      signal: null,
      explain: false,
    },
  })
  if (result.kind !== 'rows') return ''
  const blocks: Buffer[] = []
  for await (const block of result.blocks) blocks.push(Buffer.from(block))
  return Buffer.concat(blocks).toString().trim()
}
