// `node dist/test/sql/duckdb-main.js --queries 10000 --upserts 1000 --seed 1 [--jit-off]`: runs the differential test
// of duckdb.test.ts with any number of random queries and upserts, and compares the results with DuckDB's.

import { parseArgs } from 'node:util'
import { runDuck } from '../support/duckdb/run.js'
import { runDuckUpserts } from '../support/duckdb/upserts.js'
import { engineClient } from './clients.js'

const { values } = parseArgs({
  options: {
    queries: { type: 'string', default: '10000' },
    upserts: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    'jit-off': { type: 'boolean', default: false },
  },
})

const client = await engineClient(!values['jit-off'])
const { queries, refused, differences } = await runDuck(Number(values.seed), Number(values.queries), client.rows)
const upserts = await runDuckUpserts(Number(values.seed), Number(values.upserts), client.rows)
await client.close()
for (const difference of [...differences, ...upserts.differences]) console.log(difference)
console.log(`${queries} queries, ${refused} refused by both, ${differences.length} differences`)
console.log(`${upserts.queries} upserts, ${upserts.refused} refused by both, ${upserts.differences.length} differences`)
const isSame = differences.length + upserts.differences.length === 0
process.exitCode = isSame && refused <= queries / 20 && upserts.refused <= upserts.queries / 20 ? 0 : 1
