// Plans RETURNING of INSERT, UPDATE, DELETE, MERGE and ON CONFLICT as a query of the target table whose scan returns
// only the affected rows: inserted rows, updated rows with their new values, and deleted rows with their old values.
// Also plans INSERT .. ON CONFLICT DO NOTHING: its query selects those new rows whose keys are not in the table yet.

import { assert } from '../../base/assert.js'
import { liveColumns, type TableVersion } from '../../storage/schema/schema.js'
import { formatTimestamp } from '../../types/timestamp.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type { Query, TableName } from '../ast/ast.js'
import { bindQuery } from '../bind/query.js'
import { parseStatement } from '../parse/parse.js'
import { type BindContext, trialOf } from '../scope/bind-context.js'
import type { PlannedStatement, Returning } from './planned.js'
import { planRelation, queryOf } from './query-statement.js'
import { targetOf } from './target.js'

type PlannedQuery = Extract<PlannedStatement, { kind: 'query' }>

/** `rows` have the values of all columns of the table in their order. */
export function planReturned(
  { name, returning }: Pick<Returning, 'name' | 'returning'>,
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  context: BindContext,
): PlannedQuery {
  context.returned = { name, version, rows }
  context.cacheable = false
  return planRelation(bindQuery(returning, context), context)
}

/** The list of a statement, described before there are rows. */
export function returningOf(name: TableName, returning: Query, version: TableVersion, context: BindContext): Returning {
  const { columns } = planReturned({ name, returning }, version, [], trialOf(context))
  return { name, returning, columns }
}

/** An INSERT of those rows whose keys the table does not contain. */
export function planNewRows(
  version: TableVersion,
  rows: readonly (readonly Value[])[],
  keys: readonly (readonly number[])[],
  context: BindContext,
): Extract<PlannedStatement, { kind: 'insertSelect' }> {
  const { id, name, columns, dedupKeys, timestampId } = version.schema
  const existing = keys.map((key) => {
    const names = key.map((column) => `"${columns[column]?.name}"`)
    const equal = names.map((column) => `o.${column} = n.${column}`)
    // NULLs of declared keys are distinct.
    if (dedupKeys.length === 0) equal.push(...names.map((column) => `o.${column} is not null`))
    if (key.includes(timestampId)) equal.push(...withinTimes(version, rows))
    return `not exists (select 1 from "${name}" o where ${equal.join(' and ')})`
  })
  const sql = `select * from "${name}" n where ${existing.join(' and ')}`
  const query = parseStatement(sql)
  assert(query.kind === 'query' && query.body.kind === 'select', 'B2: the rows of RETURNING are a SELECT')
  const { from } = query.body
  assert(from?.kind === 'table', 'B2: the rows of RETURNING are of one table')
  const inner: BindContext = { ...context, sql, returned: { name: from.table, version, rows }, cacheable: false }
  const { plan } = bindQuery(query, inner)
  return {
    ...{ kind: 'insertSelect', tableId: id, query: queryOf(plan, -1, inner), numbered: [], batchRows: null },
    ...{ columns: liveColumns(version.schema).map(targetOf), atomic: false, tag: 'INSERT' },
  }
}

/**
 * A condition on the timestamp range of the rows. The timestamp is one of the keys, so no other rows need to be read.
 */
function withinTimes({ schema }: TableVersion, rows: readonly (readonly Value[])[]): string[] {
  const live = liveColumns(schema)
  const index = live.findIndex(({ id }) => id === schema.timestampId)
  const column = live[index]
  if (column === undefined || (column.type.name !== 'TIMESTAMP' && column.type.name !== 'TIMESTAMP_NS')) return []
  const unit: TimestampUnit = column.type.name
  let [low, high] = [rows[0]?.[index] as bigint, rows[0]?.[index] as bigint]
  for (const row of rows) {
    const time = row[index] as bigint
    if (time < low) low = time
    if (time > high) high = time
  }
  const text = (time: bigint): string => formatTimestamp(time, unit)
  return [`o."${column.name}" >= '${text(low)}' and o."${column.name}" <= '${text(high)}'`]
}
