// Goal: ORDER BY .. LIMIT skips pages by their minimum and maximum, and still returns the first rows of the complete
// order, ties included. Method: Parquet files with values that rise, fall and repeat, with NULLs, pages of NULLs only,
// and rows in memory; random keys, limits and conditions, compared with the first rows of the same query without a
// limit.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'
import { createRandom } from '../../../support/random.js'

const base = 1_704_067_200_000_000n
const rows = 40

async function filled(dedup: string, jit: boolean): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true, jit })
  await engine.run(
    `create table t (ts timestamp, id int, i int, l long, d double, f float, s symbol, e double) timestamp(ts) partition by day ${dedup}`,
  )
  const random = createRandom(5)
  for (let part = 0; part < 14; part++) {
    const values = Array.from({ length: rows }, (_, row) => {
      const missing = part === 6 || random.chance(0.1)
      const value = random.pick([part * 10 + random.below(10), -part * 10 + random.below(4), random.below(6)])
      const at = base + BigInt(part * (dedup === '' ? 1000 : 500) + row * 20)
      const of = (value: unknown): string => (missing ? 'null' : `${value}`)
      return `(${at}L, ${part * rows + row}, ${of(value)}, ${of(value * 3)}, ${of(value / 4)}, ${of(value / 8)}, 's${value % 7}', ${random.below(300)})`
    })
    await engine.run(`insert into t values ${values.join()}`)
    if (part < 13) await engine.run('checkpoint')
  }
  return engine
}

test.each([
  ['', true],
  ['', false],
  ['dedup upsert keys(ts)', true],
] as const)('the first rows are those of the whole order (%s, jit %s)', async (dedup, jit) => {
  const engine = await filled(dedup, jit)
  const random = createRandom(9)
  for (let round = 0; round < 40; round++) {
    const key = random.pick(['d', 'd', 'e', 'i', 'l', 'f', 'ts', 'd + 1.5', '2 + (e - 7)', '-d', 'd * e', 's'])
    const order = `k ${random.pick(['', 'desc', 'desc nulls first', 'nulls first'])}${random.pick(['', '', ', e desc'])}`
    const filter = random.pick([
      '',
      '',
      'where e > 150',
      'where i < 12 and e < 100',
      "where ts >= '2024-01-01T00:00:00.002500Z'",
      "where s = 's3'",
    ])
    const limit = random.pick([1, 2, 5, 9, 13, 60])
    const query = `select ${key} k, id, s, e from t ${filter} order by ${order}`
    const expected = (await engine.rows(query)).slice(0, limit)
    expect(await engine.rows(`${query} limit ${limit}`), `${query} limit ${limit}`).toEqual(expected)
  }
})
