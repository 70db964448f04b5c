// Code that nobody has run yet is slow at its first run: planning, operators, encoders and the kernels of query threads
// make the first answer of a server 30 ms late. Where there are tables somebody is going to ask for rows, so each of the
// usual ways is gone once, over rows made for it, when the start is over.

import { allRights } from '../engine/base/rights.js'
import type { Encoding, Engine, Session } from '../engine/engine.js'

const session: Session = { user: 'system', protocol: 'internal', readOnly: true, rights: allRights }
const timeoutMs = 2000

const rows = `select x, x * 0.5 d, cast(x as timestamp) ts, cast(x as varchar) v, x % 2 = 0 b from long_sequence(3000)`
const groups = `select x % 7 k, count(), sum(x), max(x) from long_sequence(3000) where x > 5 group by k order by k limit 3`
const csv: Encoding = { kind: 'csv', delimiter: 0x2c, header: true }
const json: Encoding = { kind: 'json', quoteLargeNumbers: false, geohashAsText: true }

/** Rejects when the engine closes meanwhile, or is too busy. */
export async function warmUp(engine: Engine): Promise<void> {
  for (const encoding of [csv, json]) {
    // Two at once, for two query threads.
    await Promise.all([rows, groups].map((sql) => run(engine, sql, encoding)))
    await Promise.all([groups, rows].map((sql) => run(engine, sql, encoding)))
  }
}

async function run(engine: Engine, sql: string, encoding: Encoding): Promise<void> {
  const result = await engine.execute(sql, {
    ...{ session, encoding, parameters: [], skip: 0, rowsMax: Number.POSITIVE_INFINITY, countAll: false },
    ...{ columns: null, timeoutMs, signal: null, explain: false },
  })
  if (result.kind !== 'rows') return
  for await (const _ of result.blocks);
  await result.summary
}
