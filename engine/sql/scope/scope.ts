// Name resolution: the columns that a FROM clause brings into scope, and the look-up of a written column name among
// them.

import { SqlError } from '../../base/errors.js'
import type { LeftOutColumn } from '../../parquet/foreign-file.js'
import type { DataType } from '../../types/column-types.js'
import type { ColumnName } from '../ast/ast.js'
import type { Plan } from '../plan/plan.js'

export interface ScopeColumn {
  /** Alias or name of the source; null for a sub-query without alias. */
  readonly source: string | null
  readonly name: string
  readonly type: DataType
  /** Index in the plan's output. */
  readonly index: number
  /** Found by its name only; `*` does not include it. */
  readonly hidden?: true
  /** Found only with its source's name: the bare name means the other side's column of USING. */
  readonly merged?: true
  /** Column of an outer query, seen from a sub-query: a bare name means it only if the sub-query has no such column. */
  readonly outer?: true
  /** Part of the primary key that CREATE TABLE declared. */
  readonly primary?: true
  /** Result of a function in FROM. */
  readonly fromFunction?: true
  /** Catalog column that holds names of tables or columns (catalog-names.ts). */
  readonly ofNames?: true
  /** Columns of the source that cannot be read, by lower-case name, and why. */
  readonly leftOut?: ReadonlyMap<string, string>
}

/** A plan, and the names of its output columns. */
export interface Relation {
  readonly plan: Plan
  readonly columns: readonly ScopeColumn[]
  /** Output column that is the designated timestamp; -1 without one. */
  readonly timestampIndex: number
  /** How the rows are ordered by that timestamp. */
  readonly order: 'ascending' | 'descending' | 'none'
  /** The rows of a stored table, or some of them, rather than the result of a query. */
  readonly ofTable?: true
}

export type Scope = readonly ScopeColumn[]

/** Columns by lower-case name, in the order of the scope. Makes look-ups in a wide source fast. */
interface ScopeNames {
  readonly byName: ReadonlyMap<string, readonly ScopeColumn[]>
  readonly bySource: ReadonlyMap<string, readonly ScopeColumn[]>
}

/** Narrower scopes are searched linearly, which is cheaper than building maps. */
const wideColumns = 64

/** Maps of the wide scopes that one statement has used. Safe to keep, because scopes are immutable. */
export type WideScopes = Map<Scope, ScopeNames>

const nothing: readonly ScopeColumn[] = []

/** Database, schema, table and column. */
const namePartsMax = 4

/**
 * The column that the name refers to; undefined if there is none. Throws for ambiguous names and unknown qualifiers.
 */
export function findInScope(
  scope: Scope,
  { path, position }: ColumnName,
  { wideScopes }: { readonly wideScopes: WideScopes },
): ScopeColumn | undefined {
  const name = path[path.length - 1] ?? ''
  if (path.length === 1) {
    const all = namedIn(scope, name, wideScopes).filter((column) => column.merged !== true)
    const own = all.filter((column) => column.outer !== true)
    const named = own.length > 0 ? own : all
    return named.length > 0 ? unique(named, name, position) : onlyColumnOf(scope, name, wideScopes)
  }
  if (path.length > namePartsMax) throw new SqlError('Invalid table name or alias', position)
  const source = path[path.length - 2] ?? ''
  const ofSource = ofSourceIn(scope, source, wideScopes)
  if (ofSource.length === 0) throw new SqlError('Invalid table name or alias', position)
  const found = unique(
    namedIn(scope, name, wideScopes).filter((column) => column.source !== null && same(column.source, source)),
    name,
    position,
  )
  return found ?? (same(name, source) ? onlyColumnOf(scope, source, wideScopes) : undefined)
}

/** In `from generate_series(1, 9) as i`, the alias also names the function's only column. */
function onlyColumnOf(scope: Scope, source: string, wideScopes: WideScopes): ScopeColumn | undefined {
  const columns = ofSourceIn(scope, source, wideScopes)
  return columns.length === 1 && columns[0]?.fromFunction === true ? columns[0] : undefined
}

function namedIn(scope: Scope, name: string, wideScopes: WideScopes): readonly ScopeColumn[] {
  if (scope.length < wideColumns) return scope.filter((column) => same(column.name, name))
  return namesOf(scope, wideScopes).byName.get(name.toLowerCase()) ?? nothing
}

function ofSourceIn(scope: Scope, source: string, wideScopes: WideScopes): readonly ScopeColumn[] {
  if (scope.length < wideColumns) return scope.filter((column) => column.source !== null && same(column.source, source))
  return namesOf(scope, wideScopes).bySource.get(source.toLowerCase()) ?? nothing
}

function namesOf(scope: Scope, wideScopes: WideScopes): ScopeNames {
  const known = wideScopes.get(scope)
  if (known !== undefined) return known
  const byName = new Map<string, ScopeColumn[]>()
  const bySource = new Map<string, ScopeColumn[]>()
  for (const column of scope) {
    addNamed(byName, column.name, column)
    if (column.source !== null) addNamed(bySource, column.source, column)
  }
  const names = { byName, bySource }
  wideScopes.set(scope, names)
  return names
}

function addNamed(columns: Map<string, ScopeColumn[]>, name: string, column: ScopeColumn): void {
  const key = name.toLowerCase()
  const known = columns.get(key)
  if (known === undefined) columns.set(key, [column])
  else known.push(column)
}

function same(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase()
}

function unique(found: readonly ScopeColumn[], name: string, position: number): ScopeColumn | undefined {
  if (found.length > 1) throw new SqlError(`Ambiguous column [name=${name}]`, position)
  return found[0]
}

/** The error says why a column cannot be read, or suggests one of the scope, of the same source if the name has one. */
export function columnMissing({ path, position }: ColumnName, scope: Scope): SqlError {
  const source = path[path.length - 2]
  const candidates = scope.filter((column) => {
    if (column.hidden === true) return false
    return source === undefined || (column.source !== null && same(column.source, source))
  })
  const name = path[path.length - 1] ?? ''
  for (const part of structsOf(name)) {
    const reason = candidates.find(({ leftOut }) => leftOut?.has(part.toLowerCase()))?.leftOut?.get(part.toLowerCase())
    if (reason !== undefined) return new SqlError(`the column cannot be read: ${reason} [column=${part}]`, position)
  }
  const names = candidates.map((column) => column.name)
  return SqlError.columnMissing(path.join('.'), position, names)
}

/** A name, and those of the structs that such a column may be in: `place_hall` of `place_hall_row`, and `place`. */
function structsOf(name: string): string[] {
  const ends = [...name.matchAll(/_/g)].map(({ index }) => index)
  return [name, ...ends.reverse().map((end) => name.slice(0, end))]
}

/** The columns of a plan under one source name. */
export function scopeOf(plan: Plan, source: string | null): ScopeColumn[] {
  return plan.columns.map(({ name, type }, index) => ({ source, name, type, index }))
}

/** The columns of a source that has others, too, which cannot be read. */
export function withLeftOut(columns: Scope, leftOut: readonly LeftOutColumn[]): readonly ScopeColumn[] {
  const reasons = new Map(leftOut.map(({ name, reason }) => [name.toLowerCase(), reason]))
  return columns.map((column) => ({ ...column, leftOut: reasons }))
}
