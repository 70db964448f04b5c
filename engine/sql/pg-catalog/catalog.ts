// The relations of pg_catalog and information_schema with their columns, parsed from catalog-tables.ts,
// catalog-views.ts and information-views.ts. Their rows are made in engine/sql/relations (rows.ts,
// information-rows.ts); a relation that is not listed there has no rows.

import { type DataType, dataType, intKinds, textKinds, timeKinds } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import { catalogTables } from './catalog-tables.js'
import { catalogViews } from './catalog-views.js'
import { informationViews } from './information-views.js'
import { type PgType, pgTypeNamed } from './types.js'

export type PgSchema = 'pg_catalog' | 'information_schema'

interface PgColumn {
  readonly name: string
  readonly pgType: PgType
  /** Our type for the column's values. */
  readonly type: DataType
}

export interface PgRelation {
  readonly schema: PgSchema
  readonly name: string
  readonly oid: number
  readonly kind: 'table' | 'view'
  readonly columns: readonly PgColumn[]
}

/** A row as values by column name. */
export type RowRecord = Readonly<Record<string, Value>>

const parse = (schema: PgSchema, text: string): PgRelation[] =>
  text
    .trim()
    .split(/\n(?! )/)
    .map((entry) => relationOf(schema, entry))

function relationOf(schema: PgSchema, entry: string): PgRelation {
  const end = entry.indexOf('\n')
  const [name = '', oid, kind] = entry.slice(0, end).split(' ')
  const columns = entry
    .slice(end)
    .split(',')
    .map((column) => {
      const [columnName = '', typeName = ''] = column.trim().split(/\s+/)
      return { name: columnName, pgType: pgTypeNamed(typeName), type: typeOfColumn(typeName) }
    })
  return { schema, name, oid: Number(oid), kind: kind === 'r' ? 'table' : 'view', columns }
}

/** The column type for a PostgreSQL type. Lists, expression trees and addresses are strings. */
function typeOfColumn(pgType: string): DataType {
  switch (pgType) {
    case 'bool':
      return dataType('BOOLEAN')
    case 'int2':
      return dataType('SHORT')
    case 'int4':
    case 'xid':
    case 'cid':
      return dataType('INT')
    case 'oid':
      return dataType('INT', intKinds.oid)
    case 'regproc':
    case 'regtype':
      return dataType('INT', intKinds[pgType])
    case 'int8':
      return dataType('LONG')
    case 'float4':
      return dataType('FLOAT')
    case 'float8':
      return dataType('DOUBLE')
    case 'timestamptz':
      return dataType('TIMESTAMP', timeKinds.zoned)
    case 'char':
      return dataType('CHAR')
    case 'bytea':
      return dataType('BINARY')
    case 'int2vector':
      return dataType('STRING', textKinds.places)
    case 'oidvector':
      return dataType('STRING', textKinds.oids)
    case '_oid':
      return dataType('STRING', textKinds.numbers)
    case '_int2':
      return dataType('STRING', textKinds.ints)
    case 'name':
      return dataType('STRING', textKinds.name)
    case '_name':
      return dataType('STRING', textKinds.names)
    case '_text':
      return dataType('STRING', textKinds.strings)
    default:
      return dataType('STRING')
  }
}

export const pgRelations: readonly PgRelation[] = [
  ...parse('pg_catalog', catalogTables),
  ...parse('pg_catalog', catalogViews),
  ...parse('information_schema', informationViews),
]

const byName = new Map(pgRelations.map((relation) => [`${relation.schema}.${relation.name}`, relation]))

export function pgRelation(schema: PgSchema, name: string): PgRelation | undefined {
  return byName.get(`${schema}.${name}`)
}

/** Columns that every PostgreSQL table has and that `*` does not include. */
export const systemColumns: readonly { readonly name: string; readonly type: DataType }[] = [
  { name: 'tableoid', type: dataType('INT', intKinds.oid) },
  { name: 'xmin', type: dataType('LONG') },
  { name: 'ctid', type: dataType('STRING') },
]
