// Goal: random queries over random tables return the same results as DuckDB. This test runs a small number of queries;
// .ci/run executes 10,000 (duckdb-main.ts).

import { expect, test } from 'vitest'
import { runDuck } from '../support/duck-run.js'
import { engineClient } from './clients.js'

test.each([true, false])('random queries beside DuckDB, jit %s', async (jit) => {
  const client = await engineClient(jit)
  try {
    const seed = jit ? 7000 : 8000
    const { refused, differences } = await runDuck(seed, 150, client.rows)
    expect(differences.join('\n')).toBe('')
    expect(refused).toBeLessThan(12)
  } finally {
    await client.close()
  }
})
