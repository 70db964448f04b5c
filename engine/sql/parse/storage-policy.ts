// Parses two clauses of CREATE TABLE and ALTER TABLE: storage policies, and LAKE (whether the table is also kept as an
// Iceberg table in object storage):
//
//   storage policy (to parquet 3d, to remote 7d, drop local 30d, drop remote 2y)
//   set storage policy (..)   enable storage policy   disable storage policy   drop storage policy
//   lake on   lake off   set lake on   set lake off

import { SqlError } from '../../base/errors.js'
import type { AlterAction, PolicyStage, StoragePolicyClause } from '../ast/ast.js'
import { advance, type Cursor, moveTo, peekWord } from './cursor.js'
import { expect, parseList, take } from './expect.js'
import { parseTimeToLive } from './table-options.js'

const stagesExpected = "'to parquet', 'to remote', 'drop local' or 'drop remote' expected"
const stageKinds: readonly PolicyStage['kind'][] = ['to parquet', 'to remote', 'drop local', 'drop remote']
const changes: ReadonlySet<string> = new Set(['set', 'enable', 'disable', 'drop'])

/** Null when the cursor is on no STORAGE POLICY. */
export function parseStoragePolicy(cursor: Cursor): StoragePolicyClause | null {
  const position = cursor.start
  if (cursor.word !== 'storage' || peekWord(cursor) !== 'policy') return null
  advance(cursor)
  advance(cursor)
  expect(cursor, '(')
  const stages = parseList(cursor, parseStage)
  expect(cursor, ')')
  return { position, stages }
}

/** Null when the cursor is on no LAKE ON or LAKE OFF. */
export function parseLake(cursor: Cursor): boolean | null {
  if (cursor.word !== 'lake') return null
  advance(cursor)
  if (take(cursor, 'on')) return true
  expect(cursor, 'off', "'on' or 'off' expected")
  return false
}

/** Null when the action at the cursor is another one; a column may be named `storage`. */
export function parsePolicyAction(cursor: Cursor): AlterAction | null {
  const { start: position, previousEnd, word } = cursor
  if (word === 'set' && peekWord(cursor) === 'lake') {
    advance(cursor)
    return { kind: 'set lake', position, on: parseLake(cursor) === true }
  }
  if (!changes.has(word) || peekWord(cursor) !== 'storage') return null
  advance(cursor)
  if (peekWord(cursor) !== 'policy') {
    moveTo(cursor, position)
    cursor.previousEnd = previousEnd
    return null
  }
  const policy = word === 'set' ? parseStoragePolicy(cursor) : null
  if (policy !== null) return { kind: 'set policy', position, policy }
  advance(cursor)
  advance(cursor)
  const change = word === 'enable' || word === 'disable' ? word : 'drop'
  return { kind: 'change policy', position, change }
}

function parseStage(cursor: Cursor): PolicyStage {
  const position = cursor.start
  const kind = stageKinds.find((words) => words === `${cursor.word} ${peekWord(cursor)}`)
  if (kind === undefined) throw new SqlError(stagesExpected, position)
  advance(cursor)
  advance(cursor)
  return { position, kind, age: parseTimeToLive(cursor) }
}
