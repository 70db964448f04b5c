// Goal: docs/functions.md is what the tables say. DOCS_COMPLETE=1 writes it.

import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { aggregateFunctions, scalarFunctions } from '../../../../engine/sql/functions/all.js'
import { functionsDocument } from '../../../../engine/sql/functions/document.js'

const file = new URL('../../../../docs/functions.md', import.meta.url)

test('functions are documented as they are', () => {
  const document = functionsDocument()
  if (process.env['DOCS_COMPLETE'] === '1') writeFileSync(file, document)
  expect(readFileSync(file, 'utf8'), 'run with DOCS_COMPLETE=1').toBe(document)
})

test('no family is forgotten', () => {
  const rows = functionsDocument()
    .split('\n')
    .filter((line) => line.startsWith('| `'))
  expect(rows).toHaveLength(scalarFunctions.length + aggregateFunctions.length)
})
