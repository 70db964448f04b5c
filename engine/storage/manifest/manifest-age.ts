// Whether the data is newer than the manifest. An older copy of a manifest reads well, and all that it does not know
// would look like the leftovers of a crash and be removed. What proves its age without the high-water marks:
//
//   - a part whose id the manifest has not given to anybody yet: ids are durably reserved before parts are written
//   - a log that begins behind where the manifest has it begin: the manifest is told before the log is trimmed
//
// Folders of tables that the manifest knows are looked through only where there are no marks, as at the first start of a
// root from an earlier version: for a thousand tables it takes a third of a second.

import { posix } from 'node:path'
import { CorruptionError, FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { listSegments } from '../../wal/replay.js'
import type { Marks } from '../../wal/types.js'
import type { ManifestState } from './manifest-format.js'

export interface AgeQuestion {
  readonly files: Files
  /** Of the manifest. */
  readonly directory: string
  readonly state: ManifestState
  readonly marks: Marks | undefined
  /** What to do about it. */
  readonly hint: string
}

/** Throws CorruptionError when something is newer. Changes nothing. */
export function refuseNewer({ files, directory, state, marks, hint }: AgeQuestion): void {
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

/** Names of the folders of tables, known or not. */
export function tableFolders(files: Files, root: string): readonly string[] {
  return files.list(root).filter((name) => /^[0-9]+$/.test(name))
}

/** Files of parts in the folder of a table, as descriptors name them. */
export function partsIn(files: Files, root: string, table: string): readonly string[] {
  return below(files, `${root}/${table}`)
    .flatMap((partition) =>
      below(files, `${root}/${table}/${partition}`).map((name) => `${table}/${partition}/${name}`),
    )
    .filter((file) => file.endsWith('.parquet'))
}

/** Nothing of what is no folder. */
function below(files: Files, folder: string): readonly string[] {
  try {
    return files.list(folder)
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    return []
  }
}

/** Files of parts are named by their ids. */
export function partIdOf(file: string): number {
  return Number.parseInt(posix.basename(file), 10)
}
