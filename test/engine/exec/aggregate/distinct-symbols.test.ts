// Goal: SELECT DISTINCT and count(DISTINCT) over a symbol column (dictionary-encoded strings) return the values of a
// full scan, although the executor uses the lists of symbols that data files (parts) have, and need not read all rows.
// Cases: filters that exclude symbols, NULL, rare symbols, replaced and deleted rows. Method: files with many rows, and
// rows in memory; the test computes the expected values.

import { expect, test } from 'vitest'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'
import { runs } from '../../../support/runs.js'

const partRows = runs(100_000, 10_000)
const parts = 12
const base = 1_704_067_200_000_000

type SymbolOf = (x: number) => string | null

interface Case {
  readonly sql: string
  readonly symbolOf: SymbolOf
}

/** A column k0, k1, .. of each case; rows x from 1; those of `stored` parts lie in parts. */
async function filled(columns: readonly Case[], stored: number, options = ''): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  const symbols = columns.map((_, index) => `k${index} symbol`).join()
  await engine.run(`create table t (ts timestamp, n int, ${symbols}) timestamp(ts) partition by day ${options}`)
  // Memory is small here: a part at a time.
  for (let part = 0; part < parts; part++) {
    const x = `(x + ${part * partRows})`
    const values = columns.map(({ sql }) => sql.replaceAll('X', x)).join()
    await engine.run(
      `insert into t select (${base} + ${x} * 100)::timestamp, ${x}::int, ${values} from long_sequence(${partRows})`,
    )
    if (part < stored) await engine.run('checkpoint')
  }
  return engine
}

function different(symbolOf: SymbolOf, chosen: (x: number) => boolean = () => true): (string | null)[] {
  const found = new Set<string | null>()
  for (let x = 1; x <= parts * partRows; x++) if (chosen(x)) found.add(symbolOf(x))
  return [...found]
}

const cases: Readonly<Record<string, Case>> = {
  'the same in all parts': { sql: "'k' || (X % 7)", symbolOf: (x) => `k${x % 7}` },
  'other ones in each part': {
    sql: `'k' || (X / ${partRows * 0.6}) || (X % 3)`,
    symbolOf: (x) => `k${Math.floor(x / (partRows * 0.6))}${x % 3}`,
  },
  'NULL at first': {
    sql: "case when X < 300 then null else 'k' || (X % 5) end",
    symbolOf: (x) => (x < 300 ? null : `k${x % 5}`),
  },
  'NULL once, late': {
    sql: `case when X = ${partRows * 9.5} then null else 'k' || (X % 5) end`,
    symbolOf: (x) => (x === partRows * 9.5 ? null : `k${x % 5}`),
  },
  'a rare one': {
    sql: `case when X = ${partRows * 11} then 'rare' else 'k' || (X % 5) end`,
    symbolOf: (x) => (x === partRows * 11 ? 'rare' : `k${x % 5}`),
  },
  'rare ones, so that all rows are read': {
    sql: `case when X % ${partRows} = ${partRows - 1} then 'r' || X else 'k' end`,
    symbolOf: (x) => (x % partRows === partRows - 1 ? `r${x}` : 'k'),
  },
  'nothing but NULL': { sql: 'null', symbolOf: () => null },
}

test.each([parts - 2, 0])('of %i parts and rows in memory', async (stored) => {
  const engine = await filled(Object.values(cases), stored)
  const column = async (sql: string): Promise<unknown[]> => (await engine.rows(sql)).map(([symbol]) => symbol)
  for (const [index, [name, { symbolOf }]] of Object.entries(cases).entries()) {
    const k = `k${index}`
    const all = different(symbolOf)
    const count = BigInt(all.filter((symbol) => symbol !== null).length)
    expect((await column(`select distinct ${k} from t`)).toSorted(), name).toEqual(all.toSorted())
    expect(await column(`select distinct ${k} from t limit 2`), name).toHaveLength(Math.min(2, all.length))
    expect(await engine.rows(`select count_distinct(${k}) from t`), name).toEqual([[count]])
    expect(await engine.rows(`select count() from (select distinct ${k} from t)`), name).toEqual([[BigInt(all.length)]])
    expect(await column(`select distinct ${k} from t order by ${k}`), name).toEqual(
      all.toSorted((a, b) => (a === null ? -1 : b === null ? 1 : a < b ? -1 : 1)),
    )
    const some = different(symbolOf, (x) => x % 2 === 0 && x > 4 * partRows && x <= 10.5 * partRows)
    const where = `where n % 2 = 0 and ts > ${base + 400 * partRows}::timestamp and ts <= ${base + 1050 * partRows}::timestamp`
    expect((await column(`select distinct ${k} from t ${where}`)).toSorted(), name).toEqual(some.toSorted())
    expect(await engine.rows(`select count(distinct ${k}) from t ${where}`), name).toEqual([
      [BigInt(some.filter((symbol) => symbol !== null).length)],
    ])
    expect(await column(`select distinct ${k} from t where n < 0`), name).toEqual([])
  }
})

test('rows that later ones have replaced do not count', async () => {
  const { 'other ones in each part': given } = cases
  const engine = await filled([given as Case], parts, 'dedup upsert keys(ts)')
  await engine.run(
    `insert into t select (${base} + x * 100)::timestamp, x::int, 'new' from long_sequence(${1.5 * partRows})`,
  )
  const known = different((given as Case).symbolOf, (x) => x > 1.5 * partRows)
  const rows = await engine.rows('select distinct k0 from t')
  expect(rows.map(([symbol]) => symbol as string).toSorted()).toEqual([...known, 'new'].toSorted())
  await engine.run(`delete from t where n < ${5 * partRows}`)
  const left = different((given as Case).symbolOf, (x) => x >= 5 * partRows)
  const remaining = await engine.rows('select distinct k0 from t')
  expect(remaining.map(([symbol]) => symbol as string).toSorted()).toEqual(left.toSorted())
})
