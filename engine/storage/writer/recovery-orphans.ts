// Removes files that nothing references: after a crash, Parquet files (parts) of unfinished jobs and files of dropped
// tables; while the server runs, the files of a table that is dropped (removeTableFiles).
//
//   <table id>/<partition>/<part id>.parquet     a part; .sidecar if its rows are only in the object store
//   symbols/<table id>-<column id>.symbols       a symbol dictionary
//
// A file that neither the manifest (the list of all files) nor the write-ahead log references after recovery will never
// be referenced. Files that the manifest references are kept, even if the log has dropped their table, because on a
// full disk the manifest cannot record that, and the next start still reads them.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Log } from '../../base/log.js'
import { isRemoteOnly, type PartDescriptor, sidecarFileOf } from '../schema/schema.js'
import type { WriterTable } from './writer-table.js'

export interface OrphanOptions {
  readonly files: Files
  readonly directory: string
  readonly log: Log
}

/** The folder of a table, and the parts in it that are referenced after recovery. */
interface TableFolder {
  readonly name: string
  readonly parts: readonly Pick<PartDescriptor, 'file' | 'remote'>[]
}

/**
 * Removes the unreferenced files, one folder at a time while the server is idle, because searching the folders of many
 * tables takes long. A file that cannot be removed is harmless.
 */
export class OrphanSweep {
  readonly #options: OrphanOptions
  /** Parts from this id on are created by this start. */
  readonly #firstPartId: number
  readonly #folders: TableFolder[] = []

  constructor(
    options: OrphanOptions,
    tables: ReadonlyMap<number, WriterTable>,
    recorded: ReadonlyMap<number, Pick<WriterTable, 'parts'>>,
    firstPartId: number,
  ) {
    const { files, directory } = options
    this.#options = options
    this.#firstPartId = firstPartId
    for (const name of namesIn(options, directory)) {
      if (!/^[0-9]+$/.test(name)) continue
      const table = tables.get(Number(name))
      const { parts = [] } = recorded.get(Number(name)) ?? {}
      if (table !== undefined)
        this.#folders.push({ name, parts: [...table.parts, ...(table.schema.detached ?? []), ...parts] })
      else if (!recorded.has(Number(name))) attempt(options, name, () => files.removeDirectory(`${directory}/${name}`))
    }
    for (const name of namesIn(options, `${directory}/symbols`)) {
      const id = Number.parseInt(name, 10)
      if (!tables.has(id) && !recorded.has(id))
        attempt(options, name, () => files.remove(`${directory}/symbols/${name}`))
    }
  }

  /** Searches one folder; false if none is left. */
  step(): boolean {
    const folder = this.#folders.pop()
    if (folder === undefined) return false
    this.#removeParts(folder)
    return true
  }

  #removeParts({ name: table, parts }: TableFolder): void {
    const { files, directory } = this.#options
    // The list is as old as this start: the sidecar of a local part may have been written, and named, since.
    const named = new Set(
      parts.flatMap((part) => (isRemoteOnly(part) ? [sidecarFileOf(part)] : [part.file, sidecarFileOf(part)])),
    )
    for (const partition of namesIn(this.#options, `${directory}/${table}`)) {
      for (const name of namesIn(this.#options, `${directory}/${table}/${partition}`)) {
        const file = `${table}/${partition}/${name}`
        if (named.has(file) || Number.parseInt(name, 10) >= this.#firstPartId) continue
        attempt(this.#options, file, () => files.remove(`${directory}/${file}`))
      }
    }
  }
}

/** Removes all files of a table that has no readers. */
export function removeTableFiles(options: OrphanOptions, tableId: number): void {
  const { files, directory } = options
  attempt(options, String(tableId), () => files.removeDirectory(`${directory}/${tableId}`))
  for (const name of namesIn(options, `${directory}/symbols`)) {
    if (!name.startsWith(`${tableId}-`)) continue
    attempt(options, name, () => files.remove(`${directory}/symbols/${name}`))
  }
}

/** The names in a folder; none if it does not exist or is unreadable. The next start tries again. */
function namesIn(options: OrphanOptions, folder: string): readonly string[] {
  let names: readonly string[] = []
  attempt(options, folder, () => {
    if (options.files.exists(folder)) names = options.files.list(folder)
  })
  return names
}

function attempt({ log }: OrphanOptions, what: string, remove: () => void): void {
  try {
    remove()
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown
    log('W', 'writer', `an unreferenced file was not removed [file=${what}, error=${thrown.message}]`)
  }
}
