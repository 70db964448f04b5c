// The writer's catalog: tables by name and id. Tables and columns that the current request adds are provisional: undo()
// removes them if the request fails.

import { assert } from '../../base/assert.js'
import { RowError } from '../../base/errors.js'
import { newColumnsPerRequestMax, newTablesPerRequestMax, tableColumnsMax } from '../../base/limits.js'
import type { DataType } from '../../types/column-types.js'
import type { DictionaryIndexes } from '../memtable/dictionary-indexes.js'
import { DroppedNames } from '../schema/dropped-names.js'
import type { ColumnSchema, PartitionUnit, TableSchema } from '../schema/schema.js'
import { type TableMemory, WriterTable } from './writer-table.js'

export interface NewTableDefaults {
  readonly partitionBy: PartitionUnit
  readonly timestampName: string
  readonly maxUncommittedRows: number
  readonly o3MaxLagMicros: number
}

export const newTableDefaults: NewTableDefaults = {
  partitionBy: 'DAY',
  timestampName: 'timestamp',
  maxUncommittedRows: 500_000,
  o3MaxLagMicros: 600_000_000,
}

export interface NewColumn {
  readonly name: string
  readonly type: DataType
}

export class WriterCatalog {
  readonly byId = new Map<number, WriterTable>()
  private readonly byName = new Map<string, WriterTable>()
  private readonly resources: TableMemory
  /** The first unused table id. */
  nextTableId: number
  private created: WriterTable[] = []
  /** Schemas before the current request. */
  private readonly before = new Map<WriterTable, TableSchema>()
  private newColumns = 0
  /** Tables that the request drops, whose names are free again. */
  private leaving: readonly WriterTable[] = []
  private isRenamed = false

  readonly indexes: DictionaryIndexes
  readonly droppedNames = new DroppedNames()

  constructor(resources: TableMemory, nextTableId: number) {
    this.indexes = resources.indexes
    this.resources = resources
    this.nextTableId = nextTableId
  }

  find(name: string): WriterTable | undefined {
    return this.byName.get(name) ?? this.byName.get(name.toLowerCase())
  }

  /** Adds a table that is already stored. */
  add(schema: TableSchema): WriterTable {
    assert(!this.byId.has(schema.id), 'S3: table ids are used once')
    const table = new WriterTable(this.resources, schema)
    this.byId.set(schema.id, table)
    this.byName.set(schema.name.toLowerCase(), table)
    this.nextTableId = Math.max(this.nextTableId, schema.id + 1)
    return table
  }

  /** Replaces the schema, and updates the name. */
  replaceSchema(table: WriterTable, schema: TableSchema): void {
    this.byName.delete(table.schema.name.toLowerCase())
    table.schema = schema
    table.shapeEpoch++
    this.byName.set(schema.name.toLowerCase(), table)
    table.addDictionaries()
  }

  remove(table: WriterTable): void {
    table.dropped = true
    table.shapeEpoch++
    this.byId.delete(table.id)
    this.droppedNames.note(table.id, table.schema.name)
    if (this.find(table.schema.name) === table) this.byName.delete(table.schema.name.toLowerCase())
  }

  /** Rebuilds the names after a replay, in which tables have had names that now belong to others. */
  rebuildNames(): void {
    this.byName.clear()
    for (const table of this.byId.values()) this.byName.set(table.schema.name.toLowerCase(), table)
  }

  /** Throws SqlError if it was dropped. */
  required(tableId: number): WriterTable {
    const table = this.byId.get(tableId)
    if (table === undefined) throw this.droppedNames.error(tableId)
    return table
  }

  /** Creates a table for a request, with its designated timestamp after the given columns. Throws RowError. */
  createProvisional(
    name: string,
    columns: readonly NewColumn[],
    defaults: NewTableDefaults,
    nowMicros: number,
    timestampType: DataType,
  ): WriterTable {
    if (this.created.length >= newTablesPerRequestMax) {
      throw new RowError(`too many new tables in one request [limit=${newTablesPerRequestMax}]`, 0)
    }
    checkColumnCount(name, columns.length + 1)
    this.countNewColumns(columns.length)
    const all = [...columns, { name: defaults.timestampName, type: timestampType }]
    const table = this.add({
      id: this.nextTableId,
      name,
      version: 1,
      columns: all.map((column, id) => ({ id, ...column, dropped: false })),
      timestampId: all.length - 1,
      partitionBy: defaults.partitionBy,
      bypassWal: false,
      dedupKeys: [],
      ttl: null,
      maxUncommittedRows: defaults.maxUncommittedRows,
      o3MaxLagMicros: defaults.o3MaxLagMicros,
      createdMicros: nowMicros,
    })
    this.created.push(table)
    return table
  }

  /** Adds columns to an existing table for a request. Throws RowError. */
  addProvisional(table: WriterTable, columns: readonly NewColumn[]): void {
    const { schema } = table
    checkColumnCount(schema.name, schema.columns.length + columns.length)
    this.countNewColumns(columns.length)
    if (!this.created.includes(table) && !this.before.has(table)) {
      this.before.set(table, schema)
      table.committed = schema
    }
    const added: ColumnSchema[] = columns.map(({ name, type }, index) => ({
      id: schema.columns.length + index,
      name,
      type,
      dropped: false,
    }))
    table.schema = { ...schema, version: schema.version + 1, columns: [...schema.columns, ...added] }
    table.addDictionaries()
  }

  // For transactions with schema changes: several names may change at once, so conflicts are checked after the last
  // change.

  /** Reserves ids for tables that a transaction creates. */
  takeIds(count: number): number {
    const first = this.nextTableId
    this.nextTableId += count
    return first
  }

  /** Marks tables that the request drops when it commits. */
  leave(tables: readonly WriterTable[]): void {
    this.leaving = tables
    this.isRenamed = true
  }

  /** Adds a table that a transaction creates. Throws ResourceError. */
  addDrafted(schema: TableSchema): void {
    assert(!this.byId.has(schema.id), 'S3: table ids are used once')
    const table = new WriterTable(this.resources, schema)
    this.byId.set(schema.id, table)
    this.nextTableId = Math.max(this.nextTableId, schema.id + 1)
    this.created.push(table)
  }

  /** Replaces the schema of a table for a transaction. Throws ResourceError. */
  replaceDrafted(table: WriterTable, schema: TableSchema): void {
    this.before.set(table, table.schema)
    table.committed = table.schema
    table.schema = schema
    table.shapeEpoch++
    table.addDictionaries()
  }

  /** Rebuilds the names; returns one that two tables have, if any. */
  renamed(): string | undefined {
    this.byName.clear()
    for (const table of this.byId.values()) {
      if (this.leaving.includes(table)) continue
      const name = table.schema.name.toLowerCase()
      if (this.byName.has(name)) return table.schema.name
      this.byName.set(name, table)
    }
    return undefined
  }

  /** Tables that the current request has created or changed. */
  changed(): WriterTable[] {
    return [...this.created, ...this.before.keys()]
  }

  /** Makes the request's additions permanent. */
  keep(): void {
    for (const table of this.before.keys()) table.committed = undefined
    this.created = []
    this.before.clear()
    this.newColumns = 0
    this.leaving = []
    this.isRenamed = false
  }

  /** Undoes the request's additions. */
  undo(): void {
    for (const table of this.created) {
      this.remove(table)
      table.freeAll()
    }
    for (const [table, schema] of this.before) {
      table.schema = schema
      table.shapeEpoch++
      for (const { memtable } of table.memtables) memtable.forgetColumns(schema.columns.length)
      table.removeUnknownDictionaries()
    }
    const { isRenamed } = this
    this.keep()
    if (isRenamed) this.rebuildNames()
  }

  private countNewColumns(count: number): void {
    this.newColumns += count
    if (this.newColumns <= newColumnsPerRequestMax) return
    throw new RowError(`too many new columns in one request [limit=${newColumnsPerRequestMax}]`, 0)
  }
}

function checkColumnCount(table: string, columns: number): void {
  if (columns > tableColumnsMax) throw new RowError(`too many columns [table=${table}, limit=${tableColumnsMax}]`, 0)
}
