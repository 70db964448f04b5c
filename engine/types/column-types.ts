// The table of all column types. Each row of it has the number by which files name the type, the width of a value in
// memory, the type's OID in the PostgreSQL protocol, and its form in JSON and CSV. Code that must treat each type
// differently uses a Record<ColumnType, ...>, so that it does not compile until a new type has been added to it.
//
// In memory a column is an array of values of fixed width. NULL is a reserved value of the type, so no NULL bitmap is
// needed:
//
//   BOOLEAN BYTE SHORT             no NULL (a missing column reads false / 0)
//   CHAR                           0, read as the empty string
//   INT IPv4(0) LONG TIMESTAMP*    minimum integer (IPv4: 0)
//   DATE DECIMAL                   minimum integer of the width
//   FLOAT DOUBLE                   NaN
//   UUID LONG256                   every 64-bit word the minimum integer
//   GEOHASH                        -1
//   SYMBOL                         -1; the value is an index into the column's dictionary
//   text, BINARY, ARRAY            an 8-byte entry {address u32, length i32}: length -1 is NULL, the address is
//                                  absolute in the shared memory (bytes never move while anybody may read them)
//
// STRING and VARCHAR are both UTF-8; they differ in name only. An ARRAY value is: dimension count u32, that many
// u32 lengths, zero padding to 8 bytes from the value's start, then the doubles in row-major order.
// DECIMAL(p,s): a two's complement little-endian integer scaled by 10^s of 8 (p<=18), 16 (p<=38) or 32 bytes (p<=76).
// GEOHASH(bits): 1, 2, 4 or 8 bytes for up to 7, 15, 31, 60 bits.
//
// `tag` is on disk: never renumber.

export type StorageKind = 'i8' | 'i16' | 'u16' | 'i32' | 'i64' | 'f32' | 'f64' | 'b16' | 'b32' | 'entry'

interface ColumnTypeRow {
  readonly tag: number
  /** Bytes of one value in memory; GEOHASH and DECIMAL: see widthOf. */
  readonly width: number
  readonly storage: StorageKind
  /** OID that the PostgreSQL wire protocol names. */
  readonly pgOid: number
  /** How /exec writes a value. */
  readonly json: 'boolean' | 'number' | 'string' | 'null' | 'array'
  /** CSV quotes the value always ('always') or when RFC 4180 asks for it ('needed'). */
  readonly csvQuotes: 'always' | 'needed' | 'never'
  readonly nullable: boolean
}

export const columnTypes = {
  BOOLEAN: { tag: 1, width: 1, storage: 'i8', pgOid: 16, json: 'boolean', csvQuotes: 'never', nullable: false },
  BYTE: { tag: 2, width: 1, storage: 'i8', pgOid: 21, json: 'number', csvQuotes: 'never', nullable: false },
  SHORT: { tag: 3, width: 2, storage: 'i16', pgOid: 21, json: 'number', csvQuotes: 'never', nullable: false },
  CHAR: { tag: 4, width: 2, storage: 'u16', pgOid: 1042, json: 'string', csvQuotes: 'needed', nullable: false },
  INT: { tag: 5, width: 4, storage: 'i32', pgOid: 23, json: 'number', csvQuotes: 'never', nullable: true },
  LONG: { tag: 6, width: 8, storage: 'i64', pgOid: 20, json: 'number', csvQuotes: 'never', nullable: true },
  DATE: { tag: 7, width: 8, storage: 'i64', pgOid: 1114, json: 'string', csvQuotes: 'always', nullable: true },
  TIMESTAMP: { tag: 8, width: 8, storage: 'i64', pgOid: 1114, json: 'string', csvQuotes: 'always', nullable: true },
  TIMESTAMP_NS: { tag: 9, width: 8, storage: 'i64', pgOid: 1114, json: 'string', csvQuotes: 'always', nullable: true },
  FLOAT: { tag: 10, width: 4, storage: 'f32', pgOid: 700, json: 'number', csvQuotes: 'never', nullable: true },
  DOUBLE: { tag: 11, width: 8, storage: 'f64', pgOid: 701, json: 'number', csvQuotes: 'never', nullable: true },
  STRING: { tag: 12, width: 8, storage: 'entry', pgOid: 1043, json: 'string', csvQuotes: 'always', nullable: true },
  VARCHAR: { tag: 13, width: 8, storage: 'entry', pgOid: 1043, json: 'string', csvQuotes: 'always', nullable: true },
  SYMBOL: { tag: 14, width: 4, storage: 'i32', pgOid: 1043, json: 'string', csvQuotes: 'always', nullable: true },
  LONG256: { tag: 15, width: 32, storage: 'b32', pgOid: 1043, json: 'string', csvQuotes: 'never', nullable: true },
  UUID: { tag: 16, width: 16, storage: 'b16', pgOid: 2950, json: 'string', csvQuotes: 'never', nullable: true },
  IPv4: { tag: 17, width: 4, storage: 'i32', pgOid: 1043, json: 'string', csvQuotes: 'never', nullable: true },
  GEOHASH: { tag: 18, width: 8, storage: 'i64', pgOid: 1043, json: 'string', csvQuotes: 'always', nullable: true },
  BINARY: { tag: 19, width: 8, storage: 'entry', pgOid: 17, json: 'null', csvQuotes: 'never', nullable: true },
  ARRAY: { tag: 20, width: 8, storage: 'entry', pgOid: 1022, json: 'array', csvQuotes: 'always', nullable: true },
  DECIMAL: { tag: 21, width: 16, storage: 'b16', pgOid: 1700, json: 'string', csvQuotes: 'always', nullable: true },
  /** In results only: two i64, low and high microseconds inclusive. */
  INTERVAL: { tag: 22, width: 16, storage: 'b16', pgOid: 1043, json: 'string', csvQuotes: 'always', nullable: true },
} as const satisfies Record<string, ColumnTypeRow>

export type ColumnType = keyof typeof columnTypes

/**
 * A column type with its parameters. `a` and `b`: GEOHASH bits; DECIMAL precision, scale; ARRAY dimensions and, in
 * results, one of arrayKinds; for INT, LONG, STRING, TIMESTAMP and DATE in results one of intKinds, longKinds,
 * textKinds, timeKinds, dateKinds; else 0.
 */
export interface DataType {
  readonly name: ColumnType
  readonly a: number
  readonly b: number
}

/** The type object of a parameterless type. */
export function dataType(name: ColumnType, a = 0, b = 0): DataType {
  return { name, a, b }
}

/** Variants of INT for PostgreSQL's catalog: plain numbers, and OIDs that are shown as the name of their object. */
export const intKinds = { oid: 1, regclass: 2, regproc: 3, regtype: 4, regnamespace: 5, regrole: 6 } as const

/** Variant of LONG: microseconds that PostgreSQL clients see as an interval. */
export const longKinds = { span: 1 } as const

/**
 * Variants of STRING for PostgreSQL clients: catalog strings that list numbers (`{1,2}`, `1 2`); JSON, which is
 * embedded in other JSON unquoted; lists (`{a,b}`) of strings, INT and LONG, which clients get as arrays; parameters
 * for which a result is expected; times of day; catalog vectors (`1 2`, counted from 0) of column numbers and of
 * OIDs; lists of other types; catalog names and lists of them; and lists of labels of an enumeration, whose id is
 * `b`. Drivers do not decode the last two as arrays: Node.js mappers parse their text themselves.
 */
export const textKinds = {
  ...{ numbers: 1, json: 2, jsonb: 3, strings: 4, ints: 5, longs: 6, void: 7, time: 8 },
  ...{ places: 9, oids: 10 },
  ...{ bools: 11, times: 12, zonedTimes: 13, days: 14, uuids: 15 },
  ...{ name: 16, names: 17, labels: 18 },
} as const

/** Arrays whose elements, stored as doubles, PostgreSQL clients see as INT or LONG. */
const arrayKinds = { ints: 1, longs: 2 } as const

/** Timestamps that PostgreSQL clients see with a time zone, which is always UTC. */
export const timeKinds = { zoned: 1 } as const

/** Dates without a time of day, for PostgreSQL clients. */
export const dateKinds = { day: 1 } as const

export function isDay({ name, a }: DataType): boolean {
  return name === 'DATE' && a === dateKinds.day
}

export function isZoned({ name, a }: DataType): boolean {
  return name === 'TIMESTAMP' && a === timeKinds.zoned
}

export function isSpan({ name, a }: DataType): boolean {
  return name === 'LONG' && a === longKinds.span
}

/** A string that PostgreSQL clients see as a time of day. */
export function isTimeOfDay({ name, a }: DataType): boolean {
  return name === 'STRING' && a === textKinds.time
}

export function isJson({ name, a }: DataType): boolean {
  return name === 'STRING' && (a === textKinds.json || a === textKinds.jsonb)
}

export function isJsonb({ name, a }: DataType): boolean {
  return name === 'STRING' && a === textKinds.jsonb
}

/** A catalog name: a string to all but PostgreSQL clients. */
export function isCatalogName({ name, a }: DataType): boolean {
  return name === 'STRING' && a === textKinds.name
}

/** A list that PostgreSQL clients see as an array. */
export function isList({ name, a }: DataType): boolean {
  if (name !== 'STRING') return false
  return (a >= textKinds.strings && a <= textKinds.longs) || isNamedList(a) || listElements[a] !== undefined
}

function isNamedList(kind: number): boolean {
  return kind === textKinds.names || kind === textKinds.labels
}

/** A list whose elements have another format on the wire than in the string. */
export function isListOfValues({ name, a }: DataType): boolean {
  return name === 'STRING' && listElements[a] !== undefined
}

const listElements: Readonly<Record<number, DataType>> = {
  [textKinds.bools]: dataType('BOOLEAN'),
  [textKinds.times]: dataType('TIMESTAMP'),
  [textKinds.zonedTimes]: dataType('TIMESTAMP', timeKinds.zoned),
  [textKinds.days]: dataType('DATE', dateKinds.day),
  [textKinds.uuids]: dataType('UUID'),
}

/** The type of a list of values of a type. */
export function listTypeOf(type: DataType): DataType {
  const { name } = type
  if (isZoned(type)) return dataType('STRING', textKinds.zonedTimes)
  if (isDay(type)) return dataType('STRING', textKinds.days)
  if (isCatalogName(type)) return dataType('STRING', textKinds.names)
  return dataType('STRING', isSpan(type) ? textKinds.strings : (listKinds[name] ?? textKinds.strings))
}

const listKinds: Partial<Record<ColumnType, number>> = {
  ...{ BYTE: textKinds.ints, SHORT: textKinds.ints, INT: textKinds.ints, LONG: textKinds.longs },
  ...{ BOOLEAN: textKinds.bools, UUID: textKinds.uuids },
  ...{ DATE: textKinds.times, TIMESTAMP: textKinds.times, TIMESTAMP_NS: textKinds.times },
}

/** The type of an array with elements of a type, for PostgreSQL clients. */
export function arrayTypeOf({ name, a }: DataType, dimensions: number): DataType {
  if (name === 'LONG' && a === 0) return dataType('ARRAY', dimensions, arrayKinds.longs)
  const isShort = name === 'INT' || name === 'SHORT' || name === 'BYTE'
  return dataType('ARRAY', dimensions, isShort ? arrayKinds.ints : 0)
}

/** Element type of an array, for PostgreSQL clients. */
export function arrayElementType({ b }: DataType): DataType & { readonly name: 'DOUBLE' | 'INT' | 'LONG' } {
  return { name: b === arrayKinds.ints ? 'INT' : b === arrayKinds.longs ? 'LONG' : 'DOUBLE', a: 0, b: 0 }
}

/** A catalog vector. */
export function isVector({ name, a }: DataType): boolean {
  return name === 'STRING' && (a === textKinds.places || a === textKinds.oids)
}

/** Element type of a list in a string. */
export function elementType({ a }: DataType): DataType {
  if (a === textKinds.oids) return dataType('INT', intKinds.oid)
  if (a === textKinds.numbers || a === textKinds.ints || a === textKinds.places) return dataType('INT')
  if (a === textKinds.names) return dataType('STRING', textKinds.name)
  return listElements[a] ?? dataType(a === textKinds.longs ? 'LONG' : 'STRING')
}

const distinctTypes: ReadonlySet<ColumnType> = new Set(['INT', 'LONG', 'STRING', 'TIMESTAMP', 'DATE'])

/** The type as a table stores it: without the variants that exist in results only. */
export function storedKind(type: DataType): DataType {
  if (type.name === 'ARRAY') return dataType(type.name, type.a)
  return distinctTypes.has(type.name) ? dataType(type.name) : type
}

/** OID of the PostgreSQL type that represents a type in results. */
export function pgOidOf(type: DataType): number {
  if (isLabels(type)) return labelsOid(type.b)
  if (type.name === 'STRING') return textOids[type.a] ?? columnTypes.STRING.pgOid
  if (isZoned(type)) return zonedTypeOid
  if (isDay(type)) return dayTypeOid
  if (isSpan(type)) return spanTypeOid
  if (type.name === 'ARRAY') return arrayOids[type.b] ?? columnTypes.ARRAY.pgOid
  return type.name === 'INT' && type.a === intKinds.oid ? oidTypeOid : columnTypes[type.name].pgOid
}

/** Lists of enumeration labels. */
export function isLabels({ name, a }: DataType): boolean {
  return name === 'STRING' && a === textKinds.labels
}

/**
 * OID of a list of an enumeration's labels; the range follows those of tables and enumerations and precedes those
 * of rows.
 */
export function labelsOid(id: number): number {
  return 2 ** 27 + (id % 2 ** 27)
}

const oidTypeOid = 26
const textOids: Readonly<Record<number, number>> = {
  [textKinds.json]: 114,
  [textKinds.jsonb]: 3802,
  [textKinds.strings]: 1009,
  [textKinds.ints]: 1007,
  [textKinds.longs]: 1016,
  [textKinds.time]: 1083,
  [textKinds.places]: 22,
  [textKinds.oids]: 30,
  ...{ [textKinds.bools]: 1000, [textKinds.times]: 1115, [textKinds.zonedTimes]: 1185 },
  ...{ [textKinds.days]: 1182, [textKinds.uuids]: 2951 },
  ...{ [textKinds.name]: 19, [textKinds.names]: 1003 },
}
const arrayOids: Readonly<Record<number, number>> = { [arrayKinds.ints]: 1007, [arrayKinds.longs]: 1016 }
const zonedTypeOid = 1184
const dayTypeOid = 1082
const spanTypeOid = 1186

/** Bytes of one value of the type in memory and in WAL frames. */
export function widthOf(type: DataType): number {
  if (type.name === 'GEOHASH') return geohashWidth(type.a)
  if (type.name === 'DECIMAL') return decimalWidth(type.a)
  return columnTypes[type.name].width
}

/** Memory representation of one value. An 8-byte DECIMAL is 'i64'. */
export function storageOf(type: DataType): StorageKind {
  const width = widthOf(type)
  if (type.name === 'GEOHASH') return width === 1 ? 'i8' : width === 2 ? 'i16' : width === 4 ? 'i32' : 'i64'
  if (type.name === 'DECIMAL') return width === 8 ? 'i64' : width === 16 ? 'b16' : 'b32'
  return columnTypes[type.name].storage
}

function geohashWidth(bits: number): number {
  if (bits <= 7) return 1
  if (bits <= 15) return 2
  return bits <= 31 ? 4 : 8
}

function decimalWidth(precision: number): number {
  if (precision <= 18) return 8
  return precision <= 38 ? 16 : 32
}

const typesByTag = new Map<number, ColumnType>(
  (Object.keys(columnTypes) as ColumnType[]).map((name) => [columnTypes[name].tag, name]),
)

/** The type of a tag on disk; undefined for an unknown tag. */
export function typeByTag(tag: number): ColumnType | undefined {
  return typesByTag.get(tag)
}

/** Whether values are {address, length} entries pointing at bytes. */
export function isVariable(type: DataType): boolean {
  return columnTypes[type.name].storage === 'entry'
}

/** The type as SQL and result metadata spell it: `GEOHASH(8c)`, `DECIMAL(10,2)`, `DOUBLE[][]`, `INT`. */
export function typeText(type: DataType): string {
  if (type.name === 'GEOHASH') return type.a % 5 === 0 ? `GEOHASH(${type.a / 5}c)` : `GEOHASH(${type.a}b)`
  if (type.name === 'DECIMAL') return `DECIMAL(${type.a},${type.b})`
  if (type.name === 'ARRAY') return `DOUBLE${'[]'.repeat(type.a)}`
  return type.name
}

/**
 * Whether two types, with parameters, have the same values. Variants equal their base types: a timestamp with zone is
 * a timestamp, a date its midnight, JSON, lists, names and times of day are strings, an interval is a number, and
 * integers of an array are doubles.
 */
export function sameType(x: DataType, y: DataType): boolean {
  return x.name === y.name && shapeOf(x) === shapeOf(y) && (x.b === y.b || x.name === 'ARRAY' || x.name === 'STRING')
}

function shapeOf(type: DataType): number {
  if (isZoned(type) || isDay(type) || isTimeOfDay(type) || isSpan(type)) return 0
  return isJson(type) || isList(type) || isCatalogName(type) ? 0 : type.a
}
