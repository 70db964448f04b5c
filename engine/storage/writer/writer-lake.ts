// Records in the manifest (the list of all files) which version of a table's Iceberg metadata the object store or an
// external catalog has (engine/lake). The metadata is committed there before the record is written. So after a crash
// between the two, the next start finds the newer version there.

import { FileError } from '../../base/errors.js'
import type { ToWriter } from '../jobs/messages.js'
import { commitManifest, postponeFlushes, writePendingRecords } from './writer-manifest.js'
import { schemaRecords, schemaWritten } from './writer-records.js'
import { enqueue, type WriterState } from './writer-state.js'

/** Does nothing when the table is dropped, or the disk refuses; then the main thread sends the message again. */
export function noteLake(state: WriterState, { tableId, lake }: Extract<ToWriter, { kind: 'lakeCommitted' }>): void {
  const table = state.catalog.byId.get(tableId)
  if (table === undefined || table.dropped) return
  try {
    writePendingRecords(state)
    const schemas = schemaRecords(state.manifest, table)
    commitManifest(state, [...schemas, { kind: 'parts', tableId, added: [], removed: [], lake }])
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    state.manifestBroken = true
    postponeFlushes(state, thrown)
    return
  }
  schemaWritten(table, state.settledLsn)
  table.lake = lake
  enqueue(state, { versions: [table.nextVersion()] })
}
