// Notes that a part was uploaded to the object store. The manifest record removes the part and adds it again with its key,
// so that servers which know nothing of object storage read the manifest, too: the local file stays.

import { assert } from '../../base/assert.js'
import { FileError } from '../../base/errors.js'
import type { ToWriter } from '../jobs/messages.js'
import type { PartDescriptor } from '../schema/schema.js'
import { commitManifest, payDebts, putOff } from './writer-manifest.js'
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
    payDebts(state)
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
