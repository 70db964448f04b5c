// Goal: clauses such as ORDER BY find the item of the SELECT list that they refer to, and the list is scanned once
// rather than for each item of the clause. Method: items that count how often they are read.

import { expect, it } from 'vitest'
import type { Call } from '../../../../engine/sql/ast/ast.js'
import type { SelectColumn } from '../../../../engine/sql/bind/select.js'
import { SelectListIndex } from '../../../../engine/sql/bind/select-list-index.js'
import { dataType } from '../../../../engine/types/column-types.js'

const type = dataType('LONG')
let looks = 0

function item(index: number, name: string, args: Call['args']): SelectColumn {
  const call: Call = {
    ...{ kind: 'call', position: 0, schema: null, name, args, distinct: false },
    ...{ orderBy: [], filter: null, ignoreNulls: false, over: null },
  }
  return {
    ...{ alias: null, name, position: 0, bound: { kind: 'column', index, type, position: 0 } },
    get expression() {
      looks++
      return call
    },
  }
}

const x: Call['args'] = [{ kind: 'column', position: 0, path: ['x'], quoted: false }]
const places = (items: SelectColumn[]): SelectListIndex => new SelectListIndex(['A', 'b', 'a'], items, [])

it('finds the first of a name, of a text and of a value, and the last call', () => {
  const found = places([item(7, 'sum', x), item(8, 'SUM', []), item(7, 'sum', x)])
  expect([found.named('a'), found.named('b'), found.named('c')]).toEqual([0, 1, null])
  expect([found.written('sum(x)'), found.written('sum()'), found.written('min(x)')]).toEqual([0, 1, null])
  expect(found.computed('no such')).toBe(null)
  expect([found.lastCall('sum', false), found.lastCall('sum', true), found.lastCall('min', true)]).toEqual([2, 1, null])
})

it('looks through the list once for each way to ask', () => {
  const found = places(Array.from({ length: 100 }, (_, index) => item(index, `f${index}`, x)))
  looks = 0
  for (let index = 0; index < 100; index++) {
    expect(found.written(`f${index}(x)`)).toBe(index)
    expect(found.lastCall(`f${index}`, false)).toBe(index)
  }
  expect(looks).toBe(200)
})
