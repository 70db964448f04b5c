// Determines what a column's schema records in addition to its type: the type and length as declared, NOT NULL,
// identity, the comment, and the enumeration of a column of labels. Object-relational mappers compare most of them with
// their models; if they were missing, each migration would alter the column again. NOT NULL and the length do not
// restrict the stored values.

import type { DeclaredColumn, Enumeration } from '../../storage/schema/schema.js'
import { type ColumnType, columnTypes, type DataType } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'
import type { Dialect } from '../dialect.js'
import type { BindContext } from '../scope/bind-context.js'
import { isTypeName, typeOfName } from '../typing/types.js'

/** Declared types without an equivalent column type, or whose length or digits are not represented by it. */
const declaredTypes: ReadonlySet<string> = new Set(
  'text varchar bpchar json jsonb xml time timetz timestamp timestamptz date interval inet cidr oid'.split(' '),
)

const lengthHeader = 4

export function isUnboundedNumber({ name, parameters, dimensions }: ast.TypeName, dialect: Dialect): boolean {
  return (
    dialect.unboundedNumeric &&
    (name === 'numeric' || name === 'decimal') &&
    parameters.length === 0 &&
    dimensions === 0
  )
}

/** undefined if the column type says it all. */
export function declaredOf(
  written: ast.TypeName,
  type: DataType,
  { notNull, identity, comment }: Partial<DeclaredColumn>,
  { dialect, catalog }: Pick<BindContext, 'dialect' | 'catalog'>,
): DeclaredColumn | undefined {
  const enumeration = enumerationOf(written, catalog)
  const isList = written.dimensions > 0
  const declared: DeclaredColumn = {
    ...(enumeration === undefined ? {} : isList ? { elements: enumeration } : { enumeration }),
    ...(isList ? listOf(written, type) : plainOf(written, type, dialect)),
    ...(notNull ? { notNull } : {}),
    ...(identity === undefined ? {} : { identity }),
    ...(comment === undefined ? {} : { comment }),
  }
  return Object.keys(declared).length === 0 ? undefined : declared
}

/** The enumeration with the type's name; undefined if it is another type or unknown. */
export function enumerationOf(written: ast.TypeName, catalog: BindContext['catalog']): Enumeration | undefined {
  return isTypeName(written.name) ? undefined : catalog.enumeration?.(written.text)
}

/** PostgreSQL's element types of lists; other lists have elements of type text. */
const elementNames: Partial<Record<ColumnType, string>> = {
  ...{ BOOLEAN: 'bool', SHORT: 'int2', INT: 'int4', LONG: 'int8', DECIMAL: 'numeric', UUID: 'uuid' },
  ...{ TIMESTAMP: 'timestamp', DATE: 'timestamp' },
}

/** The declared type of an array. Arrays of doubles need none: the column type says it all. */
function listOf(written: ast.TypeName, type: DataType): DeclaredColumn {
  if (type.name === 'ARRAY') return {}
  if (declaredTypes.has(written.name)) return { type: `_${written.name}` }
  const element = typeOfName({ ...written, dimensions: 0 })
  return { type: `_${(element === undefined ? undefined : elementNames[element.name]) ?? 'text'}` }
}

function plainOf(written: ast.TypeName, type: DataType, dialect: Dialect): DeclaredColumn {
  if (isUnboundedNumber(written, dialect)) return { type: 'numeric' }
  // A DATE of the native dialect has a time of day, which clients would drop if it were reported as a date.
  const isDay = written.name !== 'date' || dialect.dateIsDay
  return declaredTypes.has(written.name) && isDay ? typeOf(written, type) : {}
}

function typeOf({ name, parameters }: ast.TypeName, type: DataType): DeclaredColumn {
  const [size] = parameters
  const hasLength = name === 'varchar' || name === 'bpchar'
  const modifier = size === undefined ? {} : { modifier: hasLength ? size + lengthHeader : size }
  return isOwn(name, type) ? modifier : { type: name, ...modifier }
}

export function sameDeclared(left: DeclaredColumn, right: DeclaredColumn = {}): boolean {
  const sameType = left.type === right.type && left.modifier === right.modifier
  const sameLabels = left.enumeration?.id === right.enumeration?.id && left.elements?.id === right.elements?.id
  return sameType && sameLabels && left.notNull === right.notNull
}

/** Whether the column's type is shown by that name anyway. */
function isOwn(name: string, type: DataType): boolean {
  const shown = { 1043: 'varchar', 1114: 'timestamp' } as const
  return shown[columnTypes[type.name].pgOid as keyof typeof shown] === name
}
