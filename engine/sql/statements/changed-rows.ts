// Plans UPDATE and DELETE within WITH. As for an upsert (upsert.ts), the plan is a query whose rows are the changes.
// The writer commits the changes of all statements of the WITH as one transaction (storage/writer/writer-replace.ts).
//
// Outside of WITH, an UPDATE or DELETE rewrites the affected parts (Parquet files) of its table (rewrite.ts). The
// exception is an UPDATE of an enforced key, which is planned as an upsert in both cases.

import { SqlError } from '../../base/errors.js'
import { liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import { dataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import { holdsQuery } from '../bind/correlated-conditions.js'
import { type Expression, type Plan, rowIdColumn } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { constantOf } from '../typing/types.js'
import { actionColumnId, type PlannedStatement, type TargetColumn, upsertActions } from './planned.js'
import { queryOf } from './query-statement.js'
import { returningOf } from './returning.js'
import { assignmentsOf, begun, keepRows, scopeOf } from './rewrite.js'
import { targetOf } from './target.js'
import { placedRelation, planKeyUpdate } from './upsert.js'

type Assigned = ReturnType<typeof assignmentsOf>

export function planChangedRows(written: ast.Update | ast.Delete, context: BindContext): PlannedStatement {
  const ofKey = written.kind === 'update' ? planKeyUpdate(written, context) : null
  if (ofKey !== null) return ofKey
  const { statement, version, rows, where } = begun(written, context, placedRelation)
  const { kind, table, returning } = statement
  const tag = kind === 'update' ? 'UPDATE' : 'DELETE'
  requireNoDedup(version, tag, table.position)
  const scope = scopeOf(rows, context)
  const assigned = (): Assigned | null => (kind === 'update' ? assignmentsOf(statement, version, where, scope) : null)
  const joinsLater = kind === 'update' && statement.assignments.some(({ value }) => holdsQuery(value))
  const early = joinsLater ? null : assigned()
  keepRows(rows, where, scope)
  const found = changesOf(rows.relation.plan, version, early ?? assigned(), statement.from !== null, context)
  const list = returning === null ? null : returningOf(table, returning, version, context)
  return { kind: 'upsert', tableId: version.schema.id, source: { kind: 'query', found }, returning: list, tag }
}

/** A row that is removed may have replaced others, which would come back. */
function requireNoDedup({ schema }: TableVersion, tag: string, position: number): void {
  if (schema.dedupKeys.length === 0) return
  throw new SqlError(
    `${tag} in WITH is not supported for a table with DEDUP UPSERT KEYS, INSERT is [table=${schema.name}]`,
    position,
  )
}

/** `input`: the row id, the columns of the table, and those of FROM or USING. */
function changesOf(
  input: Plan,
  version: TableVersion,
  assigned: Assigned | null,
  isJoined: boolean,
  context: BindContext,
): Extract<Extract<PlannedStatement, { kind: 'upsert' }>['source'], { kind: 'query' }>['found'] {
  const live = liveColumns(version.schema)
  const action = assigned === null ? upsertActions.delete : upsertActions.update
  const columns: TargetColumn[] = [
    { columnId: actionColumnId, name: 'action', type: dataType('INT') },
    { columnId: rowIdColumn, name: 'row id', type: dataType('LONG') },
    ...live.map(targetOf),
  ]
  const rowId = columnAt(0, dataType('LONG'))
  const values = live.map(({ id, type }, index): Expression => {
    const value = assigned?.values[assigned.targets.findIndex(({ columnId }) => columnId === id)]
    return value === undefined ? columnAt(index + 1, type) : { ...value, type }
  })
  const changed: Plan = {
    ...{ kind: 'project', input, expressions: [constantOf(action, dataType('INT'), 0), rowId, ...values] },
    columns: columns.map(({ name, type }) => ({ name, type })),
  }
  const plan = isJoined ? firstOfEach(changed) : changed
  return { query: queryOf(plan, -1, context), columns, schemaVersion: version.schema.version }
}

/** If several rows of FROM or USING match a row, the first one counts. */
function firstOfEach(changed: Plan): Plan {
  const { columns } = changed
  const groups: Plan = {
    ...{ kind: 'aggregate', columns: [{ name: 'row', type: dataType('LONG') }, ...columns], input: changed },
    keys: [columnAt(1, dataType('LONG'))],
    aggregates: columns.map(({ type }, index) => ({
      ...{ name: 'first', args: [columnAt(index, type)], type, position: 0 },
    })),
  }
  const expressions = columns.map(({ type }, index) => columnAt(index + 1, type))
  return { kind: 'project', columns, input: groups, expressions }
}

function columnAt(index: number, type: Expression['type']): Expression {
  return { kind: 'column', index, type, position: 0 }
}
