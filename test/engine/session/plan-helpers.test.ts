// Goal: a query that is the only statement of its text is recognised as such, whatever blanks and semicolons a driver
// appends, so that its plan can be cached under that text.

import { expect, test } from 'vitest'
import type { ParsedStatement } from '../../../engine/api/statements.js'
import { isWhole } from '../../../engine/session/plan-helpers.js'
import { parseScript } from '../../../engine/sql/parse/parse.js'

function wholeOf(text: string): boolean[] {
  return parseScript(text).map((part) => isWhole({ text, ...part } as ParsedStatement))
}

test.each([
  ['select 1', [true]],
  ['select 1;', [true]],
  ['select 1  ', [true]],
  ['select 1 ; \n', [true]],
  ['select 1 order by 1  ', [true]],
  ['select 1; select 2', [false, false]],
  ['select 1; select 2;', [false, false]],
])('%j', (text, found) => {
  expect(wholeOf(text)).toEqual(found)
})
