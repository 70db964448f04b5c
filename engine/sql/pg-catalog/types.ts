// PostgreSQL's types: rows of pg_type and pg_range, the PostgreSQL type of each column type and enumeration, look-up of
// types by name, and format_type().

import { assert } from '../../base/assert.js'
import type { Enumeration } from '../../storage/schema/schema.js'
import { columnTypes, type DataType, isLabels, labelsOid, pgOidOf } from '../../types/column-types.js'
import { quoteIdent } from '../../types/identifier.js'
import type { Value } from '../../types/value.js'
import { typeRows } from './type-rows.js'

/** The oid of a table, view, sequence or enumeration is its id plus this. */
export const firstOid = 16_384

export interface PgType {
  readonly oid: number
  readonly name: string
  /** The SQL name, as format_type() prints it. */
  readonly sqlName: string
  /** Bytes of a value; -1 for variable length. */
  readonly length: number
  /** pg_type.typcategory: B(oolean), N(umber), S(tring), D(ate), A(rray), ... */
  readonly category: string
  /** Oid of the array type; 0 without one. */
  readonly array: number
  /** Oid of the element type of an array type. */
  readonly element: number
  /** b(ase), p(seudo), r(ange) or m(ultirange). */
  readonly kind: string
  readonly align: string
  readonly storage: string
  readonly byValue: boolean
  readonly preferred: boolean
  readonly delimiter: string
  readonly collation: number
  /** Oids of its functions in, out, recv and send; 0 for a missing one. */
  readonly functions: readonly [number, number, number, number]
  /** Prefix of the names of its functions. */
  readonly stem: string
}

/** Oids of `array_in` and so on. */
const arrayFunctions = [750, 751, 2400, 2401] as const
export const functionEndings = ['in', 'out', 'recv', 'send'] as const

export const pgTypes: readonly PgType[] = typeRows
  .trim()
  .split('\n')
  .flatMap((line) => {
    const type = typeOf(line)
    return type.array === 0 ? [type] : [type, arrayOf(type)]
  })
  .sort((a, b) => a.oid - b.oid)

function typeOf(line: string): PgType {
  const fields = line.split(' ')
  const [oid, name = '', length, flags = '', marks = '', delimiter = '', element, array, collation] = fields
  const [input, output, receive, send, stem = ''] = fields.slice(9)
  return {
    oid: Number(oid),
    name,
    sqlName: fields.slice(14).join(' '),
    length: Number(length),
    kind: flags.charAt(0),
    category: flags.charAt(1),
    align: flags.charAt(2),
    storage: flags.charAt(3),
    byValue: marks.startsWith('v'),
    preferred: marks.endsWith('p'),
    delimiter,
    element: Number(element),
    array: Number(array),
    collation: Number(collation),
    functions: [Number(input), Number(output), Number(receive), Number(send)],
    stem,
  }
}

function arrayOf({ oid, name, sqlName, array, align, delimiter, collation, kind }: PgType): PgType {
  return {
    oid: array,
    name: `_${name}`,
    sqlName: `${sqlName}[]`,
    length: -1,
    kind: kind === 'p' ? 'p' : 'b',
    category: kind === 'p' ? 'P' : 'A',
    align: align === 'd' ? 'd' : 'i',
    storage: 'x',
    byValue: false,
    preferred: false,
    delimiter,
    element: oid,
    array: 0,
    collation,
    functions: arrayFunctions,
    stem: 'array_',
  }
}

const byOid = new Map(pgTypes.map((type) => [type.oid, type]))
const byName = new Map(pgTypes.map((type) => [type.name, type]))

export function pgTypeNamed(name: string): PgType {
  const type = byName.get(name)
  assert(type !== undefined, `B3: no type of that name [name=${name}]`)
  return type
}

export function pgTypeOf(column: DataType): PgType {
  // Enumeration labels in a view or a copied table are strings, and lists of them are lists of strings.
  if (isLabels(column)) return pgTypeNamed('_text')
  const type = byOid.get(column.name === 'INT' ? columnTypes.INT.pgOid : pgOidOf(column))
  assert(type !== undefined, `B3: a column type without a PostgreSQL type [type=${column.name}]`)
  return type
}

/** Oids of enum_in, enum_out, enum_recv and enum_send. */
const enumFunctions = [3504, 3505, 3532, 3533] as const

export function enumerationType({ id, name }: Enumeration): PgType {
  return {
    ...{
      oid: firstOid + id,
      name,
      sqlName: quoteIdent(name),
      length: 4,
      category: 'E',
      array: labelsOid(id),
      element: 0,
      kind: 'e',
    },
    ...{ align: 'i', storage: 'p', byValue: true, preferred: false, delimiter: ',', collation: 0, stem: 'enum_' },
    functions: enumFunctions,
  }
}

/** The array type of an enumeration. */
export function labelsType(enumeration: Enumeration): PgType {
  return arrayOf(enumerationType(enumeration))
}

/** Type modifier of a column type: precision and scale of a DECIMAL, the length of a CHAR; -1 for none. */
export function typeModifier(type: DataType): number {
  if (type.name === 'DECIMAL') return ((type.a << 16) | type.b) + 4
  return type.name === 'CHAR' ? 1 + 4 : -1
}

export function pgTypeRecord(type: PgType): Record<string, Value> {
  const [input, output, receive, send] = type.functions
  return {
    oid: type.oid,
    typname: type.name,
    typnamespace: 11,
    typowner: 10,
    typlen: type.length,
    typbyval: type.byValue,
    typtype: type.kind,
    typcategory: type.category,
    typispreferred: type.preferred,
    typisdefined: true,
    typdelim: type.delimiter,
    typelem: type.element,
    typarray: type.array,
    typinput: input,
    typoutput: output,
    typreceive: receive,
    typsend: send,
    typalign: type.align,
    typstorage: type.storage,
    typtypmod: -1,
    typcollation: type.collation,
  }
}

/** The types that columns can have, under the names that clients of the native dialect know: rows of `pg_type()`. */
export function ownTypeRecords(): Record<string, Value>[] {
  const own = new Set([26, 1015, 1082, 1184, 1186, ...Object.values(columnTypes).map(({ pgOid }) => pgOid)])
  return pgTypes
    .filter(({ oid }) => own.has(oid))
    .map((type) => ({ ...pgTypeRecord(type), typname: type.name === 'bytea' ? 'binary' : type.name }))
}

/** Result of format_type() for an oid that is no type. */
const unknownTypeName = '???'

/** Result of format_type(). A negative or missing modifier means none. */
export function formatType(oid: number, modifier: number | null): string {
  if (oid === 0) return '-'
  const type = byOid.get(oid)
  if (type === undefined) return unknownTypeName
  if (type.element !== 0 && type.name.startsWith('_')) return `${formatType(type.element, modifier)}[]`
  // bpchar without a length differs from the standard's `character`, which has a length.
  if (type.name === 'bpchar' && modifier === -1) return 'bpchar'
  if (modifier === null || modifier < 0) return type.sqlName
  switch (type.name) {
    case 'numeric':
      return `numeric(${(modifier - 4) >> 16},${(modifier - 4) & 0xffff})`
    case 'varchar':
    case 'bpchar':
      return `${type.sqlName}(${modifier - 4})`
    case 'timestamp':
    case 'timestamptz':
    case 'time':
    case 'timetz':
      return type.sqlName.replace(' ', `(${modifier}) `)
    default:
      return type.sqlName
  }
}

/** SQL names that format_type() does not print. */
const otherNames: Readonly<Record<string, string>> = {
  int: 'int4',
  decimal: 'numeric',
  float: 'float8',
  double: 'float8',
  long: 'int8',
  string: 'text',
  char: 'bpchar',
  'timestamp with time zone': 'timestamptz',
  'time with time zone': 'timetz',
  dec: 'numeric',
}

/** Oid of a type by any of its names, as `'int4[]'::regtype` reads them; undefined if there is none. */
export function typeOid(written: string): number | undefined {
  const text = written.trim().replace(/^(pg_catalog|"pg_catalog")\./i, '')
  if (/^\d+$/.test(text)) return Number(text)
  const isArray = text.endsWith('[]')
  const plain = text.replace(/(\s*\[\d*\])+$/, '').replace(/\([\d,\s]*\)/, '')
  const quoted = /^"(.*)"$/.exec(plain)?.[1]
  const name = quoted ?? plain.trim().replace(/\s+/g, ' ').toLowerCase()
  const type =
    quoted === undefined
      ? (byName.get(otherNames[name] ?? name) ?? pgTypes.find(({ sqlName }) => sqlName === name))
      : byName.get(name)
  return isArray ? type?.array || undefined : type?.oid
}

/** Range types: oid, and the oids of the element type, the multirange type and the operator class. */
const ranges = [
  [3904, 23, 4451, 1978],
  [3906, 1700, 4532, 3125],
  [3908, 1114, 4533, 3128],
  [3910, 1184, 4534, 3127],
  [3912, 1082, 4535, 3122],
  [3926, 20, 4536, 3124],
] as const

export function pgRangeRecords(): Record<string, Value>[] {
  return ranges.map(([rngtypid, rngsubtype, rngmultitypid, rngsubopc]) => ({
    rngtypid,
    rngsubtype,
    rngmultitypid,
    rngsubopc,
  }))
}
