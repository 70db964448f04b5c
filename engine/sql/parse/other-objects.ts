// Parses statements about objects that this server lacks, such as functions, triggers, domains, rules and groups of
// users, and about extensions, and DO blocks.
//
//   CREATE             an error; only CREATE EXTENSION of an extension whose features are built in has no effect
//   DROP .. IF EXISTS  has no effect; clean-up scripts and object mappers send it; without IF EXISTS it is an error
//   DO                 an error, unless the block only creates an enumeration type (enumeration.ts)

import { SqlError } from '../../base/errors.js'
import type { NoOperation, Statement } from '../ast/ast.js'
import { advance, type Cursor, moveTo, peekWord } from './cursor.js'
import { parseGuardedType } from './enumeration.js'
import { atEnd, parseName, parseString, take } from './expect.js'
import { parseQuery } from './query.js'
import { takeIfExists, takeIfNotExists } from './tables.js'

const refusals: Readonly<Record<string, string>> = {
  database: 'there is one database, others cannot be made',
  function: 'functions cannot be made with SQL',
  procedure: 'procedures cannot be made with SQL',
  trigger: 'triggers are not supported',
  domain: 'types cannot be made with SQL',
  group: 'there are no groups of users, grant rights to each user',
  service: 'there are no service accounts, create a user',
}

/** Extensions whose features are built in. */
const builtIn: ReadonlySet<string> = new Set(['uuid-ossp', 'pgcrypto', 'plpgsql'])

/** `create extension if not exists "uuid-ossp"`, after `create`; null for any other statement. */
export function parseCreateExtension(cursor: Cursor, position: number): NoOperation | null {
  if (!take(cursor, 'extension')) return null
  takeIfNotExists(cursor)
  const { name, position: at } = parseName(cursor, 'extension name expected')
  if (!builtIn.has(name.toLowerCase())) throw new SqlError(`extensions are not supported [extension=${name}]`, at)
  while (!atEnd(cursor)) advance(cursor)
  return { kind: 'no operation', position, command: 'create extension' }
}

/** Throws if CREATE names an unsupported kind of object. The cursor is after `create`. */
export function refuseOther({ word, start }: Cursor): void {
  const message = refusals[word]
  if (message !== undefined) throw new SqlError(message, start)
}

const dropped: ReadonlySet<string> = new Set(
  'aggregate collation domain extension function policy procedure publication routine rule trigger'.split(' '),
)

/** The cursor is on `drop`. */
export function isOtherDropped(cursor: Cursor): boolean {
  return dropped.has(peekWord(cursor))
}

export function parseDropOther(cursor: Cursor): NoOperation {
  const position = cursor.start
  advance(cursor)
  const { word } = cursor
  advance(cursor)
  const ifExists = takeIfExists(cursor)
  const { name, position: at } = parseName(cursor, `${word} name expected`)
  if (!ifExists) throw new SqlError(`${word} does not exist [${word}=${name}]`, at)
  while (!atEnd(cursor)) advance(cursor)
  return { kind: 'no operation', position, command: `drop ${word}` }
}

/** `do $$ .. $$`, `do language plpgsql '..'`. `do` alone is a table name. */
export function parseDo(cursor: Cursor): Statement {
  const { start } = cursor
  advance(cursor)
  const made = cursor.kind === 'string' ? parseGuardedType(parseString(cursor, 'block expected').name, start) : null
  if (made !== null) return made
  moveTo(cursor, start)
  advance(cursor)
  if (cursor.kind === 'string' || cursor.word === 'language') throw new SqlError('code blocks are not supported', start)
  moveTo(cursor, start)
  return parseQuery(cursor)
}
