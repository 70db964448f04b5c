// Parses CREATE SEQUENCE, ALTER SEQUENCE and the options of identity columns. Options of identity columns that would
// change their numbers are errors. OWNED BY and OWNER TO have no effect.

import { SqlError } from '../../base/errors.js'
import type { AlterSequence, CreateSequence, SequenceOptions, SequenceType } from '../ast/ast.js'
import { advance, at, type Cursor, tokenText } from './cursor.js'
import {
  atEnd,
  expect,
  parseAnyTableName,
  parseName,
  parseTableName,
  parseWholeNumber,
  take,
  takeTwo,
} from './expect.js'
import { takeIfExists, takeIfNotExists } from './tables.js'

const nameExpected = 'sequence name expected'

/** The cursor is after `create sequence`. */
export function parseCreateSequence(cursor: Cursor, position: number): CreateSequence {
  const ifNotExists = takeIfNotExists(cursor)
  const sequence = parseTableName(cursor, nameExpected)
  return { kind: 'create sequence', position, ifNotExists, sequence, options: parseOptions(cursor) }
}

/** The cursor is after `alter sequence`. */
export function parseAlterSequence(cursor: Cursor, position: number): AlterSequence {
  const ifExists = takeIfExists(cursor)
  const sequence = parseTableName(cursor, nameExpected)
  if (takeOwner(cursor)) return { kind: 'alter sequence', position, ifExists, sequence }
  if (takeTwo(cursor, 'rename', 'to'))
    return { kind: 'alter sequence', position, ifExists, sequence, newName: parseTableName(cursor, nameExpected) }
  if (!take(cursor, 'restart'))
    throw new SqlError(
      "'restart' or 'rename to' expected: other properties of a sequence cannot be changed",
      cursor.start,
    )
  const isGiven = take(cursor, 'with') || cursor.kind === 'number' || cursor.word === '-'
  return { kind: 'alter sequence', position, ifExists, sequence, restart: isGiven ? parseInteger(cursor) : null }
}

/** Skips `owned by t.c`, `owned by none` and `owner to a`, which have no effect. */
function takeOwner(cursor: Cursor): boolean {
  if (takeTwo(cursor, 'owner', 'to')) parseName(cursor, 'name of a user expected')
  else if (takeTwo(cursor, 'owned', 'by')) parseAnyTableName(cursor, 'column name expected')
  else return false
  return true
}

const types: Readonly<Record<string, SequenceType>> = {
  ...{ smallint: 'smallint', int2: 'smallint', short: 'smallint' },
  ...{ integer: 'integer', int: 'integer', int4: 'integer' },
  ...{ bigint: 'bigint', int8: 'bigint', long: 'bigint' },
}

type Found = { -readonly [Key in keyof SequenceOptions]: SequenceOptions[Key] }

function usualOptions(): Found {
  return {
    type: 'bigint',
    start: null,
    increment: 1n,
    minimum: null,
    maximum: null,
    cache: 1,
    cycle: false,
    owned: false,
  }
}

function parseOptions(cursor: Cursor): SequenceOptions {
  const found = usualOptions()
  while (cursor.kind === 'word') parseOption(cursor, found)
  return found
}

const identityOptions: ReadonlySet<string> = new Set(['start', 'increment', 'cache', 'no'])

/**
 * Options of an identity column, up to `)`. Only the default start and increment, and options that affect only speed,
 * are accepted. Returns the name of the counter if SEQUENCE NAME gives one, as dumps do; else null.
 */
export function parseIdentityOptions(cursor: Cursor): string | null {
  const found = usualOptions()
  let name: string | null = null
  while (!atEnd(cursor) && !at(cursor, ')')) {
    const { start, word } = cursor
    if (take(cursor, 'sequence')) {
      expect(cursor, 'name')
      name = parseAnyTableName(cursor, nameExpected).name
      continue
    }
    const isKnown = identityOptions.has(word)
    if (isKnown) parseOption(cursor, found)
    if (!isKnown || (found.start ?? 1n) !== 1n || found.increment !== 1n)
      throw new SqlError(
        `identity columns start with 1 and increment by 1; use setval() to change the next number [option=${word}]`,
        start,
      )
  }
  return name
}

function parseOption(cursor: Cursor, found: Found): void {
  const { start, word } = cursor
  advance(cursor)
  switch (word) {
    case 'as': {
      const type = types[cursor.word]
      if (type === undefined) throw new SqlError('sequence type must be smallint, integer, or bigint', cursor.start)
      advance(cursor)
      found.type = type
      return
    }
    case 'start':
      take(cursor, 'with')
      found.start = parseInteger(cursor)
      return
    case 'increment':
      take(cursor, 'by')
      found.increment = parseInteger(cursor)
      return
    case 'minvalue':
      found.minimum = parseInteger(cursor)
      return
    case 'maxvalue':
      found.maximum = parseInteger(cursor)
      return
    case 'cache':
      found.cache = parseWholeNumber(cursor, 'number expected')
      return
    case 'cycle':
      found.cycle = true
      return
    case 'no':
      parseNo(cursor, found)
      return
    case 'owned':
      expect(cursor, 'by')
      found.owned = cursor.word !== 'none'
      parseAnyTableName(cursor, 'column name expected')
      return
    default:
      throw new SqlError(`unknown option of a sequence [option=${word}]`, start)
  }
}

function parseNo(cursor: Cursor, found: Found): void {
  if (take(cursor, 'minvalue')) found.minimum = null
  else if (take(cursor, 'maxvalue')) found.maximum = null
  else if (take(cursor, 'cycle')) found.cycle = false
  else throw new SqlError("'minvalue' or 'maxvalue' or 'cycle' expected", cursor.start)
}

function parseInteger(cursor: Cursor): bigint {
  const isNegative = take(cursor, '-')
  const digits = tokenText(cursor)
  if (cursor.kind !== 'number' || !/^\d{1,19}$/.test(digits)) throw new SqlError('number expected', cursor.start)
  advance(cursor)
  return isNegative ? -BigInt(digits) : BigInt(digits)
}
