// Goal: statements that differ only in constants of WHERE have one form, which names the types of the constants, and all
// other differences make another form. Method: forms of pairs of statements, and positions between statements of a form.

import { expect, test } from 'vitest'
import { formOf, movesBetween } from '../../../../engine/sql/parse/statement-form.js'
import type { Value } from '../../../../engine/types/value.js'

function valuesOf(text: string): readonly (readonly [Value, string])[] | null {
  return formOf(text)?.constants.map(({ value, type }) => [value, type.name] as const) ?? null
}

test('constants with their types', () => {
  const values = valuesOf(
    `select a from t where s = 'it''s' and n in (1, -2147483648, 99999999999) and c = 'x' and d >= 1.50 or s <> ''''`,
  )
  expect(values).toEqual([
    ["it's", 'STRING'],
    [1, 'INT'],
    [2_147_483_648n, 'LONG'],
    [99_999_999_999n, 'LONG'],
    ['x', 'CHAR'],
    [1.5, 'DOUBLE'],
    ["'", 'STRING'],
  ])
  expect(formOf('select a from t where d = 1.50')?.constants[0]?.text).toBe('1.50')
})

const alike = [
  ["select a from t where s = 'one'", "select a from t where s = 'another'"],
  ["select a from t where ts in '2024-01'", "select a from t where ts in '2024-02-03;1d'"],
  ['select a from t where n between 1 and 5;', 'select a from t where n between 77 and 100;'],
  [
    'select a from (select * from t where n > 5) x order by 1',
    'select a from (select * from t where n > 15) x order by 1',
  ],
  [
    'with w as (select * from t where n = 1) select 5 from w',
    'with w as (select * from t where n = 2) select 5 from w',
  ],
]

test.each(alike)('%s and %s', (one, other) => {
  expect(formOf(one)).not.toBe(null)
  expect(formOf(one)?.key).toBe(formOf(other)?.key)
})

const apart = [
  ['select a from t where n = 1', 'select a from t where n = 2147483648'],
  ['select a from t where n = 1', 'select a from t where n = 1.0'],
  ['select a from t where n = 1', "select a from t where n = 'one'"],
  ["select a from t where n = 'o'", "select a from t where n = 'one'"],
  ['select a from t where n = 1', 'select a from t  where n = 1'],
  ['select a from t where n in (1, 2)', 'select a from t where n in (1, 2, 3)'],
  ['select 1 from t where n = 1', 'select 2 from t where n = 1'],
  ['select a from t where n = 1 limit 5', 'select a from t where n = 1 limit 6'],
  ['select a from t where n = 1 order by 1', 'select a from t where n = 1 order by 2'],
  ['select a from t where f(1) = 1', 'select a from t where f(2) = 1'],
  ["select a from t where s like 'a%' and n = 1", "select a from t where s like 'b%' and n = 1"],
  ["select a from t where x = 1 and ts > date '2024-01-01'", "select a from t where x = 1 and ts > date '2024-01-02'"],
  ['select a from t where x = 1 and n::decimal(10,2) = 1', 'select a from t where x = 1 and n::decimal(10,3) = 1'],
  ['select a, sum(b) from t where n = 1 sample by 1h', 'select a, sum(b) from t where n = 1 sample by 2h'],
  ['select a from t where n = 1 and m = 1L', 'select a from t where n = 1 and m = 2L'],
  ['select a from t where n = 1 and m = 1e5', 'select a from t where n = 1 and m = 2e5'],
  ['select a from t where n = 1 and "m 1" = 1', 'select a from t where n = 1 and "m 2" = 1'],
]

test.each(apart)('%s but not %s', (one, other) => {
  expect(formOf(one)).not.toBe(null)
  expect(formOf(one)?.key).not.toBe(formOf(other)?.key)
})

const without = [
  'select a from t',
  'select 5',
  "insert into t select * from u where a = 'x'",
  'explain select a from t where n = 1',
  'select a from t where n = $1 and m = 1',
  'select a from t where n = ? and m = 1',
  'select a from t where n = :n and m = 1',
  'select a from t where n = 1 -- and m = 2',
  'select a from t where n = 1 /* 2 */ and m = 2',
  "select a from t where s = E'a' and m = 2",
  "select a from t where s = 'a' and m = 'b",
  'select a from t where n = 1; select 2',
  'select a from t where g = #u33 and m = 2',
  'select a from t where n = 1. and m = 2',
  `select a from t where n in (${Array.from({ length: 65 }, (_, n) => n)})`,
  `select a from t where s = '${'x'.repeat(20_000)}'`,
]

test.each(without)('%s has none', (text) => {
  expect(formOf(text)).toBe(null)
})

test('positions move with the lengths of the constants before them', () => {
  const texts = [
    "select a from t where s = 'a long name' and n = 5 and b",
    "select a from t where s = 'me' and n = 77 and b",
  ]
  const [from = [], to = []] = texts.map((text) => formOf(text)?.constants)
  const moved = movesBetween(from, to)
  const at = (index: number, word: string): number => texts[index]?.indexOf(word) ?? -1
  for (const word of ['select', 't where', "'", 'n =']) expect(moved?.(at(0, word))).toBe(at(1, word))
  expect(moved?.(at(0, '5'))).toBe(at(1, '77'))
  expect(moved?.(at(0, 'and b'))).toBe(at(1, 'and b'))
  expect(moved?.(-1)).toBe(-1)
  expect(movesBetween(from, from)).toBe(null)
})
