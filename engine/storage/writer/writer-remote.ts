// Records in the manifest that a part (Parquet file) was also uploaded to the object store, and under which key. The
// manifest record removes the part and adds it again with the key, which servers of earlier versions can read too: they
// ignore the key and use the local file, which stays.

import { assert } from '../../base/assert.js'
import { FileError } from '../../base/errors.js'
import type { ToWriter } from '../jobs/messages.js'
import type { PartDescriptor } from '../schema/schema.js'
import { commitManifest, putOff, writePendingRecords } from './writer-manifest.js'
import { whenUntouched } from './writer-rewrite.js'
import { enqueue, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type Uploaded = Extract<ToWriter, { kind: 'uploaded' }>

export function noteUploaded(state: WriterState, uploaded: Uploaded): void {
  const table = state.catalog.byId.get(uploaded.tableId)
  if (table !== undefined) whenUntouched(state, table, () => note(state, table, uploaded))
}

/** Does nothing when the part has been replaced meanwhile: its object has no use then. */
function note(state: WriterState, table: WriterTable, { tableId, partId, remote }: Uploaded): void {
  const part = table.parts.find(({ id }) => id === partId)
  if (table.dropped || part === undefined) return
  const uploaded: PartDescriptor = { ...part, remote }
  try {
    writePendingRecords(state)
    const known = state.manifest.tables.get(tableId)?.parts.some(({ id }) => id === partId) ?? false
    if (!known) return
    commitManifest(state, [{ kind: 'parts', tableId, added: [uploaded], removed: [partId] }])
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    putOff(state, thrown)
    return
  }
  assert(uploaded.id === partId, 'S2: an uploaded part stays the same part')
  table.parts = table.parts.map((one) => (one.id === partId ? uploaded : one))
  enqueue(state, { versions: [table.nextVersion()] })
}
