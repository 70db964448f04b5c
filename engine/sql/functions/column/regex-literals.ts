// Texts that every match of a regular expression holds, one behind the other: whoever looks for them first need not run the
// pattern over most texts. Found by one walk over the pattern, which gives up where it would have to know more of it.

export interface RequiredLiterals {
  /** In their order, not overlapping, never empty; in lower case with `ignoreCase`. */
  readonly literals: readonly string[]
  readonly ignoreCase: boolean
  /** The pattern is the one literal: who has it matches. */
  readonly whole: boolean
}

const ignoreCaseFlag = '(?i)'
/** Flags, names and quotes, which change what follows; an escaped bracket before `?` looks the same and is left, too. */
const changing = /\(\?(?!:)|\\Q|\p{Cs}/u
/** Escapes that stand for a character of a class, or for a place. */
const classEscapes = 'dDwWsSbBAz'
const repetition = /^\{\d+(,\d*)?\}/
const wordCharacter = /[0-9A-Za-z]/
const beyondAscii = /[^\x20-\x7e]/

/** undefined: none are known. The pattern is a good one. */
export function requiredLiterals(pattern: string): RequiredLiterals | undefined {
  const ignoreCase = pattern.startsWith(ignoreCaseFlag)
  const body = ignoreCase ? pattern.slice(ignoreCaseFlag.length) : pattern
  // Without case only ASCII folds character by character.
  if (changing.test(body) || (ignoreCase && beyondAscii.test(body))) return undefined
  const runs = literalRuns([...body])
  if (runs === undefined) return undefined
  const literals = runs.filter((run) => run.length > 0).map((run) => run.join(''))
  if (literals.length === 0) return undefined
  const whole = runs.length === 1
  return { literals: ignoreCase ? literals.map((text) => text.toLowerCase()) : literals, ignoreCase, whole }
}

/** Characters that stand side by side; a new run begins behind everything that is no plain character. */
function literalRuns(characters: readonly string[]): string[][] | undefined {
  const runs: string[][] = [[]]
  for (let at = 0; at < characters.length; ) {
    const character = characters[at] as string
    const run = runs.at(-1) as string[]
    const end = tokenEnd(characters, at)
    if (end < 0) return undefined
    if (isPlain(characters, at, end)) run.push(characters[end - 1] as string)
    else {
      // What may be there several times or not at all. Behind a class or another repetition the run is empty.
      if ('*?{'.includes(character)) run.pop()
      runs.push([])
    }
    at = end
  }
  return runs
}

function isPlain(characters: readonly string[], at: number, end: number): boolean {
  const character = characters[at] as string
  if (character === '\\') return !wordCharacter.test(characters[end - 1] as string)
  return end === at + 1 && !'.^$*?+'.includes(character)
}

/** Behind the character, escape, class, group or repetition; -1: nothing is known of the pattern. */
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
  // A bracket that comes first is a member.
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
