// Prepares the entries of a table in the manifest (the list of all files): writes new symbols to their dictionary
// files, and returns the manifest records of the table's schema and of its numbers of symbols.

import { assert } from '../../base/assert.js'
import type { Files } from '../../base/files.js'
import type { Lsn } from '../../wal/types.js'
import type { Manifest, ManifestRecord } from '../manifest/manifest.js'
import { appendDictionaryFile, dictionaryFilePath } from '../memtable/dictionary-file.js'
import { SyncGroup } from '../part/sync-group.js'
import type { TableSchema } from '../schema/schema.js'
import type { WriterTable } from './writer-table.js'

export interface SymbolPlace {
  readonly files: Files
  /** The database directory. */
  readonly directory: string
}

/**
 * Writes new dictionary entries to their files and syncs them, before the manifest counts them. Columns whose creation
 * is not acknowledged are skipped: if it is undone, another column gets the same id and other symbols. `schema`: the
 * schema that is written to the manifest with the symbols, if it is not the settled one. Throws FileError.
 */
export function writeSymbols(
  { files, directory }: SymbolPlace,
  tables: readonly WriterTable[],
  schema?: TableSchema,
): void {
  const group = new SyncGroup(files)
  const written: (() => void)[] = []
  try {
    for (const table of tables) {
      for (const [columnId, dictionary] of table.dictionaries) {
        if (columnId >= (schema ?? table.settledSchema).columns.length) continue
        const known = table.symbolFiles.get(columnId) ?? { count: 0, end: 0 }
        const { count } = dictionary
        if (count === known.count) continue
        assert(count > known.count, 'R2: a dictionary only grows')
        const id = { tableId: table.id, columnId }
        const record = { firstId: known.count, count: count - known.count, ...dictionary.packed(known.count, count) }
        const path = dictionaryFilePath(`${directory}/symbols`, id)
        const end = appendDictionaryFile(files, group, path, id, known.end, record)
        written.push(() => table.symbolFiles.set(columnId, { count, end }))
      }
    }
    group.commit()
  } finally {
    group.close()
  }
  for (const note of written) note()
}

/** Number of symbols of each column that are in the files. */
export function symbolCounts(table: WriterTable): (readonly [number, number])[] {
  return [...table.symbolFiles].map(([columnId, { count }]) => [columnId, count] as const)
}

/** Records that the manifest durably contains symbolCounts(). */
export function symbolsNamed(table: WriterTable): void {
  table.namedSymbols = new Map(symbolCounts(table))
  const hasOthers = [...table.dictionaries.keys()].some((columnId) => columnId >= table.settledSchema.columns.length)
  if (!hasOthers) table.symbolsLsn = Number.POSITIVE_INFINITY
}

/** A record with the acknowledged schema, if the manifest may lack it. */
export function schemaRecords({ tables }: Manifest, table: WriterTable): ManifestRecord[] {
  return table.schemaDirty || !tables.has(table.id) ? [{ kind: 'schema', schema: table.settledSchema }] : []
}

/** Records that the manifest contains the acknowledged schema. Frames of newer changes are after `settledLsn`. */
export function schemaWritten(table: WriterTable, settledLsn: Lsn): void {
  table.schemaDirty = table.settledSchema !== table.stableSchema
  table.dirtyLsn = table.schemaDirty ? Math.max(table.dirtyLsn, settledLsn) : Number.POSITIVE_INFINITY
}
