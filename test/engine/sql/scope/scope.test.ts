// Goal: looking up many column names in a scope of many columns does not read all columns for each name. Method:
// columns that count how often their names are read.

import { expect, test } from 'vitest'
import { findInScope, type ScopeColumn } from '../../../../engine/sql/scope/scope.js'
import { dataType } from '../../../../engine/types/column-types.js'

test('names of a wide scope are read a few times, not once for each name that is looked up', () => {
  const width = 1000
  let reads = 0
  const context = { wideScopes: new Map() }
  const type = dataType('LONG')
  const scope = Array.from({ length: width }, (_, index): ScopeColumn => {
    const column = { source: 't', name: '', type, index }
    return Object.defineProperty(column, 'name', {
      get: () => {
        reads++
        return `C${index}`
      },
    })
  })
  for (let index = 0; index < width; index++) {
    for (const path of [[`c${index}`], ['T', `c${index}`]])
      expect(findInScope(scope, { kind: 'column', position: 0, path, quoted: false }, context)).toBe(scope[index])
  }
  expect(reads).toBeLessThan(4 * width)
})
