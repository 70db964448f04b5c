// Comments of tables and columns, as the catalog shows them.

import type { Value } from '../../types/value.js'
import type { BindContext } from '../bind/bind-context.js'
import { attributesOf } from './entries.js'
import { firstOid } from './types.js'

interface TableComment {
  readonly table: number
  /** Number of the column in pg_attribute, 0 of the table itself. */
  readonly place: number
  readonly text: string
}

export function comments({ catalog }: Pick<BindContext, 'catalog'>): TableComment[] {
  return catalog.tables().flatMap(({ schema }) => {
    const table = firstOid + schema.id
    const own = schema.comment === undefined || schema.comment === '' ? [] : [{ table, place: 0, text: schema.comment }]
    const said = schema.columns.filter(({ declared }) => declared?.comment !== undefined)
    // Most tables have none: their columns are not counted.
    if (said.length === 0) return own
    const places = attributesOf(schema)
    const columns = said.map(({ id, declared }) => {
      return { table, place: places.get(id)?.number ?? 0, text: declared?.comment ?? '' }
    })
    return [...own, ...columns.filter(({ place, text }) => place > 0 && text !== '')]
  })
}

const pgClassOid = 1259

/** Rows of pg_description. */
export function commentRecords(context: BindContext): Record<string, Value>[] {
  return comments(context).map(({ table, place, text }) => {
    return { objoid: table, classoid: pgClassOid, objsubid: place, description: text }
  })
}
