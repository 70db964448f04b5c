// Goal: a walk over a table in its order opens the parts that it reaches, and no others; what LATEST ON finds there is
// what all rows say.
// Method: parts one behind the other whose files are gone where nobody may look.

import { expect, test } from 'vitest'
import { createFaultyDisk } from '../../../support/faulty-files.js'
import { InlineEngine } from '../../../support/inline-engine.js'

const base = 1_704_067_200_000_000

/** Six parts of ten rows; `symbolOf` of the row's number. */
async function filled(
  symbolOf: (row: number) => string | null,
): Promise<{ engine: InlineEngine; lose: () => Promise<void> }> {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const engine = new InlineEngine({ files: disk.files, noMerges: true })
  await engine.settle()
  await engine.run('create table t (ts timestamp, i int, k symbol) timestamp(ts) partition by day')
  for (let part = 0; part < 6; part++) {
    const rows = Array.from({ length: 10 }, (_, index) => {
      const row = part * 10 + index
      const symbol = symbolOf(row)
      return `(${base + row}L, ${row}, ${symbol === null ? 'null' : `'${symbol}'`})`
    })
    await engine.run(`insert into t values ${rows.join()}`)
    await engine.run('checkpoint')
  }
  // All but the first and the last.
  const lose = async (): Promise<void> => {
    const parts = await engine.rows("select file from table_parts('t') order by min")
    expect(parts.length).toBe(6)
    for (const [file] of parts.slice(1, -1)) disk.files.remove(`/db/${file}`)
  }
  return { engine, lose }
}

test('rows at either end cost the parts that have them', async () => {
  const { engine, lose } = await filled(() => 'a')
  await lose()
  expect(await engine.rows('select i from t limit -3')).toEqual([[57], [58], [59]])
  expect(await engine.rows('select i from t limit 2')).toEqual([[0], [1]])
  expect(await engine.rows('select i from t order by ts desc limit 2')).toEqual([[59], [58]])
  await expect(engine.rows('select i from t limit -11')).rejects.toThrow()
  await expect(engine.rows('select i from t where i > 100')).rejects.toThrow()
})

test.each([
  ['every symbol at the end', (row: number) => `s${row % 4}`],
  ['NULLs in the first part only', (row: number) => (row === 4 ? null : `s${row % 4}`)],
  ['NULLs in the middle', (row: number) => (row === 24 || row === 33 ? null : `s${row % 4}`)],
  ['a symbol of the first part', (row: number) => (row === 7 ? 'rare' : `s${row % 3}`)],
  ['a symbol and NULLs in the middle', (row: number) => (row === 21 ? null : row === 37 ? 'rare' : `s${row % 3}`)],
] as const)('the newest row of each symbol: %s', async (_, symbolOf) => {
  const { engine } = await filled(symbolOf)
  const found = await engine.rows('select i, k from t latest on ts partition by k')
  const newest = new Map(Array.from({ length: 60 }, (_, row) => [symbolOf(row), row]))
  const expected = [...newest].sort((a, b) => a[1] - b[1]).map(([symbol, row]) => [row, symbol])
  expect(found).toEqual(expected)
  expect(await engine.rows('select i, k from t latest on ts partition by k')).toEqual(found)
})
