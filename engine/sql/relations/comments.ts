// Reads the comments of tables and columns, set by COMMENT ON, from the table schemas, and makes the rows of
// pg_description from them.

import type { TableSchema } from '../../storage/schema/schema.js'
import type { RowRecord } from '../pg-catalog/catalog.js'
import { firstOid } from '../pg-catalog/types.js'
import type { BindContext } from '../scope/bind-context.js'
import { attributesOf } from './entries.js'
import type { RecordLists } from './record-lists.js'

interface TableComment {
  readonly table: number
  /** Attribute number of the column in pg_attribute; 0 for the table itself. */
  readonly place: number
  readonly text: string
}

const commentsOfSchemas = new WeakMap<TableSchema, readonly TableComment[]>()

export function comments({ catalog }: Pick<BindContext, 'catalog'>): TableComment[] {
  return catalog.tables().flatMap(({ schema }) => commentsOf(schema))
}

function commentsOf(schema: TableSchema): readonly TableComment[] {
  const known = commentsOfSchemas.get(schema) ?? commentsIn(schema)
  commentsOfSchemas.set(schema, known)
  return known
}

function commentsIn(schema: TableSchema): TableComment[] {
  const table = firstOid + schema.id
  const own = schema.comment === undefined || schema.comment === '' ? [] : [{ table, place: 0, text: schema.comment }]
  const said = schema.columns.filter(({ declared }) => declared?.comment !== undefined)
  // Most tables have no column comments, so their attribute numbers are not needed.
  if (said.length === 0) return own
  const places = attributesOf(schema)
  const columns = said.map(({ id, declared }) => {
    return { table, place: places.get(id)?.number ?? 0, text: declared?.comment ?? '' }
  })
  return [...own, ...columns.filter(({ place, text }) => place > 0 && text !== '')]
}

const pgClassOid = 1259

const recordsOfSchemas = new WeakMap<TableSchema, readonly RowRecord[]>()

/** Rows of pg_description, one list for each table. */
export function commentRecords({ catalog }: Pick<BindContext, 'catalog'>): RecordLists {
  return catalog.tables().map(({ schema }) => {
    const known = recordsOfSchemas.get(schema) ?? commentsOf(schema).map(descriptionRecord)
    recordsOfSchemas.set(schema, known)
    return known
  })
}

function descriptionRecord({ table, place, text }: TableComment): RowRecord {
  return { objoid: table, classoid: pgClassOid, objsubid: place, description: text }
}
