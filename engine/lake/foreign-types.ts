// Maps types and single values of Iceberg tables that other programs wrote to those of this server.
//
//   boolean int long float double    BOOLEAN INT LONG FLOAT DOUBLE
//   decimal(p,s)                     DECIMAL(p,s)
//   date                             DATE, in milliseconds
//   time                             LONG, in microseconds
//   timestamp timestamptz            TIMESTAMP
//   timestamp_ns timestamptz_ns      TIMESTAMP_NS
//   string uuid                      VARCHAR UUID
//   binary fixed[n]                  BINARY
//   list of numbers                  DOUBLE[], lists of lists DOUBLE[][] ..
//   map, other lists                 VARCHAR: JSON
//   struct                           a column for each of its fields: see foreign-metadata.ts
//
// Bounds of columns in manifests are binary (appendix D of the specification): integers and floating-point numbers are
// little-endian, strings are UTF-8.

import { arrayDimensionsMax, decimalDigitsMax, nestedDepthMax } from '../base/limits.js'
import { type NestedShape, pathSeparator } from '../parquet/foreign-file.js'
import type { Bound } from '../types/bounds.js'
import { type DataType, dataType } from '../types/column-types.js'
import type { Value } from '../types/value.js'

/** A type in the metadata: a name, or a nested type. */
export type ForeignType =
  | string
  | {
      readonly type: string
      readonly element?: ForeignType
      readonly key?: ForeignType
      readonly value?: ForeignType
      readonly fields?: readonly ForeignField[]
    }

export interface ForeignField {
  readonly id: number
  readonly name: string
  readonly type: ForeignType
  readonly required?: boolean
  readonly 'initial-default'?: unknown
}

/** As Avro, JSON and bounds have them: days for a date. Null is NULL. */
export type RawValue = null | boolean | number | bigint | string | Uint8Array

const plain: Readonly<Record<string, DataType>> = {
  boolean: dataType('BOOLEAN'),
  int: dataType('INT'),
  long: dataType('LONG'),
  float: dataType('FLOAT'),
  double: dataType('DOUBLE'),
  date: dataType('DATE'),
  time: dataType('LONG'),
  timestamp: dataType('TIMESTAMP'),
  timestamptz: dataType('TIMESTAMP'),
  timestamp_ns: dataType('TIMESTAMP_NS'),
  timestamptz_ns: dataType('TIMESTAMP_NS'),
  string: dataType('VARCHAR'),
  uuid: dataType('UUID'),
  binary: dataType('BINARY'),
}

const listed: ReadonlySet<ForeignType> = new Set(['int', 'long', 'float', 'double', 'time'])
const timestamps: ReadonlySet<ForeignType> = new Set(['timestamp', 'timestamptz', 'timestamp_ns', 'timestamptz_ns'])

/** Null: the type is not supported. */
export function typeOfForeign(type: ForeignType): DataType | null {
  if (typeof type !== 'string') return listOf(type)
  const known = plain[type]
  if (known !== undefined) return known
  if (/^fixed\[\d+\]$/.test(type)) return dataType('BINARY')
  const [, precision, scale] = /^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(type) ?? []
  if (precision === undefined || Number(precision) > decimalDigitsMax) return null
  return dataType('DECIMAL', Number(precision), Number(scale))
}

function listOf(type: ForeignType): DataType | null {
  let dimensions = 0
  let inner: ForeignType | undefined = type
  while (typeof inner === 'object') {
    if (inner.type !== 'list') return null
    dimensions++
    inner = inner.element
  }
  return inner !== undefined && listed.has(inner) && dimensions <= arrayDimensionsMax
    ? dataType('ARRAY', dimensions)
    : null
}

/**
 * A nested type that is read as JSON; null: a part of it is not supported. `paths`: by field id, in files without ids;
 * null: they are not known.
 */
export function shapeOfForeign(
  type: ForeignType | undefined,
  paths: ReadonlyMap<number, readonly string[]> | null,
  depth = 0,
): NestedShape | null {
  if (type === undefined || depth > nestedDepthMax) return null
  const inner = (part: ForeignType | undefined): NestedShape | null => shapeOfForeign(part, paths, depth + 1)
  if (typeof type === 'string') {
    const own = typeOfForeign(type)
    return own === null ? null : { kind: 'value', type: own }
  }
  if (type.type === 'list') {
    const element = inner(type.element)
    return element === null ? null : { kind: 'list', element }
  }
  if (type.type === 'map') {
    const [key, value] = [inner(type.key), inner(type.value)]
    return key === null || value === null ? null : { kind: 'map', key, value }
  }
  if (type.type !== 'struct') return null
  const fields = (type.fields ?? []).flatMap(({ id, name, type: own, 'initial-default': initial }) => {
    const shape = initial === undefined || initial === null ? inner(own) : null
    const names = paths === null ? [name] : (paths.get(id) ?? []).map((path) => path.split(pathSeparator).at(-1) ?? '')
    return shape === null ? [] : [{ id, name, names, shape }]
  })
  return fields.length === type.fields?.length ? { kind: 'struct', fields } : null
}

/** The text of a type in messages. */
export function foreignTypeText(type: ForeignType): string {
  return typeof type === 'string' ? type : type.type
}

/**
 * A bound; undefined: its type has none that is used. Files from before a promotion have shorter ones. Those of a date
 * that became a timestamp are days, and are not used.
 */
export function rawBound(type: ForeignType, bytes: Uint8Array): number | bigint | Uint8Array | undefined {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  switch (type) {
    case 'int':
    case 'date':
    case 'long':
    case 'time':
      return view.length === 8 ? view.readBigInt64LE() : view.length === 4 ? view.readInt32LE() : undefined
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return view.length === 8 ? view.readBigInt64LE() : undefined
    case 'double': {
      const value = view.length === 8 ? view.readDoubleLE() : view.length === 4 ? view.readFloatLE() : Number.NaN
      return Number.isNaN(value) ? undefined : value
    }
    case 'string':
      return view
    default:
      return undefined
  }
}

/** The value as conditions compare it; undefined: they do not. */
export function boundOf(type: ForeignType, raw: RawValue): Bound | Uint8Array | undefined {
  if (type === 'string') return typeof raw === 'string' ? Buffer.from(raw) : raw instanceof Uint8Array ? raw : undefined
  if (typeof raw !== 'number' && typeof raw !== 'bigint') return undefined
  if (type === 'float' || (typeof type === 'string' && type.startsWith('decimal'))) return undefined
  // The date of a partition from before a promotion.
  if (typeof raw === 'number' && timestamps.has(type)) return undefined
  return type === 'date' ? BigInt(raw) * dayMs : raw
}

const dayMs = 86_400_000n

/** The value of a column that a file does not have: that of its partition. Undefined: the type is not supported. */
export function valueOfRaw(type: ForeignType, raw: RawValue): Value | undefined {
  if (raw === null) return null
  const isNumber = typeof raw === 'number' || typeof raw === 'bigint'
  switch (typeOfForeign(type)?.name) {
    case 'BOOLEAN':
      return typeof raw === 'boolean' ? raw : undefined
    case 'INT':
    case 'FLOAT':
    case 'DOUBLE':
      return isNumber ? Number(raw) : undefined
    case 'LONG':
      return isNumber ? BigInt(raw) : undefined
    case 'TIMESTAMP':
      return timestampOf(raw, 1000n)
    case 'TIMESTAMP_NS':
      return timestampOf(raw, 1_000_000n)
    case 'DATE':
      return isNumber ? BigInt(raw) * dayMs : undefined
    case 'VARCHAR':
      return typeof raw === 'string' ? raw : undefined
    case 'BINARY':
      return raw instanceof Uint8Array ? raw : undefined
    case 'UUID':
      return raw instanceof Uint8Array && raw.length === 16 ? unsignedOf(raw) : undefined
    case 'DECIMAL':
      return raw instanceof Uint8Array ? BigInt.asIntN(raw.length * 8, unsignedOf(raw)) : undefined
    default:
      return undefined
  }
}

/** The default of an added column, in JSON. Undefined: it is not supported. */
export function defaultOf(type: ForeignType, json: unknown): Value | undefined {
  if (json === undefined || json === null) return null
  if (typeof json === 'boolean') return type === 'boolean' ? json : undefined
  if (typeof json !== 'number' && typeof json !== 'string') return undefined
  switch (typeOfForeign(type)?.name) {
    case 'INT':
    case 'FLOAT':
    case 'DOUBLE':
      return typeof json === 'number' || wholeNumber.test(json) ? Number(json) : undefined
    case 'LONG':
      return type === 'time' ? timeOf(String(json)) : wholeNumber.test(String(json)) ? BigInt(json) : undefined
    case 'DATE':
      return instantOf(String(json), 1n, 0)
    case 'TIMESTAMP':
      return instantOf(String(json), 1000n, 6)
    case 'TIMESTAMP_NS':
      return instantOf(String(json), 1_000_000n, 9)
    case 'VARCHAR':
      return typeof json === 'string' ? json : undefined
    case 'UUID':
      return /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(String(json))
        ? BigInt(`0x${String(json).replaceAll('-', '')}`)
        : undefined
    case 'BINARY':
      return /^([\da-f]{2})*$/i.test(String(json)) ? Buffer.from(String(json), 'hex') : undefined
    case 'DECIMAL':
      return unscaledOf(String(json), typeOfForeign(type)?.b ?? 0)
    default:
      return undefined
  }
}

const wholeNumber = /^-?\d+$/

/** The microseconds of a time of day. */
function timeOf(text: string): bigint | undefined {
  const [, hours = '', minutes = '', seconds = '', fraction = ''] =
    /^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text) ?? []
  if (hours === '') return undefined
  const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
  return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
}

/** `units`: of the type, in a millisecond; `digits`: of its fractions of a second. */
function instantOf(text: string, units: bigint, digits: number): bigint | undefined {
  const isZoned = /(Z|[+-]\d\d:\d\d)$/.test(text)
  const ms = Date.parse(text.includes('T') && !isZoned ? `${text}Z` : text)
  if (Number.isNaN(ms)) return undefined
  const [, beyond = ''] = /\.\d{3}(\d{1,6})/.exec(text) ?? []
  return BigInt(ms) * units + (digits === 0 ? 0n : BigInt(beyond.padEnd(6, '0').slice(0, digits - 3)))
}

/** A decimal without its point, with as many digits behind it as the type has. */
function unscaledOf(text: string, scale: number): bigint | undefined {
  const [, sign, whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (whole === '' || fraction.length > scale) return undefined
  return BigInt(`${sign}${whole}${fraction.padEnd(scale, '0')}`)
}

/** `units`: of the type, in a millisecond. */
function timestampOf(raw: RawValue, units: bigint): bigint | undefined {
  if (typeof raw === 'bigint') return raw
  // The date of a partition from before a promotion.
  return typeof raw === 'number' ? BigInt(raw) * dayMs * units : undefined
}

/** Big-endian. */
function unsignedOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`)
}
