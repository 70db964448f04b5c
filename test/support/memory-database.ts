// A small database in memory for tests, without threads and files: real code parses, binds and plans statements; then
// the plan interpreter of the tests executes queries, over rows in JavaScript arrays. Names, types, errors and results
// are the real ones.

import { SqlError } from '../../engine/base/errors.js'
import type { VirtualRelation } from '../../engine/engine.js'
import type { Catalog, Parameter, PartitionStatistics, StoredView, TableStatistics } from '../../engine/sql/catalog.js'
import { type Dialect, nativeDialect } from '../../engine/sql/dialect.js'
import type { Row } from '../../engine/sql/functions/registry/evaluate.js'
import type { Query } from '../../engine/sql/plan/plan.js'
import { planStatement } from '../../engine/sql/statements/plan-statement.js'
import type { PlannedStatement } from '../../engine/sql/statements/planned.js'
import type { RewriteProgram, SchemaChange } from '../../engine/storage/jobs/messages.js'
import { rowNumberId } from '../../engine/storage/jobs/rewrite.js'
import {
  type ColumnSchema,
  finishedSchema,
  liveColumns,
  type TableSchema,
  type TableVersion,
} from '../../engine/storage/schema/schema.js'
import { changeSchema } from '../../engine/storage/schema/schema-change.js'
import type { DataType } from '../../engine/types/column-types.js'
import { displayText, nullOf } from '../../engine/types/convert.js'
import { formatByPattern } from '../../engine/types/timestamp-pattern.js'
import type { Value } from '../../engine/types/value.js'
import { type InterpreterOptions, interpretQuery, type TableRows } from './interpreter/plan.js'

export interface MemoryResult {
  readonly tag: string
  readonly columns: readonly { readonly name: string; readonly type: DataType }[]
  readonly timestampIndex: number
  readonly rows: readonly Row[]
}

interface MemoryTable {
  schema: TableSchema
  /** Values by column id. */
  rows: Map<number, Value>[]
  detached: Map<number, Value>[]
  txn: number
}

export class MemoryDatabase {
  readonly #tables = new Map<number, MemoryTable>()
  readonly #relations = new Map<string, VirtualRelation>()
  #nextId = 1
  nowMicros = 1_767_225_600_000_000
  /** Of the session whose statements run. */
  dialect: Dialect = nativeDialect
  readonly settings = new Map<string, string>()

  relation(relation: VirtualRelation): void {
    this.#relations.set(relation.name.toLowerCase(), relation)
  }

  run(sql: string, parameters: readonly Parameter[] = []): MemoryResult {
    const planned = this.plan(sql, parameters)
    return this.#execute(planned)
  }

  plan(sql: string, parameters: readonly Parameter[] = []): PlannedStatement {
    const { nowMicros, dialect, settings } = this
    return planStatement(sql, { catalog: this.catalog(), parameters, nowMicros, user: 'admin', dialect, settings })
  }

  catalog(): Catalog {
    const find = (name: string): MemoryTable | undefined =>
      [...this.#tables.values()].find(({ schema }) => schema.name.toLowerCase() === name.toLowerCase())
    const version = ({ schema }: MemoryTable): TableVersion => ({
      version: schema.version,
      schema,
      parts: [],
      memtables: [],
      dictionaries: [],
    })
    return {
      table: (name) => {
        const table = find(name)
        return table === undefined || table.schema.view !== undefined ? undefined : version(table)
      },
      tables: () => [...this.#tables.values()].filter(({ schema }) => schema.view === undefined).map(version),
      statistics: (tableId) => statisticsOf(this.#table(tableId)),
      relation: (name) => this.#relations.get(name.toLowerCase()),
      view: (name) => storedView(find(name)),
      views: () => [...this.#tables.values()].flatMap((table) => storedView(table) ?? []),
      activity: () => [],
      parameters: () => [],
      users: () => [],
    }
  }

  /** What the interpreter needs to run a query of this database. */
  interpreterOptions(query: Query): InterpreterOptions {
    const nowMicros = BigInt(this.nowMicros)
    const tables = query.tables.map((id) => tableRows(this.#table(id)))
    return { tables, context: { nowMicros, clockMicros: () => nowMicros } }
  }

  #table(id: number): MemoryTable {
    const table = this.#tables.get(id)
    if (table === undefined) throw new SqlError('table does not exist', 0)
    return table
  }

  #execute(planned: PlannedStatement): MemoryResult {
    const done = (tag: string): MemoryResult => ({ tag, columns: [], timestampIndex: -1, rows: [] })
    switch (planned.kind) {
      case 'query':
        return {
          tag: 'SELECT',
          columns: planned.columns,
          timestampIndex: planned.query.timestampIndex,
          rows: this.#rows(planned.query),
        }
      case 'change':
        for (const change of planned.changes) this.#change(change)
        return done(planned.tag)
      case 'insert': {
        const table = this.#table(planned.rows.tableId)
        for (let row = 0; row < planned.rows.rows; row++) {
          table.rows.push(new Map(planned.rows.columns.map(({ columnId, values }) => [columnId, values[row] ?? null])))
        }
        table.txn++
        return done(planned.tag)
      }
      case 'insertSelect':
        this.#append(this.#table(planned.tableId), planned.columns, this.#rows(planned.query))
        return done(planned.tag)
      case 'createTableAs': {
        const rows = this.#rows(planned.query)
        this.#append(this.#table(this.#change(planned.change)), planned.columns, rows)
        return done(planned.tag)
      }
      case 'rewrite':
        this.#rewrite(this.#table(planned.tableId), planned.program)
        return done(planned.tag)
      case 'backup':
        throw new SqlError('there is no place for backups', 0)
      default:
        return done(planned.kind === 'none' ? planned.tag : planned.kind)
    }
  }

  #append(table: MemoryTable, columns: readonly { readonly columnId: number }[], rows: readonly Row[]): void {
    for (const row of rows)
      table.rows.push(new Map(columns.map(({ columnId }, index) => [columnId, row[index] ?? null])))
    table.txn++
  }

  /** The program over all rows at once; rows have their numbers as a column more. */
  #changes(table: MemoryTable, { query }: Pick<RewriteProgram, 'query'>): Row[] {
    const { columnIds, timestampId, rows } = tableRows(table)
    const numbered = rows.map((row, index): Row => [BigInt(index), ...row])
    const others = query.tables.slice(1).map((id) => tableRows(this.#table(id)))
    return interpretQuery(query, {
      ...this.interpreterOptions({ ...query, tables: [] }),
      tables: [{ columnIds: [rowNumberId, ...columnIds], timestampId, rows: numbered }, ...others],
    })
  }

  #rewrite(table: MemoryTable, program: Pick<RewriteProgram, 'action' | 'query' | 'assigned'>): void {
    const changed = new Map(this.#changes(table, program).map(([row, ...values]) => [Number(row), values] as const))
    if (program.action === 'delete') table.rows = table.rows.filter((_, row) => !changed.has(row))
    for (const [row, values] of program.action === 'update' ? changed : []) {
      program.assigned.forEach((id, index) => {
        table.rows[row]?.set(id, values[index] ?? null)
      })
    }
    table.txn++
  }

  #changeTypes(table: MemoryTable, { types, changes, program }: Extract<SchemaChange, { kind: 'changeTypes' }>): void {
    this.#rewrite(table, { ...program, assigned: types.map(({ columnId }) => columnId) })
    const columns = table.schema.columns.map((column) => {
      const type = types.find(({ columnId }) => columnId === column.id)?.type
      return type === undefined ? column : { ...column, type }
    })
    const schema = { ...table.schema, version: table.schema.version + 1, columns }
    table.schema = changes.reduce(changedSchema, schema)
  }

  #rows(query: Query): Row[] {
    return interpretQuery(query, this.interpreterOptions(query))
  }

  /** Id of the table. */
  #change(change: SchemaChange): number {
    if (change.kind === 'createTable') {
      const id = this.#nextId++
      this.#tables.set(id, { schema: { ...change.schema, id, version: 1 }, rows: [], detached: [], txn: 0 })
      return id
    }
    const table = this.#table(change.tableId)
    if (change.kind === 'dropTable') this.#tables.delete(change.tableId)
    else if (change.kind === 'finishTable') table.schema = finishedSchema(table.schema)
    else if (change.kind === 'truncateTable') table.rows = []
    else if (change.kind === 'partitions') changePartitions(table, change)
    else if (change.kind === 'changeTypes') this.#changeTypes(table, change)
    else table.schema = changedSchema(table.schema, change)
    return change.tableId
  }
}

function storedView(table: MemoryTable | undefined): StoredView | undefined {
  const { id = 0, name = '', view, createdMicros = 0 } = table?.schema ?? {}
  return view === undefined ? undefined : { id, name, sql: view, createdMicros }
}

type Altering = Exclude<
  SchemaChange,
  { kind: 'createTable' | 'dropTable' | 'finishTable' | 'truncateTable' | 'partitions' | 'changeTypes' }
>

function changedSchema(schema: TableSchema, change: Altering): TableSchema {
  const version = schema.version + 1
  const mapped = (map: (column: ColumnSchema) => ColumnSchema): TableSchema => ({
    ...schema,
    version,
    columns: schema.columns.map(map),
  })
  switch (change.kind) {
    case 'renameTable':
      return { ...schema, version, name: change.name }
    case 'addColumn':
      return {
        ...schema,
        version,
        columns: [...schema.columns, { id: schema.columns.length, dropped: false, ...change.column }],
      }
    case 'dropColumn':
      return mapped((column) => (column.id === change.columnId ? { ...column, dropped: true } : column))
    case 'renameColumn':
      return mapped((column) => (column.id === change.columnId ? { ...column, name: change.name } : column))
    case 'alterColumn': {
      const { symbol, indexed } = change
      return mapped(({ indexed: before, ...column }) => {
        if (column.id !== change.columnId) return before === undefined ? column : { ...column, indexed: before }
        const retained = indexed === undefined ? before : indexed
        const index = retained === undefined || retained === null ? {} : { indexed: retained }
        return { ...column, ...(symbol === undefined ? {} : { symbol }), ...index }
      })
    }
    case 'alterTable':
      return { ...schema, version, ...change.changes }
    case 'addKey':
    case 'renameKey':
    case 'dropKey':
      return changeSchema(schema, change)
    case 'changeColumns':
      return change.changes.reduce(changedSchema, schema)
  }
}

/** Detached rows lie aside until they are attached again. */
function changePartitions(
  table: MemoryTable,
  { operation, partitions }: Extract<SchemaChange, { kind: 'partitions' }>,
): void {
  const isNamed = (row: ReadonlyMap<number, Value>): boolean => partitions.includes(partitionOf(table.schema, row))
  if (operation === 'attach') {
    table.rows.push(...table.detached.filter(isNamed))
    table.detached = table.detached.filter((row) => !isNamed(row))
    return
  }
  if (operation === 'detach') table.detached.push(...table.rows.filter(isNamed))
  table.rows = table.rows.filter((row) => !isNamed(row))
}

function tableRows({ schema, rows }: MemoryTable): TableRows {
  const live = liveColumns(schema)
  return {
    columnIds: live.map(({ id }) => id),
    timestampId: schema.timestampId,
    rows: rows.map((row) => live.map(({ id, type }) => row.get(id) ?? nullOf(type))),
  }
}

const patterns: Record<string, string> = {
  HOUR: "yyyy-MM-dd'T'HH",
  DAY: 'yyyy-MM-dd',
  WEEK: "YYYY-'W'ww",
  MONTH: 'yyyy-MM',
  YEAR: 'yyyy',
}

function partitionOf(schema: TableSchema, row: ReadonlyMap<number, Value>): string {
  const pattern = patterns[schema.partitionBy]
  const ts = row.get(schema.timestampId)
  return pattern === undefined || typeof ts !== 'bigint' ? 'default' : formatByPattern(ts, 'TIMESTAMP', pattern)
}

function statisticsOf({ schema, rows, txn }: MemoryTable): TableStatistics {
  const partitions = new Map<string, PartitionStatistics>()
  const least = (a: bigint | null, b: bigint | null): bigint | null => (a === null ? b : b === null || a < b ? a : b)
  const most = (a: bigint | null, b: bigint | null): bigint | null => (a === null ? b : b === null || a > b ? a : b)
  for (const row of rows) {
    const name = partitionOf(schema, row)
    const value = row.get(schema.timestampId)
    const ts = typeof value === 'bigint' ? value : null
    const known = partitions.get(name) ?? { name, rows: 0, bytes: 0, minTs: null, maxTs: null }
    partitions.set(name, {
      ...known,
      rows: known.rows + 1,
      minTs: least(known.minTs, ts),
      maxTs: most(known.maxTs, ts),
    })
  }
  const all = [...partitions.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  return {
    rows: rows.length,
    minTs: all.map(({ minTs }) => minTs).reduce(least, null),
    maxTs: all.map(({ maxTs }) => maxTs).reduce(most, null),
    lastWriteMicros: null,
    visibleTxn: txn,
    schemaChanges: [],
    rewrites: 0,
    repeats: 0,
    storageWork: [],
    partitions: all,
    symbolCounts: new Map(
      schema.columns.filter(({ type }) => type.name === 'SYMBOL').map(({ id }) => [id, distinctStrings(rows, id)]),
    ),
    nullSymbols: new Set(
      schema.columns
        .filter(({ type, id }) => type.name === 'SYMBOL' && rows.some((row) => (row.get(id) ?? null) === null))
        .map(({ id }) => id),
    ),
    transactions: new Map(),
  }
}

function distinctStrings(rows: readonly ReadonlyMap<number, Value>[], id: number): number {
  return new Set(rows.map((row) => row.get(id)).filter((value) => typeof value === 'string')).size
}

/** A value as /exec writes it, parsed: text for text, numbers for numbers. */
export function jsonValue(value: Value, type: DataType): unknown {
  if (value === null) return type.name === 'LONG256' ? '' : null
  switch (type.name) {
    case 'BOOLEAN':
    case 'BYTE':
    case 'SHORT':
    case 'INT':
      return value
    case 'LONG':
      return value
    case 'FLOAT':
      return Number.isFinite(value) ? Number(displayText(value, type)) : null
    case 'DOUBLE':
      return Number.isFinite(value) ? value : null
    case 'BINARY':
      return null
    case 'ARRAY':
      return JSON.parse(displayText(value, type).replaceAll('NaN', 'null'))
    default:
      return displayText(value, type)
  }
}
