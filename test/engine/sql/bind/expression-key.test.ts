// Goal: the key of an expression is a text by which the binder recognises equal expressions. Two expressions have the
// same key if they differ only in their positions in the statement, and different keys otherwise. Computing the keys of
// all sub-expressions of a deep expression takes linear time.
//
// Method: pairs of expressions that differ in one detail; nested calls, with a limit for the length of all keys that
// are written.

import { expect, it, vi } from 'vitest'
import type { Expression } from '../../../../engine/sql/plan/plan.js'
import { expressionKey, expressionKeys } from '../../../../engine/sql/typing/types.js'
import { dataType } from '../../../../engine/types/column-types.js'

const type = dataType('LONG')

function chain(links: number, position: number, last = 1n): Expression[] {
  const levels: Expression[] = [{ kind: 'column', index: 0, type, position }]
  for (let link = 0; link < links; link++) {
    const one: Expression = { kind: 'constant', value: link + 1 === links ? last : 1n, type, position }
    levels.push({ kind: 'call', name: '+', args: [levels.at(-1) as Expression, one], type, position: position + link })
  }
  return levels
}

it('tells expressions apart by what they are, not by where they are', () => {
  const key = (levels: Expression[]): string => expressionKey(levels.at(-1) as Expression)
  expect(key(chain(5, 3))).toBe(key(chain(5, 90)))
  expect(key(chain(5, 3))).not.toBe(key(chain(6, 3)))
  expect(key(chain(5, 3))).not.toBe(key(chain(5, 3, 2n)))
})

it('writes each level of a chain once', () => {
  const written = vi.spyOn(JSON, 'stringify')
  const keyOf = expressionKeys()
  for (const level of chain(500, 0)) keyOf(level)
  const characters = written.mock.results.reduce((sum, { value }) => sum + String(value).length, 0)
  written.mockRestore()
  expect(characters).toBeGreaterThan(0)
  expect(characters).toBeLessThan(200_000)
})
