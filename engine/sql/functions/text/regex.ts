// Adapter of the regular expression library RE2JS, and translation of LIKE patterns. RE2 matches in linear time, so a
// client's pattern cannot block a thread.

import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'
import { patternCharactersMax } from '../../../base/limits.js'

export interface Matcher {
  /** Whether the string contains a match. */
  test(text: string): boolean
  /** The first group of the first match, or the match itself if the pattern has no groups; null without a match. */
  first(text: string): string | null
  /** Null if the result would exceed `charactersMax`. */
  replaceAll(text: string, replacement: string, charactersMax: number): string | null
  /** Successive matches from an offset on. */
  matches(text: string, from: number): Iterable<Match>
}

export interface Match {
  readonly start: number
  readonly end: number
  /** The groups of the pattern; null for one that did not participate. */
  readonly groups: readonly (string | null)[]
}

let loaded: typeof import('re2js') | undefined

/** The library, which is loaded with the first pattern: most threads never need it. */
function library(): typeof import('re2js') {
  loaded ??= loadLibrary()
  return loaded
}

function loadLibrary(): typeof import('re2js') {
  return createRequire(import.meta.url)('re2js')
}

const compiled = new Map<string, Matcher>()
const compiledMax = 500
/** Total length of cached patterns. A compiled pattern takes about a hundred bytes per character. */
const compiledCharactersMax = 200_000
let compiledCharacters = 0

/** Throws RegexError with the position of the error in the pattern. */
export function compileRegex(pattern: string, options: RegexOptions = {}): Matcher {
  const { RE2JS } = library()
  const flags =
    (options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) |
    (options.lines ? RE2JS.MULTILINE : 0) |
    (options.dotAll ? RE2JS.DOTALL : 0)
  return cached(`r${flags === 0 ? '' : flags} `, pattern, () => RE2JS.compile(pattern, flags))
}

export interface RegexOptions {
  readonly ignoreCase?: boolean
  /** `^` and `$` match at every line. */
  readonly lines?: boolean
  /** A dot also matches newlines. */
  readonly dotAll?: boolean
}

export class RegexError extends Error {
  /** Offset of the error in the pattern, if known. */
  readonly index: number

  constructor(message: string, index: number, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RegexError'
    this.index = index
  }
}

interface Problem {
  readonly what: string
  /** Offset in the pattern; -1 if unknown. */
  readonly index: number
}

/**
 * Translates errors of the library to the messages that users of this dialect know. `part` is the fragment that the
 * library shows.
 */
const problems: readonly (readonly [RegExp, (pattern: string, part: string) => Problem])[] = [
  [/missing closing \)/, (pattern) => ({ what: 'Unclosed group', index: pattern.length })],
  [
    /missing closing \]/,
    (pattern) =>
      pattern.endsWith('-')
        ? { what: 'Illegal character range', index: pattern.length }
        : { what: 'Unclosed character class', index: pattern.length - 1 },
  ],
  [/missing argument to repetition/, (pattern) => dangling(pattern, pattern.search(/(?<=^|[(|])[*+?]/))],
  [/nested repetition/, (pattern, part) => dangling(pattern, pattern.indexOf(part) + part.length - 1)],
  [/unexpected \)/, (pattern) => ({ what: "Unmatched closing ')'", index: unmatched(pattern) - 1 })],
  [
    /character class range/,
    (pattern, part) =>
      part.startsWith('\\')
        ? { what: `Unknown character property name ${part.slice(2)}`, index: pattern.indexOf(part) + part.length - 1 }
        : { what: 'Illegal character range', index: pattern.indexOf(part) + 2 },
  ],
  [
    /repeat count/,
    (pattern, part) => ({ what: 'Illegal repetition range', index: pattern.indexOf(part) + part.length - 1 }),
  ],
  [
    /named capture/,
    (pattern, part) =>
      part.endsWith('>')
        ? { what: 'capturing group name does not start with a Latin letter', index: pattern.indexOf(part) + 3 }
        : { what: "named capturing group is missing trailing '>'", index: pattern.length },
  ],
  [/Perl syntax/, (pattern, part) => ({ what: 'Unknown inline modifier', index: pattern.indexOf(part) + 2 })],
  [/trailing backslash/, (pattern) => ({ what: 'Unexpected end of the pattern', index: pattern.length })],
  [
    /escape sequence/,
    (pattern, part) => ({ what: 'Illegal/unsupported escape sequence', index: pattern.indexOf(part) + 1 }),
  ],
]

function dangling(pattern: string, index: number): Problem {
  return { what: `Dangling meta character '${pattern[index] ?? ''}'`, index: Math.max(0, index) }
}

/** Index of the first unmatched `)`. */
function unmatched(pattern: string): number {
  let depth = 0
  for (let index = 0; index < pattern.length; index++) {
    if (pattern[index] === '\\') index++
    else if (pattern[index] === '(') depth++
    else if (pattern[index] === ')' && --depth < 0) return index
  }
  return 0
}

function problemOf(message: string, pattern: string): Problem {
  const part = /`([^`]*)`/.exec(message)?.[1] ?? ''
  const known = problems.find(([words]) => words.test(message))
  return known?.[1](pattern, part) ?? { what: message.replace(/^error parsing regexp: /, ''), index: 0 }
}

/** The message, with the pattern and a mark below the position of the error. */
function problemText({ what, index }: Problem, pattern: string): string {
  const mark = index >= 0 && index < pattern.length ? `\n${' '.repeat(index)}^` : ''
  return `${what}${index < 0 ? '' : ` near index ${index}`}\n${pattern}${mark}`
}

/** LIKE: % matches any string, _ any character, and a backslash escapes the next character. */
export function compileLike(pattern: string, ignoreCase: boolean): Matcher {
  return cached(ignoreCase ? 'i' : 'l', pattern, () => {
    const { RE2JS } = library()
    const flags = RE2JS.DOTALL | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    return RE2JS.compile(`^${likeToRegex(pattern)}$`, flags)
  })
}

function likeToRegex(pattern: string): string {
  const { RE2JS } = library()
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

function cached(kind: string, pattern: string, make: () => RE2JS): Matcher {
  const key = kind + pattern
  const known = compiled.get(key)
  if (known !== undefined) return known
  if (pattern.length >= patternCharactersMax)
    throw new RegexError(`pattern is too long [characters=${pattern.length}, max=${patternCharactersMax}]`, 0)
  const matcher = matcherOf(pattern, make)
  compiledCharacters += key.length
  if (compiled.size >= compiledMax || compiledCharacters > compiledCharactersMax) {
    compiled.clear()
    compiledCharacters = key.length
  }
  compiled.set(key, matcher)
  return matcher
}

function matcherOf(pattern: string, make: () => RE2JS): Matcher {
  try {
    const regex = make()
    return {
      // Without group positions the library uses an automaton, which is 2 to 5 times as fast.
      test: (text) => regex.test(text),
      first: (text) => {
        const matcher = regex.matcher(text)
        return matcher.find() ? matcher.group(Math.min(1, matcher.groupCount())) : null
      },
      replaceAll: (text, replacement, charactersMax) => {
        const roughMax = charactersMax * 8
        if (charactersAtMost(regex, text, replacement, roughMax) > roughMax) return null
        const replaced = replacedBy(regex, text, replacement)
        return replaced.length > charactersMax ? null : replaced
      },
      matches: (text, from) => matchesOf(regex, text, from),
    }
  } catch (error) {
    if (!(error instanceof library().RE2JSException)) throw error
    const problem = problemOf(error.message, pattern)
    throw new RegexError(problemText(problem, pattern), problem.index, { cause: error })
  }
}

function* matchesOf(regex: RE2JS, text: string, from: number): Generator<Match> {
  const matcher = regex.matcher(text)
  for (let found = matcher.find(from); found; found = matcher.find()) {
    const groups = Array.from({ length: matcher.groupCount() }, (_, index) => matcher.group(index + 1) ?? null)
    yield { start: matcher.start(), end: matcher.end(), groups }
  }
}

/** `$1` and `$0` are groups; a backslash escapes the next character. */
function replacedBy(regex: RE2JS, text: string, replacement: string): string {
  try {
    return regex.matcher(text).replaceAll(replacement, true)
  } catch (error) {
    if (!(error instanceof library().RE2JSException)) throw error
    const missing = /number of groups: (\d+)/.exec(error.message)?.[1]
    throw new RegexError(missing === undefined ? error.message : `No group ${missing}`, 0, { cause: error })
  }
}

/**
 * Upper bound of the length after replacement: each group reference yields at most the whole string. Matches are
 * counted only if that bound is too large.
 */
function charactersAtMost(regex: RE2JS, text: string, replacement: string, charactersMax: number): number {
  const groups = replacement.split('$').length - 1
  const base = text.length * (groups + 1)
  const most = base + (text.length + 1) * replacement.length
  if (most <= charactersMax) return most
  const matcher = regex.matcher(text)
  let characters = base
  while (characters <= charactersMax && matcher.find()) characters += replacement.length
  return characters
}
