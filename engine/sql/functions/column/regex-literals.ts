// Finds literals that every match of a regular expression contains, in order. A WebAssembly kernel searches for them
// first, so that the expression runs only on the few strings that contain them. One pass over the pattern; it gives up
// on syntax that it does not analyse.

import { nonNull } from '../../../base/assert.js'

export interface RequiredLiterals {
  /** In order, not overlapping, never empty; in lower case if `ignoreCase`. */
  readonly literals: readonly string[]
  readonly ignoreCase: boolean
  /** The pattern is a single literal, so a string that contains it matches. */
  readonly whole: boolean
}

const ignoreCaseFlag = '(?i)'
/**
 * Flags, named groups and quoting, which change the meaning of what follows. An escaped bracket before `?` looks the
 * same and is excluded as well.
 */
const changing = /\(\?(?!:)|\\Q|\p{Cs}/u
/** Escapes that stand for a character class or an assertion. */
const classEscapes = 'dDwWsSbBAz'
const repetition = /^\{\d+(,\d*)?\}/
const wordCharacter = /[0-9A-Za-z]/
const beyondAscii = /[^\x20-\x7e]/

/** The literals of a valid pattern; undefined if none are known. */
export function requiredLiterals(pattern: string): RequiredLiterals | undefined {
  const ignoreCase = pattern.startsWith(ignoreCaseFlag)
  const body = ignoreCase ? pattern.slice(ignoreCaseFlag.length) : pattern
  // Without case sensitivity only ASCII folds character by character.
  if (changing.test(body) || (ignoreCase && beyondAscii.test(body))) return undefined
  const runs = literalRuns([...body])
  if (runs === undefined) return undefined
  const literals = runs.filter((run) => run.length > 0).map((run) => run.join(''))
  if (literals.length === 0) return undefined
  const whole = runs.length === 1
  return { literals: ignoreCase ? literals.map((text) => text.toLowerCase()) : literals, ignoreCase, whole }
}

/** Runs of adjacent plain characters. Anything else ends a run. */
function literalRuns(characters: readonly string[]): string[][] | undefined {
  const runs: string[][] = [[]]
  for (let at = 0; at < characters.length; ) {
    const character = nonNull(characters[at])
    const run = nonNull(runs.at(-1))
    const end = tokenEnd(characters, at)
    if (end < 0) return undefined
    if (isPlain(characters, at, end)) run.push(nonNull(characters[end - 1]))
    else {
      // The last character is optional or repeated, so it is dropped. After a class or another repetition the run is
      // empty.
      if ('*?{'.includes(character)) run.pop()
      runs.push([])
    }
    at = end
  }
  return runs
}

function isPlain(characters: readonly string[], at: number, end: number): boolean {
  const character = nonNull(characters[at])
  if (character === '\\') return !wordCharacter.test(nonNull(characters[end - 1]))
  return end === at + 1 && !'.^$*?+'.includes(character)
}

/** End of the character, escape, class, group or repetition at the index; -1 if the pattern cannot be analysed. */
function tokenEnd(characters: readonly string[], at: number): number {
  switch (characters[at]) {
    case '|':
    case ')':
      return -1
    case '\\':
      return escapeEnd(characters, at)
    case '[':
      return classEnd(characters, at)
    case '(':
      return groupEnd(characters, at)
    case '{':
      return at + (repetition.exec(characters.slice(at, at + 16).join(''))?.[0].length ?? 1)
    default:
      return at + 1
  }
}

function escapeEnd(characters: readonly string[], at: number): number {
  const escaped = characters[at + 1]
  if (escaped === undefined) return -1
  return wordCharacter.test(escaped) && !classEscapes.includes(escaped) ? -1 : at + 2
}

function classEnd(characters: readonly string[], at: number): number {
  let end = at + (characters[at + 1] === '^' ? 2 : 1)
  // A bracket in the first place is a member of the class.
  if (characters[end] === ']') end++
  while (end < characters.length && characters[end] !== ']') {
    const isName = characters[end] === '[' && characters[end + 1] === ':'
    if (isName) end = characters.indexOf(']', end) + 1
    else end += characters[end] === '\\' ? 2 : 1
    if (end <= 0) return -1
  }
  return end < characters.length ? end + 1 : -1
}

function groupEnd(characters: readonly string[], at: number): number {
  for (let end = at + 1; end < characters.length; ) {
    const character = characters[end]
    if (character === ')') return end + 1
    if (character === '(') end = groupEnd(characters, end)
    else if (character === '[') end = classEnd(characters, end)
    else end += character === '\\' ? 2 : 1
    if (end < 0) return -1
  }
  return -1
}
