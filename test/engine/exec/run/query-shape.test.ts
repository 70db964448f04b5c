// Goal: queries that differ only in constants have the same shape, and other queries have different ones.

import { describe, expect, test } from 'vitest'
import { shapeOf } from '../../../../engine/exec/run/query-shape.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

const database = new MemoryDatabase()
for (const table of ['t', 'u'])
  database.run(`create table ${table} (ts timestamp, host symbol, x double, y double) timestamp(ts) partition by day`)

function shape(sql: string): string {
  const statement = database.plan(sql)
  if (statement.kind !== 'query') throw new Error('a query is expected')
  return shapeOf(statement.query)
}

const query = "select host, sum(x) + 1 from t where ts in '2024-05-01' and y > 3 group by host limit 4"

describe('the shape of a query', () => {
  test.each([
    "select host, sum(x) + 2 from t where ts in '2024-05-02' and y > 3 group by host limit 4",
    "select host, sum(x) + 1 from t where ts in '2024-05-01' and y > 700.5 group by host limit 9",
  ])('is that of %s', (other) => {
    expect(shape(other)).toBe(shape(query))
  })

  test.each([
    query.replace('from t', 'from u'),
    query.replace('sum(x)', 'sum(y)'),
    query.replace('y > 3', 'y < 3'),
    query.replace(' limit 4', ''),
    query.replace('sum(x)', 'max(x)'),
  ])('is not that of %s', (other) => {
    expect(shape(other)).not.toBe(shape(query))
  })

  test('ends', () => {
    const items = Array.from({ length: 2000 }, (_, n) => `x / ${n}`).join()
    expect(shape(`select ${items} from t`).length).toBeLessThan(4000)
  })
})
