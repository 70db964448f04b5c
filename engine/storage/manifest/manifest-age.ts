// Detects that the manifest, the file that lists the data files of all tables, is older than the data, for example
// because it was restored from an old backup. Such a manifest is valid by itself, but the server would remove, as
// leftovers of a crash, all files that it does not list. The file of high-water marks, which records how far log and
// manifest were durable (wal/high-water.ts), normally reveals an old manifest; two checks work without it:
//
//   - There is a part with an id that the manifest has not reserved. Ids are durably reserved before parts are written.
//   - The log starts after the position that the manifest names. The manifest is updated before the log is trimmed.
//
// For the first check, the folders of the tables in the manifest are searched only if there is no file of marks, as at
// the first start after an upgrade, because with many tables a search takes long.

import { posix } from 'node:path'
import { CorruptionError, FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { listSegments } from '../../wal/replay.js'
import type { Marks } from '../../wal/types.js'
import type { ManifestState } from './manifest-format.js'

export interface ManifestAge {
  readonly files: Files
  /** The manifest's folder. */
  readonly directory: string
  readonly state: ManifestState
  readonly marks: Marks | undefined
  /** Advice that ends the error message. */
  readonly hint: string
}

/** Throws CorruptionError if data or log are newer than the manifest. Changes nothing. */
export function refuseNewerData({ files, directory, state, marks, hint }: ManifestAge): void {
  const { tables, ids } = state
  const root = posix.dirname(directory)
  for (const name of tableFolders(files, root)) {
    if (marks !== undefined && tables.has(Number(name))) continue
    const newer = partsIn(files, root, name).find((file) => partIdOf(file) >= ids.part)
    if (newer === undefined) continue
    throw new CorruptionError(`the manifest is older than the data [part=${newer}]: ${hint}`, `${root}/${newer}`, 0)
  }
  const wal = `${root}/wal`
  if (state.trimmedLsn === undefined || !files.exists(wal)) return
  const [first] = listSegments(files, wal, marks?.log.id).extents
  if (first === undefined || first.startLsn <= Math.max(state.trimmedLsn, marks?.log.lsn ?? 0)) return
  const place = `logBegin=${first.startLsn}, known=${state.trimmedLsn}`
  throw new CorruptionError(`the manifest is older than the log [${place}]: ${hint}`, first.path, 0)
}

/** Names of all folders of tables, including tables that the manifest does not know. */
export function tableFolders(files: Files, root: string): readonly string[] {
  return files.list(root).filter((name) => /^[0-9]+$/.test(name))
}

/** Part files in the folder of a table, named as in part descriptors, and sidecars of parts without a file. */
export function partsIn(files: Files, root: string, table: string): readonly string[] {
  return below(files, `${root}/${table}`).flatMap((partition) => {
    const names = new Set(below(files, `${root}/${table}/${partition}`))
    const isPart = (name: string): boolean =>
      name.endsWith('.parquet') || (name.endsWith('.sidecar') && !names.has(name.replace('.sidecar', '.parquet')))
    return [...names].filter(isPart).map((name) => `${table}/${partition}/${name}`)
  })
}

/** The names in a folder; none if it is not a folder. */
function below(files: Files, folder: string): readonly string[] {
  try {
    return files.list(folder)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    return []
  }
}

/** Part files are named by their part ids. */
export function partIdOf(file: string): number {
  return Number.parseInt(posix.basename(file), 10)
}
