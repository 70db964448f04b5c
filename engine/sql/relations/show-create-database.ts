// Rows of SHOW CREATE DATABASE: the statements that create the tables and views of the requested kinds, ordered so that
// they can be executed one after the other. A view follows the tables and views that it reads; otherwise the order is
// by name. Tables that the server makes for itself are left out.

import type { TableSchema } from '../../storage/schema/schema.js'
import type { DatabaseObject } from '../ast/ast.js'
import { parseStatement } from '../parse/parse.js'
import type { BindContext } from '../scope/bind-context.js'
import type { SystemRelation } from './relation-columns.js'
import { columnList } from './relation-columns.js'
import { createLiveText, createMaterializedText, createTableText, createViewText } from './show-create.js'

interface Entry {
  readonly kind: DatabaseObject
  readonly name: string
  readonly text: string
  /** Lower-case names of what its query reads. */
  readonly reads: ReadonlySet<string>
}

export function databaseRelation(wanted: ReadonlySet<DatabaseObject>, { catalog }: BindContext): SystemRelation {
  // The server makes its own tables (telemetry) by itself.
  const made = catalog.tables().filter(({ schema }) => catalog.droppable?.(schema.name) ?? true)
  const tables = made.map(({ schema }): Entry => {
    const { name, materialized } = schema
    return materialized === undefined
      ? { kind: 'tables', name, text: createTableText(schema), reads: new Set() }
      : { ...viewKind(schema), name, reads: sourcesOf(materialized.sql) }
  })
  const views = catalog
    .views()
    .map((view): Entry => ({ kind: 'views', name: view.name, text: createViewText(view), reads: sourcesOf(view.sql) }))
  const shown = inOrder([...tables, ...views]).filter(({ kind }) => wanted.has(kind))
  return { columns: columnList('ddl VARCHAR'), rows: () => shown.map(({ text }) => [text]) }
}

function viewKind(schema: TableSchema): Pick<Entry, 'kind' | 'text'> {
  return schema.materialized?.live === undefined
    ? { kind: 'materialized_views', text: createMaterializedText(schema) }
    : { kind: 'live_views', text: createLiveText(schema) }
}

function inOrder(entries: readonly Entry[]): Entry[] {
  const waiting = [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))
  const missing = new Set(waiting.map(({ name }) => name.toLowerCase()))
  const ordered: Entry[] = []
  while (waiting.length > 0) {
    const ready = waiting.findIndex(({ reads }) => [...reads].every((name) => !missing.has(name)))
    // A view whose name is one of its WITH names looks as if it read itself.
    const [next] = waiting.splice(Math.max(ready, 0), 1)
    if (next === undefined) break
    missing.delete(next.name.toLowerCase())
    ordered.push(next)
  }
  return ordered
}

/** The names after FROM and JOIN. A query that no longer parses reads nothing. */
function sourcesOf(sql: string): ReadonlySet<string> {
  const names = new Set<string>()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    if ('kind' in node && node.kind === 'table' && 'table' in node) names.add(nameOf(node.table))
    for (const value of Object.values(node)) visit(value)
  }
  try {
    visit(parseStatement(sql))
  } catch {
    return new Set()
  }
  return names
}

function nameOf(table: unknown): string {
  const isNamed = typeof table === 'object' && table !== null && 'name' in table
  return isNamed && typeof table.name === 'string' ? table.name.toLowerCase() : ''
}
