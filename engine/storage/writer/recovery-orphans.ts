// What a crash may leave on disk that nothing names: parts of jobs that were not finished, files of dropped tables.
// Parts lie in <table id>/<partition>/<part id>.parquet, symbols in symbols/<table id>-<column id>.symbols.
//
// What neither manifest nor log names when recovery is done will never be named. What the manifest names stays, even where
// the log has dropped it: a start on a full disk cannot tell the manifest, and the next start reads what it names.

import { FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import type { Log } from '../../base/log.js'
import type { PartDescriptor } from '../schema/schema.js'
import type { WriterTable } from './writer-table.js'

export interface OrphanOptions {
  readonly files: Files
  readonly directory: string
  readonly log: Log
}

/** A folder of a table, and the parts in it that recovery has found named. */
interface TableFolder {
  readonly name: string
  readonly parts: readonly Pick<PartDescriptor, 'file'>[]
}

/**
 * Removes what no table had when recovery was done, folder by folder while the server works: looking into those of a
 * thousand tables takes a third of a second. A file that cannot be removed stays; it does no harm.
 */
export class OrphanSweep {
  readonly #options: OrphanOptions
  /** Parts from it on are made by this start. */
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

  /** Looks through one folder; false: there is none left. */
  step(): boolean {
    const folder = this.#folders.pop()
    if (folder === undefined) return false
    this.#removeParts(folder)
    return true
  }

  #removeParts({ name: table, parts }: TableFolder): void {
    const { files, directory } = this.#options
    const named = new Set(parts.map(({ file }) => file))
    for (const partition of namesIn(this.#options, `${directory}/${table}`)) {
      for (const name of namesIn(this.#options, `${directory}/${table}/${partition}`)) {
        const file = `${table}/${partition}/${name}`
        if (named.has(file) || Number.parseInt(name, 10) >= this.#firstPartId) continue
        attempt(this.#options, file, () => files.remove(`${directory}/${file}`))
      }
    }
  }
}

/** Removes all files of a table that nobody reads any more. */
export function removeTableFiles(options: OrphanOptions, tableId: number): void {
  const { files, directory } = options
  attempt(options, String(tableId), () => files.removeDirectory(`${directory}/${tableId}`))
  for (const name of namesIn(options, `${directory}/symbols`)) {
    if (!name.startsWith(`${tableId}-`)) continue
    attempt(options, name, () => files.remove(`${directory}/symbols/${name}`))
  }
}

/** Nothing when the folder is gone, as that of a dropped table, or cannot be read now: the next start looks again. */
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
    log('W', 'writer', `left over file was not removed [file=${what}, error=${thrown.message}]`)
  }
}
