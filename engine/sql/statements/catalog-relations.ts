// pg_catalog and information_schema as relations: columns and rows put together.

import { dataType, typeText } from '../../types/column-types.js'
import type { BindContext } from '../bind/bind-context.js'
import { pgTypeOf } from '../functions/pg-types.js'
import { informationColumns, pgColumns } from './pg-columns.js'
import { catalogEntries, databaseName, pgRows, type RowRecord } from './pg-rows.js'
import { columnList, rowOf } from './relation-columns.js'
import type { RelationColumn, SystemRelation } from './relations.js'

/** `schema` null: a name of pg_catalog without its schema. undefined when there is no such relation. */
export function catalogRelation(schema: string | null, name: string, context: BindContext): SystemRelation | undefined {
  if (schema === 'information_schema') return informationRelation(name, context)
  const list = schema === null || schema === 'pg_catalog' ? pgColumns[name] : undefined
  if (list === undefined) return undefined
  return relation(columnList(list), () => pgRows[name]?.(context) ?? [])
}

function relation(columns: readonly RelationColumn[], records: () => readonly RowRecord[]): SystemRelation {
  return { columns, rows: () => records().map((record) => rowOf(columns, record)) }
}

type Rows = (context: BindContext) => readonly RowRecord[]

function informationRelation(written: string, context: BindContext): SystemRelation | undefined {
  const own = written === 'questdb_columns'
  const name = own ? 'columns' : written
  const list = informationColumns[name]
  if (list === undefined) return undefined
  const columns = columnList(list)
  if (name === 'character_sets')
    return relation(withTrailingBlank(columns), () => informationRows['character_sets']?.(context) ?? [])
  if (own) return relation(columns, () => columnRecords(context, true))
  return relation(columns, () => informationRows[name]?.(context) ?? [])
}

/** The last column's name ends in a blank: recorded so, and clients read names as they are sent. */
function withTrailingBlank(columns: readonly RelationColumn[]): RelationColumn[] {
  return columns.map((column, index) =>
    index === columns.length - 1 ? { ...column, name: `${column.name} `, type: dataType('STRING') } : column,
  )
}

const informationRows: Readonly<Record<string, Rows>> = {
  tables: (context) =>
    catalogEntries(context).map(({ name, kind }) => ({
      table_catalog: databaseName,
      table_schema: 'public',
      table_name: name,
      table_type: kind === 'table' ? 'BASE TABLE' : 'VIEW',
      is_insertable_into: kind === 'table',
    })),
  columns: (context) => columnRecords(context, false),
  character_sets: () => [
    {
      character_set_name: 'UTF8',
      character_repertoire: 'UCS',
      form_of_use: 'UTF8',
      default_collate_catalog: 'public',
      default_collate_schema: 'public',
      'default_collate_name ': 'en_US.utf8',
    },
  ],
  schemata: ({ evaluation }) =>
    ['pg_catalog', 'public', 'information_schema'].map((name) => ({
      catalog_name: databaseName,
      schema_name: name,
      schema_owner: evaluation.user,
    })),
  views: ({ catalog }) =>
    catalog.views().map(({ name, sql }) => ({
      table_catalog: databaseName,
      table_schema: 'public',
      table_name: name,
      view_definition: sql,
      check_option: 'NONE',
      is_updatable: 'NO',
      is_insertable_into: 'NO',
    })),
}

/** Positions count from 0 and flags are in small letters, as clients of this dialect know them. */
function columnRecords(context: BindContext, ownTypes: boolean): RowRecord[] {
  return catalogEntries(context).flatMap(({ name, columns }) =>
    columns.map((column, index) => {
      const pgType = pgTypeOf(column.type)
      return {
        table_catalog: databaseName,
        table_schema: 'public',
        table_name: name,
        column_name: column.name,
        ordinal_position: index,
        is_nullable: 'yes',
        data_type: ownTypes ? typeText(column.type) : pgType.sqlName,
        udt_schema: 'pg_catalog',
        udt_name: pgType.name,
        character_maximum_length: null,
        numeric_precision: column.type.name === 'DECIMAL' ? column.type.a : null,
        numeric_scale: column.type.name === 'DECIMAL' ? column.type.b : null,
        datetime_precision: pgType.category === 'D' ? 6 : null,
        is_identity: 'NO',
        is_generated: 'NEVER',
      }
    }),
  )
}
