// The writer's tables by name and id, and what the request under way has added to them. Additions are provisional until
// the request commits: undo() takes them back, so that a refused request leaves nothing.

import { assert } from '../../base/assert.js'
import { RowError } from '../../base/errors.js'
import { newColumnsPerRequestMax, newTablesPerRequestMax, tableColumnsMax } from '../../base/limits.js'
import type { DataType } from '../../types/column-types.js'
import type { DictionaryIndexes } from '../memtable/dictionary-indexes.js'
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
  /** The first table id that was never used. */
  nextTableId: number
  private created: WriterTable[] = []
  /** Schemas before the request. */
  private readonly before = new Map<WriterTable, TableSchema>()
  private newColumns = 0
  /** Tables that the request drops: their names are free. */
  private leaving: readonly WriterTable[] = []
  private isRenamed = false

  readonly indexes: DictionaryIndexes

  constructor(resources: TableMemory, nextTableId: number) {
    this.indexes = resources.indexes
    this.resources = resources
    this.nextTableId = nextTableId
  }

  find(name: string): WriterTable | undefined {
    return this.byName.get(name) ?? this.byName.get(name.toLowerCase())
  }

  /** Enters a table that exists already. */
  add(schema: TableSchema): WriterTable {
    assert(!this.byId.has(schema.id), 'S3: table ids are used once')
    const table = new WriterTable(this.resources, schema)
    this.byId.set(schema.id, table)
    this.byName.set(schema.name.toLowerCase(), table)
    this.nextTableId = Math.max(this.nextTableId, schema.id + 1)
    return table
  }

  /** Replaces the schema; the name may change with it. */
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
    if (this.find(table.schema.name) === table) this.byName.delete(table.schema.name.toLowerCase())
  }

  /** After a replay, which meets tables under names that others have now. */
  rebuildNames(): void {
    this.byName.clear()
    for (const table of this.byId.values()) this.byName.set(table.schema.name.toLowerCase(), table)
  }

  /** A table of a request, with its designated timestamp behind the given columns. Throws RowError. */
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

  /** Columns of a request for an existing table. Throws RowError. */
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

  // TRANSACTIONS OF SCHEMAS: any names may change at once, so that they are looked through behind the last change.

  /** Ids of tables that a transaction makes. */
  takeIds(count: number): number {
    const first = this.nextTableId
    this.nextTableId += count
    return first
  }

  /** The request drops these when it commits. */
  leave(tables: readonly WriterTable[]): void {
    this.leaving = tables
    this.isRenamed = true
  }

  /** Throws ResourceError. */
  addDrafted(schema: TableSchema): void {
    assert(!this.byId.has(schema.id), 'S3: table ids are used once')
    const table = new WriterTable(this.resources, schema)
    this.byId.set(schema.id, table)
    this.nextTableId = Math.max(this.nextTableId, schema.id + 1)
    this.created.push(table)
  }

  /** Throws ResourceError. */
  replaceDrafted(table: WriterTable, schema: TableSchema): void {
    this.before.set(table, table.schema)
    table.committed = table.schema
    table.schema = schema
    table.shapeEpoch++
    table.addDictionaries()
  }

  /** Enters the names of now; answers one that two tables have. */
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

  /** Tables that the request has created or changed so far. */
  changed(): WriterTable[] {
    return [...this.created, ...this.before.keys()]
  }

  /** The request's additions are committed. */
  keep(): void {
    for (const table of this.before.keys()) table.committed = undefined
    this.created = []
    this.before.clear()
    this.newColumns = 0
    this.leaving = []
    this.isRenamed = false
  }

  /** Takes the request's additions back. */
  undo(): void {
    for (const table of this.created) {
      this.remove(table)
      table.freeAll()
    }
    for (const [table, schema] of this.before) {
      table.schema = schema
      table.shapeEpoch++
      for (const { memtable } of table.generations) memtable.forgetColumns(schema.columns.length)
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
