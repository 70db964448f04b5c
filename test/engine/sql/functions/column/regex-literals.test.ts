// Goal: requiredLiterals() returns strings that occur, in this order, in every match of a regular expression. Method:
// examples, and random patterns over few characters, each tried on random strings: a string that matches must contain
// the literals.

import { expect, test } from 'vitest'
import { requiredLiterals } from '../../../../../engine/sql/functions/column/regex-literals.js'
import { compileRegex, RegexError } from '../../../../../engine/sql/functions/text/regex.js'
import { createRandom, type Random } from '../../../../support/random.js'

test.each([
  ['abc', ['abc'], true],
  ['(?i)aBc', ['abc'], true],
  ['ice.*k9', ['ice', 'k9'], false],
  ['^ab?c$', ['a', 'c'], false],
  ['a+b{2}c', ['a', 'c'], false],
  ['x{,3}', ['x{,3}'], true],
  ['a\\.b\\d', ['a.b'], false],
  ['[]a]bc[^]a]d[[:alpha:]]e', ['bc', 'd', 'e'], false],
  ['ab(c|[)]\\)(d))ef', ['ab', 'ef'], false],
  ['(?:a)bé', ['bé'], false],
])('%s', (pattern, literals, whole) => {
  expect(requiredLiterals(pattern)).toEqual({ literals, ignoreCase: pattern.startsWith('(?i)'), whole })
})

test.each(['', '.*', 'a|b', 'a(?i)b', '\\x41b', '\\Qa.b\\E', '(?i)é', 'a?', '[ab]'])('nothing of %s', (pattern) => {
  expect(requiredLiterals(pattern)).toBeUndefined()
})

const parts = [
  ...['a', 'b', 'A', 'B', 'ab', '{', '}', ']', 'é', '.', '^', '$', '\\.', '\\{', '\\w', '\\b', '\\S', '[ab]', '[^a]'],
  ...['[]a]', '[a\\]]', '[[:upper:]]', '(a)', '(a|b)', '(?:ab)', '(b)?', '((a)b)*', '.*', '|', '-'],
]
const repeats = ['', '', '', '', '*', '+', '?', '*?', '+?', '{2}', '{0,1}', '{1,}', '{']

function join(random: Random, from: readonly string[], count: number): string {
  return Array.from({ length: count }, () => from[random.below(from.length)]).join('')
}

test('matches of random patterns hold the literals', () => {
  const random = createRandom(5)
  let matched = 0
  for (let round = 0; round < 20_000; round++) {
    const flag = random.below(4) === 0 ? '(?i)' : ''
    const factors = Array.from({ length: 1 + random.below(5) }, () => join(random, parts, 1) + join(random, repeats, 1))
    const pattern = flag + factors.join('')
    const required = requiredLiterals(pattern)
    if (required === undefined || !isGood(pattern)) continue
    const matcher = compileRegex(pattern)
    for (let text = 0; text < 6; text++) {
      const made = join(random, ['a', 'b', 'A', 'B', '{', '}', ']', 'é', '.', '-', ','], random.below(9))
      const held = holds(required.ignoreCase ? made.toLowerCase() : made, required.literals)
      const matches = matcher.test(made)
      if (matches) matched++
      expect(required.whole ? matches === held : held || !matches, `${pattern} on ${made}`).toBe(true)
    }
  }
  expect(matched).toBeGreaterThan(1000)
})

function isGood(pattern: string): boolean {
  try {
    compileRegex(pattern)
    return true
  } catch (error) {
    if (error instanceof RegexError) return false
    throw error
  }
}

function holds(text: string, literals: readonly string[]): boolean {
  let from = 0
  return literals.every((literal) => {
    const at = text.indexOf(literal, from)
    from = at + literal.length
    return at >= 0
  })
}
