// Goal: overload resolution of SQL functions is cached by argument types. Method: function table entries that count how
// often they are read; a second call with the same types must not read them.

import { expect, test } from 'vitest'
import { bestOverload } from '../../../../../engine/sql/functions/registry/resolve.js'
import { type ColumnType, dataType } from '../../../../../engine/types/column-types.js'

const argument = (name: ColumnType, isConstant = false, isNull = false) => ({
  type: dataType(name),
  isConstant,
  isNull,
})

test('calls of the same types look at the rows once', () => {
  let looks = 0
  const rows = (['INT', 'LONG', 'DOUBLE', 'TIMESTAMP', 'VARCHAR'] as const).map((type) => ({
    type,
    get takes() {
      looks++
      return [type]
    },
  }))
  const nearest = (...of: Parameters<typeof argument>) => bestOverload(rows, [argument(...of)])?.type
  expect(nearest('SHORT')).toBe('INT')
  const first = looks
  for (let call = 0; call < 1000; call++) expect(nearest('SHORT')).toBe('INT')
  expect(looks).toBe(first)
  expect(nearest('FLOAT')).toBe('DOUBLE')
  expect(nearest('SYMBOL')).toBe('VARCHAR')
  // Only a string literal converts to a number or timestamp, and NULL matches everything.
  expect(nearest('UUID')).toBe(undefined)
  expect(nearest('UUID')).toBe(undefined)
  expect(nearest('UUID', true, true)).toBe('INT')
})
