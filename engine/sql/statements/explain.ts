// Plans EXPLAIN. The explained statement is planned without side effects; only EXPLAIN ANALYZE, which accepts only
// queries, executes it. For a query, the text is produced when the EXPLAIN runs (session/explain.ts), because it
// includes current statistics of tables and, with ANALYZE, of operators.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { plainRelation } from '../bind/query.js'
import { tableOf } from '../bind/show.js'
import { withFiles } from '../plan/foreign-files.js'
import type { Query } from '../plan/plan.js'
import { type BindContext, describing, isDescribed, trialOf } from '../scope/bind-context.js'
import type { Explained, PlannedStatement } from './planned.js'
import { planRelation } from './query-statement.js'
import { planConflicts } from './upsert.js'

export const explainColumns = [{ name: 'QUERY PLAN', type: dataType('STRING') }]

const formats: ReadonlySet<string> = new Set(['text', 'json'])

export function planExplain(
  { statement, analyze, format, position }: ast.Explain,
  context: BindContext,
  plan: (statement: ast.Statement, context: BindContext) => PlannedStatement,
): PlannedStatement {
  if (format !== null && !formats.has(format))
    throw new SqlError(`unknown format of EXPLAIN [format=${format}]`, position)
  const { lines, query } = partsOf(statement, analyze ? context : describing(context), plan)
  if (analyze && (query === null || lines.length > 0))
    throw new SqlError('EXPLAIN ANALYZE supports only queries', statement.position)
  const tableNames = context.tables.map(({ schema }) => schema.name)
  // Other plans of described statements are not carried out, and need no files.
  const ready = query === null || isDescribed(context) ? query : withFiles(query)
  const explained: Explained = { query: ready, tableNames, analyze, asJson: format === 'json', heading: lines }
  context.cacheable = false
  return planRelation(plainRelation({ kind: 'values', columns: explainColumns, rows: [] }), context, explained)
}

/** The EXPLAIN statement for a statement whose plan is requested by other means than the keyword. */
export function explanationOf(statement: ast.Statement): ast.Statement {
  const { position } = statement
  switch (statement.kind) {
    case 'query':
    case 'insert':
    case 'merge':
    case 'update':
    case 'delete':
    case 'create table':
      return { kind: 'explain', position, analyze: false, format: null, statement }
    case 'explain':
      return statement
    default:
      throw new SqlError('only queries, INSERT, MERGE, UPDATE, DELETE and CREATE TABLE have a plan', position)
  }
}

function partsOf(
  statement: ast.Explain['statement'],
  context: BindContext,
  plan: (statement: ast.Statement, context: BindContext) => PlannedStatement,
): { readonly lines: readonly string[]; readonly query: Query | null } {
  if (statement.kind === 'update' || statement.kind === 'delete') {
    const { schema } = tableOf(statement.table, context)
    // The result does not depend on the tables of this plan.
    plan(statement, trialOf(context))
    return { lines: [`${statement.kind === 'update' ? 'Update' : 'Delete'} table: ${schema.name}`], query: null }
  }
  const whole = plan(statement, context)
  const inserts = whole.kind === 'insertReturning' ? whole.insert : whole
  const planned = inserts.kind === 'insertNew' ? inserts.insert : inserts
  switch (planned.kind) {
    case 'query':
      return { lines: [], query: planned.acts?.query ?? planned.query }
    case 'insertSelect':
      return { lines: ['Insert into table'], query: planned.query }
    case 'createTableAs':
      return { lines: [`Create table: ${planned.change.schema.name}`], query: planned.query }
    case 'upsert':
      return upsertParts(statement, planned, context)
    case 'insert':
      return { lines: [`Insert into table rows: ${planned.rows.rows}`], query: null }
    default:
      return {
        lines: [statement.kind === 'create table' ? `Create table: ${statement.table.name}` : statement.kind],
        query: null,
      }
  }
}

/** The heading, and the query that joins the rows of the statement with those of the table. */
function upsertParts(
  statement: ast.Explain['statement'],
  { source }: Extract<PlannedStatement, { kind: 'upsert' }>,
  context: BindContext,
): ReturnType<typeof partsOf> {
  if (source.kind === 'query') {
    const table = statement.kind === 'merge' ? tableOf(statement.table, context).schema.name : ''
    return { lines: [`Merge into table: ${table}`], query: source.found.query }
  }
  const { keys, insert } = source
  const version = tableOf(source.statement.table, context)
  const { name, columns } = version.schema
  const shown = keys.map((key) => `(${key.map((id) => columns[id]?.name).join(', ')})`).join(', ')
  const updates = (source.statement.conflict?.assignments ?? null) !== null
  const lines = [`Insert into table: ${name} on conflict: ${shown} do ${updates ? 'update' : 'nothing'}`]
  if (!updates) return { lines, query: insert.kind === 'insertSelect' ? insert.query : null }
  // The plan does not depend on the rows, which are gathered first.
  return { lines, query: planConflicts(source.statement, keys[0] ?? [], version, [], context).query }
}
