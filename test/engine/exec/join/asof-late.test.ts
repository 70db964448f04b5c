// Goal: an ASOF JOIN or LT JOIN whose left input begins late in the history of the right table searches the earlier
// right rows backwards, and returns the rows that a complete scan gives: whether it finds the matches soon, late, or
// not at all. Method: a right table of many rows; the test computes the expected rows.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'

const rows = 700_000
const partRows = 100_000
const base = 1_704_067_200_000_000
const at = (row: number): number => base + row * 10
const left: readonly (readonly [number, string | null])[] = [
  [at(650_000) + 3, 'k1'],
  [at(650_000) + 3, 'k2'],
  [at(650_001), 'k1'],
  [at(660_000), null],
  [at(699_998), 'k4'],
  [at(700_500), 'k0'],
]

/** `old`: a symbol that lies further back than a walk looks. */
async function filled(symbols: readonly (readonly [number, string | null])[], old: string): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run('create table r (ts timestamp, k symbol, v int) timestamp(ts) partition by day')
  // Memory is small here: a part at a time.
  for (let first = 0; first < rows; first += partRows) {
    const x = `(x + ${first})`
    await engine.run(
      `insert into r select (${base} + ${x} * 10)::timestamp, case when ${x} < 50 then '${old}' when ${x} % 1000 = 0 then null else 'k' || (${x} % 5) end, ${x}::int from long_sequence(${partRows})`,
    )
    await engine.run('checkpoint')
  }
  await engine.run('create table l (ts timestamp, k symbol) timestamp(ts) partition by day')
  const values = symbols.map(([ts, k]) => `(${ts}L, ${k === null ? 'null' : `'${k}'`})`)
  await engine.run(`insert into l values ${values.join()}`)
  return engine
}

/** The row of the right side that is found. */
function latest(ts: number, before: boolean, matches: (row: number) => boolean, tolerance = Infinity): number | null {
  for (let row = Math.min(rows, Math.floor((ts - base) / 10)); row > 0; row--) {
    if (ts - at(row) > tolerance) return null
    if (!(before && at(row) === ts) && matches(row)) return row
  }
  return null
}

test.each([
  ['found soon', 'k1', left],
  ['found late', 'rare', [...left, [at(699_999), 'rare']]],
  ['not there', 'k1', [...left, [at(699_999), 'none']]],
] as const)('keys whose latest rows are %s', async (_, old, symbols) => {
  const engine = await filled(symbols, old)
  const symbolOf = (row: number): string | null => (row < 50 ? old : row % 1000 === 0 ? null : `k${row % 5}`)
  const sorted = [...symbols].sort((a, b) => a[0] - b[0])
  const same = (k: string | null) => (row: number) => symbolOf(row) === k
  for (const [join, expected] of [
    ['asof join r on (k)', sorted.map(([ts, k]) => latest(ts, false, same(k)))],
    ['lt join r on (k)', sorted.map(([ts, k]) => latest(ts, true, same(k)))],
    ['asof join r', sorted.map(([ts]) => latest(ts, false, () => true))],
    ['lt join r', sorted.map(([ts]) => latest(ts, true, () => true))],
    ['asof join r on (k) tolerance 100U', sorted.map(([ts, k]) => latest(ts, false, same(k), 100))],
    [
      'asof join (select * from r where v % 3 = 0) r on (k)',
      sorted.map(([ts, k]) => latest(ts, false, (row) => row % 3 === 0 && symbolOf(row) === k)),
    ],
  ] as const) {
    expect(await engine.rows(`select r.v from l ${join}`), join).toEqual(expected.map((row) => [row]))
  }
})
