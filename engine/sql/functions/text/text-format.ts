// SQL functions of PostgreSQL that format text: format(), quote_nullable(), pg_size_pretty(). Also the functions to
// which the parser rewrites SIMILAR TO and LIKE .. ESCAPE; they convert the pattern.

import { SqlError } from '../../../base/errors.js'
import type { DataType } from '../../../types/column-types.js'
import { displayText } from '../../../types/convert.js'
import { quoteIdent } from '../../../types/identifier.js'
import type { Value } from '../../../types/value.js'
import type { CallSite, ScalarFunction } from '../function-types.js'

const shown = (value: Value | undefined, type: DataType | undefined): string =>
  value === null || value === undefined || type === undefined ? '' : displayText(value, type)

/** `%s`, `%I` (identifier), `%L` (literal), `%%`; `%2$s` uses the second argument. */
function formatted([template, ...values]: readonly Value[], { argTypes, position }: CallSite): string {
  let next = 0
  return String(template).replace(
    /%(?:(\d+)\$)?(-?\d*)([sIL%])|%/g,
    (all, place: string, width: string, kind: string) => {
      if (kind === '%') return '%'
      if (kind === undefined) throw new SqlError(`format() supports only %s, %I and %L [found=${all}]`, position)
      const index = place === undefined ? next++ : Number(place) - 1
      if (index >= values.length) throw new SqlError('too few arguments for format()', position)
      const value = values[index] ?? null
      const text = shown(value, argTypes[index + 1])
      const written = kind === 'I' ? quoteIdent(text) : kind === 'L' ? literal(value, text) : text
      const size = Number(width)
      return size < 0 ? written.padEnd(-size) : written.padStart(size)
    },
  )
}

function literal(value: Value, text: string): string {
  return value === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`
}

function withBackslash(written: string, mark: string): string {
  let pattern = ''
  let escaped = false
  for (const character of written) {
    const isEscape: boolean = !escaped && character === mark
    if (!isEscape) pattern += escaped || character === '\\' ? `\\${character}` : character
    escaped = isEscape
  }
  return pattern
}

const units = ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** A unit is used up to ten thousand of it. */
function sizeText(bytes: bigint): string {
  let size = bytes < 0n ? -bytes : bytes
  let unit = 0
  while (size >= 10_240n && unit < units.length - 1) {
    size = (size + 512n) / 1024n
    unit++
  }
  return `${bytes < 0n ? '-' : ''}${size} ${units[unit]}`
}

const similarParts: Readonly<Record<string, string>> = { '%': '.*', _: '.', '(': '(?:' }

/**
 * Converts a SIMILAR TO pattern to a regular expression. Characters in brackets stay as they are; elsewhere, further
 * special characters of regular expressions are escaped.
 */
function similarPattern(pattern: string, mark: string): string {
  let within = false
  const parts: string[] = []
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern.charAt(index)
    if (character === mark && index + 1 < pattern.length) {
      const escaped = pattern.charAt(++index)
      parts.push(/\w/.test(escaped) ? escaped : `\\${escaped}`)
      continue
    }
    if (character === '[' || character === ']') within = character === '['
    const plain = /[.^$\\]/.test(character) && !(within && character === '^') ? `\\${character}` : character
    parts.push(within ? plain : (similarParts[character] ?? plain))
  }
  return `^(?s:${parts.join('')})$`
}

export const textFormatFunctions: readonly ScalarFunction[] = [
  {
    name: 'format',
    takes: ['TEXT'],
    more: 'ANY',
    gives: 'STRING',
    description: 'Replaces %s, %I (identifier) and %L (literal) by the arguments.',
    example: ["format('%s %I', 'a', 'B c')", 'a "B c"'],
    seesNull: true,
    eval: (args, site) => (args[0] === null ? null : formatted(args, site)),
  },
  {
    name: 'quote_nullable',
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'A string as an SQL literal; the word NULL for NULL.',
    example: ["quote_nullable('a')", "'a'"],
    seesNull: true,
    eval: ([text]) => literal(text ?? null, String(text)),
  },
  {
    name: 'like_escape',
    takes: ['TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'A LIKE pattern with its escape character replaced by a backslash.',
    example: ["like_escape('a!%', '!')", 'a\\%'],
    eval: ([pattern, mark]) => withBackslash(String(pattern), String(mark)),
  },
  {
    name: 'similar_to_escape',
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'A SIMILAR TO pattern as a regular expression: `a similar to b` is `a ~ similar_to_escape(b)`.',
    example: ["similar_to_escape('(a|b)_%')", '^(?s:(?:a|b)..*)$'],
    eval: ([pattern]) => similarPattern(String(pattern), '\\'),
  },
  {
    name: 'similar_to_escape',
    takes: ['TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'The same with another escape character.',
    example: ["similar_to_escape('a!%b%', '!')", '^(?s:a\\%b.*)$'],
    eval: ([pattern, mark]) => similarPattern(String(pattern), String(mark)),
  },
  {
    name: 'pg_size_pretty',
    takes: ['LONG'],
    gives: 'STRING',
    description: "A number of bytes with a unit, in PostgreSQL's format.",
    example: ['pg_size_pretty(123456789)', '118 MB'],
    eval: ([bytes]: readonly [bigint]) => sizeText(BigInt(bytes)),
  },
]
