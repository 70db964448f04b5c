// Goal: docs/functions.md agrees with the function tables. `npm run docs` writes it.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { aggregateFunctions, scalarFunctions } from '../../../../../engine/sql/functions/registry/all.js'
import { functionsDocument } from '../../../../../engine/sql/functions/registry/document.js'

const file = new URL('../../../../../docs/functions.md', import.meta.url)

test('functions are documented as they are', () => {
  expect(readFileSync(file, 'utf8'), 'npm run docs').toBe(functionsDocument())
})

test('no family is forgotten', () => {
  const rows = functionsDocument()
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  expect(rows).toHaveLength(scalarFunctions.length + aggregateFunctions.length)
})
