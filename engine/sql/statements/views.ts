// Plans CREATE and ALTER VIEW, and DROP of all kinds of views. The catalog stores the text of a view's query. It is
// bound again at each reference, so a view follows changes of its tables.

import { SqlError } from '../../base/errors.js'
import type { SchemaChange } from '../../storage/jobs/messages.js'
import type * as ast from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { kindOf, liveOf, materializedOf } from '../bind/show.js'
import { nativeDialect } from '../dialect.js'
import { parseStatement } from '../parse/parse.js'
import { viewSchema } from '../relations/view-table.js'
import { type BindContext, ofView } from '../scope/bind-context.js'
import { checkTableName } from './create-table.js'
import { kindsOf, viewsOver } from './materialized.js'
import { bindContext } from './new-context.js'
import type { PlannedStatement } from './planned.js'

export function planCreateView(statement: ast.CreateView, context: BindContext): PlannedStatement {
  const { view, orReplace, ifNotExists, query } = statement
  const { catalog } = context
  checkTableName(view.name, view.position)
  const kind = kindOf(view.name, context)
  if (kind !== undefined && kind !== 'view') {
    const found = kind === 'live view' ? kind : 'table or materialized view'
    throw new SqlError(`${found} with the requested name already exists`, view.position)
  }
  const known = catalog.view(view.name)
  if (known !== undefined && ifNotExists) return changed([], 'CREATE VIEW')
  if (known !== undefined && !orReplace) throw new SqlError('view already exists', view.position)
  const queryText = textOf(statement, bindQuery(query, ofView(context)).plan.columns.length)
  checkSelf(view.name, queryText, context)
  const drop: SchemaChange[] = known === undefined ? [] : [{ kind: 'dropTable', tableId: known.id }]
  return changed([...drop, creation(view.name, queryText, context)], 'CREATE VIEW')
}

/** The query with the column names of `create view v (a, b) as ..` around it. */
function textOf({ view, columns, queryText }: ast.CreateView, columnCount: number): string {
  const unnamed = columns[columnCount]
  if (unnamed !== undefined)
    throw new SqlError('CREATE VIEW specifies more column names than columns', unnamed.position)
  if (columns.length === 0) return queryText
  return `select * from (${queryText}) ${quoted(view.name)}(${columns.map(({ name }) => quoted(name)).join(', ')})`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

export function planAlterView({ view, query, queryText }: ast.AlterView, context: BindContext): PlannedStatement {
  const known = existing(view, context)
  bindQuery(query, ofView(context))
  checkSelf(view.name, queryText, context)
  const changes: SchemaChange[] = [{ kind: 'dropTable', tableId: known }, creation(view.name, queryText, context)]
  return changed(changes, 'ALTER VIEW')
}

export function planDropView(statement: ast.DropView, context: BindContext): PlannedStatement {
  const { view, materialized, live = false, ifExists, cascade } = statement
  const isMissing = kindOf(view.name, context) === undefined
  if (live) {
    const drops = ifExists && isMissing ? [] : [liveOf(view, context).schema.id]
    return changed(
      drops.map((tableId): SchemaChange => ({ kind: 'dropTable', tableId })),
      'DROP LIVE VIEW',
    )
  }
  if (materialized) {
    if (ifExists && isMissing) return changed([], 'DROP MATERIALIZED VIEW')
    return changed(materializedDrops(view, cascade, context), 'DROP MATERIALIZED VIEW')
  }
  if (ifExists && isMissing) return changed([], 'DROP VIEW')
  return changed([{ kind: 'dropTable', tableId: existing(view, context) }], 'DROP VIEW')
}

/** Views that read the view are dropped first. */
function materializedDrops(view: ast.TableName, cascade: boolean, context: BindContext): SchemaChange[] {
  const { id, name } = materializedOf(view, context).schema
  const dependents = viewsOver(id, context)
  const [first] = dependents
  if (first !== undefined && !cascade)
    throw new SqlError(
      `${kindsOf(dependents)} read the view, CASCADE drops them, too [view=${name}, dependent=${first.name}]`,
      view.position,
    )
  return [...dependents.map((dependent) => dependent.id), id].map((tableId) => ({ kind: 'dropTable', tableId }))
}

function changed(changes: readonly SchemaChange[], tag: string): PlannedStatement {
  return { kind: 'change', changes, tag }
}

function existing({ name, position }: ast.TableName, context: Pick<BindContext, 'catalog'>): number {
  const view = context.catalog.view(name)
  if (view !== undefined) return view.id
  const kind = kindOf(name, context)
  const found = kind === 'live view' ? kind : 'table or materialized view'
  if (kind !== undefined) throw new SqlError(`view name expected, got ${found} name`, position)
  throw new SqlError(`view does not exist [view=${name}]`, position)
}

/** Throws if the view would read itself, directly or through other views. */
function checkSelf(name: string, sql: string, { catalog, evaluation }: BindContext): void {
  const itself = { id: 0, name, sql, createdMicros: 0 }
  const known = catalog.view(name)
  if (known === undefined) return
  const changed = {
    ...catalog,
    table: (wanted: string) => catalog.table(wanted),
    view: (wanted: string) => (wanted.toLowerCase() === name.toLowerCase() ? itself : catalog.view(wanted)),
  }
  const { nowMicros, user } = evaluation
  const text = `select * from "${name.replaceAll('"', '""')}"`
  const session = { dialect: nativeDialect, nowMicros: Number(nowMicros), user, describes: true }
  bindText(text, bindContext({ sql: text, catalog: changed, parameters: [], ...session }))
}

function bindText(text: string, context: BindContext): void {
  const statement = parseStatement(text)
  if (statement.kind === 'query') bindQuery(statement, context)
}

function creation(name: string, sql: string, { evaluation }: BindContext): SchemaChange {
  return { kind: 'createTable', ifNotExists: false, schema: viewSchema(name, sql, Number(evaluation.nowMicros)) }
}
