// Goal: the example of each SQL function in the function tables has the result that the table says, and each entry has
// a description.

import { describe, expect, test } from 'vitest'
import { aggregateFunctions, scalarFunctions, signatureText } from '../../../../engine/sql/functions/registry/all.js'
import { displayText } from '../../../../engine/types/convert.js'
import { MemoryDatabase } from '../../../support/memory-database.js'

const database = new MemoryDatabase()

function result(sql: string): string {
  const { rows, columns } = database.run(sql)
  const value = rows[0]?.[0]
  const type = columns[0]?.type
  return value === null || value === undefined || type === undefined ? 'NULL' : displayText(value, type)
}

describe('scalar functions', () => {
  const examples = scalarFunctions.flatMap((row) => (row.example === null ? [] : [row.example]))
  test.each(examples)('%s = %s', (expression, expected) => {
    expect(result(`select ${expression} x`)).toBe(expected)
  })
})

describe('aggregates', () => {
  const examples = aggregateFunctions.flatMap((row) => (row.example === null ? [] : [row.example]))
  test.each(examples)('%s = %s', (expression, expected) => {
    expect(result(`select ${expression} x from long_sequence(5)`)).toBe(expected)
  })
})

test('every row has a sentence', () => {
  for (const row of [...scalarFunctions, ...aggregateFunctions])
    expect(row.description, signatureText(row)).toMatch(/\.$/)
})
