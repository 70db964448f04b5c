// Records in the manifest (the list of all files) that a part (Parquet file) was also uploaded to the object store, and
// under which key; later, that its local file is dropped. The manifest record removes the part and adds it again with
// the key. A part without a local file has a sidecar, a small local file with the metadata that queries need. Servers
// of earlier versions ignore the key and use the local file; a manifest with a part that has none is in a format that
// they refuse.
//
// Invariants:
//   1. The sidecar of a part is durable before the manifest says that the part has no local file.
//   2. The local file is removed after that, when no reader and no backup uses a version with it. A start removes one
//      that a crash has left.

import { assert } from '../../base/assert.js'
import { FileError } from '../../base/errors.js'
import type { ToWriter } from '../jobs/messages.js'
import { formats } from '../manifest/manifest-format.js'
import { isRemoteOnly, type PartDescriptor, type RemoteCopy, sidecarFileOf } from '../schema/schema.js'
import { discardParts } from './writer-flush.js'
import { commitManifest, postponeFlushes, writePendingRecords } from './writer-manifest.js'
import { afterRewrite } from './writer-rewrite.js'
import { enqueue, type WriterState } from './writer-state.js'
import type { WriterTable } from './writer-table.js'

type Uploaded = Extract<ToWriter, { kind: 'uploaded' }>

export function noteUploaded(state: WriterState, uploaded: Uploaded): void {
  const table = state.catalog.byId.get(uploaded.tableId)
  if (table !== undefined) afterRewrite(state, table, () => note(state, table, uploaded))
}

/**
 * Does nothing when the part has been replaced meanwhile, as its object has no use then, or while a job reads its file.
 */
function note(state: WriterState, table: WriterTable, { tableId, partId, remote }: Uploaded): void {
  const part = table.parts.find(({ id }) => id === partId)
  if (table.dropped || part === undefined) return
  const isDrop = remote.only === true
  if (isDrop && !isDroppable(state, part, remote)) return
  const noted: PartDescriptor = { ...part, remote }
  try {
    writePendingRecords(state)
    const known = state.manifest.tables.get(tableId)?.parts.some(({ id }) => id === partId) ?? false
    if (!known) return
    if (isDrop) state.manifest.requireFormat(formats.remoteParts)
    commitManifest(state, [{ kind: 'parts', tableId, added: [noted], removed: [partId] }])
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    state.manifestBroken = true
    postponeFlushes(state, thrown)
    return
  }
  assert(noted.id === partId, 'S2: an uploaded part stays the same part')
  table.parts = table.parts.map((one) => (one.id === partId ? noted : one))
  if (isDrop) table.retireParts([part], (local) => discardParts(state, [local]))
  enqueue(state, { versions: [table.nextVersion()] })
}

function isDroppable(state: WriterState, part: PartDescriptor, remote: RemoteCopy): boolean {
  const isRead = [...state.jobs.values()].some(
    ({ job }) => 'parts' in job && job.parts.some(({ id }) => id === part.id),
  )
  const { files, directory } = state.options
  const isSame = part.remote?.key === remote.key && part.remote.checksum === remote.checksum
  return isSame && !isRead && !isRemoteOnly(part) && files.exists(`${directory}/${sidecarFileOf(part)}`)
}
