// SQL functions: regular expressions as in PostgreSQL (regexp_match(), regexp_split_to_array(), regexp_substr(), ..),
// with option letters, `\1` for groups in a replacement, and a dot that matches newlines. (The native regexp_replace()
// is in strings.ts.)
//
//   options    g all matches, i ignore case, c match case, n and m newline-sensitive, p partially newline-sensitive,
//              s not newline-sensitive, w `^` and `$` match at lines, x ignore blanks, q the pattern is literal text

import { SqlError } from '../../../base/errors.js'
import { valueBytesMax } from '../../../base/limits.js'
import type { DataType } from '../../../types/column-types.js'
import { textArray } from '../../../types/text-lists.js'
import type { Value } from '../../../types/value.js'
import type { ScalarFunction, TypePattern } from '../function-types.js'
import { textArrayType } from '../text-lists.js'
import { compileRegex, type Match, type Matcher, RegexError } from './regex.js'

const strings = (): DataType => textArrayType

interface Options {
  readonly global: boolean
  readonly ignoreCase: boolean
  /** `.` and bracket expressions do not match a newline. */
  readonly stops: boolean
  /** `^` and `$` match at every line. */
  readonly lines: boolean
  readonly plain: boolean
  readonly expanded: boolean
}

const lineOptions: Readonly<Record<string, Pick<Options, 'stops' | 'lines'>>> = {
  n: { stops: true, lines: true },
  m: { stops: true, lines: true },
  p: { stops: true, lines: false },
  w: { stops: false, lines: true },
  s: { stops: false, lines: false },
}

function optionsOf(flags: string): Options {
  let options: Options = {
    global: false,
    ignoreCase: false,
    stops: false,
    lines: false,
    plain: false,
    expanded: false,
  }
  for (const flag of flags) {
    const lines = lineOptions[flag]
    if (lines !== undefined) options = { ...options, ...lines }
    else if (flag === 'g') options = { ...options, global: true }
    else if (flag === 'i' || flag === 'c') options = { ...options, ignoreCase: flag === 'i' }
    else if (flag === 'q') options = { ...options, plain: true }
    else if (flag === 'x') options = { ...options, expanded: true }
    else if (flag !== 't') throw new SqlError(`invalid regular expression option: "${flag}"`, 0)
  }
  return options
}

/** Escapes that only PostgreSQL has, for word boundaries and the end of the text. */
const escapes: Readonly<Record<string, string>> = { y: '\\b', m: '\\b', M: '\\b', Y: '\\B', Z: '\\z' }

function patternText(pattern: string, options: Options): string {
  if (options.plain) return pattern.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&')
  const bare = options.expanded ? pattern.replace(/(\\[\s\S])|\s+|#.*/g, '$1') : pattern
  return bare.replace(/\\([\s\S])/g, (all, flag: string) => escapes[flag] ?? all)
}

function matcherOf(pattern: Value | undefined, options: Options): Matcher {
  try {
    return compileRegex(patternText(String(pattern), options), { ...options, dotAll: !options.stops })
  } catch (thrown) {
    if (thrown instanceof RegexError) throw new SqlError(thrown.message, 0)
    throw thrown
  }
}

/** The matches from position `from`, which counts from 1. */
function found(text: string, pattern: Value | undefined, flags: Value | undefined, from = 1): Iterable<Match> {
  const { global: _, ...options } = optionsOf(String(flags ?? ''))
  if (from < 1) throw new SqlError(`invalid value for parameter "start": ${from}`, 0)
  return from > text.length + 1 ? [] : matcherOf(pattern, { ...options, global: true }).matches(text, from - 1)
}

function withoutGlobal(flags: Value | undefined, name: string): string {
  const text = String(flags ?? '')
  if (text.includes('g')) throw new SqlError(`${name} does not support the "global" option`, 0)
  return text
}

// Parts of matches --------------------------------------------------------------------------------------------------

function partsOf(text: string, { start, end, groups }: Match): readonly (string | null)[] {
  return groups.length === 0 ? [text.slice(start, end)] : groups
}

function firstParts([text, pattern, flags]: readonly Value[]): Value {
  const whole = String(text)
  for (const match of found(whole, pattern, withoutGlobal(flags, 'regexp_match()')))
    return textArray(partsOf(whole, match))
  return null
}

function allParts([text, pattern, flags]: readonly Value[]): Value {
  const whole = String(text)
  const lists: string[] = []
  const isGlobal = String(flags ?? '').includes('g')
  for (const match of found(whole, pattern, flags)) {
    lists.push(textArray(partsOf(whole, match)))
    if (!isGlobal) break
  }
  return textArray(lists)
}

/** Parts between the matches. An empty match at either end, or directly after another match, separates nothing. */
function partsBetween([text, pattern, flags]: readonly Value[]): Value {
  const whole = String(text)
  const parts: string[] = []
  let last = 0
  for (const { start, end } of found(whole, pattern, withoutGlobal(flags, 'regexp_split_to_array()'))) {
    if (start >= whole.length || end <= last) continue
    parts.push(whole.slice(last, start))
    last = end
  }
  return textArray([...parts, whole.slice(last)])
}

function nth(text: string, args: readonly Value[]): Match | null {
  const [, pattern, from = 1, which = 1, flags] = args
  let index = 0
  for (const match of found(text, pattern, withoutGlobal(flags, 'the function'), Number(from)))
    if (++index === Number(which)) return match
  return null
}

function substring(args: readonly Value[]): Value {
  const text = String(args[0])
  const match = nth(text, args)
  const group = Number(args[5] ?? 0)
  if (match === null) return null
  return group === 0 ? text.slice(match.start, match.end) : (match.groups[group - 1] ?? null)
}

/** Position of a match: with `end` 0 its start, with 1 the position after it. */
function place(args: readonly Value[]): Value {
  const [text, pattern = null, from = 1, which = 1, end = 0, flags = ''] = args
  const match = nth(String(text), [text ?? null, pattern, from, which, flags])
  if (match === null) return 0
  return (Number(end) === 1 ? match.end : match.start) + 1
}

function count([text, pattern, from = 1, flags]: readonly Value[]): Value {
  let matches = 0
  for (const _ of found(String(text), pattern, withoutGlobal(flags, 'regexp_count()'), Number(from))) matches++
  return matches
}

// Replacing ---------------------------------------------------------------------------------------------------------

/** `\1` to `\9` are groups, `\&` is the match, `\\` a backslash. */
function replacementOf(template: string, text: string, { start, end, groups }: Match): string {
  return template.replace(/\\([\s\S])/g, (all, mark: string) => {
    if (mark === '&') return text.slice(start, end)
    if (mark === '\\') return mark
    return /[1-9]/.test(mark) ? (groups[Number(mark) - 1] ?? '') : all
  })
}

/** `which` is the number of the match to replace; 0 for all. */
function replaced(text: string, matches: Iterable<Match>, to: string, which: number): string {
  let made = ''
  let last = 0
  let index = 0
  for (const match of matches) {
    index++
    if (index < which) continue
    made += text.slice(last, match.start) + replacementOf(to, text, match)
    if (made.length > valueBytesMax) throw new SqlError(`replaced text is too long [max=${valueBytesMax}]`, 0)
    last = match.end
    if (which !== 0) break
  }
  return made + text.slice(last)
}

function replaceByFlags([text, pattern, to, flags]: readonly Value[]): Value {
  const whole = String(text)
  const which = optionsOf(String(flags)).global ? 0 : 1
  return replaced(whole, found(whole, pattern, flags), String(to), which)
}

function replaceFrom([text, pattern, to, from, which = 1, flags]: readonly Value[]): Value {
  const whole = String(text)
  if (Number(which) < 0) throw new SqlError(`invalid value for parameter "n": ${Number(which)}`, 0)
  return replaced(whole, found(whole, pattern, flags, Number(from)), String(to), Number(which))
}

// Functions ---------------------------------------------------------------------------------------------------------

type Parts = Pick<ScalarFunction, 'name' | 'gives' | 'description' | 'example' | 'eval'>

/** The function with each number of arguments from `fewest` on. Only the first has the example. */
function forms(row: Parts, takes: readonly TypePattern[], fewest: number): ScalarFunction[] {
  const counts = Array.from({ length: takes.length - fewest + 1 }, (_, index) => fewest + index)
  return counts.map((size, index) => ({
    ...row,
    takes: takes.slice(0, size),
    example: index === 0 ? row.example : null,
  }))
}

export const regexParts: readonly ScalarFunction[] = [
  {
    name: 'regexp_replace',
    takes: ['TEXT', 'TEXT', 'TEXT', 'TEXT'],
    gives: 'STRING',
    description:
      'Replaces the first match as in PostgreSQL; with option g all matches, with i ignoring case. `\\1` is the first group.',
    example: ["regexp_replace('abAB', '(b)', '<\\1>', 'gi')", 'a<b>A<B>'],
    eval: replaceByFlags,
  },
  ...forms(
    {
      name: 'regexp_replace',
      gives: 'STRING',
      description:
        'Replaces a match from a position on: the first, or the n-th, or all if n is 0. The last argument has options.',
      example: ["regexp_replace('abab', 'b', 'x', 3)", 'abax'],
      eval: replaceFrom,
    },
    ['TEXT', 'TEXT', 'TEXT', 'INT', 'INT', 'TEXT'],
    4,
  ),
  ...forms(
    {
      name: 'regexp_match',
      gives: strings,
      description:
        'Groups of the first match as a list, or the match itself if the pattern has no groups. Options as for regexp_replace.',
      example: ["regexp_match('a1b2', '([a-z])([0-9])')", '{a,1}'],
      eval: firstParts,
    },
    ['TEXT', 'TEXT', 'TEXT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_matches_list',
      gives: strings,
      description:
        'Groups of the first match, or with option g of all matches, as a list of lists; implements `regexp_matches`.',
      example: ["regexp_matches_list('a1b2', '[0-9]', 'g')", '{"{1}","{2}"}'],
      eval: allParts,
    },
    ['TEXT', 'TEXT', 'TEXT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_split_to_array',
      gives: strings,
      description: 'The parts of a string between matches, as a list.',
      example: ["regexp_split_to_array('a1b22c', '[0-9]+')", '{a,b,c}'],
      eval: partsBetween,
    },
    ['TEXT', 'TEXT', 'TEXT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_like',
      gives: 'BOOLEAN',
      description: 'Whether a string contains a match.',
      example: ["regexp_like('abc', 'B', 'i')", 'true'],
      eval: ([text = null, pattern = null, flags = '']) => nth(String(text), [text, pattern, 1, 1, flags]) !== null,
    },
    ['TEXT', 'TEXT', 'TEXT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_count',
      gives: 'INT',
      description: 'Number of matches, optionally from a position on.',
      example: ["regexp_count('abcabc', 'a')", '2'],
      eval: count,
    },
    ['TEXT', 'TEXT', 'INT', 'TEXT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_substr',
      gives: 'STRING',
      description: 'A match: optionally from a position on, the n-th, with options, or one of its groups.',
      example: ["regexp_substr('abc123', '[0-9]+')", '123'],
      eval: substring,
    },
    ['TEXT', 'TEXT', 'INT', 'INT', 'TEXT', 'INT'],
    2,
  ),
  ...forms(
    {
      name: 'regexp_instr',
      gives: 'INT',
      description:
        'Position of a match, counted from 1; 0 if there is none. Optional: start position, number of the match, 1 for the position after it, options.',
      example: ["regexp_instr('abcabc', 'c')", '3'],
      eval: place,
    },
    ['TEXT', 'TEXT', 'INT', 'INT', 'INT', 'TEXT'],
    2,
  ),
]
