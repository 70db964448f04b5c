// Iceberg tables in the simulation of the object store (store-sim.ts), in the server's own catalog or in an external one:
// what they name must be in the store, rows have ids of their own in format version 3, and the current snapshot has
// rows that the table had at some time.

import { parquetReadObjects } from 'hyparquet'
import type { CatalogMetadata } from '../../engine/lake/catalog-metadata.js'
import { decodeEntries, decodeList } from '../../engine/lake/manifest-lists.js'
import type { TableMetadata } from '../../engine/lake/table-metadata.js'
import type { StoreRows } from './store-sim-model.js'

/** Of the metadata of either catalog. */
export interface LakeState {
  readonly name: string
  /** Other files that it names. */
  readonly files: readonly string[]
  readonly lists: readonly string[]
  /** Null: there is no snapshot. */
  readonly current: string | null
  /** Null: in format version 2. */
  readonly nextRowId: number | null
}

export type Objects = (uri: string) => Buffer

interface LakeFile {
  readonly path: string
  readonly bytes: number
  readonly rows: number
  readonly firstRowId: bigint | null
}

export function ownState(name: string, metadata: TableMetadata): LakeState {
  const current = metadata.snapshots.find((one) => one['snapshot-id'] === metadata['current-snapshot-id'])
  return {
    name,
    files: metadata['metadata-log'].map((entry) => entry['metadata-file']),
    lists: metadata.snapshots.map((one) => one['manifest-list']),
    current: current?.['manifest-list'] ?? null,
    nextRowId: metadata['next-row-id'] ?? null,
  }
}

export function sharedState(name: string, metadata: CatalogMetadata): LakeState {
  const { snapshots = [] } = metadata
  const current = snapshots.find((one) => one['snapshot-id'] === metadata['current-snapshot-id'])
  return {
    ...{ name, files: [], lists: snapshots.map((one) => one['manifest-list']) },
    current: current?.['manifest-list'] ?? null,
    nextRowId: metadata['next-row-id'] ?? null,
  }
}

/** All that all snapshots name is there. Throws Error. */
export function checkState({ name, files, lists, current, nextRowId }: LakeState, objects: Objects): void {
  for (const uri of files) objects(uri)
  const sizes = new Map<string, number>()
  for (const list of new Set(lists)) {
    for (const { path, bytes } of filesIn(list, objects)) {
      const found = sizes.get(path) ?? objects(path).length
      sizes.set(path, found)
      if (found !== bytes) throw new Error(`a file has another size than its manifest says [uri=${path}]`)
    }
  }
  if (nextRowId !== null && current !== null) checkRowIds(name, nextRowId, filesIn(current, objects))
}

/** Rows have ids unless the list is of format version 2, which its table had when it was written. */
function checkRowIds(name: string, nextRowId: number, files: readonly LakeFile[]): void {
  const numbered = files.filter(({ firstRowId }) => firstRowId !== null)
  if (numbered.length === 0) return
  if (numbered.length < files.length) throw new Error(`some rows have no ids [table=${name}]`)
  let end = 0
  for (const { firstRowId, rows } of numbered.sort((x, y) => Number((x.firstRowId ?? 0n) - (y.firstRowId ?? 0n)))) {
    if (Number(firstRowId) < end) throw new Error(`two rows have one id [table=${name}, id=${firstRowId}]`)
    end = Number(firstRowId) + rows
  }
  if (end > nextRowId) throw new Error(`an id is given again [table=${name}, next=${nextRowId}, end=${end}]`)
}

/** The rows of the current snapshot; null: there is none. Throws Error for a row that is there twice. */
export async function rowsOfState({ name, current }: LakeState, objects: Objects): Promise<StoreRows | null> {
  if (current === null) return null
  const rows = new Map<number, string>()
  for (const { path } of filesIn(current, objects)) {
    const file = Uint8Array.from(objects(path)).buffer
    for (const { x, v } of await parquetReadObjects({ file, columns: ['x', 'v'] })) {
      if (rows.has(Number(x))) throw new Error(`a row is twice in the lake [table=${name}, x=${x}]`)
      rows.set(Number(x), String(v))
    }
  }
  return rows
}

function filesIn(list: string, objects: Objects): LakeFile[] {
  return decodeList(objects(list)).flatMap((listed) => {
    let next = listed.first_row_id
    return decodeEntries(listed, objects(listed.manifest_path)).live.map(({ data_file: file }) => {
      const firstRowId = file.first_row_id ?? next
      if (file.first_row_id == null && next !== null) next += file.record_count
      const { file_path: path, file_size_in_bytes: bytes, record_count: rows } = file
      return { path, bytes: Number(bytes), rows: Number(rows), firstRowId }
    })
  })
}
