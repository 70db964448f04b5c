// Copies a database directory to make a backup or to restore one. A backup copies the state that a checkpoint
// (CHECKPOINT CREATE) protects from changes.
//
// Parts are immutable Parquet files with unique names, so parts that the target already has are not copied again. The
// target's manifest, which lists its files, is replaced last, when everything it names is durable. If the copy is
// interrupted, the target is still the old copy.
//
// Of a part that is only in the object store, the backup contains the sidecar, a local file with its metadata, and
// refers to the same object.

import { assert } from '../../base/assert.js'
import { CorruptionError, FileError } from '../../base/errors.js'
import type { Files } from '../../base/files.js'
import { readManifest, replaceManifest } from '../manifest/manifest.js'
import type { ManifestState, ManifestTable } from '../manifest/manifest-format.js'
import { dictionaryFilePath } from '../memtable/dictionary-file.js'
import { SyncGroup } from '../part/sync-group.js'
import { type DetachedPart, isRemoteOnly, localFileOf, type PartDescriptor } from '../schema/schema.js'
import { checkPart, localBytes, partsOf } from './check.js'

const chunkBytes = 4 * 1024 * 1024

export interface CopyOptions {
  readonly files: Files
  /** The database directory to copy from. */
  readonly source: string
  /** Folder of the manifest that names the files to copy. */
  readonly manifest: string
  /** The database directory to copy to; created if missing. */
  readonly target: string
  /** Ids of the only tables to copy; null: all, with the users and the source positions. */
  readonly tables?: readonly number[] | null
  /** Called before each part, copied or there already, with the bytes of all parts. */
  readonly progress?: (doneBytes: number, totalBytes: number) => void
}

export interface CopyResult {
  readonly tables: number
  readonly parts: number
  readonly rows: number
  readonly copiedParts: number
  readonly copiedBytes: number
  readonly removedParts: number
}

/** Throws FileError, and CorruptionError if a copied file is damaged. */
export function copyDatabase(options: CopyOptions): CopyResult {
  const { files, source, manifest, target } = options
  const state = chosenState(readManifest(files, manifest), options.tables ?? null)
  const totals = { tables: state.tables.size, parts: 0, rows: 0, copiedParts: 0, copiedBytes: 0, removedParts: 0 }
  const group = new SyncGroup(files)
  files.makeDirectory(`${target}/manifest`)
  files.makeDirectory(`${target}/symbols`)
  const named = new Set<string>()
  const totalBytes = [...state.tables.values()].flatMap(partsOf).reduce((sum, part) => sum + localBytes(part), 0)
  let doneBytes = 0
  try {
    for (const [tableId, table] of state.tables) {
      for (const part of partsOf(table)) {
        const file = localFileOf(part)
        const bytes = isRemoteOnly(part) ? files.size(`${source}/${file}`) : part.bytes
        named.add(file)
        totals.parts++
        totals.rows += part.rows
        doneBytes += localBytes(part)
        options.progress?.(doneBytes, totalBytes)
        if (isThere(files, `${target}/${file}`, bytes)) continue
        copyPart(options, group, tableId, part)
        totals.copiedParts++
        totals.copiedBytes += bytes
      }
      for (const [columnId] of table.dictionaries) {
        const path = dictionaryFilePath('symbols', { tableId, columnId })
        if (files.exists(`${source}/${path}`)) totals.copiedBytes += replaceCopy(options, path)
      }
    }
    if (hasUsers(options)) replaceCopy(options, 'users.pus')
    group.commit()
    files.syncDirectory(`${target}/symbols`)
    files.syncDirectory(target)
  } finally {
    group.close()
  }
  assert(doneBytes === totalBytes, 'F3: parts keep their sizes while they are copied')
  replaceManifest(files, `${target}/manifest`, state)
  totals.removedParts = prune(files, target, named)
  return totals
}

function hasUsers({ files, source, tables }: Pick<CopyOptions, 'files' | 'source' | 'tables'>): boolean {
  return (tables ?? null) === null && files.exists(`${source}/users.pus`)
}

/** The state with these tables alone. Their sequences and enumerations have no parts, so all of these remain. */
export function chosenState(state: ManifestState, tableIds: readonly number[] | null): ManifestState {
  if (tableIds === null) return state
  const isKept = (id: number, { schema }: ManifestTable): boolean =>
    tableIds.includes(id) || schema.sequence !== undefined || schema.labels !== undefined
  const tables = new Map([...state.tables].filter(([id, table]) => isKept(id, table)))
  return { ...state, tables, usersExist: false, sourcePositions: new Map() }
}

function isThere(files: Files, path: string, bytes: number): boolean {
  if (!files.exists(path)) return false
  const file = files.open(path, 'read')
  try {
    return file.size() === bytes
  } finally {
    file.close()
  }
}

function copyPart(
  { files, source, target }: CopyOptions,
  group: SyncGroup,
  tableId: number,
  part: PartDescriptor | DetachedPart,
): void {
  const name = localFileOf(part)
  const path = `${target}/${name}`
  const folder = path.slice(0, path.lastIndexOf('/'))
  files.makeDirectory(folder)
  if (files.exists(path)) files.remove(path)
  copyBytes(files, `${source}/${name}`, path, (file) =>
    group.add(file, [folder, folder.slice(0, folder.lastIndexOf('/')), target]),
  )
  const [finding] = checkPart(files, target, tableId, part)
  if (finding === undefined) return
  files.remove(path)
  throw new CorruptionError(`the copy of a part is damaged: ${finding.message}`, `${source}/${name}`, finding.offset)
}

/** Copies a file that may grow or be replaced; the copy atomically replaces an older one. */
function replaceCopy({ files, source, target }: CopyOptions, file: string): number {
  const path = `${target}/${file}`
  const aside = `${path}.new`
  if (files.exists(aside)) files.remove(aside)
  const bytes = copyBytes(files, `${source}/${file}`, aside, (copy) => {
    try {
      copy.sync()
    } finally {
      copy.close()
    }
  })
  files.rename(aside, path)
  return bytes
}

/** Copies the bytes and passes the open copy to `done`, which closes it. */
function copyBytes(files: Files, from: string, to: string, done: (copy: ReturnType<Files['open']>) => void): number {
  const source = files.open(from, 'read')
  try {
    const copy = files.open(to, 'create')
    let given = false
    try {
      const size = source.size()
      const chunk = new Uint8Array(Math.min(chunkBytes, Math.max(1, size)))
      let at = 0
      while (at < size) {
        const count = source.read(chunk.subarray(0, Math.min(chunk.length, size - at)), at)
        if (count === 0) break
        copy.write([chunk.subarray(0, count)], at)
        at += count
      }
      given = true
      done(copy)
      return at
    } finally {
      if (!given) copy.close()
    }
  } finally {
    source.close()
  }
}

/**
 * Removes parts that the manifest no longer names; returns their number. Failures are ignored, because they are
 * harmless.
 */
function prune(files: Files, target: string, named: ReadonlySet<string>): number {
  let removed = 0
  try {
    for (const table of files.list(target).filter((name) => /^[0-9]+$/.test(name))) {
      for (const partition of files.list(`${target}/${table}`)) {
        for (const name of files.list(`${target}/${table}/${partition}`)) {
          const file = `${table}/${partition}/${name}`
          if (named.has(file)) continue
          files.remove(`${target}/${file}`)
          removed++
        }
      }
    }
  } catch (error) {
    if (!(error instanceof FileError)) throw error
  }
  return removed
}
