// Makes backups in an object store and restores them (`penstock restore`). There may be several backups of a root
// folder; they share the parts (Parquet files of tables).
//
// Keys, relative to the place of the backups:
//
//   backups/<root id>/<time>.json            the list of a backup's files, written last: without it there is no backup
//   data/<root id>/<path>                    parts, immutable, under the paths that they have in the database directory
//   data/<root id>/<time>/<path>             files of this backup alone: manifest, symbols, users
//
// Invariants:
//   1. An object that a list names is complete and verified before the list is written.
//   2. Objects are removed only after the lists that name them. An interrupted backup leaves objects that no list
//      names: the next backup uses the parts among them, and removes the others.

import { CorruptionError } from '../../base/errors.js'
import { bodyOf, type ObjectStore, StoreError } from '../../object-store/object-store.js'
import { fetchFile, uploadFile } from '../../object-store/transfer.js'
import { readManifest, replaceManifest } from '../manifest/manifest.js'
import { dictionaryFilePath } from '../memtable/dictionary-file.js'
import { isRemoteOnly, localFileOf } from '../schema/schema.js'
import { type CopyOptions, type CopyResult, chosenState } from './backup.js'
import { checkPart, localBytes, partsOf } from './check.js'

const listFormat = 1

export interface UploadOptions extends Omit<CopyOptions, 'target'> {
  readonly store: ObjectStore
  /** Of the root, so that several can share a place. */
  readonly rootId: string
  /** Names the backup; later ones sort behind. */
  readonly time: string
  /** Folder for the manifest, which is written anew. */
  readonly scratch: string
}

interface BackupFile {
  /** In the database directory. */
  readonly path: string
  readonly key: string
  readonly bytes: number
}

interface BackupList {
  readonly format: number
  readonly tables: number
  readonly parts: number
  readonly rows: number
  readonly files: readonly BackupFile[]
}

/** A backup in a store. */
export interface StoredBackup {
  readonly rootId: string
  readonly time: string
}

/** Rejects with StoreError, FileError, and CorruptionError if a part is damaged. */
export async function uploadDatabase(options: UploadOptions): Promise<CopyResult> {
  const { files, source, manifest, store, rootId, time, scratch } = options
  const state = chosenState(readManifest(files, manifest), options.tables ?? null)
  const totals = { tables: state.tables.size, parts: 0, rows: 0, copiedParts: 0, copiedBytes: 0, removedParts: 0 }
  const there = new Map<string, number>()
  for await (const { key, bytes } of store.list(`data/${rootId}/`)) there.set(key, bytes)
  const totalBytes = [...state.tables.values()].flatMap(partsOf).reduce((sum, part) => sum + localBytes(part), 0)
  let doneBytes = 0
  const named: BackupFile[] = []
  const own: string[] = []
  for (const [tableId, table] of state.tables) {
    for (const part of partsOf(table)) {
      const path = localFileOf(part)
      const key = `data/${rootId}/${path}`
      const bytes = isRemoteOnly(part) ? files.size(`${source}/${path}`) : part.bytes
      named.push({ path, key, bytes })
      totals.parts++
      totals.rows += part.rows
      doneBytes += localBytes(part)
      options.progress?.(doneBytes, totalBytes)
      if (there.get(key) === bytes) continue
      const [finding] = checkPart(files, source, tableId, part)
      if (finding !== undefined) throw new CorruptionError(finding.message, `${source}/${path}`, finding.offset)
      // What an interrupted upload left has another size.
      if (there.has(key)) await store.delete(key)
      await uploadFile(store, files, `${source}/${path}`, key)
      totals.copiedParts++
      totals.copiedBytes += bytes
    }
    for (const [columnId] of table.dictionaries) own.push(dictionaryFilePath('symbols', { tableId, columnId }))
  }
  if (state.usersExist) own.push('users.pus')
  replaceManifest(files, `${scratch}/manifest`, state)
  const places = [
    ...own.filter((path) => files.exists(`${source}/${path}`)).map((path) => ({ path, from: `${source}/${path}` })),
    ...files.list(`${scratch}/manifest`).map((name) => ({
      path: `manifest/${name}`,
      from: `${scratch}/manifest/${name}`,
    })),
  ]
  for (const { path, from } of places) {
    const key = `data/${rootId}/${time}/${path}`
    const { bytes } = await uploadFile(store, files, from, key)
    named.push({ path, key, bytes })
    totals.copiedBytes += bytes
  }
  const { tables, parts, rows } = totals
  const list: BackupList = { format: listFormat, tables, parts, rows, files: named }
  await store.put(listKey({ rootId, time }), bodyOf(Buffer.from(JSON.stringify(list))))
  return totals
}

/**
 * Removes the root's oldest backups in the store until `retained` are left, and objects that none of these names.
 * Returns how many backups are removed. No backup of the root may run meanwhile.
 */
export async function removeOldBackups(store: ObjectStore, rootId: string, retained: number): Promise<number> {
  const known = (await listBackups(store)).filter((backup) => backup.rootId === rootId)
  const old = known.slice(0, Math.max(0, known.length - retained))
  for (const backup of old) await store.delete(listKey(backup))
  const named = new Set<string>()
  for (const backup of known.slice(old.length)) {
    for (const { key } of (await readList(store, backup)).files) named.add(key)
  }
  for await (const { key } of store.list(`data/${rootId}/`)) if (!named.has(key)) await store.delete(key)
  return old.length
}

/** All backups at the place, the oldest first. */
export async function listBackups(store: ObjectStore): Promise<StoredBackup[]> {
  const found: StoredBackup[] = []
  for await (const { key } of store.list('backups/')) {
    const [, rootId, time] = /^backups\/([^/]+)\/([^/]+)\.json$/.exec(key) ?? []
    if (rootId !== undefined && time !== undefined) found.push({ rootId, time })
  }
  return found.toSorted((a, b) => (a.time < b.time ? -1 : 1))
}

/** Writes the files of a backup into a folder, which must not exist. Each is compared with its checksum. */
export async function downloadDatabase(
  {
    files,
    store,
    target,
    progress,
  }: Pick<CopyOptions, 'files' | 'target' | 'progress'> & { readonly store: ObjectStore },
  backup: StoredBackup,
): Promise<CopyResult> {
  const list = await readList(store, backup)
  const { tables, parts, rows } = list
  const totalBytes = list.files.reduce((sum, { bytes }) => sum + bytes, 0)
  let doneBytes = 0
  const folders = new Set<string>()
  for (const { path, key, bytes } of list.files) {
    const folder = `${target}/${path}`.replace(/\/[^/]*$/, '')
    if (!folders.has(folder)) files.makeDirectory(folder)
    folders.add(folder)
    await fetchFile(store, files, key, `${target}/${path}`)
    doneBytes += bytes
    progress?.(doneBytes, totalBytes)
  }
  for (const folder of folders) files.syncDirectory(folder)
  return { tables, parts, rows, copiedParts: parts, copiedBytes: doneBytes, removedParts: 0 }
}

function listKey({ rootId, time }: StoredBackup): string {
  return `backups/${rootId}/${time}.json`
}

async function readList(store: ObjectStore, backup: StoredBackup): Promise<BackupList> {
  const key = listKey(backup)
  const list: unknown = JSON.parse(Buffer.from(await store.get(key)).toString('utf8'))
  if (!isList(list)) throw new StoreError('damaged', `this is no list of a backup's files [key=${key}]`)
  if (list.format > listFormat)
    throw new StoreError('rejected', `a newer version has written the backup [key=${key}, format=${list.format}]`)
  const bad = list.files.find(({ path }) => !/^[^/.][^/]*(\/[^/.][^/]*)*$/.test(path))
  if (bad !== undefined) throw new StoreError('damaged', `a path of the backup is invalid [key=${key}]`)
  return list
}

function isList(value: unknown): value is BackupList {
  return (
    typeof value === 'object' && value !== null && 'format' in value && 'files' in value && Array.isArray(value.files)
  )
}
