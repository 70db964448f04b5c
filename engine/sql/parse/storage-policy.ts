// Parses two clauses of CREATE TABLE and ALTER TABLE: storage policies, and LAKE (whether the table is also kept as an
// Iceberg table in object storage):
//
//   storage policy (to parquet 3d, to remote 7d, drop local 30d, drop remote 2y)
//   set storage policy (..)   enable storage policy   disable storage policy   drop storage policy
//   lake on [format version 3]   lake off   set lake on [format version 3]   set lake off

import { SqlError } from '../../base/errors.js'
import type { AlterAction, LakeClause, PolicyStage, StoragePolicyClause } from '../ast/ast.js'
import { advance, type Cursor, moveTo, peekWord, tokenText } from './cursor.js'
import { expect, parseList, take, takeTwo } from './expect.js'
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
export function parseLake(cursor: Cursor): LakeClause | null {
  if (cursor.word !== 'lake') return null
  const position = cursor.start
  advance(cursor)
  if (take(cursor, 'on')) return { position, on: true, formatVersion: parseFormatVersion(cursor) }
  expect(cursor, 'off', "'on' or 'off' expected")
  return { position, on: false, formatVersion: null }
}

function parseFormatVersion(cursor: Cursor): LakeClause['formatVersion'] {
  if (!takeTwo(cursor, 'format', 'version')) return null
  const position = cursor.start
  const text = tokenText(cursor)
  if (cursor.kind !== 'number' || (text !== '2' && text !== '3'))
    throw new SqlError('format version 2 or 3 of Iceberg expected', position)
  advance(cursor)
  return { position, number: text === '2' ? 2 : 3 }
}

/** Null when the action at the cursor is another one; a column may be named `storage`. */
export function parsePolicyAction(cursor: Cursor): AlterAction | null {
  const { start: position, previousEnd, word } = cursor
  if (word === 'set' && peekWord(cursor) === 'lake') {
    advance(cursor)
    const lake = parseLake(cursor)
    return lake === null ? null : { kind: 'set lake', position, lake }
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
