// Plans queries that count the values that ALTER COLUMN .. TYPE will replace by NULL because the new type cannot
// represent them (a string that is no number, a LONG beyond INT). They run before the change, so that the response can
// report the loss. Types without NULL refuse such values instead (rewrite.ts).

import { type DataType, dataType, typeText } from '../../types/column-types.js'
import { isText, nullOf } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { ownTable } from '../bind/from.js'
import { columnExpression } from '../bind/order.js'
import { writableTable } from '../bind/show.js'
import type { AggregateCall, Expression, Plan, PlanColumn } from '../plan/plan.js'
import type { BindContext } from '../scope/bind-context.js'
import { scalarCall } from '../typing/make-call.js'
import { castTo, commonType, constantOf } from '../typing/types.js'
import type { LostValues, PlannedStatement } from './planned.js'
import { queryOf } from './query-statement.js'
import { castColumn } from './rewrite.js'

/** Adds to a planned ALTER TABLE the queries that count lost values. */
export function withLosses(
  planned: PlannedStatement,
  { table }: ast.AlterTable,
  context: BindContext,
): PlannedStatement {
  if (planned.kind !== 'change') return planned
  const types = planned.changes.flatMap((change) => (change.kind === 'changeTypes' ? change.types : []))
  if (types.length === 0) return planned
  const version = writableTable(table, context)
  const losses = types.flatMap(({ columnId, type }): LostValues[] => {
    const column = version.schema.columns[columnId]
    if (column === undefined || !mayLose(column.type, type)) return []
    const own: BindContext = { ...context, tables: [], subqueries: [] }
    const relation = ownTable(version, version.schema.name, own)
    const index = relation.columns.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())?.index
    if (index === undefined) return []
    const plan = lostPlan(relation.plan, { index, type, timestamp: relation.timestampIndex }, own)
    return [{ column: column.name, type: typeText(type), query: queryOf(plan, -1, own) }]
  })
  return losses.length === 0 ? planned : { ...planned, losses }
}

function mayLose(from: DataType, to: DataType): boolean {
  // A type without NULL refuses the value; a string represents all values.
  if (nullOf(to) !== null || isText(to)) return false
  return from.name === 'DECIMAL' || to.name === 'DECIMAL' || commonType(from, to)?.name !== to.name
}

interface Changed {
  readonly index: number
  readonly type: DataType
  /** Index of the designated timestamp; negative without one. */
  readonly timestamp: number
}

/** A plan with one row: the number of lost values, the first of them, and the timestamp of its row. */
function lostPlan(input: Plan, { index, type, timestamp }: Changed, context: BindContext): Plan {
  const column = columnExpression(input.columns[index] as PlanColumn, index)
  const isNull = (operator: '=' | '<>', value: Expression): Expression =>
    scalarCall(operator, [value, constantOf(null, value.type, 0)], 0, context)
  const predicate = scalarCall('and', [isNull('<>', column), isNull('=', castColumn(column, type))], 0, context)
  const lost: Plan = { kind: 'filter', columns: input.columns, input, predicate }
  const text = dataType('STRING')
  const time =
    timestamp < 0 ? constantOf(null, text, 0) : columnExpression(input.columns[timestamp] as PlanColumn, timestamp)
  const first = (value: Expression): AggregateCall => ({
    name: 'first',
    args: [castTo(value, text)],
    type: text,
    position: 0,
  })
  const count: AggregateCall = { name: 'count', args: [], type: dataType('LONG'), position: 0 }
  const aggregates = [count, first(column), first(time)]
  const columns = ['count', 'value', 'ts'].map((name, place) => ({
    name,
    type: (aggregates[place] as AggregateCall).type,
  }))
  return { kind: 'aggregate', columns, input: lost, keys: [], aggregates }
}
