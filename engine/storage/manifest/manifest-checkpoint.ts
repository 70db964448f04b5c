// Writes a checkpoint of the manifest (the list of all files): a new manifest file that begins with the complete
// current state, so that the older files with all changes so far can be removed. manifest.ts describes the layout.

import { assert } from '../../base/assert.js'
import { FileError } from '../../base/errors.js'
import type { File, Files } from '../../base/files.js'
import { isFull, type Reserve } from '../../wal/reserve.js'
import {
  encodeFrame,
  fileHeader,
  frameKinds,
  headerBytes,
  type ManifestState,
  snapshotRecords,
} from './manifest-format.js'

/** Records per checkpoint frame, which bounds the size of a frame's JSON. */
const recordsPerFrame = 64
/** Minimum space after the checkpoint in a file taken from the reserve, for appended records. */
const appendedBytesMin = 128 * 1024

export function manifestPath(directory: string, number: number): string {
  return `${directory}/manifest-${String(number).padStart(10, '0')}.log`
}

export interface CheckpointPlace {
  readonly files: Files
  readonly directory: string
  readonly reserve?: Reserve | undefined
}

export interface Checkpoint {
  readonly file: File
  readonly bytes: number
}

/** Writes and syncs a checkpoint. On a full disk it reuses a file of the space reserve. Throws FileError. */
export function writeCheckpoint(place: CheckpointPlace, number: number, state: ManifestState): Checkpoint {
  const { files, directory, reserve } = place
  assert(number > 0, 'S3: files of the manifest count from 1')
  const path = manifestPath(directory, number)
  const chunks = checkpointChunks(number, state)
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  try {
    return { file: writeFile(files, directory, files.open(path, 'create'), chunks), bytes }
  } catch (error) {
    if (!(error instanceof FileError && isFull(error)) || reserve === undefined) throw error
    // The rest of the reserve file stays zeroed, for appended records.
    if (!reserve.take('manifest', path, bytes + appendedBytesMin)) throw error
    return { file: writeFile(files, directory, files.open(path, 'write'), chunks), bytes }
  }
}

function checkpointChunks(number: number, state: ManifestState): readonly Uint8Array[] {
  const records = snapshotRecords(state)
  const chunks = [fileHeader(number, state.format)]
  for (let first = 0; first < records.length; first += recordsPerFrame) {
    const last = first + recordsPerFrame >= records.length
    const kind = last ? frameKinds.checkpointEnd : frameKinds.checkpoint
    chunks.push(encodeFrame(kind, headerBytes, records.slice(first, first + recordsPerFrame)))
  }
  assert(chunks.length > 1, 'F3: a checkpoint has a frame that ends it')
  return chunks
}

/** The file and its name are durable when this returns. Removes the file if writing fails. */
function writeFile(files: Files, directory: string, file: File, chunks: readonly Uint8Array[]): File {
  try {
    file.write(chunks, 0)
    file.sync()
    files.syncDirectory(directory)
    return file
  } catch (error) {
    file.close()
    if (error instanceof FileError) removeQuietly(files, file.path)
    throw error
  }
}

/** Retries on a full disk would otherwise leave one unfinished file each. */
function removeQuietly(files: Files, path: string): void {
  try {
    files.remove(path)
  } catch (error) {
    // The file is either incomplete or equals its predecessor. The next open ignores it and removes it.
    if (!(error instanceof FileError)) throw error
  }
}
