// Plans auto-increment columns: `serial` and `generated .. as identity`. Both get a default that calls nextval() on a
// counter of the column. Identity columns are also marked as such, because clients of PostgreSQL expect that mark
// instead of a default, and object mappers compare it with their models.

import { SqlError } from '../../base/errors.js'
import type { ColumnSchema } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { counterText, nextText } from '../relations/counters.js'
import type { BindContext } from '../scope/bind-context.js'
import { checkedDefault } from './defaults.js'

type NewColumn = Omit<ColumnSchema, 'id' | 'dropped'>

/** The default and other properties of a numbered column. */
export function countedColumn(
  { identity, counter }: ast.Counted,
  { name, type, declared }: NewColumn,
  table: string,
  position: number,
): Required<Pick<ColumnSchema, 'default'>> & Pick<ColumnSchema, 'declared'> {
  if (!['SHORT', 'INT', 'LONG'].includes(type.name))
    throw new SqlError(`identity column type must be SHORT, INT or LONG [column=${name}]`, position)
  const text = counter === null ? counterText(table, name) : nextText(counter)
  return { default: text, ...(identity === null ? {} : { declared: { ...declared, identity } }) }
}

/** Changes by SET and DROP DEFAULT, ADD GENERATED and DROP IDENTITY. */
export function changedDefault(
  value: ast.ColumnDefault | ast.Counted | null,
  column: ColumnSchema,
  table: string,
  position: number,
  context: BindContext,
): { readonly default: string | null } & Pick<ColumnSchema, 'declared'> {
  if (value !== null && 'kind' in value) return countedColumn(value, column, table, position)
  const text = checkedDefault(value, column, context) ?? null
  if (column.declared?.identity === undefined) return { default: text }
  const { identity: _, ...declared } = column.declared
  return { default: text, declared }
}
