// Goal: in the query of a dashboard panel, variables are replaced by SQL literals of their values. No value can break
// out of its literal. Text in strings and comments that only looks like a variable is not replaced.

import { expect, test } from 'vitest'
import type { Variable } from '../../../../gateways/common/dashboards.js'
import { tokensOf } from '../../../../gateways/common/sql-text.js'
import { panelSql, rangeSql, variableSql } from '../../../../gateways/console/dashboards/panel-sql.js'
import { createRandom } from '../../../support/random.js'

const variable = (kind: Variable['kind'], several = false): Variable => ({
  ...{ name: 'v', kind, several, choices: [], sql: '', initial: [] },
})
const filled = (sql: string, values: readonly string[], kind: Variable['kind'] = 'text', numeric = false): string =>
  panelSql(sql, new Map([['v', variableSql(variable(kind), values, numeric)]]))

test.each([
  ['select * from t where a = @v', ['x'], "select * from t where a = 'x'"],
  ['select * from t where a in (@V)', ['x', 'y'], "select * from t where a in ('x', 'y')"],
  ['a = @v', ["x' or 'a' = 'a"], "a = 'x'' or ''a'' = ''a'"],
  [
    'a = \'@v\' -- @v\n and b = "@v" /* @v */ and c = $$@v$$',
    ['x'],
    'a = \'@v\' -- @v\n and b = "@v" /* @v */ and c = $$@v$$',
  ],
  ['a = @v2 and b @> @v', ['x'], "a = @v2 and b @> 'x'"],
  ["e@v || 'a'@v'b'", ["\\' or 1 = 1 --"], "e '\\'' or 1 = 1 --' || 'a' '\\'' or 1 = 1 --' 'b'"],
  ['a in (@v)', [], 'a in (NULL)'],
])('%s with %j', (sql, values, wanted) => {
  expect(filled(sql, values)).toBe(wanted)
})

test('numbers', () => {
  expect(filled('a -@v', ['-5'], 'number')).toBe('a - (-5)')
  expect(filled('a in (@v)', ['1', '2.5e3'], 'query', true)).toBe('a in (1, 2.5e3)')
  for (const wrong of ['', '1 or 1 = 1', '1;2', '0x10', 'NaN', '1--'])
    expect(() => filled('a = @v', [wrong], 'number')).toThrow('takes a number')
})

test('the time range', () => {
  const range = { fromMs: Date.UTC(2026, 2, 2), toMs: Date.UTC(2026, 2, 9) }
  expect(panelSql('ts >= @from and ts < @to sample by @interval', new Map(rangeSql(range, 200)))).toBe(
    "ts >= '2026-03-02T00:00:00.000Z'::timestamp and ts < '2026-03-09T00:00:00.000Z'::timestamp sample by 1h",
  )
})

// Method: random values of characters that mean something in SQL; the tokens around the value must not change.
test('a value never leaves its literal', () => {
  const random = createRandom(7)
  const pieces = ["'", "''", '"', '\\', '--', '/*', '*/', '$$', ';', '@v', '\n', 'x', ' ', '\u0000', 'é']
  for (const sql of ['select @v, b', 'e@v', "'a'@v'b'", 'x@v', '$$a$$@v', '"n"@v"m"', '1@v']) {
    for (let round = 0; round < 300; round++) {
      const value = Array.from({ length: 8 }, () => random.pick(pieces)).join('')
      const found = tokensOf(filled(sql, [value])).filter(({ kind }) => kind !== 'space')
      const plain = tokensOf(filled(sql, ['x'])).filter(({ kind }) => kind !== 'space')
      const literal = `'${value.replaceAll("'", "''")}'`
      expect(found.map(({ text }) => text)).toEqual(plain.map(({ text }) => (text === "'x'" ? literal : text)))
    }
  }
})
