// Checks for leaks at the end of a simulated run: reports memory and files that should not exist when all rows are
// flushed, no reader is active, and the log was trimmed.

import { budgets } from '../../engine/memory/budgets.js'
import type { FaultyDisk } from '../support/simulator/faulty-files.js'
import type { SimHost } from '../support/simulator/host.js'
import type { Model } from '../support/simulator/model.js'

/** The current segment, the one that is being prepared, and one that a carried table still needs. */
const segmentsMax = 4

export function checkLeaks(host: SimHost, disk: FaultyDisk, model: Model): void {
  const { files } = disk
  const tables = host.catalog.tables()
  if (tables.length !== model.size) throw new Error('the catalog has other tables than the model')
  const named = new Set(tables.flatMap(({ parts }) => parts.map(({ file }) => file)))
  const ids = new Set(tables.map(({ schema }) => String(schema.id)))
  for (const file of partFiles(disk)) if (!named.delete(file)) throw new Error(`a part is left over [file=${file}]`)
  for (const file of named) throw new Error(`a part is missing [file=${file}]`)
  for (const name of files.list('/db')) {
    if (/^[0-9]+$/.test(name) && !ids.has(name)) throw new Error(`a folder is left over [name=${name}]`)
  }
  for (const name of files.list('/db/symbols')) {
    if (!ids.has(name.split('-')[0] as string)) throw new Error(`a dictionary is left over [name=${name}]`)
  }
  const segments = files.list('/db/wal').filter((name) => name.endsWith('.wal'))
  if (segments.length > segmentsMax) throw new Error(`log segments are left over [${segments.join()}]`)
  const manifests = files.list('/db/manifest')
  if (manifests.length !== 1) throw new Error(`manifest files are left over [${manifests.join()}]`)
  const rows = tables.flatMap(({ memtables }) => memtables)
  if (rows.length > 0) throw new Error('memtables are left over')
  if (host.allocator.used(budgets.flush) > 0) throw new Error('memory of jobs is left over')
}

function partFiles({ files }: FaultyDisk): string[] {
  return files.list('/db').flatMap((table) => {
    if (!/^[0-9]+$/.test(table)) return []
    return files
      .list(`/db/${table}`)
      .flatMap((partition) => files.list(`/db/${table}/${partition}`).map((name) => `${table}/${partition}/${name}`))
  })
}
