// Plans statements with INSERT, UPDATE, DELETE or MERGE in WITH. All of them read the same snapshot, and the writer
// commits their changes as one transaction (session/changes-in-with.ts). A statement may read the rows that RETURNING
// of an earlier statement returns. So each statement is planned again when these rows are known. Here all statements
// are planned with empty tables in the place of these rows, which gives the description of the result, and reports
// errors before any statement has run.

import type { ResultColumn } from '../../api/statements.js'
import { SqlError } from '../../base/errors.js'
import type * as ast from '../ast/ast.js'
import { tableOf } from '../bind/show.js'
import type { PlanColumn } from '../plan/plan.js'
import { type BindContext, type ChangedRows, trialOf } from '../scope/bind-context.js'
import { declaredValues, replaceVariables } from '../scope/substitute.js'
import { planChangedRows } from './changed-rows.js'
import { conflictKeys } from './conflict.js'
import type { PlannedStatement } from './planned.js'

type Change = ast.CommonChange['statement']
type PlanOne = (statement: ast.Statement, context: BindContext) => PlannedStatement

export function planChanges(written: ast.ChangesInWith, context: BindContext, plan: PlanOne): PlannedStatement {
  const statement = withoutVariables(written)
  const names: BindContext['commonTables'][number][] = []
  const tables = new Set<number>()
  const planned = (one: ast.Query | Change): PlannedStatement => {
    const trial: BindContext = { ...trialOf(context), commonTables: [...names] }
    const result = planWithin(one, trial, plan)
    for (const { schema } of trial.tables) tables.add(schema.id)
    return result
  }
  for (const table of statement.tables)
    names.push('query' in table ? table : changedRows(table, columnsOf(planned(table.statement)), []))
  const outer = statement.statement
  const last = planned(outer)
  const columns = last.kind === 'query' ? last.columns : columnsOf(last)
  if (last.kind === 'query' && last.acts !== undefined)
    throw new SqlError('calls with side effects are not supported after data changes in WITH', outer.position)
  const changes = statement.tables.flatMap((table) => ('query' in table ? [] : [table.statement]))
  const targets = targetsOf(outer.kind === 'query' ? changes : [...changes, outer], context)
  for (const id of targets) tables.add(id)
  const tag = tagsOf[outer.kind]
  return { kind: 'withChanges', statement, tables: [...tables], targets, columns, tag }
}

const tagsOf = { query: 'SELECT', insert: 'INSERT', update: 'UPDATE', delete: 'DELETE', merge: 'MERGE' } as const

/** Plans one of the statements. The names of WITH before it are in the context. */
export function planWithin(statement: ast.Query | Change, context: BindContext, plan: PlanOne): PlannedStatement {
  return statement.kind === 'update' || statement.kind === 'delete'
    ? planChangedRows(statement, context)
    : plan(statement, context)
}

/** The name of a change in WITH, as a table of the rows that it has returned. */
export function changedRows(
  { name, key, columns: names }: ast.CommonChange,
  returned: readonly ResultColumn[] | null,
  rows: ChangedRows['rows'],
): ChangedRows {
  if (names.length > (returned?.length ?? names.length))
    throw new SqlError('too many column aliases', names[0]?.position ?? 0)
  const columns = returned?.map((column, index): PlanColumn => ({ ...column, name: names[index]?.name ?? column.name }))
  return { name, key, columns: columns ?? null, rows }
}

/** The result columns of RETURNING. */
function columnsOf(planned: PlannedStatement): readonly ResultColumn[] | null {
  return ('returning' in planned ? planned.returning : null)?.columns ?? null
}

function withoutVariables(written: ast.ChangesInWith): ast.ChangesInWith {
  const values = declaredValues(written.statement.declarations)
  if (values.size === 0) return written
  const tables = written.tables.map((table) => ('query' in table ? replaceVariables(table, values) : table))
  return { ...written, tables }
}

/**
 * Ids of the changed tables. Two statements that look for keys in the same snapshot would both find a key missing, so a
 * table with such a statement is changed by no other one.
 */
function targetsOf(changes: readonly Change[], context: BindContext): number[] {
  const tables = changes.map((change) => tableOf(change.table, context))
  for (const [index, change] of changes.entries()) {
    const table = tables[index]
    const looksUp =
      change.kind === 'merge' ||
      (change.kind === 'insert' && table !== undefined && conflictKeys(change, table) !== null)
    if (!looksUp || table === undefined) continue
    const { id, name } = table.schema
    if (tables.filter(({ schema }) => schema.id === id).length > 1)
      throw new SqlError(
        `a table that MERGE or ON CONFLICT changes cannot be changed by another statement of WITH [table=${name}]`,
        change.table.position,
      )
  }
  return [...new Set(tables.map(({ schema }) => schema.id))]
}
