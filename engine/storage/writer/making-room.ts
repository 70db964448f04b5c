// Statements that are taken when the disk is full: those that give room back, and those that need next to none.
//
// They alone draw on the reserve (wal/reserve.ts): the log goes on in it, and the manifest takes a file of it.

import type { SchemaChange } from '../jobs/messages.js'
import type { WriterState } from './writer-state.js'

const makingRoom: ReadonlySet<SchemaChange['kind']> = new Set([
  ...(['dropTable', 'truncateTable', 'dropColumn', 'alterTable', 'renameTable', 'renameColumn'] as const),
  'alterColumn',
])

export function freesRoom(change: SchemaChange): boolean {
  if (change.kind === 'changeColumns') return change.changes.every(freesRoom)
  return change.kind === 'partitions' ? change.operation !== 'attach' : makingRoom.has(change.kind)
}

/** Runs work that makes room: what it writes to the manifest may use the reserve. */
export function withReserve<T>(state: WriterState, work: () => T): T {
  const before = state.usesReserve
  state.usesReserve = true
  try {
    return work()
  } finally {
    state.usesReserve = before
  }
}
