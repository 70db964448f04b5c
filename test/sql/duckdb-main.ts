// `node dist/test/sql/duckdb-main.js --queries 10000 --seed 1`: runs the differential test of duckdb.test.ts with any
// number of random queries and compares the results with DuckDB's.

import { parseArgs } from 'node:util'
import { runDuck } from '../support/duck-run.js'
import { engineClient } from './clients.js'

const { values } = parseArgs({
  options: {
    queries: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
    'jit-off': { type: 'boolean', default: false },
  },
})

const client = await engineClient(!values['jit-off'])
const { queries, refused, differences } = await runDuck(Number(values.seed), Number(values.queries), client.rows)
await client.close()
for (const difference of differences) console.log(difference)
console.log(`${queries} queries, ${refused} refused by both, ${differences.length} differences`)
process.exitCode = differences.length > 0 || refused > queries / 20 ? 1 : 0
