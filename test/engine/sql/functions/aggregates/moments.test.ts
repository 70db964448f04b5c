// Goal: the loop `addRows`, by which variance, correlation and similar aggregates add many rows at once, is
// bit-identical to calling `add` for each row.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DoublesState } from '../../../../../engine/sql/functions/function-types.js'
import { aggregateFunctions } from '../../../../../engine/sql/functions/registry/all.js'

const groupsMax = 5

const withRows = aggregateFunctions.flatMap(({ name, takes, column }) =>
  column?.kind === 'doubles' && column.addRows !== undefined
    ? [{ name, variables: takes.length, numbers: column, addRows: column.addRows }]
    : [],
)

test('those of moments have such loops', () => {
  const names = withRows.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['variance', 'stddev', 'var_pop', 'corr', 'covar_samp', 'regr_slope']))
})

/** These take NULL (NaN) into account; the others ignore rows with a NULL. */
const withNulls: ReadonlySet<string> = new Set(['merged_sum'])

function rowByRow({ words, add }: DoublesState, rows: readonly (readonly number[])[], name: string, variables: number) {
  const cells = new Float64Array(words * groupsMax + 2)
  for (const [x = 0, y = 0, group = 0] of rows) {
    if (!withNulls.has(name) && (Number.isNaN(x) || (variables === 2 && Number.isNaN(y)))) continue
    add(cells, 2 + group * words, x, y)
  }
  return cells
}

describe('by rows', () => {
  test.each(withRows)('$name', ({ name, numbers, addRows, variables }) => {
    const group = fc.nat(groupsMax - 1)
    const double = fc.oneof({ weight: 9, arbitrary: fc.double() }, { weight: 1, arbitrary: fc.constant(Number.NaN) })
    const rows = fc.array(fc.tuple(double, double, group), { maxLength: 50 })
    fc.assert(
      fc.property(rows, fc.boolean(), (drawn, grouped) => {
        const given = drawn.map(([x, y, key]) => [x, y, grouped ? key : 0])
        const count = given.length
        const columns = Float64Array.from([0, ...given.map(([x = 0]) => x), ...given.map(([, y = 0]) => y)])
        const groups = Uint32Array.from([0, ...given.map(([, , key = 0]) => key)])
        const cells = new Float64Array(numbers.words * groupsMax + 2)
        const y = variables === 2 ? 1 + count : 1
        addRows(cells, 2, { count, numbers: columns, x: 1, y, groups, ids: grouped ? 1 : 0 })
        expect(cells).toEqual(rowByRow(numbers, given, name, variables))
      }),
    )
  })
})
