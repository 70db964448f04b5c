// Parses and rewrites UNPIVOT, which turns columns into rows: `t unpivot (value for name in (a, b as 'x'))` becomes a
// sub-query that joins each row with the numbers n of the listed columns, and chooses name and value by n: `select *
// except (a, b, n), case n when 1 then 'a' else 'x' end as name, case n when 1 then a else b end as value from t,
// generate_series(1, 2)`. Rows whose value is NULL are left out, unless INCLUDE NULLS is written.

import { SqlError } from '../../base/errors.js'
import type { Expression, Join, Name, SelectItem, TableSource } from '../ast/ast.js'
import {
  columnAt,
  crossJoin,
  integerAt,
  nameAt,
  numbersTo,
  queryOf,
  querySource,
  selectBody,
  starItem,
} from '../rewrite/make-query.js'
import { advance, type Cursor } from './cursor.js'
import { expect, parseList, parseNameOrString, take } from './expect.js'

interface UnpivotedColumn {
  readonly column: Name
  readonly label: string
}

const numberName = '$unpivot'

/** The cursor is on `unpivot`, after the sources whose rows it takes. */
export function parseUnpivot(cursor: Cursor, from: TableSource, joins: readonly Join[]): TableSource {
  const { start: position } = cursor
  advance(cursor)
  const withNulls = take(cursor, 'include')
  if (withNulls || take(cursor, 'exclude')) expect(cursor, 'nulls')
  expect(cursor, '(')
  const value = parseNameOrString(cursor, 'name of the column of values expected')
  expect(cursor, 'for')
  const name = parseNameOrString(cursor, 'name of the column of names expected')
  expect(cursor, 'in')
  expect(cursor, '(')
  const columns = parseList(cursor, parseUnpivotedColumn)
  expect(cursor, ')')
  expect(cursor, ')')
  requireDistinctColumns(columns)
  const chosen = columns.map(({ column }) => columnAt(column.name, column.position))
  const labels = columns.map(({ label }): Expression => ({ kind: 'string', position, value: label }))
  const chosenValue = chosenBy(chosen, position)
  const items: SelectItem[] = [
    starItem(position, [...columns.map(({ column }) => column), nameAt(numberName, position)]),
    { position: name.position, expression: asText(chosenBy(labels, position)), alias: name },
    { position: value.position, expression: chosenValue, alias: value },
  ]
  const where: Expression | null = withNulls ? null : { kind: 'is null', negated: true, operand: chosenValue, position }
  const body = selectBody(from, items, where, position)
  return querySource(
    queryOf({ ...body, joins: [...joins, crossJoin(numbersTo(columns.length, numberName, position), position)] }),
  )
}

function parseUnpivotedColumn(cursor: Cursor): UnpivotedColumn {
  const column = parseNameOrString(cursor, 'column name expected')
  return { column, label: take(cursor, 'as') ? parseNameOrString(cursor, 'alias expected').name : column.name }
}

function requireDistinctColumns(columns: readonly UnpivotedColumn[]): void {
  const seen = new Set<string>()
  for (const { column } of columns) {
    const key = column.name.toLowerCase()
    if (seen.has(key)) throw new SqlError(`Duplicate column [name=${column.name}]`, column.position)
    seen.add(key)
  }
}

/** A single letter would be a CHAR. */
function asText(operand: Expression): Expression {
  const type = { position: operand.position, name: 'string', text: 'string', parameters: [], unit: null, dimensions: 0 }
  return { kind: 'cast', position: operand.position, operand, type }
}

/** The expression at the number of the row. */
function chosenBy(values: readonly Expression[], position: number): Expression {
  const branches = values.map((result, index) => ({ when: integerAt(index + 1, position), result }))
  return { kind: 'case', position, operand: columnAt(numberName, position), branches, otherwise: null }
}
