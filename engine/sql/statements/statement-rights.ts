// The rights that each statement requires. They are checked before names are resolved, so that a user without the right
// cannot find out whether a table exists.

import { type Right, type RightsHolder, requireRight } from '../../base/rights.js'
import type { Statement, UserStatement } from '../ast/ast.js'

/** Throws AccessError. */
export function requireStatementRights(statement: Statement, holder: RightsHolder): void {
  if (statement.kind === 'user' && !holder.readOnly && isOwnPassword(statement, holder.user)) return
  for (const right of neededRights(statement)) requireRight(holder, right, statement.position)
}

type Kind = Statement['kind']

/** Null: depends on the statement. */
const rightsOfKind = {
  query: ['read'],
  insert: null,
  explain: null,
  prepare: null,
  copy: null,
  'cancel query': null,
  merge: ['write', 'read'],
  update: ['write', 'read'],
  delete: ['write', 'read'],
  'with changes': ['write', 'read'],
  'create table': null,
  'create view': ['write', 'read'],
  'alter view': ['write', 'read'],
  'drop table': ['write'],
  'drop view': ['write'],
  'create materialized view': ['write', 'read'],
  'create live view': ['write', 'read'],
  'alter materialized view': ['write'],
  'refresh materialized view': ['write'],
  'create sequence': ['write'],
  'alter sequence': ['write'],
  'drop sequence': ['write'],
  'create type': ['write'],
  'alter type': ['write'],
  'drop type': ['write'],
  'drop schema': ['write'],
  'drop all tables': ['write'],
  'rename table': ['write'],
  truncate: ['write'],
  'alter table': ['write'],
  comment: ['write'],
  vacuum: ['write'],
  reindex: ['write'],
  'create index': ['write'],
  'alter index': ['write'],
  checkpoint: ['admin'],
  backup: ['admin'],
  user: null,
  'alter connector': ['admin'],
  // Statements about the session alone. The rights for a cursor's query were checked when it was declared.
  set: [],
  reset: [],
  transaction: [],
  deallocate: [],
  discard: [],
  'declare cursor': ['read'],
  fetch: ['read'],
  close: [],
  // The rights for the prepared statement were checked at PREPARE, and are checked again when it runs.
  execute: [],
  channel: [],
  'no operation': [],
  empty: [],
} as const satisfies Record<Kind, readonly Right[] | null>

function neededRights(statement: Statement): readonly Right[] {
  switch (statement.kind) {
    case 'insert':
      return isWriteOnly(statement) ? ['write'] : ['write', 'read']
    case 'create table':
      return statement.source.kind === 'as' ? ['write', 'read'] : ['write']
    case 'copy':
      return statement.direction === 'to' && statement.target.kind === 'connection' ? ['read'] : ['write']
    case 'user':
      return ['admin']
    // The inner statement is not executed.
    case 'explain':
      return ['read']
    case 'prepare':
      return neededRights(statement.statement)
    // For the user's own queries; those of others require administrator rights.
    case 'cancel query':
      return ['read']
    default:
      return rightsOfKind[statement.kind] ?? []
  }
}

/** Whether an INSERT reads nothing. */
function isWriteOnly({ source, returning, conflict }: Extract<Statement, { kind: 'insert' }>): boolean {
  return source.kind === 'rows' && returning === null && (conflict === null || conflict.where === null)
}

/** Users may change their own password, unless the server is read-only. */
function isOwnPassword({ users, change }: UserStatement, user: string): boolean {
  return change.kind === 'password' && users.every(({ name }) => name.toLowerCase() === user.toLowerCase())
}
