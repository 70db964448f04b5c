// Finds, from the metadata of an Iceberg table that another program wrote, the data files that a query has to read, and
// the files that delete rows of them. foreign-tables.ts loads this module at its first use. Throws ForeignTableError
// for damaged files and for features that are not supported.

import type { DeleteSource, EqualityDelete, TableData } from '../parquet/foreign-file.js'
import type { ColumnCondition } from '../types/bounds.js'
import type { Value } from '../types/value.js'
import { deletesOf, isUnpartitioned, partitionKey } from './foreign-deletes.js'
import {
  decodeForeignList,
  decodeForeignManifest,
  type ForeignDataFile,
  type ForeignManifest,
} from './foreign-manifests.js'
import { type ForeignMetadata, ForeignTableError } from './foreign-metadata.js'
import { fieldTests, mayHaveRows, mayListRows } from './foreign-pruning.js'
import { valueOfRaw } from './foreign-types.js'

/** What a name in the metadata stands for. Rejects with the reader's own errors. */
export interface TableReader {
  /** The content of a small file. */
  content(uri: string): Promise<Uint8Array>
  /** Local paths of files, by their names in the table. */
  local(files: readonly { readonly path: string; readonly bytes: number }[]): Promise<ReadonlyMap<string, string>>
  /** Keeps the entries of a manifest, or finds them; files of a table never change. */
  cached(uri: string, decode: () => Promise<readonly ForeignDataFile[]>): Promise<readonly ForeignDataFile[]>
}

/** A file that is to be read, with what the table says about it. */
export interface TableFile {
  /** As in the table. */
  readonly name: string
  readonly path: string
  readonly data: Omit<TableData, 'positions' | 'equality'> & {
    readonly positions: readonly TableDeletes[]
    /** Several files may have the same list. */
    readonly equality: readonly TableDeletes[]
  }
}

export type TableDeletes = Pick<TableFile, 'name' | 'path'> & Pick<DeleteSource, 'vector' | 'equality'>

export interface TableFiles {
  readonly files: readonly TableFile[]
  /** At most. */
  readonly rows: number
}

const filesMax = 10_000
const readsAtOnce = 8

/** The files that may have rows for all conditions. */
export async function findTableFiles(
  metadata: ForeignMetadata,
  conditions: readonly ColumnCondition[],
  reader: TableReader,
): Promise<TableFiles> {
  if (metadata.snapshot === null) return { files: [], rows: 0 }
  const tests = fieldTests(metadata.fields, conditions)
  const { manifestList } = metadata.snapshot
  const manifests = decoded(manifestList, await reader.content(manifestList), decodeForeignList)
  const wanted = manifests.filter((one) => one.isOfDeletes || mayListRows(metadata, tests, one))
  const entries = (await inTurns(wanted, (one) => manifestEntries(one, reader))).flat()
  const data = entries.filter((file) => file.content === 'data' && mayHaveRows(metadata, tests, file))
  if (data.length > filesMax)
    throw new ForeignTableError(`the query needs ${data.length} files of the table, more than ${filesMax}`)
  const deletes = deletesOf(
    metadata,
    data,
    entries.filter(({ content }) => content !== 'data'),
  )
  const lists = new Set(deletes.flatMap(({ positions, equality }) => [positions, equality]))
  const neededDeletes = new Set<ForeignDataFile>()
  for (const list of lists) for (const file of list) neededDeletes.add(file)
  if (neededDeletes.size > filesMax)
    throw new ForeignTableError(`the query needs ${neededDeletes.size} files of deletes, more than ${filesMax}`)
  const needed = new Map([...data, ...neededDeletes].map((file) => [file.path, file]))
  for (const { path, format } of needed.values()) requireFormat(path, format)
  const equality = new Map(
    [...neededDeletes]
      .filter(({ content }) => content === 'equality')
      .map((file) => [file, equalityOf(metadata, file)]),
  )
  const local = await reader.local([...needed.values()])
  const sources = new Map(
    [...neededDeletes].map((file) => [
      file,
      { ...placeOf(local, file), vector: file.range, equality: equality.get(file) ?? null },
    ]),
  )
  const shared = new Map([...lists].map((list) => [list, list.flatMap((file) => sources.get(file) ?? [])]))
  const files = data.map((file, index): TableFile => {
    const own = deletes[index]
    return {
      ...placeOf(local, file),
      data: {
        uri: file.path,
        positions: own === undefined ? [] : (shared.get(own.positions) ?? []),
        equality: own === undefined ? [] : (shared.get(own.equality) ?? []),
        sequence: Number(file.sequenceNumber),
        values: partitionValues(metadata, file),
      },
    }
  })
  return { files, rows: data.reduce((sum, { rows }) => sum + rows, 0) }
}

function manifestEntries(manifest: ForeignManifest, reader: TableReader): Promise<readonly ForeignDataFile[]> {
  return reader.cached(manifest.path, async () => {
    const bytes = await reader.content(manifest.path)
    return decoded(manifest.path, bytes, (file) => decodeForeignManifest(manifest, file))
  })
}

function requireFormat(path: string, format: string): void {
  if (format !== 'PARQUET' && format !== 'PUFFIN')
    throw new ForeignTableError(`files of the format ${format} are not supported [file=${path}]`)
}

/** Types whose values, as they are in memory, do not tell NULL from another value, or have no single form. */
const notCompared: ReadonlySet<string> = new Set(['BOOLEAN', 'ARRAY'])

function equalityOf(metadata: ForeignMetadata, file: ForeignDataFile): EqualityDelete {
  const { equalityIds: ids, path, sequenceNumber } = file
  if (ids.length === 0) throw new ForeignTableError(`a file of equality deletes names no columns [file=${path}]`)
  const columns = ids.map((id) => {
    const field = metadata.fieldOf(id)
    if (field === null || field.shape !== null || notCompared.has(field.type.name)) {
      const column = field?.name ?? `field ${id}`
      throw new ForeignTableError(`equality deletes by this column are not supported [column=${column}, file=${path}]`)
    }
    const { name, type, initial, paths, shape } = field
    return { name, type, field: { id, initial, paths, shape } }
  })
  const scope = isUnpartitioned(metadata, file) ? '' : partitionKey(metadata, file)
  return { group: JSON.stringify([ids, scope]), sequence: Number(sequenceNumber), columns }
}

function placeOf(
  local: ReadonlyMap<string, string>,
  { path: name }: ForeignDataFile,
): Pick<TableFile, 'name' | 'path'> {
  const path = local.get(name)
  if (path === undefined) throw new ForeignTableError(`a file of the table is missing [file=${name}]`)
  return { name, path }
}

/** Values of columns that a file of a partition need not have. */
function partitionValues(metadata: ForeignMetadata, file: ForeignDataFile): Map<number, Value> {
  const values = new Map<number, Value>()
  for (const [index, { sourceId, transform }] of (metadata.specs.get(file.specId) ?? []).entries()) {
    const field = metadata.fields.find(({ id }) => id === sourceId)
    if (transform !== 'identity' || field === undefined) continue
    const value = valueOfRaw(field.foreign, file.partition[index] ?? null)
    if (value !== undefined) values.set(sourceId, value)
  }
  return values
}

async function inTurns<Item, Value>(items: readonly Item[], run: (item: Item) => Promise<Value>): Promise<Value[]> {
  const values: Value[] = []
  for (let from = 0; from < items.length; from += readsAtOnce) {
    values.push(...(await Promise.all(items.slice(from, from + readsAtOnce).map(run))))
  }
  return values
}

function decoded<Item>(uri: string, bytes: Uint8Array, decode: (bytes: Uint8Array) => Item): Item {
  try {
    return decode(bytes)
  } catch (error) {
    if (error instanceof ForeignTableError) throw error
    throw new ForeignTableError(`a file is damaged: ${error instanceof Error ? error.message : error} [file=${uri}]`, {
      cause: error,
    })
  }
}
