// The OIDs of PostgreSQL's types, the column type that a query parameter with such an OID gets, and the OIDs of arrays
// of column types.

import {
  type ColumnType,
  type DataType,
  dataType,
  intKinds,
  isSpan,
  isZoned,
  textKinds,
  timeKinds,
} from './column-types.js'

export const oids = {
  bool: 16,
  boolArray: 1000,
  timestampArray: 1115,
  timestamptzArray: 1185,
  dateArray: 1182,
  numericArray: 1231,
  bpcharArray: 1014,
  nameArray: 1003,
  uuidArray: 2951,
  byteaArray: 1001,
  jsonArray: 199,
  jsonbArray: 3807,
  timeArray: 1183,
  timetzArray: 1270,
  inetArray: 1041,
  cidrArray: 651,
  bytea: 17,
  char: 18,
  name: 19,
  int8: 20,
  int2: 21,
  int4: 23,
  text: 25,
  oid: 26,
  json: 114,
  cidr: 650,
  float4: 700,
  float8: 701,
  unknown: 705,
  inet: 869,
  int2Array: 1005,
  int4Array: 1007,
  textArray: 1009,
  varcharArray: 1015,
  int8Array: 1016,
  oidArray: 1028,
  float4Array: 1021,
  float8Array: 1022,
  bpchar: 1042,
  varchar: 1043,
  date: 1082,
  time: 1083,
  timetz: 1266,
  timestamp: 1114,
  timestamptz: 1184,
  interval: 1186,
  intervalArray: 1187,
  numeric: 1700,
  void: 2278,
  uuid: 2950,
  jsonb: 3802,
} as const

const typesByOid: ReadonlyMap<number, DataType> = new Map([
  [oids.bool, dataType('BOOLEAN')],
  [oids.bytea, dataType('BINARY')],
  [oids.int8, dataType('LONG')],
  [oids.int2, dataType('SHORT')],
  [oids.int4, dataType('INT')],
  [oids.oid, dataType('LONG')],
  [oids.float4, dataType('FLOAT')],
  [oids.float8, dataType('DOUBLE')],
  [oids.date, dataType('DATE')],
  [oids.timestamp, dataType('TIMESTAMP')],
  [oids.timestamptz, dataType('TIMESTAMP', timeKinds.zoned)],
  [oids.numeric, dataType('DECIMAL', 76, 18)],
  [oids.void, dataType('STRING', textKinds.void)],
  [oids.uuid, dataType('UUID')],
  [oids.float4Array, dataType('ARRAY', 1)],
  [oids.float8Array, dataType('ARRAY', 1)],
])

const arrayOids: Partial<Record<ColumnType, number>> = {
  BOOLEAN: oids.boolArray,
  BYTE: oids.int2Array,
  SHORT: oids.int2Array,
  INT: oids.int4Array,
  LONG: oids.int8Array,
  FLOAT: oids.float4Array,
  DOUBLE: oids.float8Array,
  DECIMAL: oids.numericArray,
  DATE: oids.timestampArray,
  TIMESTAMP: oids.timestampArray,
  TIMESTAMP_NS: oids.timestampArray,
  UUID: oids.uuidArray,
}

/** OID of PostgreSQL's array of such values. */
export function arrayOidOf(type: DataType): number {
  const { name, a } = type
  if (isZoned(type)) return oids.timestamptzArray
  if (isSpan(type)) return oids.intervalArray
  if (name === 'INT' && a === intKinds.oid) return oids.oidArray
  return arrayOids[name] ?? oids.textArray
}

/** Type of a parameter for the binder; types that we lack are text. Null for 0: unspecified. */
export function typeOfOid(oid: number): DataType | null {
  if (oid === 0 || oid === oids.unknown) return null
  return typesByOid.get(oid) ?? dataType('STRING')
}
