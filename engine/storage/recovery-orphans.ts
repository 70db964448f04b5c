// What a crash may leave on disk that nothing names: parts of jobs that were not finished, files of dropped tables.
// Parts lie in <table id>/<partition>/<part id>.parquet, symbols in symbols/<table id>-<column id>.symbols.
//
// Called when recovery is done: what neither manifest nor log names now will never be named.

import { FileError } from '../base/errors.js'
import type { Files } from '../base/files.js'
import type { Log } from '../base/log.js'
import type { WriterTable } from './writer-table.js'

export interface OrphanOptions {
  readonly files: Files
  readonly directory: string
  readonly log: Log
}

/** Removes files that no table has. A file that cannot be removed stays; it does no harm. */
export function removeOrphans(options: OrphanOptions, tables: ReadonlyMap<number, WriterTable>): void {
  const { files, directory } = options
  for (const name of namesIn(options, directory)) {
    if (!/^[0-9]+$/.test(name)) continue
    const table = tables.get(Number(name))
    if (table === undefined) attempt(options, name, () => files.removeDirectory(`${directory}/${name}`))
    else {
      const kept = [...table.parts, ...(table.schema.detached ?? [])]
      removeParts(options, name, new Set(kept.map(({ file }) => file)))
    }
  }
  for (const name of namesIn(options, `${directory}/symbols`)) {
    if (!tables.has(Number.parseInt(name, 10)))
      attempt(options, name, () => files.remove(`${directory}/symbols/${name}`))
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

function removeParts(options: OrphanOptions, table: string, named: ReadonlySet<string>): void {
  const { files, directory } = options
  for (const partition of namesIn(options, `${directory}/${table}`)) {
    for (const name of namesIn(options, `${directory}/${table}/${partition}`)) {
      const file = `${table}/${partition}/${name}`
      if (!named.has(file)) attempt(options, file, () => files.remove(`${directory}/${file}`))
    }
  }
}

/** Nothing when the folder cannot be read now: the next start looks again. */
function namesIn(options: OrphanOptions, folder: string): readonly string[] {
  let names: readonly string[] = []
  attempt(options, folder, () => {
    names = options.files.list(folder)
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
