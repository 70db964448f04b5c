// Statements of a size that tools write: long chains of OR and AND, long lists, CASE of many branches, wide results. The
// answers are known from arithmetic. Method: the same statement with the generated kernels and without.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EngineDoor, engineDoor } from './doors.js'

const terms = 1500
const numbers = Array.from({ length: terms }, (_, index) => index)

/** Rows hold x = 1 to 300, v = 'v<x>', s = one of ten symbols. */
const cases: readonly [string, string, string][] = [
  ['equalities', `select count() from t where ${numbers.map((n) => `x = ${n * 2}`).join(' or ')}`, '[150]'],
  ['texts', `select count() from t where ${numbers.map((n) => `v = 'v${n * 2}'`).join(' or ')}`, '[150]'],
  ['symbols', `select count() from t where ${numbers.map((n) => `s = 's${n}'`).join(' or ')}`, '[300]'],
  [
    'equalities and others',
    `select count() from t where x > 200 or ${numbers.map((n) => `x = ${n * 2}`).join(' or ')}`,
    '[200]',
  ],
  [
    'conditions of two columns',
    `select count() from t where ${numbers.map((n) => `(x = ${n * 2} and y > ${n})`).join(' or ')}`,
    '[150]',
  ],
  ['inequalities', `select count() from t where ${numbers.map((n) => `x <> ${n * 2}`).join(' and ')}`, '[150]'],
  [
    'a chain as a value',
    `select sum(case when ${numbers.map((n) => `x = ${n * 2}`).join(' or ')} then 1 else 0 end) from t`,
    '[150]',
  ],
  [
    'missing values',
    `select count() from t where ${numbers.map((n) => `x = ${n * 2}`).join(' or ')} or m = null`,
    '[300]',
  ],
  [
    'CASE of numbers',
    `select sum(case x ${numbers.map((n) => `when ${n * 2} then ${n}`).join(' ')} else -1 end) from t`,
    '[11175]',
  ],
  [
    'CASE without ELSE',
    `select count(case ${numbers.map((n) => `when x = ${n * 2} then 'v${n}'`).join(' ')} end) from t`,
    '[150]',
  ],
  [
    'the first branch counts',
    `select sum(case x ${numbers.map((n) => `when ${n % 100} then ${n}`).join(' ')} end) from t`,
    '[4950]',
  ],
  ['IN', `select count() from t where x in (${numbers.map((n) => n * 2).join()})`, '[150]'],
  ['ANY of a text', `select count() from t where x = any('{${numbers.map((n) => n * 2).join()}}')`, '[150]'],
  [
    'ALL of an array',
    `select count() from t where y <> all(array[${numbers.map((n) => `${n * 2}.0`).join()}])`,
    '[150]',
  ],
]

describe.each([true, false])('long statements, jit %s', (jit) => {
  let door: EngineDoor
  beforeAll(async () => {
    door = await engineDoor(jit)
    await door.run(
      "create table t as (select x, x * 1.0 y, ('v' || x) v, ('s' || x % 10)::symbol s, null::int m from long_sequence(300))",
    )
  }, 60_000)
  afterAll(async () => door?.close(), 60_000)

  it.each(cases)(
    '%s',
    async (_name, sql, rows) => {
      expect(await door.rows(sql)).toBe(rows)
    },
    60_000,
  )

  it('wide results', async () => {
    const columns = Array.from({ length: 3000 }, (_, index) => `sum(x + ${index}) c${index}`)
    const [row] = JSON.parse(`[${await door.rows(`select ${columns.join()} from t`)}]`) as number[][]
    expect(row).toEqual(columns.map((_, index) => 45_150 + index * 300))
  }, 60_000)
})
