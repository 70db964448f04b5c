// Goal: a table scan in timestamp order opens only those data files (parts) that it reaches before it ends; LATEST ON,
// which scans backwards, finds the same rows as a full scan. Method: tables with many parts, where those that must not
// be opened have no file, so that opening one fails.

import { expect, test } from 'vitest'
import { InlineEngine } from '../../support/inline-engine.js'
import { createFaultyDisk } from '../../support/simulator/faulty-files.js'

const base = 1_704_067_200_000_000

type SymbolOf = (row: number) => string | null

/** Six parts of ten rows; symbols by the row's number. */
async function filled(
  symbolOf: SymbolOf,
  otherOf: SymbolOf = () => 'other',
): Promise<{ engine: InlineEngine; lose: () => Promise<void> }> {
  const disk = createFaultyDisk(1)
  disk.files.makeDirectory('/db')
  disk.files.syncDirectory('/')
  const engine = new InlineEngine({ files: disk.files, noCompactions: true })
  await engine.settle()
  await engine.run('create table t (ts timestamp, i int, k symbol, o symbol) timestamp(ts) partition by day')
  for (let part = 0; part < 6; part++) {
    const rows = Array.from({ length: 10 }, (_, index) => {
      const row = part * 10 + index
      const [k, o] = [symbolOf(row), otherOf(row)].map((symbol) => (symbol === null ? 'null' : `'${symbol}'`))
      return `(${base + row}L, ${row}, ${k}, ${o})`
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

test.each([
  ['every pair at the end', (row: number) => `s${row % 2}`, (row: number) => `o${row % 3}`],
  ['NULLs in the first part only', (row: number) => (row === 4 ? null : `s${row % 2}`), (row: number) => `o${row % 3}`],
  [
    'NULLs of the other in the middle',
    (row: number) => `s${row % 2}`,
    (row: number) => (row === 24 ? null : `o${row % 3}`),
  ],
  ['a pair of the first part', (row: number) => `s${row % 2}`, (row: number) => `o${row === 3 ? 0 : row % 2}`],
  [
    'NULLs in the last parts, which lack a symbol',
    (row: number) => (row === 45 || row > 57 ? null : `s${row % 2}`),
    (row: number) => `o${Math.floor(row / 10) % 3}`,
  ],
] as const)('the newest row of each pair of symbols: %s', async (_, symbolOf, otherOf) => {
  const { engine } = await filled(symbolOf, otherOf)
  for (const [where, passes] of [
    ['', () => true],
    ["where k = 's1'", (row: number) => symbolOf(row) === 's1'],
    ["where k in ('s0', 's1') and i < 50", (row: number) => symbolOf(row) !== null && row < 50],
  ] as const) {
    const rows = Array.from({ length: 60 }, (_row, row) => row).filter(passes)
    const newest = new Map(rows.map((row) => [`${symbolOf(row)} ${otherOf(row)}`, row]))
    const expected = [...newest.values()].sort((a, b) => a - b).map((row) => [row, symbolOf(row), otherOf(row)])
    expect(await engine.rows(`select i, k, o from t ${where} latest on ts partition by k, o`), where).toEqual(expected)
  }
})

test('the ends of time of rows that lie far from them', async () => {
  const { engine } = await filled(() => 'a')
  // More rows than a walk looks at before it gives up.
  await engine.run(
    `insert into t select (${base + 1000} + x)::timestamp, (x % 1000)::int, 'b', 'c' from long_sequence(1200000)`,
  )
  const [first, last, none] = [BigInt(base), BigInt(base + 1000 + 1_200_000), null]
  expect(await engine.rows("select min(ts), max(ts) from t where i + 0 = 0 and o = 'other'")).toEqual([[first, first]])
  expect(await engine.rows('select max(ts), min(ts) from t where i + 0 = 0')).toEqual([[last, first]])
  expect(await engine.rows('select max(ts), min(ts) from t where i + 0 = 1000')).toEqual([[none, none]])
  expect(await engine.rows('select max(ts) m from t where i + 0 = 1000 or i * 2 = 118')).toEqual([[last - 941n]])
})
