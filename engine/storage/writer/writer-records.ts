// What the manifest is told of a table besides its parts: its schema, and how far its symbols are in files.

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
 * New dictionary entries go to their files, durably, before the manifest names them. Those of a column whose creation is
 * not acknowledged wait: it may be undone, and another column gets its id and other symbols. `schema`: what the manifest
 * is told of the tables together with the symbols, if not their settled schemas. Throws FileError.
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

/** How far the table's symbols are in their files. */
export function symbolCounts(table: WriterTable): (readonly [number, number])[] {
  return [...table.symbolFiles].map(([columnId, { count }]) => [columnId, count] as const)
}

/** The manifest names what symbolCounts() says, durably. */
export function symbolsNamed(table: WriterTable): void {
  table.namedSymbols = new Map(symbolCounts(table))
  const hasOthers = [...table.dictionaries.keys()].some((columnId) => columnId >= table.settledSchema.columns.length)
  if (!hasOthers) table.symbolsLsn = Number.POSITIVE_INFINITY
}

/** The acknowledged schema, when the manifest may lack it. */
export function schemaRecords({ tables }: Manifest, table: WriterTable): ManifestRecord[] {
  return table.schemaDirty || !tables.has(table.id) ? [{ kind: 'schema', schema: table.settledSchema }] : []
}

/** The manifest holds the acknowledged schema. Frames of newer changes lie behind `settledLsn`. */
export function schemaWritten(table: WriterTable, settledLsn: Lsn): void {
  table.schemaDirty = table.settledSchema !== table.stableSchema
  table.dirtyLsn = table.schemaDirty ? Math.max(table.dirtyLsn, settledLsn) : Number.POSITIVE_INFINITY
}
