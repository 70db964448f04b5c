// Reads the data files of an Iceberg table in an external catalog, also if other programs than this server wrote its
// manifests. The object store is a folder.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DuckDBInstance } from '@duckdb/node-api'
import { type CatalogMetadata, snapshotOf } from '../../../engine/lake/catalog-metadata.js'
import { decodeEntries, decodeList, filesOf, type ListedFile } from '../../../engine/lake/manifest-lists.js'

/** Of the current snapshot. Throws for an object that is missing. */
export function sharedFiles(metadata: CatalogMetadata): ListedFile[] {
  const snapshot = snapshotOf(metadata)
  if (snapshot === null) return []
  return decodeList(readFileSync(fileURLToPath(snapshot['manifest-list']))).flatMap((listed) => {
    const manifest = decodeEntries(listed, readFileSync(fileURLToPath(listed.manifest_path)))
    return filesOf(manifest)
  })
}

/** In format version 3: the id of the first row of each data file of the current snapshot, and its rows. */
export function rowIds(metadata: CatalogMetadata): Map<string, readonly [first: number, rows: number]> {
  const snapshot = snapshotOf(metadata)
  const ids = new Map<string, readonly [number, number]>()
  if (snapshot === null) return ids
  for (const listed of decodeList(readFileSync(fileURLToPath(snapshot['manifest-list'])))) {
    let next = listed.first_row_id
    const { live } = decodeEntries(listed, readFileSync(fileURLToPath(listed.manifest_path)))
    for (const { data_file: file } of live) {
      const first = file.first_row_id ?? next
      if (first === null) throw new Error(`rows have no ids [file=${file.file_path}]`)
      if (file.first_row_id == null) next = first + file.record_count
      ids.set(file.file_path, [Number(first), Number(file.record_count)])
    }
  }
  return ids
}

/** Values of expressions over the rows of the current snapshot, columns by their names in the files. */
export async function readShared(metadata: CatalogMetadata, expressions: string): Promise<readonly unknown[][]> {
  const files = sharedFiles(metadata).map(({ path }) => `'${fileURLToPath(path)}'`)
  if (files.length === 0) return [[0]]
  const duckdb = await (await DuckDBInstance.create()).connect()
  try {
    const rows = await duckdb.runAndReadAll(
      `select ${expressions} from read_parquet([${files.join()}], union_by_name = true) t`,
    )
    return rows.getRowsJson()
  } finally {
    duckdb.closeSync()
  }
}
