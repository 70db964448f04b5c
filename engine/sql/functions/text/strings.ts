// SQL functions on strings: case, trimming, parts, searching, LIKE and regular expressions, concatenation. Positions
// count characters (characters.ts), but length() counts UTF-16 units, as clients of this dialect expect (`length('😀')`
// is 2).

import { SqlError } from '../../../base/errors.js'
import { matchesGlob } from '../../../base/glob.js'
import { valueBytesMax } from '../../../base/limits.js'
import {
  cutCharacters,
  leftPart,
  padText,
  placeOf,
  rightPart,
  sliceCharacters,
  substring,
} from '../../../types/characters.js'
import { type DataType, dataType } from '../../../types/column-types.js'
import { valueText } from '../../../types/convert.js'
import type { Value } from '../../../types/value.js'
import { concatColumn, replaceColumn } from '../column/text-joins.js'
import {
  caseColumn,
  leftColumn,
  lengthColumn,
  positionColumn,
  rightColumn,
  substringColumn,
  trimColumn,
} from '../column/text-parts.js'
import { ilikeColumn, likeColumn, regexColumn, startsWithColumn } from '../column/text-tests.js'
import type { BoundArgument, CallSite, ScalarFunction } from '../function-types.js'
import { codeFunctions } from './codes.js'
import { compileLike, compileRegex, type Matcher, RegexError } from './regex.js'

/** VARCHAR stays VARCHAR; other string types become STRING. */
function textOf(args: readonly BoundArgument[]): DataType {
  return dataType(args[0]?.type.name === 'VARCHAR' ? 'VARCHAR' : 'STRING')
}

/** VARCHAR if both the string and the search string are, and the replacement is no CHAR. */
function searchedText([first, second, third]: readonly BoundArgument[]): DataType {
  const isVarchar = first?.type.name === 'VARCHAR' && second?.type.name === 'VARCHAR' && third?.type.name !== 'CHAR'
  return dataType(isVarchar ? 'VARCHAR' : 'STRING')
}

/** VARCHAR if all strings are. */
function commonText(args: readonly BoundArgument[]): DataType {
  const strings = args.filter(({ type }) => type.name !== 'INT')
  return dataType(strings.every(({ type }) => type.name === 'VARCHAR') ? 'VARCHAR' : 'STRING')
}

type Apply = (args: readonly Value[], site: CallSite) => Value

function row(
  name: string,
  takes: ScalarFunction['takes'],
  gives: ScalarFunction['gives'],
  description: string,
  example: readonly [string, string] | null,
  apply: Apply,
  column?: ScalarFunction['column'],
): ScalarFunction {
  return { name, takes, gives, description, example, eval: apply, ...(column === undefined ? {} : { column }) }
}

const text = (value: Value | undefined): string => String(value)
const int = (value: Value | undefined): number => Number(value)

function names(list: readonly string[], make: (name: string) => ScalarFunction): ScalarFunction[] {
  return list.map(make)
}

/** Upper case per character: a character without a single upper-case form (ß) stays unchanged. */
function upperCase(value: string): string {
  const upper = value.toUpperCase()
  if (upper.length === value.length) return upper
  return Array.from(value, (character) => {
    const capital = character.toUpperCase()
    return capital.length === character.length ? capital : character
  }).join('')
}

const cases: ScalarFunction[] = [
  ...names(['lower', 'to_lowercase'], (name) =>
    row(
      name,
      ['TEXT'],
      'STRING',
      'Lower case.',
      [`${name}('ABCÉ')`, 'abcé'],
      ([a]) => text(a).toLowerCase(),
      caseColumn('lower'),
    ),
  ),
  ...names(['upper', 'to_uppercase'], (name) =>
    row(
      name,
      ['TEXT'],
      'STRING',
      'Upper case.',
      [`${name}('abc')`, 'ABC'],
      ([a]) => upperCase(text(a)),
      caseColumn('upper'),
    ),
  ),
  row('initcap', ['TEXT'], textOf, 'First letter of each word in upper case.', ["initcap('ab cd')", 'Ab Cd'], ([a]) =>
    text(a)
      .toLowerCase()
      .replace(
        /(^|[^\p{L}\p{N}])(\p{L})/gu,
        (_, before: string, character: string) => before + character.toUpperCase(),
      ),
  ),
]

const trims: ScalarFunction[] = [
  row(
    'trim',
    ['TEXT', 'TEXT'],
    textOf,
    'Removes the given characters at both ends.',
    ["trim('xax', 'x')", 'a'],
    ([a, b]) => cutCharacters(text(a), text(b), true, true),
  ),
  row(
    'ltrim',
    ['TEXT', 'TEXT'],
    textOf,
    'Removes the given characters at the start.',
    ["ltrim('xax', 'x')", 'ax'],
    ([a, b]) => cutCharacters(text(a), text(b), true, false),
  ),
  row(
    'rtrim',
    ['TEXT', 'TEXT'],
    textOf,
    'Removes the given characters at the end.',
    ["rtrim('xax', 'x')", 'xa'],
    ([a, b]) => cutCharacters(text(a), text(b), false, true),
  ),
  row(
    'trim',
    ['TEXT'],
    textOf,
    'Removes blanks at both ends.',
    ["trim('  a b ')", 'a b'],
    ([a]) => text(a).replace(/^ +| +$/g, ''),
    trimColumn(3),
  ),
  row(
    'ltrim',
    ['TEXT'],
    textOf,
    'Removes blanks at the start.',
    ["ltrim('  a')", 'a'],
    ([a]) => text(a).replace(/^ +/, ''),
    trimColumn(1),
  ),
  row(
    'rtrim',
    ['TEXT'],
    textOf,
    'Removes blanks at the end.',
    ["rtrim('a  ')", 'a'],
    ([a]) => text(a).replace(/ +$/, ''),
    trimColumn(2),
  ),
]

const lengths: ScalarFunction[] = [
  {
    ...row(
      'length',
      ['TEXT'],
      'INT',
      'Length in UTF-16 units, -1 for NULL; over the PostgreSQL protocol in characters, NULL for NULL.',
      ["length('abc')", '3'],
      ([a]) => (a === null ? -1 : text(a).length),
      lengthColumn,
    ),
    seesNull: true,
  },
  {
    ...row('length', ['BINARY'], 'LONG', 'Number of bytes; -1 for NULL.', null, ([a]) =>
      BigInt(a instanceof Uint8Array ? a.length : -1),
    ),
    seesNull: true,
  },
  {
    ...row(
      'length_bytes',
      ['TEXT'],
      'INT',
      'Number of bytes in UTF-8; -1 for NULL.',
      ["length_bytes('é')", '2'],
      ([a]) => (a === null ? -1 : Buffer.byteLength(text(a))),
    ),
    seesNull: true,
  },
]

const parts: ScalarFunction[] = [
  row(
    'left',
    ['TEXT', 'INT'],
    textOf,
    'The first characters.',
    ["left('abcdef', 2)", 'ab'],
    ([a, n]) => leftPart(text(a), int(n)),
    leftColumn,
  ),
  row(
    'ascii',
    ['TEXT'],
    'INT',
    'The code point of the first character.',
    ["ascii('abc')", '97'],
    ([a]) => text(a).codePointAt(0) ?? 0,
  ),
  row(
    'right',
    ['TEXT', 'INT'],
    textOf,
    'The last characters.',
    ["right('abcdef', 2)", 'ef'],
    ([a, n]) => rightPart(text(a), int(n)),
    rightColumn,
  ),
  ...names(['substring', 'substr'], (name) =>
    row(
      name,
      ['TEXT', 'INT'],
      'STRING',
      'The string from a position on, counted from 1.',
      [`${name}('abcdef', 3)`, 'cdef'],
      ([a, from]) => sliceCharacters(text(a), Math.max(0, int(from) - 1)),
      substringColumn,
    ),
  ),
  ...names(['substring', 'substr'], (name) =>
    row(
      name,
      ['TEXT', 'INT', 'INT'],
      'STRING',
      'A number of characters from a position on, counted from 1.',
      [`${name}('abcdef', 2, 3)`, 'bcd'],
      ([a, from, n]) => substring(text(a), int(from), int(n)),
      substringColumn,
    ),
  ),
  {
    ...row(
      'substring',
      ['TEXT', 'TEXT'],
      'STRING',
      'The first match of a regular expression, or its first group; also written `substring(text from pattern)`.',
      ["substring('abc12', '[a-z]([0-9]+)')", '12'],
      ([a, pattern], { position }) => patternOf(() => compileRegex(text(pattern)).first(text(a)), position),
    ),
    check: checkRegex,
  },
  row(
    'lpad',
    ['TEXT', 'INT'],
    textOf,
    'Pads with blanks at the start, or truncates at the end.',
    ["lpad('abc', 5)", '  abc'],
    ([a, n]) => padText(text(a), int(n), ' ', true),
  ),
  row(
    'lpad',
    ['TEXT', 'INT', 'TEXT'],
    commonText,
    'Pads at the start, or truncates at the end.',
    ["lpad('abc', 5, 'xy')", 'xyabc'],
    ([a, n, fill]) => padText(text(a), int(n), text(fill), true),
  ),
  row(
    'rpad',
    ['TEXT', 'INT'],
    textOf,
    'Pads with blanks at the end, or truncates.',
    ["rpad('abc', 5)", 'abc  '],
    ([a, n]) => padText(text(a), int(n), ' ', false),
  ),
  row(
    'rpad',
    ['TEXT', 'INT', 'TEXT'],
    commonText,
    'Pads at the end, or truncates.',
    ["rpad('abc', 5, 'xy')", 'abcxy'],
    ([a, n, fill]) => padText(text(a), int(n), text(fill), false),
  ),
  row('repeat', ['TEXT', 'INT'], textOf, 'Repeats the string.', ["repeat('ab', 3)", 'ababab'], ([a, n]) => {
    if (text(a).length * int(n) > valueBytesMax) throw new SqlError('repeated text is too long', 0)
    return text(a).repeat(Math.max(0, int(n)))
  }),
  row('reverse', ['TEXT'], textOf, 'The characters in reverse order.', ["reverse('abc')", 'cba'], ([a]) =>
    [...text(a)].reverse().join(''),
  ),
  {
    ...row(
      'split_part',
      ['TEXT', 'TEXT', 'INT'],
      searchedText,
      'One of the parts between delimiters; negative numbers count from the end.',
      ["split_part('a,b,c', ',', 2)", 'b'],
      ([a, by, n]) => {
        const fields = text(by) === '' ? [text(a)] : text(a).split(text(by))
        return (int(n) > 0 ? fields[int(n) - 1] : fields[fields.length + int(n)]) ?? ''
      },
    ),
    check: checkField,
  },
]

function checkField([, , field]: readonly BoundArgument[]): void {
  if (field?.constant === 0) throw new SqlError('field position must not be zero', field.position)
}

const searches: ScalarFunction[] = [
  ...names(['strpos', 'position'], (name) =>
    row(
      name,
      ['TEXT', 'TEXT'],
      'INT',
      'Position of the first occurrence, counted from 1; 0 if there is none.',
      [`${name}('abcabc', 'c')`, '3'],
      ([a, b]) => placeOf(text(a), text(b)),
      positionColumn,
    ),
  ),
  row(
    'starts_with',
    ['TEXT', 'TEXT'],
    'BOOLEAN',
    'Whether the string starts with the other.',
    ["starts_with('abc', 'ab')", 'true'],
    ([a, b]) => text(a).startsWith(text(b)),
    startsWithColumn,
  ),
  row(
    'replace',
    ['TEXT', 'TEXT', 'TEXT'],
    searchedText,
    'Replaces every occurrence.',
    ["replace('aXbXc', 'X', '-')", 'a-b-c'],
    ([a, from, to], { position }) => replacedText(text(a), text(from), text(to), position),
    replaceColumn,
  ),
  {
    ...row(
      'regexp_replace',
      ['TEXT', 'TEXT', 'TEXT'],
      'STRING',
      'Replaces every match of a regular expression; $1 is its first group.',
      ["regexp_replace('abc', 'b+', 'x')", 'axc'],
      ([a, pattern, to], { position }) => {
        const replaced = patternOf(
          () => compileRegex(text(pattern)).replaceAll(text(a), text(to), valueBytesMax),
          position,
        )
        if (replaced === null) throw tooLong('replaced', position)
        return replaced
      },
    ),
    check: checkRegex,
  },
]

function tooLong(what: string, position: number): SqlError {
  return new SqlError(`${what} text is too long [max=${valueBytesMax}]`, position)
}

function replacedText(value: string, from: string, to: string, position: number): string {
  if (from === '') return value
  if ((value.length / from.length) * to.length > valueBytesMax) {
    const matches = value.split(from).length - 1
    if (value.length + matches * (to.length - from.length) > valueBytesMax) throw tooLong('replaced', position)
  }
  return value.replaceAll(from, () => to)
}

/** Reports an invalid pattern that is not constant, or is one of LIKE, when it is used. */
function patternOf<Result>(apply: () => Result, position: number): Result {
  try {
    return apply()
  } catch (error) {
    if (error instanceof RegexError) throw new SqlError(error.message, position)
    throw error
  }
}

/** Reports an invalid constant pattern at its position, before any row is read. */
function checkRegex(args: readonly BoundArgument[]): void {
  const pattern = args[1]
  if (typeof pattern?.constant !== 'string') return
  try {
    compileRegex(pattern.constant)
  } catch (error) {
    // The pattern begins after the quote.
    if (error instanceof RegexError) throw new SqlError(error.message, pattern.position + 1 + error.index)
    throw error
  }
}

function matchRow(
  name: string,
  description: string,
  example: readonly [string, string],
  compile: (pattern: string) => Matcher,
  more: Pick<ScalarFunction, 'column' | 'total' | 'check'>,
): ScalarFunction {
  /** Most calls use the pattern of the previous one. */
  let known: { readonly pattern: string; readonly matcher: Matcher } | null = null
  const matcherOf = (pattern: string, position: number): Matcher => {
    if (known?.pattern !== pattern) known = { pattern, matcher: patternOf(() => compile(pattern), position) }
    return known.matcher
  }
  return {
    name,
    takes: ['TEXT', 'TEXT'],
    gives: 'BOOLEAN',
    description,
    example,
    seesNull: true,
    ...more,
    eval: ([a, b], { position }) => typeof a === 'string' && typeof b === 'string' && matcherOf(b, position).test(a),
  }
}

const matches: ScalarFunction[] = [
  matchRow('~', 'Whether the string contains a match of a regular expression.', ["'abc' ~ 'b'", 'true'], compileRegex, {
    check: checkRegex,
    column: regexColumn,
  }),
  matchRow('like', 'Pattern with % and _.', ["'abc' like 'a%'", 'true'], (pattern) => compileLike(pattern, false), {
    total: true,
    column: likeColumn,
  }),
  matchRow(
    'ilike',
    'Like `like`, ignoring case.',
    ["'abc' ilike 'A%'", 'true'],
    (pattern) => compileLike(pattern, true),
    {
      total: true,
      column: ilikeColumn,
    },
  ),
]

const printedNulls: ReadonlySet<string> = new Set(['INT', 'LONG', 'DATE', 'DECIMAL'])

/** The text of a value in concat(). NULL is empty, except that NULLs of some types print as in results. */
function joinText(value: Value, type: DataType): string {
  if (value !== null) return valueText(value, type)
  if (type.name === 'DOUBLE' || type.name === 'FLOAT') return 'NaN'
  return printedNulls.has(type.name) ? 'null' : ''
}

const joins: ScalarFunction[] = [
  {
    name: 'concat',
    takes: ['ANY'],
    more: 'ANY',
    gives: 'STRING',
    description: 'All values as text, concatenated; also written `a || b`. NULLs are ignored.',
    example: ["concat('a', 1, true)", 'a1true'],
    seesNull: true,
    eval: (args, { argTypes, position }) => {
      const joined = args.map((value, index) => joinText(value, argTypes[index] ?? dataType('STRING'))).join('')
      if (joined.length > valueBytesMax) throw tooLong('joined', position)
      return joined
    },
    column: concatColumn(({ value, type }) => joinText(value, type)),
  },
]

export const stringFunctions: readonly ScalarFunction[] = [
  ...cases,
  ...trims,
  ...lengths,
  ...parts,
  ...searches,
  ...matches,
  ...joins,
  ...codeFunctions,
  {
    name: 'glob',
    takes: ['TEXT', 'TEXT'],
    gives: 'BOOLEAN',
    description:
      'Whether a string matches a file name pattern: `*` is any string, `?` one character, `[a-c]` and `[!a-c]` are sets.',
    example: ["glob('trades.csv', '*.csv')", 'true'],
    eval: ([text, pattern]) => matchesGlob(String(text), String(pattern)),
  },
]
