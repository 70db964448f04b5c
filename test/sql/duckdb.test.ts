// Goal: random queries over random tables return the same results as DuckDB, and random upserts (ON CONFLICT, MERGE)
// leave the same rows. This test runs a small number of them; .ci/run executes many (duckdb-main.ts).

import { expect, test } from 'vitest'
import { runDuck } from '../support/duckdb/run.js'
import { runDuckUpserts } from '../support/duckdb/upserts.js'
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

test('random upserts beside DuckDB', async () => {
  const client = await engineClient(true)
  try {
    const { refused, differences } = await runDuckUpserts(9000, 100, client.rows)
    expect(differences.join('\n')).toBe('')
    expect(refused).toBeLessThan(6)
  } finally {
    await client.close()
  }
})
