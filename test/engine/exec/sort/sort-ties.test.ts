// Goal: ORDER BY .. LIMIT on several keys returns the first rows of a complete sort when most rows have the same first
// key. Method: keys of few values including NULL and -0, and so many rows that the sort discards rows beyond the limit
// several times, compared with a complete sort.

import { expect, test } from 'vitest'
import type { SortKey } from '../../../../engine/sql/plan/plan.js'
import { dataType } from '../../../../engine/types/column-types.js'
import type { Value } from '../../../../engine/types/value.js'
import { createRandom } from '../../../support/random.js'
import { createBench, makeTable, queryOf, runQuery, scanOf } from '../exec-support.js'

const columns = [
  { name: 'ts', type: dataType('TIMESTAMP') },
  { name: 'sym', type: dataType('SYMBOL') },
  { name: 'i', type: dataType('INT') },
  { name: 'd', type: dataType('DOUBLE') },
  { name: 'f', type: dataType('FLOAT') },
  { name: 'l', type: dataType('LONG') },
  { name: 'text', type: dataType('VARCHAR') },
]
const kernelKeys = [1, 2, 3, 4, 5]

test('ties in the first key are ordered by the second one', () => {
  const bench = createBench()
  const random = createRandom(11)
  const few = <Item>(...items: Item[]): Item => random.pick(items)
  const rows = Array.from({ length: 60_000 }, (_, row): Value[] => [
    1_000_000n + BigInt(row),
    few(null, 'a', 'b', 'c'),
    few(null, -1, 0, 1),
    few(null, -0, 0, 1.5, random.next()),
    few(null, -0, 0.5),
    few(null, -(2n ** 40n), 7n, BigInt(random.below(1000))),
    few('x', 'y'),
  ])
  const table = makeTable(bench, columns, [rows], 0)
  for (let round = 0; round < 30; round++) {
    const key = (index: number): SortKey => ({ index, descending: random.chance(0.5), nullsFirst: random.chance(0.5) })
    const keys = [key(random.pick(kernelKeys)), ...(random.chance(0.8) ? [key(random.pick([...kernelKeys, 6]))] : [])]
    if (random.chance(0.4)) keys.push(key(random.pick([0, 6])))
    const limit = random.pick([1, 10, 500, 20_000])
    const plan = { kind: 'sort', input: scanOf(table), columns, keys, limit: null } as const
    const whole = runQuery(bench, queryOf(plan), [table]).rows
    const first = runQuery(bench, queryOf({ ...plan, limit }), [table]).rows
    expect(first, JSON.stringify({ keys, limit })).toEqual(whole.slice(0, limit))
  }
})
