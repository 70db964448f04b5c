// Goal: random queries give DuckDB's answers: a portion of what .ci/run does with 10,000 (see duckdb-main.ts).

import { expect, test } from 'vitest'
import { runDuck } from '../support/duck-run.js'
import { engineDoor } from './doors.js'

test.each([true, false])('random queries beside DuckDB, jit %s', async (jit) => {
  const door = await engineDoor(jit)
  try {
    const seed = jit ? 7000 : 8000
    const { refused, differences } = await runDuck(seed, 150, door.rows)
    expect(differences.join('\n')).toBe('')
    expect(refused).toBeLessThan(12)
  } finally {
    await door.close()
  }
})
