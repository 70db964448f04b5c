// What is kept of a column's definition for clients of PostgreSQL: the type and length that they wrote and NOT NULL. Mappers
// compare them with their models and would change every column again and again; none of it limits what is stored.

import type { DeclaredColumn } from '../../storage/schema.js'
import { columnTypes, type DataType } from '../../types/column-types.js'
import type * as ast from '../parse/ast.js'

/** Types that have none of their own here, and those whose length or digits mean nothing here. */
const declaredTypes: ReadonlySet<string> = new Set(
  'text varchar bpchar json jsonb xml time timetz timestamp timestamptz date inet cidr'.split(' '),
)

const lengthHeader = 4

/** undefined: nothing was written that the column's type does not tell. */
export function declaredOf(written: ast.TypeName, type: DataType, notNull: boolean): DeclaredColumn | undefined {
  const named = declaredTypes.has(written.name) && written.dimensions === 0 ? typeOf(written, type) : {}
  const declared: DeclaredColumn = { ...named, ...(notNull ? { notNull: true } : {}) }
  return Object.keys(declared).length === 0 ? undefined : declared
}

function typeOf({ name, parameters }: ast.TypeName, type: DataType): DeclaredColumn {
  const [size] = parameters
  const hasLength = name === 'varchar' || name === 'bpchar'
  const modifier = size === undefined ? {} : { modifier: hasLength ? size + lengthHeader : size }
  return isOwn(name, type) ? modifier : { type: name, ...modifier }
}

export function sameDeclared(left: DeclaredColumn, right: DeclaredColumn = {}): boolean {
  return left.type === right.type && left.modifier === right.modifier && left.notNull === right.notNull
}

/** Whether the column's type is shown by that name anyway. */
function isOwn(name: string, type: DataType): boolean {
  const shown = { 1043: 'varchar', 1114: 'timestamp' } as const
  return shown[columnTypes[type.name].pgOid as keyof typeof shown] === name
}
