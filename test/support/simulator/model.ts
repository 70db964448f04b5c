// The simulator's model: tables as arrays of rows in commit order, which define what a database must contain after each
// prefix of the requests. Models are immutable; every step creates a new one.
//
// The rows of a table are compared in the order that readers rely on: by designated timestamp, ties in commit order; or
// commit order without a timestamp. Every row has a unique number `n`, so that lost, duplicate and moved rows are
// detected.

import type { ColumnType } from '../../../engine/types/column-types.js'

export type Cell = number | string | boolean | null

interface ModelColumn {
  readonly name: string
  readonly type: ColumnType
  readonly dropped: boolean
}

interface ModelRow {
  readonly n: number
  /** Microseconds; 0 without a designated timestamp. */
  readonly ts: number
  /** By column index; missing ones are NULL. */
  readonly cells: readonly (Cell | undefined)[]
}

export interface ModelTable {
  /** As the engine has numbered it; -1 until it has been seen. */
  readonly id: number
  readonly name: string
  readonly columns: readonly ModelColumn[]
  /** Name of the designated timestamp. */
  readonly timestamp: string | undefined
  /** DEDUP UPSERT KEYS: the designated timestamp and column `s`. */
  readonly dedup: boolean
  /** In commit order. */
  readonly rows: readonly ModelRow[]
}

/** Tables by name. */
export type Model = ReadonlyMap<string, ModelTable>

export interface RowSpec {
  readonly table: string
  readonly n: number
  readonly ts: number
  readonly values: readonly { readonly name: string; readonly type: ColumnType; readonly value: Cell }[]
}

/** Schema changes as the model knows them; tables by the engine's number. */
export type ModelChange =
  | { readonly kind: 'create'; readonly table: ModelTable }
  | { readonly kind: 'drop'; readonly id: number }
  | { readonly kind: 'truncate'; readonly id: number }
  | { readonly kind: 'rename'; readonly id: number; readonly name: string }
  | { readonly kind: 'addColumn'; readonly id: number; readonly name: string; readonly type: ColumnType }
  | { readonly kind: 'dropColumn'; readonly id: number; readonly column: string }
  | { readonly kind: 'renameColumn'; readonly id: number; readonly column: string; readonly name: string }

/** One atomic change of the model. */
export type Step =
  | { readonly kind: 'rows'; readonly rows: readonly RowSpec[] }
  | { readonly kind: 'change'; readonly change: ModelChange }

export function applyStep(model: Model, step: Step): Model {
  return step.kind === 'rows' ? appendRows(model, step.rows) : (changed(model, step.change) ?? model)
}

/** The rows' tables and columns are made where they are missing, as line protocol does. */
function appendRows(model: Model, rows: readonly RowSpec[]): Model {
  const tables = new Map(model)
  const fresh = new Map<string, { columns: ModelColumn[]; rows: ModelRow[] }>()
  for (const row of rows) {
    const table = tables.get(row.table) ?? newTable(row)
    let own = fresh.get(row.table)
    if (own === undefined) {
      own = { columns: [...table.columns], rows: [...table.rows] }
      fresh.set(row.table, own)
      tables.set(row.table, { ...table, ...own })
    }
    appendRow(own, row, table)
  }
  return tables
}

function newTable({ table, values }: RowSpec): ModelTable {
  const columns = values.map(({ name, type }) => ({ name, type, dropped: false }))
  columns.push({ name: 'timestamp', type: 'TIMESTAMP', dropped: false })
  return { id: -1, name: table, columns, timestamp: 'timestamp', dedup: false, rows: [] }
}

function appendRow(own: { columns: ModelColumn[]; rows: ModelRow[] }, row: RowSpec, table: ModelTable): void {
  const cells: (Cell | undefined)[] = []
  for (const { name, type, value } of row.values) {
    let index = columnIndex(own.columns, name)
    if (index < 0) index = own.columns.push({ name, type, dropped: false }) - 1
    cells[index] = value
  }
  if (table.timestamp !== undefined) cells[columnIndex(own.columns, table.timestamp)] = row.ts
  const { n, ts } = row
  if (table.dedup) {
    const key = columnIndex(own.columns, 's')
    const old = own.rows.findIndex((other) => other.ts === ts && (other.cells[key] ?? null) === (cells[key] ?? null))
    if (old >= 0) own.rows.splice(old, 1)
  }
  own.rows.push({ n, ts: table.timestamp === undefined ? 0 : ts, cells })
}

function columnIndex(columns: readonly ModelColumn[], name: string): number {
  return columns.findIndex((column) => !column.dropped && column.name === name)
}

export function tableById(model: Model, id: number): ModelTable | undefined {
  for (const table of model.values()) if (table.id === id) return table
  return undefined
}

/** Undefined when the engine refuses the change. */
export function changed(model: Model, change: ModelChange): Model | undefined {
  if (change.kind === 'create') {
    return model.has(change.table.name) ? undefined : new Map(model).set(change.table.name, change.table)
  }
  const table = tableById(model, change.id)
  if (table === undefined) return undefined
  const tables = new Map(model)
  if (change.kind === 'drop') tables.delete(table.name)
  else if (change.kind === 'truncate') tables.set(table.name, { ...table, rows: [] })
  else if (change.kind === 'rename') {
    if (model.has(change.name) && change.name !== table.name) return undefined
    tables.delete(table.name)
    tables.set(change.name, { ...table, name: change.name })
  } else {
    const columns = changedColumns(table.columns, change)
    if (columns === undefined) return undefined
    tables.set(table.name, { ...table, columns })
  }
  return tables
}

function changedColumns(
  columns: readonly ModelColumn[],
  change: Extract<ModelChange, { kind: 'addColumn' | 'dropColumn' | 'renameColumn' }>,
): ModelColumn[] | undefined {
  if (change.kind === 'addColumn') {
    if (columnIndex(columns, change.name) >= 0) return undefined
    return [...columns, { name: change.name, type: change.type, dropped: false }]
  }
  const index = columnIndex(columns, change.column)
  if (index < 0) return undefined
  if (change.kind === 'dropColumn')
    return columns.map((column, at) => (at === index ? { ...column, dropped: true } : column))
  if (change.name !== change.column && columnIndex(columns, change.name) >= 0) return undefined
  return columns.map((column, at) => (at === index ? { ...column, name: change.name } : column))
}

/** A table as a reader has found it, rows in their order. */
export interface ObservedTable {
  readonly id: number
  readonly name: string
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
  readonly rowCount: number
  /** Parallel to `columns`: a value for each row. */
  readonly cells: readonly (readonly Cell[])[]
}

/** By name. */
export type Observed = ReadonlyMap<string, ObservedTable>

/** What differs; undefined when the observation is what the model says. */
export function difference(model: Model, observed: Observed): string | undefined {
  for (const name of model.keys()) if (!observed.has(name)) return `table ${name} is missing`
  for (const [name, table] of observed) {
    const expected = model.get(name)
    if (expected === undefined) return `table ${name} should not exist`
    if (expected.rows.length !== table.rowCount)
      return `table ${name} has ${table.rowCount} rows, not ${expected.rows.length}: ${numbersDiffer(expected, table)}`
  }
  for (const [name, table] of observed) {
    const found = tableDifference(model.get(name) as ModelTable, table)
    if (found !== undefined) return `table ${name}: ${found}`
  }
  return undefined
}

function tableDifference(expected: ModelTable, table: ObservedTable): string | undefined {
  const live = expected.columns.flatMap((column, index) => (column.dropped ? [] : [{ ...column, index }]))
  const wanted = live.map(({ name, type }) => `${name} ${type}`).join()
  const found = table.columns.map(({ name, type }) => `${name} ${type}`).join()
  if (wanted !== found) return `columns are ${found}, not ${wanted}`
  const rows = orderedRows(expected)
  for (const [at, { name, type, index }] of live.entries()) {
    const cells = table.cells[at] as readonly Cell[]
    const missing = type === 'BOOLEAN' ? false : null
    for (let row = 0; row < rows.length; row++) {
      const cell = (rows[row] as ModelRow).cells[index] ?? missing
      if (cell === cells[row]) continue
      return `row ${row} (n=${(rows[row] as ModelRow).n}) has ${name}=${String(cells[row])}, not ${String(cell)}; ${numbersDiffer(expected, table)}`
    }
  }
  return undefined
}

function orderedRows({ rows, timestamp }: ModelTable): readonly ModelRow[] {
  return timestamp === undefined ? rows : [...rows].sort((x, y) => x.ts - y.ts)
}

function numbersDiffer(expected: ModelTable, table: ObservedTable): string {
  const at = table.columns.findIndex(({ name }) => name === 'n')
  const present = (table.cells[at] ?? []) as readonly number[]
  const wanted = new Set(expected.rows.map(({ n }) => n))
  const missing = [...wanted].filter((n) => !present.includes(n))
  const surplus = present.filter((n, index) => !wanted.has(n) || present.indexOf(n) !== index)
  return `missing n=[${missing.slice(0, 20).join()}] surplus n=[${surplus.slice(0, 20).join()}]`
}
