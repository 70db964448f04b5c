// Goal: docs/functions.md agrees with the function tables, from which `npm run docs` generates it, and every function
// has an example.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  aggregateFunctions,
  scalarFunctions,
  windowFunctionNames,
} from '../../../../../engine/sql/functions/registry/all.js'
import { functionsDocument } from '../../../../../engine/sql/functions/registry/document.js'

const file = new URL('../../../../../docs/functions.md', import.meta.url)

test('functions are documented as they are', () => {
  expect(readFileSync(file, 'utf8'), 'npm run docs').toBe(functionsDocument())
})

/** Cells of each row of a function. */
const rows = functionsDocument()
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))

test('every function has a row, but those that stand for an operator or a clause', () => {
  const documented = new Set(rows.map(([, name = '']) => name.replace(/^`+|`+$/g, '').replaceAll('\\|', '|')))
  const names = [...[...scalarFunctions, ...aggregateFunctions].map(({ name }) => name), ...windowFunctionNames]
  const missing = new Set(names.filter((name) => !documented.has(name)))
  const clauses = ['in_ranges', 'in_values', 'jsonb_concat', 'present_time', 'single_row', 'single_value']
  expect([...missing].filter((name) => !name.endsWith('_where')).sort()).toEqual(clauses)
})

test('every function has an example', () => {
  expect(rows.filter((cells) => cells[5] === '').map(([, name]) => name)).toEqual([])
})
