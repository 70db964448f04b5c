// pg_prepared_statements and pg_cursors: what the session that asks has prepared and declared.

import { textArray } from '../../types/text-lists.js'
import type { BindContext } from '../bind/bind-context.js'
import type { RowRecord } from './catalog.js'
import { formatType } from './types.js'

export function preparedRecords({ named }: BindContext): RowRecord[] {
  return (named?.().prepared ?? []).map(({ name, text, micros, oids, bySql }) => ({
    name,
    statement: text,
    prepare_time: BigInt(micros),
    parameter_types: textArray(oids.map((oid) => formatType(oid, null))),
    from_sql: bySql,
    generic_plans: 0n,
    custom_plans: 0n,
  }))
}

export function cursorRecords({ named }: BindContext): RowRecord[] {
  return (named?.().cursors ?? []).map(({ name, text, micros, hold, binary, scroll }) => ({
    name,
    statement: text,
    is_holdable: hold,
    is_binary: binary,
    is_scrollable: scroll,
    creation_time: BigInt(micros),
  }))
}
