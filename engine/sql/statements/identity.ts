// Columns that INSERT numbers: `serial`, `generated .. as identity`. Both have a default that asks a counter; clients of PostgreSQL
// find an identity by another mark than a default, and mappers compare that with their models.

import { SqlError } from '../../base/errors.js'
import type { ColumnSchema } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { counterText, nextText } from '../relations/counters.js'
import type { BindContext } from '../scope/bind-context.js'
import { checkedDefault } from './defaults.js'

type NewColumn = Omit<ColumnSchema, 'id' | 'dropped'>

/** What a counted column has besides its name and type. */
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

/** SET and DROP DEFAULT, ADD GENERATED and DROP IDENTITY. */
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
