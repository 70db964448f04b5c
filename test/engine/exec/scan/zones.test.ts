// Goal: zone maps (minimum and maximum of each page) skip exactly the pages without a matching row. Method: random
// conditions over Parquet files with known bounds, compared with equivalent conditions on expressions, which have no
// zone maps. Then the function that selects pages, scanRuns(), is called directly for row ranges with given bounds.

import { expect, test } from 'vitest'
import type { ExecContext } from '../../../../engine/exec/batch/context.js'
import type { QueryArena } from '../../../../engine/exec/batch/query-arena.js'
import { newQueryState } from '../../../../engine/exec/batch/query-state.js'
import type { ScanShape } from '../../../../engine/exec/scan/scan-shape.js'
import { scanRuns } from '../../../../engine/exec/scan/zones.js'
import type { Expression } from '../../../../engine/sql/plan/plan.js'
import type { PartDescriptor } from '../../../../engine/storage/schema/schema.js'
import { dataType } from '../../../../engine/types/column-types.js'
import { emptyEngine, type InlineEngine } from '../../../support/inline-engine.js'
import { createRandom } from '../../../support/random.js'

const base = 1_704_067_200_000_000n

async function filled(dedup: string): Promise<InlineEngine> {
  const engine = await emptyEngine({ noCompactions: true })
  await engine.run(
    `create table t (ts timestamp, i int, l long, d double, s short, k symbol) timestamp(ts) partition by day ${dedup}`,
  )
  for (let part = 0; part < 6; part++) {
    const rows = Array.from({ length: 10 }, (_, row) => {
      const value = part * 10 + row
      const missing = row === 3
      const at = base + BigInt(dedup === '' ? part * 10 + row : row)
      const symbol = missing ? 'null' : row < 5 ? `'p${part}'` : row < 8 ? `'r${row}'` : `'e${part % 2}'`
      return `(${at}L, ${missing ? 'null' : value}, ${missing ? 'null' : value - 30}, ${missing ? 'null' : value / 4}, ${value}, ${symbol})`
    })
    await engine.run(`insert into t values ${rows.join()}`)
    await engine.run('checkpoint')
  }
  return engine
}

test.each(['', 'dedup upsert keys(ts)'])(
  'conditions on columns give what they give on expressions (%s)',
  async (dedup) => {
    const engine = await filled(dedup)
    const random = createRandom(7)
    let some = 0
    for (let round = 0; round < 100; round++) {
      const [name, plain] = random.pick([
        ['i', 'i + 0'],
        ['l', 'l + 0'],
        ['d', 'd + 0'],
        ['s', 's + 0'],
      ] as const)
      const value = (): number => random.between(-35, 65)
      const condition = random.pick([
        (x: string) => `${x} = ${value()}`,
        (x: string) => `${x} ${random.pick(['<', '<=', '>', '>='])} ${value()}`,
        (x: string) => `${value()} ${random.pick(['<', '<=', '>', '>=', '='])} ${x}`,
        (x: string) => `${x} between ${value()} and ${value()}`,
        (x: string) => `${x} in (${value()}, ${value()}, ${value()})`,
      ])
      const text = condition('#')
      const selected = 'select ts, i, s from t where '
      const expected = await engine.rows(selected + text.replaceAll('#', plain))
      expect(await engine.rows(selected + text.replaceAll('#', name)), text).toEqual(expected)
      if (expected.length > 0) some++
    }
    expect(some).toBeGreaterThan(30)
  },
)

test.each(['', 'dedup upsert keys(ts)'])('symbols are found where they are (%s)', async (dedup) => {
  const engine = await filled(dedup)
  await engine.run(`insert into t values (${base + 100n}L, 1, 1, 1, 1, 'm'), (${base + 101n}L, 1, 1, 1, 1, 'p3')`)
  for (const strings of [
    ['p0'],
    ['p3'],
    ['r5'],
    ['e1'],
    ['m'],
    ['none'],
    ['p1', 'none', 'e0'],
    ['m', 'p5'],
    ['none', 'x'],
  ]) {
    const list = strings.map((text) => `'${text}'`).join()
    const expected = await engine.rows(`select ts, i, k from t where k || '' in (${list})`)
    expect(await engine.rows(`select ts, i, k from t where k in (${list})`), list).toEqual(expected)
    if (strings.length > 1) continue
    expect(await engine.rows(`select ts, i, k from t where k = ${list}`), list).toEqual(expected)
    expect(await engine.rows(`select ts, i, k from t where ${list} = k and i > 0`), list).toEqual(
      expected.filter(([, i]) => Number(i) > 0),
    )
    expect(await engine.rows(`select count() from t where k = ${list}`), list).toEqual([[BigInt(expected.length)]])
  }
})

test('pages without candidates are not among the runs', () => {
  const bounds = [
    [0n, 9n],
    [10n, 19n],
    [20n, 29n],
  ] as const
  const part = { id: 1, rows: 30, minTs: 0n, maxTs: 29n, minTxn: 1, maxTxn: 1 } as PartDescriptor
  const partAccess = {
    open: () => ({ descriptor: part, rows: 30, pageCount: 3, firstRows: [0, 10, 20, 30], minTs: [], maxTs: [] }),
    statistics: (_part: unknown, _column: number, page: number) => ({
      bounds: { min: bounds[page]?.[0], max: bounds[page]?.[1] },
    }),
  }
  const version = { schema: { timestampId: -1, dedupKeys: [], columns: [] }, parts: [part], memtables: [] }
  const column: Expression = { kind: 'column', index: 0, type: dataType('LONG'), position: 0 }
  const rowsOf = (name: string, ...values: bigint[]): number => {
    const constants = values.map((value): Expression => ({ kind: 'constant', value, type: column.type, position: 0 }))
    const filter: Expression = {
      ...{ kind: 'call', name, args: [column, ...constants] },
      ...{ type: dataType('BOOLEAN'), position: 0 },
    }
    const shape = { snapshot: { version, visibleRows: [] }, columnIds: [5], types: [], ranges: null, filter }
    const runs = scanRuns(
      { partAccess, state: newQueryState({} as QueryArena) } as unknown as ExecContext,
      shape as unknown as ScanShape,
    )
    return runs.reduce((sum, run) => sum + run.rows, 0)
  }
  expect(rowsOf('=', 15n)).toBe(10)
  expect(rowsOf('=', 35n)).toBe(0)
  expect(rowsOf('>', 19n)).toBe(10)
  expect(rowsOf('>=', 19n)).toBe(20)
  expect(rowsOf('<', 10n)).toBe(10)
  expect(rowsOf('<=', 10n)).toBe(20)
  expect(rowsOf('between', 25n, 12n)).toBe(20)
  expect(rowsOf('in', 1n, 29n)).toBe(20)
  expect(rowsOf('<>', 5n)).toBe(30)
})
