// Parses CREATE, ALTER and DROP TYPE. Enumerations are the only user-defined types.

import { SqlError } from '../../base/errors.js'
import { sqlListMax } from '../../base/limits.js'
import type { AlterType, CreateType, DropType } from '../ast/ast.js'
import { at, type Cursor, openCursor } from './cursor.js'
import { expect, parseList, parseName, parseString, parseTableName, take, takeTwo } from './expect.js'
import { takeDropBehaviour, takeIfExists, takeIfNotExists } from './tables.js'

const nameExpected = 'type name expected'

/** The cursor is after `create type`. */
export function parseCreateType(cursor: Cursor, position: number): CreateType {
  const ifNotExists = takeIfNotExists(cursor)
  const type = parseTableName(cursor, nameExpected)
  if (!takeTwo(cursor, 'as', 'enum'))
    throw new SqlError("'as enum' expected: only enumeration types can be created", cursor.start)
  expect(cursor, '(')
  const labels = at(cursor, ')') ? [] : parseList(cursor, parseLabel, sqlListMax)
  expect(cursor, ')')
  return { kind: 'create type', position, ifNotExists, type, labels }
}

/**
 * `begin create type ..; exception when duplicate_object then null; end`: PostgreSQL has no IF NOT EXISTS for types, so
 * object mappers write this block. Null for any other block of code.
 */
export function parseGuardedType(block: string, position: number): CreateType | null {
  const cursor = openCursor(block)
  if (!take(cursor, 'begin') || !takeTwo(cursor, 'create', 'type')) return null
  const made = parseCreateType(cursor, position)
  const rest = block.slice(cursor.start).replace(/\s+/g, ' ').trim().toLowerCase()
  const isGuarded = /^; ?exception when duplicate_object then null ?; ?end ?;?$/.test(rest)
  return isGuarded ? { ...made, ifNotExists: true, type: { ...made.type, position } } : null
}

function parseLabel(cursor: Cursor): string {
  return parseString(cursor, 'label in quotes expected').name
}

/** The cursor is after `alter type`. */
export function parseAlterType(cursor: Cursor, position: number): AlterType {
  const type = parseTableName(cursor, nameExpected)
  return { kind: 'alter type', position, type, action: parseAction(cursor) }
}

function parseAction(cursor: Cursor): AlterType['action'] {
  if (takeTwo(cursor, 'owner', 'to')) {
    parseName(cursor, 'name of a user expected')
    return null
  }
  if (takeTwo(cursor, 'rename', 'to')) return { kind: 'rename', newName: parseTableName(cursor, nameExpected) }
  if (!takeTwo(cursor, 'add', 'value')) throw new SqlError("'add value' or 'rename to' expected", cursor.start)
  const ifNotExists = takeIfNotExists(cursor)
  const label = parseLabel(cursor)
  const before = take(cursor, 'before')
  const place = before || take(cursor, 'after') ? { before, label: parseLabel(cursor) } : null
  return { kind: 'add value', label, ifNotExists, place }
}

/** The cursor is after `drop type`. */
export function parseDropType(cursor: Cursor, position: number): DropType {
  const ifExists = takeIfExists(cursor)
  const types = parseList(cursor, (inner) => parseTableName(inner, nameExpected))
  takeDropBehaviour(cursor)
  return { kind: 'drop type', position, ifExists, types }
}
