// Decides which schema changes are accepted on a full disk: those that free space, and those that need almost none.
// Only these changes may use the space reserve (wal/reserve.ts): files that were created in advance, for new files of
// the write-ahead log and of the manifest (the list of all files).

import type { SchemaChange } from '../jobs/messages.js'
import type { WriterState } from './writer-state.js'

const makingRoom: ReadonlySet<SchemaChange['kind']> = new Set([
  ...(['dropTable', 'truncateTable', 'dropColumn', 'alterTable', 'renameTable', 'renameColumn'] as const),
  'alterColumn',
])

export function freesSpace(change: SchemaChange): boolean {
  if (change.kind === 'changeColumns') return change.changes.every(freesSpace)
  return change.kind === 'partitions' ? change.operation !== 'attach' : makingRoom.has(change.kind)
}

/** Runs work that frees space, during which writes to the manifest may use the reserve. */
export function withReserve<T>(state: WriterState, work: () => T): T {
  const before = state.usesReserve
  state.usesReserve = true
  try {
    return work()
  } finally {
    state.usesReserve = before
  }
}
