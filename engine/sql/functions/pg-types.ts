// Types as the PostgreSQL world names them: rows of pg_type, names for format_type() and information_schema.

import { type ColumnType, columnTypes, type DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'

interface PgType {
  readonly oid: number
  readonly name: string
  /** As SQL spells it: format_type(). */
  readonly sqlName: string
  /** -1: of variable length. */
  readonly length: number
  /** Of pg_type.typcategory: B(oolean), N(umber), S(tring), D(ate), A(rray), U(ser defined), T(ime span). */
  readonly category: string
  readonly array: number
  /** Of the elements of an array. */
  readonly element: number
}

const type = (
  oid: number,
  name: string,
  sqlName: string,
  length: number,
  category: string,
  array = 0,
  element = 0,
): PgType => ({ oid, name, sqlName, length, category, array, element })

export const pgTypes: readonly PgType[] = [
  type(16, 'bool', 'boolean', 1, 'B'),
  type(17, 'binary', 'bytea', -1, 'U'),
  type(20, 'int8', 'bigint', 8, 'N'),
  type(21, 'int2', 'smallint', 2, 'N'),
  type(23, 'int4', 'integer', 4, 'N'),
  type(26, 'oid', 'oid', 4, 'N'),
  type(700, 'float4', 'real', 4, 'N'),
  type(701, 'float8', 'double precision', 8, 'N', 1022),
  type(1015, '_varchar', 'character varying[]', -1, 'A', 0, 1043),
  type(1022, '_float8', 'double precision[]', -1, 'A', 0, 701),
  type(1042, 'bpchar', 'character', -1, 'S'),
  type(1043, 'varchar', 'character varying', -1, 'S', 1015),
  type(1082, 'date', 'date', 4, 'D'),
  type(1114, 'timestamp', 'timestamp without time zone', 8, 'D'),
  type(1184, 'timestamptz', 'timestamp with time zone', 8, 'D'),
  type(1186, 'interval', 'interval', 16, 'T'),
  type(1700, 'numeric', 'numeric', -1, 'N'),
  type(2950, 'uuid', 'uuid', 16, 'U'),
]

const byOid = new Map(pgTypes.map((row) => [row.oid, row]))

export function pgTypeOf({ name }: DataType): PgType {
  return byOid.get(columnTypes[name as ColumnType].pgOid) ?? (pgTypes[0] as PgType)
}

export function pgTypeRecord({ oid, name, length, category, array, element }: PgType): Record<string, Value> {
  return {
    oid,
    typname: name,
    typarray: array,
    typnamespace: 11,
    typtypmod: -1,
    typtype: 'b',
    typcategory: category,
    typelem: element,
    typreceive: oid + 10_000,
    typsend: oid + 10_000,
    typinput: oid + 10_000,
    typoutput: oid + 10_000,
    typdelim: 44,
    typowner: 10,
    typlen: length,
    typbyval: length > 0 && length <= 8,
    typispreferred: false,
    typisdefined: true,
    typalign: length === 8 || length === 16 ? 'd' : 'i',
    typstorage: length < 0 ? 'x' : 'p',
  }
}

/** Fallback for oids that are no types here. */
export const unknownTypeName = '???'

export function typeNameOfOid(oid: number): string {
  return byOid.get(oid)?.sqlName ?? unknownTypeName
}
