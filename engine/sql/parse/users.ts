// Parses CREATE, ALTER and DROP USER, GRANT and REVOKE.
//
//   create user [if not exists] bob [with] <password '..' or no password, and any of: read, write, admin, all>
//   alter user bob [with] password '..' | no password | enable | disable
//   alter user bob create token type rest [with ttl '30d']
//   alter user bob create token type jwk [public key x '..' y '..']
//   alter user bob drop token type rest ['<id or token>'] | drop token type jwk
//   drop user [if exists] bob, eve
//   grant read, write to bob, eve   revoke admin from bob
//
// A keyword is a name only in double quotes: `create user with password '..'` lacks the name. ROLE is a synonym of USER.
// Attributes that change nothing here (NOSUPERUSER, INHERIT, ..) are skipped. Rights apply
// to the whole server, so GRANT and REVOKE accept ON ALL TABLES, but not a single table.

import { SqlError } from '../../base/errors.js'
import { type Right, rightNames } from '../../base/rights.js'
import type { Name, UserChange, UserStatement } from '../ast/ast.js'
import { advance, at, type Cursor, peekWord, shownTokenError } from './cursor.js'
import { atEnd, expect, parseList, parseNameOrString, parseString, take } from './expect.js'
import { isReserved } from './reserved.js'
import { takeIfExists, takeIfNotExists } from './tables.js'

/** Whether `create`, `alter` or `drop` is followed by USER or ROLE. */
export function isAboutUser(cursor: Cursor): boolean {
  const next = peekWord(cursor)
  return next === 'user' || next === 'role'
}

/** The cursor is on `create`, `alter` or `drop`. */
export function parseUser(cursor: Cursor): UserStatement {
  const position = cursor.start
  const verb = cursor.word
  advance(cursor)
  const { start } = cursor
  advance(cursor)
  if (verb === 'create') {
    const ifNotExists = takeIfNotExists(cursor)
    const users = [parseUserName(cursor)]
    const options = parseCreateOptions(cursor, start)
    return { kind: 'user', position, users, change: { kind: 'create', ifNotExists, ...options } }
  }
  if (verb === 'drop') {
    const ifExists = takeIfExists(cursor)
    return { kind: 'user', position, users: parseList(cursor, parseUserName), change: { kind: 'drop', ifExists } }
  }
  const users = [parseUserName(cursor)]
  return { kind: 'user', position, users, change: parseAlterUser(cursor) }
}

/** The cursor is on `grant` or `revoke`. */
export function parseGrant(cursor: Cursor): UserStatement {
  const position = cursor.start
  const given = cursor.word === 'grant'
  advance(cursor)
  const rights = [...new Set(parseList(cursor, parseRights).flat())]
  if (cursor.word === 'on') refuseTables(cursor)
  expect(cursor, given ? 'to' : 'from')
  return { kind: 'user', position, users: parseList(cursor, parseUserName), change: { kind: 'rights', given, rights } }
}

/** Words that follow a name, or that stand for users in PostgreSQL: they are names only in double quotes. */
const notNames: ReadonlySet<string> = new Set(
  'current_role current_user encrypted identified if no password public session_user set'.split(' '),
)

export function parseUserName(cursor: Cursor): Name {
  const { word, kind, start } = cursor
  if (kind === 'word' && (isReserved(word) || notNames.has(word)))
    throw new SqlError(`user name expected; if the keyword is the name, enclose it in double quotes: "${word}"`, start)
  const name = parseNameOrString(cursor, 'user name expected')
  if (/^[^\p{Cc}:,]{1,100}$/u.test(name.name) && name.name === name.name.trim()) return name
  throw new SqlError('invalid user name', name.position)
}

const rightsOfWord: Readonly<Record<string, readonly Right[]>> = {
  ...{ read: ['read'], write: ['write'], admin: ['admin'], all: rightNames },
  // PostgreSQL's names.
  ...{ select: ['read'], superuser: ['admin'] },
}

function parseRights(cursor: Cursor): readonly Right[] {
  const rights = Object.hasOwn(rightsOfWord, cursor.word) ? rightsOfWord[cursor.word] : undefined
  if (rights === undefined) throw shownTokenError(cursor, "'read', 'write', 'admin' or 'all' expected")
  const { word } = cursor
  advance(cursor)
  if (word === 'all') take(cursor, 'privileges')
  return rights
}

/** Throws for rights on a table. `on all tables` is accepted, since rights apply to all. */
function refuseTables(cursor: Cursor): void {
  const { start } = cursor
  advance(cursor)
  if (!take(cursor, 'all') || !take(cursor, 'tables')) {
    throw new SqlError('rights apply to the whole server and cannot be granted on one table', start)
  }
  if (take(cursor, 'in')) {
    expect(cursor, 'schema')
    expect(cursor, 'public')
  }
}

/** Attributes of PostgreSQL roles that hold for all users here. */
const attributes: ReadonlySet<string> = new Set(
  'login inherit noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls'.split(' '),
)
/** Attributes that are accepted after `superuser`, who has them all. */
const superuserAttributes: ReadonlySet<string> = new Set('createdb createrole replication bypassrls'.split(' '))

/** `position`: of USER, for the error. */
function parseCreateOptions(cursor: Cursor, position: number): { password: string | null; rights: readonly Right[] } {
  take(cursor, 'with')
  let password: string | null | undefined
  let asRole = false
  const rights = new Set<Right>()
  while (!atEnd(cursor)) {
    if (attributes.has(cursor.word)) {
      asRole = true
      advance(cursor)
    } else if (cursor.word === ',') advance(cursor)
    else if (startsPassword(cursor)) password = parsePassword(cursor)
    else if (cursor.word === 'identified') throw noIdentified(cursor)
    else if (rights.has('admin') && superuserAttributes.has(cursor.word)) advance(cursor)
    else for (const right of parseRights(cursor)) rights.add(right)
  }
  // A missing password is most likely a mistake; NO PASSWORD is explicit, and so are the attributes of createuser.
  if (password === undefined && !asRole) {
    const isRole = cursor.text.slice(position, position + 4).toLowerCase() === 'role'
    const hint = isRole ? 'A role is a user here: there are no groups of users.' : ''
    throw new SqlError("'password' or 'no password' expected", position, hint)
  }
  return { password: password ?? null, rights: [...rights] }
}

/** The form of other databases. */
function noIdentified({ start }: Cursor): SqlError {
  return new SqlError("IDENTIFIED BY is not supported, write PASSWORD '..'", start)
}

function startsPassword(cursor: Cursor): boolean {
  return cursor.word === 'password' || cursor.word === 'encrypted' || cursor.word === 'no'
}

function parsePassword(cursor: Cursor): string | null {
  if (take(cursor, 'no')) {
    expect(cursor, 'password')
    return null
  }
  take(cursor, 'encrypted')
  expect(cursor, 'password')
  if (take(cursor, 'null')) return null
  const { name, position } = parseString(cursor, 'password expected')
  if (name === '') throw new SqlError('the password is empty', position)
  return name
}

function parseAlterUser(cursor: Cursor): UserChange {
  if (take(cursor, 'enable')) return { kind: 'enable', enabled: true }
  if (take(cursor, 'disable')) return { kind: 'enable', enabled: false }
  if (at(cursor, 'create') || at(cursor, 'drop')) return parseToken(cursor)
  if (!take(cursor, 'with')) take(cursor, 'set')
  if (startsPassword(cursor)) return { kind: 'password', password: parsePassword(cursor) }
  if (cursor.word === 'identified') throw noIdentified(cursor)
  throw new SqlError(
    "'password', 'no password', 'enable', 'disable', 'create token' or 'drop token' expected",
    cursor.start,
  )
}

function parseToken(cursor: Cursor): UserChange {
  const create = cursor.word === 'create'
  advance(cursor)
  expect(cursor, 'token')
  expect(cursor, 'type')
  if (take(cursor, 'jwk'))
    return create ? { kind: 'create key', publicKey: parsePublicKey(cursor) } : { kind: 'drop key' }
  if (!take(cursor, 'rest')) throw new SqlError("'rest' or 'jwk' expected", cursor.start)
  if (create) return { kind: 'create token', ttlMicros: parseLifetime(cursor) }
  return { kind: 'drop token', token: atEnd(cursor) ? null : parseString(cursor, 'token expected').name }
}

const coordinate = /^[A-Za-z0-9_-]{43}$/

function parsePublicKey(cursor: Cursor): { x: string; y: string } | null {
  if (!take(cursor, 'public')) return null
  expect(cursor, 'key')
  const [x, y] = ['x', 'y'].map((axis) => {
    expect(cursor, axis)
    const { name, position } = parseString(cursor, 'coordinate expected')
    if (!coordinate.test(name)) throw new SqlError('a coordinate must have 43 base64url characters', position)
    return name
  }) as [string, string]
  return { x, y }
}

const microsOfUnit: Readonly<Record<string, number>> = { s: 1e6, m: 60e6, h: 3600e6, d: 86_400e6, w: 604_800e6 }

function parseLifetime(cursor: Cursor): number | null {
  if (!take(cursor, 'with')) return null
  expect(cursor, 'ttl')
  const { name, position } = parseString(cursor, "time to live expected, such as '30d'")
  const match = /^([1-9]\d{0,5})([smhdw])$/.exec(name)
  if (match === null) throw new SqlError("time to live expected, such as '30d'", position)
  return Number(match[1]) * (microsOfUnit[match[2] ?? ''] as number)
}
