// The one place that knows the library for regular expressions: linear time, so that no pattern of a user can stop a
// thread. LIKE patterns are translated here too.

import { RE2JS, RE2JSException } from 're2js'

export interface Matcher {
  /** Whether the text contains a match. */
  test(text: string): boolean
  replaceAll(text: string, replacement: string): string
}

const compiled = new Map<string, Matcher>()
const compiledMax = 500

/** Throws RegexError with the place of the problem in the pattern. */
export function compileRegex(pattern: string): Matcher {
  return cached(`r${pattern}`, () => RE2JS.compile(pattern))
}

export class RegexError extends Error {
  /** Offset of the problem in the pattern, as well as it is known. */
  readonly index: number

  constructor(message: string, index: number, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RegexError'
    this.index = index
  }
}

/** What is not closed is noticed at the end. */
function problemIndex(message: string, pattern: string): number {
  if (message.includes('missing closing )')) return pattern.length
  return message.includes('missing closing ]') ? pattern.length - 1 : 0
}

/** In the words that users of this dialect search for; the pattern with a mark below where the problem is in it. */
function problemText(message: string, pattern: string, index: number): string {
  const what = message.includes('missing closing )')
    ? 'Unclosed group'
    : message.includes('missing closing ]')
      ? 'Unclosed character class'
      : message.includes('missing argument to repetition')
        ? `Dangling meta character '${pattern[index] ?? ''}'`
        : message.replace(/^error parsing regexp: /, '')
  const mark = index < pattern.length ? `\n${' '.repeat(index)}^` : ''
  return `${what} near index ${index}\n${pattern}${mark}`
}

/** LIKE: % is any text, _ any character, a backslash takes the next character as it is. */
export function compileLike(pattern: string, ignoreCase: boolean): Matcher {
  return cached(`${ignoreCase ? 'i' : 'l'}${pattern}`, () => {
    const flags = RE2JS.DOTALL | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    return RE2JS.compile(`^${likeToRegex(pattern)}$`, flags)
  })
}

function likeToRegex(pattern: string): string {
  let regex = ''
  const characters = [...pattern]
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] ?? ''
    if (character === '%') regex += '.*'
    else if (character === '_') regex += '.'
    else if (character === '\\' && index + 1 < characters.length) regex += RE2JS.quote(characters[++index] ?? '')
    else regex += RE2JS.quote(character)
  }
  return regex
}

function cached(key: string, make: () => RE2JS): Matcher {
  const known = compiled.get(key)
  if (known !== undefined) return known
  const matcher = matcherOf(key.slice(1), make)
  if (compiled.size >= compiledMax) compiled.clear()
  compiled.set(key, matcher)
  return matcher
}

function matcherOf(pattern: string, make: () => RE2JS): Matcher {
  try {
    const regex = make()
    return {
      test: (text) => regex.matcher(text).find(),
      replaceAll: (text, replacement) => regex.matcher(text).replaceAll(replacement),
    }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const index = problemIndex(error.message, pattern)
    throw new RegexError(problemText(error.message, pattern, index), index, { cause: error })
  }
}
